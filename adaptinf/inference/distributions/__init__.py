"""Tail probabilities and distributions that need no log."""
