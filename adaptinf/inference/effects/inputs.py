"""What arms and groups a user named, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adaptinf.inference.effects.groups import group_codes
from adaptinf.log import AdaptiveLog

_FEW_GROUPS = 20
_ROUNDS_PER_GROUP = 4


def arm_pair(log: AdaptiveLog, treatment: Any, control: Any) -> tuple[Any, Any, list[str]]:
    """Both arms, with what is missing filled in for logs of two arms; and what is wrong."""
    known = ", ".join(map(repr, log.arms))
    problems = [
        f"there is no arm {arm!r}; the log has {known}"
        for arm in (treatment, control)
        if arm is not None and arm not in log.arms
    ]
    if problems:
        return treatment, control, problems
    if log.n_arms == 2:
        first, second = log.arms
        if treatment is None:
            treatment = second if control is None or control == first else first
        if control is None:
            control = first if treatment == second else second
    if treatment is None or control is None:
        problems.append(f"name treatment= and control=: the log has {log.n_arms} arms, {known}")
    elif treatment == control:
        problems.append(f"treatment and control must be two arms, both are {treatment!r}")
    return treatment, control, problems


def context_problems(log: AdaptiveLog, by: tuple[str, ...]) -> list[str]:
    """What is wrong with the columns that make the groups."""
    if not log.context:
        return ["the log has no context columns to group by: give context= when making the log"]
    problems = [] if by else ["by must name at least one context column"]
    if len(set(by)) < len(by):
        problems.append("by names a column more than once")
    columns = log.columns
    unknown = [name for name in by if name not in log.context and columns.get(name) not in log.context]
    known = ", ".join(log.context)
    problems += [f"there is no context column {name!r}; the log has {known}" for name in unknown]
    if not problems:
        distinct = len(group_codes([log.column(name) for name in by])[1])
        if distinct > max(_FEW_GROUPS, log.n_rounds // _ROUNDS_PER_GROUP):
            problems.append(
                f"by {', '.join(by)} makes {distinct} groups of {log.n_rounds} rounds: cut it into fewer"
            )
    return problems


def group_terms(by: tuple[str, ...], labels: Sequence[tuple[Any, ...]]) -> tuple[str, ...]:
    """Names of the groups in tables.

    Fractions have six digits where that keeps the labels of their column apart.
    """
    columns = [_written(column) for column in zip(*labels, strict=True)]
    return tuple(
        ", ".join(f"{name}={text}" for name, text in zip(by, row, strict=True))
        for row in zip(*columns, strict=True)
    )


def _written(column: Sequence[Any]) -> list[str]:
    """The labels of one column as text."""
    short = [_rounded(label) if isinstance(label, float) else str(label) for label in column]
    return short if len(set(short)) == len(set(column)) else list(map(str, column))


def _rounded(number: float) -> str:
    short = f"{number:.6g}"
    return str(number) if number.is_integer() or float(short) == number else short
