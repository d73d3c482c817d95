"""A question about arms, and the answers of a method: a choice or a refusal, and a fit."""

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
    """A model's question about a log, with the user's additional knowledge; codes has shape (k,).

    If `stationary` is true, no mean drifts, so arms may have separate weights. `table` is the table of
    contrasts that contains this contrast as a row, if any.
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
        """Number of contrasts in the table, or 1 without a table."""
        return 1 if self.table is None else len(self.table.codes)

    @property
    def asked(self) -> tuple[Any, ...]:
        """The parts of the question on which verdicts depend."""
        return self.contrast, self.decay, self.variation, self.stationary, self.codes.tobytes()


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """Arguments of `fit`; those that are None are chosen by the method."""

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
    """Raised if a method is not valid; the model lists valid alternatives between `first` and `last`."""

    def __init__(
        self, method: str, reason: str, first: tuple[str, ...] = (), last: tuple[str, ...] = ()
    ) -> None:
        super().__init__(method, reason)
        self.method, self.reason, self.first, self.last = method, reason, first, last


@dataclass(frozen=True, slots=True, eq=False)
class CountedArms:
    """Arms whose rewards are treated as events; few, which marks the arms, and worth have shape (k,).

    `worth` is the effective number of events. `sums` refers to all means, of which those marked in `few` are
    used, or to a single contrast.
    """

    sums: EventSums
    few: BoolArray
    worth: FloatArray


@dataclass(frozen=True, eq=False)
class ArmFit:
    """Estimates of k arm means, with everything that tests and tables need.

    Shapes: estimate, pulls, successes, ess, min_propensity, above, freedom, skewness, unevenness (k,),
    covariance (k, k).

    `above` contains the estimates minus an origin common to the arms, so that differences lose no digits.
    `freedom` contains the degrees of freedom, if they differ from the pulls minus one. `movement` is the
    p-value for slopes over time of contrasts between arms that share their weights. If all pairs of a table
    were computed in one pass, `products`, with shape (P, P), contains sums of products of their errors
    instead of contributions of rounds. `counted` describes arms with few events, if any. For ratios, `kept`
    contains contributions if scores provide them, `told` notes, and `warned` cautions.
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
        """Factor by which the squared skewness of rewards becomes that of an estimate, shape (k,)."""
        return 1.0 / np.maximum(self.ess, 1.0) if self.unevenness is None else self.unevenness

    @cached_property
    def std_error(self) -> FloatArray:
        """Standard errors, shape (k,)."""
        return np.asarray(np.sqrt(self.covariance.diagonal()), dtype=np.float64)

    def difference(self, first: int, second: int) -> tuple[float, float, float]:
        """Difference between two arms, its standard error, and the degrees of freedom for a t test."""
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
    """Difference between two arms, with everything that its table shows."""

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
    """The interface of `ArmMeans` and `Contrast`, used to fit them again with covariates or at bounds."""

    log: AdaptiveLog

    @property
    def fit(self) -> Callable[..., Results]:
        """The method that computes results from its arguments."""


class ContrastModel(ArmModel, Protocol):
    """An `ArmModel` for a contrast of two arms."""

    treatment: Any
    control: Any
    denominator: Any
