"""Confidence sequences from sums by batch, with intervals only at the ends of batches.

A sequence that is valid at every round is also valid at the ends of batches. There, it needs only the number
of scores, their sum and the sum of their squares.
"""

from __future__ import annotations

import math

import numpy as np

from adaptinf.claims.sequences import BOUNDS_NOT_IN_SUMS
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.scores.batch_sums import score_parts, score_products
from adaptinf.inference.sequences.sequence_records import Looks, Quantity, SequenceMethod, Settings
from adaptinf.inference.sequences.tracks import DifferenceTrack, SingleTrack, Track
from adaptinf.sums import NEEDS_ROWS
from adaptinf.sums.cells import Cells
from adaptinf.typing import FloatArray, IntArray


def check_sums(method: SequenceMethod, estimator: str, floor: float | None) -> None:
    """Refuse a sequence that needs single rewards."""
    if floor is not None:
        problem = "floor bounds the scores of rounds, but sums have none: omit it"
        raise ParameterError("ConfidenceSequence.fit", [problem])
    subject = f"the {method.name} sequence"
    if method.batch_sides is None:
        raise InvalidForLog(subject, NEEDS_ROWS, ["an AdaptiveLog of the rows"])
    if estimator != "sample-mean" and method.bounds(estimator):
        scores = f"{subject} on {estimator} scores"
        raise InvalidForLog(scores, BOUNDS_NOT_IN_SUMS(), ["an AdaptiveLog of the rows"])


def batch_track(cells: Cells, quantity: Quantity, settings: Settings) -> tuple[Track, float, float]:
    """The sequence for a quantity after each batch, the standard error, and the effective sample size."""
    codes = list(quantity.codes)
    if settings.estimator == "sample-mean":
        looks = [_own_looks(cells, code, settings) for code in codes]
        tracks = [_track(one, settings) for one in looks]
        pulls = float(cells.pulls.sum(axis=0)[codes].min())
        if len(tracks) == 1:
            return tracks[0], looks[0].std_error, pulls
        return DifferenceTrack(*tracks), math.hypot(*(one.std_error for one in looks)), pulls
    scores = _score_looks(cells, quantity, settings)
    first, second = (cells.moments[power, 0].sum(axis=0)[codes] for power in (1, 2))
    size = float(np.min(first**2 / np.where(second > 0.0, second, 1.0)))
    return _track(scores, settings), scores.std_error, size


def _track(looks: Looks, settings: Settings) -> SingleTrack:
    """The sequence for the mean of scores."""
    mirror = 1.0 if settings.bounded else 0.0
    assert settings.method.batch_sides is not None
    lower, upper = settings.method.batch_sides(looks, settings)
    mean = looks.total / looks.count
    return SingleTrack(lower, upper, mirror, looks.origin, looks.width, 1.0, mean, looks.counts)


def _own_looks(cells: Cells, code: int, settings: Settings) -> Looks:
    """Running sums of one arm's rewards; unbounded rewards are measured from the centre of the sums."""
    count, total, squares = (cells.moments[0, degree, :, code] for degree in range(3))
    origin = settings.low if settings.bounded else cells.centre
    own = (cells.centre - origin, origin, settings.width)
    return _looks(count, total, squares, count, own)


def _score_looks(cells: Cells, quantity: Quantity, settings: Settings) -> Looks:
    """Running sums of the inverse-propensity scores of a quantity.

    For ipw, the middle of a known range is subtracted from rewards; for aipw, means of earlier batches are
    subtracted.
    """
    weights, augmented = quantity.weights, settings.estimator == "aipw"
    if not augmented:
        cells = cells.about(settings.low + 0.5 * settings.width if settings.bounded else 0.0)
    codes, sign = np.array(quantity.codes), np.array([1.0, -1.0][: len(quantity.codes)])
    parts = score_parts(cells, codes, augmented=augmented)
    first = cells.rounds[:, None] * parts.level + parts.gain[:, None] * parts.about[1, 1]
    cross = score_products(parts, cells.rounds, np.zeros(len(codes))).cross
    known = np.ones(len(cells.rounds))
    # A first batch of one round has no earlier reward that could predict its own.
    known[0] = 0.0 if augmented and cells.rounds[0] == 1.0 else 1.0
    total, squares = first @ sign * known, np.einsum("bkl,k,l->b", cross, sign, sign) * known
    whole = weights.positive - weights.negative
    span = settings.width * (weights.positive + weights.negative) if settings.bounded else 1.0
    origin = cells.centre * whole
    if settings.bounded:
        origin = settings.low * whole - settings.width * weights.negative
    shift = cells.centre * whole - origin
    rewards = cells.pulls[:, codes].cumsum(axis=0).min(axis=1)
    return _looks(cells.rounds * known, total, squares, np.diff(rewards, prepend=0.0), (shift, origin, span))


def _looks(
    count: FloatArray,
    total: FloatArray,
    squares: FloatArray,
    rewards: FloatArray,
    scale: tuple[float, float, float],
) -> Looks:
    """Running sums over the batches with scores; count, total, squares, rewards (B,).

    `scale` contains the offset of the scores from the origin, the origin and the width.
    """
    shift, origin, width = scale
    there = count > 0.0
    running = [np.cumsum(part)[there] for part in (count, total, squares, rewards)]
    size, mean = running[0], running[1] / running[0]
    spread = np.maximum(running[2] / size - mean**2, 0.0) / width**2
    clock = np.rint(running[3]).astype(np.int64)
    counts = np.cumsum(there).astype(np.int64)
    return Looks((mean + shift) * size / width, size, spread, clock, counts, origin, width)


def look_rounds(cells: Cells) -> IntArray:
    """Number of rounds after each batch, shape (B,)."""
    return np.rint(np.cumsum(cells.rounds)).astype(np.int64)
