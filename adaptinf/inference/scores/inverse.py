"""Inverse-propensity scores for arm means, with outcome models that use only the past, and weights.

Given the propensities, all weights of a round are known before its arm is drawn. They stabilise the variance.

References
----------
Robins, Rotnitzky, Zhao (1994), "Estimation of regression coefficients when some regressors are not always
observed" (augmented inverse weighting). Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals
for policy evaluation in adaptive experiments" (constant allocation, and two-point allocation).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.inference.inputs.rounds import possible_rounds, propensities_before, stays
from adaptinf.typing import BoolArray, FloatArray, IntArray

Fixed = Literal["round", "round before", "batch"]
"""Which propensities determine a round's weight: its own, or those of the previous round or batch."""
_ROWS = 1 << 16
"""Number of rounds that are processed at a time."""
LAGGED = "lagged"
"""Weights that are square roots of the previous round's propensities, which the round's context cannot
affect."""


@dataclass(frozen=True, slots=True, eq=False)
class ArmScores:
    """Scores of k arms, relative to the origin of their sums, and weights.

    Shapes: chosen, scores, weights (T, k).
    """

    chosen: FloatArray
    scores: FloatArray
    weights: FloatArray
    origin: float


def indicators(action: IntArray, codes: IntArray) -> FloatArray:
    """Whether each arm was chosen in each round; action (T,), codes (k,); returns (T, k)."""
    return np.asarray(action[:, None] == codes[None, :], dtype=np.float64)


def running_means(chosen: FloatArray, reward: FloatArray) -> FloatArray:
    """Mean reward of every arm over the rounds before each round; 0 before an arm's first reward.

    Shapes: chosen (T, k), reward (T,); returns (T, k).
    """
    sums, counts = np.zeros(chosen.shape), np.zeros(chosen.shape)
    np.cumsum(chosen[:-1] * reward[:-1, None], axis=0, out=sums[1:])
    np.cumsum(chosen[:-1], axis=0, out=counts[1:])
    return np.asarray(sums / np.maximum(counts, 1.0), dtype=np.float64)


class Past(NamedTuple):
    """Earlier rounds: numbers and sums of each arm's rewards, shapes (k,), and of all rewards."""

    counts: FloatArray
    sums: FloatArray
    rounds: float
    total: float


def predictions(chosen: FloatArray, reward: FloatArray) -> FloatArray:
    """Predictions from earlier rounds: the arm's mean or, before its first round, that of all arms.

    Shapes: chosen (T, k), reward (T,); returns (T, k).

    A constant that is added to all rewards is added to every prediction except in the first round. In the
    first round, no reward is known, so its row is 0. Its weight must also be 0; otherwise, rewards that are
    all far from 0 would contribute noise. Rows are computed without the rewards of the same and later rounds,
    so scores are unbiased.
    """
    return predictions_after(chosen, reward)[0]


def predictions_after(
    chosen: FloatArray, reward: FloatArray, past: Past | None = None
) -> tuple[FloatArray, Past]:
    """Predictions for rounds that follow earlier ones, and the past for the rounds after them."""
    size = chosen.shape[1]
    past = Past(np.zeros(size), np.zeros(size), 0.0, 0.0) if past is None else past
    sums, counts = (np.empty((len(reward) + 1, size)) for _ in range(2))
    total = np.empty(len(reward) + 1)
    sums[0], counts[0], total[0] = past.sums, past.counts, past.total
    np.cumsum(chosen * reward[:, None], axis=0, out=sums[1:])
    np.cumsum(chosen, axis=0, out=counts[1:])
    np.cumsum(reward, out=total[1:])
    sums[1:] += past.sums
    counts[1:] += past.counts
    total[1:] += past.total
    before = total[:-1] / np.maximum(past.rounds + np.arange(len(reward)), 1.0)
    own = sums[:-1] / np.maximum(counts[:-1], 1.0)
    found = np.where(counts[:-1] == 0.0, before[:, None], own)
    return found, Past(counts[-1], sums[-1], past.rounds + len(reward), float(total[-1]))


def origin_of(reward: FloatArray, outcome: object) -> float:
    """Origin of the sums of scores: a reward, for precision, or 0 if scores depend on the origin."""
    return float(reward[0]) if len(reward) > 0 and outcome is not None else 0.0


def first_weighted(outcome: object, start: int | None) -> int:
    """First round with a weight: 1 for running means, which have no data at round 0; else 0 by default."""
    return int(isinstance(outcome, str)) if start is None else start


def ipw_scores(chosen: FloatArray, reward: FloatArray, propensity: FloatArray) -> FloatArray:
    """Inverse-propensity scores: the reward divided by the propensity if the arm was chosen, otherwise 0.

    Shapes: chosen (T, k), reward, propensity (T,); returns (T, k).
    """
    return np.asarray(chosen * (reward / propensity)[:, None], dtype=np.float64)


