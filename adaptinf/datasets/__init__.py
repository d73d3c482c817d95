"""Real data: those that ship with a package adaptinf depends on, and those of a file of your own."""

from __future__ import annotations

from adaptinf.datasets.health_insurance import rand_hie
from adaptinf.datasets.precision_agriculture import farmer_trial

__all__ = ["farmer_trial", "rand_hie"]


def __dir__() -> list[str]:
    return sorted(__all__)
