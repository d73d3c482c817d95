"""Real data that ship with a package adaptinf depends on."""

from __future__ import annotations

from adaptinf.datasets.rand_hie import rand_hie

__all__ = ["rand_hie"]
