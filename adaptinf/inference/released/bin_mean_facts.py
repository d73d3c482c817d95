"""Facts on which claims about means by bin depend."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from adaptinf.claims.privacy.releases import CLIPPED
from adaptinf.inference.released.bin_tests import InvertedTest
from adaptinf.texts import several
from adaptinf.typing import FloatArray

_SHOWN = 10


class BinFacts:
    """Facts about one table; terms, spent and estimate have shape (k,)."""

    of_reports = True

    def __init__(
        self,
        terms: Sequence[str],
        spent: FloatArray,
        rng: int,
        estimate: FloatArray,
        reference: InvertedTest,
    ) -> None:
        self.terms, self.spent, self.rng = terms, spent, rng
        self.estimate, self.reference = estimate, reference

    @property
    def clipped(self) -> str:
        return CLIPPED()

    @property
    def coin(self) -> dict[str, Any]:
        left = 1.0 - self.spent
        return {"median": np.median(left), "largest": np.max(left), "rng": self.rng}

    @cached_property
    def _limits(self) -> FloatArray:
        """Limits of 95% intervals, shape (k, 2)."""
        return self.reference.interval(float(np.log(0.05)))

    @property
    def no_estimate(self) -> dict[str, str]:
        return self._of([bool(np.isnan(value)) for value in self.estimate])

    @property
    def whole_range(self) -> dict[str, str]:
        return self._of([low <= 0.0 and high >= 1.0 for low, high in self._limits])

    @property
    def single_point(self) -> dict[str, str]:
        return self._of([low == high for low, high in self._limits])

    def _of(self, flags: Sequence[bool]) -> dict[str, str]:
        found = [term for term, flag in zip(self.terms, flags, strict=True) if flag]
        return {"terms": several(found, _SHOWN, "; ")} if found else {}
