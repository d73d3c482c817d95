"""Checks of whether a log is consistent with the statements that it makes."""

from adaptinf.inference.diagnostics.diagnosis_results import Diagnosis
from adaptinf.inference.diagnostics.log_checks import diagnose

__all__ = [
    "Diagnosis",
    "diagnose",
]
