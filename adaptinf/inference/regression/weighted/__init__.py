"""Least squares weighted by propensities: with one weight a round for all arms, or one for each arm."""
