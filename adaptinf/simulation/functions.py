"""The run loop for decisions in plain Python: every answer is checked, and every run starts afresh."""

from __future__ import annotations

import math
import pickle
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

import numpy as np

from adaptinf.compilation import compiled
from adaptinf.errors import ParameterError
from adaptinf.simulation.run import (
    EnvironmentTables,
    Record,
    Results,
    World,
    arrival,
    draw_reward,
    draw_vectors,
    expected_rewards,
)
from adaptinf.typing import FloatArray, IntArray


class Potential(NamedTuple):
    """One run's contexts and potential rewards.

    Shapes: feature (rounds,), vectors (rounds, arms * dimension), expected (rounds, arms) or (0, arms)
    without context vectors, best (rounds,) or (0,), reward (rounds, arms).
    """

    feature: IntArray
    vectors: FloatArray
    expected: FloatArray
    best: FloatArray
    reward: FloatArray


def empty_potential(horizon: int, n_arms: int, dimension: int) -> Potential:
    """Space for one run."""
    expected = horizon if dimension else 0
    return Potential(
        feature=np.zeros(horizon, dtype=np.int64),
        vectors=np.zeros((horizon, n_arms * dimension)),
        expected=np.zeros((expected, n_arms)),
        best=np.zeros(expected),
        reward=np.zeros((horizon, n_arms)),
    )


@compiled
def draw_potential(environment: EnvironmentTables, rng: np.random.Generator, potential: Potential) -> None:
    """Draw a run, round by round: its context, then a reward for every arm."""
    n_rounds, n_arms = potential.reward.shape
    has_context = environment.n_features > 1
    has_vectors = environment.theta.shape[0] > 0
    for step in range(n_rounds):
        if has_context:
            potential.feature[step] = arrival(environment, step, rng)
        if has_vectors:
            row = draw_vectors(environment, step, rng, potential.vectors[step])
            potential.best[step] = expected_rewards(
                environment, row, potential.vectors[step], potential.expected[step]
            )
        for arm in range(n_arms):
            mean = potential.expected[step, arm] if has_vectors else 0.0
            potential.reward[step, arm] = draw_reward(
                environment, step, potential.feature[step], arm, mean, rng
            )


_SUM = 1e-8
"""Tolerance for the sum of probabilities, to allow for rounding, as in NumPy's `Generator.choice`."""
_WATCHED, _SPACING = 256, 16
"""Number of first rounds all checked for in-place changes of the state, and interval of later checks."""
_NUMBERS = {float, int}
_SURELY = 0.9 * _SUM
"""Tolerance for a sum that was rounded at every step."""


class FunctionTables(NamedTuple):
    """Arrays that every program has: shapes (1,), (arms,) or (0,), (0, 5)."""

    status: IntArray
    propensity: FloatArray
    released: FloatArray


@dataclass(frozen=True)
class Functions:
    """A user's decision functions, and their stated properties."""

    choose: Callable[[Any, Any, np.random.Generator], Any]
    update: Callable[[Any, Any, int, float], Any] | None
    start: Any
    n_arms: int
    labels: tuple[Any, ...] = ()
    """Possible contexts; empty if there are none, or if `choose` must not see them."""
    dimension: int = 0
    """Number of entries in a context vector; 0 if there are none, or if `choose` must not see them."""
    own_coins: bool = True
    floor: tuple[float, float] = (0.0, 0.0)
    """Scale and decay of the declared smallest probability."""
    _begun: list[bytes] = field(default_factory=list, compare=False)

    def begin(self) -> Any:
        """The initial state of a run, as a separate copy."""
        if not self._begun:
            self._begun.append(_pickled(self._first(), "start"))
        return pickle.loads(self._begun[0])

    def _first(self) -> Any:
        if not callable(self.start):
            return self.start
        try:
            return self.start(self.n_arms)
        except Exception as error:
            raise _failed(f"start({self.n_arms})", error) from error


