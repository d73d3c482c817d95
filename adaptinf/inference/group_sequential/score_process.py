"""The score of a difference between two arms after each round of an adaptive trial.

With propensities e and means m of the arms' earlier rewards, D_t = Gamma_t(treatment) - Gamma_t(control) is
the difference of the augmented inverse-propensity scores, and h_t = (1/e_t(treatment) +
1/e_t(control))^(-1/2) is known before the round. If the difference is `null` in every round, the sum of h_t
(D_t - null) is a martingale, which is not affected by drift common to both arms. Its clock is the sum of the
squares of its steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adaptinf.compilation import compiled
from adaptinf.typing import FloatArray, IntArray

_SCORE, _WEIGHT, _CLOCK = range(3)
_COUNT, _TOTAL, _ONES, _SQUARES, _FOURTHS = range(5)


class ScoreProcess(NamedTuple):
    """The state of the score at each of k looks.

    Shapes (k,): score and clock, sums of h (D - null) and of its square; slope, the sum of h; effective, the
    smaller of the two arms' effective numbers of rewards, and events, the smallest count of an arm's rarer
    outcome (infinite unless rewards are 0 and 1).
    """

    score: FloatArray
    slope: FloatArray
    clock: FloatArray
    effective: FloatArray
    events: FloatArray

    @property
    def z(self) -> FloatArray:
        """Standardised scores, (k,); NaN if rewards did not vary."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.score / np.sqrt(self.clock), dtype=np.float64)


@compiled
def _walk(
    action: IntArray,
    reward: FloatArray,
    propensities: FloatArray,
    treatment: int,
    control: int,
    null: float,
    looks: IntArray,
    own: FloatArray,
    sums: FloatArray,
    arms: FloatArray,
) -> None:
    """Write running sums at each look; own (2, 5) is 0, sums (k, 3), arms (k, 2, 5)."""
    every, pooled, look = 0.0, 0.0, 0
    score = slope = clock = 0.0
    for t in range(looks[-1]):
        first, second = propensities[t, treatment], propensities[t, control]
        arm, y = action[t], reward[t]
        place = 0 if arm == treatment else (1 if arm == control else -1)
        if first > 0.0 and second > 0.0 and every > 0.0:
            weight = 1.0 / np.sqrt(1.0 / first + 1.0 / second)
            level = pooled / every
            mean0 = own[0, _TOTAL] / own[0, _COUNT] if own[0, _COUNT] > 0.0 else level
            mean1 = own[1, _TOTAL] / own[1, _COUNT] if own[1, _COUNT] > 0.0 else level
            difference = mean0 - mean1 - null
            if place == 0:
                difference += (y - mean0) / first
            elif place == 1:
                difference -= (y - mean1) / second
            step = weight * difference
            score += step
            slope += weight
            clock += step * step
            if place >= 0:
                size = (weight / (first if place == 0 else second)) ** 2
                own[place, _SQUARES] += size
                own[place, _FOURTHS] += size * size
        if place >= 0:
            every += 1.0
            pooled += y
            own[place, _COUNT] += 1.0
            own[place, _TOTAL] += y
            own[place, _ONES] += 1.0 if y == 1.0 else 0.0
        while look < looks.shape[0] and looks[look] == t + 1:
            sums[look, _SCORE], sums[look, _WEIGHT], sums[look, _CLOCK] = score, slope, clock
            for one in range(2):
                for column in range(own.shape[1]):
                    arms[look, one, column] = own[one, column]
            look += 1


def score_process(
    action: IntArray,
    reward: FloatArray,
    propensities: FloatArray,
    arms: tuple[int, int],
    looks: IntArray,
    null: float = 0.0,
) -> ScoreProcess:
    """The score at some looks.

    Shapes: action, reward (T,), propensities (T, K), looks (k,), numbers of rounds, ascending; `arms` are the
    positions of treatment and control.
    """
    sums, own = np.zeros((len(looks), 3)), np.zeros((len(looks), 2, 5))
    codes = np.ascontiguousarray(action, dtype=np.int64)
    known = (
        np.ascontiguousarray(reward, dtype=np.float64),
        np.ascontiguousarray(propensities, dtype=np.float64),
    )
    ends = np.asarray(looks, dtype=np.int64)
    _walk(codes, known[0], known[1], *arms, null, ends, np.zeros((2, 5)), sums, own)
    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = own[:, :, _SQUARES] ** 2 / own[:, :, _FOURTHS]
    rarer = np.minimum(own[:, :, _ONES], own[:, :, _COUNT] - own[:, :, _ONES]).min(axis=1)
    compared = known[0][: looks[-1]][np.isin(codes[: looks[-1]], arms)]
    events = rarer if np.isin(compared, (0.0, 1.0)).all() else np.full(len(looks), np.inf)
    effective = np.nan_to_num(sizes, nan=0.0).min(axis=1)
    return ScoreProcess(sums[:, _SCORE], sums[:, _WEIGHT], sums[:, _CLOCK], effective, events)
