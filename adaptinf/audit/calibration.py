"""Is an analysis calibrated under a design? Coverage, bias and width where the truth is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import ArrayLike

from adaptinf.designs.base import Design
from adaptinf.designs.replications import Replications
from adaptinf.errors import ParameterError
from adaptinf.inference.results import Estimand, Results, check_alpha
from adaptinf.parameters import count_problem
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import BLOCK, seed_sequence
from adaptinf.typing import FloatArray, RandomSource

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog

__all__ = ["Coverage", "Intervals", "coverage", "coverage_from_tallies", "true_value"]

Fit: TypeAlias = "Callable[[AdaptiveLog], Results | Mapping[str, Results]]"
Intervals: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]
"""Estimates and lower and upper limits of many runs, each of shape (runs, terms)."""
ArrayFit: TypeAlias = "Callable[[Replications], Mapping[str, Intervals]]"

_BLOCKS_A_TASK = 16
_COUNT, _COVERED, _BELOW, _ABOVE, _ERROR, _SQUARE, _WIDTH, _MISSING = range(8)


@dataclass(frozen=True, slots=True)
class Coverage:
    """How an analysis behaved over simulated trials.

    Attributes
    ----------
    frame : DataFrame
        One row an analysis and term: truth, runs with an interval, runs without one, coverage with its
        standard error, shares of runs whose interval lies wholly below or above the truth, bias with its
        standard error, standard deviation of the estimates and mean width of the intervals.
    alpha : float
        One minus the nominal level.
    design, environment : str
        What was simulated.
    horizon, replications : int
        Rounds of a trial and number of trials.
    """

    frame: pd.DataFrame
    alpha: float
    design: str
    environment: str
    horizon: int
    replications: int

    def __str__(self) -> str:
        head = (
            f"{self.design} in {self.environment}\n{self.horizon:,} rounds, "
            f"{self.replications:,} replications, nominal coverage {1.0 - self.alpha:g}"
        )
        return f"{head}\n{self.frame.to_string(index=False, float_format=lambda value: f'{value:.4f}')}"


def true_value(estimand: Estimand, env: Environment) -> float:
    """The value of an estimand in an environment.

    Parameters
    ----------
    estimand : Estimand
        Mean of an arm, contrast of two arms, effect within a group, or mean of an arm over a bin.
    env : Environment
        Where the truth is known.

    Returns
    -------
    float

    Raises
    ------
    ParameterError
        If the environment has no such arm or group, or no averages over bins.

    Examples
    --------
    >>> from adaptinf import environments
    >>> true_value(Estimand("contrast", treatment=1, control=0), environments.BernoulliArms([0.25, 0.75]))
    0.5
    """
    of_arm = estimand.kind in ("arm-mean", "bin-mean")
    labels = [estimand.arm] if of_arm else [estimand.treatment, estimand.control]
    unknown = [f"the environment has no arm {label!r}" for label in labels if label not in env.arms]
    if estimand.kind == "cate" and estimand.group not in env.features:
        unknown.append(f"the environment has no context {estimand.group!r}")
    averages = getattr(env, "averages", None) if getattr(env, "rows", None) is None else None
    if estimand.kind == "bin-mean" and averages is None:
        unknown.append("the environment has no averages over bins: SmoothArms has, with uniform contexts")
    if unknown:
        raise ParameterError("true_value", unknown)
    codes = [env.arms.index(label) for label in labels]
    if estimand.kind == "cate":
        return float(env.effects(codes[0], codes[1])[env.features.index(estimand.group)])
    if averages is not None and estimand.kind == "bin-mean":
        edges = np.array(estimand.group, dtype=np.float64)
        return float(averages(edges[None, :, 0], edges[None, :, 1])[0, codes[0]])
    means = env.arm_means()[codes]
    return float(means[0] if estimand.kind == "arm-mean" else means[0] - means[1])


def coverage(
    design: Design,
    env: Environment,
    fit: Fit,
    horizon: int,
    replications: int,
    rng: RandomSource | None = None,
    *,
    alpha: float = 0.05,
    n_jobs: int = 1,
) -> Coverage:
    """Coverage, bias and width of an analysis under a design, one simulated log after another.

    Parameters
    ----------
    design : Design
        What gathers the data.
    env : Environment
        Where the truth is known.
    fit : callable
        Takes an AdaptiveLog and returns a result, or a dict of results by name.
    horizon : int
        Rounds of a trial.
    replications : int
        Number of trials.
    rng : int, SeedSequence, Generator or None
        Source of randomness; trial r depends on (rng, r) alone.
    alpha : float
        One minus the nominal level, between 0 and 0.5.
    n_jobs : int
        Worker processes; the numbers are the same for any.

    Returns
    -------
    Coverage
        A result with a max-information correction has a second row for its corrected interval.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or the environment does not know an estimand's truth.

    Notes
    -----
    No frame is built for a simulated log. Coverage is among the trials with an interval; the others are
    counted.

    Examples
    --------
    >>> from adaptinf.designs import Uniform
    >>> from adaptinf.inference.arms import ArmMeans
    >>> from adaptinf import environments
    >>> env = environments.BernoulliArms([0.3, 0.6])
    >>> result = coverage(Uniform(), env, lambda log: ArmMeans(log).fit(), 100, 64, rng=0)
    >>> result.frame["term"].tolist()
    ['0', '1']
    """

    def task(start: int, stop: int, root: np.random.SeedSequence) -> _Sums:
        sums = _Sums()
        for log in design.logs(env, horizon, stop, root, start=start):
            for name, result in _named(fit(log)).items():
                _add_result(sums, name, result, env, alpha)
        return sums

    return _simulate(design, env, task, horizon, replications, rng, alpha, n_jobs)


def coverage_from_tallies(
    design: Design,
    env: Environment,
    fit: ArrayFit,
    truth: ArrayLike,
    horizon: int,
    replications: int,
    rng: RandomSource | None = None,
    *,
    alpha: float = 0.05,
    n_jobs: int = 1,
) -> Coverage:
    """Like `coverage`, for an analysis that needs sums only: many runs at once, no rounds are kept.

    Parameters
    ----------
    design, env : Design, Environment
        What gathers the data, and where.
    fit : callable
        Takes `Replications` and returns, by name, estimates and limits of shape (runs, terms).
    truth : array_like of shape (terms,)
        True values.
    horizon, replications : int
        Rounds of a trial and number of trials.
    rng : int, SeedSequence, Generator or None
        Source of randomness; trial r depends on (rng, r) alone. It is trial r of `coverage` only where the
        design has no shortcut for replication.
    alpha : float
        One minus the nominal level that `fit` uses, between 0 and 0.5.
    n_jobs : int
        Worker processes; the numbers are the same for any.

    Returns
    -------
    Coverage

    Raises
    ------
    ParameterError
        If a parameter is out of range.
    """
    values = np.atleast_1d(np.asarray(truth, dtype=np.float64))
    labels = [str(label) for label in (env.features or env.arms)]
    terms = labels if len(labels) == values.size else [str(code) for code in range(values.size)]

    def task(start: int, stop: int, root: np.random.SeedSequence) -> _Sums:
        sums = _Sums()
        sims = design.replicate(env, horizon, stop, root, start=start)
        for name, (estimate, low, high) in fit(sims).items():
            for column, term in enumerate(terms):
                part = (estimate[:, column], low[:, column], high[:, column])
                sums.add((name, term, float(values[column])), *part)
        return sums

    return _simulate(design, env, task, horizon, replications, rng, alpha, n_jobs)


class _Sums(dict[tuple[str, str, float], FloatArray]):
    """Sums over runs by analysis, term and truth."""

    def add(
        self, key: tuple[str, str, float], estimate: FloatArray, low: FloatArray, high: FloatArray
    ) -> None:
        truth = key[2]
        known = np.isfinite(estimate) & ~np.isnan(low) & ~np.isnan(high)
        estimate, low, high = estimate[known], low[known], high[known]
        error = estimate - truth
        parts = np.array(
            [
                known.sum(),
                ((low <= truth) & (truth <= high)).sum(),
                (high < truth).sum(),
                (low > truth).sum(),
                error.sum(),
                np.square(error).sum(),
                (high - low).sum(),
                (~known).sum(),
            ],
            dtype=np.float64,
        )
        self.merge({key: parts})

    def merge(self, other: Mapping[tuple[str, str, float], FloatArray]) -> None:
        for key, parts in other.items():
            self[key] = self[key] + parts if key in self else parts


def _named(fitted: Results | Mapping[str, Results]) -> Mapping[str, Results]:
    return {fitted.estimator: fitted} if isinstance(fitted, Results) else fitted


def _add_result(sums: _Sums, name: str, result: Results, env: Environment, alpha: float) -> None:
    limits = {name: result.reference.interval(math.log(alpha))}
    if result.correction is not None:
        corrected = result.correction.level(math.log(alpha))
        limits[f"{name}, corrected"] = result.reference.interval(corrected)
    for analysis, interval in limits.items():
        for code, (estimand, term) in enumerate(zip(result.estimands, result.terms, strict=True)):
            part = slice(code, code + 1)
            key = (analysis, term, true_value(estimand, env))
            sums.add(key, result.estimate[part], interval[part, 0], interval[part, 1])


def _simulate(
    design: Design,
    env: Environment,
    task: Callable[[int, int, np.random.SeedSequence], _Sums],
    horizon: int,
    replications: int,
    rng: RandomSource | None,
    alpha: float,
    n_jobs: int,
) -> Coverage:
    check_alpha("coverage", alpha)
    problems = count_problem("replications", replications)
    if problems:
        raise ParameterError("coverage", problems)
    root = seed_sequence(rng)
    spans = list(_spans(replications))
    if n_jobs == 1 or len(spans) == 1:
        parts = [task(start, stop, root) for start, stop in spans]
    else:
        parts = Parallel(n_jobs=n_jobs)(delayed(task)(start, stop, root) for start, stop in spans)
    total = _Sums()
    for part in parts:
        total.merge(part)
    frame = pd.DataFrame([_row(key, sums) for key, sums in total.items()])
    return Coverage(frame, alpha, repr(design), repr(env), int(horizon), int(replications))


def _spans(replications: int) -> Iterator[tuple[int, int]]:
    size = BLOCK * _BLOCKS_A_TASK
    for start in range(0, replications, size):
        yield start, min(start + size, replications)


def _row(key: tuple[str, str, float], sums: FloatArray) -> dict[str, Any]:
    name, term, truth = key
    count = sums[_COUNT] if sums[_COUNT] > 0 else math.nan
    covered = sums[_COVERED] / count
    bias = sums[_ERROR] / count
    sd = math.sqrt(max(sums[_SQUARE] / count - bias**2, 0.0)) if sums[_COUNT] > 0 else math.nan
    return {
        "analysis": name,
        "term": term,
        "truth": truth,
        "runs": int(sums[_COUNT]),
        "missing": int(sums[_MISSING]),
        "coverage": covered,
        "coverage_se": math.sqrt(covered * (1.0 - covered) / count),
        "below": sums[_BELOW] / count,
        "above": sums[_ABOVE] / count,
        "bias": bias,
        "bias_se": sd / math.sqrt(count),
        "sd": sd,
        "width": sums[_WIDTH] / count,
    }
