"""DP-ConSE: ConSE whose actions and estimates are differentially private.

The corrected calibration never lets a count stop a phase, and has pure differential privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from adaptinf.compilation import compiled, kernel
from adaptinf.designs.base import Design, ReleaseName, Status
from adaptinf.designs.conse import (
    CONSE_STATUSES,
    ESTIMATION_BETTER,
    ESTIMATION_RANDOMISED,
    LEARNING_BETTER,
    LEARNING_RANDOMISED,
    estimation_budget,
    write_propensity,
)
from adaptinf.designs.dp_conse_published import PUBLISHED_RELEASES, REASONS, published_program
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.parameters import choice_problem, count_problem, number_problem
from adaptinf.privacy.noise import laplace, uniform
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import Program, Run
from adaptinf.simulation.run import ROUND, SCALARS, EnvironmentTables, Record, release, simulate_block
from adaptinf.typing import FloatArray, IntArray

__all__ = ["DPConSE", "window_ends"]

_WINDOW, _T_MIN = 2, 3
_DECIDED, _CONTRAST, _ARRIVALS, _POOLED, _TOTAL, _INCLUSION, _BETTER, _LAST_CONTRAST, _LAST_ARRIVALS = range(
    1, 10
)
_ROWS = 10
_SCALAR_COLUMNS = 8
_CONTRAST_SUM, _ARRIVAL_COUNT = 0, 1
_CORRECTED_RELEASES = (ReleaseName("contrast_sum", "laplace"), ReleaseName("arrivals", "laplace"))


class _Tables(NamedTuple):
    """Windows of the first half, noise scales, and the logarithms in the elimination threshold."""

    horizon: int
    n_features: int
    alpha: float
    least: float
    ends: IntArray
    contrast_scale: float
    arrival_scale: float
    log_four: float
    log_two: float
    status: IntArray
    propensity: FloatArray
    released: FloatArray


@kernel
def _choose(tables: _Tables, state: FloatArray, context: FloatArray, source: Any) -> int:
    feature = int(context[0])
    first_half = state[SCALARS, ROUND] < tables.horizon // 2
    if first_half:
        inclusion = 1.0 if state[_DECIDED, feature] == 0.0 else 0.0
    else:
        inclusion = state[_INCLUSION, feature]
    better = int(state[_BETTER, feature])
    write_propensity(tables.propensity, 0.5 * inclusion + (1.0 - inclusion) * better)
    draw = uniform(source) if inclusion > 0.0 else 1.0
    if draw < inclusion:
        tables.status[0] = LEARNING_RANDOMISED if first_half else ESTIMATION_RANDOMISED
        return 1 if draw < 0.5 * inclusion else 0
    tables.status[0] = LEARNING_BETTER if first_half else ESTIMATION_BETTER
    return better


@kernel
def _window_ends(tables: _Tables, state: FloatArray, source: Any) -> None:
    """Release the window's sums, drop the worse arm where they tell, and forget them."""
    for feature in range(tables.n_features):
        arrivals = state[_ARRIVALS, feature] + laplace(source, tables.arrival_scale)
        release(tables, state, _ARRIVAL_COUNT, feature, arrivals, tables.arrival_scale)
        state[_TOTAL, feature] += arrivals
        if state[_DECIDED, feature] == 0.0:
            contrast = state[_CONTRAST, feature] + laplace(source, tables.contrast_scale)
            release(tables, state, _CONTRAST_SUM, feature, contrast, tables.contrast_scale)
            state[_POOLED, feature] += contrast
            upper = max(arrivals + tables.arrival_scale * tables.log_two, 0.0)
            threshold = math.sqrt(0.5 * upper * tables.log_four) + tables.contrast_scale * tables.log_two
            if abs(contrast) > threshold:
                state[_DECIDED, feature] = 1.0
                state[_BETTER, feature] = 1.0 if contrast > 0.0 else 0.0
        state[_CONTRAST, feature] = 0.0
        state[_ARRIVALS, feature] = 0.0
    state[SCALARS, _WINDOW] += 1.0


@kernel
def _half_time(tables: _Tables, state: FloatArray) -> None:
    """Fix the probability of entering the trial, from released numbers only."""
    for feature in range(tables.n_features):
        state[_TOTAL, feature] = max(1.0, state[_TOTAL, feature])
        if state[_DECIDED, feature] == 0.0:
            state[_BETTER, feature] = 1.0 if state[_POOLED, feature] > 0.0 else 0.0
    budget = estimation_budget(tables.least, state[_TOTAL], tables.n_features, tables.alpha)
    state[SCALARS, _T_MIN] = budget
    for feature in range(tables.n_features):
        state[_INCLUSION, feature] = min(1.0, budget / state[_TOTAL, feature])


@kernel
def _trial_ends(tables: _Tables, state: FloatArray, source: Any) -> None:
    for feature in range(tables.n_features):
        arrivals = state[_ARRIVALS, feature] + laplace(source, tables.arrival_scale)
        contrast = state[_CONTRAST, feature] + laplace(source, tables.contrast_scale)
        release(tables, state, _ARRIVAL_COUNT, feature, arrivals, tables.arrival_scale)
        release(tables, state, _CONTRAST_SUM, feature, contrast, tables.contrast_scale)
        state[_LAST_ARRIVALS, feature] = arrivals
        state[_LAST_CONTRAST, feature] = contrast


