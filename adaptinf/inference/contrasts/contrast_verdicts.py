"""Validity of the methods for a contrast, applied to several contrasts with one control, and to lifts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from adaptinf.claims import sentence
from adaptinf.claims.arms import contrasts as claims
from adaptinf.errors import InvalidForLog
from adaptinf.inference.arms.choice import arm_method, arm_verdicts
from adaptinf.inference.arms.question import Question
from adaptinf.inference.arms.record import ArmMethod
from adaptinf.inference.contrasts.shared_control import FEWEST_EVENTS, SHARED
from adaptinf.inference.validity.methods import Verdict
from adaptinf.inference.validity.profile import LogProfile
from adaptinf.typing import IntArray

_ORDER = ("not valid", "asymptotic", "anytime", "exact")


def over_pairs(pairs: Sequence[Sequence[Verdict]], terms: Sequence[str]) -> list[Verdict]:
    """Verdict on each method for all pairs, which is that for the worst pair; terms are the pairs' names."""
    named = [{verdict.name: verdict for verdict in found} for found in pairs]
    return [_worst([found[verdict.name] for found in named], terms) for verdict in pairs[0]]


def _worst(found: Sequence[Verdict], terms: Sequence[str]) -> Verdict:
    first = found[0]
    bad = [(term, verdict) for term, verdict in zip(terms, found, strict=True) if not verdict.valid]
    if bad:
        term, verdict = bad[0]
        reason = verdict.reason if len(bad) == len(found) else f"{term}: {verdict.reason}"
        return replace(verdict, rank=first.rank, reason=reason, baseline=all(one.baseline for _, one in bad))
    warnings = dict.fromkeys(verdict.warning for verdict in found if verdict.warning)
    label = min((verdict.label for verdict in found), key=_ORDER.index)
    unanswered = sum(verdict.unanswered for verdict in found)
    return replace(first, label=label, warning=sentence(warnings), unanswered=unanswered)


def told_at_once(profile: LogProfile, method: ArmMethod, verdict: Verdict) -> Verdict:
    """The verdict, with a statement on how simultaneous intervals are computed."""
    if not verdict.valid or verdict.corrected:
        return verdict
    known = not method.contrast_only
    if profile.rows_refusal:
        known = verdict.arguments["estimator"] in ("ipw", "aipw") and verdict.arguments["weights"] in SHARED
    way = claims.TOGETHER() if known else claims.APART()
    return replace(verdict, reason=sentence([verdict.reason, way]), opening="")


def of_lift(profile: LogProfile, codes: IntArray, method: ArmMethod, verdict: Verdict) -> Verdict:
    """The verdict on a method for lifts over the control, from that for differences; codes has shape (K,)."""
    arguments = {**verdict.arguments, "lift": True}
    without = method.contrast_only or verdict.corrected or profile.incomplete
    if verdict.valid and without:
        return Verdict(verdict.name, "not valid", verdict.rank, arguments, claims.NO_MEANS())
    if not verdict.valid:
        return replace(verdict, arguments=arguments)
    warning = verdict.warning
    if np.any(profile.uncommon[codes] < FEWEST_EVENTS):
        warning = sentence([warning, claims.SOME_WITHOUT(fewest=FEWEST_EVENTS)])
    return replace(verdict, label="asymptotic", arguments=arguments, warning=warning)


def lift_refusal(question: Question, method: str, reason: str, most: int = 3) -> InvalidForLog:
    """The error for a method that does not support lifts; it suggests differences, or methods that do."""
    profile = question.profile
    found = [
        of_lift(profile, question.codes, arm_method(one.arguments["estimator"]), one)
        for one in arm_verdicts(question)
    ]
    named = [one.name for one in found if one.valid and one.offered][:most]
    return InvalidForLog(method, reason, [*named, claims.DIFFERENCES_INSTEAD()])
