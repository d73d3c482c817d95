"""Sums over rounds for the checks behind every table: in NumPy, and compiled for long logs."""
