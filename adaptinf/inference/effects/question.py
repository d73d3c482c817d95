"""What `CATE` asks of a log (two arms, groups, the rounds that serve each method), and its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from adaptinf.inference.distributions.base import Reference
from adaptinf.inference.effects.comparisons import GroupResults
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
from adaptinf.inference.results.base import Estimand, LogFacts
from adaptinf.inference.validity.profile import LogProfile, profile_of
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import refuse
from adaptinf.typing import BoolArray, FloatArray, IntArray


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
    refuse("CATE", problems)
    treatment, control, problems = arm_pair(log, treatment, control)
    problems += context_problems(log, names)
    refuse("CATE", problems)
    marked = round_mask(log, rounds)
    pair = np.array([log.arms.index(control), log.arms.index(treatment)])
    group, found = group_codes([log.column(name) for name in names])
    terms = group_terms(names, found)
    return GroupQuestion(profile_of(log), names, treatment, control, marked, pair, group, found, terms)


def group_results(
    question: GroupQuestion,
    estimator: str,
    estimate: FloatArray,
    std_error: FloatArray,
    reference: Reference,
    *,
    null: float,
    details: Mapping[str, FloatArray],
    notes: Sequence[str],
    weights: str | None = None,
    terms: tuple[str, ...] | None = None,
    groups: Sequence[Any] | None = None,
    private: bool = False,
) -> GroupResults:
    """Effects of the groups as a table; estimate, std_error (G,)."""
    treatment, control = question.treatment, question.control
    if groups is None:
        groups = [label[0] if len(label) == 1 else label for label in question.labels]
    return GroupResults(
        model="CATE",
        estimands=tuple(
            Estimand("cate", treatment=treatment, control=control, group=group) for group in groups
        ),
        terms=question.terms if terms is None else terms,
        estimate=estimate,
        std_error=std_error,
        covariance=None if private else np.diag(std_error**2),
        reference=reference,
        estimator=estimator,
        facts=LogFacts.of(question.profile.log),
        validity="asymptotic",
        weights=weights,
        null=null,
        details=details,
        notes=(f"Effect of {treatment!r} over {control!r}.", *notes),
        private=private,
    )
