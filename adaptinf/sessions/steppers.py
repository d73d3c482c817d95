"""Designs that make one decision per call, by compiled kernels (with simulated or exact noise) or functions.

With exact noise, each node is drawn once, before the state changes. Rewards and noise are
integers in units of 2^-20. Below 2^53 units, floats represent integers exactly and add them without rounding,
so the simulation's kernels compute with integers here.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from adaptinf.compilation import machine_code
from adaptinf.errors import ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.parameters import POSITIVE
from adaptinf.privacy.noise import Nodes, Told
from adaptinf.privacy.release import GRID_UNITS, discrete_laplace, item_on_grid, to_grid
from adaptinf.simulation.functions import Decider, Functions, seen_vectors
from adaptinf.simulation.replicate import Program
from adaptinf.simulation.run import CHOOSE, FINISH, RELEASED, ROUND, SCALARS, UPDATE, WAIT, Step
from adaptinf.typing import BoolArray, FloatArray, IntArray


class Stepper(Protocol):
    """Interface needed by a session; contexts have the kernels' form, shape (1,) or (arms * dimension,)."""

    status: int
    """Kind of the round chosen last."""
    noise: str
    """Source of privacy noise."""

    def begun(self, status: int, now: int) -> None:
        """Record that the last of `now` rounds has begun, with this status; its outcome may be pending."""

    def choose(self, context: FloatArray, now: int) -> tuple[int, FloatArray | None]:
        """The arm after `now` rounds, and propensities (arms,), or None if the design names only the arm."""

    def update(self, context: FloatArray, arm: int, reward: float, status: int, now: int) -> None:
        """Process the outcome of a round with this status, after `now` rounds have begun."""

    def outcome(self) -> FloatArray:
        """The report of a run that ended in the current state."""

    def kept(self) -> dict[str, Any] | None:
        """The values that steps may change, to be restored by `remember`; None if unavailable."""

    def remember(self, memory: dict[str, Any]) -> None:
        """Continue from a saved state."""

    def released(self) -> FloatArray:
        """The releases so far, shape (releases, 5)."""


def stepper_of(
    program: Program, horizon: int, n_arms: int, shared: bool, clocked: bool, rng: np.random.Generator
) -> Stepper | None:
    """The stepper for a program; None if it has no steps."""
    if program.step is None:
        return None
    if isinstance(program.step, Functions):
        return FunctionStepper(program.step, shared, rng)
    return KernelStepper(program, horizon, n_arms, clocked, rng)


