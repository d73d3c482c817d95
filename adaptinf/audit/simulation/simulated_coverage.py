"""Calibration of an analysis under a design: coverage, bias and width with known truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from adaptinf.audit.simulation.engine import Chunk, Fit, LogCell, Simulated, gathered, spans, total_sums
from adaptinf.audit.simulation.measures import SHOWN, BlockSums, Key, add_runs, hypertext, plain, table_rows
from adaptinf.designs.base import Design
from adaptinf.designs.run_results import Replications
from adaptinf.parameters import COUNT, check, check_alpha
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import BLOCK, seed_sequence
from adaptinf.texts import visible_lines
from adaptinf.typing import FloatArray, RandomSource

# Estimates, lower limits and upper limits of many runs come as arrays of shape (runs, terms), because one
# call per run would be slow.
Intervals: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]
ArrayFit: TypeAlias = "Callable[[Replications], Mapping[str, Intervals]]"


@dataclass(frozen=True, slots=True)
class Coverage:
    """Coverage, bias and width of an analysis over simulated trials.

    Attributes
    ----------
    frame : DataFrame
        One row per analysis and term, with the columns of `Study.frame`, beginning with `analysis`.
    alpha : float
        One minus the nominal confidence level.
    design, environment : str
        The simulated design and environment.
    horizon, replications : int
        Rounds of a trial and number of trials.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.BernoulliArms([0.4, 0.6])
    >>> fit = lambda log: ai.ArmMeans(log).fit()
    >>> found = ai.audit.coverage(ai.designs.Uniform(), arms, fit, horizon=100, replications=64, rng=0)
    >>> found.frame[["term", "truth", "runs"]].to_dict("list")
    {'term': ['0', '1'], 'truth': [0.4, 0.6], 'runs': [64, 64]}
    """

    frame: pd.DataFrame
    alpha: float
    design: str
    environment: str
    horizon: int
    replications: int

    @property
    def _head(self) -> str:
        trials = (
            f"{self.horizon:,} rounds, {self.replications:,} replications, nominal coverage "
            f"{1.0 - self.alpha:g}"
        )
        return visible_lines([f"{self.design} in {self.environment}", trials])

    @property
    def _shown(self) -> pd.DataFrame:
        return self.frame[["analysis", "term", "truth", *SHOWN]]

    def __str__(self) -> str:
        return plain(self._shown, self._head.splitlines(), [], once=("analysis", "runs", "missing"))

    def _repr_html_(self) -> str:
        return hypertext(self._shown, self._head.replace("\n", "; "), [])


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
    """Coverage, bias and width of an analysis under a design, over simulated logs.

    Parameters
    ----------
    design : Design
        The design that collects the data.
    env : Environment
        An environment with known truth.
    fit : callable
        A function of an AdaptiveLog that returns a result, or a dict of results by name.
    horizon : int
        Rounds per trial.
    replications : int
        Number of trials.
    rng : int, SeedSequence, Generator or None
        Source of randomness; trial r depends on (rng, r) alone.
    alpha : float
        One minus the nominal confidence level, between 0 and 0.5.
    n_jobs : int
        Number of worker processes; it does not affect the results.

    Returns
    -------
    Coverage
        A result with a max-information correction has a second row for the corrected interval.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or an estimand's true value is unknown.

    Notes
    -----
    No data frame is built for a simulated log. Coverage is computed over the trials with an interval; the
    others are counted.

    Examples
    --------
    >>> import adaptinf as ai
    >>> env = ai.environments.BernoulliArms([0.3, 0.6])
    >>> design = ai.designs.Uniform()
    >>> result = ai.audit.coverage(design, env, lambda log: ai.ArmMeans(log).fit(), 100, 64, rng=0)
    >>> result.frame["term"].tolist()
    ['0', '1']
    """
    root = _root(replications, rng, alpha)
    cell = LogCell((repr(design), repr(env)), design, env, horizon, {"": fit}, alpha, root, regret=True)
    return _simulate(cell, design, env, horizon, replications, alpha, n_jobs)


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
    """Compute `coverage` for an analysis that needs only sums: runs are analysed together and not stored.

    Parameters
    ----------
    design, env : Design, Environment
        The design that collects the data, and its environment.
    fit : callable
        A function of `Replications` that returns, by name, estimates and limits of shape (runs, terms).
    truth : array_like of shape (terms,)
        True values.
    horizon, replications : int
        Rounds of a trial and number of trials.
    rng : int, SeedSequence, Generator or None
        Source of randomness; trial r depends on (rng, r) alone. The trial is the same as trial r of
        `coverage` only if the design has no shortcut for replication.
    alpha : float
        One minus the nominal level that `fit` uses, between 0 and 0.5.
    n_jobs : int
        Number of worker processes; it does not affect the results.

    Returns
    -------
    Coverage

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.BernoulliArms([0.4, 0.6])
    >>> def normal_intervals(runs):
    ...     error = (runs.means * (1.0 - runs.means) / runs.pulls) ** 0.5
    ...     return {"normal": (runs.means, runs.means - 1.96 * error, runs.means + 1.96 * error)}
    >>> found = ai.audit.coverage_from_tallies(
    ...     ai.designs.Uniform(), arms, normal_intervals, [0.4, 0.6], horizon=400, replications=6_400, rng=0
    ... )
    >>> found.frame["coverage"].round(2).tolist()
    [0.94, 0.95]
    """
    root = _root(replications, rng, alpha)
    values = np.atleast_1d(np.asarray(truth, dtype=np.float64))
    labels = [str(label) for label in (env.features or env.arms)]
    terms = labels if len(labels) == values.size else [str(code) for code in range(values.size)]
    cell = _TallyCell(design, env, horizon, fit, tuple(zip(terms, values.tolist(), strict=True)), root)
    return _simulate(cell, design, env, horizon, replications, alpha, n_jobs)


@dataclass(frozen=True, eq=False)
class _TallyCell:
    """An analysis of sums for many runs at once, in which each term has a name and a true value."""

    design: Design
    env: Environment
    horizon: int
    fit: ArrayFit
    terms: tuple[tuple[str, float], ...]
    root: np.random.SeedSequence

    def chunk(self, start: int, stop: int, keep: bool) -> Chunk:
        chunk = Chunk(start, stop)
        sims = self.design.replicate(self.env, self.horizon, stop, self.root, start=start)
        fits = self.fit(sims)
        for first, last in spans(stop - start, BLOCK):
            sums = BlockSums()
            sums.add_regret(sims.regret[first:last])
            for name, numbers in fits.items():
                keys = [Key(name, term, value, None) for term, value in self.terms]
                add_runs(sums, keys, *(part[first:last] for part in numbers))
            chunk.blocks.append(sums)
        return chunk


def _root(replications: Any, rng: RandomSource | None, alpha: float) -> np.random.SeedSequence:
    check_alpha("coverage", alpha)
    check("coverage", replications=(replications, COUNT))
    return seed_sequence(rng)


def _simulate(
    cell: Simulated,
    design: Design,
    env: Environment,
    horizon: int,
    replications: int,
    alpha: float,
    n_jobs: int,
) -> Coverage:
    design._check(env, horizon, replications, None, 0, n_jobs)
    [chunks] = gathered([cell], replications, n_jobs)
    frame = pd.DataFrame(table_rows(total_sums(chunks)))
    return Coverage(frame, alpha, repr(design), repr(env), int(horizon), int(replications))
