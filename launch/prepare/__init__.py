"""`longrl prepare`: model and data of a recipe, brought here while there is network."""
