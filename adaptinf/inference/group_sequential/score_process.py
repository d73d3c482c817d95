"""The scores of differences between arms and a control after each round of an adaptive trial.

Let e be the propensities, and let D_t = Gamma_t(treatment) - Gamma_t(control) be the difference between the
augmented inverse-propensity scores with predictions m of the arms' rewards. The weight h_t =
(1/e_t(treatment) + 1/e_t(control))^(-1/2) is known before the round. If the difference between the arms'
means is `null` in every round, the sum of h_t (D_t - null) is a martingale, which is not affected by drift
common to both arms. The clock is the sum of the squares of its steps.

The score remains a martingale for any prediction from the past; a poor prediction adds noise. If the level
drifts, the mean of a rarely drawn arm lags behind, so that its few large steps all have the same sign, and
their number determines both the score and the clock. There are therefore two rules for predictions: the mean
of each arm's earlier rewards, or a recent level common to both arms plus each arm's mean distance from it.
Each round uses the rule whose steps have had the smaller sum of squares so far.

Without drift, an arm that a design now avoids has had rewards below its mean, with the same consequence. Both
rules therefore shrink the arms' difference: means as if each arm had had 10 more rewards at the mean of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from adaptinf.compilation import compiled
from adaptinf.typing import FloatArray, IntArray

_KEEP = 0.98
"""Weight of a reward in the recent level relative to the next reward; the level averages about 50 rewards."""
_PRIOR = 10.0
"""Number of rewards, at the mean of both arms, that are added to those of each arm."""
_COUNT, _TOTAL, _AWAY, _ONES, _SQUARES, _FOURTHS = range(6)
_OWN, _LEVEL, _RECENT, _SUM = range(4)


class ScoreProcess(NamedTuple):
    """The state of the score at each of k looks; all arrays have shape (k,).

    `score` and `clock` are the sums of h (D - null) and of its squares, and `slope` is the sum of h.
    `effective` is the smaller of the two arms' effective numbers of rewards, and `events` is the smaller of
    the counts of their rarer outcomes (infinite unless rewards are 0 and 1).
    """

    score: FloatArray
    slope: FloatArray
    clock: FloatArray
    effective: FloatArray
    events: FloatArray

    @property
    def z(self) -> FloatArray:
        """Standardised scores, shape (k,); NaN if rewards did not vary."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.score / np.sqrt(self.clock), dtype=np.float64)


class ScoreProcesses(NamedTuple):
    """The scores of J treatments against one control at each of k looks; products (k, J, J).

    `products` contains the sums of products of two treatments' steps, with the clocks on the diagonals.
    """

    each: tuple[ScoreProcess, ...]
    products: FloatArray


@compiled
def _step(
    arms: FloatArray, pair: FloatArray, first: float, second: float, place: int, y: float, null: float
) -> float:
    """The unweighted step D - null by the rule that was better so far; updates both sums of squares.

    Shapes: arms (2, 6), pair (4,). `first` and `second` are the propensities, and `place` is 0 if the
    treatment was drawn, 1 if the control was drawn, and -1 otherwise.
    """
    level = pair[_SUM] / pair[_RECENT]
    pooled = (arms[0, _TOTAL] + arms[1, _TOTAL]) / (arms[0, _COUNT] + arms[1, _COUNT])
    size = 1.0 / (1.0 / first + 1.0 / second)
    by_level = pair[_LEVEL] < pair[_OWN]
    chosen = 0.0
    for rule in range(2):
        difference, drawn = -null, 0.0
        for one in range(2):
            count = arms[one, _COUNT] + _PRIOR
            if rule == 0:
                mean = (arms[one, _TOTAL] + _PRIOR * pooled) / count
            else:
                mean = level + arms[one, _AWAY] / count
            difference += mean if one == 0 else -mean
            if one == place:
                drawn = mean
        if place == 0:
            difference += (y - drawn) / first
        elif place == 1:
            difference -= (y - drawn) / second
        pair[rule] += size * difference * difference
        if (rule == 1) == by_level:
            chosen = difference
    return chosen


@compiled
def _learn(arms: FloatArray, pair: FloatArray, place: int, y: float) -> None:
    """Update the state with a reward of one of the two arms; arms (2, 6), pair (4,)."""
    arms[place, _AWAY] += y - pair[_SUM] / pair[_RECENT] if pair[_RECENT] > 0.0 else 0.0
    pair[_RECENT] = _KEEP * pair[_RECENT] + 1.0
    pair[_SUM] = _KEEP * pair[_SUM] + y
    arms[place, _COUNT] += 1.0
    arms[place, _TOTAL] += y
    arms[place, _ONES] += 1.0 if y == 1.0 else 0.0


