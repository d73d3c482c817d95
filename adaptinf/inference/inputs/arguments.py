"""Arguments of several estimators, which are checked, and matched by their labels if they have any."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.inputs.published import refuse_rounds
from adaptinf.log import AdaptiveLog, PublicLog
from adaptinf.log.validation.frame_columns import frame_kind
from adaptinf.parameters import number_array
from adaptinf.sums import NEEDS_ROWS, Sums
from adaptinf.texts import absent
from adaptinf.typing import FloatArray


def require_log(subject: str, log: object, *, incomplete: bool = False) -> AdaptiveLog:
    """Return a log; refuse anything else, and logs with missing rewards unless these are allowed."""
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
    """Return a log or sums, which models of arms use in the same way; refuse anything else.

    The public part of a log is accepted if `public` is true.
    """
    if isinstance(data, Sums) or (public and isinstance(data, PublicLog)):
        return cast(AdaptiveLog, data)
    return require_log(subject, data, incomplete=True)


def labels(name: str, values: Any) -> tuple[tuple[Any, ...], list[str]]:
    """The labels in a list from the user, and the problems with the list."""
    problem = f"{name} must be a list of labels"
    if isinstance(values, (str, bytes)):
        return (), [f"{problem}; write [{values!r:.60}]"]
    if not isinstance(values, Iterable):
        return (), [f"{problem}, got {_shown(values)}"]
    try:
        found = tuple(values)
    except TypeError:  # An array with no dimensions claims to be iterable, but raises this error.
        return (), [f"{problem}, got {_shown(values)}"]
    problems = label_problems(name, found)
    return (() if problems else found), problems


def label_problems(name: str, values: Iterable[Any]) -> list[str]:
    """List the values that cannot be labels, because they are lists, arrays or missing."""
    return [
        f"{name} must be given by labels such as strings or numbers, got {_shown(value)}"
        for value in values
        if not _is_label(value)
    ]


def _shown(value: Any) -> str:
    """Text for a value, in one short line; frames and long arrays are represented by their type."""
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
    """List the arguments that are neither strings nor None, such as lists and arrays."""
    return [
        f"{name} must be a string, got {_shown(value)}"
        for name, value in named.items()
        if value is not None and not isinstance(value, str)
    ]


def by_arm(
    name: str, values: Any, arms: Sequence[Any], rows: pd.Index[Any]
) -> tuple[FloatArray | None, list[str]]:
    """Numbers for each arm in the order of the arms, matched by label if they have labels.

    Shapes: arms (k,), rows (n,); returns (n, k) or (k,).
    """
    if isinstance(values, Mapping):
        return _from_mapping(name, values, arms, rows)
    kind = frame_kind(values)
    if kind is None and not isinstance(values, pd.Series):
        return number_array(values), []
    if kind is None:
        if len(values) != len(arms):
            return number_array(values), []
        order, problems = _order(name, values.index, arms)
        return number_array(values.to_numpy()[order]), problems
    # Polars allows only text as names of columns, whatever the arms are.
    order, problems = _order(name, values.columns, arms if kind == "pandas" else [str(arm) for arm in arms])
    if kind == "pandas":
        problems += _index_problems(name, values, rows)
    return number_array(values.to_numpy()[:, order]), problems


def by_round(name: str, values: Any, rows: pd.Index[Any]) -> tuple[NDArray[Any], list[str]]:
    """A column with one entry for each round, as an array, and the problems with its index."""
    problems = _index_problems(name, values, rows) if isinstance(values, (pd.Series, pd.DataFrame)) else []
    return np.asarray(values), problems


def _order(name: str, labels: Any, arms: Sequence[Any]) -> tuple[list[int], list[str]]:
    """Positions of the arms among the labels, and the problems with the labels."""
    found = list(labels)
    if len(found) == len(arms) and set(found) == set(arms):
        return [found.index(arm) for arm in arms], []
    more = f" and {len(found) - 8} more" if len(found) > 8 else ""
    alike = {str(label) for label in found} == {str(arm) for arm in arms}
    problem = f"{name}: its labels {found[:8]}{more} are not the arms {list(arms)}"
    if alike and len(found) == len(arms):
        problem += " (a number and a string are different labels)"
    return [], [problem]


def _index_problems(name: str, values: Any, rows: pd.Index[Any]) -> list[str]:
    if len(values) != len(rows) or values.index.equals(rows):
        return []
    first, last = rows[0], rows[-1]
    return [
        f"{name}: its index is not {first}, ..., {last} in order, the rounds of the log: sort it in the "
        "order of the log and pass a plain array (.to_numpy())"
    ]


def _from_mapping(
    name: str, values: Mapping[Any, Any], arms: Sequence[Any], rows: pd.Index[Any]
) -> tuple[FloatArray | None, list[str]]:
    problems = [
        f"{name}: {absent('arm', label, arms, 'the log has')}" for label in values if label not in arms
    ]
    table = np.zeros((len(rows), len(arms)))
    for column, arm in enumerate(arms):
        if arm not in values:
            continue
        given, found = by_round(f"{name}, arm {arm!r}", values[arm], rows)
        numbers = number_array(given)
        problems += found
        if numbers is None or numbers.shape not in ((), (len(rows),)):
            problems.append(f"{name}: the column of {arm!r} must be {len(rows)} numbers")
        elif not found:
            table[:, column] = numbers
    return table, problems
