"""Sequential halving: pull the arms that are left equally often, and keep the better half."""

from __future__ import annotations

from dataclasses import dataclass

from adaptinf.designs.best_arm.base import BestArmDesign
from adaptinf.designs.best_arm.kernel import best_arm_program, best_arm_tables
from adaptinf.designs.best_arm.schedule import halving_sizes
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import Program


@dataclass(frozen=True, kw_only=True)
class SequentialHalving(BestArmDesign):
    """Best-arm identification with a fixed budget, without privacy and without features.

    Raises
    ------
    ParameterError
        On running, if the environment has contexts, or the horizon is below one pull of each arm a round.

    Notes
    -----
    In each of R = ceil(log2 K) rounds every one of the s arms that are left is pulled floor(T / (s R)) times,
    and the ceil(s / 2) with the highest means of this round are kept. Ties are broken at random, by an order
    of the arms that is drawn at the beginning. What the floors leave over pulls the recommended arm. Given
    the past the propensities are 0 or 1.

    References
    ----------
    Karnin, Z., Koren, T. and Somekh, O. (2013). Almost optimal exploration in multi-armed bandits. ICML.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.BernoulliArms([0.9, 0.5, 0.2])
    >>> sims = ai.designs.SequentialHalving().replicate(arms, 300, replications=100, rng=0)
    >>> bool((sims.recommended == 0).all())
    True
    """

    def _least_budget(self, n_arms: int) -> int:
        return n_arms * (halving_sizes(n_arms).size - 1)

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """Compiled entry point and tables for one environment and horizon."""
        sizes = halving_sizes(environment.n_arms)
        return best_arm_program(best_arm_tables(sizes, budget=horizon, recording=recording))
