"""Estimates from private releases alone."""

from adaptinf.inference.released.bin_means import BinMeans

__all__ = [
    "BinMeans",
]
