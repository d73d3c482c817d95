"""What the adjustments of `AdaptiveOLS` are given, and what they give back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from adaptinf.claims import Claim, Part
from adaptinf.errors import ParameterError
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.corrections.information import Correction
    from adaptinf.inference.distributions.base import Reference
    from adaptinf.inference.results.hypotheses import LinearHypothesis, LinearTest, WaldTest
    from adaptinf.inference.validity.profile import LogProfile

Facts = TypeVar("Facts")
"""What the claims of an adjustment ask."""


@dataclass(frozen=True, slots=True, eq=False)
class RegressionData:
    """Rewards and model matrix of the n rounds that a regression uses, in time order.

    Shapes: y (n,), x (n, p), rounds (n,), action (n,), batch (n,), propensity (n,), clusters (n,).

    `rows_of` gives the model matrix that the rounds would have with an arm in the place of theirs; None where
    the arm is not in the formula.
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
    rows_of: Callable[[int], FloatArray] | None = None

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

    Shapes: estimate, std_error (p,), covariance (p, p), details (p,).

    `found` is what else the adjustment's claims ask of it; `decided` counts rounds that decide a coefficient
    alone, so that there are no errors.
    """

    estimate: FloatArray
    std_error: FloatArray
    reference: Reference
    estimator: str
    covariance: FloatArray | None = None
    weights: str | None = None
    details: Mapping[str, FloatArray] = field(default_factory=dict)
    df_resid: float | None = None
    correction: Correction | None = None
    joint: JointTests | None = None
    rsquared: float | None = None
    df_model: int | None = None
    naive: bool = False
    decided: int = 0
    found: Any = None


@dataclass(frozen=True, slots=True)
class FitOptions:
    """What the user asked of an adjustment, and notes on what was chosen where nothing was asked for."""

    covariance: str
    null: float = 0.0
    settings: Mapping[str, Any] = field(default_factory=dict)
    stationary: bool = False
    chosen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Adjustment(Generic[Facts]):
    """One way to make least squares valid under adaptive collection.

    `fit` raises `InvalidForLog` where the log does not support it; the model adds what works instead.
    """

    name: str
    facts: Callable[[RegressionData, LogProfile, FitOptions | None], Facts]
    """What claims ask of a log, and of a fit once that is set."""
    fit: Callable[[Facts], CoefficientFit]
    claims: tuple[Claim | Part, ...]
    """What a fit says, in order: notes and cautions."""
    needs: tuple[Claim | Part, ...] = ()
    """Why a log does not support it, apart from the options of a fit."""
    reasons: tuple[Claim | Part, ...] = ()
    """Why it is the default for a log."""
    covariances: tuple[str, ...] = ("classical",)
    options: tuple[str, ...] = ()
    why: str = ""
    """Why it has no other covariances."""
    plain: bool = False
    """Whether it is least squares as it is, which covers arms selected by their pulls."""


def check_freedom(name: str, data: RegressionData) -> None:
    """Refuse regressions without residual degrees of freedom."""
    if data.nobs <= data.size:
        problem = f"{data.nobs} rounds and {data.size} columns leave no residual: use fewer columns"
        raise ParameterError(name, [problem])
