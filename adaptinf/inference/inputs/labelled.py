"""Tables and columns of a user's own, read by their labels where they have any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from adaptinf.log.validation.columns import frame_kind
from adaptinf.parameters import number_array
from adaptinf.texts import absent
from adaptinf.typing import FloatArray


def by_arm(
    name: str, values: Any, arms: Sequence[Any], rows: pd.Index[Any]
) -> tuple[FloatArray | None, list[str]]:
    """Numbers by arm in the order of the arms, by label wherever there are labels.

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
    # The names of polars columns are text, whatever the arms are.
    order, problems = _order(name, values.columns, arms if kind == "pandas" else [str(arm) for arm in arms])
    if kind == "pandas":
        problems += _index_problems(name, values, rows)
    return number_array(values.to_numpy()[:, order]), problems


def by_round(name: str, values: Any, rows: pd.Index[Any]) -> tuple[NDArray[Any], list[str]]:
    """A column with one entry per round as an array, and what is wrong with its index."""
    problems = _index_problems(name, values, rows) if isinstance(values, (pd.Series, pd.DataFrame)) else []
    return np.asarray(values), problems


def _order(name: str, labels: Any, arms: Sequence[Any]) -> tuple[list[int], list[str]]:
    """Positions of the arms among the labels."""
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
        f"{name}: its index is not {first}, ..., {last} in order, the rounds of the log: sort it as the log "
        "is sorted and give a plain array (.to_numpy())"
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
