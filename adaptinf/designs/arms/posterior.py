"""Parameters that designs with a posterior share, and their program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from adaptinf.designs.arms.normal_race import normal_table
from adaptinf.designs.arms.posterior_kernel import (
    MATCHING,
    ROWS,
    SCALAR_COLUMNS,
    PosteriorTables,
    run_block,
    run_step,
)
from adaptinf.designs.base import Design
from adaptinf.errors import ParameterError
from adaptinf.log import DesignTraits, Floor
from adaptinf.parameters import FINITE, NON_NEGATIVE, POSITIVE, UNIT, Count, OneOf, Positive, Whole
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import Program, written_arrays

_DRAWS = 100


@dataclass(frozen=True, kw_only=True)
class PosteriorDesign(Design):
    """A design whose propensities follow from the probabilities that each arm is the best."""

    pending: ClassVar[str] = "any"
    rule: ClassVar[int] = MATCHING

    prior: Annotated[str, OneOf("beta", "normal")] = "beta"
    prior_parameters: tuple[float, float] | None = None
    noise_scale: Positive | None = 1.0
    floor: float | tuple[float, float] | None = None
    initial_pulls: Annotated[int, Count(0)] = 0
    initial: Annotated[str, OneOf("drawn", "dealt")] = "drawn"
    batch_size: Whole = 1
    draws: Whole | None = None

    @property
    def traits(self) -> DesignTraits:
        """No contexts, the floor that was asked for, and how it starts."""
        scale, decay = self.floor_parts()
        return DesignTraits(
            uses_context="no",
            floor=None if self.floor is None else Floor(scale, decay),
            dealt=int(self.initial_pulls) if self.initial == "dealt" else 0,
        )

    def floor_parts(self) -> tuple[float, float]:
        """Scale and decay of the floor, 0 without one."""
        scale, decay = self.floor if isinstance(self.floor, tuple) else (self.floor or 0.0, 0.0)
        return float(scale), float(decay)

    def prior_parts(self) -> tuple[float, float]:
        """Both parameters of the prior."""
        first, second = self.prior_parameters or ((1.0, 1.0) if self.prior == "beta" else (0.0, 1.0))
        return float(first), float(second)

    def frequency_draws(self) -> int:
        """Posterior draws behind the propensities; 0 where these are exact."""
        if self.draws is None:
            return _DRAWS if self.prior == "beta" else 0
        return int(self.draws)

    def _problems(self) -> list[str]:
        return self._prior_problems() + self._floor_problems()

    def _prior_problems(self) -> list[str]:
        if self.prior_parameters is None:
            return []
        pair: Any = self.prior_parameters
        if not isinstance(pair, tuple) or len(pair) != 2:
            return [f"prior_parameters must be a pair of numbers, got {pair!r}"]
        first, second = pair
        if self.prior == "normal":
            return FINITE("prior mean", first) + POSITIVE("prior variance", second)
        return POSITIVE("prior successes", first) + POSITIVE("prior failures", second)

    def _floor_problems(self) -> list[str]:
        floor: Any = self.floor
        if floor is None:
            return []
        if not isinstance(floor, tuple):
            return UNIT("floor", floor)
        if len(floor) != 2:
            return [f"floor must be a number or a pair (scale, decay), got {floor!r}"]
        return UNIT("floor scale", floor[0]) + NON_NEGATIVE("floor decay", floor[1])

    def _batches(self, horizon: int, n_arms: int) -> Any:
        if self.batch_size == 1:
            return None
        initial = self.initial_pulls * n_arms
        steps = np.arange(horizon)
        later = (steps - initial) // self.batch_size + (1 if initial else 0)
        return np.where(steps < initial, 0, later)

    def _leader_share(self) -> float:
        """What the leader gets where no other arm can be told to win."""
        return 0.5

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """Compiled entry point and tables for one environment and horizon."""
        n_arms = environment.n_arms
        scale, decay = self.floor_parts()
        if scale > 1.0 / n_arms:
            problem = f"floor must be at most 1/K = {1 / n_arms:g} for {n_arms} arms, got {scale:g}"
            raise ParameterError(type(self).__name__, [problem])
        first, second = self.prior_parts()
        draws = self.frequency_draws()
        tables = PosteriorTables(
            n_arms=n_arms,
            rule=self.rule,
            leader_share=float(self._leader_share()),
            beta_prior=self.prior == "beta",
            prior_first=first,
            prior_second=second,
            noise_variance=0.0 if self.noise_scale is None else float(self.noise_scale) ** 2,
            draws=draws,
            single=not by_rounds and not recording,
            initial_pulls=int(self.initial_pulls),
            dealt=self.initial == "dealt",
            floor_scale=scale,
            floor_decay=decay,
            batch_size=int(self.batch_size),
            normal=normal_table()[: 0 if draws else None],
            **written_arrays(n_arms if recording else 0),
        )
        return Program(run_block, tables, (ROWS, max(n_arms, SCALAR_COLUMNS)), step=run_step)
