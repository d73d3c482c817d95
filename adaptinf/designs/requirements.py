"""What a design asks of an environment, found before anything is collected."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from adaptinf.simulation.environment import Environment


class Demanding(Protocol):
    """What a design says of the environments that it can be run in."""

    @property
    def min_arms(self) -> int:
        """Fewest arms."""

    @property
    def max_arms(self) -> int | None:
        """Most arms; None for any number."""

    @property
    def vectors(self) -> str:
        """Whether context vectors are "ignored", "needed", "refused", or "any" contexts are taken."""

    @property
    def unit_rewards(self) -> bool:
        """Whether rewards must lie in [0, 1]."""

    @property
    def takes_delays(self) -> bool:
        """Whether outcomes may come late."""


def environment_problems(design: Demanding, env: Environment) -> list[str]:
    """What keeps a design from being run in an environment."""
    problems = []
    if env.n_arms < design.min_arms or (design.max_arms is not None and env.n_arms > design.max_arms):
        span = (
            f"exactly {design.min_arms}"
            if design.min_arms == design.max_arms
            else f"at least {design.min_arms}"
        )
        problems.append(f"the environment must have {span} arms, got {env.n_arms}")
    if design.vectors == "needed" and not env.dimension:
        problems.append(f"needs context vectors, as LinearArms has them; {type(env).__name__} has none")
    if design.vectors == "refused" and env.dimension:
        problems.append(f"takes contexts from a finite list; {type(env).__name__} has context vectors")
    low, high = env.reward_range
    if design.unit_rewards and ((-np.inf < low < 0.0) or (1.0 < high < np.inf)):
        problems.append(
            f"rewards must lie in [0, 1], those of {type(env).__name__} lie in [{low:g}, {high:g}]: "
            "rescale them by constants that are fixed beforehand"
        )
    if env.delayed and not design.takes_delays:
        problems.append(
            f"outcomes come late in {type(env).__name__}, and the design learns from each at once: a "
            "FunctionDesign learns from what is known"
        )
    return problems