class KernelStepper:
    """The compiled kernels of a run, with the state between calls.

    If outcomes may be pending, the stepper is `clocked`: the state counts the rounds that have begun, not the
    outcomes received. A step beyond the horizon is refused: the tables of a kernel end there, and compiled
    code would read and write beyond them.
    """

    noise = "simulation"

    def __init__(
        self, program: Program, horizon: int, n_arms: int, clocked: bool, rng: np.random.Generator
    ) -> None:
        self.program, self.clocked, self.rng, self.status = program, clocked, rng, 0
        self.horizon = horizon
        self.state = np.zeros(program.state_shape)
        self._n_arms = n_arms
        self._nothing = np.zeros(0)
        self._report = np.zeros(program.n_outcomes)
        self._entry: Any = None

    def _call(self, kernel: int, context: FloatArray, arm: int = 0, reward: float = 0.0) -> int:
        return self._entered(self._step(kernel, context, arm, reward), self.rng, self.state)

    def _step(self, kernel: int, context: FloatArray, arm: int, reward: float) -> Step:
        """A compiled step whose arguments always have the same types."""
        return Step(kernel, arm, reward, np.ascontiguousarray(context, np.float64), self._report)

    def _entered(self, step: Step, source: Any, state: FloatArray) -> int:
        """Take a step, with a source of randomness that is always of the same type."""
        tables = self.program.tables
        if self._entry is None:
            self._entry = machine_code(self.program.step, tables, step, source, state)
        return int(self._entry(tables, step, source, state))

    def _within(self, rounds: int) -> None:
        """Refuse more rounds than were planned."""
        if rounds > self.horizon:
            raise ParameterError("session", [f"the horizon of {self.horizon:,} rounds has been reached"])

    def begun(self, status: int, now: int) -> None:
        """Set the clock to `now`."""
        self._within(now)
        if self.clocked and self.state[SCALARS, ROUND] < now:
            self.program.tables.status[0] = status
            self._call(WAIT, self._nothing)

    def choose(self, context: FloatArray, now: int) -> tuple[int, FloatArray | None]:
        """The proposal after `now` rounds, and the design's own propensities, 0 and 1 if it has none."""
        self._within(now + 1)
        tables = self.program.tables
        tables.status[0] = 0
        arm = self._call(CHOOSE, context)
        self.status = int(tables.status[0])
        return arm, tables.propensity if tables.propensity.shape[0] else certain(arm, self._n_arms)

    def update(self, context: FloatArray, arm: int, reward: float, status: int, now: int) -> None:
        """Process an outcome; the kernel counts the round, so that the clock is at `now` afterwards."""
        self._within(now)
        if self.clocked:
            self.state[SCALARS, ROUND] = now - 1.0
        self.program.tables.status[0] = status
        self._call(UPDATE, context, arm, reward)

    def memory(self, fresh: KernelStepper) -> dict[str, Any]:
        """The state, and the tables that differ from those of a new stepper, as accepted by `remember`."""
        mine, begun = self.program.tables._asdict(), fresh.program.tables._asdict()
        mine["released"], begun["released"] = self.released(), fresh.released()
        written = {
            name: array.copy()
            for name, array in mine.items()
            if isinstance(array, np.ndarray) and array.tobytes() != begun[name].tobytes()
        }
        return {"state": self.state.copy(), "tables": written}

    def kept(self) -> dict[str, Any] | None:
        """The state, including the number of releases, and all writable tables except the releases."""
        written = {
            name: array.copy()
            for name, array in self.program.tables._asdict().items()
            if name != "released" and isinstance(array, np.ndarray) and array.flags.writeable
        }
        return {"state": self.state.copy(), "tables": written}

    def remember(self, memory: dict[str, Any]) -> None:
        """Continue from a saved state, in a new stepper or in this one."""
        self.state[:] = memory["state"]
        for name, array in memory["tables"].items():
            getattr(self.program.tables, name)[: len(array)] = array

    def outcome(self) -> FloatArray:
        """The design's report in the current state."""
        self._call(FINISH, self._nothing)
        return self._report.copy()

    def released(self) -> FloatArray:
        """The releases so far."""
        rows: FloatArray = self.program.tables.released[: int(self.state[SCALARS, RELEASED])]
        return rows.copy()


class FunctionStepper:
    """User-defined functions; if they raise an error, coins and state are restored to before the call."""

    noise = "simulation"

    def __init__(self, functions: Functions, shared: bool, rng: np.random.Generator) -> None:
        self.functions, self.shared, self.rng, self.status = functions, shared, rng, 0
        self.decider = Decider(functions, rng, checked=True)

    def begun(self, status: int, now: int) -> None:
        """Do nothing, because functions count the outcomes that they process."""

    def choose(self, context: FloatArray, now: int) -> tuple[int, FloatArray | None]:
        """The arm after `now` rounds, and the probabilities that `choose` returned."""
        coins, names_arms = self.rng.bit_generator.state, self.decider.names_arms
        try:
            arm, propensities = self.decider.choose(self._seen(context), now)
        except Exception:
            self.rng.bit_generator.state = coins
            self.decider.names_arms = names_arms
            self._restore()
            raise
        return arm, None if propensities is None else np.array(propensities)

    def update(self, context: FloatArray, arm: int, reward: float, status: int, now: int) -> None:
        """Process an outcome."""
        try:
            self.decider.learn(self._seen(context), arm, reward, now - 1)
        except Exception:
            self._restore()
            raise

    def kept(self) -> dict[str, Any] | None:
        """Return nothing, because the memory of user-defined functions is unknown."""
        return None

    def remember(self, memory: dict[str, Any]) -> None:
        """Nothing was stored."""
        raise NotImplementedError

    def _restore(self) -> None:
        self.decider.state = pickle.loads(self.decider.kept)

    def _seen(self, context: FloatArray) -> Any:
        """A context in the form passed to `choose` and `update`."""
        functions = self.functions
        if functions.dimension:
            return seen_vectors(context, (functions.n_arms, functions.dimension), self.shared)[0]
        return functions.labels[int(context[0])] if functions.labels else None

    def outcome(self) -> FloatArray:
        """Nothing is reported."""
        return np.zeros(0)

    def released(self) -> FloatArray:
        """Nothing is released."""
        return np.zeros((0, 5))


def certain(arm: int, n_arms: int) -> FloatArray:
    """Propensities, of shape (arms,): 1 for the named arm, and 0 for all others."""
    row = np.zeros(n_arms)
    row[arm] = 1.0
    return row


