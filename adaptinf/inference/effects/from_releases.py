"""Group effects from the private releases of a log."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adaptinf.claims import said, sentence
from adaptinf.claims.effects import by_group as claims
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.effects.group_facts import ReleasedFacts
from adaptinf.inference.effects.question import GroupQuestion, group_terms
from adaptinf.inference.effects.record import GROUPS, EffectMethod, GroupFit
from adaptinf.inference.released.effects import ReleasedReference, released_std_error
from adaptinf.inference.released.group_effects import ReleasedEffects, released_effects
from adaptinf.inference.released.pair_effects import refuse_repeated_units
from adaptinf.inference.validity.methods import Verdict, refusal

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog, PublicLog

_NAME = "released"


def _assess(question: GroupQuestion) -> list[Verdict]:
    if question.marked is not None:
        return []
    call, rank = {"estimator": _NAME}, GROUPS[_NAME]
    why = refusal(matching_effects, question)
    if why:
        return [Verdict(_NAME, "not valid", rank, call, why)]
    facts = ReleasedFacts(question)
    reason = sentence(said(claims.RELEASED_REASONS, facts))
    return [Verdict(_NAME, "asymptotic", rank, call, reason, tuple(said(claims.SAME_EFFECT, facts)))]


def matching_effects(question: GroupQuestion) -> ReleasedEffects:
    """Effects of the releases, if these are for the groups in question."""
    log: AdaptiveLog | PublicLog = question.profile.log
    refuse_repeated_units(_NAME, log, last_stretch=True)
    effects = released_effects(log)
    observed = {label[0] for label in question.labels}
    if len(question.by) > 1 or not observed <= set(effects.groups):
        shown, by = ", ".join(map(repr, effects.groups[:10])), ", ".join(question.by)
        raise InvalidForLog(_NAME, claims.OTHER_LABELS(groups=shown, by=by), ())
    return effects


def _fit(question: GroupQuestion) -> GroupFit:
    if question.marked is not None:
        raise ParameterError("CATE.fit", ["rounds= does not apply to releases: leave it out"])
    effects = matching_effects(question)
    if question.pair[1] == 0:
        effect = replace(effects.effect, center=-effects.effect.center)
        effects = replace(effects, effect=effect, estimate=-effects.estimate)
    terms = group_terms(question.by, [(label,) for label in effects.groups])
    reference = ReleasedReference(effects.effect)
    return GroupFit(
        estimate=effects.estimate,
        std_error=released_std_error(effects.effect),
        reference=reference,
        details=effects.details,
        facts=ReleasedFacts(question, effects, reference, terms),
        terms=terms,
        groups=effects.groups,
        private=True,
    )


RELEASED: EffectMethod[GroupQuestion] = EffectMethod(_NAME, _assess, _fit, claims.RELEASED)
"""From the log's private releases alone."""
