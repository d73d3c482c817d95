"""A design with a fault planted in it, run by plain NumPy in place of its compiled loop: nothing is compiled.

It decides as the right one does, by what the audit's own replay reads, but where the fault says otherwise.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import Program
from adaptinf.simulation.run import BERNOULLI, LINEAR_BERNOULLI


class Planted:
    """A design whose runs are made by `simulate`; tables are those of the right design."""

    fault: ClassVar[str] = ""

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        right = super().program(environment, horizon, recording=recording, by_rounds=by_rounds)  # type: ignore[misc]
        if not recording or not self.covers(environment, horizon):
            return right

        def entry(tables: Any, world: Any, rng: Any, state: Any, results: Any) -> None:
            results.record.statuses[:] = 0
            self.simulate(right.tables, world, rng, results)

        return dataclasses.replace(right, entry=entry)

    def covers(self, environment: Environment, horizon: int) -> bool:
        """Whether `simulate` can run such a trial; the right program runs the others."""
        return True

    def simulate(self, tables: Any, world: Any, rng: np.random.Generator, results: Any) -> None:
        raise NotImplementedError


class Coins:
    """The coins that draw 0/1 rewards, or potential rewards that are given."""

    def __init__(self, world: Any, runs: int, rng: np.random.Generator) -> None:
        self.environment, self.runs, self.rng = world.environment, runs, rng
        self.drawn = self.environment.kind in (BERNOULLI, LINEAR_BERNOULLI)

    def rewards(self, step: int, arms: Any) -> tuple[Any, Any]:
        """Rewards, and the coins behind them."""
        coins = self.rng.random(self.runs)
        if self.drawn:
            return (coins < 0.5) * 1.0, coins  # every such trial of an audit has means of 1/2
        return self.environment.tableau[step, arms], coins


def quiet_from(count: Any, fault: str) -> Any:
    """Where a node has no noise."""
    power = (count & (count - 1)) == 0
    if fault == "powers from 4":
        return power & (count >= 4)
    if fault == "powers from 64":
        return power & (count >= 64)
    if fault == "level 6":
        return (count & -count) >= 64
    return np.zeros(np.shape(count), dtype=np.bool_)


def planted(kind: type, fault: str) -> Any:
    """A class of faulty designs or counters with one of its faults."""
    return type(f"{kind.__name__}_{fault.replace(' ', '_')}", (kind,), {"fault": fault})
