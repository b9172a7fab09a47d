"""The command line: one file a command; nothing imports this package."""
