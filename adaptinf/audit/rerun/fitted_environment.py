"""Parametric bootstrap: reward distributions with the log's fitted means, for re-running its design."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.arms.choice import default_estimator, fit_arms
from adaptinf.inference.arms.question import Choice
from adaptinf.inference.scores.means import sample_means
from adaptinf.inference.validity.profile import is_binary
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import refuse
from adaptinf.simulation.environment import Environment, environment_tables
from adaptinf.simulation.run import BERNOULLI, NORMAL, POOL
from adaptinf.typing import FloatArray, IntArray

LAWS = {
    "bernoulli": "Bernoulli",
    "resampled": "resampled within the arm, tilted to the mean",
    "normal": "normal",
}
_POOL = 4096
_SAME = 1e-12


class FittedArms(Environment):
    """Arms, or cells of context and arm, whose reward distributions were fitted to a log.

    Shapes: means (cells, arms), scale (cells, arms).
    """

    def __init__(
        self,
        law: str,
        means: FloatArray,
        arms: Sequence[Any],
        *,
        scale: FloatArray | None = None,
        pools: Sequence[FloatArray] | None = None,
        reward_range: tuple[float, float] = (-np.inf, np.inf),
        cells: Cells | None = None,
    ) -> None:
        self.arms = tuple(arms)
        self.reward_range = reward_range
        self.probabilities = np.ones((1, 1))
        if cells is not None and cells.labels:
            self.features = cells.labels
            self.context_name = cells.name
            self.probabilities = (np.bincount(cells.codes) / cells.codes.size)[None]
        self.means = means
        if pools is None:
            kind = BERNOULLI if law == "bernoulli" else NORMAL
            self._tables = environment_tables(kind, means, scale, self.probabilities)
            return
        sizes = np.array([pool.size for pool in pools], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
        self.means = np.array([pool.mean() for pool in pools]).reshape(means.shape)
        self._tables = environment_tables(
            POOL,
            self.means,
            arrivals=self.probabilities,
            pool=(starts.reshape(means.shape), sizes.reshape(means.shape), np.concatenate(pools)),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The context cell of each round; codes have shape (T,)."""

    codes: IntArray
    labels: tuple[Any, ...] = ()
    name: str = ""

    @property
    def count(self) -> int:
        """Number of cells."""
        return max(1, len(self.labels))


@dataclass(frozen=True, slots=True, eq=False)
class FittedWorld:
    """An environment fitted to a log, and how it was fitted; estimate and naive have shape (cells, arms)."""

    env: FittedArms
    law: str
    source: str
    estimate: FloatArray
    naive: FloatArray
    cells: Cells
    notes: tuple[str, ...]


def log_cells(log: AdaptiveLog, by_context: bool) -> Cells:
    """The context cell of each round of a log."""
    if not by_context or not log.context:
        return Cells(np.zeros(log.n_rounds, dtype=np.int64))
    columns = [np.unique(log.arrays.context[name], return_inverse=True) for name in log.context]
    name = "_".join(log.context)
    if len(columns) == 1:
        values, codes = columns[0]
        return Cells(codes.astype(np.int64), tuple(values.tolist()), name)
    rows, codes = np.unique(np.stack([codes for _, codes in columns], axis=1), axis=0, return_inverse=True)
    labels = [
        tuple(values[code].item() for (values, _), code in zip(columns, row, strict=True)) for row in rows
    ]
    return Cells(codes.reshape(-1).astype(np.int64), tuple(labels), name)


def fitted_world(log: AdaptiveLog, by_context: bool, means: Any = None) -> FittedWorld:
    """Environment with a log's fitted means.

    Shapes: means (arms,) or (cells, arms).
    """
    # Rewards that are all 0 or 1 become Bernoulli. If the log has a finite reward range, rewards are
    # resampled from the same arm (and context), with exponential tilting to the fitted mean, which keeps them
    # in the range. Other rewards become normal with the arm's standard deviation. The means are the estimates
    # of the default estimator; by context they use the randomised rounds, if every cell has some, and
    # otherwise they are sample means.
    cells = log_cells(log, by_context)
    arrays, n_arms = log.arrays, log.n_arms
    group = cells.codes * n_arms + arrays.action
    shape = (cells.count, n_arms)
    sample = sample_means(group, arrays.reward, cells.count * n_arms)
    naive = sample.mean.reshape(shape)
    law = _law(log)
    problems = _missing(log, cells, sample.count.reshape(shape), law, given=means is not None)
    if means is not None:
        estimate, source = _given(means, shape, problems), "given"
    elif problems:
        raise ParameterError("simulate_bias", problems)
    else:
        estimate, source = _estimates(log, cells, group, naive)
    refuse("simulate_bias", problems)
    notes: list[str] = []
    env = _environment(log, law, estimate, sample.std_error.reshape(shape), group, cells, notes)
    return FittedWorld(env, law, source, estimate, naive, cells, tuple(notes))


def tilted_pool(rewards: FloatArray, mean: float, size: int = _POOL) -> FloatArray:
    """Equally likely rewards, shifted to a given mean; rewards have shape (n,)."""
    values = np.sort(rewards)
    low, high = float(values[0]), float(values[-1])
    if abs(mean - float(values.mean())) <= _SAME * max(abs(low), abs(high), high - low) or low == high:
        return values
    if not low < mean < high:
        return np.array([low if mean <= low else high])
    position = (values - low) / (high - low)
    target = (mean - low) / (high - low)

    def weights(slope: float) -> FloatArray:
        exponent = slope * position
        raw = np.exp(exponent - exponent.max())
        return np.asarray(raw / raw.sum(), dtype=np.float64)

    reach = 1.0
    while not float(weights(-reach) @ position) < target < float(weights(reach) @ position):
        reach *= 2.0
        if reach > 1e12:
            return np.array([low if target < 0.5 else high])
    slope = brentq(lambda value: float(weights(value) @ position) - target, -reach, reach, xtol=1e-14)
    levels = (np.arange(size) + 0.5) / size
    place = np.searchsorted(np.cumsum(weights(float(slope))), levels)
    return np.asarray(values[np.minimum(place, values.size - 1)], dtype=np.float64)


