"""Likelihood ratios and noise of what counters and epochs release, for audits."""
