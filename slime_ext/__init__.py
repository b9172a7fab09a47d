"""LongRL's extensions to slime: recipe, hooks, rollouts, data, metrics, and the embedded backend."""
