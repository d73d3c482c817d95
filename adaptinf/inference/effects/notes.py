"""Notes under the group effects: adjustments, and why a number is missing."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.errors import AdaptinfWarning, InvalidForLog
from adaptinf.inference.distributions.two_samples import FEW_EVENTS, Difference
from adaptinf.inference.released.effects import ReleasedReference
from adaptinf.inference.scores.by_unit.units import FEWEST_EVENTS, units_with, units_with_events
from adaptinf.inference.scores.inverse import Fixed
from adaptinf.inference.validity.profile import FEW_EFFECTIVE, SMALL, TINY_PROPENSITY
from adaptinf.inference.validity.units import event_gaps, unit_cautions, unit_notes
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.validity.profile import LogProfile

SAME_EFFECT = "drift is allowed; under an effect that changes, its average over these rounds"
BOTH_PROPENSITIES = "they need both arms' propensities at every round, and the log has the chosen arm's alone"
_SHOWN, _FEW = 8, 3
_KNOWN: dict[Fixed, str] = {
    "round": "of the round",
    "round before": "of the group's previous round, as contexts may have moved the round's own "
    "(context_free=True of the log says that they had no part)",
    "batch": "of the group's previous batch, known before the round's contexts",
}
_WHOSE: dict[Fixed | None, str] = {
    "round before": " The weights are by the propensities of the round before, as contexts may have moved "
    "the round's own.",
    "batch": " The weights are those of the previous batch, known before the round's contexts.",
}


def adjustment_notes(terms: Sequence[str], difference: Difference) -> list[str]:
    """Where the Agresti-Caffo adjustment was made, and what it means for the table."""
    adjusted = [term for term, flag in zip(terms, difference.adjusted, strict=True) if flag]
    if not adjusted:
        return []
    return [
        f"Agresti-Caffo intervals for {_some(adjusted)}: an arm has fewer than {FEW_EVENTS} successes or "
        "failures. The estimate is the raw difference; p-value, interval and standard error are those of the "
        "difference with a success and a failure added to each arm."
    ]


def gap_notes(terms: Sequence[str], counts: FloatArray, std_error: FloatArray) -> list[str]:
    """Why groups have no estimate or no standard error: one note a reason."""
    reasons = []
    for (control, treatment), error in zip(counts, std_error, strict=True):
        if min(control, treatment) < 1:
            missing = "neither arm has" if control == treatment else "one of the arms has no"
            reasons.append(f"no estimate, {missing} rewards among these rounds")
        elif np.isnan(error):
            reason = "an arm has a single reward" if min(control, treatment) < 2 else "no arm's rewards vary"
            reasons.append(f"no standard error, {reason}")
        else:
            reasons.append("")
    notes = by_reason(terms, reasons)
    if sum(map(bool, reasons)) > _FEW:
        notes.append(
            "Groups this small tell little: CATE.from_formula describes the effect by numbers such as ages "
            "themselves, and fewer groups have more rounds each."
        )
    return notes


def by_reason(terms: Sequence[str], reasons: Sequence[str]) -> list[str]:
    """One note a reason, with the groups of which it holds; terms (G,), reasons (G,)."""
    found: dict[str, list[str]] = {}
    for term, reason in zip(terms, reasons, strict=True):
        if reason:
            found.setdefault(reason, []).append(term)
    return [f"{_some(named)}: {reason}." for reason, named in found.items()]


def _some(terms: Sequence[str]) -> str:
    more = f" and {len(terms) - _SHOWN} more" if len(terms) > _SHOWN else ""
    return "; ".join(terms[:_SHOWN]) + more


def weight_notes(others: Sequence[str], kind: str, *, fixed: Fixed, asked: bool) -> list[str]:
    """What the scores and their weights rest on; `others` are contexts that may move propensities."""
    names = ", ".join(others)
    notes = ["Assumes that the logged propensities are the design's own."]
    if kind == "combined":
        notes.append(
            f"Combined weights: one for both arms, (1/e1 + 1/e0)^(-1/2) {_KNOWN[fixed]}. A drift that both "
            "arms share cancels. Under an effect that changes, the target is its average with these weights; "
            "weights='uniform' estimates the plain average over the rounds."
        )
    if kind == "sqrt":
        notes.append(
            f"Sqrt weights, each arm's own, by the propensities {_KNOWN[fixed]}: assumes that each arm's "
            "mean within a group stays the same in every round. Under a drift the two weighted means are of "
            "different times, and their difference is no effect."
        )
    if kind == "uniform":
        reason = "" if asked or not others else f", because {names} may move the propensities within a group"
        notes.append(
            f"Uniform weights{reason}: not normal in general when propensities move with the data, right "
            "where they settle. Under an effect that changes, its average over the rounds."
        )
    return notes


def projection_meaning(
    kind: str, by: Fixed | None, *, fixed: bool, complete: bool, saturated: bool
) -> list[str]:
    """What a projection estimates, and what an effect that changes over the rounds makes of it.

    `by` are the propensities that fix combined weights, None where there are no such weights; `fixed` says
    that no other weights follow the round's context.
    """
    fixed |= by is not None
    over = "these weights" if kind != "uniform" else "the same weight for every round"
    drift = f"A drift that both arms share cancels; an effect that changes is averaged with {over}."
    drift += _WHOSE.get(by, "")
    if saturated and fixed:
        same = "The formula gives every combination of contexts its own effect: the weights do not change it."
        return [same, drift]
    if fixed and complete:
        need = " The t law needs propensities that settle or stay away from 0." if kind == "uniform" else ""
        blp = "Estimand: the best linear approximation of the effect over the log's contexts."
        return [f"{blp}{need}", drift]
    what = f"{kind} weights" if kind != "uniform" else "Uniform weights over the rounds that could be used"
    return [
        f"{what}: valid if the formula holds exactly, or the propensities do not depend on the context. Else "
        "they estimate an approximation weighted by propensities that the log itself determined.",
        drift,
    ]


def few_effective(terms: Sequence[str], df: FloatArray, std_error: FloatArray) -> tuple[str, ...]:
    """Cautions where a standard error rests on fewer than 20 rounds' worth of rewards; df, std_error (k,)."""
    found = [
        term
        for term, freedom, size in zip(terms, df, std_error, strict=True)
        if freedom + 1.0 < FEW_EFFECTIVE and size > 0.0
    ]
    if not found:
        return ()
    least = float(np.min(df[std_error > 0.0])) + 1.0
    return (
        f"{_some(found)}: an arm is worth {least:.1f} rewards of equal weight, below {FEW_EFFECTIVE:g}: "
        "intervals may be short",
    )


