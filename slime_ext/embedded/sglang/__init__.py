"""Real SGLang on CPU as the rollout engine, in an environment of its own."""
