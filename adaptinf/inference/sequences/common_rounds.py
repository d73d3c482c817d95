"""The part of a log that scores use: the rounds in which all arms of a quantity could be chosen."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.inference.inputs.rounds import log_of_rounds
from adaptinf.inference.sequences.sequence_records import Quantity
from adaptinf.inference.validity.profile import LogProfile, profile_of
from adaptinf.typing import BoolArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog
    from adaptinf.sums import Sums


def common_rounds(profile: LogProfile, quantity: Quantity) -> BoolArray | None:
    """Rounds, (T,), or batches, (B,), in which all of a quantity's arms were possible; None if all were.

    Whether a round is used is known before its arm is drawn, so sums of the deviations of these rounds'
    scores from the mean are still a martingale.
    """
    # Where all arms could always be chosen, a table of many arms does not look at each list of arms.
    if not quantity.among or not profile.knows_propensities or not profile.impossible.any():
        return None
    codes = np.array(quantity.among, dtype=np.int64)
    if not profile.impossible[codes].any():
        return None
    name = f"rounds with {quantity.among}"
    if name not in profile.log.kept:
        profile.log.kept[name] = profile.possible(codes, jointly=True)[:, 0]
    keep: BoolArray = profile.log.kept[name]
    return keep


def within(profile: LogProfile, quantity: Quantity) -> tuple[LogProfile, Quantity]:
    """The profile of the rounds that are common to a quantity's arms, and the quantity in these rounds."""
    keep = common_rounds(profile, quantity)
    if keep is None:
        return profile, quantity
    name = f"part with {quantity.among}"
    if name not in profile.log.kept:
        profile.log.kept[name] = _part(profile, keep)
    part = profile_of(profile.log.kept[name])
    arms = np.broadcast_to(quantity.weights.arms[0], (part.log.n_rounds, part.log.n_arms))
    return part, replace(quantity, weights=replace(quantity.weights, arms=arms))


def _part(profile: LogProfile, keep: BoolArray) -> AdaptiveLog | Sums:
    if profile.sums is None:
        return log_of_rounds(profile.log, keep)
    part = copy.copy(profile.sums)
    places = np.flatnonzero(keep)
    part.cells = profile.sums.cells.of(places)
    part.n_rounds, part.n_batches = int(np.rint(part.cells.rounds.sum())), len(places)
    part.kept = {}
    return part
