"""A real language model and questions in real prose for one machine: SmolLM2-135M, eight rows."""
