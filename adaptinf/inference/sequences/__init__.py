"""Intervals that are valid at any time."""

from adaptinf.inference.sequences.confidence_sequence import ConfidenceSequence
from adaptinf.inference.sequences.sequence_results import SequenceResults

__all__ = [
    "ConfidenceSequence",
    "SequenceResults",
]
