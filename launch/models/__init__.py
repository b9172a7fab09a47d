"""Models: their shape, and what slime's Megatron must be told about it."""
