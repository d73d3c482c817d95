"""How large a formula may become: what it multiplies out to, and what its transforms make of a column."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from adaptinf.errors import ParameterError

_TERMS = 50_000
_COLUMNS = 5_000
_LONGEST_POWER = 100
ARGUMENT_SIZES = {"degree": 20, "df": 1_000, "levels": _COLUMNS}
"""Largest whole numbers that transforms take; their time and memory grow with them."""


def check_products(tree: Any) -> None:
    """Refuse a parsed formula that multiplies out to too many terms, before that is done."""
    sizes: dict[int, float] = {}
    pending = [(tree, False)]
    while pending:
        node, ready = pending.pop()
        arguments = list(getattr(node, "args", ()))
        if arguments and not ready:
            pending += [(node, True), *((argument, False) for argument in arguments)]
            continue
        sizes[id(node)] = _products(node, arguments, [sizes[id(argument)] for argument in arguments])
        if sizes[id(node)] > _TERMS:
            raise ValueError(f"it multiplies out to more than {_TERMS:,} terms")


def _products(node: Any, arguments: Sequence[Any], sizes: Sequence[float]) -> float:
    """Terms that are made for a node of the tree, those that are found equal among them."""
    symbol = node.operator.symbol if arguments else ""
    if len(sizes) == 2:
        left, right = sizes
        match symbol:
            case "*":
                return left * right + left + right
            case ":" | "in":
                return left * right
            case "**" | "^":
                digits = str(getattr(arguments[1], "token", ""))
                if not digits.isdecimal():
                    return left
                power = int(digits) if len(digits) < 5 else _LONGEST_POWER + 1
                return max(left, 2.0) ** power if power <= _LONGEST_POWER else float("inf")
    return sum(sizes) if arguments else 1.0


def check_arguments(call: Callable[..., Any], arguments: Sequence[Any], named: Mapping[str, Any]) -> None:
    """Refuse whole numbers for which a transform would take all time or memory."""
    given = inspect.signature(call).bind(*arguments, **named).arguments
    for name, most in ARGUMENT_SIZES.items():
        value = given.get(name)
        size = len(value) if isinstance(value, list | tuple) else value
        if isinstance(size, int | float) and size > most:
            raise ValueError(f"{name} must be at most {most:,}, got {size:.6g}")


def check_labels(model: Any, data: pd.DataFrame) -> None:
    """Refuse interactions of more labels than a model matrix can hold; data (T, p)."""
    labels = {
        str(name): data[name].nunique()
        for name in data.columns
        if getattr(data[name], "ndim", 2) == 1 and not pd.api.types.is_numeric_dtype(data[name])
    }
    for term in getattr(model, "formula", model):
        columns = 1
        for factor in term.factors:
            columns *= labels.get(factor.expr, 1)
        if columns > _COLUMNS:
            raise ValueError(f"{term} has about {columns:,} columns, one each label; at most {_COLUMNS:,}")


def numeric(column: Any) -> bool:
    """Whether a column of a frame, or the categories in it, are real numbers or truth values."""
    kind = column.cat.categories.dtype if isinstance(column.dtype, pd.CategoricalDtype) else column.dtype
    return pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_complex_dtype(kind)


def check_kinds(subject: str, numbers: Mapping[str, bool], table: pd.DataFrame) -> None:
    """Refuse numbers where the log has labels, and labels where it has numbers; table (m, p)."""
    problems = [
        f"column {name!r} must hold {'real numbers' if known else 'labels'}, as in the log, "
        f"not {table[name].dtype}"
        for name, known in numbers.items()
        if len(table) and name in table and table[name].ndim == 1 and numeric(table[name]) != known
    ]
    if problems:
        raise ParameterError(subject, problems)