def tiny_cautions(terms: Sequence[str], lowest: FloatArray, ess: FloatArray) -> tuple[str, ...]:
    """Where an estimate divides by a tiny propensity; lowest, ess (k,)."""
    found = [
        f"{term}: smallest propensity {low:.2g}, effective sample size {size:.1f}"
        for term, low, size in zip(terms, lowest, ess, strict=True)
        if low < TINY_PROPENSITY
    ]
    return tuple(f"{one}; a few rewards carry the estimate, intervals may be far too short" for one in found)


def estimated_propensities(profile: LogProfile) -> list[str]:
    """That propensities are estimates, where they are."""
    if not profile.estimated:
        return []
    return ["The propensities were estimated: their error is not in the standard errors."]


def empty_interval_notes(
    terms: Sequence[str], reference: ReleasedReference, estimate: FloatArray
) -> list[str]:
    """Groups whose noise left no interval."""
    empty = np.isnan(reference.interval(float(np.log(0.05)))[:, 0]) & np.isfinite(estimate)
    reason = "no interval at alpha = 0.05, noise carried the estimate beyond every possible effect"
    return by_reason(terms, [reason if flag else "" for flag in empty])


def warn_of_tiny(subject: str, cautions: Sequence[str]) -> None:
    """Warn of what `tiny_cautions` says."""
    if cautions:
        warnings.warn(f"{subject}: {'; '.join(cautions)}.", AdaptinfWarning, stacklevel=4)


def low_propensity(lowest: float) -> list[str]:
    """That few rounds carry an estimate, where the smallest propensity is low."""
    if lowest >= SMALL:
        return []
    return [
        f"Propensities as low as {lowest:.2g}: a few rounds carry much of the estimate, and intervals may "
        "fall short of their level. An outcome model that predicts well (outcome=) makes them count for less."
    ]


def bare_columns(x: FloatArray, chosen: FloatArray, names: tuple[str, ...]) -> list[str]:
    """Indicator columns on which an arm was never observed."""
    binary = ((x == 0.0) | (x == 1.0)).all(axis=0)
    bare = binary & ((x.T @ chosen) == 0.0).any(axis=1)
    return [
        f"{name}: one of the arms has no rewards where it is 1; the coefficient rests on the outcome model, "
        "and its standard error is too small."
        for name, flag in zip(names, bare, strict=True)
        if flag
    ]


def unit_support(
    profile: LogProfile,
    arms: Sequence[str],
    chosen: FloatArray,
    reward: FloatArray,
    unit: IntArray,
    *,
    uniform: bool,
) -> tuple[list[str], list[str], bool]:
    """Notes and cautions on errors by unit, and whether there are any; chosen (n, 2), reward, unit (n,)."""
    n_units, events = len(np.unique(unit)), units_with_events(chosen, reward, unit)
    notes = [*unit_notes(profile, n_units, len(unit)), *event_gaps(arms, events, FEWEST_EVENTS)]
    had = units_with(chosen, unit)
    cautions = unit_cautions(profile, n_units, arms, had, events, uniform=uniform)
    return notes, cautions, bool(events.min() >= FEWEST_EVENTS)


def check_by_unit(profile: LogProfile, covariance: str, *, own_past: bool) -> None:
    """Refuse what errors by unit do not allow for, such as predictions from a unit's own past."""
    if covariance != "HC0":
        reason, way = (
            "units have several rounds, and errors are by unit",
            "covariance='HC0', added up by unit",
        )
        raise InvalidForLog(f"covariance={covariance!r}", reason, [way])
    if profile.one_draw_a_unit and own_past:
        reason = "one draw gave each unit its arm, and earlier rewards of the unit tell the model how it fell"
        raise InvalidForLog("outcome='running-ridge'", reason, ["outcome='running-mean'"])
