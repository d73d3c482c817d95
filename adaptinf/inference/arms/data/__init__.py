"""What arm means are made of: rows, sums, releases, units, gaps, ratios, covariates, received arms."""
