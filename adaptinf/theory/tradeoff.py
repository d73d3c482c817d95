"""The trade-off between estimation and regret: a design's error times its regret, divided by M."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.errors import ParameterError
from adaptinf.parameters import number_array, refuse
from adaptinf.typing import FloatArray, IntArray


class Simulations(Protocol):
    """What `frontier` needs from many runs; ``replicate`` returns such an object for ConSE and DPConSE."""

    @property
    def regret(self) -> FloatArray:
        """Regret of each run, shape (runs,)."""

    @property
    def truth(self) -> FloatArray:
        """True means, shape (features, 2)."""

    def phase_tallies(self, phase: str, randomised: bool | None = None) -> FloatArray:
        """Counts, sums and squares of a phase's rewards, shape (runs, features, 2, 3)."""


@dataclass(frozen=True, slots=True)
class Frontier:
    """Error, regret and their product over many runs, with Monte Carlo standard errors.

    Attributes
    ----------
    errors, error_ses : ndarray of shape (features,)
        Mean squared error of each feature's estimate, over the runs with an estimate, and its standard error.
    worst : int
        Position of the feature with the largest error.
    error, error_se : float
        The largest error of a feature, and its standard error.
    regret, regret_se : float
        Mean regret and its standard error.
    product, product_se : float
        error * regret / features, and its standard error, which accounts for the covariance between a run's
        squared error and its regret, but not for selecting the worst feature from the same runs.
    undefined : ndarray of int, shape (features,)
        Number of runs without an estimate, whose error cannot be computed because an arm has no pulls or a
        released count is too small.
    runs : int
        Number of runs.

    Examples
    --------
    >>> import adaptinf as ai
    >>> env = ai.environments.FiniteContext([0.5, 0.5], [[0.4, 0.7], [0.6, 0.3]])
    >>> sims = ai.designs.ConSE(alpha=0.2).replicate(env, 20_000, 64, rng=0)
    >>> point = ai.theory.frontier(sims)
    >>> point.runs, point.product > 0.0
    (64, True)
    """

    errors: FloatArray
    error_ses: FloatArray
    worst: int
    error: float
    error_se: float
    regret: float
    regret_se: float
    product: float
    product_se: float
    undefined: IntArray
    runs: int


def frontier(sims: Simulations, estimates: ArrayLike | None = None) -> Frontier:
    """Largest mean squared error of an effect, times mean regret, divided by the number of features.

    Parameters
    ----------
    sims : Simulations
        Many runs of ConSE or DPConSE, from ``replicate``.
    estimates : array_like of shape (runs, features), optional
        Estimates of the effects in each run, or NaN if there is no estimate; by default, those of
        `difference_in_means`. The estimates that DPConSE releases are an alternative.

    Returns
    -------
    Frontier
        Error, regret and product with standard errors, and the number of runs without an estimate.

    Raises
    ------
    ParameterError
        If there are fewer than two runs, the shapes are inconsistent, an estimate is infinite, or a feature
        has fewer than two runs with an estimate.

    Notes
    -----
    The paper shows that no design can keep the product of error and regret below the order of M on every
    instance, and that ConSE attains this order for every alpha. As in the paper, the maximum over features is
    taken over mean squared errors, not within each run.

    References
    ----------
    Li, J., Shi, K. and Simchi-Levi, D. (2024). Privacy preserving adaptive experiment design. ICML.

    Examples
    --------
    >>> import adaptinf as ai
    >>> env = ai.environments.FiniteContext([0.5, 0.5], [[0.4, 0.7], [0.6, 0.3]])
    >>> sims = ai.designs.ConSE(alpha=0.2).replicate(env, 20_000, 640, rng=0)
    >>> point = ai.theory.frontier(sims)
    >>> print(round(point.product, 2), point.undefined)
    0.38 [0 0]
    """
    _refuse_others("frontier", sims)
    values = difference_in_means(sims) if estimates is None else _estimates(estimates)
    regret = np.asarray(sims.regret, dtype=np.float64)
    effects = sims.truth[:, 1] - sims.truth[:, 0]
    runs, features = regret.size, effects.size
    problems = [] if runs >= 2 else [f"at least two runs are needed, got {runs}"]
    if values.shape != (runs, features):
        problems.append(f"estimates must have shape ({runs}, {features}), got {values.shape}")
    elif np.isinf(values).any():
        problems.append("estimates must be finite, or NaN if there is none")
    else:
        few = np.flatnonzero((~np.isnan(values)).sum(axis=0) < 2)
        problems += [f"feature {feature} has fewer than two runs with an estimate" for feature in few]
    refuse("frontier", problems)
    return _frontier(np.square(values - effects), regret)


def difference_in_means(sims: Simulations) -> FloatArray:
    """Differences in means over the randomised arrivals of the second half.

    Parameters
    ----------
    sims : Simulations
        The results of many runs of ConSE or DPConSE.

    Returns
    -------
    ndarray of shape (runs, features)
        Mean of arm 1 minus mean of arm 0; NaN if an arm was not pulled.

    Raises
    ------
    ParameterError
        If the runs are not those of a design with such a second half.

    Examples
    --------
    >>> import adaptinf as ai
    >>> env = ai.environments.FiniteContext([0.5, 0.5], [[0.4, 0.7], [0.6, 0.3]])
    >>> sims = ai.designs.ConSE(alpha=0.2).replicate(env, 20_000, 640, rng=0)
    >>> ai.theory.difference_in_means(sims).mean(axis=0).round(2)
    array([ 0.3, -0.3])
    """
    _refuse_others("difference_in_means", sims)
    tallies = sims.phase_tallies("estimation", randomised=True)
    pulls, sums = tallies[..., 0], tallies[..., 1]
    means = np.divide(sums, pulls, out=np.full(pulls.shape, np.nan), where=pulls > 0.0)
    return np.asarray(means[..., 1] - means[..., 0], dtype=np.float64)


def _refuse_others(subject: str, sims: Any) -> None:
    if not hasattr(sims, "phase_tallies"):
        refuse(subject, [f"sims must be the result of replicate for ConSE or DPConSE, got {sims!r:.60}"])


def _estimates(estimates: ArrayLike) -> FloatArray:
    array = number_array(estimates)
    if array is None:
        raise ParameterError("frontier", [f"estimates must be numbers, got {estimates!r:.60}"])
    return array


def _frontier(squares: FloatArray, regret: FloatArray) -> Frontier:
    """The frontier computed from squared errors, shape (runs, features), NaN if there is no estimate."""
    runs, features = squares.shape
    known = ~np.isnan(squares)
    errors = np.nanmean(squares, axis=0)
    # A run without an estimate has no influence on the mean, which is over the runs that have one.
    influence = np.where(known, squares - errors, 0.0) / known.mean(axis=0)
    worst = int(np.argmax(errors))
    error, mean = float(errors[worst]), float(regret.mean())
    on_product = (influence[:, worst] * mean + error * (regret - mean)) / features
    scale = 1.0 / math.sqrt(runs * (runs - 1.0))
    return Frontier(
        errors=errors,
        error_ses=scale * np.sqrt(np.square(influence).sum(axis=0)),
        worst=worst,
        error=error,
        error_se=scale * float(np.linalg.norm(influence[:, worst])),
        regret=mean,
        regret_se=scale * float(np.linalg.norm(regret - mean)),
        product=error * mean / features,
        product_se=scale * float(np.linalg.norm(on_product)),
        undefined=(~known).sum(axis=0),
        runs=runs,
    )
