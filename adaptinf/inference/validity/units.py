"""What a table says of units with several rounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.claims.units import NO_CARRY_OVER, TIED
from adaptinf.inference.validity.profile import LogProfile
from adaptinf.inference.validity.rare import TOO_SKEWED

FEW_UNITS = 30
"""Units below which a table says that they are few."""
FEW_WITH_ARM = 15
"""Units that had an arm below which a table says so."""
FEWEST_EXPECTED = 5
"""Units that an arm's smallest propensity is expected to give it, below which a table says so."""
FEW_WITH_EVENTS = 10
"""Units with an event below which a table says so."""

LOGGED_ROUNDS = "for the logged rounds"
"""Label of a method that holds for the rounds of the log, and not for units like theirs."""


def unit_notes(profile: LogProfile, n_units: int, n_rounds: int) -> list[str]:
    """What errors by unit rest on; of the units and rounds used."""
    notes = [
        f"Errors by unit: {n_units} units in {n_rounds} rounds. Rounds of one unit may depend on each other, "
        "units are taken to be independent. Degrees of freedom: the effective number of units that had the "
        "arm, minus 1, or less where few rounds carry the estimate.",
        f"Assumes that {NO_CARRY_OVER()} (no carry-over).",
    ]
    if profile.drawn_once:
        notes.append(
            "Each unit keeps its arm, with propensity 1 after its first round: the arm is taken to be drawn "
            "once a unit, and its propensity is that of the first round."
        )
    return notes


def unit_cautions(
    profile: LogProfile,
    n_units: int,
    labels: Sequence[str],
    units: ArrayLike,
    events: ArrayLike,
    *,
    uniform: bool = True,
) -> list[str]:
    """Why errors by unit may be too small.

    Shapes: units, events (k,), of the units that count for each term, and those of them with an event.
    """
    had, some = np.asarray(units), np.asarray(events, dtype=float)
    found = []
    scarce = [
        f"{label} ({count})" for label, count in zip(labels, had, strict=True) if 0 < count < FEW_WITH_ARM
    ]
    found += unit_count_cautions(profile, n_units)
    if scarce and not found:
        found.append(
            f"few units count for {', '.join(scarce)}: intervals by unit cover less than they promise"
        )
    rare = [
        f"{label} ({int(count)})"
        for label, count in zip(labels, some, strict=True)
        if 0 < count < FEW_WITH_EVENTS
    ]
    if rare:
        found.append(
            f"fewer than {FEW_WITH_EVENTS} units have an event for {', '.join(rare)}: estimate and standard "
            "error are too small together"
        )
    skewed = [
        label
        for label, count in zip(labels, had, strict=True)
        if count > 0 and profile.unit_skewness > TOO_SKEWED * count
    ]
    if skewed:
        found.append(
            f"{', '.join(skewed)}: the units' mean rewards are skewed, and few units count: intervals by "
            "unit may be too short"
        )
    found += seldom_drawn(profile, n_units)
    if not uniform and profile.moves:
        found.append(TIED())
    return found


def seldom_drawn(profile: LogProfile, n_units: int) -> list[str]:
    """That an arm's smallest propensity would give it to few of the units, where one draw gives each its arm.

    How many had the arm in the log will not do: without those that got it against the odds the estimate and
    its standard error are both small.
    """
    if not profile.knows_propensities or not profile.one_draw_a_unit:
        return []
    expected = n_units * profile.smallest_propensity
    arms = [
        f"{profile.log.arms[k]} ({expected[k]:.1f})"
        for k in np.flatnonzero((expected < FEWEST_EXPECTED) & (profile.pulls > 0))
    ]
    if not arms:
        return []
    return [
        f"one draw gives each of {n_units} units its arm, and at their smallest propensity fewer than "
        f"{FEWEST_EXPECTED} units are expected to get {', '.join(arms)}: intervals by unit may be too short"
    ]


def unit_count_cautions(profile: LogProfile, n_units: int) -> list[str]:
    """That the units are few, where they are."""
    if n_units >= FEW_UNITS:
        return []
    return [
        f"{n_units} units are few: below about {FEW_UNITS} intervals by unit cover less than they promise"
        + _exact_test(profile)
    ]


def event_gaps(labels: Sequence[str], events: ArrayLike, fewest: int) -> list[str]:
    """Why there is no interval where fewer units have an event than any needs; events (k,)."""
    some = np.asarray(events, dtype=float)
    named = [f"{label} ({int(n)})" for label, n in zip(labels, some, strict=True) if n < fewest]
    if not named:
        return []
    return [
        f"{', '.join(named)}: no interval, as fewer than {fewest} units have an event (an outcome other than "
        "the usual one; of two outcomes, the rarer)."
    ]


def _exact_test(profile: LogProfile) -> str:
    """A test that needs no large numbers: re-drawing arms round by round holds whatever units share."""
    if profile.log.design is None or profile.one_draw_a_unit:
        return ""
    return "; audit.randomization_test needs no large numbers"
