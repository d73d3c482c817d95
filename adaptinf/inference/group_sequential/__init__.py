"""Repeated looks at a trial: critical values, crossing probabilities, and estimates after stopping."""

from adaptinf.inference.group_sequential.boundaries import Boundary, futility_bounds, spending_bounds

__all__ = ["Boundary", "futility_bounds", "spending_bounds"]
