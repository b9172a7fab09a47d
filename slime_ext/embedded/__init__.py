"""The embedded backend: trainer, engine and loop on one machine without a GPU."""
