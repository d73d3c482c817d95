"""Sample means: plain, exact, or corrected for adaptive collection; and when each is valid."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.claims.stationarity import SHARES_MOVED
from adaptinf.claims.units import NOT_BY_UNIT
from adaptinf.errors import InvalidForLog
from adaptinf.inference.arms.alee import alee_offset, alee_weights
from adaptinf.inference.arms.circumstances import from_sums
from adaptinf.inference.arms.fit import ArmFit, arm_labels, arm_samples, is_skewed, without_propensities
from adaptinf.inference.arms.lengths import sample_length
from adaptinf.inference.arms.order import ORDER, PLAIN_SAMPLES
from adaptinf.inference.arms.question import Asked, Choice, Question
from adaptinf.inference.arms.record import ArmMethod
from adaptinf.inference.distributions.tails import normal_quantile
from adaptinf.inference.distributions.two_samples import FEW_EVENTS
from adaptinf.inference.scores.means import SampleMeans
from adaptinf.inference.validity.assignment import MOVED
from adaptinf.inference.validity.order import Rank
from adaptinf.inference.validity.profile import compared
from adaptinf.inference.validity.verdicts import Verdict

if TYPE_CHECKING:
    from adaptinf.inference.corrections.information import Correction
    from adaptinf.inference.validity.profile import LogProfile

STABLE_ENOUGH = 0.1
"""Coefficient of variation of re-simulated arm counts up to which they count as settled."""
_SHORT_RUNS = (
    "simulated on UCB of width 2 with two equal arms (0/1 rewards, mean .5), nominal 95% intervals of the "
    "difference cover 93.9% at 1,000 rounds and 94.3% at 10,000; audit.stability measures whether counts "
    "have settled"
)
_TAKEN = (
    "The log does not name its design, which is therefore taken to be adaptive (adaptive=False says that "
    "assignment did not react to outcomes)."
)
_PATIENCE = 2.0
"""How many times as long as those of ALEE exact intervals may be and still come first."""
_USUAL_ALPHA = 0.05
_CALL = {"estimator": "sample-mean"}


def _assess(question: Question) -> list[Verdict]:
    """Sample means, with exact tests, and with corrected columns."""
    return [_plain(question), _exact(question), _corrected(question)]


def _plain(question: Question) -> Verdict:
    profile, variation = question.profile, question.variation
    naive = partial(Verdict, "sample-mean", "not valid", ORDER["sample-mean"], _CALL, baseline=True)
    mixed, known = profile.mixing_assumption, profile.stability
    if profile.context_refusal:
        place = ORDER["sample-mean: contexts decide"]
        return Verdict("sample-mean", "not valid", place, _CALL, profile.context_refusal)
    if profile.repeated_units:
        return naive(reason=profile.unit_refusal)
    if not profile.adaptive:
        reason = f"{profile.why_not_adaptive}: the arms' rewards are plain samples"
        warning = SHARES_MOVED() if profile.shares_move else ""
        case = PLAIN_SAMPLES if _plainly_sampled(profile) else "not adaptive"
        return _valid(ORDER[f"sample-mean: {case}"], reason, f"arm means stay the same{mixed}", warning)
    if variation is not None:
        vary = f"re-simulated arm counts vary by {variation:.0%} of their median"
        if variation > STABLE_ENOUGH:
            return naive(reason=f"{vary}, above {STABLE_ENOUGH:.0%}: sample means are not normal")
        return _valid(
            ORDER["sample-mean: counts settled"],
            f"{vary}: they have settled",
            f"the simulated environment is right{mixed}",
        )
    if known is None:
        return naive(reason="sample means are biased by adaptivity")
    title = profile.design_title
    if not known.stable:
        why = f"{title} is not stable: {known.condition} ({known.source})"
        return naive(reason=f"sample means are biased by adaptivity, and {why}")
    reason = f"{title} is stable, its arm counts settle ({known.source})"
    return _valid(ORDER["sample-mean"], reason, f"{known.condition}, and a long run{mixed}", _SHORT_RUNS)


def _valid(rank: Rank, reason: str, assumes: str, warning: str = "") -> Verdict:
    """Plain sample means for a reason that takes the place of what their fit says of them at large."""
    opening = f"Sample means: {reason}."
    return Verdict("sample-mean", "asymptotic", rank, _CALL, reason, (assumes,), warning, opening=opening)


def _exact(question: Question) -> Verdict:
    profile, name = question.profile, "sample-mean with exact binomial tests"
    call = {**_CALL, "test": "exact"}
    reason, runs = profile.context_refusal, False
    if not reason and not compared(question).binary:
        reason = "it needs rewards that take two values, such as 0 and 1"
    elif not reason and profile.repeated_units:
        reason, runs = profile.unit_refusal, True
    elif not reason and profile.adaptive:
        reason, runs = "exact for counts fixed in advance, and adaptivity moves them", True
    if reason:
        return Verdict(name, "not valid", ORDER["exact tests"], call, reason, baseline=runs)
    rank = ORDER[f"exact tests: {PLAIN_SAMPLES}" if _plainly_sampled(profile) else "exact tests"]
    assumes = f"one success rate an arm{profile.mixing_assumption}"
    warning = SHARES_MOVED() if profile.shares_move else ""
    return Verdict(
        name, "exact", rank, call, f"0/1 rewards, and {profile.why_not_adaptive}", (assumes,), warning
    )


def _plainly_sampled(profile: LogProfile) -> bool:
    """Whether nothing can have moved the arms' probabilities, so that scores have nothing to add."""
    if profile.adaptive or profile.shares_move:
        return False
    return not profile.log.context or profile.constant_propensities


