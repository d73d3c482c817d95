"""Calibration of analyses under a design."""

from adaptinf.audit.calibration import Coverage, coverage, coverage_from_tallies, true_value

__all__ = ["Coverage", "coverage", "coverage_from_tallies", "true_value"]
