"""Inputs to arm means: rows, sums, releases, units, missing rewards, ratios, covariates and received arms."""
