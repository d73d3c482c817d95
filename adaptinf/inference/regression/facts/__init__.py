"""Facts about a log and a fit, on which claims about regressions depend."""
