"""Sample means with unadjusted, exact or corrected inference, and when each of these is valid."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.claims import first, said, sentence
from adaptinf.claims.arms import sample_means as claims
from adaptinf.errors import InvalidForLog
from adaptinf.inference.arms.arm_lengths import sample_length
from adaptinf.inference.arms.arm_order import ORDER, PLAIN_SAMPLES
from adaptinf.inference.arms.facts.sample_facts import CorrectedFacts, ExactFacts, SampleFacts, holds
from adaptinf.inference.arms.fit import arm_labels, arm_samples, is_skewed, without_propensities
from adaptinf.inference.arms.question import ArmFit, Asked, Choice, Question
from adaptinf.inference.arms.record import ArmMethod
from adaptinf.inference.distributions.two_samples import FEW_EVENTS
from adaptinf.inference.scores.means import SampleMeans
from adaptinf.inference.validity.methods import Verdict
from adaptinf.inference.validity.profile import compared

if TYPE_CHECKING:
    from adaptinf.inference.validity.profile import LogProfile

_CALL = {"estimator": "sample-mean"}


def _assess(question: Question) -> list[Verdict]:
    """Verdicts on sample means as they are, with exact tests, and with corrected columns."""
    return [_plain(question), _exact(question), _corrected(question)]


def _plain(question: Question) -> Verdict:
    facts, profile, name = SampleFacts(question), question.profile, "sample-mean"
    if reason := first(claims.NEEDS, facts):
        mixed = bool(profile.context_refusal)
        rank = ORDER["sample-mean: contexts decide" if mixed else "sample-mean"]
        return Verdict(name, "not valid", rank, _CALL, reason, baseline=not mixed)
    case = "sample-mean"
    if not profile.adaptive:
        case = f"sample-mean: {PLAIN_SAMPLES if _plainly_sampled(profile) else 'not adaptive'}"
    elif facts.simulated:
        case = "sample-mean: counts settled"
    reason = first(claims.REASONS, facts)
    told = tuple(said(claims.ASSUMES, facts)), sentence(said(claims.CAUTIONS, facts))
    # The reason why the method is valid here replaces the general sentence about its fits.
    opening = claims.OPENING(worth=claims.NOT_DUE(why=reason))
    return Verdict(name, "asymptotic", ORDER[case], _CALL, reason, *told, opening=opening)


def _exact(question: Question) -> Verdict:
    facts, profile, name = ExactFacts(question), question.profile, "sample-mean with exact binomial tests"
    call = {**_CALL, "test": "exact"}
    if reason := first(claims.EXACT_NEEDS, facts):
        runs = not profile.context_refusal and not facts.not_binary
        return Verdict(name, "not valid", ORDER["exact tests"], call, reason, baseline=runs)
    rank = ORDER[f"exact tests: {PLAIN_SAMPLES}" if _plainly_sampled(profile) else "exact tests"]
    told = tuple(said(claims.EXACT_ASSUMES, facts)), sentence(said(claims.EXACT_CAUTIONS, facts))
    return Verdict(name, "exact", rank, call, first(claims.EXACT_REASONS, facts), *told)


def _plainly_sampled(profile: LogProfile) -> bool:
    """Whether nothing can have changed the arms' probabilities, so that scores have no advantage."""
    if profile.adaptive or profile.shares_move:
        return False
    return not profile.log.context or profile.constant_propensities


def _of_counts(question: Question, verdict: Verdict) -> bool:
    """Whether rewards take two values and nothing adapted, so that exact tests allow any number of events."""
    return compared(question).binary and not question.profile.adaptive and not verdict.corrected


def _corrected(question: Question) -> Verdict:
    facts, name = CorrectedFacts(question), "sample-mean with corrected columns"
    if reason := first(claims.CORRECTED_NEEDS, facts):
        return Verdict(name, "not valid", ORDER["corrected: refused"], _CALL, reason)
    reason = first(claims.CORRECTED_REASONS, facts)
    told = tuple(said(claims.CORRECTED_ASSUMES, facts)), sentence(said(claims.CORRECTED_CAUTIONS, facts))
    case = "corrected: short" if facts.are_short and question.profile.context_free else "corrected"
    rank = ORDER["of no use" if facts.useless else case]
    return Verdict(name, facts.label, rank, _CALL, reason, *told, corrected=True)


def _fit(question: Question, choice: Choice, asked: Asked) -> ArmFit:
    profile, codes = question.profile, question.codes
    every = arm_samples(profile)
    sample = SampleMeans(every.count[codes], every.above[codes], every.std_error[codes], every.origin)
    return ArmFit(
        choice=choice,
        labels=arm_labels(question),
        estimate=sample.mean,
        covariance=np.diag(sample.std_error**2),
        pulls=sample.count,
        successes=compared(question).successes[codes],
        values=compared(question).two_values or (0.0, 1.0),
        ess=sample.count,
        min_propensity=np.full(len(codes), np.nan),
        naive=profile.adaptive,
        sample=sample,
    )


def _resolve_test(question: Question, fit: ArmFit, test: str, *, corrected: bool) -> str:
    """Exact tests for two-valued rewards if a correction is needed or an arm has few events; otherwise t.

    The t distribution is replaced with Hall's correction if rewards are skewed and no correction for
    adaptivity is needed.
    """
    binary = compared(question).binary
    if test == "exact" and not binary:
        raise InvalidForLog("exact binomial tests", claims.NOT_BINARY(), ["test='t'", "test='normal'"])
    if test != "auto":
        return test
    if not binary and not fit.naive and is_skewed(question, fit):
        return "hall"
    if not binary or (fit.naive and not corrected):
        return "t"
    if corrected:
        return "exact"
    events = np.minimum(fit.successes, fit.pulls - fit.successes)
    return "few" if np.any((events < FEW_EVENTS) & (fit.pulls > 0)) else "t"


SAMPLE_MEAN = ArmMethod(
    name="sample-mean",
    assess=_assess,
    settle=partial(without_propensities, "sample-mean"),
    fit=_fit,
    length=sample_length,
    claims=claims.FIT,
    facts=SampleFacts,
    holds=holds,
    of_counts=_of_counts,
    resolve_test=_resolve_test,
    implied_by=("exact",),
    no_weights="sample means",
    baseline=True,
    takes_sums=True,
    pairs=True,
)
