"""Questions of a model of arms to its methods, their choices or refusals, and the fits that they return."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from adaptinf.inference.distributions.references import Reference
from adaptinf.inference.scores.means import SampleMeans, welch
from adaptinf.typing import BoolArray, FloatArray, IntArray, Validity

if TYPE_CHECKING:
    from adaptinf.inference.arms.data.pair_tables import PairTable
    from adaptinf.inference.corrections.information import ChosenFrom, Correction
    from adaptinf.inference.distributions.event_sums import EventSums
    from adaptinf.inference.results.fit_results import Results
    from adaptinf.inference.scores.means import UnitErrors
    from adaptinf.inference.scores.outcome_predictions import Outcome
    from adaptinf.inference.validity.profile import LogProfile
    from adaptinf.log import AdaptiveLog


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """A model's question about a log, and the user's additional knowledge; codes has shape (k,).

    `stationary` means that no mean drifts, so arms may have separate weights; `table` contains the contrasts
    of which this one is a row.
    """

    profile: LogProfile
    codes: IntArray
    contrast: bool = False
    decay: float | None = None
    variation: float | None = None
    stationary: bool = False
    table: PairTable | None = None

    @property
    def family(self) -> int:
        """Number of contrasts in the table."""
        return 1 if self.table is None else len(self.table.codes)

    @property
    def asked(self) -> tuple[Any, ...]:
        """The arguments on which verdicts about the log depend."""
        return self.contrast, self.decay, self.variation, self.stationary, self.codes.tobytes()


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """Arguments of `fit`; the method chooses those that are None."""

    subject: str
    estimator: str | None = None
    weights: str | None = None
    decay: float | None = None
    test: str = "auto"
    outcome: Any = None
    ridge: float | None = None
    arm_error: str = "conservative"
    named: str = "before"
    chosen_from: ChosenFrom = "actions"
    stationary: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """A valid way to estimate arm means from a log."""

    estimator: str
    weights: str | None = None
    decay: float | None = None
    reason: str = field(default="", compare=False, repr=False)


class Refused(Exception):
    """A method is not valid; the model inserts the valid alternatives between the first and last parts."""

    def __init__(
        self, method: str, reason: str, first: tuple[str, ...] = (), last: tuple[str, ...] = ()
    ) -> None:
        super().__init__(method, reason)
        self.method, self.reason, self.first, self.last = method, reason, first, last


@dataclass(frozen=True, slots=True, eq=False)
class CountedArms:
    """Arms whose rewards are treated as events, with the effective numbers of these; few (k,), worth (k,).

    `sums` are those of the means, of which `few` are used, or of one contrast.
    """

    sums: EventSums
    few: BoolArray
    worth: FloatArray


@dataclass(frozen=True, eq=False)
class ArmFit:
    """Estimates of k arm means, with all inputs for tests and tables.

    Shapes: estimate, pulls, successes, ess, min_propensity, above, freedom, skewness, unevenness (k,),
    covariance (k, k).

    `above` contains the estimates minus an origin common to the arms, so that differences lose no digits;
    `freedom` contains the degrees of freedom if they differ from the pulls minus one. `movement` is the
    p-value for slopes over time of contrasts between arms that share their weights. If one pass gave all
    pairs of a table, `products` are the sums of products of their errors, (P, P), in place of contributions
    of rounds. If arms have few events, `counted` has these. For ratios, contributions are in `kept` if scores
    provide them, notes are in `told`, and cautions in `warned`.
    """

    choice: Choice
    labels: tuple[str, ...]
    estimate: FloatArray
    covariance: FloatArray
    pulls: FloatArray
    successes: FloatArray
    ess: FloatArray
    min_propensity: FloatArray
    naive: bool = False
    sample: SampleMeans | None = None
    outcome: Outcome | None = None
    arm_error: str | None = None
    values: tuple[float, float] = (0.0, 1.0)
    above: FloatArray | None = None
    freedom: FloatArray | None = None
    stationary: bool = False
    counted: CountedArms | None = None
    skewness: FloatArray | None = None
    unevenness: FloatArray | None = None
    movement: float = 1.0
    by_unit: UnitErrors | None = None
    products: FloatArray | None = None
    kept: Mapping[str, FloatArray] | None = None
    told: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()

    @property
    def degrees(self) -> FloatArray:
        """Degrees of freedom for t tests, shape (k,)."""
        return self.pulls - 1.0 if self.freedom is None else self.freedom

    @property
    def evenness_lost(self) -> FloatArray:
        """Factor that converts the squared skewness of rewards to that of an estimate, shape (k,)."""
        return 1.0 / np.maximum(self.ess, 1.0) if self.unevenness is None else self.unevenness

    @cached_property
    def std_error(self) -> FloatArray:
        """Standard errors, shape (k,)."""
        return np.asarray(np.sqrt(self.covariance.diagonal()), dtype=np.float64)

    def difference(self, first: int, second: int) -> tuple[float, float, float]:
        """Difference between two arms, its standard error, and degrees of freedom for a t-test."""
        if self.sample is not None:
            return welch(self.sample, first, second)
        pair = [first, second]
        if np.any(self.pulls[pair] == 0):
            return math.nan, math.nan, math.nan
        spread = self.covariance[np.ix_(pair, pair)]
        contrast = np.array([1.0, -1.0])
        variance = float(contrast @ spread @ contrast)
        # An arm whose rewards never varied gives no information on the error of its mean, so the standard
        # error is unknown and not 0.
        size = math.sqrt(max(variance, 0.0)) if np.all(np.diag(spread) > 0.0) else math.nan
        value = self.estimate if self.above is None else self.above
        return float(value[first] - value[second]), size, float(self.degrees[pair].min())


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """The test that a fit uses, the correction that is needed, and the notes below its table."""

    kind: str
    correction: Correction | None
    notes: tuple[str, ...]
    cautions: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """Difference between two arms, with all contents of its table."""

    choice: Choice
    estimate: float
    std_error: float
    reference: Reference
    details: Mapping[str, FloatArray]
    notes: tuple[str, ...]
    cautions: tuple[str, ...] = ()
    validity: Validity = "asymptotic"
    correction: Correction | None = None
    efficiency_note: str = ""
    scores: Mapping[str, FloatArray] | None = None
    private: bool = False
    by_unit: bool = False


class ArmModel(Protocol):
    """`ArmMeans` and `Contrast`, for code that fits them again with covariates or at either bound."""

    log: AdaptiveLog

    @property
    def fit(self) -> Callable[..., Results]:
        """Results for the arguments of `fit`."""


class ContrastModel(ArmModel, Protocol):
    """An `ArmModel` for the contrast of two arms."""

    treatment: Any
    control: Any
    denominator: Any
