"""What `CATE` asks of a log: two arms, groups, and the rounds that serve each method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.inference.effects.groups import group_codes
from adaptinf.inference.effects.inputs import arm_pair, context_problems, group_terms
from adaptinf.inference.effects.rounds import (
    Rounds,
    arm_propensities,
    randomised_rounds,
    round_mask,
    weightable_rounds,
)
from adaptinf.inference.inputs.arguments import label_problems, labels, require_log
from adaptinf.inference.validity.profile import LogProfile, profile_of
from adaptinf.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog

__all__ = ["GroupQuestion", "group_question"]


@dataclass(frozen=True, eq=False)
class GroupQuestion:
    """Effect of one arm over another by group; marked (T,), pair (2,) with the control first, group (T,)."""

    profile: LogProfile
    by: tuple[str, ...]
    treatment: Any
    control: Any
    marked: BoolArray | None
    pair: IntArray
    group: IntArray
    labels: list[tuple[Any, ...]]
    terms: tuple[str, ...]

    @cached_property
    def other_contexts(self) -> tuple[str, ...]:
        """Contexts of the log that vary within a group."""
        columns, contexts = self.profile.log.columns, self.profile.log.arrays.context
        used = {name if name in contexts else columns[name] for name in self.by}
        grouped = [contexts[name] for name in contexts if name in used]
        return tuple(
            name
            for name, values in contexts.items()
            if name not in used and len(group_codes([*grouped, values])[1]) > len(self.labels)
        )

    @cached_property
    def propensities(self) -> FloatArray | None:
        """Of both arms in every round, as far as the log tells; shape (T, 2)."""
        return arm_propensities(self.profile.log, self.pair)

    @cached_property
    def randomised(self) -> Rounds:
        """Rounds whose arm was drawn at random."""
        return randomised_rounds(self, pooled=False)

    @cached_property
    def pooled(self) -> Rounds:
        """All rounds, where propensities are constant within each group."""
        return randomised_rounds(self, pooled=True)

    @cached_property
    def weightable(self) -> Rounds:
        """Rounds in which both arms could be chosen."""
        return weightable_rounds(self.profile.log, self.marked, self.propensities)


def group_question(
    log: AdaptiveLog, by: str | Sequence[str], treatment: Any, control: Any, rounds: Any
) -> GroupQuestion:
    """Check and complete what a user asks."""
    require_log("CATE", log)
    names, problems = ((by,), []) if isinstance(by, str) else labels("by", by)
    problems += label_problems("treatment", [treatment]) + label_problems("control", [control])
    if problems:
        raise ParameterError("CATE", problems)
    treatment, control, problems = arm_pair(log, treatment, control)
    problems += context_problems(log, names)
    if problems:
        raise ParameterError("CATE", problems)
    marked = round_mask(log, rounds)
    pair = np.array([log.arms.index(control), log.arms.index(treatment)])
    group, found = group_codes([log.column(name) for name in names])
    terms = group_terms(names, found)
    return GroupQuestion(profile_of(log), names, treatment, control, marked, pair, group, found, terms)
