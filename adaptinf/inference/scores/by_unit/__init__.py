"""Scores whose errors are by unit: totals of units with several rounds, and covariances of clusters."""
