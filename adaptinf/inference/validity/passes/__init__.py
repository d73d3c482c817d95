"""Sums over rounds for the checks that reach every table: in NumPy, and compiled for long logs."""
