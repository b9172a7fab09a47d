"""Versions of the host's packages, found by importing each in a process of its own."""
