"""Regressions of rewards on contexts and arms, adjusted for adaptive collection."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from adaptinf.inference.regression_data import Adjustment

__all__ = ["ADJUSTMENTS"]

_TABLE: dict[str, Adjustment] = {}

ADJUSTMENTS: Mapping[str, Adjustment] = MappingProxyType(_TABLE)
"""Adjustments by name."""
