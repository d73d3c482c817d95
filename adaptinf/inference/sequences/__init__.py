"""Intervals that hold at any time."""

from adaptinf.inference.sequences.models import ConfidenceSequence
from adaptinf.inference.sequences.results import SequenceResults

__all__ = [
    "ConfidenceSequence",
    "SequenceResults",
]