def _law(log: AdaptiveLog) -> str:
    if is_binary(log.arrays.reward):
        return "bernoulli"
    bounded = log.reward_range is not None and bool(np.isfinite(log.reward_range).all())
    return "resampled" if bounded else "normal"


def _cell_name(log: AdaptiveLog, cells: Cells, cell: int, arm: int) -> str:
    place = f" in context {cells.name}={cells.labels[cell]!r}" if cells.labels else ""
    return f"arm {log.arms[arm]!r}{place}"


def _missing(log: AdaptiveLog, cells: Cells, counts: FloatArray, law: str, *, given: bool) -> list[str]:
    """Arms, or cells, on which the log contains too little information."""
    if given and law == "bernoulli":
        return []
    what = "fit a mean to: pass means=" if not given else "draw from"
    if law == "normal" and given and not (counts >= 2).any():
        return ["no arm has two rewards from which to estimate a standard deviation"]
    if law == "normal" and given:
        return []
    return [
        f"{_cell_name(log, cells, int(cell), int(arm))} has no reward to {what}"
        for cell, arm in zip(*np.nonzero(counts == 0), strict=True)
    ]


def _given(means: Any, shape: tuple[int, int], problems: list[str]) -> FloatArray:
    from adaptinf.parameters import number_array

    array = number_array(means)
    if array is None or array.shape not in {shape, shape[1:]} or not np.isfinite(array).all():
        wanted = f"({shape[1]},)" if shape[0] == 1 else f"({shape[1]},) or {shape}"
        problems.append(f"means must be finite numbers of shape {wanted}, got {means!r:.60}")
        return np.zeros(shape)
    return np.broadcast_to(array, shape).copy()


def _estimates(log: AdaptiveLog, cells: Cells, group: IntArray, naive: FloatArray) -> tuple[FloatArray, str]:
    """Fitted means, from a valid estimator if the log allows one."""
    arrays = log.arrays
    if cells.labels:
        if arrays.randomised is not None:
            kept = arrays.randomised
            found = sample_means(group[kept], arrays.reward[kept], naive.size)
            if (found.count > 0).all():
                return found.mean.reshape(naive.shape), "means of the randomised rounds"
        return naive, "sample means (not valid under adaptivity)"
    codes = np.arange(log.n_arms)
    try:
        choice = default_estimator(log)
    except InvalidForLog:
        choice = Choice("sample-mean")
    estimate = fit_arms(log, codes, choice).estimate[None]
    if choice.estimator == "sample-mean" or not np.isfinite(estimate).all():
        return naive, "sample means"
    weights = f", {choice.weights} weights" if choice.weights else ""
    return estimate, f"{choice.estimator}{weights}"


def _environment(
    log: AdaptiveLog,
    law: str,
    estimate: FloatArray,
    std_error: FloatArray,
    group: IntArray,
    cells: Cells,
    notes: list[str],
) -> FittedArms:
    reward, n_arms = log.arrays.reward, log.n_arms
    if law == "bernoulli":
        means = np.clip(estimate, 0.0, 1.0)
        _note_moved(log, cells, means != estimate, "[0, 1]", notes)
        ends = (means == 0.0) | (means == 1.0)
        _note_cells(
            log,
            cells,
            ends,
            "reward is constant: no bias is simulated for it unless means= specifies another mean",
            notes,
        )
        return FittedArms(law, means, log.arms, reward_range=(0.0, 1.0), cells=cells)
    if law == "normal":
        counts = np.bincount(group, minlength=estimate.size).reshape(estimate.shape)
        scale = std_error * np.sqrt(counts)
        known = np.isfinite(scale)
        if not known.all():
            spread = scale[known]
            pooled = float(np.sqrt(np.mean(spread**2))) if spread.size else 0.0
            _note_cells(
                log, cells, ~known, f"standard deviation is taken from the other arms, {pooled:.3g}", notes
            )
            scale = np.where(known, scale, pooled)
        return FittedArms(law, estimate, log.arms, scale=scale, cells=cells)
    order = np.argsort(group, kind="stable")
    parts = np.split(reward[order], np.cumsum(np.bincount(group, minlength=estimate.size))[:-1])
    outside = np.array(
        [not part.min() <= mean <= part.max() for part, mean in zip(parts, estimate.flat, strict=True)]
    )
    _note_moved(log, cells, outside.reshape(-1, n_arms), "the range of the arm's rewards", notes)
    pools = [tilted_pool(part, float(mean)) for part, mean in zip(parts, estimate.flat, strict=True)]
    low, high = log.reward_range or (float(reward.min()), float(reward.max()))
    return FittedArms(law, estimate, log.arms, pools=pools, reward_range=(low, high), cells=cells)


def _note_moved(log: AdaptiveLog, cells: Cells, moved: Any, where: str, notes: list[str]) -> None:
    _note_cells(log, cells, moved, f"mean was moved into {where}", notes)


def _note_cells(log: AdaptiveLog, cells: Cells, affected: Any, what: str, notes: list[str]) -> None:
    names = [
        _cell_name(log, cells, int(cell), int(arm)) for cell, arm in zip(*np.nonzero(affected), strict=True)
    ]
    notes += [f"{name[0].upper()}{name[1:]}: its {what}." for name in names]
