"""What all best-arm designs share: features that fit the environment, a budget, and an arm at the end."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from adaptinf.designs.base import Design
from adaptinf.designs.best_arm.determinants import feature_problems
from adaptinf.designs.replications import Status
from adaptinf.designs.requirements import Needs
from adaptinf.log import DesignTraits, Outputs
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import Run
from adaptinf.typing import FloatArray


@dataclass(frozen=True, kw_only=True)
class BestArmDesign(Design):
    """A design that names an arm when its budget, the horizon, is spent."""

    statuses: ClassVar[tuple[Status, ...]] = (Status("exploration", False), Status("leftover", False))
    needs: ClassVar[Needs] = Needs(min_arms=2, vectors="refused")
    skips_overrides: ClassVar[bool] = True
    outcomes: ClassVar[tuple[str, ...]] = ("recommended", "decided_at")

    @property
    def traits(self) -> DesignTraits:
        """No coins but the noise of those that are private, whose outputs settle all but the rewards."""
        private = self.guarantee(self.needs.min_horizon, self.needs.min_arms) is not None
        outputs = Outputs(propensities="outputs", phase="outputs", recommended=True) if private else None
        return DesignTraits(uses_context="no", own_coins=False, outputs=outputs)

    @abstractmethod
    def _least_budget(self, n_arms: int) -> int:
        """The fewest rounds with one pull at least of every arm that a phase needs."""

    def _environment_problems(self, env: Environment, horizon: int) -> list[str]:
        problems = super()._environment_problems(env, horizon)
        if env.n_features > 1:
            problems.append(
                f"looks for the best arm on average and takes no contexts; {type(env).__name__} has "
                f"{env.n_features} of them"
            )
        least = self._least_budget(env.n_arms) if env.n_arms >= self.needs.min_arms else 0
        if horizon < least:
            problems.append(
                f"horizon must be at least {least:,}, got {horizon:,}: the budget leaves less than one pull "
                "of an arm in some phase"
            )
        return problems

    def _adaptive_rounds(self, run: Run, horizon: int) -> int:
        """Rounds up to the last decision: later rewards change nothing."""
        decided = float(run.outcome[1])
        return horizon if np.isnan(decided) else int(decided)

    def _released_rounds(self, run: Run, horizon: int) -> int:
        """The same: the last decision is made from the last release, and names an arm."""
        return self._adaptive_rounds(run, horizon)


@dataclass(frozen=True, kw_only=True)
class FeatureDesign(BestArmDesign):
    """A best-arm design for arms whose means are linear in known feature vectors."""

    features: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        # rows of plain numbers: they compare, hash and go into a file
        rows = np.asarray(self.features, dtype=np.float64).tolist()
        object.__setattr__(self, "features", tuple(tuple(row) for row in rows))

    def _problems(self) -> list[str]:
        problems = feature_problems(self.features, distinct=True)
        if not problems and len(self.features) < self.needs.min_arms:
            problems.append(
                f"features must be of at least {self.needs.min_arms} arms, got {len(self.features)}"
            )
        return problems

    @property
    def rows(self) -> FloatArray:
        """Features as an array of shape (arms, dimension)."""
        return np.array(self.features, dtype=np.float64)

    def _environment_problems(self, env: Environment, horizon: int) -> list[str]:
        problems = super()._environment_problems(env, horizon)
        if env.n_arms != len(self.features):
            problems.append(f"features are of {len(self.features)} arms, the environment has {env.n_arms}")
        return problems

    def __repr__(self) -> str:
        n, dimension = self.rows.shape
        names = [one.name for one in fields(self) if one.name != "features"]
        parts = [f"{name}={getattr(self, name)!r}" for name in names]
        parts.append(f"features=<{n} arms, {dimension} coordinates>")
        return f"{type(self).__name__}({', '.join(parts)})"
