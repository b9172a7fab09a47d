"""The memory and time plan of a recipe: what fits where, before a GPU is taken."""
