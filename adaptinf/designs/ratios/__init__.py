"""Likelihood ratios of what counters and epochs release, for audits."""
