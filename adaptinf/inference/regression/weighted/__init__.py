"""Least squares weighted by propensities: with one weight a round for all arms, or one for each arm."""

from adaptinf.inference.regression.weighted.choice import WEIGHTED, passed_over
from adaptinf.inference.regression.weighted.own import stabilising_weights, weighted_least_squares

__all__ = ["WEIGHTED", "passed_over", "stabilising_weights", "weighted_least_squares"]
