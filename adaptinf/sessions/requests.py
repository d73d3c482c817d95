"""What a request must look like, and the answers that keys stand for."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.texts import shown

_LONGEST, _LARGEST = 200, 2**53


class Answers:
    """Rounds by the keys of the requests that they answered."""

    def __init__(self) -> None:
        self._kept: dict[Any, tuple[tuple[Any, ...], int]] = {}

    def known(self, subject: str, key: Any, body: tuple[Any, ...]) -> int | None:
        """The round that answers the request, if it was made before under its key.

        Raises
        ------
        ParameterError
            If the key stands for another request.
        """
        kept = None if key is None else self._kept.get((type(key), key))
        if kept is None:
            return None
        if kept[0] != body:
            problem = (
                f"key {key!r:.60} stands for another request, one of {kept[0][0]}: give each its own key"
            )
            raise ParameterError(subject, [problem])
        return kept[1]

    def keep(self, key: Any, body: tuple[Any, ...], step: int) -> None:
        """Note the answer under its key, if it has one."""
        if key is not None:
            self._kept[(type(key), key)] = body, step


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
