"""Released sums of participants who came back: when their law is not that of independent rounds."""

from __future__ import annotations

import numpy as np

from adaptinf.claims.privacy import releases as claims
from adaptinf.errors import InvalidForLog
from adaptinf.log import AdaptiveLog, PublicLog


def refuse_repeated_units(
    method: str, log: AdaptiveLog | PublicLog, *, last_stretch: bool = False, until: int | None = None
) -> None:
    """Refuse releases whose sums hold several rounds of one unit.

    Their tests take the variance of a sum for that of independent rounds. With a fair coin a round, two
    rounds of one unit have contributions (2a - 1)(r - 1/2) of covariance Var(a unit's own effect) / 4, which
    is 0 only if effects do not differ between units. With m rounds a unit the variance is up to m times what
    a test allows for, and no release tells how much. `last_stretch`: only rounds after all earlier releases;
    `until`: only so many rounds. A public part tells no units, but how many rounds of one were declared.
    """
    vary, ways = claims.SUMS_VARY_MORE(), [claims.ONE_ROUND_A_UNIT(), claims.FROM_THE_LOG()]
    if isinstance(log, PublicLog):
        declared = log.facts.get("rounds_per_unit") or 1
        if declared > 1:
            raise InvalidForLog(method, claims.UNITS_AS_DECLARED(n=declared, vary=vary), ways)
        return
    if log.units is None:
        return
    rounds = log.releases["round"].to_numpy(dtype=np.float64)
    begin = int(np.max(rounds[rounds < log.n_rounds], initial=0.0)) if last_stretch else 0
    units = log.units[begin:until].tolist()
    several = len(units) - len(set(units))
    if several:
        raise InvalidForLog(method, claims.UNITS_CAME_BACK(n=several, vary=vary), ways)
