"""Metrics: names, aggregation over a step, and the records in the run folder."""
