"""Facts on which claims about constant arm means depend: trends in rewards, and changing shares."""

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
    """Evidence that shares of arms change, if rewards also drift or cannot be tested; otherwise empty.

    Two tests are used: a test of the effect of changing shares on plain means, and a test of a trend that is
    common to the arms. Shares rarely change if nothing adapts, so the level need not be as small as for a
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
    """Facts on which claims about a method depend that requires constant means of arms; codes (k,)."""

    profile: LogProfile
    codes: Iterable[int]
    stationary = False

    @property
    def drift_found(self) -> Finding | None:
        """Evidence of a trend in the rewards of the arms; None if no arm can be tested."""
        return self.profile.drift_of(self.codes)

    @property
    def drift_untested(self) -> bool:
        """Whether constant means are not declared, and the rewards do not contradict them."""
        return self.drift_found is None and not self.stationary

    @property
    def no_trend(self) -> dict[str, str]:
        """The arms that were tested, if no arm has a trend."""
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
