"""Wealth of bettors against a claimed mean, and the bounds that it leaves."""
