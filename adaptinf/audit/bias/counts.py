"""Whether a design's arm counts settle: what decides if its sample means are normal.

References
----------
Lai, Wei (1982), "Least squares estimates in stochastic regression models with applications to identification
and control of dynamic systems".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.audit.rerun.rebuild import design_of
from adaptinf.designs.base_design import Design
from adaptinf.errors import ParameterError
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import Count
from adaptinf.simulation.environments import Environment
from adaptinf.texts import frame_text
from adaptinf.typing import FloatArray, RandomSource

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class CountStability:
    """Spread of re-simulated arm counts.

    Attributes
    ----------
    frame : DataFrame
        One row per arm: arm, mean, median, sd, and variation, the standard deviation over the median.
    variation : float
        The largest over the arms; infinite where an arm has a median of 0.
    horizon, replications : int
        Rounds of a run, and runs.

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
    """Re-simulate a design, and measure how much its arm counts vary from run to run.

    Parameters
    ----------
    design : Design or AdaptiveLog
        The design, or a log that names it with its parameters.
    env : Environment
        An assumed truth, with the arms of the log where one is given. Counts vary most where arms are
        equally good: try that one too.
    horizon : int, optional
        Rounds of a run; by default those of the log.
    replications : int
        Runs, at least 2.
    rng : int, SeedSequence, Generator or None
        Source of randomness.
    n_jobs : int
        Worker processes, -1 for all cores.

    Returns
    -------
    CountStability
        For `recommend`, as ``stability=``.

    Raises
    ------
    ParameterError
        Listing what is wrong.

    Notes
    -----
    A design is stable where each count, over constants of its own, tends to 1 in probability; sample means
    are then asymptotically normal. A coefficient of variation that falls towards 0 as the horizon grows says
    so for one environment. The median takes the place of the unknown constants.

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
        problems.append(
            f"the environment's arms are {env.arms!r:.200}, those of the log {design.arms!r:.200}"
        )
    if horizon is None and isinstance(design, AdaptiveLog):
        horizon = design.n_rounds
    if horizon is None:
        problems.append("give horizon=, the rounds of a run")
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