def _of_counts(question: Question, verdict: Verdict) -> bool:
    """Where rewards take two values and counts are fixed: exact tests are of any number of events."""
    return compared(question).binary and not question.profile.adaptive and not verdict.corrected


def _corrected(question: Question) -> Verdict:
    profile, name = question.profile, "sample-mean with its corrected columns"
    reason, correction = profile.context_refusal, profile.correction
    if not reason and profile.repeated_units:
        by_person = "; correction_for(log, unit='person') corrects p-values by person"
        reason = profile.unit_refusal + by_person * (profile.sums is None)
    if not reason and not profile.adaptive:
        reason = f"no correction is due: {profile.why_not_adaptive}"
    if not reason and correction is None:
        reason = profile.no_correction
    if reason or correction is None:
        return Verdict(name, "not valid", ORDER["corrected: refused"], _CALL, reason)
    label = "exact" if compared(question).binary else "asymptotic"
    if correction.vacuous(_USUAL_ALPHA):
        said, rank = f"vacuous: {correction.describe(_USUAL_ALPHA)}", ORDER["of no use"]
        useless = "no interval is of any use"
        return Verdict(name, label, rank, _CALL, said, ("the stated guarantee",), useless, corrected=True)
    ratio = length_ratio(question, correction)
    short = ratio <= (_PATIENCE if compared(question).binary else 1.0)
    said = (
        f"the guarantee bounds what adaptivity can do: {correction.describe(_USUAL_ALPHA)}; intervals about "
        f"{ratio:.2g} times as long as those of alee"
    )
    said += "" if short else ", which is therefore put first unless exactness is needed"
    cautions = [] if compared(question).binary else ["the t approximation may fail so far out in the tail"]
    if not profile.context_free:
        cautions.append(f"{label} only if contexts had no part in the choice, which the log does not say")
    mixed = profile.mixing_assumption
    assumes = f"the stated guarantee, and independent rewards with one law an arm{mixed}"
    rank = ORDER["corrected: short" if short and profile.context_free else "corrected"]
    return Verdict(name, label, rank, _CALL, said, (assumes,), "; ".join(cautions), corrected=True)


def length_ratio(question: Question, correction: Correction) -> float:
    """Length of corrected intervals over those of ALEE, by pull counts alone."""
    log = question.profile.log
    z = float(normal_quantile(correction.level(math.log(_USUAL_ALPHA)) - math.log(2.0)))
    usual = float(normal_quantile(math.log(_USUAL_ALPHA / 2.0)))
    counts = question.profile.pulls[question.codes]
    offset = alee_offset(log.n_rounds)
    totals = [float(alee_weights(int(n), offset).sum()) / math.sqrt(n) for n in counts if n > 0]
    return z / usual * max(totals, default=1.0)


