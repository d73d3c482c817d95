"""Means of arms and their differences, with one file per method."""

from adaptinf.inference.arms.contrast import Contrast
from adaptinf.inference.arms.models import ArmMeans

__all__ = [
    "ArmMeans",
    "Contrast",
]
