"""How valid every confidence sequence is for a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from adaptinf.claims import said, sentence
from adaptinf.claims import sequences as claims
from adaptinf.inference.sequences.choice import ESTIMATORS, Quantity, Request, settled
from adaptinf.inference.sequences.facts.sequence import SequenceFacts
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
    facts = SequenceFacts(profile, method, estimator)
    rank = _FIRST + (_SPAN if facts.contexts_may_spoil else 0.0)
    with np.errstate(under="ignore", over="ignore"):
        length = expected_width(profile, quantities, method, estimator)
    label = LOGGED_ROUNDS if profile.repeated_units else method.label
    why, warning = sentence(said(claims.REASONS, facts)), sentence(said(claims.ROW_CAUTIONS, facts))
    assumed = tuple(said(claims.ASSUMES, facts))
    return Verdict(name, label, rank, call, why, assumed, warning, length=length)
