"""Noise, counters and mechanisms of differential privacy."""