Draw = Callable[[str, float], float]
"""A function that returns the noise of a named node with a given scale, both in units."""

LARGEST_SCALE, _LONGEST = 2.0**16, 2**32
"""Largest scale and number of rewards at which a sum with at most 128 nodes stays below 2^53 units: a draw
exceeds 1,024 scales with a probability of exp(-1,024)."""
_ROUNDINGS = 4
_ROOM = 16


class ExactSums(Protocol):
    """Sums with noise that a design computes in integers, outside its kernels."""

    def context(self, context: FloatArray) -> FloatArray:
        """A context in the form passed to the kernels."""

    def learn(
        self, context: FloatArray, arm: int, reward: float, draw: Draw
    ) -> tuple[FloatArray, FloatArray]:
        """Add a round, and return its releases and the scales of their noise; all noise is drawn first."""

    def memory(self) -> dict[str, Any]:
        """The complete state, in lists."""

    def remember(self, memory: dict[str, Any]) -> None:
        """Continue from a saved state."""


def exact_problems(design: object, horizon: int, n_arms: int) -> list[str]:
    """Why a design cannot be used with exact noise."""
    if getattr(design, "nodes", None) is None:
        reason = getattr(design, "inexact", "")
        return [f'noise="release" is not available for {type(design).__name__}: {reason}']
    if design.largest_scale(horizon, n_arms) > LARGEST_SCALE or horizon > _LONGEST:  # type: ignore[attr-defined]
        return [
            'noise="release" requires a larger epsilon: noisy sums would exceed the range of exact arithmetic'
        ]
    return []


def draw_node(name: str, scale: float) -> int:
    """A fresh draw from OpenDP."""
    return int(discrete_laplace(scale, 1)[0])


def unit_scale(scale: float) -> float:
    """A kernel's scale in units, rounded up to exceed the kernel's rounding errors."""
    units = scale * GRID_UNITS
    for _ in range(_ROUNDINGS):
        units = math.nextafter(units, math.inf)
    return units


def _room(coins: np.random.Generator, size: int) -> Nodes:
    """Nodes before any has been drawn."""
    values, scales = np.zeros(size), np.zeros(size)
    return Nodes(coins, values, scales, np.zeros((size, 2), np.int64), np.zeros(1, np.int64))


class ReleaseStepper(KernelStepper):
    """The kernels of a run, with noise by named nodes; choices do not use unreleased values."""

    noise = "release"

    def __init__(
        self,
        program: Program,
        horizon: int,
        n_arms: int,
        clocked: bool,
        coins: np.random.Generator,
        words: tuple[str, str],
        draw: Draw,
    ) -> None:
        super().__init__(program, horizon, n_arms, clocked, coins)
        self._words, self._draw = words, draw
        self._nodes = _room(coins, _ROOM)

    def _call(self, kernel: int, context: FloatArray, arm: int = 0, reward: float = 0.0) -> int:
        state = self.state.copy()
        if kernel == UPDATE:
            self._learn(self._step(kernel, context, arm, item_on_grid(min(max(reward, 0.0), 1.0))))
            return -1
        public = slice(self.program.n_public) if kernel == CHOOSE else slice(None)
        state[public.stop or len(state) :] = np.nan
        answer = self._run(self._step(kernel, context, arm, reward), state)
        self.state[public] = state[public]
        return answer

    def _run(self, step: Step, state: FloatArray) -> int:
        if self._nodes.coins is not self.rng:
            self._nodes = self._nodes._replace(coins=self.rng)
        self._nodes.asked[0] = 0
        return self._entered(step, self._nodes, state)

    def _learn(self, step: Step) -> None:
        """Draw the nodes requested by the kernel, one by one, and pass them all at once."""
        # The kernel runs on a copy of the state until all nodes are known, because which nodes it requests
        # may depend on the noise of earlier ones.
        status, known = int(self.program.tables.status[0]), 0
        while True:
            state = self.state.copy()
            self.program.tables.status[0] = status
            self._nodes.values[known:] = 0.0
            self._run(step, state)
            if self._nodes.asked[0] <= known:
                break
            stream, place = self._nodes.names[known].tolist()
            name = f"{self._words[0]} {stream}, {self._words[1]} {place}"
            units = self._draw(name, unit_scale(float(self._nodes.scales[known])))
            self._nodes.values[known] = units / GRID_UNITS
            known += 1
            if known == len(self._nodes.values):
                wider = _room(self.rng, 2 * known)
                wider.values[:known] = self._nodes.values
                self._nodes = wider
        self.state[:] = state


