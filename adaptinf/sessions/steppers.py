"""A design at work, one call at a time: its compiled kernels, or a user's functions."""

from __future__ import annotations

import pickle
from typing import Any, Protocol

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.simulation.functions import Decider, Functions, seen_vectors
from adaptinf.simulation.replicate import Program
from adaptinf.simulation.run import RELEASED, ROUND, SCALARS
from adaptinf.simulation.steps import CHOOSE, FINISH, UPDATE, WAIT, Step
from adaptinf.typing import FloatArray


class Stepper(Protocol):
    """What a session needs; contexts as kernels have them, of shape (1,) or (arms * dimension,)."""

    status: int
    """Kind of the round that was chosen last."""
    noise: str
    """Where privacy noise comes from."""

    def begun(self, status: int, now: int) -> None:
        """Note that the last of `now` rounds has begun, with this status, whose outcome may not be in."""

    def choose(self, context: FloatArray, now: int) -> tuple[int, FloatArray | None]:
        """The arm after `now` rounds, and propensities (arms,); None where the arm is named without any."""

    def update(self, context: FloatArray, arm: int, reward: float, status: int, now: int) -> None:
        """Learn an outcome of a round with this status, `now` rounds having begun."""

    def outcome(self) -> FloatArray:
        """What a run reports at its end, as things stand."""

    def kept(self) -> dict[str, Any] | None:
        """What steps may change, for `remember` to go back to; None where that is not to be had."""

    def remember(self, memory: dict[str, Any]) -> None:
        """Go on where the memory was taken."""

    def released(self) -> FloatArray:
        """The releases so far, shape (releases, 5)."""


def stepper_of(
    program: Program, horizon: int, n_arms: int, shared: bool, clocked: bool, rng: np.random.Generator
) -> Stepper | None:
    """What takes the steps of a program; None where it has no steps."""
    if program.step is None:
        return None
    if isinstance(program.step, Functions):
        return FunctionStepper(program.step, shared, rng)
    return KernelStepper(program, horizon, n_arms, clocked, rng)


class KernelStepper:
    """The compiled kernels of a run, with the state between their calls.

    Where outcomes may be pending it is `clocked`: the state's count of rounds is that of the rounds that have
    begun, not of the outcomes that are in. A step beyond the horizon is refused: the tables of a kernel end
    there, and compiled code would read and write behind them.
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

    def _call(self, kernel: int, context: FloatArray, arm: int = 0, reward: float = 0.0) -> int:
        step = Step(kernel, arm, reward, context, self._report)
        return int(self.program.step(self.program.tables, step, self.rng, self.state))

    def _within(self, rounds: int) -> None:
        """Refuse more rounds than there are."""
        if rounds > self.horizon:
            raise ParameterError("session", [f"the horizon of {self.horizon:,} rounds is used up"])

    def begun(self, status: int, now: int) -> None:
        """Let the clock stand at `now`."""
        self._within(now)
        if self.clocked and self.state[SCALARS, ROUND] < now:
            self.program.tables.status[0] = status
            self._call(WAIT, self._nothing)

    def choose(self, context: FloatArray, now: int) -> tuple[int, FloatArray | None]:
        """The proposal after `now` rounds, and the design's own propensities, 0 and 1 where it has none."""
        self._within(now + 1)
        tables = self.program.tables
        tables.status[0] = 0
        arm = self._call(CHOOSE, context)
        self.status = int(tables.status[0])
        return arm, tables.propensity if tables.propensity.shape[0] else certain(arm, self._n_arms)

    def update(self, context: FloatArray, arm: int, reward: float, status: int, now: int) -> None:
        """Learn an outcome; the kernel counts the round, so that the clock stands at `now` afterwards."""
        self._within(now)
        if self.clocked:
            self.state[SCALARS, ROUND] = now - 1.0
        self.program.tables.status[0] = status
        self._call(UPDATE, context, arm, reward)

    def memory(self, fresh: KernelStepper) -> dict[str, Any]:
        """The state, and the tables that are not as those of a fresh stepper; `remember` takes it."""
        mine, begun = self.program.tables._asdict(), fresh.program.tables._asdict()
        mine["released"], begun["released"] = self.released(), fresh.released()
        written = {
            name: array.copy()
            for name, array in mine.items()
            if isinstance(array, np.ndarray) and array.tobytes() != begun[name].tobytes()
        }
        return {"state": self.state.copy(), "tables": written}

    def kept(self) -> dict[str, Any] | None:
        """The state, and all tables that can be written; releases lie behind each other, counted in it."""
        written = {
            name: array.copy()
            for name, array in self.program.tables._asdict().items()
            if name != "released" and isinstance(array, np.ndarray) and array.flags.writeable
        }
        return {"state": self.state.copy(), "tables": written}

    def remember(self, memory: dict[str, Any]) -> None:
        """Go on, as a fresh stepper or as this one later, where the memory was taken."""
        self.state[:] = memory["state"]
        for name, array in memory["tables"].items():
            getattr(self.program.tables, name)[: len(array)] = array

    def outcome(self) -> FloatArray:
        """What the design reports, as things stand."""
        self._call(FINISH, self._nothing)
        return self._report.copy()

    def released(self) -> FloatArray:
        """The releases so far."""
        rows: FloatArray = self.program.tables.released[: int(self.state[SCALARS, RELEASED])]
        return rows.copy()


class FunctionStepper:
    """A user's functions; after an error of theirs, coins and state are what they were before the call."""

    noise = "simulation"

    def __init__(self, functions: Functions, shared: bool, rng: np.random.Generator) -> None:
        self.functions, self.shared, self.rng, self.status = functions, shared, rng, 0
        self.decider = Decider(functions, rng, checked=True)

    def begun(self, status: int, now: int) -> None:
        """Nothing: functions count the outcomes that they learn."""

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
        """Learn an outcome."""
        try:
            self.decider.learn(self._seen(context), arm, reward, now - 1)
        except Exception:
            self._restore()
            raise

    def kept(self) -> dict[str, Any] | None:
        """Nothing: what a user's functions hold on to is not known."""
        return None

    def remember(self, memory: dict[str, Any]) -> None:
        """Nothing was kept."""
        raise NotImplementedError

    def _restore(self) -> None:
        self.decider.state = pickle.loads(self.decider.kept)

    def _seen(self, context: FloatArray) -> Any:
        """A context as `choose` and `update` see it."""
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
    """Propensities (arms,) of an arm that is named without any."""
    row = np.zeros(n_arms)
    row[arm] = 1.0
    return row
