"""Which estimators of arm means and contrasts a log supports, in which order, and why.

The one rule behind the default of ``ArmMeans(log).fit()``, the ways out that errors name, and `recommend`. It
reads actions, propensities and contexts, and of the rewards only whether all are 0 or 1: a choice by
the estimates would spoil their intervals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.errors import InvalidForLog
from adaptinf.inference.arms.sample_mean import mean_verdicts
from adaptinf.inference.validity.profile import SMALL, profile_of
from adaptinf.inference.validity.verdicts import Traits, Verdict
from adaptinf.typing import IntArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog

__all__ = [
    "BASELINE",
    "MIXED",
    "arm_verdicts",
    "context_names",
    "first_valid",
    "score_refusal",
    "ways_out",
]

BASELINE = "sample-mean as a naive baseline, not valid under adaptivity"
_CONSTANT = "an arm's mean and variance are the same whenever it is chosen"
_PROPENSITIES = "the logged propensities are the design's own, and arm means stay the same"
MIXED = (
    "propensities depend on contexts, and weights made from them count contexts unequally: the estimate "
    "would be of another mix of contexts"
)
_SHORTER = "alee with self-normalised errors"
_NO_DECAY = "its weights need decay=, which the design does not state"
_EVERY = "they need every arm's propensity at every round, and the log has the chosen arm's alone"
_HADAD = (
    "small propensities: in a setting of Hadad et al. with high signal, nominal 95% intervals cover about "
    "90% at 1,000 rounds and 92% at 10,000"
)


def arm_verdicts(
    log: AdaptiveLog,
    codes: IntArray,
    *,
    contrast: bool = False,
    decay: float | None = None,
    variation: float | None = None,
) -> list[Verdict]:
    """Every estimator of arm means, or of a contrast, the valid ones first; codes (k,)."""
    traits = Traits(
        log=log,
        codes=codes,
        adaptive=profile_of(log).adaptive,
        refusal=profile_of(log).context_refusal,
        score_refusal=score_refusal(log, codes),
        estimated=log.propensity_status == "estimated",
        correction=profile_of(log).correction,
        stability=profile_of(log).stability,
        variation=variation,
    )
    found = _scores(traits, decay) + _alee(traits) + mean_verdicts(traits)
    if contrast:
        found.append(_batched(traits))
    return sorted(found, key=lambda verdict: (not verdict.valid, verdict.rank))


def first_valid(log: AdaptiveLog, codes: IntArray) -> Verdict | None:
    """What `ArmMeans` and `Contrast` do by default; None where no estimator of arm means is valid."""
    first = arm_verdicts(log, codes)[0]
    return first if first.valid else None


def ways_out(log: AdaptiveLog, codes: IntArray, *, contrast: bool = False, most: int = 3) -> list[str]:
    """Names of the estimators that an error offers: those that are valid, in order, and the baseline.

    Shapes: codes (k,).
    """
    verdicts = arm_verdicts(log, codes, contrast=contrast)
    named = [x.name for x in verdicts if x.valid and x.name != _SHORTER][:most]
    if profile_of(log).context_refusal:
        return [*named, profile_of(log).in_place_of_means]
    return named if "sample-mean" in named or not profile_of(log).adaptive else [*named, BASELINE]


def score_refusal(log: AdaptiveLog, codes: IntArray) -> str:
    """Why inverse propensities do not serve; empty where they do; codes (k,)."""
    if log.arrays.propensity is None:
        return "it needs propensities, and the log has none (give propensity= or propensities= if known)"
    counts = profile_of(log).impossible[codes]
    if not np.any(counts):
        return ""
    worst = int(np.argmax(counts))
    return (
        f"arm {log.arms[codes[worst]]!r} has propensity 0 in {int(counts[worst])} of {log.n_rounds} rounds, "
        "where it could not have been chosen: there is nothing to weight"
    )


def _scores(traits: Traits, decay: float | None) -> list[Verdict]:
    log = traits.log
    stated = profile_of(log).usable_decay if decay is None else decay
    every = log.arrays.propensities is not None
    free = profile_of(log).context_free
    falls = _falls(log, traits.codes) if not traits.score_refusal and traits.adaptive else False
    # Estimated propensities are one more assumption; without contexts ALEE makes fewer.
    later = 11.0 if traits.estimated and not log.context and not traits.refusal else 0.0
    assumes = _PROPENSITIES + (" (they are estimates, whose error is ignored)" if traits.estimated else "")
    found = []
    for place, weights in enumerate(("two-point", "sqrt", "uniform")):
        reason = traits.score_refusal
        if not reason and not every and weights != "uniform":
            reason = _EVERY
        if not reason and weights == "two-point" and stated is None:
            reason = _NO_DECAY
        if not reason and weights != "uniform" and profile_of(log).decides_by_context:
            reason = MIXED
        for estimator, start in (("aipw", 10.0), ("ipw", 30.0)):
            name = f"{estimator} with {weights} weights"
            arguments: dict[str, Any] = {"estimator": estimator, "weights": weights}
            if weights == "two-point" and stated is not None and profile_of(log).usable_decay != stated:
                arguments["decay"] = stated
            if reason:
                found.append(Verdict(name, "not valid", start + place, arguments, reason))
                continue
            why, warning, extra = _score_reason(traits, weights, falls)
            rests = assumes
            if not free and weights != "uniform":
                rests, extra = f"{assumes}; propensities do not depend on contexts", extra + 5.0
            if estimator == "ipw":
                why += "; without an outcome model, hence with longer intervals than aipw"
            found.append(
                Verdict(name, "asymptotic", start + place + extra + later, arguments, why, rests, warning)
            )
    return found


def _score_reason(traits: Traits, weights: str, falls: bool) -> tuple[str, str, float]:
    """Why scores are valid, the warning, and what is added to the rank."""
    log = traits.log
    warning = _HADAD if falls else ""
    if weights == "two-point":
        return (
            "propensities are known and their floor's decay is fixed: variances are kept even",
            warning,
            0.0,
        )
    if weights == "sqrt":
        reason = "every arm's propensity is known: the weights keep the variance even while they move"
        return reason, warning, 0.0
    if not profile_of(log).moves:
        return "propensities are known and do not move with the data", "", 0.0
    unsettled = "not normal in general when propensities move with the data; right where they settle"
    # Without contexts ALEE needs no such hope.
    reason = "propensities are known"
    if profile_of(log).context_may_move:
        reason += f"; uniform weights, because {context_names(log)} may move them"
    return reason, unsettled, 0.0 if log.context or traits.refusal else 15.0


def context_names(log: AdaptiveLog, most: int = 5) -> str:
    """The log's contexts in a sentence."""
    if not log.context:
        return "contexts that the log does not have"
    return ", ".join(log.context[:most]) + (", ..." if len(log.context) > most else "")


