"""Regressions of rewards, one file per adjustment for adaptive collection."""

from adaptinf.inference.regression.models import AdaptiveOLS
from adaptinf.inference.regression.results import CoefficientTest, FTest, RegressionResults

__all__ = [
    "AdaptiveOLS",
    "CoefficientTest",
    "FTest",
    "RegressionResults",
]
