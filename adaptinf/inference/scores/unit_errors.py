"""Units with several rounds: predictions without a unit's own rewards, and clustered errors.

Let y be the potential rewards of an arm, and m_t a prediction made before the arm of round t is drawn. The
error of its score, (1{arm chosen} / e_t - 1) (y_t - m_t), has mean 0 given all potential rewards and
everything before the draw. Errors of different rounds are therefore uncorrelated, even if a policy that
learns from all units makes rounds dependent. The rest of a unit's sum consists of its own potential rewards,
which are independent of those of other units. Sums by unit are therefore uncorrelated, and their squares add
up to the variance. One condition is that there is no carry-over: a unit's potential reward depends only on
the arm of its round, not on the arms of its earlier rounds.

If the arm is drawn once for all rounds of a unit, the errors of these rounds share the draw. A prediction
from the unit's own earlier rewards would depend on the result of this draw, which would bias the score.
Predictions therefore use only other units.

References
----------
Liang, Zeger (1986), "Longitudinal data analysis using generalized linear models" (variance by cluster).
Carter, Schnepel, Steigerwald (2017), "Asymptotic behavior of a t-test robust to cluster heterogeneity"
(effective number of clusters). Zhang, Janson, Murphy (2022), "Statistical inference after adaptive sampling
for longitudinal data" (policies learned from several users).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adaptinf.inference.scores.inverse import aipw_scores
from adaptinf.inference.scores.means import ROUNDING, UnitErrors, effective_size, weighted_means
from adaptinf.typing import BoolArray, FloatArray, IntArray

FEWEST_EVENTS = 5
"""Smallest number of units with an event for which there is a standard error."""
_SPIKE = 0.5
"""Smallest share of rewards for which a value counts as "no event"."""


@dataclass(frozen=True, slots=True, eq=False)
class UnitGroupEffects:
    """Effects of one arm over another by group, with errors clustered by unit.

    Shapes: estimate (G,), errors of G effects, count, used (G, 2), ess, min_propensity (G,).

    `count` is the number of rewards of each arm, and `used` is the number of those with a weight.
    """

    estimate: FloatArray
    errors: UnitErrors
    count: FloatArray
    used: FloatArray
    ess: FloatArray
    min_propensity: FloatArray


def totals_by_unit(rows: FloatArray, unit: IntArray) -> FloatArray:
    """Sums over the rows of each unit that occurs; rows (T, k), unit (T,); returns (G, k)."""
    present = np.bincount(unit) > 0
    sums = np.empty((int(present.sum()), rows.shape[1]))
    for k, column in enumerate(rows.T):
        sums[:, k] = np.bincount(unit, weights=column, minlength=len(present))[present]
    return sums


def unit_covariance(influence: FloatArray, unit: IntArray) -> FloatArray:
    """Covariance (G / (G - 1)) sum_u I_u I_u' of estimates, where I_u is the total influence of unit u.

    Shapes: influence (T, k), unit (T,); returns (k, k), NaN if there is only one unit.
    """
    return _covariance(totals_by_unit(influence, unit))


def _covariance(totals: FloatArray) -> FloatArray:
    """Covariance of estimates from sums of influences by unit; totals (G, k); returns (k, k)."""
    count, size = totals.shape
    if count < 2:
        return np.full((size, size), np.nan)
    return np.asarray(totals.T @ totals * (count / (count - 1.0)), dtype=np.float64)


def unit_errors(
    estimate: FloatArray,
    influence: FloatArray,
    weights: FloatArray,
    observed: FloatArray,
    reward: FloatArray,
    unit: IntArray,
) -> UnitErrors:
    """Clustered errors of weighted means of scores.

    Shapes: estimate (k,), influence, weights, observed (T, k), reward, unit (T,). `observed` is the weight of
    a reward in its score, such as 1/e if the arm was chosen, and otherwise 0.
    """
    covariance = _without_rounding(unit_covariance(influence, unit), estimate)
    units, freedom, events = unit_support(weights, observed, reward, unit)
    return UnitErrors(where_events(covariance, events), freedom, units, events)


def unit_support(
    weights: FloatArray, observed: FloatArray, reward: FloatArray, unit: IntArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Numbers of units, degrees of freedom, and numbers of units with events; shapes as for `unit_errors`."""
    gain = weights * observed
    chosen = (gain > 0.0).astype(np.float64)
    # The rule for rounds, (sum w)^2 / sum w^2 with w = h^2 / e^2, must hold as well as the rule for units.
    largest = np.maximum(gain.max(axis=0, initial=0.0), np.finfo(float).tiny)
    rounds = effective_size((gain / largest) ** 2)
    size = np.minimum(effective_units(weights, chosen, unit), rounds)
    events = units_with_events(chosen, reward, unit)
    return units_with(chosen, unit), np.maximum(size - 1.0, 0.0), events


def _without_rounding(covariance: FloatArray, estimate: FloatArray) -> FloatArray:
    """The covariance with 0 for standard errors that are only rounding errors of constant scores."""
    constant = np.sqrt(np.diag(covariance)) <= ROUNDING * np.abs(estimate)
    covariance[constant, :] = covariance[:, constant] = 0.0
    return covariance