@kernel
def _update(
    tables: _Tables, state: FloatArray, context: FloatArray, arm: int, reward: float, source: Any
) -> None:
    state[SCALARS, ROUND] += 1.0
    now = int(state[SCALARS, ROUND])
    feature = int(context[0])
    status = tables.status[0]
    if status in (LEARNING_RANDOMISED, ESTIMATION_RANDOMISED):
        clipped = min(max(reward, 0.0), 1.0)
        state[_CONTRAST, feature] += (2.0 * arm - 1.0) * (clipped - 0.5)
    half = tables.horizon // 2
    if now <= half:
        state[_ARRIVALS, feature] += 1.0
        if now == tables.ends[int(state[SCALARS, _WINDOW])]:
            _window_ends(tables, state, source)
            if now == half:
                _half_time(tables, state)
    elif status == ESTIMATION_RANDOMISED:
        state[_ARRIVALS, feature] += 1.0
    if now == tables.horizon:
        _trial_ends(tables, state, source)


@kernel
def _finish(tables: _Tables, state: FloatArray, outcome: FloatArray) -> None:
    outcome[0] = state[SCALARS, _T_MIN]
    n_features = tables.n_features
    for feature in range(n_features):
        outcome[1 + feature] = state[_LAST_CONTRAST, feature]
        outcome[1 + n_features + feature] = state[_LAST_ARRIVALS, feature]
        outcome[1 + 2 * n_features + feature] = state[_INCLUSION, feature]
        outcome[1 + 3 * n_features + feature] = state[_BETTER, feature]


@compiled
def _run_block(
    tables: _Tables,
    environment: EnvironmentTables,
    horizon: int,
    rng: np.random.Generator,
    state: FloatArray,
    tallies: FloatArray,
    outcomes: FloatArray,
    record: Record,
) -> None:
    simulate_block(
        _choose, _update, _finish, tables, environment, horizon, rng, state, tallies, outcomes, record
    )


def window_ends(horizon: int, first_window: int | None = None) -> IntArray:
    """Last rounds of the first half's windows of doubling length.

    A remainder of less than half of the window that it would begin joins the window before it.

    Parameters
    ----------
    horizon : int
        Rounds of the trial.
    first_window : int, optional
        Length of the first window, by default max(64, ceil(horizon / 64)).

    Returns
    -------
    ndarray of int
        Increasing; the last one is floor(horizon / 2).

    Examples
    --------
    >>> window_ends(20_000)
    array([  313,   939,  2191,  4695, 10000])
    """
    half = horizon // 2
    length = max(64, math.ceil(horizon / 64)) if first_window is None else int(first_window)
    ends = [0]
    while ends[-1] + length <= half:
        ends.append(ends[-1] + length)
        length *= 2
    remainder = half - ends[-1]
    if remainder > 0 and (2 * remainder >= length or len(ends) == 1):
        ends.append(half)
    ends[-1] = half
    return np.array(ends[1:], dtype=np.int64)


def _corrected_program(
    horizon: int,
    n_features: int,
    alpha: float,
    contrast_budget: float,
    arrival_budget: float,
    ends: IntArray,
    recording: bool,
) -> Program:
    """Tables and entry point: windows end at `ends`, sums and arrivals are released at their budgets.

    The better arm is dropped with probability at most 3/4 of beta = 1 / horizon.
    """
    log_two = math.log(2.0 * n_features * ends.size * horizon)
    capacity = 2 * n_features * (ends.size + 1) if recording else 0
    tables = _Tables(
        horizon=horizon,
        n_features=n_features,
        alpha=float(alpha),
        least=4.0 * math.log(horizon) / arrival_budget,
        ends=ends,
        contrast_scale=1.0 / contrast_budget,
        arrival_scale=2.0 / arrival_budget,
        log_four=math.log(2.0) + log_two,
        log_two=log_two,
        status=np.zeros(1, dtype=np.int64),
        propensity=np.zeros(2 if recording else 0),
        released=np.zeros((capacity, 5)),
    )
    return Program(
        _run_block,
        tables,
        (_ROWS, max(n_features, _SCALAR_COLUMNS)),
        n_statuses=len(CONSE_STATUSES),
        n_outcomes=1 + 4 * n_features,
    )