def run_functions(
    functions: Functions,
    tables: FunctionTables,
    world: World,
    rng: np.random.Generator,
    state: FloatArray,
    results: Results,
) -> None:
    """Run user-defined decisions once per row of the results, as `simulate_block` runs compiled ones.

    Shapes: state (1, 2), which is not used.
    """
    n_arms = results.tallies.shape[3]
    potential = empty_potential(world.horizon, n_arms, world.environment.theta.shape[1])
    for run in range(results.tallies.shape[0]):
        draw_potential(world.environment, rng, potential)
        path = _Path(functions, world, potential, rng, checked=run == 0)
        path.walk()
        path.settle(results, run)


class Decider:
    """A user's functions at work in one run: the state between calls, and checks on every answer."""

    def __init__(self, functions: Functions, rng: np.random.Generator, *, checked: bool) -> None:
        self.functions, self.rng, self.coin, self.checked = functions, rng, rng.random, checked
        self.n_arms, self.free = functions.n_arms, functions.own_coins and not functions.floor[0]
        self.state = functions.begin()
        self.kept = _pickled(self.state, "start") if checked else b""
        self.names_arms: bool | None = None

    def watch(self, checked: bool, step: int) -> None:
        """Set whether to look for in-place changes of the state from this round on."""
        if checked and not self.checked:
            self.kept = _pickled(self.state, "the state", step)
        self.checked = checked

    def choose(self, context: Any, step: int) -> tuple[int, list[float] | None]:
        """The arm for a round, and the propensities; None if `choose` returns arms without probabilities."""
        try:
            answer = self.functions.choose(self.state, context, self.rng)
        except Exception as error:
            raise _failed("choose", error, step) from error
        if self.checked:
            _refuse_change("choose", self.kept, self.state, step)
        if type(answer) is list and self.names_arms is False and self.free and len(answer) == self.n_arms:
            # What most functions return: floats in which `_read` would find nothing wrong.
            total = 0.0
            for value in answer:
                if type(value) is not float or value < 0.0:
                    break
                total += value
            else:
                if -_SURELY <= total - 1.0 <= _SURELY:
                    return _drawn(answer, self.coin()), answer
        return self._read(answer, step)

    def learn(self, context: Any, arm: int, reward: float, step: int) -> None:
        """Update the state with an outcome, after a round."""
        update, state = self.functions.update, self.state
        if update is None:
            return
        try:
            after = update(state, context, arm, reward)
        except Exception as error:
            raise _failed("update", error, step) from error
        if after is None and state is not None:
            raise _wrong("update returned None instead of a state: does it end with return?", step)
        if self.checked:
            if after is not state:
                _refuse_change("update", self.kept, state, step)
            found = _pickled(after, "the state", step)
            if after is state and found != self.kept:
                raise _changed("update", step)
            self.kept = found
        self.state = after

    def _read(self, answer: Any, step: int) -> tuple[int, list[float] | None]:
        """The arm given by an answer, or drawn with its probabilities, and the probabilities."""
        n_arms = self.functions.n_arms
        named = isinstance(answer, (int, np.integer)) and not isinstance(answer, bool)
        if named and not 0 <= answer < n_arms:
            raise _wrong(
                f"choose returned arm {answer}; arms are numbered 0 to {n_arms - 1} in the order of the "
                "environment",
                step,
            )
        if self.names_arms not in (None, named):
            raise _mixed(step)
        if named:
            self.names_arms = True
            return int(answer), None
        values = _probabilities(answer, n_arms, step)
        if not self.functions.own_coins and max(values) < 1.0:
            raise _wrong("choose returned several possible arms, but the traits state own_coins=False", step)
        scale, decay = self.functions.floor
        if scale and min(values) < scale * (step + 1.0) ** -decay * (1.0 - 1e-9):
            raise _wrong(
                f"choose returned a probability of {min(values):.6g}, below the floor stated in the traits "
                f"({scale * (step + 1.0) ** -decay:.6g})",
                step,
            )
        self.names_arms = False
        return _drawn(values, self.coin()), values


