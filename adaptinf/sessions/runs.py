"""The rounds of a session as a run has them, of which a log is made."""

from __future__ import annotations

import numpy as np

from adaptinf.sessions.rounds import Rounds
from adaptinf.sessions.steppers import Stepper
from adaptinf.simulation.replicate import Run
from adaptinf.typing import IntArray

_NAMES = ("action", "status", "feature", "reward", "propensity", "propensities", "vectors")


def run_of(rounds: Rounds, stepper: Stepper, window: int | None, missing: str | None, amended: bool) -> Run:
    """A copy of the rounds so far, with outcomes as they were amended or as the design was told them."""
    done, units = rounds.decided, rounds.units
    arrays = {name: getattr(rounds.record, name)[:done].copy() for name in _NAMES}
    corrected = rounds.amended() if amended else {}
    arrays["reward"][list(corrected)] = list(corrected.values())
    return Run(
        rounds.record._replace(**arrays),
        stepper.released(),
        stepper.outcome(),
        None if units[0] is None else np.array(units),
        _known_rounds(rounds, window),
        missing if np.isnan(arrays["reward"]).any() else None,
        len(corrected),
        noise=stepper.noise,
    )


def _known_rounds(rounds: Rounds, window: int | None) -> IntArray | None:
    """Rounds that had begun when the design first could have each outcome; None where all at once."""
    done = rounds.decided
    steps, known = np.arange(done), rounds.known[:done]
    first, absent = known, np.isnan(rounds.record.reward[:done])
    if window is not None:
        due = steps + 1 + window
        first = np.where(known <= due, np.minimum(due, done), done)
    first = np.where(absent, done, first)
    return None if np.array_equal(first, steps + 1) else first
