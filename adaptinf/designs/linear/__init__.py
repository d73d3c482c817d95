"""Rewards linear in a context vector of each arm."""
