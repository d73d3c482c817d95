"""Scores of arm means where some rewards are missing at random given the arm, and context.

A round's reward is observed (O) with a probability that may depend on its arm k and its stratum x of contexts.
Its score is m + 1{A = k} O (y - m) / (e pi): m is the running mean of the observed rewards of arm and stratum,
pi the running share of the arm's rounds in the stratum that were observed. Both are made from earlier rounds,
so that the score's expectation given these is mu + (pi* / pi - 1)(mu - m), where pi* is the probability of
observation and mu the mean. Its error is the product of two errors that fall with the square root of the number
of earlier rounds: of order log T over all rounds, against a noise of order sqrt(T). With an m that does not
settle at the stratum's mean, such as 0 for inverse weighting alone, the error of pi would not be negligible.

Leaving the rounds out instead is biased: the share of rounds that are left would depend on the arm.

References
----------
Robins, Rotnitzky, Zhao (1994), "Estimation of regression coefficients when some regressors are not always
observed". Bang, Robins (2005), "Doubly robust estimation in missing data and causal inference models". Hadad,
Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive experiments".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adaptinf.typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class PastRewards:
    """What rounds before each round show of every arm: in the round's stratum, else of the arm at large.

    Attributes
    ----------
    mean : ndarray of shape (T, k)
        Mean of the rewards; of all arms' where there is none of the arm, 0 where there is none at all.
    share : ndarray of shape (T, k)
        Share of the rounds whose reward was observed; 1 where none of the arm was.
    count : ndarray of shape (T, k)
        Number of the arm's observed rewards, in any stratum.
    """

    mean: FloatArray
    share: FloatArray
    count: FloatArray


def past_rewards(
    action: IntArray,
    reward: FloatArray,
    observed: BoolArray,
    stratum: IntArray,
    codes: IntArray,
    known: IntArray | None = None,
) -> PastRewards:
    """Running means of observed rewards, and running shares of rounds with one, by arm and stratum.

    Shapes: action, reward, observed, stratum (T,), codes (k,), known (T,). Rewards that are not observed are
    not read. Where `known` is given, round s counts from row ``known[s]`` on, and from the next row otherwise.
    """
    rounds, size = len(action), len(codes)
    value = np.where(observed, reward, 0.0)
    arrival = np.arange(1, rounds + 1) if known is None else known
    mean, share, count = np.zeros((rounds, size)), np.ones((rounds, size)), np.zeros((rounds, size))
    pooled_sum = _before(value, observed, arrival, rounds)
    pooled_count = _before(np.ones(rounds), observed, arrival, rounds)
    pooled = pooled_sum / np.maximum(pooled_count, 1.0)
    for j, code in enumerate(codes):
        mine = action == code
        whole = [_before(x, rows, arrival, rounds) for x, rows in _parts(value, mine, observed)]
        count[:, j] = whole[1]
        mean[:, j], share[:, j] = _mean_and_share(whole, pooled, np.ones(rounds))
        for cell in range(int(stratum.max(initial=0)) + 1) if stratum.any() else ():
            inside = stratum == cell
            own = [_before(x, rows & inside, arrival, rounds) for x, rows in _parts(value, mine, observed)]
            cell_mean, cell_share = _mean_and_share(own, mean[:, j], share[:, j])
            mean[inside, j], share[inside, j] = cell_mean[inside], cell_share[inside]
    return PastRewards(mean, share, count)


def _parts(value: FloatArray, mine: BoolArray, observed: BoolArray) -> list[tuple[FloatArray, BoolArray]]:
    """What is added up, and over which rounds: observed rewards, their number, the arm's rounds."""
    ones = np.ones(len(value))
    return [(value, mine & observed), (ones, mine & observed), (ones, mine)]


def _before(values: FloatArray, rows: BoolArray, arrival: IntArray, rounds: int) -> FloatArray:
    """Sums over the marked rounds that had arrived before each round, shape (T,); inputs (T,)."""
    added = np.bincount(arrival[rows], weights=values[rows], minlength=rounds + 1)[:rounds]
    return np.asarray(np.cumsum(added), dtype=np.float64)


def _mean_and_share(
    sums: list[FloatArray], other_mean: FloatArray, other_share: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Means and shares observed from sums, others where nothing was observed yet; shape (T,) each."""
    total, seen, drawn = sums
    some = seen > 0.0
    mean = np.where(some, total / np.maximum(seen, 1.0), other_mean)
    return mean, np.where(some, seen / np.maximum(drawn, 1.0), other_share)


def observed_scores(
    chosen: FloatArray, reward: FloatArray, observed: BoolArray, probability: FloatArray, outcome: FloatArray
) -> FloatArray:
    """Augmented scores of rounds whose reward may be missing; the reward is not read where it is.

    Shapes: chosen (T, k), reward, observed (T,), probability of the arm and of its reward's observation (T, k),
    outcome (T, k); returns (T, k).
    """
    value = np.where(observed, reward, 0.0)[:, None]
    seen = chosen * observed[:, None]
    return np.asarray(outcome + seen * (value - outcome) / probability, dtype=np.float64)


def observed_counts(action: IntArray, observed: BoolArray, n_arms: int) -> tuple[FloatArray, FloatArray]:
    """Rounds of every arm, and those whose reward is observed, shape (K,) each; action, observed (T,)."""
    drawn = np.bincount(action, minlength=n_arms).astype(np.float64)
    return drawn, np.bincount(action[observed], minlength=n_arms).astype(np.float64)


def strata(
    context: dict[str, np.ndarray], n_rounds: int, most: int
) -> tuple[IntArray, tuple[str, ...], tuple[str, ...]]:
    """Strata of contexts with few values, the names of these contexts, and those that are left out.

    A context joins as long as there are at most `most` strata with it. Shapes: context (T,); returns (T,).
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
