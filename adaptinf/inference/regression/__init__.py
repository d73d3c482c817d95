"""Regressions of rewards, with one file for each adjustment for adaptive collection."""

from adaptinf.inference.regression.adaptive_ols import AdaptiveOLS
from adaptinf.inference.regression.regression_results import CoefficientTest, FTest, RegressionResults

__all__ = [
    "AdaptiveOLS",
    "CoefficientTest",
    "FTest",
    "RegressionResults",
]
