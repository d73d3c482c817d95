"""A log from elsewhere that may inform a trial, together with the privacy under which it reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import number_problem
from adaptinf.simulation.environment import Environment
from adaptinf.typing import FloatArray

__all__ = ["AuxiliaryLog"]


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
        If there are no contexts, or some lie outside [0, 1]^d; if rewards lie outside [0, 1]; or if epsilon
        is not positive.

    Notes
    -----
    Contexts must have been brought into the cube by the scaling of the trial, fixed beforehand.
    """

    log: AdaptiveLog
    epsilon: float

    def __post_init__(self) -> None:
        given: Any = self.log
        problems = number_problem("epsilon", self.epsilon, 0.0, open_low=True)
        if not isinstance(given, AdaptiveLog):
            problems.append(f"log must be an AdaptiveLog, got {type(given).__name__}")
        elif not given.context:
            problems.append("the log must have context columns")
        else:
            outside = np.flatnonzero(((self.contexts < 0.0) | (self.contexts > 1.0)).any(axis=1))
            if outside.size:
                problems.append(
                    f"contexts must lie in [0, 1]^{len(given.context)}, by a scaling fixed beforehand; "
                    f"{outside.size} rows do not, the first is row {outside[0]}"
                )
            reward = given.arrays.reward
            if reward.min() < 0.0 or reward.max() > 1.0:
                problems.append("rewards must lie in [0, 1]")
        if problems:
            raise ParameterError("AuxiliaryLog", problems)

    @property
    def contexts(self) -> FloatArray:
        """Contexts, shape (rounds, dimension)."""
        columns = self.log.arrays.context
        return np.stack([np.asarray(columns[name], dtype=np.float64) for name in self.log.context], axis=1)

    def mismatches(self, environment: Environment) -> list[str]:
        """Why the log cannot inform a trial in an environment."""
        problems = []
        if self.log.arms != environment.arms:
            problems.append(
                f"its arms are {list(self.log.arms)}, those of the trial {list(environment.arms)}"
            )
        if len(self.log.context) != environment.dimension:
            problems.append(
                f"its contexts have {len(self.log.context)} coordinates, those of the trial "
                f"{environment.dimension}"
            )
        if self.log.reward_range is not None and self.log.reward_range != environment.reward_range:
            problems.append(
                f"its rewards have the range {self.log.reward_range}, those of the trial "
                f"{environment.reward_range}"
            )
        return problems
