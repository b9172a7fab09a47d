"""The only door to slime: its types, its loggers, and what this version of it can do."""
