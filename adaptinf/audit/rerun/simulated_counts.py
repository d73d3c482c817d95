"""Uses of a design's simulated arm counts: a check of their stability, and the ridge of W-decorrelation.

References
----------
Lai, Wei (1982), "Least squares estimates in stochastic regression models with applications to identification
and control of dynamic systems".

Deshpande, Mackey, Syrgkanis, Taddy (2018), "Accurate inference for adaptive linear models".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.audit.rerun.logged_rows import design_of
from adaptinf.designs.base import Design
from adaptinf.errors import ParameterError
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import COUNT, SEED, UNIT, Count, Is, OrNone, check
from adaptinf.simulation.environments import Environment
from adaptinf.texts import frame_text
from adaptinf.typing import FloatArray, RandomSource

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class CountStability:
    """Spread of simulated arm counts.

    Attributes
    ----------
    frame : DataFrame
        One row per arm: arm, mean, median, sd, and variation, the standard deviation divided by the median.
    variation : float
        The largest variation over the arms; infinite if an arm has a median of 0.
    horizon, replications : int
        Rounds per run, and number of runs.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.BernoulliArms([0.4, 0.6])
    >>> found = ai.audit.stability(ai.designs.UCB(), arms, 500, 200, rng=0)
    >>> list(found.frame.columns), found.variation < 1.0
    (['arm', 'mean', 'median', 'sd', 'variation'], True)
    """

    frame: pd.DataFrame
    variation: float
    horizon: int
    replications: int

    def __str__(self) -> str:
        head = f"Arm counts over {self.replications} runs of {self.horizon} rounds"
        return f"{head}: largest variation {self.variation:.1%}\n{frame_text(self.frame)}"


def stability(
    design: Design | AdaptiveLog,
    env: Environment,
    horizon: int | None = None,
    replications: int = 1000,
    rng: RandomSource | None = None,
    n_jobs: int = 1,
) -> CountStability:
    """Simulate a design again, and measure how much its arm counts vary from run to run.

    Parameters
    ----------
    design : Design or AdaptiveLog
        The design, or a log that names it with its parameters.
    env : Environment
        An assumed truth, with the arms of the log if one is given. Counts vary most if arms are equally good,
        so also try such an environment.
    horizon : int, optional
        Number of rounds of a run; by default, that of the log.
    replications : int
        Number of runs, at least 2.
    rng : int, SeedSequence, Generator or None
        Source of randomness.
    n_jobs : int
        Worker processes, -1 for all cores.

    Returns
    -------
    CountStability
        The result, which can be passed to `recommend` as ``stability=``.

    Raises
    ------
    ParameterError
        If an argument is invalid; the message lists every problem.

    Notes
    -----
    A design is stable if each count, divided by a suitable constant, tends to 1 in probability; sample means
    are then asymptotically normal. A coefficient of variation that decreases towards 0 as the horizon grows
    indicates stability in one environment. The median replaces the unknown constants.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.BernoulliArms([0.5, 0.5])
    >>> found = ai.audit.stability(ai.designs.Uniform(), arms, 1000, 500, rng=0)
    >>> found.variation < 0.05
    True
    """
    problems = Count(2)("replications", replications)
    given = design_of(design, problems)
    if isinstance(design, AdaptiveLog) and set(getattr(env, "arms", design.arms)) != set(design.arms):
        problems.append(f"the environment has arms {env.arms!r:.200}, but the log has {design.arms!r:.200}")
    if horizon is None and isinstance(design, AdaptiveLog):
        horizon = design.n_rounds
    if horizon is None:
        problems.append("pass horizon=, the number of rounds in a run")
    if problems or given is None or horizon is None:
        raise ParameterError("stability", problems)
    counts = given.replicate(env, horizon, replications, rng, n_jobs).pulls
    by_arm = counts if counts.ndim == 2 else counts.sum(axis=1)
    return _summary(by_arm, env.arms, horizon)


def _summary(counts: FloatArray, arms: Any, horizon: int) -> CountStability:
    import pandas as pd

    median, spread = np.median(counts, axis=0), counts.std(axis=0, ddof=1)
    variation = np.full(len(median), math.inf)
    np.divide(spread, median, out=variation, where=median > 0.0)
    frame = pd.DataFrame(
        {
            "arm": list(arms),
            "mean": counts.mean(axis=0),
            "median": median,
            "sd": spread,
            "variation": variation,
        }
    )
    return CountStability(frame, float(variation.max()), int(horizon), len(counts))


@dataclass(frozen=True, eq=False)
class DecorrelationRidge:
    """A ridge for W-decorrelation that was chosen without looking at the data.

    Attributes
    ----------
    ridge : float
        Value for ``ridge=``: the quantile divided by the log of the number of rounds.
    eigenvalue : float
        Quantile of the smallest eigenvalue of X'X.
    eigenvalues : ndarray, shape (replications,)
        The simulated eigenvalues.
    quantile : float
        Level of the quantile.
    horizon : int
        Rounds per experiment.

    Examples
    --------
    >>> import adaptinf as ai
    >>> env = ai.environments.LinearArms([[0.6, 0.2], [0.1, 0.7]], contexts="orthant", rewards="bernoulli")
    >>> found = ai.audit.decorrelation_ridge(ai.designs.LinUCB(), env, 100, 64, rng=0)
    >>> found.horizon, found.ridge > 1.0
    (100, True)
    """

    ridge: float
    eigenvalue: float
    eigenvalues: FloatArray
    quantile: float
    horizon: int

    def __str__(self) -> str:
        return (
            f"Ridge {self.ridge:.4g}: the {self.quantile:g} quantile of the smallest eigenvalue, "
            f"{self.eigenvalue:.4g}, in {len(self.eigenvalues)} simulated experiments of {self.horizon} "
            f"rounds, divided by log {self.horizon}"
        )


def decorrelation_ridge(
    design: Design,
    env: Environment,
    horizon: int,
    replications: int = 1000,
    quantile: float = 0.05,
    *,
    matrix: Callable[[AdaptiveLog], Any] | None = None,
    rng: RandomSource | None = None,
) -> DecorrelationRidge:
    """Choose the ridge of W-decorrelation before seeing the data.

    Parameters
    ----------
    design : Design
        The design that will collect, or has collected, the data.
    env : Environment
        An assumed truth. The eigenvalue is smallest if an arm is abandoned early, so an environment with a
        large gap is the conservative choice.
    horizon : int
        Rounds per experiment, at least 2.
    replications : int
        Simulated experiments.
    quantile : float
        Quantile of the smallest eigenvalue of X'X, between 0 and 1.
    matrix : callable, optional
        A function that maps a log to the matrix X of the regression, shape (T, d). By default, X has one
        indicator column per arm, and its smallest eigenvalue is the smallest number of pulls.
    rng : int, SeedSequence, Generator or None
        Source of randomness.

    Returns
    -------
    DecorrelationRidge

    Raises
    ------
    ParameterError
        If an argument is invalid (the message lists every problem), or the quantile is 0 because the columns
        are linearly dependent in too many experiments.

    Notes
    -----
    The bias that W-decorrelation leaves is small if the smallest eigenvalue of X'X exceeds lambda log T with
    probability near 1; the variance increases as lambda decreases. Lambda is therefore a low quantile of that
    eigenvalue, divided by log T. The value is valid for the regression whose matrix was given, in its units.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.BernoulliArms([0.5, 0.6])
    >>> found = ai.audit.decorrelation_ridge(ai.designs.EpsilonGreedy(exploration=0.2), arms, 500, 200, rng=0)
    >>> 5.0 < found.ridge < 10.0
    True
    """
    check(
        "decorrelation_ridge",
        horizon=(horizon, Count(2)),
        replications=(replications, COUNT),
        quantile=(quantile, UNIT),
        rng=(rng, SEED),
        design=(design, Is(Design, "a design")),
        matrix=(matrix, OrNone(Is(callable, "a function of a log"))),
    )
    if matrix is None:
        pulls = design.replicate(env, horizon, replications, rng).pulls
        values = (pulls if pulls.ndim == 2 else pulls.sum(axis=1)).min(axis=1).astype(np.float64)
    else:
        logs = design.logs(env, horizon, replications, rng)
        values = np.array([_smallest(matrix(log), horizon) for log in logs])
    eigenvalue = float(np.quantile(values, quantile, method="lower"))
    if not eigenvalue > 0.0:
        raise ParameterError(
            "decorrelation_ridge",
            [
                f"in {np.mean(values <= 0.0):.1%} of the experiments the columns are linearly dependent, "
                f"and the {quantile:g} quantile of the smallest eigenvalue is 0: explore more, or drop "
                "columns"
            ],
        )
    return DecorrelationRidge(
        eigenvalue / math.log(horizon), eigenvalue, values, float(quantile), int(horizon)
    )


def _smallest(rows: Any, horizon: int) -> float:
    """Smallest eigenvalue of X'X; 0 if it is only rounding error."""
    x = np.asarray(rows, dtype=np.float64)
    if x.ndim != 2 or len(x) != horizon or x.shape[1] == 0 or not np.all(np.isfinite(x)):
        problem = f"matrix must return finite numbers of shape ({horizon}, columns), returned {x.shape}"
        raise ParameterError("decorrelation_ridge", [problem])
    if x.shape[1] > horizon:
        return 0.0
    # Squared singular values of X are more accurate than the eigenvalues of X'X, whose formation loses
    # digits.
    values = np.linalg.svd(np.linalg.qr(x, mode="r"), compute_uv=False)
    return float(values[-1]) ** 2 if values[-1] > 1e-10 * values[0] else 0.0
