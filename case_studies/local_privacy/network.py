"""The comparator with a one-layer network an arm: `LDPLinear` with another model and another noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from adaptinf.compilation import compiled, kernel
from adaptinf.designs.local.cube_designs import LocallyPrivate
from adaptinf.designs.local.local_linear_kernel import GREEDY, WARM_UP, report_radius
from adaptinf.designs.run_results import Status
from adaptinf.parameters import COUNT, POSITIVE, Count, OrNone
from adaptinf.privacy.noise import gaussian
from adaptinf.simulation.environments.cube_contexts import AuxiliaryLog
from adaptinf.simulation.replicate import Program
from adaptinf.simulation.run import ROUND, SCALARS, certain_arm, simulate_block

_SENSITIVITY = 2.0
_PROJECTED, _BEGUN = 2, 3
_INFORMATION, _WEIGHT, _ITERATE = range(3)


@dataclass(frozen=True, kw_only=True)
class LDPNetwork(LocallyPrivate):
    """A comparator: arms modelled by networks with one hidden layer, learnt from noisy clipped gradients.

    Parameters
    ----------
    epsilon : float
        Privacy parameter of a participant's record, context and reward.
    units : int, optional
        Hidden units, H; twice the coordinates of a context by default.
    step, radius : float
        As in `LDPLinear`; the ball of the radius is around the initial parameters.
    seed : int
        Of the initial parameters, which are public.
    auxiliary : tuple of AuxiliaryLog
        Logs that report before the trial begins, one after another, each under an epsilon of its own.

    Notes
    -----
    Ma et al. (2025) describe it in one sentence: the linear bandit, with the expected reward of an arm
    modelled by a single-layer network, other steps unchanged. So warm-up, greedy stage, steps, projection and
    averages are those of `LDPLinear`, and no regret bound is claimed. The paper has no norm of the noise.

    *Model.* With z = (2 x - 1, 1) the expected reward of an arm is 1 / (1 + exp(-u)), u = b + sum_h a_h
    tanh(w_h'z): p = H (d + 1) + H + 1 parameters. The w begin as standard normal draws, a and b as 0.

    *Report.* Of the arm pulled the gradient (mean - reward) grad u, divided by its length where that is above
    1; zero for the other arms; each plus noise in R^p with density proportional to exp(-epsilon |v| / 2), |v|
    the Euclidean length: a Gamma variable of shape p and scale 2 / epsilon times a uniform direction. In
    the warm-up the report is on the arm whose turn it is, alone.

    *Privacy.* Given the earlier reports, and with them all parameters, another record moves one arm's
    gradient from g to g', by at most |g| + |g'| <= 2, or takes it from one arm, by |g| <= 1, to another, by
    |g'| <= 1. Lengths add up to at most 2 over the arms, and so the density of the report changes by a factor
    of at most exp(2 epsilon / 2): it is epsilon-private. Clipped gradients of a reward of 0 and of 1 may be
    opposite, so that rewards have epsilon, not epsilon / 2. The arm itself is no output, as in `LDPLinear`.
    """

    epsilon: float
    units: int | None = None
    step: float = 1.0
    radius: float = 4.0
    seed: int = 0
    auxiliary: tuple[AuxiliaryLog, ...] = ()

    statuses: ClassVar[tuple[Status, ...]] = (Status("warm-up", False), Status("greedy", False))
    # A reward may move a report as far as a record can.
    report_sensitivity: ClassVar[float] = 1.0
    not_covered: ClassVar[str] = "everything but the participant's own arm: it is the best for their context"

    def _problems(self) -> list[str]:
        problems = super()._problems() + OrNone(COUNT)("units, where it is given,", self.units)
        problems += POSITIVE("step", self.step)
        problems += POSITIVE("radius", self.radius)
        return problems + Count(0)("seed", self.seed)

    def outcome_names(self, n_features: int) -> tuple[str, ...]:
        return ("warm_up", "projected")

    def program(self, environment: Any, horizon: int, *, recording: bool, by_rounds: bool = True) -> Program:
        tables = self.tables(environment.n_arms, environment.dimension, horizon, recording=recording)
        shape = (1 + tables.n_arms + 2, max(_ITERATE + 2 * tables.n_parameters, 4))
        return Program(_run_network, tables, shape, n_statuses=2, n_outcomes=2)

    def tables(self, n_arms: int, dimension: int, horizon: int, *, recording: bool = False) -> NetworkTables:
        units = 2 * dimension if self.units is None else int(self.units)
        hidden = units * (dimension + 1)
        parameters = hidden + units + 1
        logs = [part.log.arrays for part in self.auxiliary]
        epsilons = np.array([*(part.epsilon for part in self.auxiliary), self.epsilon], dtype=np.float64)
        scales = _SENSITIVITY / epsilons
        lengths = parameters * (parameters + 1) * scales * scales
        turns = math.sqrt(horizon) * (1.0 + math.sqrt(lengths[-1] / parameters))
        initial = np.zeros((n_arms, parameters))
        initial[:, :hidden] = np.random.default_rng(self.seed).standard_normal((n_arms, hidden))
        return NetworkTables(
            n_arms=n_arms,
            dimension=dimension,
            units=units,
            n_parameters=parameters,
            horizon=horizon,
            warm_up=min(horizon, n_arms * math.ceil(min(turns, horizon))),
            radius=float(self.radius),
            reach=float(self.step) * float(self.radius),
            initial=initial,
            scales=scales,
            squares=1.0 + lengths,
            starts=np.cumsum([0, *(part.reward.size for part in logs)]),
            contexts=np.concatenate([np.zeros((0, dimension)), *(part.contexts for part in self.auxiliary)]),
            arms=np.concatenate([np.zeros(0, np.int64), *(part.action for part in logs)]),
            rewards=np.concatenate([np.zeros(0), *(part.reward for part in logs)]),
            status=np.zeros(1, dtype=np.int64),
            propensity=np.zeros(n_arms if recording else 0),
            released=np.zeros((0, 5)),
        )


class NetworkTables(NamedTuple):
    """As `LDPLinearTables`, with the hidden units and the initial parameters, shape (arms, parameters).

    Parameters of an arm: the weights of each unit on z, then the units' weights, then the constant.
    """

    n_arms: int
    dimension: int
    units: int
    n_parameters: int
    horizon: int
    warm_up: int
    radius: float
    reach: float
    initial: np.ndarray
    scales: np.ndarray
    squares: np.ndarray
    starts: np.ndarray
    contexts: np.ndarray
    arms: np.ndarray
    rewards: np.ndarray
    status: np.ndarray
    propensity: np.ndarray
    released: np.ndarray


@kernel
def _unit(tables: Any, state: np.ndarray, context: np.ndarray, at: int, row: int) -> float:
    """What a hidden unit gives out, its weights beginning at a column of a row."""
    total = state[row, at + tables.dimension]
    for k in range(tables.dimension):
        total += state[row, at + k] * (2.0 * context[k] - 1.0)
    return math.tanh(total)


@kernel
def _predictor(tables: Any, state: np.ndarray, context: np.ndarray, row: int, block: int) -> float:
    width = tables.dimension + 1
    outer = block + tables.units * width
    total = state[row, outer + tables.units]
    for unit in range(tables.units):
        total += state[row, outer + unit] * _unit(tables, state, context, block + unit * width, row)
    return float(total)


@kernel
def _gradient(tables: Any, state: np.ndarray, context: np.ndarray, arm: int, reward: float) -> None:
    """Leave the clipped gradient in the row after the arms'."""
    row, into = 1 + arm, 1 + tables.n_arms
    width = tables.dimension + 1
    outer = tables.units * width
    predictor = _predictor(tables, state, context, row, _ITERATE)
    residual = 1.0 / (1.0 + math.exp(-predictor)) - min(max(reward, 0.0), 1.0)
    for unit in range(tables.units):
        given = _unit(tables, state, context, _ITERATE + unit * width, row)
        state[into, outer + unit] = residual * given
        inner = residual * state[row, _ITERATE + outer + unit] * (1.0 - given * given)
        for k in range(tables.dimension):
            state[into, unit * width + k] = inner * (2.0 * context[k] - 1.0)
        state[into, unit * width + tables.dimension] = inner
    state[into, outer + tables.units] = residual
    square = 0.0
    for k in range(tables.n_parameters):
        square += state[into, k] * state[into, k]
    shrink = 1.0 / max(math.sqrt(square), 1.0)
    for k in range(tables.n_parameters):
        state[into, k] *= shrink


@kernel
def _step(tables: Any, state: np.ndarray, arm: int, share: float, origin: int, source: Any) -> None:
    """One noisy gradient of an arm, share 0 where another one was pulled: step, projection, average."""
    row, gradient, noise = 1 + arm, 1 + tables.n_arms, 2 + tables.n_arms
    parameters = tables.n_parameters
    size = report_radius(source, parameters, tables.scales[origin])
    square = 0.0
    for k in range(parameters):
        draw = gaussian(source, 1.0)
        state[noise, k] = draw
        square += draw * draw
    size /= math.sqrt(square)
    information = 1.0 / tables.squares[origin]
    state[row, _INFORMATION] += information
    rate = tables.reach * information / math.sqrt(state[row, _INFORMATION])
    square = 0.0
    for k in range(parameters):
        state[row, _ITERATE + k] -= rate * (share * state[gradient, k] + size * state[noise, k])
        away = state[row, _ITERATE + k] - tables.initial[arm, k]
        square += away * away
    shrink = 1.0
    if square > tables.radius * tables.radius:
        shrink = tables.radius / math.sqrt(square)
        state[SCALARS, _PROJECTED] += 1.0
    weight = information * state[row, _INFORMATION]
    state[row, _WEIGHT] += weight
    part = weight / state[row, _WEIGHT]
    for k in range(parameters):
        value = tables.initial[arm, k] + shrink * (state[row, _ITERATE + k] - tables.initial[arm, k])
        state[row, _ITERATE + k] = value
        average = state[row, _ITERATE + parameters + k]
        state[row, _ITERATE + parameters + k] = average + part * (value - average)


@kernel
def _report(
    tables: Any, state: np.ndarray, context: np.ndarray, arm: int, reward: float, origin: int, source: Any
) -> None:
    """One participant's report on all arms."""
    _gradient(tables, state, context, arm, reward)
    for other in range(tables.n_arms):
        _step(tables, state, other, 1.0 if other == arm else 0.0, origin, source)


@kernel
def _jump_start(tables: Any, state: np.ndarray, source: Any) -> None:
    state[SCALARS, _BEGUN] = 1.0
    for arm in range(tables.n_arms):
        for k in range(tables.n_parameters):
            state[1 + arm, _ITERATE + k] = tables.initial[arm, k]
            state[1 + arm, _ITERATE + tables.n_parameters + k] = tables.initial[arm, k]
    for origin in range(tables.starts.shape[0] - 1):
        for participant in range(tables.starts[origin], tables.starts[origin + 1]):
            arm, reward = tables.arms[participant], tables.rewards[participant]
            _report(tables, state, tables.contexts[participant], arm, reward, origin, source)


@kernel
def _choose(tables: Any, state: np.ndarray, context: np.ndarray, source: Any) -> int:
    if state[SCALARS, _BEGUN] == 0.0:
        _jump_start(tables, state, source)
    best = 0
    now = int(state[SCALARS, ROUND])
    if now < tables.warm_up:
        tables.status[0] = WARM_UP
        best = now % tables.n_arms
    else:
        tables.status[0] = GREEDY
        highest = -math.inf
        for arm in range(tables.n_arms):
            index = _predictor(tables, state, context, 1 + arm, _ITERATE + tables.n_parameters)
            if index > highest:
                highest = index
                best = arm
    certain_arm(tables, best)
    return best


@kernel
def _update(
    tables: Any, state: np.ndarray, context: np.ndarray, arm: int, reward: float, source: Any
) -> None:
    trial = tables.scales.shape[0] - 1
    if state[SCALARS, ROUND] < tables.warm_up:
        _gradient(tables, state, context, arm, reward)
        _step(tables, state, arm, 1.0, trial, source)
    else:
        _report(tables, state, context, arm, reward, trial, source)
    state[SCALARS, ROUND] += 1.0


@kernel
def _finish(tables: Any, state: np.ndarray, outcome: np.ndarray) -> None:
    outcome[0] = tables.warm_up
    outcome[1] = state[SCALARS, _PROJECTED]


@compiled
def _run_network(tables: Any, world: Any, rng: Any, state: Any, results: Any) -> None:
    simulate_block(_choose, _update, _finish, tables, world, rng, state, results)
