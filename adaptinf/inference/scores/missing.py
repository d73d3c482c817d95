"""Scores for arm means if some rewards are missing at random given the arm and the context.

A round's reward is observed (O) with a probability that may depend on its arm k and its stratum x of
contexts. Its score is m + 1{A = k} O (y - m) / (e pi), where m is the running mean of the observed rewards of
arm and stratum, and pi is the running share of the arm's rounds in the stratum that were observed. Both are
computed from earlier rounds. Given these, the expectation of the score is mu + (pi* / pi - 1)(mu - m), where
pi* is the probability of observation and mu is the mean. The error of this expectation is the product of two
errors that decrease with the square root of the number of earlier rounds. It is of order log T over all
rounds, whereas the noise is of order sqrt(T). If m did not converge to the stratum's mean, as for inverse
weighting alone, where m = 0, the error of pi would not be negligible.

Leaving out the rounds instead would cause bias, because the share of rounds that remain would depend on the
arm.

References
----------
Robins, Rotnitzky, Zhao (1994), "Estimation of regression coefficients when some regressors are not always
observed". Bang, Robins (2005), "Doubly robust estimation in missing data and causal inference models". Hadad,
Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive experiments".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adaptinf.inference.scores.inverse import ArmScores, aipw_scores
from adaptinf.typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class SeenRounds:
    """Which rewards are observed, with what probability, and in which rounds an arm's mean has a weight.

    Shapes: observed (T,), probability (T,), for the reward of the chosen arm, ready (T, k).
    """

    observed: BoolArray
    probability: FloatArray
    ready: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class PastRewards:
    """What earlier rounds show about every arm, in the round's stratum or, if it has no data, overall.

    Attributes
    ----------
    mean : ndarray of shape (T, k)
        Mean of the arm's rewards. If it has none, the mean of all arms; 0 if there are no rewards at all.
    share : ndarray of shape (T, k)
        Share of the rounds whose reward is observed; 1 if the arm has no rounds.
    count : ndarray of shape (T, k)
        Number of the arm's observed rewards, in any stratum.
    pooled : ndarray of shape (T,)
        Number of observed rewards of all arms.
    """

    mean: FloatArray
    share: FloatArray
    count: FloatArray
    pooled: FloatArray


def past_rewards(
    action: IntArray,
    reward: FloatArray,
    observed: BoolArray,
    stratum: IntArray,
    codes: IntArray,
    known: IntArray | None = None,
) -> PastRewards:
    """Running means of observed rewards, and running shares of observed rewards, by arm and stratum.

    Shapes: action, reward, observed, stratum (T,), codes (k,), known (T,). Rewards that are not observed are
    not used. If `known` is given, the reward of round s is used from row ``known[s]`` on; otherwise, it is
    used from the next row on. Whether a round's reward is observed is always used from the next row on. A
    round whose reward is pending does not count as a round without a reward, and a log does not contain the
    time at which it became certain that no reward would arrive.
    """
    rounds, size = len(action), len(codes)
    value = np.where(observed, reward, 0.0)
    arrival = np.arange(1, rounds + 1) if known is None else known
    sums = _RunningSums(value, observed, arrival)
    mean, share, count = np.zeros((rounds, size)), np.ones((rounds, size)), np.zeros((rounds, size))
    total, pooled = sums.rewards(np.ones(rounds, dtype=bool))
    overall = total / np.maximum(pooled, 1.0)
    for j, code in enumerate(codes):
        mine = action == code
        count[:, j] = sums.rewards(mine)[1]
        mean[:, j], share[:, j] = sums.of(mine, overall, np.ones(rounds))
        for cell in range(int(stratum.max(initial=0)) + 1) if stratum.any() else ():
            inside = stratum == cell
            cell_mean, cell_share = sums.of(mine & inside, mean[:, j], share[:, j])
            mean[inside, j], share[inside, j] = cell_mean[inside], cell_share[inside]
    return PastRewards(mean, share, count, pooled)


class _RunningSums:
    """Sums over selected rounds before each round; value, observed, arrival (T,)."""

    def __init__(self, value: FloatArray, observed: BoolArray, arrival: IntArray) -> None:
        self.value, self.observed, self.arrival = value, observed, arrival
        self.next = np.arange(1, len(value) + 1)

    def rewards(self, rows: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Sums and numbers of the observed rewards that had arrived, for selected rows; all shapes (T,)."""
        seen = rows & self.observed
        return self._before(self.value, seen, self.arrival), self._before(seen, seen, self.arrival)

    def of(
        self, rows: BoolArray, other_mean: FloatArray, other_share: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Running means and observed shares for selected rows, or the others before any data; shapes (T,)."""
        total, arrived = self.rewards(rows)
        seen, drawn = (self._before(rows, part, self.next) for part in (rows & self.observed, rows))
        mean = np.where(arrived > 0.0, total / np.maximum(arrived, 1.0), other_mean)
        return mean, np.where(seen > 0.0, seen / np.maximum(drawn, 1.0), other_share)

    def _before(self, values: FloatArray | BoolArray, rows: BoolArray, arrival: IntArray) -> FloatArray:
        added = np.bincount(arrival[rows], weights=values[rows], minlength=len(rows) + 1)[: len(rows)]
        return np.asarray(np.cumsum(added), dtype=np.float64)


def seen_scores(
    scored: ArmScores, reward: FloatArray, propensity: FloatArray, outcome: FloatArray, seen: SeenRounds
) -> ArmScores:
    """Scores and weights of rounds whose rewards may be missing, computed from observed rewards alone.

    Shapes: reward (T,), propensity of the chosen arm (T,), outcome (T, k).
    """
    above = np.where(seen.observed, reward - scored.origin, 0.0)
    predicted = outcome - scored.origin
    chosen = scored.chosen * seen.observed[:, None]
    scores = aipw_scores(chosen, above, propensity * seen.probability, predicted)
    return ArmScores(chosen, scores, scored.weights * seen.ready, scored.origin)


def observed_counts(action: IntArray, observed: BoolArray, n_arms: int) -> tuple[FloatArray, FloatArray]:
    """Numbers of rounds of every arm, and of those whose reward is observed, (K,); action, observed (T,)."""
    drawn = np.bincount(action, minlength=n_arms).astype(np.float64)
    return drawn, np.bincount(action[observed], minlength=n_arms).astype(np.float64)


def strata(
    context: dict[str, np.ndarray], n_rounds: int, most: int
) -> tuple[IntArray, tuple[str, ...], tuple[str, ...]]:
    """Strata from contexts with few values, the names of these contexts, and the names of the others.

    A context is added as long as there are at most `most` strata. Shapes: context (T,); returns (T,).
    """
    codes, number = np.zeros(n_rounds, dtype=np.int64), 1
    used, left_out = [], []
    for name, values in context.items():
        keys = values.astype(str) if values.dtype.kind == "O" else values
        labels, own = np.unique(keys, return_inverse=True)
        if number * len(labels) > most:
            left_out.append(name)
            continue
        codes, number = codes * len(labels) + own, number * len(labels)
        used.append(name)
    return codes, tuple(used), tuple(left_out)
