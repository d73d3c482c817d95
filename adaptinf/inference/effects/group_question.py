"""What `CATE` asks of a log: two arms, groups, and the rounds for each method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from adaptinf.claims import Said, propensities
from adaptinf.claims.effects import by_group as group_effects
from adaptinf.claims.effects import rounds_and_weights as claims
from adaptinf.claims.effects import rounds_and_weights as effects
from adaptinf.errors import InvalidForLog
from adaptinf.inference.effects.effect_weights import Past, combined_weights, past_of
from adaptinf.inference.effects.group_scores import group_codes
from adaptinf.inference.inputs.arguments import label_problems, labels, require_log
from adaptinf.inference.inputs.published import has_group_effects, refuse_rounds
from adaptinf.inference.inputs.rounds import propensities_before, round_mask, turns
from adaptinf.inference.scores.inverse import Fixed, stays_in_cells
from adaptinf.inference.validity.methods import refusal
from adaptinf.inference.validity.profile import LogProfile, profile_of
from adaptinf.inference.validity.stationarity import Trends, times, trends_of_rows
from adaptinf.log import AdaptiveLog, PublicLog
from adaptinf.parameters import refuse
from adaptinf.texts import absent, listed, several
from adaptinf.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.validity.profile import LogProfile
    from adaptinf.log import AdaptiveLog


_PHASE, _PLAIN = "estimation", "difference-in-means"
_SAME = 1e-9


@dataclass(frozen=True, slots=True)
class Rounds:
    """The rounds that an estimate uses; keep has shape (T,)."""

    keep: BoolArray
    notes: tuple[Said, ...]
    left_out: int = 0
    """Number of rounds in which one of the two arms was impossible."""


def arm_propensities(profile: LogProfile, pair: IntArray) -> FloatArray | None:
    """Propensities of two arms in every round, as far as the log contains them; returns shape (T, 2)."""
    own, every = profile.propensity, profile.propensities
    if every is not None:
        both = every if np.array_equal(pair, np.arange(every.shape[1])) else every[:, pair]
        return np.asarray(both, dtype=float)
    if own is None or profile.log.n_arms != 2:
        return None
    chosen = profile.log.arrays.action[:, None] == pair[None, :]
    return np.where(chosen, own[:, None], 1.0 - own[:, None])


def randomised_rounds(question: GroupQuestion, *, pooled: bool) -> Rounds:
    """The rounds in which arms can be compared by unweighted means within a group."""
    profile, marked, terms = question.profile, question.marked, question.terms
    log = profile.log
    in_phase, where = _phase_rounds(log)
    if marked is None and not pooled and log.arrays.randomised is not None:
        marked, where = in_phase & log.arrays.randomised, f"the randomised rounds of {where}"
    elif marked is not None:
        where = "the marked rounds"
    candidates = in_phase if marked is None else marked
    _check_units(profile, candidates & np.isin(log.arrays.action, question.pair))
    varying = _varying_groups(question, candidates)
    if marked is None:
        method = f"{_PLAIN} with pooled=True" if pooled else _PLAIN
        _check_constant(method, profile, varying, terms)
        used = int(in_phase.sum())
        notes = [claims.ALL_ROUNDS(n=used, where=where), claims.CONSTANT_IN_GROUPS()]
        notes += [claims.CONSTANT_BY_ESTIMATES()] if profile.estimated else []
        return Rounds(in_phase, tuple(notes))
    notes = [claims.MARKED(where=where, n=int(marked.sum()), all=log.n_rounds)]
    if varying is not None and np.any(varying):
        notes.append(claims.MARKED_VARY(groups=_some(terms, varying)))
    return Rounds(marked, tuple(notes))


def weightable_rounds(profile: LogProfile, marked: BoolArray | None, both: FloatArray | None) -> Rounds:
    """The rounds for inverse weighting, in which both arms could be chosen; marked (T,), both (T, 2)."""
    log = profile.log
    if log.arrays.propensity is None:
        raise InvalidForLog("aipw", propensities.NEEDED(), ())
    if profile.contradicted_draws:
        raise InvalidForLog("aipw", profile.contradicted_draws, ())
    candidates, where = _phase_rounds(log)
    if marked is not None:
        candidates, where = marked, "the selection (rounds=)"
    if both is None:
        used = claims.ALL_ROUNDS(n=int(candidates.sum()), where=where)
        return Rounds(candidates, (used, claims.CHOSEN_ALONE()))
    keep = candidates & (both > 0.0).all(axis=1)
    dropped = int(candidates.sum() - keep.sum())
    if not keep.any():
        raise InvalidForLog("aipw", claims.NEVER_BOTH(n=dropped, where=where), ())
    notes = [claims.WEIGHTABLE(n=int(keep.sum()), where=where)]
    notes += [claims.LEFT_OUT(n=dropped, where=where)] if dropped else []
    return Rounds(keep, tuple(notes), dropped)


def _phase_rounds(log: AdaptiveLog) -> tuple[BoolArray, str]:
    """Rounds of the estimation phase, or all rounds if there is no such phase, with a name for them."""
    phase = log.arrays.phase
    if phase is None or _PHASE not in log.phases:
        return np.ones(log.n_rounds, dtype=bool), "the log"
    return phase == log.phases.index(_PHASE), f"phase {_PHASE!r}"


def _varying_groups(question: GroupQuestion, keep: BoolArray) -> BoolArray | None:
    """Groups in which the treatment's share of the two arms' probability varies; keep has shape (T,).

    Returns shape (G,), or None if this is unknown.
    """
    log, both, pair, group = question.profile.log, question.propensities, question.pair, question.group
    n_groups = len(question.labels)
    if log.arrays.propensity is None:
        return None
    action = log.arrays.action
    rows = np.flatnonzero(keep & np.isin(action, pair))
    if both is None:
        # Only the chosen arm's propensity is known, so each arm's own propensity must be constant.
        cell = 2 * group[rows] + (action[rows] == pair[1])
        spread = _spread(log.arrays.propensity[rows], cell, 2 * n_groups)
        return np.asarray(spread.reshape(n_groups, 2).max(axis=1) > _SAME)
    # This is the probability of treatment given that one of the pair was chosen, so other arms' propensities
    # may move.
    share = both[rows, 1] / both[rows].sum(axis=1)
    return np.asarray(_spread(share, group[rows], n_groups) > _SAME)


def _spread(values: FloatArray, cell: IntArray, n_cells: int) -> FloatArray:
    low, high = np.full(n_cells, np.inf), np.full(n_cells, -np.inf)
    np.minimum.at(low, cell, values)
    np.maximum.at(high, cell, values)
    return np.where(high >= low, high - np.where(high >= low, low, 0.0), 0.0)


def _check_units(profile: LogProfile, keep: BoolArray) -> None:
    """Refuse unweighted means if some units have several of the rounds; keep has shape (T,)."""
    if profile.repeats_in(keep):
        ways = [claims.KNOW_PROPENSITIES()] if profile.propensity is None else []
        raise InvalidForLog(_PLAIN, profile.unit_refusal, ways)


def _check_constant(
    method: str, profile: LogProfile, varying: BoolArray | None, terms: Sequence[str]
) -> None:
    if varying is None:
        raise InvalidForLog(method, claims.NOTHING_RANDOMISED(), ())
    if profile.estimated and profile.adaptive:
        raise InvalidForLog(method, claims.ESTIMATES_SHOW_NOTHING(), ())
    if np.any(varying):
        raise InvalidForLog(method, claims.PROPENSITIES_VARY(groups=_some(terms, varying)), ())


def _some(terms: Sequence[str], where: BoolArray, most: int = 5) -> str:
    return several([term for term, flag in zip(terms, where, strict=True) if flag], most)


_FEW_GROUPS = 20
_ROUNDS_PER_GROUP = 4


@dataclass(frozen=True, eq=False)
class GroupQuestion:
    """The effect of an arm over another by group; marked (T,), pair (2,) with control first, group (T,)."""

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
        """The reason why methods that use rewards are refused, if some rewards are missing."""
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
        """Units of the rounds used for inverse weighting, shape (n,); None if every unit has one round."""
        units, keep = self.profile.units, self.weightable.keep
        return None if units is None or not self.profile.repeats_in(keep) else units[keep]

    @property
    def movers(self) -> tuple[str, ...]:
        """Contexts that may have affected the choice of arms; empty if it is known that none did."""
        return () if self.profile.context_free else self.other_contexts

    @cached_property
    def past(self) -> Past:
        """What was known, besides the group, before the contexts of each round used."""
        keep = self.weightable.keep
        return past_of(self.profile, self.group[keep], keep, others=bool(self.other_contexts))

    @cached_property
    def own(self) -> tuple[FloatArray, Fixed]:
        """Propensities that determine each arm's weight in the rounds used, (n, 2), and their source."""
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
        """The weight that both arms share in each round used, (n,), and the source of its propensities."""
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
        """Propensities of both arms in every round, as far as the log contains them; shape (T, 2)."""
        return arm_propensities(self.profile, self.pair)

    @cached_property
    def trends(self) -> Trends:
        """Trends in the rewards of both arms in each group: 2 G trends, with those of the control first."""
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
        """The rounds whose arm was drawn at random."""
        return randomised_rounds(self, pooled=False)

    @cached_property
    def pooled(self) -> Rounds:
        """All rounds, if propensities are constant within each group."""
        return randomised_rounds(self, pooled=True)

    @cached_property
    def weightable(self) -> Rounds:
        """Rounds in which both arms could be chosen."""
        return weightable_rounds(self.profile, self.marked, self.propensities)


