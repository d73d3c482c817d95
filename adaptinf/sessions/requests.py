"""What a request must look like, and the answers that keys stand for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, NoReturn

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.texts import shown

_LONGEST, _LARGEST = 200, 2**53


KINDS = ("assign", "record", "amend", "remove_arm", "erase")
"""Requests that have keys."""


class Answers:
    """Answers by the keys of the requests: rounds; of amendments and removals their place in the lists."""

    def __init__(self) -> None:
        self.steps: dict[str, dict[Any, int]] = {kind: {} for kind in KINDS}

    def known(self, subject: str, key: Any) -> int | None:
        """What answered a request of this kind, if one was made before under the key.

        Raises
        ------
        ParameterError
            If the key stands for a request of another kind.
        """
        for kind, steps in self.steps.items():
            if key is not None and key in steps:
                if kind != subject:
                    self.refuse(subject, key, kind)
                return steps[key]
        return None

    def refuse(self, subject: str, key: Any, kind: str) -> NoReturn:
        """Say that a key stands for another request."""
        problem = f"key {key!r:.60} stands for another request, one of {kind}: give each its own key"
        raise ParameterError(subject, [problem])

    def keep(self, subject: str, key: Any, step: int) -> None:
        """Note what answered a request under its key, if it has one."""
        if key is not None:
            self.steps[subject][key] = step

    def counts(self) -> tuple[int, ...]:
        """Keys of each kind."""
        return tuple(map(len, self.steps.values()))


def plain(value: Any) -> Any:
    """A NumPy scalar as the Python value that it is."""
    return value.item() if isinstance(value, np.generic) else value


def identity(name: str, value: Any) -> list[str]:
    """What is wrong with a name of a unit or a request."""
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST
    text = isinstance(value, str) and len(value) <= _LONGEST and bool(value.strip())
    if value is None or whole or text:
        return []
    what = f"text of at most {_LONGEST} characters or a whole number of at most 2^53 in size"
    return [f"{name} must be {what}, got {shown(value)}"]


def reward_problems(reward: Any, span: tuple[float, float]) -> list[str]:
    """What is wrong with a reward; None stands for one that will never come."""
    low, high = span
    if reward is None:
        return []
    try:
        number = float(reward) if isinstance(reward, Real | np.bool_) else math.nan
        if math.isfinite(number) and low <= number <= high:
            return []
    except OverflowError:  # a whole number that is no float
        pass
    return [f"reward must be a finite number from {low:g} to {high:g}, got {shown(reward)}"]


def same_reward(told: float, value: float | None) -> bool:
    """Whether an outcome as it is kept, NaN for one that never comes, is this."""
    return math.isnan(told) if value is None else told == value


@dataclass(frozen=True, slots=True)
class Decision:
    """An arm for a participant.

    Attributes
    ----------
    id : int
        What `Session.record` is told.
    arm : label
        The arm that was assigned.
    round : int
        The round, counted from 1.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.designs.UCB().session(["a", "b"], horizon=10).assign()
    Decision(id=1, arm='a', round=1)
    """

    id: int
    arm: Any
    round: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """An outcome that was recorded.

    Attributes
    ----------
    id : int
        Of the decision.
    reward : float or None
        The reward; None for an outcome that will never come.
    in_time : bool
        Whether the design learns from it; the log has it in any case.

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
