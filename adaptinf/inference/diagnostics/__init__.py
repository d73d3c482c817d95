"""Whether a log fits its own story."""

from adaptinf.inference.diagnostics.diagnosis_results import Diagnosis
from adaptinf.inference.diagnostics.log_checks import diagnose

__all__ = [
    "Diagnosis",
    "diagnose",
]
