"""Tail probabilities and distributions that do not depend on a log."""
