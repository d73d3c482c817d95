"""Common parts of best-arm designs: checks of features, phases of a budget, a recommended arm."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from adaptinf.designs.base import Design, Needs
from adaptinf.designs.best_arm.arm_collections import feature_problems
from adaptinf.designs.best_arm.best_arm_kernel import best_arm_program, best_arm_tables
from adaptinf.designs.run_results import Status
from adaptinf.log import DesignTraits, Outputs
from adaptinf.parameters import COUNT, Count, check
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import Program, Run
from adaptinf.typing import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Schedule:
    """Phases of DP-BAI; sizes has shape (phases + 1,)."""

    ratio: float
    fast_phases: int
    phases: int
    sizes: IntArray


def max_det_schedule(n_arms: int, dimension: int) -> Schedule:
    """Numbers of arms in the phases of DP-BAI, equations (4) to (8).

    Parameters
    ----------
    n_arms, dimension : int
        Number of arms K, at least 2, and dimension d.

    Returns
    -------
    Schedule
        Phases, with lambda, M_1, M and s_1, ..., s_{M+1}.

    Raises
    ------
    ParameterError
        If an argument is out of range; the message lists every problem.

    Notes
    -----
    Logarithms are natural, and both minima in (8) are over i = 1, 2, ...: M is counted from 1 in the paper,
    and M_1 = 0 for K <= ceil(d^2 / 4) would imply s_1 = g_1, although K arms enter the first phase. For d = 1
    and K > 2, no lambda satisfies (4), so lambda is infinite, and there is only one phase.

    Examples
    --------
    >>> from adaptinf.designs.best_arm.fixed_budget import max_det_schedule
    >>> found = max_det_schedule(10_000, 16)
    >>> round(found.ratio, 2), found.fast_phases, found.phases, found.sizes.tolist()
    (27.65, 3, 8, [10000, 423, 77, 32, 16, 8, 4, 2, 1])
    """
    check("max_det_schedule", n_arms=(n_arms, Count(2)), dimension=(dimension, COUNT))
    quarter = -(-dimension * dimension // 4)
    slow = min(n_arms, quarter)
    extra = max(n_arms - quarter, 0)
    ratio = _ratio(extra, dimension)
    sizes = [slow + extra]
    fast_phases = 1
    while (extra := max(0, math.ceil((extra + 1) / ratio - 1.0))) > 0:
        sizes.append(slow + extra)
        fast_phases += 1
    while len(sizes) == fast_phases or sizes[-1] > 1:
        slow = -(-slow // 2)
        sizes.append(slow)
    return Schedule(ratio, fast_phases, len(sizes) - 1, np.array(sizes, dtype=np.int64))


def reserve(schedule: Schedule, dimension: int) -> int:
    """Rounds that DP-BAI reserves because numbers of pulls are rounded up."""
    # The reserve is (8), or as many rounds as rounding can cost, if that is more. Phase p pulls at most d
    # arms if d^2 < s_p and at most s_p otherwise, whatever the dimension of their span. Pulling n_1, ..., n_M
    # arms ceil(T' / (M n_p)) times each takes at most T' + n_1 + ... + n_M - 1 rounds.
    pulled = [dimension if dimension**2 < size else size for size in schedule.sizes[:-1].tolist()]
    return max(printed_reserve(schedule, dimension), sum(pulled) - 1)


def printed_reserve(schedule: Schedule, dimension: int) -> int:
    """T - T' as defined in (8)."""
    quarter = -(-dimension * dimension // 4)
    return schedule.fast_phases * dimension + (schedule.phases - schedule.fast_phases) * quarter


def halving_sizes(n_arms: int) -> IntArray:
    """Number of arms that enter each round of sequential halving, and the single arm that remains."""
    sizes = [n_arms]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // 2))
    return np.array(sizes, dtype=np.int64)


def optimal_sizes(n_arms: int, dimension: int) -> IntArray:
    """Number of arms that enter each round of OD-LinBAI, and the last one: K, then d / 2^r, rounded up."""
    sizes = [n_arms]
    while sizes[-1] > 1:
        sizes.append(-(-dimension // 2 ** len(sizes)))
    return np.array(sizes, dtype=np.int64)


def _ratio(extra: int, dimension: int) -> float:
    """The smallest lambda of at least 2 with lambda^log(d) >= extra; infinite if there is none."""
    if extra <= 1:
        return 2.0
    return math.inf if dimension == 1 else max(2.0, math.exp(math.log(extra) / math.log(dimension)))


@dataclass(frozen=True, kw_only=True)
class BestArmDesign(Design):
    """A design that recommends an arm once its budget, the horizon, is spent."""

    statuses: ClassVar[tuple[Status, ...]] = (Status("exploration", False), Status("leftover", False))
    needs: ClassVar[Needs] = Needs(min_arms=2, vectors="refused")
    skips_overrides: ClassVar[bool] = True
    outcomes: ClassVar[tuple[str, ...]] = ("recommended", "decided_at")

    @property
    def traits(self) -> DesignTraits:
        """Traits: no random draws except privacy noise; outputs determine everything except the rewards."""
        private = self.guarantee(self.needs.min_horizon, self.needs.min_arms) is not None
        outputs = Outputs(propensities="outputs", phase="outputs", recommended=True) if private else None
        return DesignTraits(uses_context="no", own_coins=False, outputs=outputs)

    @abstractmethod
    def _least_budget(self, n_arms: int) -> int:
        """The smallest number of rounds that allows at least one pull of every arm that a phase needs."""

    def _environment_problems(self, env: Environment, horizon: int) -> list[str]:
        problems = super()._environment_problems(env, horizon)
        if env.n_features > 1:
            problems.append(
                "searches for the arm that is best on average, without using contexts; "
                f"{type(env).__name__} has {env.n_features} of them"
            )
        least = self._least_budget(env.n_arms) if env.n_arms >= self.needs.min_arms else 0
        if horizon < least:
            problems.append(
                f"horizon must be at least {least:,}, got {horizon:,}: the budget leaves less than one pull "
                "per arm in some phase"
            )
        return problems

    def _feedback_rounds(self, run: Run, horizon: int) -> int:
        """Rounds up to the last decision: later rewards have no effect."""
        decided = float(run.outcome[1])
        return horizon if np.isnan(decided) else int(decided)

    def _released_rounds(self, run: Run, horizon: int) -> int:
        """The same number as `_feedback_rounds`, because the last decision is based on the last release."""
        return self._feedback_rounds(run, horizon)


@dataclass(frozen=True, kw_only=True)
class FeatureDesign(BestArmDesign):
    """A best-arm design for arms whose means are linear in known feature vectors."""

    features: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        # Tuples of plain numbers can be compared, hashed and stored in a file, as arrays cannot.
        rows = np.asarray(self.features, dtype=np.float64).tolist()
        object.__setattr__(self, "features", tuple(tuple(row) for row in rows))

    def _problems(self) -> list[str]:
        problems = feature_problems(self.features, distinct=True)
        if not problems and len(self.features) < self.needs.min_arms:
            problems.append(
                f"features must describe at least {self.needs.min_arms} arms, got {len(self.features)}"
            )
        return problems

    @property
    def rows(self) -> FloatArray:
        """Features as an array of shape (arms, dimension)."""
        return np.array(self.features, dtype=np.float64)

    def _environment_problems(self, env: Environment, horizon: int) -> list[str]:
        problems = super()._environment_problems(env, horizon)
        if env.n_arms != len(self.features):
            problems.append(
                f"features describe {len(self.features)} arms, but the environment has {env.n_arms}"
            )
        return problems

    def __repr__(self) -> str:
        n, dimension = self.rows.shape
        names = [one.name for one in fields(self) if one.name != "features"]
        parts = [f"{name}={getattr(self, name)!r}" for name in names]
        parts.append(f"features=<{n} arms, {dimension} coordinates>")
        return f"{type(self).__name__}({', '.join(parts)})"


@dataclass(frozen=True, kw_only=True)
class SequentialHalving(BestArmDesign):
    """Best-arm identification with a fixed budget, without privacy or features.

    Raises
    ------
    ParameterError
        When run, if the environment has contexts, or the horizon allows less than one pull of each arm per
        round.

    Notes
    -----
    In each of R = ceil(log2 K) rounds, each of the s remaining arms is pulled floor(T / (s R)) times, and the
    ceil(s / 2) arms with the highest means in this round are kept. Ties are broken at random, by an order of
    the arms that is drawn at the start. Rounds left over because of rounding are used to pull the recommended
    arm. Given the past, the propensities are 0 or 1.

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
        """Compiled entry point and tables for an environment and a horizon."""
        sizes = halving_sizes(environment.n_arms)
        return best_arm_program(best_arm_tables(sizes, budget=horizon, recording=recording))
