"""Parts of a confidence sequence: a quantity and its scores, a method, and settings for a log."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from adaptinf.inference.sequences.sides import Side
from adaptinf.typing import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Scores for one quantity: evidence that the quantity is larger, and evidence that it is smaller.

    Shapes: lower (n,), upper (n,), lower_floor, upper_floor (n,), counts (T,).
    """

    lower: FloatArray
    upper: FloatArray
    lower_floor: FloatArray | None
    upper_floor: FloatArray | None
    counts: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """A quantity as a weighted sum of the arms' mean rewards; arms (T, K)."""

    arms: FloatArray
    negative: float
    positive: float
    by_context: bool = False

    def ratios(self, action: IntArray, propensity: FloatArray) -> FloatArray:
        """Weights of chosen arms, divided by propensities; action, propensity (T,), returns (T,)."""
        own = self.arms[np.arange(len(action)), action]
        return np.asarray(own / propensity, dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """One quantity: its arms, for sequences that use the arms' own rewards, and its weights, for scores.

    Scores exist for the rounds in which all arms in `among` could be chosen.
    """

    codes: tuple[int, ...]
    weights: Weights
    among: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Looks:
    """Information about scores after each of the n batches that have scores.

    Shapes: total, count, spread, clock (n,), counts (B,). `total` is the sum of the scores so far, `count` is
    their number, `spread` is their variance, and `clock` is the number of rewards that the scores use.
    `counts` is the number of the n batches that are complete after each batch.

    Scores are on the scale of `origin` and `width`, on which bounded rewards have means in [0, 1].
    """

    total: FloatArray
    count: FloatArray
    spread: FloatArray
    clock: IntArray
    counts: IntArray
    origin: float
    width: float

    @property
    def std_error(self) -> float:
        """Standard error of the mean of the scores after the last batch, in units of the reward."""
        count = float(self.count[-1]) if len(self.count) else 0.0
        return self.width * math.sqrt(self.spread[-1] / (count - 1.0)) if count > 1.0 else math.nan


@dataclass(frozen=True, slots=True, eq=False)
class ScoreLaw:
    """Distribution of the scores of one side, which are not below a floor; values, shares (j,)."""

    values: FloatArray
    shares: FloatArray
    floor: float

    @property
    def mean(self) -> float:
        """Expectation of the scores."""
        return float(self.shares @ self.values)

    @property
    def variance(self) -> float:
        """Variance of the scores."""
        return float(self.shares @ (self.values - self.mean) ** 2)


@dataclass(frozen=True, slots=True, eq=False)
class SequenceMethod:
    """One confidence sequence.

    `options` are the tuning arguments of this method. `bounds` indicates, for each estimator, whether the
    bounds of the estimator's scores must be known. `bets` indicates that the method has a wealth for either
    side, with half of alpha each, for scores that need no upper bound. `two_valued` indicates whether the
    sequence is for sample means of rewards that are always at one end of their range. `offered` indicates
    whether the sequence is suggested in error messages. `distance` is the expected distance of one side's
    bound from the mean, for methods that are not normal mixtures. `batch_sides` computes the sides if sums of
    scores are known only at the ends of batches; it is None if such sums are insufficient.
    """

    name: str
    kind: str
    sides: Callable[[Scores, IntArray, Settings], tuple[Side, Side]]
    bounds: Callable[[str], bool]
    options: tuple[str, ...] = ()
    bets: bool = False
    anytime: bool = True
    two_valued: bool = False
    offered: bool = False
    distance: Callable[[ScoreLaw, float, FloatArray, FloatArray], float] | None = None
    batch_sides: Callable[[Looks, Settings], tuple[Side, Side]] | None = None

    @property
    def title(self) -> str:
        """The name of the sequence for use in a sentence."""
        return f"{self.kind} confidence sequence"

    @property
    def label(self) -> str:
        """The label of the sequence if it is valid."""
        return "anytime" if self.anytime else "asymptotic"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a sequence that the log supports."""

    method: SequenceMethod
    estimator: str
    alpha: float
    sigma: float | None
    floor: float | None
    t_opt: float
    start: int
    low: float
    width: float
    bounded: bool

    @property
    def lowest(self) -> float:
        """The smallest mean that scores can have."""
        return 0.0 if self.bounded else -math.inf
