"""A terminal view of a live run, from its records alone."""
