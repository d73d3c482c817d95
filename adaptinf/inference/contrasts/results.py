"""Differences of several arms to a control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adaptinf.inference.results import Results

if TYPE_CHECKING:
    from adaptinf.inference.results.summary import ResultSummary


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ContrastsResults(Results):
    """Differences of arms to one control, or their lifts over it.

    Printed with p-values and intervals that hold for all of them at once; those of single terms are as in
    every result.

    Parameters
    ----------
    control : label
        The arm that all others are compared with.
    pairs : tuple of Results
        The results of the single contrasts.
    **others
        As for `Results`.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.BernoulliArms([0.30, 0.32, 0.45])
    >>> log = ai.designs.EpsilonGreedy(exploration=0.3).run(arms, horizon=3_000, rng=0)
    >>> result = ai.Contrasts(log, control=0).fit()
    >>> result.control, [pair.terms for pair in result.pairs]
    (0, [('1 - 0',), ('2 - 0',)])
    """

    control: Any
    pairs: tuple[Results, ...]

    def __str__(self) -> str:
        return self._joint().as_text()

    def _repr_html_(self) -> str:
        return self._joint().as_html()

    def _joint(self) -> ResultSummary:
        """The table with what holds for all terms at once; by Holm where a correction is due."""
        return self.summary(adjust="max-t" if self.correction is None else "holm")
