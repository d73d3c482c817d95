"""Adaptively binned successive elimination: the comparator without privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from adaptinf.designs.base import Design
from adaptinf.designs.local.abse_kernel import ABSETables, abse_program
from adaptinf.designs.local.base import cube_problems
from adaptinf.designs.requirements import Needs
from adaptinf.log import DesignTraits
from adaptinf.parameters import Positive
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import Program, written_arrays


@dataclass(frozen=True, kw_only=True)
class ABSE(Design):
    """Successive elimination in cubes that are refined, without privacy; contexts in the unit cube.

    Parameters
    ----------
    lipschitz : float
        Lipschitz constant L of the expected rewards, in Euclidean distance, above 0: rewards that do not
        depend on the context need no cubes.

    Raises
    ------
    ParameterError
        If the constant is out of range; on running, if contexts are not shared by the arms or may leave
        [0, 1]^d, or rewards may leave [0, 1].

    Notes
    -----
    The arm of a round is drawn uniformly from those left in the context's cube, where the paper pulls them in
    turn: propensities are known and positive. With N pulls in a cube of side b the radius is
    U = 2 sqrt(2 max(log(n b^d / N), 1) / N). After each round, in the context's cube: an arm is dropped when
    its mean plus U lies below another's minus U; and a cube with two arms left or more falls into 2^d cubes,
    which begin without data, when no U of the arms left is above 4 L sqrt(d) b. The smallest cubes have the
    largest side 2^-k that is at most (K log(K) / n)^(1 / (2 + d)). With equal numbers of pulls this is the
    paper's rule for Lipschitz functions: U <= 2 c_0 b, c_0 = 2 L sqrt(d).

    `Replications.released` has ``bins``, ``depth`` and ``dropped`` (cubes, halvings of the smallest, arms
    dropped over all cubes) and ``decided`` (volume of the cubes with one arm left).

    References
    ----------
    Perchet, V. and Rigollet, P. (2013). The multi-armed bandit problem with covariates. Annals of Statistics
    41.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.SmoothArms(n_arms=3, dimension=1)
    >>> sims = ai.designs.ABSE().replicate(arms, horizon=20_000, replications=2, rng=0)
    >>> bool((sims.regret < 0.3 * 20_000).all())
    True
    """

    lipschitz: Positive = 1.0

    domain: ClassVar[str] = "cube"
    needs: ClassVar[Needs] = Needs(min_arms=2, vectors="needed", unit_rewards=True)
    outcomes: ClassVar[tuple[str, ...]] = ("bins", "depth", "dropped", "decided")

    @property
    def traits(self) -> DesignTraits:
        """Arms follow the bin of the cube."""
        return DesignTraits(uses_context="position", arm_means="by-bin")

    def _environment_problems(self, env: Environment, horizon: int) -> list[str]:
        return super()._environment_problems(env, horizon) + cube_problems(env)

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """Compiled entry point and tables for one environment and horizon."""
        n_arms, dimension = environment.n_arms, environment.dimension
        smallest = (n_arms * math.log(n_arms) / horizon) ** (1.0 / (2.0 + dimension))
        tables = ABSETables(
            n_arms=n_arms,
            dimension=dimension,
            horizon=horizon,
            resolution=4.0 * float(self.lipschitz) * math.sqrt(dimension),
            levels=max(0, math.ceil(-math.log2(smallest))),
            first_axis=True,
            **written_arrays(n_arms if recording else 0),
        )
        return abse_program(tables)
