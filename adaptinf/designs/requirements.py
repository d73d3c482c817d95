"""What a design asks of an environment, found before anything is collected."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adaptinf.simulation.environment import Environment


@dataclass(frozen=True, slots=True)
class Needs:
    """What a design needs of the environments that it is run in.

    Parameters
    ----------
    min_arms, max_arms : int
        Fewest and most arms; None for any number.
    min_horizon : int
        Fewest rounds.
    vectors : {"ignored", "needed", "refused", "any"}
        What becomes of context vectors; with "any" all contexts are taken.
    unit_rewards : bool
        Whether rewards must lie in [0, 1].
    takes_delays : bool
        Whether outcomes may come late.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.designs.DPConSE.needs.max_arms
    2
    """

    min_arms: int = 1
    max_arms: int | None = None
    min_horizon: int = 1
    vectors: str = "ignored"
    unit_rewards: bool = False
    takes_delays: bool = False


def environment_problems(needs: Needs, env: Environment) -> list[str]:
    """What keeps a design from being run in an environment."""
    problems = []
    if env.n_arms < needs.min_arms or (needs.max_arms is not None and env.n_arms > needs.max_arms):
        span = (
            f"exactly {needs.min_arms}" if needs.min_arms == needs.max_arms else f"at least {needs.min_arms}"
        )
        problems.append(f"the environment must have {span} arms, got {env.n_arms}")
    if needs.vectors == "needed" and not env.dimension:
        problems.append(f"needs context vectors, as LinearArms has them; {type(env).__name__} has none")
    if needs.vectors == "refused" and env.dimension:
        problems.append(f"takes contexts from a finite list; {type(env).__name__} has context vectors")
    low, high = env.reward_range
    if needs.unit_rewards and ((-np.inf < low < 0.0) or (1.0 < high < np.inf)):
        problems.append(
            f"rewards must lie in [0, 1], those of {type(env).__name__} lie in [{low:g}, {high:g}]: "
            "rescale them by constants that are fixed beforehand"
        )
    if env.delayed and not needs.takes_delays:
        problems.append(
            f"outcomes come late in {type(env).__name__}, and the design learns from each at once: a "
            "FunctionDesign learns from what is known"
        )
    return problems
