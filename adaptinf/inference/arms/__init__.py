"""Estimates of arm means and of their differences, with one file for each method."""

from adaptinf.inference.arms.contrast import Contrast
from adaptinf.inference.arms.models import ArmMeans

__all__ = [
    "ArmMeans",
    "Contrast",
]
