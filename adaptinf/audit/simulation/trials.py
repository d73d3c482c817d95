"""Simulated trials kept as arrays: rounds by arm, rewards, regret, selected arm; and what they sum to."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from adaptinf.audit.simulation.engine import Chunk, LogCell
from adaptinf.audit.simulation.selection import (
    Picker,
    Select,
    Selection,
    chooses_by_vectors,
    highest_means,
    named_by_design,
)
from adaptinf.designs.base_design import Design
from adaptinf.simulation.environments import Environment
from adaptinf.typing import BoolArray, FloatArray

QUANTILES = (0.025, 0.1, 0.5, 0.9, 0.975)
_SAME = 1e-12


@dataclass(slots=True)
class Trials(Chunk):
    """Consecutive trials, with what the analysis gave in `blocks`.

    Shapes: rounds (trials, features, arms), reward (trials,), regret (trials,), selected (trials, places,
    arms).
    """

    rounds: FloatArray = field(default_factory=lambda: np.zeros((0, 1, 1)))
    reward: FloatArray = field(default_factory=lambda: np.zeros(0))
    regret: FloatArray = field(default_factory=lambda: np.zeros(0))
    selected: FloatArray = field(default_factory=lambda: np.zeros((0, 1, 1)))
    binary: bool = True

    @classmethod
    def joined(cls, parts: Sequence[Trials]) -> Trials:
        """All trials, in order."""
        whole = cls(parts[0].start, parts[-1].stop, [block for part in parts for block in part.blocks])
        whole.rounds = np.concatenate([part.rounds for part in parts])
        whole.reward = np.concatenate([part.reward for part in parts])
        whole.regret = np.concatenate([part.regret for part in parts])
        whole.selected = np.concatenate([part.selected for part in parts])
        whole.binary = all(part.binary for part in parts)
        return whole


@dataclass(frozen=True, eq=False)
class TrialCell:
    """Trials of a design in an environment over a horizon, with or without an analysis."""

    design: Design
    env: Environment
    horizon: int
    root: np.random.SeedSequence
    rule: Selection
    analysis: LogCell | None = None
    select: Select | None = None

    def chunk(self, start: int, stop: int, keep: bool) -> Chunk:
        """Trials `start` (a multiple of 64) to `stop`."""
        by_rounds = None if self.analysis is None else True
        sims = self.design.replicate(
            self.env, self.horizon, stop, self.root, start=start, by_rounds=by_rounds
        )
        cells = sims.tallies.sum(axis=1)
        trials = Trials(start, stop)
        trials.rounds = cells[..., 0]
        trials.reward = cells[..., 1].sum(axis=(1, 2))
        trials.regret = sims.regret
        trials.binary = bool((cells[..., 1] == cells[..., 2]).all())
        picked: list[FloatArray] = []
        if self.analysis is not None:
            [fit] = self.analysis.analyses.values()
            picker = Picker(fit, self.env, self.rule, self.select)
            trials.blocks = (
                dataclasses.replace(self.analysis, analyses={"": picker}).chunk(start, stop, keep).blocks
            )
            picked = picker.found
        if self.rule.source == "design":
            trials.selected = named_by_design(sims, self.rule, self.env.n_arms)
        elif self.rule.source == "sample mean":
            trials.selected = highest_means(sims)
        elif self.rule.source != "none":
            trials.selected = np.array(picked)
        else:
            trials.selected = np.zeros((stop - start, 0, self.env.n_arms))
        return trials


def best_arms(means: FloatArray) -> BoolArray:
    """Whether an arm has the highest mean of its row, up to rounding; of the shape of `means`."""
    highest = means.max(axis=1, keepdims=True)
    return np.asarray(np.isclose(means, highest, rtol=_SAME, atol=_SAME), dtype=np.bool_)


def wrong_way_trials(rounds: FloatArray, best: BoolArray, margin: float) -> FloatArray:
    """Which trials put too many rounds on an inferior arm.

    Shapes: rounds (trials, arms), best (arms,); returns (trials,).
    """
    excess = rounds[:, ~best].max(axis=1) - rounds[:, best].max(axis=1)
    return np.asarray(excess > margin * rounds.sum(axis=1) * (1.0 + _SAME), dtype=np.float64)


def quantile(ordered: FloatArray, level: float) -> float:
    """The smallest of ordered values that a share of at least `level` of them does not exceed."""
    rank = math.ceil(min(max(level, 0.0), 1.0) * ordered.size - 1e-9)
    return float(ordered[max(rank, 1) - 1])


def estimated(
    values: FloatArray, statistics: Sequence[str] = ("mean", "sd")
) -> Iterator[tuple[str, float, float]]:
    """Statistics of simulated values, each with its Monte-Carlo standard error; values (trials,)."""
    count, mean = values.size, float(values.mean())
    squares = np.square(values - mean)
    variance = float(squares.mean())
    sd = math.sqrt(variance)
    if "mean" in statistics:
        yield "mean", mean, sd / math.sqrt(count) if count > 1 else math.nan
    if "sd" in statistics:
        spread = max(float(np.square(squares).mean()) - variance**2, 0.0)
        error = math.sqrt(spread / count) / (2.0 * sd) if sd > 0.0 else 0.0
        yield "sd", sd, error if count > 1 else math.nan
    if "quantiles" in statistics:
        ordered = np.sort(values)
        for level in QUANTILES:
            step = math.sqrt(level * (1.0 - level) / count)
            error = 0.5 * (quantile(ordered, level + step) - quantile(ordered, level - step))
            yield f"q{level:g}", quantile(ordered, level), error if count > 1 else math.nan


def wrong_way_reason(design: Design, env: Environment, best: BoolArray) -> str:
    """Why allocation has no wrong way; empty where it has one."""
    if env.dimension and chooses_by_vectors(design):
        return "the best arm depends on the context vector: see the regret"
    return "" if (~best).any() else "no arm is better than another"
