"""Group effects from the private releases of a log."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.effects.notes import SAME_EFFECT, by_reason, empty_interval_notes
from adaptinf.inference.effects.question import GroupQuestion, group_results, group_terms
from adaptinf.inference.released.effects import ReleasedReference, released_std_error
from adaptinf.inference.released.group_effects import ReleasedEffects, released_effects
from adaptinf.inference.released.units import refuse_repeated_units
from adaptinf.inference.validity.methods import MethodRecord, refusal
from adaptinf.inference.validity.verdicts import Verdict

if TYPE_CHECKING:
    from adaptinf.inference.effects.comparisons import GroupResults
    from adaptinf.log import AdaptiveLog, PublicLog

_NAME = "released"


def _assess(question: GroupQuestion) -> list[Verdict]:
    if question.marked is not None:
        return []
    call = {"estimator": _NAME}
    why = refusal(_effects, question)
    if why:
        return [Verdict(_NAME, "not valid", 20.0, call, why)]
    reason = "from the private releases alone, so that the guarantee covers it"
    return [Verdict(_NAME, "asymptotic", 20.0, call, reason, (SAME_EFFECT,))]


def _effects(question: GroupQuestion) -> ReleasedEffects:
    """Effects of the releases, if these are for the groups in question."""
    log: AdaptiveLog | PublicLog = question.profile.log
    refuse_repeated_units(_NAME, log, last_stretch=True)
    effects = released_effects(log)
    observed = {label[0] for label in question.labels}
    if len(question.by) > 1 or not observed <= set(effects.groups):
        shown = ", ".join(map(repr, effects.groups[:10]))
        reason = f"its releases are for the groups {shown}, which are not the labels of by="
        raise InvalidForLog(_NAME, f"{reason} {', '.join(question.by)}", ())
    return effects


def _fit(question: GroupQuestion, null: float) -> GroupResults:
    if question.marked is not None:
        raise ParameterError("CATE.fit", ["rounds= does not apply to releases: leave it out"])
    effects = _effects(question)
    if question.pair[1] == 0:
        effect = replace(effects.effect, center=-effects.effect.center)
        effects = replace(effects, effect=effect, estimate=-effects.estimate)
    terms = group_terms(question.by, [(label,) for label in effects.groups])
    reference = ReleasedReference(effects.effect)
    return group_results(
        question,
        _NAME,
        effects.estimate,
        released_std_error(effects.effect),
        reference,
        null=null,
        terms=terms,
        groups=effects.groups,
        private=True,
        details=effects.details,
        notes=(
            *effects.notes,
            *by_reason(terms, [effects.reasons.get(i, "") for i in range(len(terms))]),
            *empty_interval_notes(terms, reference, effects.estimate),
        ),
    )


RELEASED: MethodRecord[GroupQuestion] = MethodRecord(_NAME, _assess, _fit)
"""From the log's private releases alone."""
