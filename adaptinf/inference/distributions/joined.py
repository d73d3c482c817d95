"""One law of several terms that each have a law of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adaptinf.inference.distributions.base import (
    AdjustedReference,
    NormalReference,
    RecodedReference,
    Reference,
    StudentReference,
)
from adaptinf.typing import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class JoinedReference:
    """Laws of single terms, one beneath the other; shapes estimate, std_error, df (k,).

    `df` are their degrees of freedom, infinite where a law has none.
    """

    parts: tuple[Reference, ...]
    estimate: FloatArray
    std_error: FloatArray
    df: FloatArray

    @property
    def name(self) -> str:
        """Names of the laws, each once."""
        return ", ".join(dict.fromkeys(part.name for part in self.parts))

    @property
    def exact(self) -> bool:
        """Whether all p-values hold in finite samples."""
        return all(part.exact for part in self.parts)

    @property
    def statistic(self) -> str:
        """Letter of the statistic in tables."""
        return "z" if all(part.statistic == "z" for part in self.parts) else "t"

    @property
    def normal(self) -> bool:
        """Whether all are normal, with the standard errors shown."""
        return all(part.normal for part in self.parts)

    @property
    def uses_std_error(self) -> bool:
        """Whether p-values and intervals are made of the standard errors shown."""
        return all(part.uses_std_error for part in self.parts)

    def statistics(self, null: float) -> FloatArray:
        """Distances from the null in standard errors, shape (k,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(self.std_error > 0.0, (self.estimate - null) / self.std_error, np.nan)
        for place, part in enumerate(self.parts):
            if isinstance(part, AdjustedReference):
                found[place] = part.statistics(null)[0]
        return found

    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logs of the two-sided p-values, shape (k,)."""
        return np.concatenate([part.log_pvalues(null) for part in self.parts])

    def interval(self, log_alpha: float) -> FloatArray:
        """Intervals at level 1 - exp(log_alpha), shape (k, 2)."""
        return np.concatenate([part.interval(log_alpha) for part in self.parts])


def joined(parts: Sequence[Reference], estimate: FloatArray, std_error: FloatArray) -> Reference:
    """The law of k terms from those of each; estimate, std_error (k,)."""
    if all(isinstance(part, NormalReference) for part in parts):
        return NormalReference(estimate, std_error)
    df = np.array([_freedom(part) for part in parts])
    if all(isinstance(part, StudentReference) for part in parts):
        return StudentReference(estimate, std_error, df)
    return JoinedReference(tuple(parts), np.asarray(estimate), np.asarray(std_error), df)


def _freedom(part: Reference) -> float:
    """Degrees of freedom of the law of a term, or of the one that it is made of; infinite without any."""
    inner = part.inner if isinstance(part, RecodedReference) else part
    return float(np.ravel(getattr(inner, "df", np.inf))[0])