def group_question(
    log: AdaptiveLog | PublicLog, by: str | Sequence[str], treatment: Any, control: Any, rounds: Any
) -> GroupQuestion:
    """Check and complete the user's request."""
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
    """The question for the public part of a log, whose groups are those of the releases."""
    refuse_rounds("CATE", log, rounds=rounds)
    names, problems = ((by,), []) if isinstance(by, str) else labels("by", by)
    problems += label_problems("treatment", [treatment]) + label_problems("control", [control])
    refuse("CATE", problems)
    treatment, control, problems = arm_pair(log, treatment, control)
    contexts = log.facts["contexts"]
    problems += [
        absent("context column", name, contexts, "the log has") for name in names if name not in contexts
    ]
    problems += [] if len(names) == 1 else ["by must name the only context whose groups have releases"]
    refuse("CATE", problems)
    pair, nothing = np.array([log.arms.index(control), log.arms.index(treatment)]), np.zeros(0, np.int64)
    profile = LogProfile(cast(AdaptiveLog, log))
    return GroupQuestion(profile, names, treatment, control, None, pair, nothing, [], ())


def arm_pair(log: AdaptiveLog | PublicLog, treatment: Any, control: Any) -> tuple[Any, Any, list[str]]:
    """The two arms, by default those of a log with two arms, and any problems."""
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
        problems.append(f"specify treatment= and control=: the log has {log.n_arms} arms, {listed(log.arms)}")
    elif treatment == control:
        problems.append(f"treatment and control must be different arms, but both are {treatment!r}")
    return treatment, control, problems


def context_problems(log: AdaptiveLog, by: tuple[str, ...]) -> list[str]:
    """Problems with the columns that define the groups."""
    if not log.context:
        return [
            "the log has no context columns to group by: pass context= when creating the log, or use "
            "log.public() if groups are only in its releases"
        ]
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
                f"by= divides {log.n_rounds} rounds into {distinct} groups by {', '.join(by)}: use fewer, "
                f"larger groups"
            )
    return problems


def group_terms(by: tuple[str, ...], labels: Sequence[tuple[Any, ...]]) -> tuple[str, ...]:
    """Names of the groups in tables.

    Fractions have six digits if six are enough to distinguish the labels in a column.
    """
    columns = [_written(column) for column in zip(*labels, strict=True)]
    return tuple(
        ", ".join(f"{name}={text}" for name, text in zip(by, row, strict=True))
        for row in zip(*columns, strict=True)
    )


def _written(column: Sequence[Any]) -> list[str]:
    """The labels of a column, as text."""
    short = [_rounded(label) if isinstance(label, float) else str(label) for label in column]
    return short if len(set(short)) == len(set(column)) else list(map(str, column))


def _rounded(number: float) -> str:
    short = f"{number:.6g}"
    return str(number) if number.is_integer() or float(short) == number else short