def where_events(covariance: FloatArray, events: FloatArray) -> FloatArray:
    """The covariance, with NaN if fewer than 5 units had an event; covariance (k, k), events (k,)."""
    few = np.where(events < FEWEST_EVENTS, np.nan, 0.0)
    return np.asarray(covariance + few[:, None] + few[None, :], dtype=np.float64)


def unit_rows(influence: FloatArray, unit: IntArray) -> dict[str, FloatArray]:
    """Contributions of each unit to the errors, shape (G, k), whose products sum to the covariance.

    Shapes: influence (T, k), unit (T,).
    """
    totals = totals_by_unit(influence, unit)
    return {"influence_by_unit": totals * np.sqrt(len(totals) / max(len(totals) - 1.0, 1.0))}


def units_with(rows: FloatArray | BoolArray, unit: IntArray) -> IntArray:
    """Number of units with a nonzero row; rows (T, k), unit (T,); returns (k,)."""
    found = [np.count_nonzero(np.bincount(unit[column != 0])) for column in np.asarray(rows).T]
    return np.array(found, dtype=np.int64)


def effective_units(weights: FloatArray, chosen: FloatArray, unit: IntArray) -> FloatArray:
    """Effective number of units assigned to each arm, (sum H^2)^2 / sum H^4 for weights H by unit.

    Shapes: weights, chosen (T, k), unit (T,); returns (k,). H is the sum of the weights of all rounds of a
    unit, so H^2 is its share of the variance if its rounds are similar. The result is the number of units
    assigned to the arm if all have equal weights, and less if a few units have most of the rounds.
    """
    had = totals_by_unit(chosen, unit) > 0.0
    squares = np.where(had, totals_by_unit(weights, unit), 0.0) ** 2
    fourth = np.einsum("uk,uk->k", squares, squares)
    return np.asarray(squares.sum(axis=0) ** 2 / np.where(fourth > 0.0, fourth, 1.0), dtype=np.float64)


def others_means(
    chosen: FloatArray,
    reward: FloatArray,
    unit: IntArray,
    overall: tuple[FloatArray, BoolArray] | None = None,
    arrival: IntArray | None = None,
) -> tuple[FloatArray, BoolArray]:
    """Mean reward of every arm over other units' earlier rounds, and whether there are any such rounds.

    Shapes: chosen (T, k), reward, unit (T,); returns (T, k), (T,). If the rounds are part of a log, `overall`
    is `others_mean` of the whole log at these rounds, with two arrays of shape (T,). If `arrival`, shape
    (T,), is given, the reward of round s is used from row ``arrival[s]`` on; otherwise, it is used from the
    next row on.

    Before any other unit has had the arm, the mean of all earlier rewards of other units is used. Rounds
    before the first reward from another unit have no prediction. The first reward is used instead, and these
    rounds must have weight 0. If a constant is added to all rewards, all predictions increase by that
    constant.

    If the arm of a unit is drawn once and the design learns, the later arms of other units depend slightly on
    the draw, and so do the predictions for the unit's later rounds. They do not depend on the unit's own
    rewards.
    """
    usual, known = others_mean(reward, unit, arrival) if overall is None else overall
    origin = float(reward[0]) if len(reward) else 0.0
    level, earlier = reward - origin, _Earlier.of(unit, arrival)
    predicted = np.empty(chosen.shape)
    for k, mine in enumerate(chosen.T):
        pulls = earlier.sums(mine)
        mean = origin + earlier.sums(mine * level) / np.maximum(pulls, 1.0)
        predicted[:, k] = np.where(pulls > 0.5, mean, usual)
    return predicted, known


def others_mean(
    reward: FloatArray, unit: IntArray, arrival: IntArray | None = None
) -> tuple[FloatArray, BoolArray]:
    """Mean of other units' earlier rewards (or the first reward, if there are none), and whether any exist.

    Shapes: reward, unit (T,), arrival (T,) as for `others_means`; returns (T,), (T,).
    """
    origin = float(reward[0]) if len(reward) else 0.0
    earlier = _Earlier.of(unit, arrival)
    count = earlier.sums(np.ones(len(unit)))
    return origin + earlier.sums(reward - origin) / np.maximum(count, 1.0), count > 0.5