def aipw_scores(
    chosen: FloatArray, reward: FloatArray, propensity: FloatArray, outcome: FloatArray
) -> FloatArray:
    """Augmented inverse-propensity scores.

    Shapes: chosen (T, k), reward, propensity (T,), outcome (T, k); returns (T, k).
    """
    residual = (reward[:, None] - outcome) / propensity[:, None]
    return np.asarray(outcome + chosen * residual, dtype=np.float64)


def arm_scores(
    action: IntArray,
    reward: FloatArray,
    propensity: FloatArray,
    propensities: FloatArray | None,
    codes: IntArray,
    *,
    weights: str | FloatArray = "uniform",
    decay: float | None = None,
    outcome: FloatArray | str | None = "running-mean",
    start: int | None = None,
    jointly: bool = False,
) -> ArmScores:
    """Indicators of the chosen arms, their scores (IPW if `outcome` is None), and weights.

    Shapes: action (T,), reward, propensity (T,), propensities (T, K), codes (k,), weights (T, k), or (T,) if
    all arms share them, outcome (T, k).

    Rounds before `start` (see `first_weighted`), for which an outcome model had no reward, have weight 0. The
    same applies to rounds in which the arm (or any of the arms, if requested jointly) could not be chosen.
    """
    chosen = indicators(action, codes)
    origin = origin_of(reward, outcome)
    if outcome is None:
        scores = ipw_scores(chosen, reward, propensity)
    else:
        above = reward - origin
        predicted = predictions(chosen, above) if isinstance(outcome, str) else outcome - origin
        scores = aipw_scores(chosen, above, propensity, predicted)
    every = None if propensities is None else propensities[:, codes]
    if isinstance(weights, np.ndarray):
        h = np.array(weights if weights.ndim == 2 else np.repeat(weights[:, None], len(codes), axis=1))
    elif every is None or propensities is None or weights == "uniform":
        h = uniform_weights(*chosen.shape)
    elif weights == LAGGED:
        h = sqrt_weights(propensities_before(every, propensities.shape[1]))
    else:
        h = sqrt_weights(every) if decay is None else two_point_weights(every, decay)
    h *= possible_rounds(chosen, propensity, every, jointly=jointly)
    h[: first_weighted(outcome, start)] = 0.0
    return ArmScores(chosen, scores, h, origin)


def uniform_weights(n_rounds: int, n_arms: int) -> FloatArray:
    """Weights of 1 for every score; returns (T, k)."""
    return np.ones((n_rounds, n_arms))


def sqrt_weights(propensities: FloatArray) -> FloatArray:
    """Constant-allocation weights, which are square roots of the propensities; takes and returns (T, k)."""
    return np.asarray(np.sqrt(propensities), dtype=np.float64)


def combined_weights(propensities: FloatArray) -> FloatArray:
    """One weight for all arms: the square root of 1 / sum(1 / e), or 0 if an arm has propensity 0.

    Shapes: propensities (T, k); returns (T,). The difference between two scores has a variance close to
    sigma^2 (1 / e1 + 1 / e0), which the weight equalises. Because it is the same for both arms, effects
    common to both rewards in a round cancel in the weighted difference.
    """
    found = _inverse_sums(propensities)
    np.sqrt(found, out=found)
    return np.divide(1.0, found, out=found)


def stays_in_cells(values: FloatArray, cell: IntArray | None, batch: IntArray | None) -> bool:
    """Whether a round's values do not appear to depend on any context other than its cell.

    Shapes: values (T, k), cell, batch (T,); all rounds are in one cell if `cell` is None. The values must be
    constant within each cell (a group, or a combination of contexts), or within each batch of a cell.
    """
    if bool(stays(values, cell).all()):
        return True
    return batch is not None and bool(
        stays(values, batch if cell is None else _batches_of_cells(cell, batch)).all()
    )


def combined_stays(propensities: FloatArray, cell: IntArray | None, batch: IntArray | None) -> bool:
    """Whether combined weights from a round's own propensities do not depend on contexts except its cell.

    Shapes: propensities (T, k), cell, batch (T,); all rounds are in one cell if `cell` is None.
    """
    return stays_in_cells(1.0 / _inverse_sums(propensities)[:, None], cell, batch)


def _batches_of_cells(cell: IntArray, batch: IntArray) -> IntArray:
    """A code for each combination of cell and batch, ordered by cell and then by batch; shapes (T,)."""
    return np.asarray(cell * (int(batch.max(initial=0)) + 1) + batch, dtype=np.int64)


