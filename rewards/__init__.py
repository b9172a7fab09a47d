"""Rewards: text in, numbers out.

Everything here works on strings and plain dataclasses. Nothing imports torch or slime, so a reward
can be tried on a laptop and the same object scores rollouts on the cluster.
"""
