"""Statements of a table about units with several rounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.claims import said
from adaptinf.claims import units as claims
from adaptinf.inference.validity.profile import LogProfile
from adaptinf.inference.validity.rare import TOO_SKEWED
from adaptinf.typing import BoolArray

FEW_UNITS = 30
"""A table states that units are few if their number is below this value."""
FEW_WITH_ARM = 15
"""A table states that few units were assigned to an arm if their number is below this value."""
FEWEST_EXPECTED = 5
"""A table gives a caution if the expected number of units at an arm's smallest propensity is below this."""
FEW_WITH_EVENTS = 10
"""A table states that few units have an event if their number is below this value."""

LOGGED_ROUNDS = "for the logged rounds"
"""Label of a method that is valid for independent rounds, but not for other units like those in the log."""


class ErrorsByUnit:
    """Facts on which claims about clustered errors depend.

    Shapes: units, events (k,): for each term, the number of units used, and the number of these with an
    event.
    """

    def __init__(
        self,
        profile: LogProfile,
        n_units: int,
        n_rounds: int = 0,
        *,
        labels: Sequence[str] = (),
        units: ArrayLike = (),
        events: ArrayLike = (),
        uniform: bool = True,
    ) -> None:
        self.profile, self.n_units, self.n_rounds = profile, n_units, n_rounds
        self._labels, self._uniform = labels, uniform
        self._units, self._events = np.asarray(units), np.asarray(events, dtype=float)

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of units and rounds."""
        return {"units": self.n_units, "rounds": self.n_rounds}

    @property
    def few(self) -> dict[str, int]:
        """The number of units, if they are few."""
        return {"units": self.n_units, "enough": FEW_UNITS} if self.n_units < FEW_UNITS else {}

    @property
    def few_but_exact(self) -> bool:
        """Whether units are few, but arms can be redrawn in every round, which is valid with few units."""
        by_round = self.profile.log.design is not None and not self.profile.one_draw_a_unit
        return bool(self.few) and by_round

    @property
    def few_with_arm(self) -> dict[str, str]:
        """The arms to which few out of many units were assigned."""
        scarce = (self._units > 0) & (self._units < FEW_WITH_ARM)
        return {} if self.few else self._numbered(self._units, scarce)

    @property
    def few_with_events(self) -> dict[str, Any]:
        """The terms with few units that have an event."""
        found = self._numbered(self._events, (self._events > 0) & (self._events < FEW_WITH_EVENTS))
        return {"enough": FEW_WITH_EVENTS, **found} if found else {}

    @property
    def skewed(self) -> dict[str, str]:
        """The terms for which the means of units are too skewed for the number of units."""
        far = (self._units > 0) & (self.profile.unit_skewness > TOO_SKEWED * self._units)
        found = [label for label, flag in zip(self._labels, far, strict=True) if flag]
        return {"terms": ", ".join(found)} if found else {}

    @property
    def seldom_drawn(self) -> dict[str, Any]:
        """The arms that few units would have at their smallest propensity, with one draw per unit.

        The number of units with the arm in the log is not sufficient for this check, because the estimate and
        its standard error are both small if an unlikely assignment is missing.
        """
        profile = self.profile
        if not profile.knows_propensities or not profile.one_draw_a_unit:
            return {}
        expected = self.n_units * profile.smallest_propensity
        arms = [
            f"{profile.log.arms[k]} ({expected[k]:.1f})"
            for k in np.flatnonzero((expected < FEWEST_EXPECTED) & (profile.pulls > 0))
        ]
        return {"units": self.n_units, "fewest": FEWEST_EXPECTED, "arms": ", ".join(arms)} if arms else {}

    @property
    def tied(self) -> bool:
        """Whether weights are based on changing propensities."""
        return not self._uniform and self.profile.moves

    def _numbered(self, numbers: ArrayLike, flags: BoolArray) -> dict[str, str]:
        """The terms with flags and their numbers, such as "a (3), b (7)"; numbers, flags (k,)."""
        found = zip(self._labels, np.asarray(numbers), flags, strict=True)
        shown = [f"{label} ({int(number)})" for label, number, flag in found if flag]
        return {"terms": ", ".join(shown)} if shown else {}


def unit_notes(profile: LogProfile, n_units: int, n_rounds: int) -> list[str]:
    """Notes on the basis of clustered errors, for the units and rounds used."""
    return said(claims.NOTES, ErrorsByUnit(profile, n_units, n_rounds))


def unit_cautions(
    profile: LogProfile,
    n_units: int,
    labels: Sequence[str],
    units: ArrayLike,
    events: ArrayLike,
    *,
    uniform: bool = True,
) -> list[str]:
    """Cautions that clustered errors may be too small.

    Shapes: units, events (k,): for each term, the number of units used, and the number of these with an
    event.
    """
    facts = ErrorsByUnit(profile, n_units, labels=labels, units=units, events=events, uniform=uniform)
    return said(claims.CAUTIONS, facts)


def unit_count_cautions(profile: LogProfile, n_units: int) -> list[str]:
    """A statement that units are few; empty if they are not."""
    return said(claims.COUNT_CAUTIONS, ErrorsByUnit(profile, n_units))


def event_gaps(labels: Sequence[str], events: ArrayLike, fewest: int) -> list[str]:
    """Notes on missing intervals of terms for which too few units have an event; events has shape (k,)."""
    some = np.asarray(events, dtype=float)
    named = [f"{label} ({int(n)})" for label, n in zip(labels, some, strict=True) if n < fewest]
    return [claims.NO_INTERVAL(terms=", ".join(named), fewest=fewest)] if named else []
