"""torch_dist checkpoints as safetensors, streaming: for the trainer and for the command."""
