"""Results of confidence sequences: the results of any estimate, and a table over rounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from adaptinf.claims import sequences as claims
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.distributions.references import Reference
from adaptinf.inference.results.fit_results import Results
from adaptinf.inference.sequences.tracks import SequenceReference
from adaptinf.parameters import check_alpha
from adaptinf.typing import IntArray, RandomSource

# A table of all rounds would be too long: beyond the second number of rounds, it shows only this many in each
# decade.
_PER_DECADE, _ALL_SHOWN = 10, 60


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SequenceResults(Results):
    """Confidence sequences after the last round or after any other round.

    Parameters
    ----------
    reference : SequenceReference
        The sequences. They store their scores in one or more arrays over the rounds.
    dates : ndarray of datetime64, shape (T,), optional
        Start times of the rounds, if recorded in the log.
    **others
        The other arguments, as in `Results`.

    Notes
    -----
    The intervals are running intersections, so a value that has been excluded remains excluded. With
    probability at least 1 - alpha, the true value is never excluded at any round, regardless of how the log
    was stopped. Limits are NaN if every value has been excluded, which has probability at most alpha under
    the assumptions.

    P-values are anytime-valid. A p-value is at most alpha exactly if the sequence at alpha has ever excluded
    the null hypothesis. If the null hypothesis is true, the probability that this ever happens is at most
    alpha. Standard errors and their ratios to the estimates are descriptive; neither p-values nor intervals
    use them.

    Simultaneous intervals and p-values use Bonferroni's correction. Šidák's correction is refused, because it
    requires normal or independent statistics, and the sequences of one log are neither.

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.EpsilonGreedy(exploration=0.2)
    >>> log = design.run(ai.environments.BernoulliArms([0.2, 0.8]), horizon=100, rng=0)
    >>> sequence = ai.ConfidenceSequence(log).fit()
    >>> sequence.conf_int().round(1).to_numpy().tolist()
    [[0.0, 0.7], [0.7, 0.9]]
    """

    reference: SequenceReference
    dates: NDArray[np.datetime64] | None = None
    _picture: ClassVar[str] = "confidence_sequence"

    @property
    def at_any_length(self) -> bool:
        """Always True, because confidence sequences are valid at any length of a log."""
        return True

    def table(self, alpha: float = 0.05, rounds: Sequence[int] | None = None) -> pd.DataFrame:
        """Estimates and intervals after the given rounds.

        Parameters
        ----------
        alpha : float
            One minus the confidence level, between 0 and 0.5. The level holds for all rounds of the log
            simultaneously.
        rounds : sequence of int, optional
            Rounds, numbered from 1. The default is about ten rounds per power of ten, and the last round. For
            sums, the first batch must be complete; the default is the ends of batches or, if there are many,
            about ten per power of ten.

        Returns
        -------
        DataFrame
            A table with the columns t, term, estimate, low and high. Rounds are in ascending order, and terms
            keep their order.

        Raises
        ------
        ParameterError
            If alpha is not between 0 and 0.5, or a round is not in the log.

        Notes
        -----
        Bounds from bets have no closed form. Each round of the table requires about fifty passes over all
        earlier rounds, unless its limit has not changed. If rounds are evenly spaced on a log scale, the work
        is linear in the length of the log.
        """
        check_alpha("table", alpha)
        chosen = _check_rounds(rounds, self.reference)
        times = self.reference.times(chosen)
        parts = []
        for term, track in zip(self.terms, self.reference.tracks, strict=True):
            limits = track.limits(math.log(alpha), times)
            columns: dict[str, Any] = {
                "t": chosen,
                "term": term,
                "estimate": track.estimates(times),
                "low": limits[:, 0],
                "high": limits[:, 1],
            }
            parts.append(pd.DataFrame(columns))
        return pd.concat(parts, ignore_index=True).sort_values("t", kind="stable", ignore_index=True)

    def _law_said(self, alpha: float) -> list[str]:
        law = claims.EXACT if self.reference.exact else claims.APPROXIMATE
        return [law(law=self.reference.name), *self._outside(alpha)]

    def _outside(self, alpha: float) -> list[str]:
        """Notes on estimates that lie outside the limits printed with them."""
        limits = self.conf_int(alpha)
        outside = (self.estimate < limits["low"].to_numpy()) | (self.estimate > limits["high"].to_numpy())
        return [claims.OUTSIDE(term=term) for term, flag in zip(self.terms, outside, strict=True) if flag]

    def _family(
        self, subject: str, method: str, draws: int, rng: RandomSource | None
    ) -> tuple[Reference, Callable[[float], float], int]:
        if method == "sidak":
            raise InvalidForLog(
                f"{subject} by sidak",
                "its formula requires normal or independent statistics, but the sequences of one log are "
                "neither",
                ["method='bonferroni'"],
            )
        return super()._family(subject, method, draws, rng)


def spread_rounds(n_rounds: int) -> IntArray:
    """Rounds that are evenly spaced on a log scale, including the first and the last round."""
    steps = math.ceil(_PER_DECADE * math.log10(n_rounds)) + 1
    return np.unique(np.round(np.geomspace(1.0, n_rounds, steps)).astype(np.int64))


def _spread_places(n_batches: int) -> IntArray:
    """Positions of the batches that a table shows; if there are few, the table shows all batches."""
    return np.arange(n_batches) if n_batches <= _ALL_SHOWN else spread_rounds(n_batches) - 1


def _check_rounds(rounds: Any, reference: SequenceReference) -> IntArray:
    ends, last = reference.ends, reference.n_rounds
    if rounds is None:
        return spread_rounds(last) if ends is None else ends[_spread_places(len(ends))]
    given, first = np.asarray(rounds), 1 if ends is None else int(ends[0])
    if given.dtype.kind not in "iu" or given.size == 0 or given.min() < first or given.max() > last:
        problem = f"rounds must be whole numbers from {first} to {last}, got {rounds!r:.80}"
        if ends is not None:
            problem += (
                f"; with sums, nothing is known before the first batch is complete, after round {first}"
            )
        raise ParameterError("table", [problem])
    return np.unique(given.astype(np.int64))
