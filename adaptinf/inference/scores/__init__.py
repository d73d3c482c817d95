"""Weighted scores of rounds, computed from arrays: outcome models, weights, means and their errors."""
