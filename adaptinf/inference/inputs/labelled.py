"""Tables and columns of a user's own, read by their labels where they have any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from adaptinf.log.validation.columns import frame_kind
from adaptinf.parameters import number_array
from adaptinf.typing import FloatArray

__all__ = ["by_arm", "by_round"]


def by_arm(
    name: str, values: Any, arms: Sequence[Any], rows: pd.Index[Any]
) -> tuple[FloatArray | None, list[str]]:
    """Numbers by arm in the order of the arms, by label wherever there are labels.

    Parameters
    ----------
    name : str
        What they are, for messages.
    values : DataFrame, Series, mapping of arm to column or number, or array_like
        A frame of pandas or polars has one column an arm, a Series indexed by the arms one number an arm, and
        a mapping gives arms that it leaves out 0. Anything else goes by position.
    arms : sequence of labels, shape (k,)
        The arms.
    rows : Index, shape (n,)
        The rounds. A pandas frame or Series with a row a round must have this index.

    Returns
    -------
    ndarray of shape (n, k) or (k,), or None
        None where they are no numbers. The shape of what has no labels is not checked.
    list of str
        What is wrong with the labels.

    Examples
    --------
    >>> table = pd.DataFrame({"b": [0.2, 0.3], "a": [0.8, 0.7]})
    >>> by_arm("the table", table, ["a", "b"], table.index)[0]
    array([[0.8, 0.2],
           [0.7, 0.3]])
    >>> by_arm("the table", pd.Series({"b": 0.2, "c": 0.8}), ["a", "b"], table.index)[1]
    ["the table: its labels ['b', 'c'] are not the arms ['a', 'b']"]
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
    """A column with one entry a round as an array, and what is wrong with its index.

    Parameters
    ----------
    name : str
        What it is, for messages.
    values : Series or array_like
        A pandas Series, or frame of one column, must have the index `rows`.
    rows : Index, shape (n,)
        The rounds.

    Examples
    --------
    >>> by_round("rounds", pd.Series([True, False], index=[1, 0]), pd.RangeIndex(2))[1]
    ['rounds: its index is not 0, ..., 1 in order, the rounds of the log: sort it as the log is sorted and \
give a plain array (.to_numpy())']
    """
    problems = _index_problems(name, values, rows) if isinstance(values, (pd.Series, pd.DataFrame)) else []
    return np.asarray(values), problems


def _order(name: str, labels: Any, arms: Sequence[Any]) -> tuple[list[int], list[str]]:
    """Positions of the arms among the labels."""
    found = list(labels)
    if len(found) == len(arms) and set(found) == set(arms):
        return [found.index(arm) for arm in arms], []
    more = f" and {len(found) - 8} more" if len(found) > 8 else ""
    alike = {str(label) for label in found} == {str(arm) for arm in arms}
    hint = " (a number and a string are different labels)" if alike and len(found) == len(arms) else ""
    return [], [f"{name}: its labels {found[:8]}{more} are not the arms {list(arms)}{hint}"]


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
    problems = [f"{name}: {label!r} is no arm of the log" for label in values if label not in arms]
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
