"""Facts about a log and a fit that the claims on regressions use."""
