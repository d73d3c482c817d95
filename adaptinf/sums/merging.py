"""Whether two sums are of one trial, so that they can be merged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adaptinf.log.validation import METADATA

if TYPE_CHECKING:
    from adaptinf.sums.table import Sums

ADDED = ("adaptive_rounds", "released_rounds")
"""Counts that two parts of a trial each have some of."""
_ALIKE = ("arms", "group_names", "denominators", "covariates", "shares", "context", "reward_range")


def other_trials(first: Sums, second: Sums) -> list[str]:
    """Why two sums are not of one trial."""
    problems = [
        f"{name} differs: {getattr(first, name)!r:.80} and {getattr(second, name)!r:.80}"
        for name in (*_ALIKE, *METADATA)
        if name not in ADDED and not _same(getattr(first, name), getattr(second, name))
    ]
    kinds = {first.batches.dtype.kind, second.batches.dtype.kind}
    if len(kinds) > 1 and "M" in kinds:
        problems.append("the batches of one are times, those of the other numbers")
    problems = [f"to be merged they must be of one trial: {problem}" for problem in problems]
    if first.by_unit is not None or second.by_unit is not None:
        reason = "a unit may be in both, so that sums by unit are not merged: aggregate all rows at once"
        problems.append(reason)
    return problems


def joint_movement(first: Sums, second: Sums) -> float | None:
    """P-value of shares that stay put within batches, by Bonferroni; None where nobody saw rows."""
    seen = [each.share_movement for each in (first, second) if each.share_movement is not None]
    return min(1.0, len(seen) * min(seen)) if seen else None


def _same(first: object, second: object) -> bool:
    """Whether two values of metadata are equal; designs by what is stored of them."""
    return first == second or repr(first) == repr(second)
