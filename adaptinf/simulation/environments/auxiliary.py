"""A log from elsewhere that may inform a trial, together with the privacy under which it reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.parameters import POSITIVE, number_array, refuse
from adaptinf.simulation.environment import Environment
from adaptinf.simulation.environments.frames import listed_rows
from adaptinf.typing import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class AuxiliaryLog:
    """A log whose participants report to a locally private trial before it begins.

    Parameters
    ----------
    log : AdaptiveLog
        Their contexts (all of the log's context columns, in their order), arms and rewards.
    epsilon : float
        Privacy parameter of their reports.

    Raises
    ------
    ParameterError
        If there are no contexts, or some are not numbers or lie outside [0, 1]^d; if rewards lie outside
        [0, 1]; or if epsilon is not positive.

    Notes
    -----
    Contexts must have been brought into the cube by the scaling of the trial, fixed beforehand (`UnitCube`).
    A trial takes the log only where both have the same arms in the same order, the same context columns in
    the same order, and the same reward range.

    Examples
    --------
    >>> import adaptinf as ai
    >>> env = ai.environments.SmoothArms(n_arms=3, dimension=1)
    >>> earlier = ai.designs.Uniform().run(env, horizon=500, rng=0)
    >>> auxiliary = ai.environments.AuxiliaryLog(earlier, epsilon=2.0)
    >>> design = ai.designs.LDPBandit(epsilon=1.0, auxiliary=(auxiliary,))
    >>> design.traits.auxiliary
    (2.0,)
    """

    log: AdaptiveLog
    epsilon: float

    def __post_init__(self) -> None:
        given: Any = self.log
        problems = POSITIVE("epsilon", self.epsilon)
        if not isinstance(given, AdaptiveLog):
            problems.append(f"log must be an AdaptiveLog, got {type(given).__name__}")
        elif not given.context:
            problems.append("the log must have context columns")
        else:
            problems += _context_problems(given)
            reward = given.arrays.reward
            wrong = np.flatnonzero(~((reward >= 0.0) & (reward <= 1.0)))
            if wrong.size:
                problems.append(
                    f"rewards must lie in [0, 1], {wrong.size} do not, in {listed_rows(wrong)}: rescale them "
                    "as those of the trial, by constants that are fixed beforehand"
                )
        refuse("AuxiliaryLog", problems)

    @property
    def contexts(self) -> FloatArray:
        """Contexts, shape (rounds, dimension)."""
        columns = self.log.arrays.context
        return np.stack([np.asarray(columns[name], dtype=np.float64) for name in self.log.context], axis=1)

    def mismatches(self, environment: Environment) -> list[str]:
        """Why the log cannot inform a trial in an environment, and what to do about it."""
        problems = []
        names = environment.vector_names[: environment.dimension]
        if self.log.arms != environment.arms:
            problems.append(
                f"its arms are {list(self.log.arms)}, those of the trial {list(environment.arms)}: the log "
                "must have the same ones in the same order, arms="
            )
        if len(self.log.context) != environment.dimension:
            problems.append(
                f"its contexts have {len(self.log.context)} coordinates, those of the trial "
                f"{environment.dimension}: give the log the columns that the trial has, context="
            )
        elif self.log.context != names:
            problems.append(
                f"its contexts are {', '.join(self.log.context)}, those of the trial {', '.join(names)}: "
                "coordinates must mean the same, rename and order the columns"
            )
        if self.log.reward_range is not None and self.log.reward_range != environment.reward_range:
            problems.append(
                f"its rewards have the range {self.log.reward_range}, those of the trial "
                f"{environment.reward_range}: rescale both by the same constants, reward_range="
            )
        return problems


def _context_problems(log: AdaptiveLog) -> list[str]:
    """Context columns that are not coordinates of points in the unit cube."""
    columns = {name: number_array(values) for name, values in log.arrays.context.items()}
    textual = [name for name, values in columns.items() if values is None]
    problems = []
    if textual:
        problems.append(f"contexts must be numbers, these columns are not: {', '.join(map(repr, textual))}")
    for name, values in columns.items():
        if values is None:
            continue
        outside = np.flatnonzero(~((values >= 0.0) & (values <= 1.0)))
        if outside.size:
            problems.append(
                f"contexts must lie in [0, 1]^{len(columns)}, {outside.size} rows of column {name!r} do not, "
                f"the first is row {outside[0]}: scale them by the UnitCube of the trial, fixed beforehand"
            )
    return problems


def gathered(
    env: Environment,
    contexts: FloatArray,
    action: IntArray,
    reward: FloatArray,
    policy: FloatArray,
    epsilon: float,
) -> AuxiliaryLog:
    """Log of a fixed policy (arms,) in contexts (rounds, dimension) of an environment."""
    log = AdaptiveLog.from_arrays(
        LogArrays(
            action=action,
            reward=reward,
            propensity=policy[action],
            propensities=np.tile(policy, (action.size, 1)),
            batch=None,
            phase=None,
            randomised=None,
            context=dict(zip(env.vector_names, contexts.T, strict=True)),
        ),
        arms=env.arms,
        reward_range=env.reward_range,
        propensity_status="exact",
        adaptive_rounds=0,
        stopping="fixed",
    )
    return AuxiliaryLog(log, epsilon=epsilon)
