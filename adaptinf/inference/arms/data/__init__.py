"""Inputs to arm means: rows, sums, releases, units, gaps, ratios, covariates, received arms."""
