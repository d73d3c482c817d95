"""Adaptive designs, one file a family."""
