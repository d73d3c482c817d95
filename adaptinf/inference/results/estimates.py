"""Estimates of several terms, with one distribution for both p-values and intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.claims import also_assumed, said, tables
from adaptinf.claims.logs import stopping
from adaptinf.claims.logs.plans import USE_PLAN
from adaptinf.errors import InvalidForLog
from adaptinf.inference.corrections.information import Correction
from adaptinf.inference.distributions.references import AdjustedReference, Reference
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.log_facts import (
    USUAL,
    LogFacts,
    StoppingFacts,
    may_lack_meaning,
    meaningful,
    without_meaning,
)
from adaptinf.inference.results.multiplicity import adjusted_logs, check_adjustment, probabilities
from adaptinf.log.report import Stopping
from adaptinf.parameters import check_alpha
from adaptinf.typing import BoolArray, FloatArray, Validity

_FOLLOWED = ("arm-mean", "contrast", "policy-value")
"""Targets of confidence sequences."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Estimates:
    """Estimates with separate tests and intervals for each term; `Results` describes the fields."""

    model: str
    estimands: tuple[Estimand, ...]
    terms: tuple[str, ...]
    estimate: FloatArray
    std_error: FloatArray
    reference: Reference
    estimator: str
    facts: LogFacts
    validity: Validity = "asymptotic"
    weights: str | None = None
    covariance: FloatArray | None = None
    null: float = 0.0
    correction: Correction | None = None
    details: Mapping[str, FloatArray] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    efficiency_note: str = ""
    private: bool = False
    scores: Mapping[str, FloatArray] | None = None
    contrast_of: Callable[[int, int], Estimates] | None = None

    def __post_init__(self) -> None:
        for name in ("estimate", "std_error", "covariance"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _read_only(value))
        if self.facts.cautions:
            object.__setattr__(self, "cautions", tuple(dict.fromkeys([*self.facts.cautions, *self.cautions])))
        object.__setattr__(self, "details", {name: _read_only(x) for name, x in self.details.items()})
        if self.facts.stopping is not None and not self.at_any_length:
            told = StoppingFacts(self.facts.stopping, self._instead(self.facts.stopping))
            warned = said(stopping.FIXED_LENGTH, told, "caution")
            notes = also_assumed(self.notes, said(stopping.FIXED_LENGTH, told, "assumes"))
            object.__setattr__(self, "notes", notes)
            # This caution concerns every number, so it comes first. A changed copy of a result already has
            # it.
            object.__setattr__(self, "cautions", tuple(dict.fromkeys([*warned, *self.cautions])))
        if may_lack_meaning(self.reference, self.estimands, self.facts.longest, self.std_error):
            usual = self.reference.interval(math.log(USUAL))
            told_of = without_meaning(usual, self.terms, self.estimands, self.facts, self.std_error)
            object.__setattr__(self, "notes", tuple(dict.fromkeys([*self.notes, *told_of])))

    @property
    def at_any_length(self) -> bool:
        """Whether results are valid however the number of rounds was determined."""
        return self.validity == "anytime"

    def _instead(self, told: Stopping) -> str:
        """Methods that are valid if the number of rounds was not fixed."""
        if self.private:
            return stopping.NO_RELEASED_METHOD()
        followed = all(one.kind in _FOLLOWED for one in self.estimands)
        if told.by_looks and followed:
            return USE_PLAN()
        followed = followed and told.complete
        return (stopping.CONFIDENCE_SEQUENCE if followed else stopping.NO_METHOD)()

    @property
    def params(self) -> pd.Series[float]:
        """The estimates, indexed by term."""
        return self._by_term(self.estimate, "estimate")

    @property
    def bse(self) -> pd.Series[float]:
        """Standard errors by term."""
        return self._by_term(self.std_error, "std_error")

    @property
    def tvalues(self) -> pd.Series[float]:
        """Distances of the estimates from the null, in standard errors, by term.

        If p-values use an adjusted estimate (Agresti-Caffo), its distance is given.
        """
        with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
            values = np.where(self.std_error > 0, (self.estimate - self.null) / self.std_error, np.nan)
            if isinstance(self.reference, AdjustedReference):
                values = self.reference.statistics(self.null)
        return self._by_term(values, "statistic")

    @property
    def log_pvalues(self) -> pd.Series[float]:
        """Natural logarithms of the two-sided p-values by term, accurate even if p-values underflow."""
        return self._by_term(self.reference.log_pvalues(self.null), "log_p_value")

    @property
    def pvalues(self) -> pd.Series[float]:
        """Two-sided p-values by term."""
        return self._by_term(probabilities(self.log_pvalues), "p_value")

    @property
    def log_pvalues_corrected(self) -> pd.Series[float]:
        """Natural logarithms of the p-values corrected for adaptive collection.

        Raises
        ------
        InvalidForLog
            If no correction is needed or none is possible; `correction` is then None.
        """
        corrected = np.asarray(self._due_correction().apply(self.reference.log_pvalues(self.null)))
        return self._by_term(corrected, "log_p_value_corrected")

    @property
    def pvalues_corrected(self) -> pd.Series[float]:
        """P-values corrected for adaptive collection.

        Raises
        ------
        InvalidForLog
            If no correction is needed or none is possible; `correction` is then None.
        """
        return self._by_term(probabilities(self.log_pvalues_corrected), "p_value_corrected")

    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame:
        """Return the confidence intervals of all terms.

        Parameters
        ----------
        alpha : float
            One minus the confidence level, between 0 and 0.5.

        Returns
        -------
        DataFrame
            Columns low and high, one row per term.

        Raises
        ------
        ParameterError
            If alpha is not between 0 and 0.5.
        """
        check_alpha("conf_int", alpha)
        return self._intervals(math.log(alpha))

    def conf_int_corrected(self, alpha: float = 0.05) -> pd.DataFrame:
        """Confidence intervals corrected for adaptive collection.

        Parameters
        ----------
        alpha : float
            One minus the confidence level, between 0 and 0.5.

        Returns
        -------
        DataFrame
            Columns low and high, with one row per term: the uncorrected interval at the corrected level. An
            interval excludes the null if and only if the corrected p-value is at most alpha.

        Raises
        ------
        ParameterError
            If alpha is not between 0 and 0.5.
        InvalidForLog
            If no correction is needed or none is possible.
        """
        check_alpha("conf_int_corrected", alpha)
        return self._intervals(self._due_correction().level(math.log(alpha)))

    def cov_params(self) -> pd.DataFrame:
        """Estimated covariance matrix of the estimates."""
        matrix = np.diag(self.std_error**2) if self.covariance is None else self.covariance
        return pd.DataFrame(matrix, index=list(self.terms), columns=list(self.terms))

    @property
    def ess(self) -> pd.Series[float]:
        """Effective sample size by term."""
        return self._by_term(self._detail("ess"), "ess")

    @property
    def min_propensity(self) -> float:
        """Smallest propensity by which an estimate divides; NaN if estimates use no propensities."""
        values = self._detail("min_propensity")
        return float(np.nanmin(values)) if np.any(np.isfinite(values)) else math.nan

    def diagnostics(self) -> pd.DataFrame:
        """Diagnostics by term, such as pulls, effective sample size and smallest propensity."""
        return pd.DataFrame(dict(self.details), index=list(self.terms))

    def to_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Return all numbers as a plain frame, ready for ``to_csv`` or ``to_json``.

        Parameters
        ----------
        alpha : float
            One minus the confidence level of the intervals, between 0 and 0.5.

        Returns
        -------
        DataFrame
            Columns term, estimate, std_error, statistic, p_value, conf_low and conf_high. If there is a
            correction, also p_value_corrected, conf_low_corrected and conf_high_corrected.

        Raises
        ------
        ParameterError
            If alpha is not between 0 and 0.5.
        """
        interval = self.conf_int(alpha)
        columns: dict[str, Any] = {
            "term": list(self.terms),
            "estimate": self.estimate,
            "std_error": self.std_error,
            "statistic": self.tvalues.to_numpy(),
            "p_value": self.pvalues.to_numpy(),
            "conf_low": interval["low"].to_numpy(),
            "conf_high": interval["high"].to_numpy(),
        }
        if self.correction is not None:
            corrected = self.conf_int_corrected(alpha)
            columns["p_value_corrected"] = self.pvalues_corrected.to_numpy()
            columns["conf_low_corrected"] = corrected["low"].to_numpy()
            columns["conf_high_corrected"] = corrected["high"].to_numpy()
        return pd.DataFrame(columns)

    def adjust(self, method: str = "holm", corrected: bool = True) -> pd.Series[float]:
        """Adjust p-values for the number of terms.

        Parameters
        ----------
        method : {"holm", "bh"}
            The method of Holm, or that of Benjamini and Hochberg.
        corrected : bool
            Whether to adjust the corrected p-values, if a correction is needed.

        Raises
        ------
        ParameterError
            If the method is unknown.
        """
        check_adjustment("adjust", method)
        due = corrected and self.correction is not None
        logs = self.log_pvalues_corrected if due else self.log_pvalues
        return self._by_term(
            probabilities(adjusted_logs(np.asarray(logs, dtype=np.float64), method)), f"p_value_{method}"
        )

    def _by_term(self, values: FloatArray, name: str) -> pd.Series[float]:
        return pd.Series(np.asarray(values, dtype=float), index=list(self.terms), name=name)

    def _intervals(self, log_alpha: float) -> pd.DataFrame:
        limits = self._meaningful(self.reference.interval(log_alpha))
        return pd.DataFrame(limits, index=list(self.terms), columns=["low", "high"])

    def _meaningful(self, limits: FloatArray) -> FloatArray:
        """Limits, shape (k, 2), set to NaN if an interval is too long to be informative."""
        return meaningful(limits, self.estimands, self.facts.longest, self.std_error)

    @property
    def _without_information(self) -> BoolArray:
        """The terms whose 95% interval is too long to be informative, shape (k,)."""
        asked = (self.estimands, self.facts.longest, self.std_error)
        if not may_lack_meaning(self.reference, *asked):
            return np.zeros(len(self.terms), dtype=bool)
        usual = self.reference.interval(math.log(USUAL))
        return np.asarray(np.isnan(self._meaningful(usual)[:, 0]) & ~np.isnan(usual[:, 0]))

    @property
    def _bounds(self) -> tuple[FloatArray, FloatArray] | None:
        """Lowest and highest estimates over all values of missing rewards; None if no rewards are missing."""
        if "lowest" not in self.details:
            return None
        return self.details["lowest"], self.details["highest"]

    @property
    def _chosen_from(self) -> Estimates | None:
        """For a winner, the estimates among which it was selected; None for all other results."""
        return None

    def _is_corrected(self, alpha: float) -> bool:
        """Whether results at level 1 - alpha are corrected: a correction is needed, and is informative."""
        return self.correction is not None and not self.correction.vacuous(alpha)

    def _law_said(self, alpha: float) -> list[str]:
        """Statement of the distribution from which p-values and intervals of level 1 - alpha are computed."""
        claim = tables.EXACT_LAW if self.reference.exact else tables.LAW
        return [claim(law=self.reference.name)]

    def _detail(self, name: str) -> FloatArray:
        return self.details.get(name, np.full(len(self.terms), np.nan))

    def _due_correction(self) -> Correction:
        if self.correction is None:
            raise InvalidForLog(
                "a max-information correction",
                "the estimator does not need a correction, or the log's guarantee does not allow one (see "
                "the notes)",
                ["pvalues", "conf_int"],
            )
        return self.correction


def _read_only(values: FloatArray) -> FloatArray:
    own = np.array(values, dtype=float)
    own.setflags(write=False)
    return own
