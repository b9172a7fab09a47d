"""LongRL's extensions to slime: recipe, hooks, rollouts, data, metrics, embedded backend."""
