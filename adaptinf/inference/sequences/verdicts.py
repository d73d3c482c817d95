"""What every confidence sequence is worth for a log."""

from __future__ import annotations

from collections.abc import Sequence

from adaptinf.inference.sequences.choice import ESTIMATORS, Quantity, Request, settle
from adaptinf.inference.sequences.methods import METHODS, SequenceMethod
from adaptinf.inference.validity.methods import refusal
from adaptinf.inference.validity.profile import LogProfile
from adaptinf.inference.validity.units import LOGGED_ROUNDS, OF_LOGGED_ROUNDS
from adaptinf.inference.validity.verdicts import Verdict

_USUAL_ALPHA = 0.05
_FIRST = 40.0
"""Rank of the first sequence: after the methods for a fixed number of rounds."""


def sequence_verdicts(profile: LogProfile, quantities: Sequence[Quantity]) -> list[Verdict]:
    """A verdict for each sequence on each kind of scores."""
    estimators = [one for one in ESTIMATORS if quantities[0].codes or one != "sample-mean"]
    return [
        _verdict(profile, tuple(quantities), method, estimator, 2.0 * i + 0.5 * ESTIMATORS.index(estimator))
        for i, method in enumerate(METHODS.values())
        for estimator in estimators
    ]


def _verdict(
    profile: LogProfile,
    quantities: tuple[Quantity, ...],
    method: SequenceMethod,
    estimator: str,
    place: float,
) -> Verdict:
    means = estimator == "sample-mean"
    name = f"{method.name} sequence on {'sample means' if means else f'{estimator} scores'}"
    call = {"method": method.name, "estimator": estimator}
    why = refusal(settle, profile, quantities, Request(method.name, _USUAL_ALPHA, estimator))
    if why:
        return Verdict(name, "not valid", _FIRST + place, call, why)
    mixed = means and not profile.context_free
    assumes = (
        "an arm's expected reward, given the past, is the same at each pull"
        if means
        else "the logged propensities are the design's own; the same expected value in every round"
    )
    assumes += "; contexts had no part in the choice" if mixed else ""
    assumes += "; rewards within the stated range" if method.anytime else ""
    if profile.repeated_units:
        return Verdict(name, LOGGED_ROUNDS, _FIRST + place, call, method.reason, assumes, OF_LOGGED_ROUNDS)
    # The ranks of sequences span less than 10.
    rank = _FIRST + place + (10.0 if mixed else 0.0)
    return Verdict(name, method.label, rank, call, method.reason, assumes)
