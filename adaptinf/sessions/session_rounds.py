"""Stored requests to a session: its rounds, its outcomes, and the answers under each key."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice
from numbers import Real
from typing import Any, NamedTuple, NoReturn

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.sessions.participants import Participants
from adaptinf.simulation.run import Record, empty_record
from adaptinf.spelling import reads_as
from adaptinf.texts import shown
from adaptinf.typing import FloatArray, IntArray

# Readers of JSON that use doubles cannot distinguish whole numbers beyond 2^53.
_LONGEST, _LARGEST = 200, 2**53


KINDS = (
    *("assign", "record", "amend", "remove_arm", "erase"),
    *("add_arm", "add_site", "add_kits", "retire_kit"),
)
"""Kinds of requests that have keys."""


class Answers:
    """Answers by request: rounds or, for amendments and operators' actions, positions in their lists."""

    def __init__(self) -> None:
        self.steps: dict[str, dict[Any, int]] = {kind: {} for kind in KINDS}

    def known(self, subject: str, key: Any) -> int | None:
        """The answer to an earlier request of this kind with the same key, if any."""
        for kind, steps in self.steps.items():
            if key is not None and key in steps:
                if kind != subject:
                    self.refuse(subject, key, kind)
                return steps[key]
        return None

    def refuse(self, subject: str, key: Any, kind: str) -> NoReturn:
        """Report that a key belongs to another request."""
        problem = (
            f"key {key!r:.60} already identifies another request ({kind}): give each request its own key"
        )
        raise ParameterError(subject, [problem])

    def keep(self, subject: str, key: Any, step: int) -> None:
        """Store the answer to a request under its key, if it has one."""
        if key is not None:
            self.steps[subject][key] = step

    def counts(self) -> tuple[int, ...]:
        """Number of keys of each kind."""
        return tuple(map(len, self.steps.values()))


def identity(name: str, value: Any) -> list[str]:
    """Problems with the identifier of a unit or a request."""
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST
    text = isinstance(value, str) and len(value) <= _LONGEST and bool(value.strip())
    if value is None or whole or text:
        return []
    what = f"text of at most {_LONGEST} characters or a whole number of at most 2^53 in absolute value"
    return [f"{name} must be {what}, got {shown(value)}"]


def reward_problems(reward: Any, span: tuple[float, float]) -> list[str]:
    """Problems with a reward; None stands for an outcome that will never arrive."""
    low, high = span
    if reward is None:
        return []
    try:
        number = float(reward) if isinstance(reward, Real | np.bool_) else math.nan
        if math.isfinite(number) and low <= number <= high:
            return []
    except OverflowError:  # Some whole numbers are too large for a float.
        pass
    return [f"reward must be a finite number from {low:g} to {high:g}, got {shown(reward)}"]


def same_reward(told: float, value: float | None) -> bool:
    """Whether a stored outcome, NaN for one that never arrives, equals this one."""
    return math.isnan(told) if value is None else told == value


@dataclass(frozen=True, slots=True, repr=False)
class Decision:
    """Answer to an assignment: an arm for a participant, or a kit if the trial is blinded.

    Attributes
    ----------
    id : int
        The id that `Session.record` requires.
    arm : label or None
        The arm that was assigned; None in a blinded trial, except to those who unblind a participant.
    round : int
        The round, counted from 1.
    kit : str or None
        Code of the kit that the participant receives, in a blinded trial.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.designs.UCB().session(["a", "b"], horizon=10).assign()
    Decision(id=1, arm='a', round=1)
    """

    id: int
    arm: Any
    round: int
    kit: str | None = None

    def known(self) -> dict[str, Any]:
        """The fields that are not None, by name."""
        fields = {"id": self.id, "arm": self.arm, "kit": self.kit, "round": self.round}
        return {name: value for name, value in fields.items() if value is not None}

    def __repr__(self) -> str:
        return f"Decision({', '.join(f'{name}={value!r}' for name, value in self.known().items())})"


