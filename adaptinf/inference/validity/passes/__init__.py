"""Sums over rounds for the checks before every table, in NumPy and, for long logs, in compiled code."""
