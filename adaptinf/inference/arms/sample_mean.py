"""When sample means are valid: plain, exact, or corrected for adaptive collection."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.inference.arms.alee import alee_offset, alee_weights
from adaptinf.inference.corrections.information import Correction
from adaptinf.inference.distributions.tails import normal_quantile
from adaptinf.inference.validity.profile import is_binary, profile_of
from adaptinf.inference.validity.verdicts import Traits, Verdict
from adaptinf.typing import IntArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog

__all__ = ["SHORT_RUNS", "STABLE_ENOUGH", "length_ratio", "mean_verdicts"]

STABLE_ENOUGH = 0.1
"""Coefficient of variation of re-simulated arm counts up to which they count as settled."""
SHORT_RUNS = (
    "simulated on UCB with equal arms, nominal 95% intervals cover 92% at 1,000 rounds; audit.stability "
    "measures whether counts have settled"
)
_PATIENCE = 2.0
"""How many times as long as those of ALEE exact intervals may be and still come first."""
_USUAL_ALPHA = 0.05


def mean_verdicts(traits: Traits) -> list[Verdict]:
    """Sample means, with exact tests, and with corrected columns."""
    binary = is_binary(traits.log.arrays.reward)
    return [_plain(traits), _exact(traits, binary), _corrected(traits, binary)]


def _plain(traits: Traits) -> Verdict:
    name, call, log = "sample-mean", {"estimator": "sample-mean"}, traits.log
    mixed = "; contexts had no part in the choice" if log.context else ""
    if traits.refusal:
        return Verdict(name, "not valid", 15.0, call, traits.refusal)
    if not traits.adaptive:
        reason = "the design does not adapt to rewards: the arms' rewards are plain samples"
        rank = 8.0 if _plainly_sampled(traits) else 15.0
        return Verdict(name, "asymptotic", rank, call, reason, f"arm means stay the same{mixed}")
    if traits.variation is not None and traits.variation > STABLE_ENOUGH:
        reason = (
            f"re-simulated arm counts vary by {traits.variation:.0%} of their median, above "
            f"{STABLE_ENOUGH:.0%}: sample means are not normal"
        )
        return Verdict(name, "not valid", 24.0, call, reason, baseline=True)
    known = traits.stability
    if traits.variation is None and (known is None or not known.stable):
        reason = "sample means are biased by adaptivity"
        if known is not None:
            title = profile_of(traits.log).design_title
            reason += f", and {title} is not stable: {known.condition} ({known.source})"
        return Verdict(name, "not valid", 24.0, call, reason, baseline=True)
    if traits.variation is not None:
        reason = f"re-simulated arm counts vary by {traits.variation:.0%} of their median: they have settled"
        return Verdict(name, "asymptotic", 18.0, call, reason, f"the simulated environment is right{mixed}")
    assert known is not None
    return Verdict(
        name,
        "asymptotic",
        24.0,
        call,
        f"{profile_of(traits.log).design_title} is stable, its arm counts settle ({known.source})",
        f"{known.condition}, and a long run{mixed}",
        SHORT_RUNS,
    )


def _exact(traits: Traits, binary: bool) -> Verdict:
    name = "sample-mean with exact binomial tests"
    call = {"estimator": "sample-mean", "test": "exact"}
    reason, runs = "", False
    if traits.refusal:
        reason = traits.refusal
    elif not binary:
        reason = "it needs rewards that are all 0 or 1"
    elif traits.adaptive:
        reason, runs = "exact for counts fixed in advance, and adaptivity moves them", True
    if reason:
        return Verdict(name, "not valid", 16.0, call, reason, baseline=runs)
    mixed = "; contexts had no part in the choice" if traits.log.context else ""
    return Verdict(
        name,
        "exact",
        9.0 if _plainly_sampled(traits) else 16.0,
        call,
        "0/1 rewards, and the design does not adapt",
        f"one success rate an arm{mixed}",
    )


def _plainly_sampled(traits: Traits) -> bool:
    """Whether nothing can have moved the arms' probabilities, so that scores have nothing to add."""
    log = traits.log
    if traits.adaptive or profile_of(log).varying_propensities:
        return False
    return not log.context or profile_of(log).constant_propensities


def _corrected(traits: Traits, binary: bool) -> Verdict:
    name, call = "sample-mean with its corrected columns", {"estimator": "sample-mean"}
    log, correction = traits.log, traits.correction
    reason = traits.refusal
    if not reason and not traits.adaptive:
        reason = "no correction is due: the design does not adapt to rewards"
    if not reason and correction is None:
        reason = profile_of(log).no_correction
    if reason or correction is None:
        return Verdict(name, "not valid", 29.0, call, reason)
    ratio = length_ratio(log, traits.codes, correction)
    label = "exact" if binary else "asymptotic"
    if correction.vacuous(_USUAL_ALPHA):
        said, rank = f"vacuous: {correction.describe(_USUAL_ALPHA)}", 90.0
        return Verdict(name, label, rank, call, said, "the stated guarantee", "no interval is of any use")
    free = profile_of(log).context_free
    short = ratio <= (_PATIENCE if binary else 1.0)
    said = (
        f"the guarantee bounds what adaptivity can do: {correction.describe(_USUAL_ALPHA)}; intervals about "
        f"{ratio:.2g} times as long as those of alee"
    )
    said += "" if short else ", which is therefore put first unless exactness is needed"
    cautions = [] if binary else ["the t approximation may fail so far out in the tail"]
    if not free:
        cautions.append(f"{label} only if contexts had no part in the choice, which the log does not say")
    mixed = "; contexts had no part in the choice" if log.context else ""
    assumes = f"the stated guarantee, and independent rewards with one law an arm{mixed}"
    rank = 19.0 if short and free else 29.0
    return Verdict(name, label, rank, call, said, assumes, "; ".join(cautions))


def length_ratio(log: AdaptiveLog, codes: IntArray, correction: Correction) -> float:
    """Length of corrected intervals over those of ALEE, by pull counts alone; codes (k,)."""
    z = float(normal_quantile(correction.level(math.log(_USUAL_ALPHA)) - math.log(2.0)))
    usual = float(normal_quantile(math.log(_USUAL_ALPHA / 2.0)))
    counts = np.bincount(log.arrays.action, minlength=log.n_arms)[codes]
    offset = alee_offset(log.n_rounds)
    totals = [float(alee_weights(int(n), offset).sum()) / math.sqrt(n) for n in counts if n > 0]
    return z / usual * max(totals, default=1.0)