def _falls(log: AdaptiveLog, codes: IntArray) -> bool:
    arrays = log.arrays
    if arrays.propensities is not None:
        return bool(arrays.propensities[:, codes].min(initial=1.0) < SMALL)
    assert arrays.propensity is not None
    return bool(arrays.propensity.min(initial=1.0) < SMALL)


def _alee(traits: Traits) -> list[Verdict]:
    names = ("alee", _SHORTER)
    calls: list[dict[str, Any]] = [
        {"estimator": "alee"},
        {"estimator": "alee", "arm_error": "self-normalised"},
    ]
    if traits.refusal:
        return [
            Verdict(name, "not valid", 20.0 + i, call, traits.refusal)
            for i, (name, call) in enumerate(zip(names, calls, strict=True))
        ]
    assumes = _CONSTANT + ("; contexts had no part in the choice" if traits.log.context else "")
    reason = "needs no propensities, and holds however the arms were chosen"
    short = (
        "simulated on Thompson sampling and UCB with equal arms, nominal 95% intervals cover 93% and 94% "
        "at 1,000 rounds"
    )
    return [
        Verdict(names[0], "asymptotic", 20.0, calls[0], f"{reason}; conservative standard errors", assumes),
        Verdict(names[1], "asymptotic", 28.0, calls[1], f"{reason}; shorter intervals", assumes, short),
    ]


def _batched(traits: Traits) -> Verdict:
    from adaptinf.inference.arms.batched import usable_batches

    name, call = "batched", {"estimator": "batched"}
    if traits.refusal:
        return Verdict(name, "not valid", 26.0, call, traits.refusal)
    try:
        usable_batches(traits.log, traits.codes, traits.adaptive)
    except InvalidForLog as error:
        return Verdict(name, "not valid", 26.0, call, error.reason)
    mixed = "; contexts had no part in the choice" if traits.log.context else ""
    return Verdict(
        name,
        "asymptotic",
        26.0,
        call,
        "within a batch nothing adapts: each has its own t statistic; exact for normal rewards",
        f"one difference throughout, one variance within a batch{mixed}",
    )
