"""The result of a search for a sample size."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from adaptinf.audit.planning.plans import PlanTable
from adaptinf.texts import visible_lines


@dataclass(frozen=True, eq=False)
class SampleSize(PlanTable):
    """The smallest horizon with a given power, and all that were looked at.

    Attributes
    ----------
    horizon : int or None
        Rounds; None where the power is not reached at the longest horizon.
    target : float
        The power that was asked for.
    horizon_error : float
        Rounds: what the Monte-Carlo standard error of the power is worth, by a power curve that is normal in
        the square root of the horizon; 0 where the power is exact.
    frame : DataFrame
        One row per horizon: `horizon`, `power`, its Monte-Carlo standard error `power_se` and the exact 95%
        limits `power_low` and `power_high` of its simulation, and the same of the type I error as `type_i`
        and so on; where these are exact, the largest size over all success rates, without error. NaN where
        the null was not simulated.
    alpha, design, replications, notes
        As for every table of a plan; no replications where the law is exact.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.BernoulliArms([0.2, 0.8])
    >>> found = ai.audit.sample_size(ai.designs.Uniform(), arms, "conditional")
    >>> found.horizon
    23
    """

    horizon: int | None = None
    target: float = 0.8
    horizon_error: float = 0.0

    @property
    def _head(self) -> str:
        if self.horizon is None:
            told = f"power {self.target:g} is not reached"
        else:
            told = f"power {self.target:g} from {self.horizon:,} rounds"
            if self.replications:
                told += f", plus or minus {self.horizon_error:.2g} (one standard error of simulation)"
        how = f"{self.replications:,} simulated trials a horizon" if self.replications else "by the exact law"
        return visible_lines([self.design, told, f"{how}, alpha {self.alpha:g}"])

    def to_markdown(self, digits: int = 4) -> str:
        """The table as Markdown.

        Parameters
        ----------
        digits : int
            Decimals.

        Returns
        -------
        str
        """
        return self._as_markdown(self._shown, digits)

    @property
    def _shown(self) -> pd.DataFrame:
        """Without columns that say nothing."""
        ends = [name for name in self.frame if str(name).endswith(("_se", "_low", "_high"))]
        shown = self.frame if self.replications else self.frame.drop(columns=ends)
        return shown.dropna(axis="columns", how="all")

    def __str__(self) -> str:
        return self._as_text(self._shown)
