"""How valid every confidence sequence is for a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from adaptinf.claims.units import OF_LOGGED_ROUNDS
from adaptinf.inference.sequences.choice import ESTIMATORS, Quantity, Request, settled
from adaptinf.inference.sequences.methods import METHODS, SequenceMethod
from adaptinf.inference.sequences.widths import expected_width
from adaptinf.inference.validity.methods import refusal
from adaptinf.inference.validity.profile import LogProfile
from adaptinf.inference.validity.stationarity import STATED
from adaptinf.inference.validity.units import LOGGED_ROUNDS
from adaptinf.inference.validity.verdicts import Verdict

_USUAL_ALPHA = 0.05
_FIRST = 40.0
"""Rank of the first sequence: after the methods for a fixed number of rounds."""
_STEP, _SPAN = 0.5, 10.0  # all sequences together span less than 10


def sequence_verdicts(profile: LogProfile, quantities: Sequence[Quantity]) -> list[Verdict]:
    """A verdict for each sequence on each kind of scores, the narrowest to be expected first.

    What holds at every round comes before what does so in the limit, and scores before sample means that
    contexts may have spoiled.
    """
    asked = tuple(quantities)
    estimators = [one for one in ESTIMATORS if asked[0].codes or one != "sample-mean"]
    found = [
        _verdict(profile, asked, method, estimator) for method in METHODS.values() for estimator in estimators
    ]
    order = sorted(found, key=lambda one: (one.rank, one.label != "anytime", one.length))
    return [replace(one, rank=one.rank + _STEP * order.index(one)) for one in found]


def _verdict(
    profile: LogProfile, quantities: tuple[Quantity, ...], method: SequenceMethod, estimator: str
) -> Verdict:
    means = estimator == "sample-mean"
    name = f"{method.name} sequence on {'sample means' if means else f'{estimator} scores'}"
    call = {"method": method.name, "estimator": estimator, **STATED}
    why = refusal(settled, profile, quantities, Request(method.name, _USUAL_ALPHA, estimator))
    if why:
        return Verdict(name, "not valid", _FIRST, call, why)
    mixed = means and not profile.context_free
    assumes = (
        "an arm's expected reward, given the past, is the same at each pull (no drift)"
        if means
        else "the logged propensities are the design's own; the same expected value in every round (no drift)"
    )
    assumes += "; contexts had no part in the choice" if mixed else ""
    assumes += "; rewards within the stated range" if method.anytime else ""
    rank = _FIRST + (_SPAN if mixed else 0.0)
    with np.errstate(under="ignore", over="ignore"):
        length = expected_width(profile, quantities, method, estimator)
    if profile.repeated_units:
        own = OF_LOGGED_ROUNDS()
        return Verdict(name, LOGGED_ROUNDS, rank, call, method.reason, (assumes,), own, length=length)
    return Verdict(name, method.label, rank, call, method.reason, (assumes,), length=length)
