"""Facts about a log and a fit, for claims about regressions."""
