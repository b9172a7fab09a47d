"""Judges: language models that answer over HTTP whether an answer is right.

A failed judge gives no verdict; it never gives a 0.
"""