@compiled
def _walk(
    action: IntArray,
    reward: FloatArray,
    propensities: FloatArray,
    treatments: IntArray,
    control: int,
    null: float,
    looks: IntArray,
    work: tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray],
    found: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
) -> None:
    """Compute the running sums at each look and store them in `found`.

    Shapes: treatments (J,). `work` contains arrays of zeros: arms (J, 2, 6), pairs (J, 4), steps (J,), sums
    (J, 2), products (J, J). `found` contains the results: score, slope (k, J), products (k, J, J), arms (k,
    J, 2, 6).
    """
    arms, pairs, steps, sums, products = work
    look, many = 0, treatments.shape[0]
    while look < looks.shape[0] and looks[look] == 0:
        look += 1
    for t in range(looks[-1]):
        arm, y, second = action[t], reward[t], propensities[t, control]
        for j in range(many):
            first = propensities[t, treatments[j]]
            place = 0 if arm == treatments[j] else (1 if arm == control else -1)
            steps[j] = 0.0
            if first > 0.0 and second > 0.0 and pairs[j, _RECENT] > 0.0:
                weight = 1.0 / np.sqrt(1.0 / first + 1.0 / second)
                steps[j] = weight * _step(arms[j], pairs[j], first, second, place, y, null)
                sums[j, 0] += steps[j]
                sums[j, 1] += weight
                if place >= 0:
                    size = (weight / (first if place == 0 else second)) ** 2
                    arms[j, place, _SQUARES] += size
                    arms[j, place, _FOURTHS] += size * size
            if place >= 0:
                _learn(arms[j], pairs[j], place, y)
            for i in range(j + 1):
                products[i, j] += steps[i] * steps[j]
        while look < looks.shape[0] and looks[look] == t + 1:
            for j in range(many):
                found[0][look, j], found[1][look, j] = sums[j, 0], sums[j, 1]
                for i in range(j + 1):
                    found[2][look, i, j] = found[2][look, j, i] = products[i, j]
                for one in range(2):
                    for column in range(arms.shape[2]):
                        found[3][look, j, one, column] = arms[j, one, column]
            look += 1


class RunningSums(NamedTuple):
    """Running sums of J treatments at k looks, which can be added over parts of a log.

    Shapes: score, slope (k, J); products (k, J, J); squares, fourths (k, J, 2); events (k, J). `squares` and
    `fourths` are sums of powers of the weights of the rewards of treatment and control; `events` is as in
    `ScoreProcess`.
    """

    score: FloatArray
    slope: FloatArray
    products: FloatArray
    squares: FloatArray
    fourths: FloatArray
    events: FloatArray

    def processes(self) -> ScoreProcesses:
        """The scores, with effective numbers of rewards computed for all parts together."""
        with np.errstate(divide="ignore", invalid="ignore"):
            sizes = np.nan_to_num(self.squares**2 / self.fourths, nan=0.0).min(axis=2)
        clocks = np.diagonal(self.products, axis1=1, axis2=2)
        columns = self.score, self.slope, clocks, sizes, self.events
        each = tuple(ScoreProcess(*(one[:, j] for one in columns)) for j in range(self.score.shape[1]))
        return ScoreProcesses(each, self.products)


def score_processes(
    action: IntArray,
    reward: FloatArray,
    propensities: FloatArray,
    treatments: Sequence[int],
    control: int,
    looks: IntArray,
    null: float = 0.0,
) -> ScoreProcesses:
    """The scores of several treatments at given looks.

    Shapes: action, reward (T,), propensities (T, K), looks (k,). The looks are numbers of rounds that do not
    decrease; `treatments` and `control` are positions of arms.
    """
    return running_sums(action, reward, propensities, treatments, control, looks, null).processes()


def running_sums(
    action: IntArray,
    reward: FloatArray,
    propensities: FloatArray,
    treatments: Sequence[int],
    control: int,
    looks: IntArray,
    null: float = 0.0,
) -> RunningSums:
    """The running sums from which `score_processes` are computed."""
    many, ends = len(treatments), np.asarray(looks, dtype=np.int64)
    shape = (len(ends), many)
    found = np.zeros(shape), np.zeros(shape), np.zeros((*shape, many)), np.zeros((*shape, 2, 6))
    work = (
        np.zeros((many, 2, 6)),
        np.zeros((many, 4)),
        np.zeros(many),
        np.zeros((many, 2)),
        np.zeros((many, many)),
    )
    codes = np.ascontiguousarray(action, dtype=np.int64)
    outcome = np.ascontiguousarray(reward, dtype=np.float64)
    chances = np.ascontiguousarray(propensities, dtype=np.float64)
    drawn = np.array(treatments, dtype=np.int64)
    _walk(codes, outcome, chances, drawn, int(control), float(null), ends, work, found)
    score, slope, products, arms = found
    rarer = np.minimum(arms[..., _ONES], arms[..., _COUNT] - arms[..., _ONES]).min(axis=2)
    reached, upto = codes[: ends[-1]], outcome[: ends[-1]]
    others = (upto != 0.0) & (upto != 1.0)
    for j, treatment in enumerate(drawn.tolist()):
        if np.any(others & ((reached == treatment) | (reached == control))):
            rarer[:, j] = np.inf
    return RunningSums(score, slope, products, arms[..., _SQUARES], arms[..., _FOURTHS], rarer)


def score_process(
    action: IntArray,
    reward: FloatArray,
    propensities: FloatArray,
    arms: tuple[int, int],
    looks: IntArray,
    null: float = 0.0,
) -> ScoreProcess:
    """The score of a single treatment; `arms` contains the positions of treatment and control."""
    return score_processes(action, reward, propensities, arms[:1], arms[1], looks, null).each[0]
