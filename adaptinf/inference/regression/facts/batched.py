"""What claims ask of batched least squares."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from adaptinf.claims import Said, first
from adaptinf.claims.regression import adjusted_regression as claims
from adaptinf.inference.regression.batched import BatchRegressions, batch_regressions
from adaptinf.inference.regression.facts.common import RegressionFacts, some

_BATCHES = 10
"""Numbers of batches that a sentence lists."""


class BatchedFacts(RegressionFacts):
    """Which batches serve.

    Which ones lack rank is settled before their own rewards, but not before earlier batches' ones: a sum over
    a number of terms that depends on the terms has another law. So adaptive logs with such are refused.
    """

    @property
    def assumes_constant(self) -> bool:
        """A drift between batches cancels."""
        return False

    @cached_property
    def regressions(self) -> BatchRegressions:
        """Of the batches in the rounds used; there are batches."""
        assert self.data.batch is not None
        return batch_regressions(self.data.batch, self.data.x, self.data.y)

    @property
    def usable(self) -> BatchRegressions:
        """Of the batches that tell all coefficients."""
        return self.regressions.only(self.regressions.usable)

    @cached_property
    def unusable(self) -> Said | None:
        """Which batches tell nothing; None where there are none."""
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
        """By default where the columns can be told apart in every batch."""
        return self.data.selector is None and not first(claims.BATCHED_NEEDS, self)

    @property
    def over_batches(self) -> dict[str, int]:
        return {"batches": len(self.usable.df)}

    @property
    def left_out(self) -> dict[str, str]:
        return {} if self.unusable is None else {"what": self.unusable}

    @property
    def test(self) -> Any:
        """Which law batches are taken to have."""
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
