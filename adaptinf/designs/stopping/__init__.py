"""Stopping rules: how many samples are needed to estimate a mean with a given precision."""