@dataclass(frozen=True, kw_only=True)
class DPConSE(Design):
    """Differentially private ConSE: two arms, finitely many contexts, effects by context.

    Parameters
    ----------
    epsilon : float
        Privacy parameter of a participant's record.
    alpha : float
        In [0, 1]: 0 spends everything on estimation, 1 on regret.
    calibration : {"corrected", "published"}
        ``"corrected"`` has pure differential privacy. ``"published"`` follows the paper's pseudo-code, with
        the sign in the normaliser of its batch lengths mended; it has no finite epsilon.
    contrast_share : float
        Share of epsilon for the sums of rewards; the rest is for the counts of arrivals (corrected).
    first_window : int or None
        Rounds of the first window, by default max(64, ceil(n / 64)) (corrected).

    Raises
    ------
    ParameterError
        Listing every parameter that is out of range.

    Notes ----- Corrected, first half: windows of doubling length, fixed by the calendar. In a window each
    undecided context is assigned by a fair coin; at its end D_j = sum (2a - 1)(r - 1/2) over the randomised
    arrivals of each undecided context is released with Laplace(1/epsilon_D), and the number N_j of arrivals
    of each context with Laplace(2/epsilon_N). The worse arm is dropped where |D_j| is beyond what noise
    explains. Second half: each arrival enters the randomised trial with a public probability rho_j and
    otherwise gets the better arm, so the propensities are constant. At the end D_j and N_j over the trial
    are released.

    Rewards are clipped to [0, 1] before they enter a sum; the raw reward is logged. The guarantee is for a
    record, anticipating: everything but the participant's own action. For one reward it is epsilon_D,
    standard.

    Published: T_min has log n, noise on a mean has scale 2 / (epsilon R_e), lengths are drawn around 2 R_e,
    as the proof needs, epochs start at 1, and a context whose arms were not both pulled has no estimate.

    References
    ----------
    Li, J., Shi, K. and Simchi-Levi, D. (2024). Privacy preserving adaptive experiment design. ICML.

    Examples
    --------
    >>> from adaptinf.simulation.environments import FiniteContext
    >>> environment = FiniteContext([0.5, 0.5], [[0.4, 0.7], [0.6, 0.3]])
    >>> design = DPConSE(epsilon=1.0, alpha=0.2)
    >>> log = design.run(environment, horizon=20_000, rng=0)
    >>> print(log.guarantee.epsilon, log.guarantee.unit, log.guarantee.notion, log.reward_guarantee.epsilon)
    1.0 record anticipating 0.6
    """

    epsilon: float
    alpha: float = 0.0
    calibration: str = "corrected"
    contrast_share: float = 0.6
    first_window: int | None = None

    statuses: ClassVar[tuple[Status, ...]] = CONSE_STATUSES
    min_arms: ClassVar[int] = 2
    max_arms: ClassVar[int | None] = 2
    min_horizon: ClassVar[int] = 2

    @property
    def release_names(self) -> tuple[ReleaseName, ...]:  # type: ignore[override]
        """What the release codes of the calibration mean."""
        return _CORRECTED_RELEASES if self.calibration == "corrected" else PUBLISHED_RELEASES

    def _problems(self) -> list[str]:
        problems = number_problem("epsilon", self.epsilon, 0.0, open_low=True)
        problems += number_problem("alpha", self.alpha, 0.0, 1.0)
        problems += choice_problem("calibration", self.calibration, ("corrected", "published"))
        problems += number_problem("contrast_share", self.contrast_share, 0.0, 1.0, open_low=True)
        if not problems and self.contrast_share == 1.0:
            problems.append("contrast_share must be below 1: the counts of arrivals need a budget too")
        if self.first_window is not None:
            problems += count_problem("first_window", self.first_window)
        return problems

    def guarantee(self, horizon: int, n_arms: int) -> PrivacyGuarantee:
        """What actions and releases promise for a record: windows and halves are disjoint."""
        if self.calibration == "published":
            return PrivacyGuarantee(math.inf, unit="record", notion="anticipating", reasons=REASONS)
        contrasts = PrivacyGuarantee(self.contrast_share * self.epsilon, unit="record", notion="anticipating")
        arrivals = PrivacyGuarantee(
            (1.0 - self.contrast_share) * self.epsilon, unit="record", notion="anticipating"
        )
        return contrasts.compose(arrivals)

    def reward_guarantee(self, horizon: int, n_arms: int) -> PrivacyGuarantee | None:
        """With contexts and coins fixed, a reward moves one sum of rewards and no count."""
        if self.calibration == "published":
            return None
        return PrivacyGuarantee(epsilon=self.contrast_share * self.epsilon)

    def outcome_names(self, n_features: int) -> tuple[str, ...]:
        """Names of what a run reports at its end."""
        if self.calibration == "published":
            names = ["estimate", "length", "better_arm"]
        else:
            names = ["contrast_sum", "arrivals", "inclusion", "better_arm"]
        return ("t_min", *[name for name in names for _ in range(n_features)])

    def _adaptive_rounds(self, run: Run, horizon: int) -> int | None:
        return int((run.record.status == LEARNING_RANDOMISED).sum())

    def program(self, environment: Environment, horizon: int, *, recording: bool) -> Program:
        """Compiled entry point and tables for one environment and horizon."""
        if self.calibration == "published":
            return published_program(horizon, environment.n_features, self.alpha, self.epsilon, recording)
        return _corrected_program(
            horizon,
            environment.n_features,
            self.alpha,
            self.contrast_share * self.epsilon,
            (1.0 - self.contrast_share) * self.epsilon,
            window_ends(horizon, self.first_window),
            recording,
        )