def _fit(question: Question, choice: Choice, asked: Asked) -> ArmFit:
    profile, codes = question.profile, question.codes
    every = arm_samples(profile.sums or profile.log)
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
    """Exact tests of two-valued rewards where a correction is due, or an arm has few events; else t.

    Hall's correction of t where rewards are skewed, and adaptivity needs none.
    """
    binary = compared(question).binary
    if test == "exact" and not binary:
        reason = "they need rewards that take two values, such as 0 and 1"
        raise InvalidForLog("exact binomial tests", reason, ["test='t'", "test='normal'"])
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


def _notes(question: Question, fit: ArmFit, test: str, correction: Correction | None) -> list[str]:
    profile = question.profile
    notes = [f"Sample means: {_worth(question, test, correction)}."]
    if profile.log.context:
        notes.append(
            "The log has contexts: a sample mean is that of the rounds the arm got, which is the arm's mean "
            "only if the context had no part in the choice."
        )
    if fit.naive and profile.log.design is None:
        notes.append(_TAKEN)
    if fit.naive and correction is None and profile.log.guarantee is not None:
        notes.append(f"No corrected columns: {profile.no_correction}.")
    if test == "few":
        notes.append(
            f"An arm has fewer than {FEW_EVENTS} successes or failures: exact binomial tests of means, and "
            "the Agresti-Caffo adjustment of differences."
        )
    if test == "exact":
        notes.append("Exact tests assume independent 0/1 rewards with one success rate an arm.")
    return notes


def _cautions(question: Question, fit: ArmFit) -> list[str]:
    """That errors ignore units with several rounds, that shares moved, and what sums do not tell."""
    profile = question.profile
    unseen = [] if profile.sums is None else from_sums.cautions(question)
    # Arms that nothing moved are taken as plainly sampled on the word of propensities that never change.
    wrong = profile.propensity_cautions if profile.constant_propensities else ()
    moved = not profile.adaptive and profile.shares_move
    found = [NOT_BY_UNIT()] * profile.repeated_units + [_moved(profile)] * moved
    return [*found, *wrong, *unseen, *profile.share_cautions]


def _moved(profile: LogProfile) -> str:
    """That shares of rounds moved, and what holds all the same."""
    if profile.knows_propensities and not profile.estimated:
        return f"{SHARES_MOVED()} (aipw, by the propensities, does without that)"
    way = "give batch=, stretches in which they stay, to compare arms within these"
    if profile.batched and not profile.shares_move_in_batches:
        way = "Contrast compares arms within batches by estimator='batched'"
    return f"{SHARES_MOVED()} (p < {MOVED:g}; {way})"


def _holds(question: Question, test: str, correction: Correction | None) -> bool:
    """Whether nothing adapted, or counts settle, so that no correction is due."""
    profile = question.profile
    if profile.repeated_units:
        return False
    stable = profile.stability is not None and profile.stability.stable and test != "exact"
    return not profile.adaptive or (correction is None and stable)


def _worth(question: Question, test: str, correction: Correction | None) -> str:
    """How valid uncorrected sample means are."""
    profile = question.profile
    known = profile.stability
    if profile.repeated_units:
        return "not valid where units have several rounds, which are not independent; a naive baseline"
    if not profile.adaptive:
        return f"{profile.why_not_adaptive}; no correction is due"
    if known is not None and _holds(question, test, correction):
        settled = f"valid in long runs of {profile.design_title}, whose arm counts settle ({known.source})"
        return f"{settled}, given {known.condition}; {_SHORT_RUNS}"
    instead = "a naive baseline" if correction is None else "the corrected columns account for it"
    return f"not valid under adaptivity; {instead}"


SAMPLE_MEAN = ArmMethod(
    name="sample-mean",
    assess=_assess,
    settle=partial(without_propensities, "sample-mean"),
    fit=_fit,
    length=sample_length,
    notes=_notes,
    cautions=_cautions,
    holds=_holds,
    of_counts=_of_counts,
    resolve_test=_resolve_test,
    implied_by=("exact",),
    no_weights="sample means take",
    baseline=True,
    takes_sums=True,
    pairs=True,
)
