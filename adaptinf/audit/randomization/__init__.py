"""Randomisation tests and intervals: the design is re-run under the hypothesis."""