@dataclass(frozen=True, slots=True, eq=False)
class _Earlier:
    """Rewards and rounds ordered by unit, and by time within units.

    Shapes: order (2T,), starts, lengths (G,), arrival (T,). In `order`, numbers below T stand for rewards at
    the time when they become known, and the other numbers for rounds. `starts` and `lengths` are those of the
    units in it.
    """

    order: IntArray
    starts: IntArray
    lengths: IntArray
    arrival: IntArray

    @classmethod
    def of(cls, unit: IntArray, arrival: IntArray | None = None) -> _Earlier:
        rounds = np.arange(len(unit))
        known = rounds + 1 if arrival is None else arrival
        # If a reward is known from a row on, it precedes that row, hence the even and odd times.
        time = np.concatenate([2 * known, 2 * rounds + 1])
        both = np.concatenate([unit, unit])
        order = np.lexsort((time, both))
        starts = np.flatnonzero(np.diff(both[order], prepend=-1))
        return cls(order, starts, np.diff(starts, append=2 * len(unit)), known)

    def sums(self, values: FloatArray) -> FloatArray:
        """Sums of the values of other units that are known before each round; values (T,); returns (T,)."""
        rounds = len(values)
        added = np.bincount(self.arrival, weights=values, minlength=rounds + 1)[:rounds]
        events = np.concatenate([values, np.zeros(rounds)])[self.order]
        running = np.cumsum(events)
        before = running - events
        own = np.empty(2 * rounds)
        own[self.order] = running - np.repeat(before[self.starts], self.lengths)
        return np.asarray(np.cumsum(added) - own[rounds:], dtype=np.float64)


def units_with_events(chosen: FloatArray, reward: FloatArray, unit: IntArray) -> FloatArray:
    """Number of units with an event under each arm; infinite if rewards have no events.

    Shapes: chosen (T, k), reward, unit (T,); returns (k,).

    Rewards have events if at least half of them are equal; any other value is then an event. If rewards take
    two values in total, such as 0 and 1, the units with the rarer value are counted for each arm.
    """
    values, counts = np.unique(reward, return_counts=True)
    if len(values) == 0 or counts.max() < _SPIKE * len(reward):
        return np.full(chosen.shape[1], np.inf)
    usual = reward == values[np.argmax(counts)]
    events = units_with(chosen * ~usual[:, None], unit)
    if len(values) <= 2:
        events = np.minimum(events, units_with(chosen * usual[:, None], unit))
    return events.astype(np.float64)


def unit_group_effects(
    group: IntArray,
    treated: IntArray,
    reward: FloatArray,
    propensity: FloatArray,
    n_groups: int,
    unit: IntArray,
    weights: FloatArray | None = None,
) -> UnitGroupEffects:
    """AIPW estimates of the effect of one arm over another within each group, with clustered errors.

    Shapes: group, treated, reward, propensity, unit (T,), weights (T, 2). `treated` is 1 for the treatment, 0
    for the control and otherwise -1; in `weights`, the control comes first.

    The outcome model is the arm's mean reward over the earlier rounds of other units in the group. A unit may
    have rounds in several groups; the covariance of the effects is computed from its sums over all of these.
    """
    share = np.ones((len(reward), 2)) if weights is None else weights
    overall, known = others_mean(reward, unit)
    totals = np.zeros((int(unit.max(initial=-1)) + 1, n_groups))
    estimate, pairs = np.full(n_groups, np.nan), np.zeros((7, n_groups, 2))
    pairs[-1] = np.nan
    for g in range(n_groups):
        rows = np.flatnonzero(group == g)
        if len(rows) == 0:
            continue
        chosen = np.column_stack([treated[rows] == 0, treated[rows] == 1]).astype(np.float64)
        weight = share[rows] * known[rows, None]
        before = overall[rows], known[rows]
        change, estimate[g], pairs[:, g] = _one_group(
            chosen, reward[rows], propensity[rows], weight, unit[rows], before
        )
        totals[:, g] = np.bincount(unit[rows], weights=change, minlength=len(totals))
    count, used = pairs[:2]
    size, units, freedom, events, lowest = pairs[2:].min(axis=2)
    present = np.bincount(unit, minlength=len(totals)) > 0
    covariance = _without_rounding(_covariance(totals[present]), np.nan_to_num(estimate))
    covariance = where_events(covariance, events)
    blank = np.where(units < 2, np.nan, 0.0)
    covariance += blank[:, None] + blank[None, :]
    errors = UnitErrors(covariance, freedom, units.astype(np.int64), events)
    estimate[used.min(axis=1) < 1] = np.nan
    return UnitGroupEffects(estimate, errors, count, used, size, lowest)


def _one_group(
    chosen: FloatArray,
    reward: FloatArray,
    propensity: FloatArray,
    weights: FloatArray,
    unit: IntArray,
    overall: tuple[FloatArray, BoolArray],
) -> tuple[FloatArray, float, FloatArray]:
    """Influences of a group's rounds on its effect, shape (m,), the effect, and counts by arm.

    The counts, shape (7, 2), are numbers of rewards and of those with a weight, effective sizes, numbers of
    units, degrees of freedom, numbers of units with events, and smallest propensities.
    """
    predicted, _ = others_means(chosen, reward, unit, overall)
    means = weighted_means(aipw_scores(chosen, reward, propensity, predicted), weights)
    observed = chosen / propensity[:, None]
    units, freedom, events = unit_support(weights, observed, reward, unit)
    used = np.count_nonzero(chosen * weights, axis=0)
    lowest = np.full(2, propensity.min())
    support = (chosen.sum(axis=0), used, effective_size(weights * observed), units, freedom, events, lowest)
    effect = float(means.estimate[1] - means.estimate[0])
    return means.influence[:, 1] - means.influence[:, 0], effect, np.array(support, dtype=np.float64)
