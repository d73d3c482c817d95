"""Least squares weighted by propensities, with one weight per round for all arms or one for each arm."""
