"""A stage of a plan, built on one GPU (or at a scaled length on CPU) and measured."""
