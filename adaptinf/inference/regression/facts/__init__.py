"""What the claims of regressions ask of a log and of a fit."""
