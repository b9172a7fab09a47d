"""`longrl export` and `longrl import`: checkpoints to Hugging Face folders and back."""
