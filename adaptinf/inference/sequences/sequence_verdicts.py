"""The validity of every confidence sequence for a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from adaptinf.claims import said, sentence
from adaptinf.claims import sequences as claims
from adaptinf.inference.sequences.sequence_choice import ESTIMATORS, Request, settled
from adaptinf.inference.sequences.sequence_facts import SequenceFacts
from adaptinf.inference.sequences.sequence_methods import METHODS
from adaptinf.inference.sequences.sequence_records import Quantity, SequenceMethod
from adaptinf.inference.sequences.widths import expected_width
from adaptinf.inference.validity.methods import Verdict, refusal
from adaptinf.inference.validity.order import Order
from adaptinf.inference.validity.profile import LogProfile
from adaptinf.inference.validity.stationarity import STATED
from adaptinf.inference.validity.units import LOGGED_ROUNDS

_USUAL_ALPHA = 0.05


def sequence_verdicts(profile: LogProfile, quantities: Sequence[Quantity], order: Order) -> list[Verdict]:
    """A verdict for each sequence on each kind of scores; refused sequences come last.

    `order` contains the rank of sequences among other methods, and the rank of sample means that contexts may
    have biased.
    """
    asked = tuple(quantities)
    estimators = [one for one in ESTIMATORS if asked[0].codes or one != "sample-mean"]
    found = [
        _verdict(profile, asked, method, estimator, order)
        for method in METHODS.values()
        for estimator in estimators
    ]
    return [replace(one, rank=(*one.rank, number)) for number, one in enumerate(sorted(found, key=_key))]


def _key(verdict: Verdict) -> tuple[Any, ...]:
    """Sort key: methods that are valid at every round come first, and then methods with narrower intervals.

    No fixed list can determine which method is the narrowest, because this depends on the number of rounds
    and the variance. The widths are expected widths, which do not depend on the rewards of any single arm, so
    a choice by width does not invalidate intervals.
    """
    width = verdict.length if verdict.valid else 0.0
    return not verdict.valid, verdict.rank, verdict.label != "anytime", width


def _verdict(
    profile: LogProfile,
    quantities: tuple[Quantity, ...],
    method: SequenceMethod,
    estimator: str,
    order: Order,
) -> Verdict:
    means = estimator == "sample-mean"
    name = f"{method.name} sequence on {'sample means' if means else f'{estimator} scores'}"
    call = {"method": method.name, "estimator": estimator, **STATED}
    why = refusal(settled, profile, quantities, Request(method.name, _USUAL_ALPHA, estimator))
    if why:
        return Verdict(name, "not valid", order["sequences"], call, why)
    facts = SequenceFacts(profile, quantities, method, estimator)
    rank = order["sequences: contexts" if facts.contexts_may_spoil else "sequences"]
    with np.errstate(under="ignore", over="ignore"):
        length = expected_width(profile, quantities, method, estimator)
    label = LOGGED_ROUNDS if profile.repeated_units else method.label
    why, warning = sentence(said(claims.REASONS, facts)), sentence(said(claims.ROW_CAUTIONS, facts))
    assumed = tuple(said(claims.ASSUMES, facts))
    return Verdict(name, label, rank, call, why, assumed, warning, length=length)