@dataclass(frozen=True, slots=True)
class Outcome:
    """An outcome that has been recorded.

    Attributes
    ----------
    id : int
        The id of the decision.
    reward : float or None
        The reward; None if the outcome will never arrive.
    in_time : bool
        Whether the design learns from the outcome; the log contains it in any case.

    Examples
    --------
    >>> import adaptinf as ai
    >>> session = ai.designs.UCB().session(["a", "b"], horizon=10)
    >>> session.record(session.assign().id, 1.0)
    Outcome(id=1, reward=1.0, in_time=True)
    """

    id: int
    reward: float | None
    in_time: bool


class Marks(NamedTuple):
    """Amounts stored so far: rounds, outcomes, amendments, and keys by kind of request."""

    decided: int = 0
    told: int = 0
    amended: int = 0
    keys: tuple[int, ...] = (0,) * len(KINDS)


class Rounds:
    """Rounds in arrays with the length of the horizon; `codes` is (horizon, 1) for labels, otherwise (1, 1).

    `known` is the number of rounds that had begun when an outcome was recorded, or 0 before that; `told`
    lists the steps of outcomes in order of arrival. `amendments` lists steps and rewards; the record keeps
    the values that the design used. `removed` lists the arms that were removed, with the number of rounds at
    that time; `added` those that joined, and `switched` versions that took over with different decisions.
    `erased` contains the steps of participants whose unit and context have been erased.
    """

    def __init__(self, participants: Participants, horizon: int, with_propensities: bool) -> None:
        self._participants = participants
        self.record: Record = empty_record(
            horizon, participants.n_arms, with_propensities, participants.dimension
        )
        self.codes = np.empty((horizon, 1)) if participants.features else np.zeros((1, 1))
        self.known: IntArray = np.zeros(horizon, dtype=np.int64)
        self.told: IntArray = np.zeros(horizon, dtype=np.int64)
        self.decided, self.n_told = 0, 0
        self.amendments: list[tuple[int, float]] = []
        self.removed: list[tuple[int, int]] = []
        self.added: list[tuple[int, int]] = []
        self.switched: list[tuple[str, int]] = []
        self.erased: set[int] = set()
        self.units: list[Any] = []
        self.by_unit: dict[Any, int] = {}
        self._looks: dict[str, int] = {}
        self._looked = 0
        self.answers = Answers()

    def context(self, step: int) -> FloatArray:
        """The context of a round, in the form used by kernels."""
        contexts = self.record.vectors if self._participants.dimension else self.codes
        row: FloatArray = contexts[step if len(contexts) > 1 else 0]
        return row

    def begin(self, context: FloatArray, arm: int, status: int) -> int:
        """Store a decision; return the step of its round."""
        step, record = self.decided, self.record
        record.action[step], record.status[step], record.feature[step] = arm, status, 0
        record.reward[step] = np.nan
        if self._participants.dimension:
            record.vectors[step] = context
        elif self._participants.features:
            record.feature[step] = int(context[0])
            self.codes[step] = context
        self.decided += 1
        return step

    def blank(self, step: int) -> None:
        """Remove the context of a round."""
        blank = self._participants.blank()
        if self._participants.dimension:
            self.record.vectors[step] = blank
        elif self._participants.features:
            self.record.feature[step], self.codes[step] = int(blank[0]), blank

    def belongs(self, step: int, unit: Any) -> None:
        """Store the unit of the last round."""
        self.units.append(unit)
        if unit is not None:
            self.by_unit[unit] = step

    def alike(self, unit: Any) -> Any:
        """An assigned unit that differs from a new one only in case; None if there is none."""
        if not isinstance(unit, str) or unit in self.by_unit:
            return None
        for step in range(self._looked, self.decided):
            if isinstance(self.units[step], str):
                self._looks.setdefault(_look(self.units[step]), step)
        self._looked = self.decided
        step = self._looks.get(_look(unit), -1)
        return None if step < 0 else self.units[step]

    def forget_unit(self, step: int) -> None:
        """Erase the identity of a round's participant."""
        unit = self.units[step]
        self.by_unit.pop(unit, None)
        self._looks = {look: place for look, place in self._looks.items() if place != step}
        self.units[step] = None

    def tell(self, step: int, reward: float) -> None:
        """Store an outcome, NaN for one that will never arrive."""
        self.record.reward[step] = reward
        self.known[step] = self.decided
        self.told[self.n_told] = step
        self.n_told += 1

    def amended(self) -> dict[int, float]:
        """Valid outcomes that replace recorded ones, keyed by step."""
        return dict(self.amendments)

    def marks(self) -> Marks:
        """Amounts stored."""
        return Marks(self.decided, self.n_told, len(self.amendments), self.answers.counts())

    def cut(self, since: Marks) -> None:
        """Restore earlier amounts, if only assignments, outcomes and amendments have changed them since."""
        later = self.told[since.told : self.n_told]
        self.record.reward[later], self.known[later] = np.nan, 0
        for unit in self.units[since.decided :]:
            self.by_unit.pop(unit, None)
        if self.decided > since.decided:
            self._looks = {look: step for look, step in self._looks.items() if step < since.decided}
        self._looked = min(self._looked, since.decided)
        del self.units[since.decided :], self.amendments[since.amended :]
        for kind, count in zip(KINDS, since.keys, strict=True):
            steps = self.answers.steps[kind]
            for key in list(islice(reversed(steps), len(steps) - count)):
                del steps[key]
        self.decided, self.n_told = since.decided, since.told

    def part(self, since: Marks) -> dict[str, Any]:
        """The data added after `since`, in arrays and lists, as accepted by `extend`."""
        record, told = self.record, self.told[since.told : self.n_told]
        new = slice(since.decided, self.decided)
        part: dict[str, Any] = {
            name: getattr(record, name)[new].astype(np.int32) for name in ("action", "status", "feature")
        }
        part |= {name: getattr(record, name)[new] for name in ("propensities", "vectors")}
        part["units"] = self.units[new]
        part["told"], part["known"] = told.astype(np.int32), self.known[told].astype(np.int32)
        part["reward"] = record.reward[told]
        amendments = self.amendments[since.amended :]
        part["amended"] = np.array([step for step, _ in amendments], dtype=np.int32)
        part["amended reward"] = np.array([reward for _, reward in amendments], dtype=np.float64)
        for kind, count in zip(KINDS, since.keys, strict=True):
            steps = self.answers.steps[kind]
            part[f"{kind} keys"] = list(islice(steps, count, None))
            part[f"{kind} steps"] = np.fromiter(islice(steps.values(), count, None), dtype=np.int32)
        return part

    def extend(self, part: dict[str, Any]) -> None:
        """Add the output of `part`."""
        record, units = self.record, part["units"]
        first, last = self.decided, self.decided + len(units)
        new, rows = slice(first, last), np.arange(first, last)
        for name in ("action", "status", "feature", "vectors"):
            getattr(record, name)[new] = part[name]
        if record.propensities.shape[1]:
            # Before an arm joined, its probability was 0.
            record.propensities[new] = 0.0
            record.propensities[new, : part["propensities"].shape[1]] = part["propensities"]
            record.propensity[new] = record.propensities[rows, record.action[new]]
        if self._participants.features:
            self.codes[new, 0] = record.feature[new]
        record.reward[new] = np.nan
        self.units += units
        self.by_unit.update((unit, step) for step, unit in enumerate(units, first) if unit is not None)
        told = part["told"]
        record.reward[told], self.known[told] = part["reward"], part["known"]
        self.told[self.n_told : self.n_told + len(told)] = told
        self.decided, self.n_told = last, self.n_told + len(told)
        self.amendments += zip(part["amended"].tolist(), part["amended reward"].tolist(), strict=True)
        for kind in KINDS:
            self.answers.steps[kind].update(
                zip(part[f"{kind} keys"], part[f"{kind} steps"].tolist(), strict=True)
            )


def _look(unit: str) -> str:
    return reads_as(unit).lower()
