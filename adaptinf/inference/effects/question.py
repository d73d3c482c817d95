"""What `CATE` asks of a log (two arms, groups, the rounds that serve each method), and its results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from adaptinf.claims.effects import by_group as group_effects
from adaptinf.claims.effects import rounds_and_weights as effects
from adaptinf.errors import InvalidForLog
from adaptinf.inference.effects.groups import group_codes
from adaptinf.inference.effects.projections.weighted_projection import combined_weights
from adaptinf.inference.effects.rounds import (
    Past,
    Rounds,
    arm_propensities,
    past_of,
    randomised_rounds,
    weightable_rounds,
)
from adaptinf.inference.inputs.arguments import label_problems, labels, require_log
from adaptinf.inference.inputs.published import has_group_effects, refuse_rounds
from adaptinf.inference.inputs.rounds import propensities_before, round_mask, turns
from adaptinf.inference.scores.inverse import Fixed, stays_in_cells
from adaptinf.inference.validity.methods import refusal
from adaptinf.inference.validity.profile import LogProfile, profile_of
from adaptinf.inference.validity.stationarity import Trends, times, trends_of_rows
from adaptinf.log import AdaptiveLog, PublicLog
from adaptinf.parameters import refuse
from adaptinf.texts import absent, listed
from adaptinf.typing import BoolArray, FloatArray, IntArray

_FEW_GROUPS = 20
_ROUNDS_PER_GROUP = 4


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
    def gap_refusal(self) -> str:
        """Why what reads rewards does not serve: some are missing, which releases alone do without."""
        return refusal(require_log, "CATE", self.profile.log)

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
    def by_unit(self) -> IntArray | None:
        """Units of the rounds used for inverse weighting, None where none has several of them; shape (n,)."""
        units, keep = self.profile.units, self.weightable.keep
        return None if units is None or not self.profile.repeats_in(keep) else units[keep]

    @property
    def movers(self) -> tuple[str, ...]:
        """Those that may have had a part in the choice: none where contexts are known to have had none."""
        return () if self.profile.context_free else self.other_contexts

    @cached_property
    def past(self) -> Past:
        """What is known before the contexts of each of the rounds used, beside its group."""
        keep = self.weightable.keep
        return past_of(self.profile, self.group[keep], keep, others=bool(self.other_contexts))

    @cached_property
    def own(self) -> tuple[FloatArray, Fixed]:
        """Propensities of each arm that make its own weight in the rounds used, and whose; shape (n, 2)."""
        both, past = self.propensities, self.past
        if both is None:
            reason = effects.LACKS_BOTH_PROPENSITIES()
            raise InvalidForLog("aipw with sqrt weights", reason, ["aipw with uniform weights"])
        used = both[self.weightable.keep]
        if past.free or stays_in_cells(used, past.cell, past.batch):
            return used, "round"
        before = turns(past.cell, past.unit)[1]
        return propensities_before(used, self.profile.log.n_arms, before), "round before"

    @cached_property
    def combined(self) -> tuple[FloatArray, Fixed]:
        """One weight for both arms in each of the rounds used, and whose propensities fix it; shape (n,)."""
        rounds, both = self.weightable, self.propensities
        if both is None:
            reason = effects.LACKS_BOTH_PROPENSITIES()
            raise InvalidForLog("aipw with combined weights", reason, ["aipw with uniform weights"])
        found = combined_weights(both[rounds.keep], self.past, movers=bool(self.movers))
        if found is None:
            reason = group_effects.UNFIXED_WEIGHTS(contexts=", ".join(self.movers))
            raise InvalidForLog("aipw with combined weights", reason, ["aipw with uniform weights"])
        return found

    @cached_property
    def propensities(self) -> FloatArray | None:
        """Of both arms in every round, as far as the log tells; shape (T, 2)."""
        return arm_propensities(self.profile, self.pair)

    @cached_property
    def trends(self) -> Trends:
        """Of the rewards of both arms in each group, the control's first; of 2 G in all."""
        log, groups = self.profile.log, len(self.labels)
        if self.profile.incomplete:
            return Trends(np.full(2 * groups, np.nan))
        keep = self.weightable.keep & np.isin(log.arrays.action, self.pair)
        cell = 2 * self.group[keep] + (log.arrays.action[keep] == self.pair[1])
        unit = self.profile.units if self.profile.repeated_units else None
        time = times(log.n_rounds, log.arrays.batch)[keep]
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            return trends_of_rows(
                cell, log.arrays.reward[keep], time, 2 * groups, None if unit is None else unit[keep]
            )

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
        return weightable_rounds(self.profile, self.marked, self.propensities)


def group_question(
    log: AdaptiveLog | PublicLog, by: str | Sequence[str], treatment: Any, control: Any, rounds: Any
) -> GroupQuestion:
    """Check and complete what a user asks."""
    if isinstance(log, PublicLog):
        return _of_public(log, by, treatment, control, rounds)
    given: Any = log
    require_log("CATE", log, incomplete=isinstance(given, AdaptiveLog) and has_group_effects(log))
    names, problems = ((by,), []) if isinstance(by, str) else labels("by", by)
    problems += label_problems("treatment", [treatment]) + label_problems("control", [control])
    refuse("CATE", problems)
    treatment, control, problems = arm_pair(log, treatment, control)
    problems += context_problems(log, names)
    refuse("CATE", problems)
    marked = round_mask("CATE", log, rounds)
    pair = np.array([log.arms.index(control), log.arms.index(treatment)])
    group, found = group_codes([log.column(name) for name in names])
    terms = group_terms(names, found)
    return GroupQuestion(profile_of(log), names, treatment, control, marked, pair, group, found, terms)


def _of_public(
    log: PublicLog, by: str | Sequence[str], treatment: Any, control: Any, rounds: Any
) -> GroupQuestion:
    """The same of the public part of a log: its groups are those of the releases, and no round has one."""
    refuse_rounds("CATE", log, rounds=rounds)
    names, problems = ((by,), []) if isinstance(by, str) else labels("by", by)
    problems += label_problems("treatment", [treatment]) + label_problems("control", [control])
    refuse("CATE", problems)
    treatment, control, problems = arm_pair(log, treatment, control)
    contexts = log.facts["contexts"]
    problems += [
        absent("context column", name, contexts, "the log has") for name in names if name not in contexts
    ]
    problems += [] if len(names) == 1 else ["by must name the one context whose groups have releases"]
    refuse("CATE", problems)
    pair, nothing = np.array([log.arms.index(control), log.arms.index(treatment)]), np.zeros(0, np.int64)
    profile = LogProfile(cast(AdaptiveLog, log))
    return GroupQuestion(profile, names, treatment, control, None, pair, nothing, [], ())


def arm_pair(log: AdaptiveLog | PublicLog, treatment: Any, control: Any) -> tuple[Any, Any, list[str]]:
    """Both arms, with what is missing filled in for logs of two arms; and what is wrong."""
    problems = [
        absent("arm", arm, log.arms, "the log has")
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
        problems.append(f"name treatment= and control=: the log has {log.n_arms} arms, {listed(log.arms)}")
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
    problems += [absent("context column", name, log.context, "the log has") for name in unknown]
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
