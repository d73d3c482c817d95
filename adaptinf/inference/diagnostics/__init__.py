"""Whether a log fits its own story."""

from adaptinf.inference.diagnostics.diagnosis import diagnose
from adaptinf.inference.diagnostics.results import Diagnosis

__all__ = [
    "Diagnosis",
    "diagnose",
]
