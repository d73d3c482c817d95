"""Means of arms and their differences, one file per method."""

from adaptinf.inference.arms.models import ArmMeans, Contrast

__all__ = [
    "ArmMeans",
    "Contrast",
]
