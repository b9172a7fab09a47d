"""One table of names between Hugging Face and Megatron weights."""
