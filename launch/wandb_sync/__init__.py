"""A run's records as one W&B run, after the fact, and the dashboard that shows it."""
