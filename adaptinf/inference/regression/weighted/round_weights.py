"""One weight per round for all arms that are compared, fixed before the round's context is observed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adaptinf.inference.inputs.rounds import turns
from adaptinf.inference.scores.inverse import (
    Fixed,
    combined_stays,
    combined_weights,
    lagged_combined_weights,
)
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.validity.profile import LogProfile


def fixed_by(profile: LogProfile, codes: IntArray) -> Fixed:
    """Which propensities fix the weight of a round before its context, even if contexts were not logged."""
    if profile.fixed_in_time or profile.propensities is None:
        return "round"
    batch = profile.log.arrays.batch
    if batch is None:
        return "round before"
    stays = profile.fixed_before_contexts[codes].all() or combined_stays(
        profile.propensities[:, codes], None, batch
    )
    return "round" if stays else "batch"


def shared_weights(profile: LogProfile, codes: IntArray, *, jointly: bool = True) -> FloatArray:
    """Square roots of 1 / sum(1 / e) over arms, from propensities that the round's context cannot affect.

    Shapes: codes (k,); returns (T,). Rounds in which one of the arms could not be chosen have weight 0. If
    `jointly` is False, such arms are left out of the sum instead.
    """
    assert profile.propensities is not None
    fixed, every = fixed_by(profile, codes), profile.propensities[:, codes]
    if not jointly:
        every = np.where(every > 0.0, every, np.inf)
    if fixed == "round":
        return combined_weights(every)
    batch = profile.log.arrays.batch
    if fixed == "batch" and batch is not None:
        return lagged_combined_weights(every, batch)
    units = profile.units if profile.repeated_units else None
    return lagged_combined_weights(every, turns(np.zeros(len(every), dtype=np.int64), units)[0])
