"""What locally private designs share: contexts in the unit cube, auxiliary logs, and what reports promise."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from adaptinf.designs.base import Design
from adaptinf.designs.requirements import Needs
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.log import DesignRecord
from adaptinf.parameters import Positive
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.environments.auxiliary import AuxiliaryLog
from adaptinf.simulation.replicate import Run
from adaptinf.simulation.vectors import CUBE, ORTHANT, SPHERE


def cube_problems(env: Environment) -> list[str]:
    """Why the contexts of an environment are not one point of the unit cube a round."""
    if not env.dimension:
        return []
    tables = env.tables(1)
    problems = []
    if not tables.shared and env.n_arms > 1:
        problems.append("all arms must have the same context vector in a round (shared=True)")
    told = "those of the unit sphere do not" if tables.vector_law == SPHERE else ""
    if tables.vector_law not in (SPHERE, ORTHANT, CUBE):
        inside = ((tables.vectors >= 0.0) & (tables.vectors <= 1.0)).all(axis=1)
        rows = np.flatnonzero(~inside)
        told = f"{rows.size} rows do not, the first is row {rows[0]}" if rows.size else ""
    if told:
        problems.append(
            f"contexts must lie in the cube [0, 1]^{env.dimension}, {told}: scale them by a UnitCube, "
            "which is fixed beforehand"
        )
    return problems


class LocallyPrivate(Design):
    """A design whose participants make their reports private by themselves."""

    epsilon: Positive
    auxiliary: tuple[AuxiliaryLog, ...]

    domain: ClassVar[str] = "cube"
    lost: ClassVar[float | None] = 0.0
    inexact: ClassVar[str] = "its noise belongs on the participant's side, and not with who assigns"
    report_sensitivity: ClassVar[float]
    not_covered: ClassVar[str]
    needs: ClassVar[Needs] = Needs(min_arms=2, vectors="needed", unit_rewards=True)

    def _problems(self) -> list[str]:
        given: Any = self.auxiliary
        if not isinstance(given, tuple) or not all(isinstance(part, AuxiliaryLog) for part in given):
            return ["auxiliary must be a tuple of AuxiliaryLog, a log and its epsilon each"]
        return []

    def auxiliary_guarantees(self) -> tuple[PrivacyGuarantee, ...]:
        """What the participants of each auxiliary log are promised, for their whole record.

        Each has the epsilon of their own log, not the trial's: they report at its scale, once, before the
        trial begins, and everything later is post-processing. Notion standard: their own actions, which their
        log has, are not among the trial's outputs.

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

    def _adaptive_rounds(self, run: Run, horizon: int) -> int:
        """All but the last: every participant reports, and later choices read the reports' sums."""
        return horizon - 1

    def _released_rounds(self, run: Run, horizon: int) -> int:
        """All: what is released at the end is made of every report."""
        return horizon

    def record(self) -> DesignRecord:
        """Name and parameters, as a log keeps them: of auxiliary logs, their lengths and epsilons."""
        given = super().record()
        told = [{"n_rounds": part.log.n_rounds, "epsilon": part.epsilon} for part in self.auxiliary]
        return dataclasses.replace(given, parameters={**given.parameters, "auxiliary": told})

    def guarantee(self, horizon: int, n_arms: int) -> PrivacyGuarantee:
        """What the reports promise.

        The trial's participants: those of auxiliary logs have `auxiliary_guarantees`. Unit record, model
        local, notion anticipating: everything but the participant's own arm.
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
        """What arms and reports promise for one participant's rewards, contexts being public.

        Epsilon over the sensitivity of a report, as a reward moves it by at most 1.
        """
        self._refuse_sizes(horizon, n_arms)
        return PrivacyGuarantee(epsilon=float(self.epsilon) / self.report_sensitivity, model="local")
