"""Real data that ship with a package adaptinf depends on."""

from __future__ import annotations

from adaptinf.datasets.health_insurance import rand_hie

__all__ = ["rand_hie"]


def __dir__() -> list[str]:
    return sorted(__all__)
