"""What claims ask of W-decorrelation."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from adaptinf.claims import first
from adaptinf.claims.regression import adjusted_regression as claims
from adaptinf.claims.regression.regressions import BY_PROPENSITIES
from adaptinf.inference.regression.decorrelation import Decorrelated, decorrelated
from adaptinf.inference.regression.facts.common import RegressionFacts

_LARGEST_LEFT = 0.2
"""Share of the error of least squares that it may leave out of its standard errors."""
_UNEVEN, _RARE = 10.0, 0.2


class DecorrelationFacts(RegressionFacts):
    """How much of the error of least squares it leaves, and which columns make it do so."""

    @property
    def ridge(self) -> float | None:
        """The one that was given."""
        given: float | None = self.options.settings.get("ridge")
        return given

    @cached_property
    def solved(self) -> Decorrelated:
        """The estimate; the rounds are more than the columns."""
        return decorrelated(self.data.x, self.data.y, self.ridge)

    @property
    def too_much_left(self) -> dict[str, Any]:
        """By the columns alone."""
        left = self.solved.left if self.data.nobs > self.data.size else 0.0
        return {} if left <= _LARGEST_LEFT else {"left": left, "cause": first(claims.CAUSES, self)}

    @property
    def uneven(self) -> bool:
        """Columns, where they are not 0, are of very different size."""
        count = np.count_nonzero(self.data.x, axis=0)
        size = np.sqrt((self.data.x**2).sum(axis=0) / np.maximum(count, 1))
        return bool(size.max() > _UNEVEN * size.min())

    @property
    def rarely_seen(self) -> dict[str, Any]:
        """The column that is 0 in most rounds is so in nearly all."""
        count, n = np.count_nonzero(self.data.x, axis=0), self.data.nobs
        place = int(np.argmin(count))
        if self.uneven or count[place] >= _RARE * n:
            return {}
        return {"name": self.data.names[place], "rounds": int(count[place]), "n": n}

    @property
    def by_propensities(self) -> str:
        return BY_PROPENSITIES() if self.rarely_seen else ""

    @property
    def ridge_given(self) -> bool:
        return self.ridge is not None

    @property
    def needs_little(self) -> bool:
        return self.data.selector is None and not self.too_much_left

    @property
    def default_ridge(self) -> dict[str, float]:
        return {"ridge": self.solved.ridge} if self.ridge is None else {}

    @property
    def given_ridge(self) -> dict[str, float]:
        return {} if self.ridge is None else {"ridge": self.solved.ridge}

    @property
    def left_in(self) -> dict[str, float]:
        return {"left": self.solved.left}
