"""Sums by batch and arm from a warehouse: the second way into inference, beside a log of rows."""

from adaptinf.sums.engines import aggregate
from adaptinf.sums.sums_table import NEEDS_ROWS, Sums

__all__ = ["NEEDS_ROWS", "Sums", "aggregate"]
