"""Fixtures of the judge's tests."""

from tests.rewards.judge.scripted import client

__all__ = ["client"]
