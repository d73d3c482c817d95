"""Facts about units with several rounds, which imply that rounds may be dependent."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pandas as pd

from adaptinf.claims.propensities import ONE_DRAW_A_UNIT
from adaptinf.claims.units import DEPENDENT
from adaptinf.inference.distributions.sample_shape import squared_skewness
from adaptinf.log import AdaptiveLog
from adaptinf.typing import BoolArray, IntArray

_SAME = 1e-9
"""Propensities that differ by less are treated as equal, because writing and reading a frame rounds them."""
_IMPOSSIBLE = -12.0 * float(np.log(10.0))
"""Draws with the logged propensities are excluded if their log probability is below this value."""


class UnitFacts:
    """The facts about the units of a log, each of which is computed when it is first used."""

    log: AdaptiveLog

    @cached_property
    def units(self) -> IntArray | None:
        """The unit of each round, numbered by first appearance, shape (T,); None if the log has no units."""
        if self.log.units is None:
            return None
        return np.asarray(pd.factorize(self.log.units)[0], dtype=np.int64)

    @cached_property
    def n_units(self) -> int:
        """Number of units, or number of rounds if the log does not name units."""
        return self.log.n_rounds if self.units is None else int(self.units.max(initial=-1)) + 1

    @cached_property
    def repeated_units(self) -> bool:
        """Whether some unit has several rounds, as far as the log shows."""
        return self.n_units < self.log.n_rounds

    @cached_property
    def unit_skewness(self) -> float:
        """Squared skewness of the units' mean rewards, pooled over arms; 0 if no unit returned."""
        if self.units is None or not self.repeated_units:
            return 0.0
        totals = np.bincount(self.units, self.log.arrays.reward, self.n_units)
        return squared_skewness(totals / np.bincount(self.units, minlength=self.n_units))

    def repeats_in(self, keep: BoolArray) -> bool:
        """Whether some unit has several of the selected rounds; keep has shape (T,)."""
        units = self.units
        return units is not None and len(np.unique(units[keep])) < int(np.count_nonzero(keep))

    @cached_property
    def unit_refusal(self) -> str:
        """The reason why a method for independent rounds is not valid; empty if no unit returned."""
        if not self.repeated_units:
            return ""
        return DEPENDENT(units=self.n_units, rounds=self.log.n_rounds)

    @cached_property
    def one_arm_a_unit(self) -> bool:
        """Whether units return, and each keeps its first arm."""
        action = self.log.arrays.action
        return self.repeated_units and bool(np.all(action == action[self._first_rounds]))

    @cached_property
    def drawn_once(self) -> bool:
        """Whether the log states that the arm is drawn once per unit.

        In such a log, each unit keeps its arm, with propensity 1 in every round after its first round. The
        propensity e is that of the draw.
        """
        known = self.log.arrays.propensity
        if known is None or not self.one_arm_a_unit:
            return False
        first = self._first_rounds
        later = first != np.arange(self.log.n_rounds)
        return bool(np.all(known[later] >= 1.0 - _SAME) and np.any(known[first[later]] < 1.0 - _SAME))

    @cached_property
    def one_draw_a_unit(self) -> bool:
        """Whether the arm of a unit was drawn once, because the log states or the data imply this."""
        return self.drawn_once or self._chance_of_keeping < _IMPOSSIBLE

    @cached_property
    def contradicted_draws(self) -> str:
        """The reason why logged propensities are not those of the draws; empty if no reason is found."""
        if self.drawn_once or not self.one_draw_a_unit or not self._moves_within_units:
            return ""
        return ONE_DRAW_A_UNIT(power=self._chance_of_keeping / np.log(10.0))

    @cached_property
    def _moves_within_units(self) -> bool:
        """Whether the propensities of the chosen arms differ between the rounds of a unit."""
        known = self.log.arrays.propensity
        return known is not None and bool(np.any(np.abs(known - known[self._first_rounds]) > _SAME))

    @cached_property
    def _chance_of_keeping(self) -> float:
        """Log probability that draws by round give every unit its first arm again; 0 if an arm changed."""
        known = self.log.arrays.propensity
        if known is None or not self.one_arm_a_unit:
            return 0.0
        later = self._first_rounds != np.arange(self.log.n_rounds)
        return float(np.log(known[later]).sum())

    @cached_property
    def _first_rounds(self) -> IntArray:
        """For each round, the first round of the same unit, shape (T,)."""
        if self.units is None:
            return np.arange(self.log.n_rounds)
        return np.asarray(np.unique(self.units, return_index=True)[1][self.units], dtype=np.int64)