class _Path:
    """One run."""

    def __init__(
        self,
        functions: Functions,
        world: World,
        potential: Potential,
        rng: np.random.Generator,
        *,
        checked: bool,
    ) -> None:
        self.functions, self.world, self.potential, self.rng = functions, world, potential, rng
        self.decider, self.checked = Decider(functions, rng, checked=checked), checked
        self.actions: list[int] = []
        self.proposals: list[int] = []
        self.overridden: list[bool] = []
        self.propensities = array("d")

    def walk(self) -> None:
        """Choose, draw the reward and update, round by round."""
        decider, learns = self.decider, self.functions.update is not None
        rewards, contexts, checked = self.potential.reward, self._contexts(), self.checked
        share, forced, rng = self.world.share.tolist(), self.world.forced.tolist(), self.rng
        delay = self.world.environment.delay.tolist()
        due: list[list[tuple[Any, int, float]]] = [[] for _ in delay]
        for step in range(self.world.horizon):
            if checked and step >= _WATCHED and step % _SPACING < 2:
                decider.watch(step % _SPACING == 0, step)
            if delay:
                for seen, chosen, earlier in due[step]:
                    decider.learn(seen, chosen, earlier, step - 1)
            context = None if contexts is None else contexts[step]
            arm, propensities = decider.choose(context, step)
            if propensities is not None:
                self.propensities.extend(propensities)
            if share:
                self.proposals.append(arm)
                overridden = rng.random() < share[step]
                self.overridden.append(overridden)
                if overridden:
                    arm = min(int(rng.random() * self.functions.n_arms), self.functions.n_arms - 1)
            if forced:
                arm = forced[step]
            self.actions.append(arm)
            if not learns:
                continue
            reward = rewards.item(step, arm)
            if not delay:
                decider.learn(context, arm, reward, step)
            elif step + 1 + delay[step][arm] < len(due):
                due[step + 1 + delay[step][arm]].append((context, arm, reward))

    def _contexts(self) -> Any:
        """The contexts passed to `choose`, one entry per round; None if it receives no contexts."""
        functions, potential = self.functions, self.potential
        if functions.dimension:
            shape = functions.n_arms, functions.dimension
            return seen_vectors(potential.vectors, shape, self.world.environment.shared)
        if functions.labels:
            return [functions.labels[code] for code in potential.feature.tolist()]
        return None

    def settle(self, results: Results, run: int) -> None:
        """Add the run to the results."""
        n_rounds, n_arms = self.potential.reward.shape
        steps = np.arange(n_rounds)
        action = np.array(self.actions, dtype=np.int64)
        status = np.zeros(n_rounds, dtype=np.int64)
        if self.overridden:
            status[self.overridden] = self.world.overridden
        feature, reward = self.potential.feature, self.potential.reward[steps, action]
        tallies = results.tallies[run]
        cell = np.ravel_multi_index((status, feature, action), tallies.shape[:3])
        for moment, weights in enumerate((None, reward, reward * reward)):
            counted = np.bincount(cell, weights, tallies[..., 0].size)
            tallies[..., moment] += counted.reshape(tallies.shape[:3])
        if len(self.potential.best):
            results.regret[run] += float((self.potential.best - self.potential.expected[steps, action]).sum())
        record = results.record
        if record.action.shape[0]:
            record.action[:], record.status[:], record.feature[:] = action, status, feature
            record.reward[:] = reward
            record.vectors[:] = self.potential.vectors
            if record.propensities.shape[1]:
                self._write_propensities(record, action, n_arms)
        for kept, row in ((record.actions, action), (record.statuses, status), (record.rewards, reward)):
            if kept.shape[0] and kept.shape[1]:
                kept[run] = row

    def _write_propensities(self, record: Record, action: IntArray, n_arms: int) -> None:
        """Write propensities; NaN if `choose` returns arms without probabilities and nothing overrides it."""
        own = np.full((len(action), n_arms), np.nan)
        mixing = self.world.share.shape[0] > 0
        if self.propensities:
            own[:] = np.frombuffer(self.propensities).reshape(own.shape)
        elif mixing:
            own[:] = np.eye(n_arms)[self.proposals]
        if mixing:
            share = self.world.share[: len(action), None]
            own = (1.0 - share) * own + share / n_arms
        record.propensities[:] = own
        record.propensity[:] = own[np.arange(len(action)), action]


