"""The difference between two arms, estimated from the private releases in a log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.claims import said
from adaptinf.claims.privacy import releases
from adaptinf.errors import InvalidForLog
from adaptinf.inference.arms.arm_order import ORDER
from adaptinf.inference.arms.data.data_facts import ReleasedPairFacts
from adaptinf.inference.arms.question import Asked, Choice, Difference, Question, Refused
from adaptinf.inference.arms.record import ArmMethod, always
from adaptinf.inference.inputs.published import answered_by
from adaptinf.inference.released.effects import ReleasedReference, released_std_error
from adaptinf.inference.released.pair_effects import PairEffect, pair_effect
from adaptinf.inference.validity.methods import Verdict, refusal
from adaptinf.parameters import refuse

if TYPE_CHECKING:
    from adaptinf.inference.arms.question import Question


_NAME = "released"


def _found(question: Question, asked: Asked | None = None) -> PairEffect:
    treatment, control = (int(code) for code in question.codes)
    after = asked is not None and asked.named == "after"
    return pair_effect(question.profile.log, treatment, control, named_after=after)


def published(question: Question, asked: Asked) -> Difference:
    """The difference estimated from the public part of a log."""
    try:
        return _fit(question, _settle(question, asked), asked)
    except Refused as refused:
        log: Any = question.profile.log
        raise InvalidForLog(refused.method, refused.reason, answered_by(log)) from None


def _assess(question: Question) -> list[Verdict]:
    call = {"estimator": _NAME}
    why = refusal(_found, question)
    if why:
        return [Verdict(_NAME, "not valid", ORDER["released"], call, why)]
    assumed = tuple(said(releases.PAIR_ASSUMES, ReleasedPairFacts(question)))
    return [Verdict(_NAME, "asymptotic", ORDER["released"], call, releases.COVERED(), assumed)]


def _settle(question: Question, asked: Asked) -> Choice:
    options = ("weights", "decay", "outcome", "ridge")
    problems = [
        f"{name} does not apply to private releases" for name in options if getattr(asked, name) is not None
    ]
    if asked.test != "auto":
        problems.append(
            f"test must be auto for private releases, which have their own test, got {asked.test!r}"
        )
    if asked.chosen_from != "actions":
        problems.append("chosen_from does not apply to private releases, whose test has no corrected columns")
    refuse(asked.subject, problems)
    return Choice(_NAME)


def _fit(question: Question, choice: Choice, asked: Asked) -> Difference:
    try:
        found = _found(question, asked)
    except InvalidForLog as error:
        raise Refused(_NAME, error.reason) from None
    reference = ReleasedReference(found.effect, found.share)
    empty = np.isfinite(found.estimate) and np.isnan(reference.interval(float(np.log(0.05)))).any()
    return Difference(
        choice,
        found.estimate,
        float(released_std_error(found.effect)[0]),
        reference,
        {name: np.array([value]) for name, value in found.details.items()},
        (*found.notes, releases.EMPTY()) if empty else found.notes,
        private=True,
    )


RELEASED = ArmMethod(
    name=_NAME,
    assess=_assess,
    settle=_settle,
    fit=_fit,
    contrast_only=True,
    takes_gaps=True,
    of_counts=always,
)
"""Estimates from the log's private releases alone."""
