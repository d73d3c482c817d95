"""Differences of several arms to a control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adaptinf.inference.results import Results
from adaptinf.inference.results.multiplicity import AT_ONCE

if TYPE_CHECKING:
    import pandas as pd

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

    def summary(self, alpha: float = 0.05, adjust: str | None = "max-t") -> ResultSummary:
        """Table with p-values and intervals that hold for all terms at once.

        Parameters
        ----------
        alpha : float
            One minus the level of the intervals, between 0 and 0.5.
        adjust : {"max-t", "holm", "bh"} or None
            As for other results, whose tables are of single terms if not asked. Where a correction for
            adaptive collection is due, Holm's method takes the place of ``"max-t"``.

        Returns
        -------
        ResultSummary
            Prints as text; ``as_markdown()``, ``as_latex()`` and ``as_html()`` give the other forms.

        Raises
        ------
        ParameterError
            If alpha is not between 0 and 0.5, or the adjustment is unknown.
        """
        due = adjust == AT_ONCE and self.correction is not None
        return super().summary(alpha, "holm" if due else adjust)

    def to_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """All numbers as a plain frame, those that hold at once among them.

        Parameters
        ----------
        alpha : float
            One minus the level of the intervals, between 0 and 0.5.

        Returns
        -------
        DataFrame
            Columns as for other results, and p_value_simultaneous, conf_low_simultaneous and
            conf_high_simultaneous (p_value_holm alone where a correction is due).

        Raises
        ------
        ParameterError
            If alpha is not between 0 and 0.5.
        """
        frame = super().to_frame(alpha)
        if self.correction is not None:
            return frame.assign(p_value_holm=self.adjust("holm").to_numpy())
        limits = self.conf_int_simultaneous(alpha)
        return frame.assign(
            p_value_simultaneous=self.pvalues_simultaneous().to_numpy(),
            conf_low_simultaneous=limits["low"].to_numpy(),
            conf_high_simultaneous=limits["high"].to_numpy(),
        )
