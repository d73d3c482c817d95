"""A common interface for logs and sums: a piece is a round of a log, or all rounds of a batch in sums.

`SumsProfile` offers the same methods for batches, so callers need not distinguish the kinds of data.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from adaptinf.inference.inputs.rounds import possible_rounds
from adaptinf.inference.validity.calibration import PropensityFacts
from adaptinf.inference.validity.reward_facts import RewardFacts
from adaptinf.typing import BoolArray, FloatArray, IntArray


class RowPieces(PropensityFacts, RewardFacts):
    """The rounds of a log."""

    data_name: ClassVar[str] = "log"
    """The name of the data in an example of a call."""
    rows_refusal: ClassVar[str] = ""
    """The reason why data by round are unavailable, which is empty for rows."""

    @property
    def n_pieces(self) -> int:
        """Number R of pieces."""
        return self.log.n_rounds

    @property
    def piece_sizes(self) -> FloatArray:
        """Number of rounds of each piece, shape (R,)."""
        return np.ones(self.log.n_rounds)

    def possible(self, codes: IntArray, *, jointly: bool) -> BoolArray:
        """Whether each arm, or all arms jointly, could be chosen in each piece, as far as known; (R, k)."""
        known = self.partial_propensities if self.propensities is None else self.propensities
        own = np.ones(self.log.n_rounds) if self.propensity is None else self.propensity
        if known is not None:
            return possible_rounds(None, own, known[:, codes], jointly=jointly)
        return possible_rounds(self.log.arrays.action[:, None] == codes, own, None, jointly=jointly)

    def drawn(self, codes: IntArray) -> BoolArray:
        """Whether each arm was neither certain nor impossible in each piece, as far as known; (R, k)."""
        if self.propensities is not None:
            every = self.propensities[:, codes]
            return np.asarray((every > 0.0) & (every < 1.0))
        own = np.ones(1) if self.propensity is None else self.propensity
        return np.repeat((own < 1.0)[:, None], len(codes), axis=1)

    def batch_pulls(self, codes: IntArray) -> FloatArray | None:
        """Number of rounds of each arm by batch, or None without batches; codes (k,), returns (B, k)."""
        arrays = self.log.arrays
        if arrays.batch is None:
            return None
        size = int(arrays.batch[-1]) + 1
        counts = [np.bincount(arrays.batch[arrays.action == code], minlength=size) for code in codes]
        return np.column_stack(counts).astype(np.float64)

    @cached_property
    def expected_pulls(self) -> FloatArray | None:
        """Sum of the propensities of each arm, shape (K,), or None if they are not all known."""
        every = self.log.arrays.propensities
        # einsum is three times as fast as sum(axis=0).
        return None if every is None else np.einsum("tk->k", every)

    def own_skewness(self, codes: IntArray) -> FloatArray:
        """For each arm, sum of cubed residuals over sum of squares to the power 3/2; codes, result (k,)."""
        found = np.zeros(len(codes))
        for place, code in enumerate(codes):
            own = self.rewards[self.rewarded_actions == code]
            residual = own - own.mean() if own.size else own
            root = float(np.sqrt(residual @ residual))
            if root > 0.0:
                found[place] = np.sum((residual / root) ** 3)
        return found

    def read_facts(self) -> dict[str, Any]:
        """Facts on the data that were summed, and on how they were summed; empty for rows."""
        return {}
