"""What the adjustments of `AdaptiveOLS` are given, and what they give back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.corrections.information import Correction
    from adaptinf.inference.distributions.base import Reference
    from adaptinf.inference.results.hypotheses import LinearHypothesis, LinearTest, WaldTest
    from adaptinf.log import AdaptiveLog

__all__ = ["Adjustment", "CoefficientFit", "FitOptions", "JointTests", "RegressionData"]


@dataclass(frozen=True, slots=True, eq=False)
class RegressionData:
    """Rewards and model matrix of the n rounds that a regression uses, in time order.

    Attributes
    ----------
    y : ndarray, shape (n,)
        Rewards.
    x : ndarray, shape (n, p)
        Model matrix, finite and of full column rank; a function of contexts and actions alone.
    names : tuple of str
        Its columns.
    rounds : ndarray of int64, shape (n,)
        Positions of the rounds in the log, increasing.
    action : ndarray of int64, shape (n,)
        Chosen arms, positions in the log's ``arms``.
    n_rounds, n_arms : int
        Of the whole log.
    formula : str
        What made the matrix.
    response : str
        Name of the reward.
    covariates : tuple of str
        Contexts that the matrix is made of.
    arm : label, optional
        The one arm whose rounds are used; None for all arms.
    selector : str, optional
        How that arm was selected from the action history; None where it was named.
    adaptive : bool
        Whether rewards may have changed later actions.
    batch : ndarray of int64, shape (n,), optional
        Batches, as numbered in the log.
    propensity : ndarray, shape (n,), optional
        Logged propensity of the chosen arm.
    clusters : ndarray of int64, shape (n,), optional
        Codes 0, ..., G - 1 of the units.
    """

    y: FloatArray
    x: FloatArray
    names: tuple[str, ...]
    rounds: IntArray
    action: IntArray
    n_rounds: int
    n_arms: int
    formula: str
    response: str
    covariates: tuple[str, ...] = ()
    arm: Any = None
    selector: str | None = None
    adaptive: bool = True
    batch: IntArray | None = None
    propensity: FloatArray | None = None
    clusters: IntArray | None = None

    @property
    def nobs(self) -> int:
        """Number of rounds used, n."""
        return len(self.y)

    @property
    def size(self) -> int:
        """Number of columns, p."""
        return int(self.x.shape[1])


class JointTests(Protocol):
    """Tests of combinations of coefficients by the estimator's own law."""

    def linear_test(self, hypothesis: LinearHypothesis, notes: tuple[str, ...]) -> LinearTest:
        """Separate tests of q combinations."""

    def wald_test(self, hypothesis: LinearHypothesis, notes: tuple[str, ...]) -> WaldTest:
        """Joint test of q restrictions."""


@dataclass(frozen=True, slots=True, eq=False)
class CoefficientFit:
    """Coefficients with everything that tests and tables need.

    Attributes
    ----------
    estimate, std_error : ndarray, shape (p,)
        NaN where a number cannot be computed, with the reason among the notes.
    reference : Reference
        Distribution of the p coefficients.
    estimator : str
        Name in tables, such as ``"ols"``.
    covariance : ndarray, shape (p, p), optional
        Of the estimates; None where the standard errors are descriptions.
    weights : str, optional
        Name of the weights in tables.
    notes : tuple of str
        Assumptions, and reasons for NaN.
    details : mapping of str to ndarray of shape (p,)
        Diagnostics by coefficient; ``"ess"`` and ``"min_propensity"`` are shown in summaries.
    df_resid : float, optional
        Residual degrees of freedom.
    correction : Correction, optional
        For adaptive collection, where the numbers need it.
    joint : JointTests, optional
        Tests of combinations; normal and chi-squared ones by `covariance` where there is none.
    rsquared : float, optional
        Share of the variation that the fit explains.
    df_model : int, optional
        Number of coefficients other than the intercept.
    naive : bool
        Whether the uncorrected numbers are not valid for the log.
    """

    estimate: FloatArray
    std_error: FloatArray
    reference: Reference
    estimator: str
    covariance: FloatArray | None = None
    weights: str | None = None
    notes: tuple[str, ...] = ()
    details: Mapping[str, FloatArray] = field(default_factory=dict)
    df_resid: float | None = None
    correction: Correction | None = None
    joint: JointTests | None = None
    rsquared: float | None = None
    df_model: int | None = None
    naive: bool = False


@dataclass(frozen=True, slots=True)
class FitOptions:
    """What the user asked of an adjustment.

    Attributes
    ----------
    covariance : str
        One of the adjustment's `Adjustment.covariances`; the first by default.
    null : float
        Value that every coefficient is tested against.
    settings : mapping of str to object
        The adjustment's own options that were given, unchecked: those of `Adjustment.options` that are not
        None.
    """

    covariance: str
    null: float = 0.0
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Adjustment:
    """An entry of `regression.ADJUSTMENTS`.

    Attributes
    ----------
    fit : callable
        Takes the data, the log and the options.
    covariances : tuple of str
        Covariance estimates it has, its default first.
    options : tuple of str
        Names of its own options.
    why : str
        Why it has no other covariance estimates.
    """

    fit: Callable[[RegressionData, AdaptiveLog, FitOptions], CoefficientFit]
    covariances: tuple[str, ...] = ("classical",)
    options: tuple[str, ...] = ()
    why: str = ""
