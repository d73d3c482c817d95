"""Whether runs did what their releases and earlier actions say, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from adaptinf.audit.privacy.designs.audited_trial import Replayed


def difference(part: Replayed) -> str:
    """Where runs are not as their releases say, in words; empty where all of them are."""
    seen, recomputed = (np.asarray(side, dtype=np.float64) for side in (part.seen, part.recomputed))
    apart = (seen != recomputed) & ~(np.isnan(seen) & np.isnan(recomputed))
    if not apart.any():
        return ""
    place = int(np.flatnonzero(apart.any(axis=0))[0])
    run = int(np.flatnonzero(apart[:, place])[0])
    number = int(apart.any(axis=1).sum())
    is_, should_be = _shown(seen[run, place]), _shown(recomputed[run, place])
    return (
        f"{part.what} is not what releases and earlier actions give, in {number} of {len(apart)} runs: in "
        f"{part.place} {place + 1} of run {run + 1} it is {is_}, not {should_be}: a decision read something "
        "that was not released"
    )


def _shown(value: Any) -> str:
    return "none" if np.isnan(value) else f"{value:.17g}"
