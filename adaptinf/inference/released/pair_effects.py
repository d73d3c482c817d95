"""The difference between two arms from the private releases in a log, at a level fixed in advance.

References
----------
Sajed, Sheffet (2019), "An optimal private stochastic-MAB algorithm based on an optimal private stopping rule"
(the design whose releases these are).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.claims import assumptions
from adaptinf.claims.privacy import releases as claims
from adaptinf.errors import InvalidForLog
from adaptinf.inference.inputs.published import has_group_effects
from adaptinf.inference.released.effects import NoisyEffect, effect_from_two_means
from adaptinf.inference.released.group_effects import released_effects
from adaptinf.log import AdaptiveLog, PublicLog
from adaptinf.log.public import stated_outputs
from adaptinf.log.traits import IN_TIME_NAMES, planned_rounds

if TYPE_CHECKING:
    import pandas as pd

    from adaptinf.log import FreshEpochs


def refuse_repeated_units(
    method: str, log: AdaptiveLog | PublicLog, *, last_stretch: bool = False, until: int | None = None
) -> None:
    """Refuse releases whose sums contain several rounds of one unit.

    The tests assume the variance of a sum over independent rounds. If arms have equal probabilities in each
    round, the contributions (2a - 1)(r - 1/2) of two rounds of one unit have covariance Var(unit's own
    effect) / 4, which is 0 only if effects do not differ between units. With m rounds per unit, the variance
    is up to m times the variance that a test assumes, and the releases do not show by how much it is larger.
    With `last_stretch`, only rounds after all earlier releases count; with `until`, only the first rounds, up
    to this number. A public part does not identify units, but declares the number of rounds per unit.
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


_NAME = "released"
_SPENT = 0.1
"""Share of the remaining level that each epoch except the last possible one receives."""
_SAME = 1e-9


@dataclass(frozen=True, slots=True)
class PairEffect:
    """The difference between two arms, the share of the level that its test has, and a statement."""

    estimate: float
    effect: NoisyEffect
    share: float
    details: Mapping[str, float]
    notes: tuple[str, ...]


def pair_effect(
    log: AdaptiveLog | PublicLog, treatment: int, control: int, *, named_after: bool = False
) -> PairEffect:
    """The difference, treatment minus control, from the releases of a log; arms are given by codes."""
    outputs = stated_outputs(log)
    if outputs is not None and outputs.epochs is not None:
        found = _from_epochs(log, outputs.epochs, treatment, control)
    else:
        found = _from_one_group(log, treatment)
    pairs = log.n_arms * (log.n_arms - 1) // 2 if named_after else 1
    shown = [claims.NAMED_AFTER(pairs=pairs)] if named_after else assumptions([claims.NAMED_BEFORE()])
    notes = found.notes if log.n_arms == 2 else (*found.notes, *shown)
    return replace(found, share=found.share / pairs, notes=notes)


def epoch_share(epoch: int, *, last: bool) -> float:
    """Share of alpha for the interval of an epoch: a tenth of the remaining alpha, or all of it.

    Notes
    -----
    The share depends only on information from before the epoch, and the shares sum to at most 1 on every
    path. Whatever the last epoch in which both arms of a pair were released, P(miss) is therefore at most the
    sum over e of P(epoch e is reached, and its interval misses). This is at most the expected sum of the
    shares of alpha, and hence at most alpha.
    """
    left = (1.0 - _SPENT) ** (epoch - 1)
    return left if last else _SPENT * left


def _from_epochs(
    log: AdaptiveLog | PublicLog, epochs: FreshEpochs, treatment: int, control: int
) -> PairEffect:
    """Difference between the means that the two arms released in their last common epoch."""
    names = [log.arms[treatment], log.arms[control]]
    means = log.releases[~log.releases["name"].isin(IN_TIME_NAMES)]
    ends = np.unique(means["round"].to_numpy())
    common = [
        e for e, end in enumerate(ends, 1) if set(names) <= set(means.loc[means["round"] == end, "group"])
    ]
    if not common:
        raise InvalidForLog(_NAME, claims.NO_COMMON_EPOCH(), ())
    epoch = common[-1]
    # Units in earlier epochs matter as well, because releases of those determine the level of this one.
    refuse_repeated_units(_NAME, log, until=int(ends[epoch - 1]))
    rows = means[means["round"] == ends[epoch - 1]]
    horizon = planned_rounds(log)
    pulls = math.ceil(float(epochs.length(len(rows), epoch, horizon)))
    scale = 1.0 / (epochs.epsilon * pulls)
    if not np.allclose(rows["scale"].to_numpy(dtype=float), scale, rtol=_SAME, atol=0.0):
        raise InvalidForLog(_NAME, claims.OTHER_SCALES(epoch=epoch, pulls=pulls), ())
    begin = 0 if epoch == 1 else int(ends[epoch - 2])
    following = 2 * math.ceil(float(epochs.length(2, epoch + 1, horizon)))
    last = begin + len(rows) * pulls + following > horizon
    share = epoch_share(epoch, last=last)
    value = [_mean_of(rows, name) for name in names]
    return PairEffect(
        estimate=value[0] - value[1],
        effect=effect_from_two_means([value[0] - value[1]], pulls, scale=scale),
        share=share,
        details={"pulls_an_arm": float(pulls), "epoch": float(epoch)},
        notes=(
            claims.EPOCH_ALONE(epoch=epoch, pulls=pulls),
            claims.CLIPPED(),
            claims.EPOCH_SHARE(share=share),
            claims.INVERTED(),
            claims.VARIANCE_OF_EPOCH(),
        ),
    )


def _mean_of(rows: pd.DataFrame, arm: object) -> float:
    return float(rows.loc[rows["group"] == arm, "value"].iloc[0])


def _from_one_group(log: AdaptiveLog | PublicLog, treatment: int) -> PairEffect:
    """The effect in a log that has only one group."""
    if not has_group_effects(log):
        raise InvalidForLog(_NAME, claims.NO_PAIR_EFFECT(), ())
    refuse_repeated_units(_NAME, log, last_stretch=True)
    found = released_effects(log)
    if len(found.groups) > 1:
        shown = ", ".join(map(repr, found.groups[:10]))
        raise InvalidForLog(_NAME, claims.SEVERAL_GROUPS(n=len(found.groups), groups=shown), ())
    sign = 1.0 if treatment == 1 else -1.0
    return PairEffect(
        estimate=sign * float(found.estimate[0]),
        effect=replace(found.effect, center=sign * found.effect.center),
        share=1.0,
        details={name: float(values[0]) for name, values in found.details.items()},
        notes=(
            *found.notes,
            *(claim(terms="the effect", **values) for claim, values in found.reasons.values()),
        ),
    )
