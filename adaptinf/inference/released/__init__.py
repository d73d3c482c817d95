"""Estimates from private releases alone."""

from adaptinf.inference.released.released_bin_means import BinMeans

__all__ = [
    "BinMeans",
]
