"""Further columns beside rewards, as denominators of ratios or covariates: their sums and products."""
