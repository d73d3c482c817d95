"""Assumptions, adjustments and reasons under the tables of regressions by least squares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.inference.corrections.information import Correction
from adaptinf.inference.distributions.base import PartialReference
from adaptinf.inference.distributions.shape import squared_skewness, uncommon_outcomes
from adaptinf.inference.regression.joint import PartialTests
from adaptinf.inference.scores.means import unevenness
from adaptinf.inference.validity.profile import SMALL, is_binary
from adaptinf.inference.validity.rare import rare_cautions, rare_notes, without_interval
from adaptinf.log import Stability
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from adaptinf.inference.regression.data import Adjustment, CoefficientFit, RegressionData
    from adaptinf.inference.scores.least_squares import LeastSquares
    from adaptinf.inference.validity.profile import LogProfile

_LIGHT = 0.05
_CONTEXTS = "Assumes contexts that do not depend on earlier rewards or actions"


def moving_cautions(data: RegressionData, entry: Adjustment, *, stationary: bool) -> tuple[str, ...]:
    """That an adjustment gives the rounds of several arms weights of their own in time, unless stated."""
    if not entry.steady or not data.adaptive or data.arm is not None or stationary:
        return ()
    return (
        "assumes that coefficients are the same in every round: under a drift of rewards intervals may miss "
        "by far (stationary=True says that there is none)",
    )


def weight_cautions(
    data: RegressionData, profile: LogProfile, details: Mapping[str, FloatArray]
) -> tuple[str, ...]:
    """What speaks against a fit that divides by propensities; none of one that does not."""
    if "min_propensity" not in details:
        return ()
    smallest = float(np.min(details["min_propensity"]))
    low = (
        f"propensities down to {smallest:.2g}: least squares weighted by them needs a floor of {SMALL:g} "
        "where the design adapts (simulated on Thompson sampling without a floor, tests at 5% reject 6.3%)"
    )
    return (*profile.propensity_cautions, *([low] if data.adaptive and smallest < SMALL else []))


def known_stable(data: RegressionData, profile: LogProfile) -> Stability | None:
    """What makes plain least squares normal over a long run, although the design adapts."""
    found = profile.stability
    return found if found is not None and found.stable and data.selector is None else None


def rounds_notes(data: RegressionData, profile: LogProfile) -> list[str]:
    """The formula, and which rounds were used."""
    if data.arm is None:
        where = f"all {data.nobs} rounds"
    else:
        how = f", selected as {data.selector!r}" if data.selector is not None else ""
        where = f"the {data.nobs} of {data.n_rounds} rounds of arm {data.arm!r}{how}"
    notes = [f"{data.formula}; {where}."]
    log = profile.log
    never = np.flatnonzero(np.bincount(log.arrays.action, minlength=log.n_arms) == 0)
    if data.arm is None and len(never):
        named = ", ".join(repr(log.arms[code]) for code in never[:8]) + (", ..." if len(never) > 8 else "")
        notes.append(f"Never chosen, so without a coefficient: {named}.")
    omitted = omitted_contexts(data, profile)
    return [*notes, f"Caution: {omission_reason(omitted)}."] if omitted else notes


def omitted_contexts(data: RegressionData, profile: LogProfile) -> tuple[str, ...]:
    """Contexts that may have moved the choice of arms and are not among the columns.

    The arms' rounds are then different mixes of these contexts, and no adjustment for adaptive collection
    makes up for that: a context that also moves rewards shows as an effect of the arm.
    """
    if profile.context_free or (profile.constant_propensities and not profile.decides_by_context):
        return ()
    log = profile.log
    known = {log.columns.get(name, name) for name in data.covariates}
    relevant = log.context
    if data.arm is not None and profile.by_own_vectors:
        relevant = tuple(name for name in relevant if name.endswith(f"_{data.arm}"))
    left = [name for name in relevant if name not in known]
    return (*left, *(("contexts that the log does not have",) if log.context_free is False else ()))


def omission_reason(omitted: tuple[str, ...]) -> str:
    """What is wrong with a regression that leaves them out."""
    shown = ", ".join(omitted[:5]) + (", ..." if len(omitted) > 5 else "")
    return (
        f"{shown} may have moved the choice of arms and are not in the regression: where they also move "
        "rewards, they show as effects of the arms"
    )


def validity_notes(data: RegressionData, profile: LogProfile, correction: Correction | None) -> list[str]:
    """Whether plain least squares is valid for the log, and why."""
    log = profile.log
    if not data.adaptive:
        return [
            f"Least squares: {profile.why_not_adaptive}; no correction is due.",
            f"{_CONTEXTS}, and coefficients that stay the same.",
        ]
    if correction is not None:
        also = ", and by the releases" if correction.chosen_from == "releases" else ""
        notes = [
            "Least squares: not valid under adaptivity; the corrected columns account for it, and for a "
            f"choice of arm, formula and test by actions and contexts{also}. They do not account for a "
            "choice by the rewards."
        ]
        notes.append(
            f"{_CONTEXTS}, and independent normal errors of one variance: t and F are then exact for any "
            "fixed sequence of actions."
        )
        if data.selector == "recommended":
            notes.append("The guarantee is taken to cover the arm that the design named, by all rounds.")
        if is_binary(data.y):
            notes.append(
                "The rewards are all 0 or 1: not normal, and of unequal variances wherever the coefficients "
                "are not 0. The t and F laws are approximations here."
            )
        elif log.reward_range is not None and np.any(np.isfinite(log.reward_range)):
            low, high = log.reward_range
            notes.append(
                f"Rewards between {low:g} and {high:g} are not normal: the t and F laws are approximations."
            )
        return notes
    stable = known_stable(data, profile)
    if stable is not None:
        return [
            f"Least squares: the design adapts, but {profile.design_title} is known to be stable "
            f"({stable.condition}; {stable.source}): normal over a long run.",
            f"{_CONTEXTS} and had no part in the choice of arms, and coefficients that stay the same.",
        ]
    notes = ["Least squares: not valid under adaptivity; a naive baseline."]
    if data.selector is not None:
        notes.append(f"The arm was selected as {data.selector!r}, by what the rewards had moved.")
    if log.design is None:
        notes.append("The log does not name its design, which is therefore taken to be adaptive.")
    if log.guarantee is not None or log.reward_guarantee is not None:
        reason = profile.no_correction
        notes.append(
            f"No corrected columns: {reason}."
            if reason
            else "No corrected columns were asked for: adjustment='max-information' gives them."
        )
    return notes


def without_rare(data: RegressionData, fit: CoefficientFit) -> tuple[CoefficientFit, tuple[str, ...]]:
    """The fit without tests of coefficients that rest on rare outcomes, and cautions for the others.

    A coefficient of least squares is a weighted sum of rewards. Those with weights of either sign, such as
    the rounds of an arm and of the arm that it is compared with, must vary; weights below a twentieth of the
    largest do not count. Laws that hold in finite samples for all rewards with a bound are left alone.
    """
    if fit.reference.exact or data.nobs <= data.size:
        return fit, ()
    q, r = np.linalg.qr(data.x)
    pull = np.linalg.solve(r, q.T).T
    uncommon, skewness = np.full(data.size, np.inf), np.zeros(data.size)
    shape = squared_skewness(data.y)
    for j, own in enumerate(pull.T):
        used = np.abs(own) > _LIGHT * np.abs(own).max(initial=0.0)
        side, size = (own[used] > 0.0).astype(np.int64), np.abs(own[used])
        uncommon[j] = uncommon_outcomes(side, data.y[used], 2).min()
        squares, cubes = (
            np.bincount(side, weights=size**power, minlength=2).astype(np.float64) for power in (2, 3)
        )
        skewness[j] = shape * float(unevenness(squares, cubes).max())
    uncommon = np.where(fit.std_error > 0.0, uncommon, np.inf)
    cautions = rare_cautions(data.names, uncommon, skewness, corrected=False)
    hidden = without_interval(uncommon)
    if not np.any(hidden):
        return fit, cautions
    gap = np.where(hidden, np.nan, 0.0)
    covariance = None if fit.covariance is None else fit.covariance + gap[:, None] + gap[None, :]
    kept = replace(
        fit,
        std_error=fit.std_error + gap,
        covariance=covariance,
        reference=PartialReference(fit.reference, hidden),
        joint=None if fit.joint is None else PartialTests(fit.joint, data.names, hidden),
        notes=(*fit.notes, *rare_notes(data.names, uncommon)),
    )
    return kept, cautions


def covariance_note(kind: str, clusters: int | None = None) -> str:
    """What a covariance estimate assumes, and the law of its tests."""
    if kind == "classical":
        return "Covariance classical: errors of one variance; t and F tests."
    if kind == "cluster":
        return (
            f"Covariance by cluster, {clusters} units: errors may be dependent within a unit; t and F tests "
            "with G - 1 degrees of freedom, an approximation for many units."
        )
    if kind == "CR2":
        return (
            f"Covariance CR2 by cluster, {clusters} units: errors may be dependent within a unit; t tests "
            "with Satterthwaite's degrees of freedom, fewer for few or uneven units, and Hotelling's F."
        )
    return f"Covariance {kind}: errors may be of unequal variances; t and F tests, approximations."


def gap_notes(fit: LeastSquares, kind: str, clusters: int | None = None) -> list[str]:
    """Why there are no standard errors; empty where there are."""
    n, p = fit.q.shape
    if n <= p:
        return [f"No standard errors: {n} rounds for {p} columns."]
    if fit.total == 0.0:
        return ["No standard errors: the reward is the same in all rounds used."]
    if fit.perfect:
        return ["No standard errors: the rewards do not vary about the fit."]
    if clusters is not None and clusters < 2:
        return ["No standard errors: all rounds are of one unit."]
    if kind in ("HC2", "HC3") and fit.decided > 0:
        return [
            f"No standard errors: {fit.decided} rounds have leverage 1, where {kind} divides by 0 (each "
            "decides a coefficient alone); HC0, HC1 and classical are defined."
        ]
    return []
