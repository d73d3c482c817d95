"""Designs for contexts in the unit cube: common parts of the locally private ones, and non-private ABSE."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from adaptinf.designs.base import Design, Needs
from adaptinf.designs.local.cube_tree import ABSETables, abse_program
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.log import DesignRecord, DesignTraits
from adaptinf.parameters import Positive
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.environments.cube_contexts import AuxiliaryLog
from adaptinf.simulation.replicate import Program, Run, written_arrays
from adaptinf.simulation.run import CUBE, ORTHANT, SPHERE


def cube_problems(env: Environment) -> list[str]:
    """Reasons why the contexts of an environment are not a single point of the unit cube per round."""
    if not env.dimension:
        return []
    tables = env.tables(1)
    problems = []
    if not tables.shared and env.n_arms > 1:
        problems.append("all arms must have the same context vector in a round (shared=True)")
    told = "those on the unit sphere do not" if tables.vector_law == SPHERE else ""
    if tables.vector_law not in (SPHERE, ORTHANT, CUBE):
        inside = ((tables.vectors >= 0.0) & (tables.vectors <= 1.0)).all(axis=1)
        rows = np.flatnonzero(~inside)
        told = f"{rows.size} rows do not (the first is row {rows[0]})" if rows.size else ""
    if told:
        problems.append(
            f"contexts must lie in the cube [0, 1]^{env.dimension}, but {told}: scale them with a UnitCube "
            f"that "
            "is fixed in advance"
        )
    return problems


class LocallyPrivate(Design):
    """A design whose participants privatise their reports themselves."""

    epsilon: Positive
    auxiliary: tuple[AuxiliaryLog, ...]

    domain: ClassVar[str] = "cube"
    lost: ClassVar[float | None] = 0.0
    inexact: ClassVar[str] = "its noise must be added by the participant, not by the party that assigns arms"
    report_sensitivity: ClassVar[float]
    not_covered: ClassVar[str]
    needs: ClassVar[Needs] = Needs(min_arms=2, vectors="needed", unit_rewards=True)

    def _problems(self) -> list[str]:
        given: Any = self.auxiliary
        if not isinstance(given, tuple) or not all(isinstance(part, AuxiliaryLog) for part in given):
            return ["auxiliary must be a tuple of AuxiliaryLog, each a log with its epsilon"]
        return []

    def auxiliary_guarantees(self) -> tuple[PrivacyGuarantee, ...]:
        """The guarantee for the participants of each auxiliary log, covering their whole record.

        The epsilon is that of the auxiliary log, not that of the trial: the log's participants report at the
        scale of their log, once, before the trial begins, and everything later is post-processing. The notion
        is standard: the actions of these participants, which their log contains, are not among the trial's
        outputs.

        Examples
        --------
        >>> import adaptinf as ai
        >>> ai.designs.LDPBandit(epsilon=8.0).auxiliary_guarantees()
        ()
        """
        return tuple(
            PrivacyGuarantee(float(part.epsilon), unit="record", model="local") for part in self.auxiliary
        )

    def _environment_problems(self, env: Environment, horizon: int) -> list[str]:
        problems = super()._environment_problems(env, horizon) + cube_problems(env)
        for number, part in enumerate(self.auxiliary, 1):
            problems += [f"auxiliary log {number}: {told}" for told in part.mismatches(env)]
        return problems

    def _feedback_rounds(self, run: Run, horizon: int) -> int:
        """All but the last round: every participant reports, and later choices use sums of the reports."""
        return horizon - 1

    def _released_rounds(self, run: Run, horizon: int) -> int:
        """All rounds: the final release is computed from every report."""
        return horizon

    def record(self) -> DesignRecord:
        """Name and parameters, as a log stores them; for auxiliary logs, their lengths and epsilons."""
        given = super().record()
        told = [{"n_rounds": part.log.n_rounds, "epsilon": part.epsilon} for part in self.auxiliary]
        return dataclasses.replace(given, parameters={**given.parameters, "auxiliary": told})

    def guarantee(self, horizon: int, n_arms: int) -> PrivacyGuarantee:
        """The guarantee of the reports.

        The guarantee covers the trial's participants; those of auxiliary logs have `auxiliary_guarantees`.
        The unit is the record, the model local and the notion anticipating: the guarantee covers everything
        but the participant's own arm.
        """
        self._refuse_sizes(horizon, n_arms)
        return PrivacyGuarantee(
            epsilon=float(self.epsilon),
            unit="record",
            model="local",
            notion="anticipating",
            reasons=(self.not_covered,),
        )

    def reward_guarantee(self, horizon: int, n_arms: int) -> PrivacyGuarantee:
        """The guarantee for arms and reports with respect to one participant's rewards, with public contexts.

        Its epsilon is that of the design divided by the sensitivity of a report, because a reward changes the
        report by at most 1.
        """
        self._refuse_sizes(horizon, n_arms)
        return PrivacyGuarantee(epsilon=float(self.epsilon) / self.report_sensitivity, model="local")


@dataclass(frozen=True, kw_only=True)
class ABSE(Design):
    """Adaptively binned successive elimination without privacy; contexts in the unit cube.

    Parameters
    ----------
    lipschitz : float
        Lipschitz constant L of the expected rewards with respect to Euclidean distance; it must be positive,
        because rewards that do not depend on the context need no cubes.

    Raises
    ------
    ParameterError
        If the constant is out of range; when run, if contexts differ between arms or may lie outside [0,
        1]^d, or rewards may lie outside [0, 1].

    Notes
    -----
    The arm of a round is drawn uniformly from those remaining in the context's cube, whereas the paper pulls
    them in turn: propensities are therefore known and positive. With N pulls in a cube of side b, the radius
    is U = 2 sqrt(2 max(log(n b^d / N), 1) / N). After each round, in the context's cube, an arm is dropped if
    its mean plus U lies below another arm's mean minus U; and a cube with at least two remaining arms is
    split into 2^d cubes, which begin without data, once no U of the remaining arms exceeds 4 L sqrt(d) b. The
    side of the smallest cubes is the largest 2^-k that is at most (K log(K) / n)^(1 / (2 + d)). With equal
    numbers of pulls, this is the paper's rule for Lipschitz functions: U <= 2 c_0 b, c_0 = 2 L sqrt(d).

    `Replications.released` has ``bins``, ``depth`` and ``dropped`` (number of cubes, depth of the smallest,
    number of arms dropped over all cubes) and ``decided`` (volume of the cubes with one arm left).

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
        """Traits: the choice depends on the bin of the cube."""
        return DesignTraits(uses_context="position", arm_means="by-bin")

    def _environment_problems(self, env: Environment, horizon: int) -> list[str]:
        return super()._environment_problems(env, horizon) + cube_problems(env)

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """Compiled entry point and tables for an environment and a horizon."""
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