def seen_vectors(rows: FloatArray, shape: tuple[int, int], shared: bool) -> FloatArray:
    """Context vectors as seen by `choose`, read-only.

    Shapes: rows (rounds, arms * dimension), shape (arms, dimension); returns (rounds, dimension) if the arms
    share them, otherwise (rounds, arms, dimension).
    """
    vectors = rows.reshape(-1, *shape).copy()
    vectors.flags.writeable = False
    return vectors[:, 0] if shared else vectors


def _probabilities(answer: Any, n_arms: int, step: int) -> list[float]:
    """Probabilities of the arms, checked."""
    if type(answer) is list and len(answer) == n_arms and _NUMBERS.issuperset(map(type, answer)):
        values = [float(value) for value in answer]
        return values if _adds_up(values) else _refuse_values(values, step)
    array = answer if isinstance(answer, np.ndarray) else _array(answer)
    if array is None or array.dtype.kind not in "biuf" or array.ndim == 0:
        raise _wrong(
            f"choose returned {answer!r:.60}; it must return the number of an arm (a whole number), or "
            f"{n_arms} probabilities",
            step,
        )
    if array.shape != (n_arms,):
        raise _wrong(f"choose returned an array of shape {array.shape} for {n_arms} arms", step)
    values = [float(value) for value in array.tolist()]
    return values if _adds_up(values) else _refuse_values(values, step)


def _adds_up(values: list[float]) -> bool:
    return abs(math.fsum(values) - 1.0) <= _SUM and min(values) >= 0.0


def _refuse_values(values: list[float], step: int) -> NoReturn:
    total = math.fsum(values)
    what = "NaN" if math.isnan(total) else f"numbers that sum to {total:.10g}"
    if min(values) < 0.0:
        what = f"a negative probability ({min(values):.6g})"
    raise _wrong(
        f"choose returned {what}: {values!r:.80}; probabilities must be nonnegative and sum to 1", step
    )


def _array(answer: Any) -> np.ndarray[Any, Any] | None:
    try:
        return np.asarray(answer)
    except (TypeError, ValueError):
        return None


def _drawn(values: list[float], draw: float) -> int:
    """The arm selected by a uniform number."""
    last = 0
    for arm, probability in enumerate(values):
        draw -= probability
        if draw < 0.0:
            return arm
        last = arm if probability > 0.0 else last
    return last


def _pickled(state: Any, what: str, step: int | None = None) -> bytes:
    try:
        return pickle.dumps(state, protocol=5)
    except Exception as error:
        problem = (
            f"{what} must consist of values that can be pickled, so that every run starts from the same state"
        )
        raise _wrong(f"{problem} ({type(error).__name__}: {error})", step) from error


def _refuse_change(name: str, before: bytes, state: Any, step: int) -> None:
    if pickle.dumps(state, protocol=5) != before:
        raise _changed(name, step)


def _changed(name: str, step: int) -> ParameterError:
    return _wrong(
        f"{name} changed the state in place; leave it unchanged, and let update return a new one (copy "
        "arrays, lists and dicts first, such as counts = state.copy())",
        step,
    )


def _mixed(step: int) -> ParameterError:
    return _wrong(
        "choose returned an arm in some rounds and probabilities in others, so the log would lack "
        "propensities: return probabilities in every round (1 for an arm that is certain)",
        step,
    )


def _failed(call: str, error: Exception, step: int | None = None) -> ParameterError:
    return _wrong(f"{call} failed: {type(error).__name__}: {error}", step)


def _wrong(problem: str, step: int | None) -> ParameterError:
    """One error that names the round, counted from 1 as in a log."""
    where = "" if step is None else f"in round {step + 1}, "
    return ParameterError("FunctionDesign", [where + problem])