class SumsStepper(ReleaseStepper):
    """Stepper for a design whose sums are too large for exact floats: its kernels receive releases."""

    def __init__(
        self,
        program: Program,
        horizon: int,
        n_arms: int,
        clocked: bool,
        coins: np.random.Generator,
        words: tuple[str, str],
        draw: Draw,
        sums: ExactSums,
    ) -> None:
        super().__init__(program, horizon, n_arms, clocked, coins, words, draw)
        self._sums = sums
        self._told = Told(np.zeros(0), np.zeros(0), np.zeros(1, np.int64))

    def _call(self, kernel: int, context: FloatArray, arm: int = 0, reward: float = 0.0) -> int:
        return super()._call(kernel, self._sums.context(context), arm, reward)

    def _run(self, step: Step, state: FloatArray) -> int:
        return int(self.program.step(self.program.tables, step, self._told, state))

    def _learn(self, step: Step) -> None:
        """Add the reward to the sums; the kernel receives their releases, and no reward."""
        released = self._sums.learn(step.context, step.arm, step.reward, self._draw)
        self._told = Told(*released, np.zeros(1, np.int64))
        self._run(step._replace(reward=0.0), self.state)

    def memory(self, fresh: KernelStepper) -> dict[str, Any]:
        """As for the kernels alone, plus the sums."""
        return {**super().memory(fresh), "sums": self._sums.memory()}

    def kept(self) -> dict[str, Any] | None:
        """As for the kernels alone, plus the sums."""
        kernels = super().kept()
        return None if kernels is None else {**kernels, "sums": self._sums.memory()}

    def remember(self, memory: dict[str, Any]) -> None:
        """Continue from a saved state, in a new stepper or in this one."""
        super().remember(memory)
        self._sums.remember(memory["sums"])


SENSITIVITY = 2.0
"""Replacing a record takes at most 1 from one cell and adds at most 1 to another."""


def in_time_problems(design: Any, epsilon: Any, window: int | None) -> list[str]:
    """Why in-time outcomes cannot be counted; empty if this is not requested."""
    if epsilon is None:
        return []
    name, problems = type(design).__name__, POSITIVE("in_time", epsilon)
    if design.pending != "window" or window is None:
        return [*problems, f"in_time must be omitted: {name} has no window, so no outcome can be late"]
    if design.traits.uses_context != "no":
        problems.append(
            f"in_time must be omitted: {name} assigns arms by context, so the arms' rounds have different "
            "mixes of contexts, and their rates cannot be compared"
        )
    return problems


def with_in_time(guarantee: PrivacyGuarantee | None, epsilon: float | None) -> PrivacyGuarantee | None:
    """The guarantee of the histogram together with all other releases."""
    if guarantee is None or epsilon is None:
        return guarantee
    own = PrivacyGuarantee(epsilon, unit=guarantee.unit, model=guarantee.model, notion=guarantee.notion)
    return guarantee.compose(own)


def in_time_units(action: IntArray, reward: FloatArray, in_time: BoolArray, n_arms: int) -> IntArray:
    """Sums of r and of 1 - r over each arm's rounds with an outcome in time, in units of the grid.

    Shapes: action, reward, in_time (T,); returns (n_arms, 2).
    """
    won = to_grid(np.clip(reward[in_time], 0.0, 1.0))
    sums = np.zeros((n_arms, 2), dtype=np.int64)
    np.add.at(sums[:, 0], action[in_time], won)
    np.add.at(sums[:, 1], action[in_time], GRID_UNITS - won)
    return sums


def in_time_releaser(
    epsilon: float | None, draw: Draw | None, coins: np.random.Generator
) -> Callable[[IntArray], FloatArray] | None:
    """Function that releases the sums, with noise from `draw` or simulated by coins; None if not asked."""
    if epsilon is None:
        return None
    scale = unit_scale(SENSITIVITY / epsilon)

    def simulated(name: str, scale: float) -> float:
        return float(coins.laplace(scale=scale))

    return lambda units: in_time_release(units, scale, draw or simulated)


def in_time_release(units: IntArray, scale: float, draw: Draw) -> FloatArray:
    """The sums, each with noise of this scale in units, all drawn first; shapes (n_arms, 2)."""
    noise = [
        [draw(f"in-time {what} of arm {arm}", scale) for what in ("successes", "failures")]
        for arm in range(len(units))
    ]
    return np.array(
        [
            [(int(total) + each) / GRID_UNITS for total, each in zip(*row, strict=True)]
            for row in zip(units.tolist(), noise, strict=True)
        ],
        dtype=np.float64,
    )
