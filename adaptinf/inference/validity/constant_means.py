"""Facts for claims that require constant arm means: trends in rewards, and changing shares."""

from __future__ import annotations

import math
from collections.abc import Iterable

from adaptinf.claims import Finding
from adaptinf.claims import stationarity as claims
from adaptinf.inference.validity.profile import LogProfile
from adaptinf.inference.validity.stationarity import SEEN_BESIDE
from adaptinf.texts import several

_SHOWN = 5


def shares_moved(profile: LogProfile, codes: Iterable[int]) -> str:
    """Whether arms' shares change while rewards drift too or cannot be tested; otherwise empty.

    There are two tests: a test of the effect of changing shares on plain means, and a test of a trend common
    to the arms. Changing shares are rare if nothing adapts, so the level need not be as small as that of a
    trend alone.
    """
    if not profile.shares_move:
        return ""
    found = [profile.pooling_pvalue, profile.trends.common_pvalue(codes)]
    tested = [p for p in found if math.isfinite(p)]
    if not tested:
        return claims.SHARES_MOVED()
    p = min(1.0, len(tested) * min(tested))
    return claims.BOTH_MOVED(p=p) if p < SEEN_BESIDE else ""


class ConstantMeans:
    """Facts for claims about a method that requires some arms' means to be constant; codes (k,)."""

    profile: LogProfile
    codes: Iterable[int]
    stationary = False

    @property
    def drift_found(self) -> Finding | None:
        """A trend in the rewards of the arms; None if no arm can be tested."""
        return self.profile.drift_of(self.codes)

    @property
    def drift_untested(self) -> bool:
        """Whether constant means are not declared, and no reward contradicts them."""
        return self.drift_found is None and not self.stationary

    @property
    def no_trend(self) -> dict[str, str]:
        """Arms that were tested, if none has a trend."""
        found = self.drift_found
        if found is None or found.contradicted:
            return {}
        tested, arms = self.profile.trends.tested, self.profile.log.arms
        return {
            "arms": several([f"arm {arms[code]!r}" for code in sorted(self.codes) if tested[code]], _SHOWN)
        }

    @property
    def mix_may_move(self) -> bool:
        """Whether a trend may be due to contexts."""
        found = self.drift_found
        return found is not None and found.contradicted and not self.profile.context_free
