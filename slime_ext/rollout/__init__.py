"""Rollouts: one turn over the /generate protocol, and what every hook shares."""
