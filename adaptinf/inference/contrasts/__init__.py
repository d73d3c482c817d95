"""Comparisons of all arms with a control: differences and lifts, with single and simultaneous inference."""

from adaptinf.inference.contrasts.many_contrasts import Contrasts, ContrastsResults

__all__ = ["Contrasts", "ContrastsResults"]
