"""The rounds of a session as a run has them, of which a log is made."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adaptinf.sessions.rounds import Rounds
from adaptinf.sessions.steppers import Stepper
from adaptinf.simulation.replicate import Run
from adaptinf.typing import IntArray

_NAMES = ("action", "status", "feature", "reward", "propensity", "propensities", "vectors")


def run_of(
    rounds: Rounds,
    stepper: Stepper,
    window: int | None,
    lost: float | None,
    missing: str | None,
    amended: bool,
) -> Run:
    """A copy of the rounds so far, with outcomes as they were amended or as the design was told them."""
    done = rounds.decided
    arrays = {name: getattr(rounds.record, name)[:done].copy() for name in _NAMES}
    corrected = rounds.amended() if amended else {}
    arrays["reward"][list(corrected)] = list(corrected.values())
    return Run(
        rounds.record._replace(**arrays),
        stepper.released(),
        stepper.outcome(),
        _units(rounds),
        _known_rounds(rounds, window),
        missing if np.isnan(arrays["reward"]).any() else None,
        len(corrected),
        tuple(rounds.removed),
        noise=stepper.noise,
        window=window,
        late=None if window is None else lost,
    )


def _units(rounds: Rounds) -> NDArray[Any] | None:
    """Who each round is of, with a name that nobody has for those who were erased; None without units."""
    if not rounds.by_unit and not rounds.erased:
        return None
    known = rounds.by_unit
    named = [unit for unit in known if not isinstance(unit, int)]
    least = min(0, *known) if known and not named else 0
    units = list(rounds.units)
    for step in rounds.erased:
        units[step] = least - step - 1 if known and not named else f"erased {step + 1}"
        while units[step] in known:
            units[step] += "*"
    return np.array(units)


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
