"""Recipes: a typed schema, TOML loading with a base chain, and --set overrides."""
