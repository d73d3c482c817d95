"""Calibration of analyses under a design, for one cell or a grid of them, and the stability of arm counts."""

from adaptinf.audit.calibration import Coverage, coverage, coverage_from_tallies
from adaptinf.audit.engine import AnalysisError
from adaptinf.audit.results import Study
from adaptinf.audit.stability import CountStability, stability
from adaptinf.audit.study import study
from adaptinf.audit.truth import true_value

__all__ = [
    "AnalysisError",
    "CountStability",
    "Coverage",
    "Study",
    "coverage",
    "coverage_from_tallies",
    "stability",
    "study",
    "true_value",
]
