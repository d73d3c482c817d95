"""Checks of arguments that several estimators share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.inputs.published import refuse_rounds
from adaptinf.log import AdaptiveLog, PublicLog
from adaptinf.sums import NEEDS_ROWS, Sums


def require_log(subject: str, log: object, *, incomplete: bool = False) -> AdaptiveLog:
    """A log; refused is what is none, and one with missing rewards unless these are allowed for."""
    if isinstance(log, Sums):
        raise InvalidForLog(
            subject, NEEDS_ROWS, ["ArmMeans", "Contrast", "CATE(by=)", "an AdaptiveLog of the rows"]
        )
    if isinstance(log, PublicLog):
        refuse_rounds(subject, log)
    if not isinstance(log, AdaptiveLog):
        raise ParameterError(subject, [f"log must be an AdaptiveLog, got {type(log).__name__}"])
    if log.arrays.observed is not None and not incomplete:
        try:
            log.arrays.reward  # noqa: B018
        except InvalidForLog as error:
            raise InvalidForLog(subject, error.reason, error.alternatives) from None
    return log


def require_data(subject: str, data: object, *, public: bool = False) -> AdaptiveLog:
    """A log, or sums, which say by the same names what models of arms ask of one; else an error.

    The public part of a log passes where it is asked for.
    """
    if isinstance(data, Sums) or (public and isinstance(data, PublicLog)):
        return cast(AdaptiveLog, data)
    return require_log(subject, data, incomplete=True)


def labels(name: str, values: Any) -> tuple[tuple[Any, ...], list[str]]:
    """Labels that a user listed, and what is wrong with the list."""
    problem = f"{name} must be a list of labels"
    if isinstance(values, (str, bytes)):
        return (), [f"{problem}; write [{values!r:.60}]"]
    if not isinstance(values, Iterable):
        return (), [f"{problem}, got {_shown(values)}"]
    try:
        found = tuple(values)
    except TypeError:  # an array without dimensions says that it can be iterated over
        return (), [f"{problem}, got {_shown(values)}"]
    problems = label_problems(name, found)
    return (() if problems else found), problems


def label_problems(name: str, values: Iterable[Any]) -> list[str]:
    """Say which of some values can be no labels, because they are lists, arrays or missing."""
    return [
        f"{name} must be given by labels such as strings or numbers, got {_shown(value)}"
        for value in values
        if not _is_label(value)
    ]


def _shown(value: Any) -> str:
    """A value in one short line: frames and long arrays by their type."""
    text = f"{value!r:.60}"
    return f"a {type(value).__name__}" if "\n" in text else text


def _is_label(value: Any) -> bool:
    try:
        hash(value)
        bool(value == value)
    except (TypeError, ValueError):
        return False
    return True


def text_problems(**named: Any) -> list[str]:
    """Say which arguments are neither strings nor None; lists and arrays cannot be compared with names."""
    return [
        f"{name} must be a string, got {_shown(value)}"
        for name, value in named.items()
        if value is not None and not isinstance(value, str)
    ]
