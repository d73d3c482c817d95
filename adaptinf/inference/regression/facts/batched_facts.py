"""Facts about batched least squares, W-decorrelation, the ellipsoid and anytime-valid tests."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from adaptinf.claims import Said, first
from adaptinf.claims.regression import adjusted_regression as claims
from adaptinf.claims.regression.regressions import BY_PROPENSITIES
from adaptinf.inference.regression.batched_regression import BatchRegressions, batch_regressions
from adaptinf.inference.regression.decorrelation import Decorrelated, decorrelated
from adaptinf.inference.regression.facts.regression_facts import RegressionFacts, some

_BATCHES = 10
"""Largest number of batches that a sentence lists."""


class BatchedFacts(RegressionFacts):
    """Facts about which batches can be used.

    Whether a batch lacks rank is determined before its own rewards, but not before those of earlier batches.
    If the number of terms of a sum depends on the terms, the sum has another distribution, so adaptive logs
    with such batches are refused.
    """

    @property
    def assumes_constant(self) -> bool:
        """Whether drift between batches would invalidate the method."""
        return False

    @cached_property
    def regressions(self) -> BatchRegressions:
        """The regressions in the batches of the rounds used; refused if there are no batches."""
        assert self.data.batch is not None
        return batch_regressions(self.data.batch, self.data.x, self.data.y)

    @property
    def usable(self) -> BatchRegressions:
        """The regressions in the batches that determine all coefficients."""
        return self.regressions.only(self.regressions.usable)

    @cached_property
    def unusable(self) -> Said | None:
        """The batches that carry no information; None if there are none."""
        if self.data.batch is None:
            return None
        every = self.profile.log.arrays.batch
        usable = np.zeros(int(self.data.batch.max() if every is None else every.max()) + 1, dtype=np.bool_)
        usable[np.unique(self.data.batch)[self.regressions.usable]] = True
        missing = np.flatnonzero(~usable)
        if len(missing) == 0:
            return None
        which = some([str(batch) for batch in missing], _BATCHES)
        return claims.UNUSABLE(missing=len(missing), batches=len(usable), which=which)

    @property
    def lacks_batches(self) -> bool:
        return self.data.batch is None

    @property
    def unusable_by_rewards(self) -> dict[str, str]:
        spoilt = self.unusable is not None and self.data.adaptive and self.regressions.usable.any()
        return {"what": str(self.unusable)} if spoilt else {}

    @property
    def all_unusable(self) -> str:
        if self.unusable is None or self.regressions.usable.any():
            return ""
        return self.unusable

    @property
    def told_apart_in_each(self) -> bool:
        """Whether the columns can be distinguished in every batch, in which case this is the default."""
        return self.data.selector is None and not first(claims.BATCHED_NEEDS, self)

    @property
    def over_batches(self) -> dict[str, int]:
        return {"batches": len(self.usable.df)}

    @property
    def left_out(self) -> dict[str, str]:
        return {} if self.unusable is None else {"what": self.unusable}

    @property
    def test(self) -> Any:
        """The distribution that is assumed for the statistics of batches."""
        return self.options.settings.get("test", "t")

    @property
    def by_student(self) -> bool:
        return bool(self.test == "t")

    @property
    def by_normal(self) -> bool:
        return bool(self.test == "normal")

    @property
    def drifts(self) -> bool:
        return bool(self.options.settings.get("drift", False))

    @property
    def constant_in_a_batch(self) -> bool:
        return bool(np.any(self.usable.scale == 0.0))


_LARGEST_LEFT = 0.2
"""Largest share of the least-squares error that standard errors may ignore."""
# A caution names these causes: scales of columns that differ tenfold, and a column that is 0 in four of five
# rounds.
_UNEVEN, _RARE = 10.0, 0.2


class DecorrelationFacts(RegressionFacts):
    """Facts about the share of the least-squares error that remains, and the columns that cause it."""

    @property
    def ridge(self) -> float | None:
        """The penalty that the user gave."""
        given: float | None = self.options.settings.get("ridge")
        return given

    @cached_property
    def solved(self) -> Decorrelated:
        """The decorrelated estimate, which requires more rounds than columns."""
        return decorrelated(self.data.x, self.data.y, self.ridge)

    @property
    def too_much_left(self) -> dict[str, Any]:
        """The share of the error that remains, if it is too large; it depends on the columns alone."""
        left = self.solved.left if self.data.nobs > self.data.size else 0.0
        return {} if left <= _LARGEST_LEFT else {"left": left, "cause": first(claims.CAUSES, self)}

    @property
    def uneven(self) -> bool:
        """Whether the nonzero values of the columns differ greatly in size."""
        count = np.count_nonzero(self.data.x, axis=0)
        size = np.sqrt((self.data.x**2).sum(axis=0) / np.maximum(count, 1))
        return bool(size.max() > _UNEVEN * size.min())

    @property
    def rarely_seen(self) -> dict[str, Any]:
        """Whether the column that is most often 0 is 0 in nearly all rounds."""
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


class EllipsoidFacts(RegressionFacts):
    """Facts about the known bounds on the noise and the coefficients."""

    @property
    def sub_gaussian(self) -> dict[str, Any]:
        given = self.options.settings.get("noise_scale") is not None
        return {
            "scale": self.fit.found.noise_scale,
            "source": "specified by the user" if given else claims.HALF_RANGE(),
        }

    @property
    def norm_bound(self) -> dict[str, float]:
        return {"bound": self.fit.found.bound}

    @property
    def ridge(self) -> dict[str, float]:
        return {"ridge": self.fit.found.ridge}

    @property
    def beyond_bound(self) -> dict[str, float]:
        """A warning if the estimate exceeds the bound, which has the units of the coefficients."""
        data = self.data
        if data.nobs <= data.size:
            return {}
        norm = float(np.linalg.norm(data.squares.coefficient))
        return {"norm": norm} if norm > self.fit.found.bound else {}


class AnytimeFacts(RegressionFacts):
    """Facts about anytime-valid tests: the coefficients for which the mixture is designed."""

    @property
    def mixture(self) -> dict[str, float]:
        precision = self.options.settings.get("precision", 1.0)
        return {"precision": precision, "size": 1.0 / math.sqrt(precision)}
