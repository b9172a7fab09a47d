"""The groups of slime's command line, one file for each side of a run."""
