"""Components of a confidence sequence: a quantity and its scores, a method, and its settings on a log."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from adaptinf.inference.sequences.sides import Side
from adaptinf.typing import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Scores for one quantity: evidence that it is larger, and evidence that it is smaller.

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
        """Weights of the chosen arms over their propensities; action, propensity (T,), returns (T,)."""
        own = self.arms[np.arange(len(action)), action]
        return np.asarray(own / propensity, dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """One quantity: its arms, for sequences of their own rewards, and its weights, for scores.

    Scores are for the rounds in which all arms in `among` could be chosen.
    """

    codes: tuple[int, ...]
    weights: Weights
    among: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Looks:
    """Information about scores after each of n batches that have some.

    Shapes: total (n,), their sum so far; count (n,), their number; spread (n,), their variance; clock (n,),
    the number of rewards behind them; counts (B,), how many of the n batches are complete after each batch.

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
        """Standard error of their mean after the last batch, in units of the reward."""
        count = float(self.count[-1]) if len(self.count) else 0.0
        return self.width * math.sqrt(self.spread[-1] / (count - 1.0)) if count > 1.0 else math.nan


@dataclass(frozen=True, slots=True, eq=False)
class ScoreLaw:
    """Distribution of one side's scores, which are at least a floor; values, shares (j,)."""

    values: FloatArray
    shares: FloatArray
    floor: float

    @property
    def mean(self) -> float:
        """Expectation."""
        return float(self.shares @ self.values)

    @property
    def variance(self) -> float:
        """Variance."""
        return float(self.shares @ (self.values - self.mean) ** 2)


@dataclass(frozen=True, slots=True, eq=False)
class SequenceMethod:
    """One confidence sequence.

    `options` are its own tuning arguments; `bounds` indicates, for each estimator, whether the bounds of its
    scores must be known. `bets` indicates a wealth for either side, with half of alpha each, on scores that
    need no upper bound. `two_valued` indicates whether the sequence is for sample means of rewards that are
    always at one end of their range. `offered` indicates whether it is suggested in error messages.
    `distance` is the expected distance of one side's bound from the mean, for those whose wealth has its own
    form. `batch_sides` are the sides if sums of scores are known only at the ends of batches, None if these
    are insufficient.
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
        """Its name as used in a sentence."""
        return f"{self.kind} confidence sequence"

    @property
    def label(self) -> str:
        """The label of the sequence if it is valid."""
        return "anytime" if self.anytime else "asymptotic"


@dataclass(frozen=True, slots=True)
class Settings:
    """A sequence that the log supports, with its settings."""

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