def lagged_combined_weights(
    propensities: FloatArray, batch: IntArray, cell: IntArray | None = None
) -> FloatArray:
    """Combined weights from the mean of sum(1 / e) in the cell's previous batch; a cell's first weight is 1.

    Shapes: propensities (T, k), batch (T,), with ordered numbers, cell (T,); returns (T,).

    If contexts affect propensities within a batch, a weight computed from a round's own propensities would
    weight contexts unequally. Rounds in which an arm has propensity 0 have weight 0 and are not included in
    the mean.
    """
    sums = _inverse_sums(propensities)
    usable = np.isfinite(sums)
    place, earliest = batch, np.arange(int(batch.max(initial=-1)) + 1) == 0
    if cell is not None:
        _, first, place = np.unique(_batches_of_cells(cell, batch), return_index=True, return_inverse=True)
        earliest = np.diff(cell[first], prepend=-1) != 0
    number = np.arange(len(earliest))
    count = np.bincount(place[usable], minlength=len(number))
    total = np.bincount(place[usable], weights=sums[usable], minlength=len(number))
    # Weights come from the last earlier batch in which such rounds occurred.
    last = np.maximum.accumulate(np.where(count > 0, number, -1))
    before = np.append(-1, last)[number]
    known = before >= np.maximum.accumulate(np.where(earliest, number, 0))
    mean = total / np.maximum(count, 1)
    fixed = np.where(known, 1.0 / np.sqrt(np.where(known, mean[before], 1.0)), 1.0)
    return np.asarray(np.where(usable, fixed[place], 0.0), dtype=np.float64)


def _inverse_sums(propensities: FloatArray) -> FloatArray:
    """Sums of 1 / e over the arms; infinite if a propensity is 0; propensities (T, k); returns (T,)."""
    total = np.zeros(len(propensities))
    with np.errstate(divide="ignore"):
        for start in range(0, len(total), _ROWS):  # Blocks of rows avoid a temporary array of all rounds.
            part = slice(start, start + _ROWS)
            for column in propensities[part].T:
                total[part] += 1.0 / column
    return total


def two_point_weights(propensities: FloatArray, decay: float) -> FloatArray:
    """Two-point allocation weights.

    Shapes: propensities (T, k); returns (T, k).

    The share interpolates between two possible futures of an arm: it is always chosen (with probability e),
    or it is chosen only as often as the floor requires (with probability 1 - e).
    """
    floored, always = two_point_shares(len(propensities), decay)
    share = (1.0 - propensities) * floored[:, None] + propensities * always[:, None]
    share = np.clip(share, 0.0, 1.0)
    # The remaining budget is a product of shares, which avoids cancellation.
    left = np.ones(share.shape)
    np.cumprod(1.0 - share[:-1], axis=0, out=left[1:])
    return np.asarray(np.sqrt(share * left * propensities), dtype=np.float64)


def two_point_shares(n_rounds: int, decay: float) -> tuple[FloatArray, FloatArray]:
    """Shares of the remaining variance budget in the two futures that two-point allocation considers.

    Returns two arrays of shape (T,): for an arm at its floor, and for an arm that is always chosen.
    """
    if not 0.0 <= decay < 1.0:
        raise ParameterError("two-point weights", [f"decay must be in [0, 1), got {decay!r}"])
    t = np.arange(1.0, n_rounds + 1.0)
    floored = (1.0 - decay) / ((1.0 - decay) + n_rounds * (t / n_rounds) ** decay - t)
    return floored, 1.0 / (1.0 + n_rounds - t)


def earlier_inverse(mean: FloatArray, known: BoolArray, n_arms: int) -> FloatArray:
    """Mean of 1 / e in the last earlier batch in which the arm was possible, or initially of a fair draw.

    Shapes: mean, known (B, k); returns (B, k). `known` is whether the arm was possible.
    """
    number = np.arange(len(mean))[:, None]
    last = np.maximum.accumulate(np.where(known, number, -1), axis=0)
    before = np.vstack([np.full((1, mean.shape[1]), -1), last[:-1]])
    found = np.take_along_axis(mean, np.maximum(before, 0), axis=0)
    return np.where(before >= 0, found, float(n_arms))


def earlier_propensities(propensities: FloatArray, batch: IntArray, n_arms: int) -> FloatArray:
    """Harmonic mean of each arm's propensities in the previous batch, shape (T, k).

    Shapes: propensities (T, k), batch (T,). Rounds in which an arm was not possible are left out of its mean.
    """
    size = int(batch.max(initial=-1)) + 1
    possible = propensities > 0.0
    inverse = np.divide(1.0, propensities, out=np.zeros_like(propensities), where=possible)
    total, count = (
        np.array([np.bincount(batch, column, size) for column in part.T], dtype=np.float64).T
        for part in (inverse, possible)
    )
    mean = total / np.maximum(count, 1.0)
    return np.asarray(1.0 / earlier_inverse(mean, count > 0.0, n_arms)[batch])
