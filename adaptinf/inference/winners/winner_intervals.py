"""Intervals for the best of several estimates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from adaptinf.claims.arms.winners import TIED
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.inference.arms.facts.weighted_facts import COMMON
from adaptinf.inference.inputs.rounds import round_mask
from adaptinf.inference.results import Results
from adaptinf.inference.scores.joint_levels import JOINT
from adaptinf.inference.winners.contest import (
    Contest,
    asked_of,
    comparison_problems,
    noise_problems,
    variance_problems,
)
from adaptinf.inference.winners.winner_law import METHODS, NEAR, WinnerLaw
from adaptinf.inference.winners.winner_results import WinnerInterval
from adaptinf.parameters import COUNT, OneOf, alpha_problems, number_array, refuse
from adaptinf.sums import NEEDS_ROWS, Sums
from adaptinf.typing import BoolArray, FloatArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog


_LEAST_NOISE = 0.05


def winner_interval(
    estimates: ArrayLike,
    covariance: ArrayLike,
    alpha: float = 0.05,
    method: str = "hybrid",
    *,
    labels: Sequence[Any] | None = None,
    control: Any = None,
    runner_up: bool = False,
    noise: ArrayLike | None = None,
    winner: Any = None,
) -> WinnerInterval:
    """Compute an interval for the highest of several normal estimates, or for its lead over another.

    The estimate is selected by the estimates themselves. The other estimate is that of a control, or the
    second highest.

    Parameters
    ----------
    estimates : array_like of shape (k,)
        Estimates that are jointly normal around their targets, such as AIPW means of arms.
    covariance : array_like of shape (k, k)
        The covariance of the estimates, which is treated as known.
    alpha : float
        One minus the confidence level, between 0 and 0.5.
    method : {"hybrid", "conditional", "projection"}
        The conditional interval has the stated level given which arm won, and infinite expected length. The
        projection is the winner's part of a simultaneous interval. The hybrid is a conditional interval
        within a projection at level 1 - alpha / 10, and is never much wider than either of the two.
    labels : sequence, optional
        Names of the estimates; by default their positions.
    control : label, optional
        The arm that is excluded from the selection, and with which the highest of the others is compared.
    runner_up : bool
        Whether to compare the highest estimate with the second highest.
    noise : float or array_like of shape (k,), optional
        The scale, or scales, of the Laplace noise, if the winner was selected by released estimates that
        contain such noise.
    winner : label, optional
        With `noise`, the arm with the highest released estimate.

    Returns
    -------
    WinnerInterval

    Raises
    ------
    ParameterError
        If arguments are inconsistent (the message lists every problem), numbers are not finite, the matrix is
        not a covariance, or a comparison has zero variance.

    Notes
    -----
    Let X be normal with mean theta and covariance Sigma, w the winner, and g = Sigma_w / Sigma_ww. The
    estimate X_w is independent of Z = X - g X_w. Arm w wins if X_w is at least Z_k / (1 - g_k) for every k
    with g_k < 1, and at most this value for every k with g_k > 1. Given Z, X_w therefore has a truncated
    normal distribution, which is inverted for theta_w. The hybrid interval also conditions on X_w being
    within c of theta_w, where c is the simultaneous critical value at level beta = alpha / 10, and uses level
    (alpha - beta) / (1 - beta). Coverage is at least nominal for normal estimates with known covariance, and
    exact for the conditional interval. Simultaneous critical values are those of Šidák, which are exact for
    independent estimates and conservative otherwise.

    A difference D = X_w - X_c from a control is treated in the same way. Given Z = X - (Sigma d / d'Sigma d)
    D, where d contains the coefficients of D, the limits between which D lies follow from the event that w is
    the highest apart from the control. For the difference D = X_w - X_r from the runner-up, they also follow
    from the order of the first two arms, and from the event that the second is ahead of the rest. The
    simultaneous critical values are for k - 1 differences from a control, or for k (k - 1) / 2 pairs.

    With `noise`, the truncation is replaced by the probability, given the estimates, that w wins. For two
    arms with noise of scale b and d = X_w - X_k, it is 1 - exp(-d / b) (2 + d / b) / 4 if d >= 0, and one
    minus the value at -d otherwise. For more arms, it is an integral over the winner's noise. The noise must
    have been added to these estimates for the selection, but must not be part of them.

    If the two highest estimates are equal, the choice between them was made by other means, so the projection
    is used.

    References
    ----------
    Andrews, I., Kitagawa, T. and McCloskey, A. (2024). Inference on winners. Quarterly Journal of Economics.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.BernoulliArms([0.30, 0.32, 0.35])
    >>> log = ai.designs.EpsilonGreedy(exploration=0.3).run(arms, horizon=3_000, rng=0)
    >>> means = ai.ArmMeans(log).fit("aipw")
    >>> found = ai.winner_interval(means.params, means.covariance, labels=log.arms)
    >>> found.winner, found.low < 0.35 < found.high
    (2, True)
    """
    x, sigma, names = _read(estimates, covariance, alpha, method, labels)
    problems = comparison_problems(names, control, runner_up)
    refuse("winner_interval", problems + noise_problems(names, noise, winner, control, runner_up))
    contest = asked_of(x, names, control, runner_up, winner)
    refuse("winner_interval", variance_problems(sigma, contest))
    scales = None if noise is None else np.broadcast_to(np.asarray(noise, dtype=np.float64), x.shape)
    refuse("winner_interval", _small_noise_problems(scales, sigma, contest))
    law = WinnerLaw.of(x, sigma, method, contest, scales)
    (low, high), usual = law.interval(math.log(alpha))[0], -float(ndtri(0.5 * alpha)) * law.scale
    estimate = float(contest.direction @ x)
    return WinnerInterval(
        winner=names[contest.won],
        against=None if contest.against is None else names[contest.against],
        estimate=estimate,
        std_error=law.scale,
        median_unbiased=law.median,
        low=float(low),
        high=float(high),
        naive=(estimate - usual, estimate + usual),
        method=law.method,
        alpha=float(alpha),
        note=TIED(near=NEAR) if law.tied else "",
    )


def _small_noise_problems(noise: FloatArray | None, sigma: FloatArray, contest: Contest) -> list[str]:
    """A problem if noise is so small that the probability of selection is a step function of the estimate."""
    direction = contest.direction
    if noise is None or noise.min() >= _LEAST_NOISE * math.sqrt(float(direction @ sigma @ direction)):
        return []
    return [
        f"noise must be at least {_LEAST_NOISE:g} standard errors: smaller noise does not affect the choice"
    ]


def _read(
    estimates: Any, covariance: Any, alpha: Any, method: Any, labels: Any
) -> tuple[FloatArray, FloatArray, list[Any]]:
    """The estimates, their covariance and their names, after checks."""
    problems = alpha_problems(alpha) + OneOf(*METHODS)("method", method)
    x, sigma = number_array(estimates), number_array(covariance)
    if x is None or x.ndim != 1 or x.size == 0 or not np.isfinite(x).all():
        problems.append(f"estimates must be a list of finite numbers, got {estimates!r:.60}")
        x = None
    if sigma is None or sigma.ndim != 2 or sigma.shape[0] != sigma.shape[1] or not np.isfinite(sigma).all():
        problems.append("covariance must be a square matrix of finite numbers")
    elif x is not None and sigma.shape[0] != x.size:
        problems.append(f"covariance must be of shape {(x.size, x.size)}, got {sigma.shape}")
    else:
        problems += _covariance_problems(sigma)
    if labels is not None and x is not None and len(list(labels)) != x.size:
        problems.append(f"labels must be a list of {x.size} names, got {len(list(labels))}")
    refuse("winner_interval", problems)
    assert x is not None
    assert sigma is not None
    return x, sigma, list(range(x.size)) if labels is None else list(labels)


def _covariance_problems(sigma: FloatArray) -> list[str]:
    """Reasons why a square matrix cannot be the covariance of estimates; sigma (k, k)."""
    scale = np.sqrt(np.abs(np.diagonal(sigma)))
    if not (np.diagonal(sigma) > 0.0).all():
        return ["covariance must have positive variances"]
    correlation = sigma / np.outer(scale, scale)
    if np.abs(correlation - correlation.T).max() > 1e-8:
        return ["covariance must be symmetric"]
    if np.linalg.eigvalsh(correlation).min() < -1e-8:
        return ["covariance must have no negative eigenvalue"]
    return []


_SUBJECT = "Winner.fit(held_out=)"


def last_rounds(log: AdaptiveLog | Sums, held_out: Any) -> BoolArray:
    """The held-out rounds, shape (T,), given as a number of final batches or a mask of the last rounds."""
    if isinstance(log, Sums):
        raise InvalidForLog(_SUBJECT, NEEDS_ROWS, ["ArmMeans of Sums of the last batches"])
    if isinstance(held_out, str) or np.ndim(held_out) > 0:
        keep = round_mask(_SUBJECT, log, held_out)
        assert keep is not None
        if keep.all() or not keep[int(np.argmax(keep)) :].all():
            problem = (
                "held_out must select the last rounds, but not all rounds: the remaining ones determine the "
                "winner"
            )
            raise ParameterError(_SUBJECT, [problem])
        return keep
    refuse(_SUBJECT, COUNT("held_out", held_out))
    batch = log.arrays.batch
    if batch is None:
        raise InvalidForLog(
            _SUBJECT,
            "the log has no batches, so held_out cannot be a number of batches",
            ["a mask of the last rounds"],
        )
    batches = int(batch[-1]) + 1
    if held_out >= batches:
        raise ParameterError(
            _SUBJECT, [f"held_out must leave at least one of the {batches} batches, got {held_out!r}"]
        )
    return np.asarray(batch >= batches - held_out)


def later_results(
    log: AdaptiveLog, contest: Contest, arms: tuple[Any, ...], keep: BoolArray, **options: Any
) -> Results:
    """The winner's ordinary results from the held-out rounds; keep has shape (T,)."""
    if contest.against is None:
        return ArmMeans(log, [arms[contest.won]], rounds=keep).fit(**options)
    # Weights shared by all arms are, for a pair, those shared by both.
    shared = {"weights": COMMON} if options.get("weights") == JOINT else {}
    pair = Contrast(log, treatment=arms[contest.won], control=arms[contest.against], rounds=keep)
    return pair.fit(**{**options, **shared})
