"""Plain records that a log is made of."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from adaptinf.errors import InvalidForLog
from adaptinf.log.traits import DesignTraits
from adaptinf.typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class LogArrays:
    """The columns of a log as NumPy arrays, one entry per round.

    Attributes
    ----------
    action : ndarray of int64, shape (T,)
        Codes into the arms of the log.
    reward : ndarray of float64, shape (T,)
        Rewards, in the user's units.
    propensity : ndarray of float64, shape (T,), or None
        Probability of the chosen arm, given everything before the choice.
    propensities : ndarray of float64, shape (T, K), or None
        Probability of every arm.
    batch : ndarray of int64, shape (T,), or None
        Batch numbers 0, 1, 2, ... that never decrease.
    phase : ndarray of int64, shape (T,), or None
        Codes into the phases of the log.
    randomised : ndarray of bool, shape (T,), or None
        Rounds whose arm was drawn with fixed probabilities.
    context : dict of str to ndarray, shape (T,)
        Context columns by name.
    received : ndarray of int64, shape (T,), or None
        Codes of the arms that were received, where the log tells them from the assigned ones in `action`.
    known : ndarray of int64, shape (T,), or None
        Number of rounds that had begun when the round's outcome became known, its own among them: the choice
        of row ``known[t]``, counted from 0, was the first that it could move.
    observation : ndarray of float64, shape (T,), or None
        Probability that the round's outcome is observed.
    outcomes : dict of str to ndarray of float64, shape (T,)
        Further outcomes by name, which the choice of the round's arm may have moved.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> from adaptinf.log import LogArrays
    >>> arrays = LogArrays(action=np.array([0, 1, 0]), reward=np.array([1.0, 0.0, 1.0]))
    >>> ai.AdaptiveLog.from_arrays(arrays, arms=("a", "b")).arms
    ('a', 'b')
    """

    action: IntArray
    reward: FloatArray
    propensity: FloatArray | None = None
    propensities: FloatArray | None = None
    batch: IntArray | None = None
    phase: IntArray | None = None
    randomised: BoolArray | None = None
    context: dict[str, NDArray[Any]] = field(default_factory=dict)
    received: IntArray | None = None
    known: IntArray | None = None
    observation: FloatArray | None = None
    outcomes: dict[str, FloatArray] = field(default_factory=dict)
    observed: ClassVar[BoolArray | None] = None
    """Rounds whose reward is observed, shape (T,); None where all are, as in a complete log."""

    @property
    def recorded(self) -> FloatArray:
        """Rewards with NaN where they are missing, shape (T,)."""
        return self.reward

    def by_field(self) -> dict[str, Any]:
        """The columns by field, rewards with NaN where they are missing."""
        names = [each.name for each in fields(self) if each.name != "reward"]
        return {**{name: getattr(self, name) for name in names}, "reward": self.recorded}


class IncompleteArrays(LogArrays):
    """The columns of a log some of whose rewards are missing.

    Reading `reward` is refused, so that no method takes what is missing for a number: those that know what a
    missing reward means read `recorded` and `observed`.
    """

    __slots__ = ("_recorded",)
    _recorded: FloatArray

    @property
    def reward(self) -> FloatArray:
        """Refused: some are missing."""
        count = int(np.count_nonzero(np.isnan(self._recorded)))
        raise InvalidForLog(
            "this use of rewards",
            f"{count:,} of {len(self._recorded):,} rewards are missing",
            (
                "ArmMeans and Contrast with estimator='aipw' (missing='drop', or observation=)",
                "ArmMeans and Contrast with any estimator (missing='worst' or 'best')",
                "AdaptiveLog.filled, which puts a number in their place",
            ),
        )

    @reward.setter
    def reward(self, values: FloatArray) -> None:
        object.__setattr__(self, "_recorded", values)

    @property
    def observed(self) -> BoolArray:  # type: ignore[override]
        """Rounds whose reward is observed, shape (T,)."""
        return ~np.isnan(self._recorded)

    @property
    def recorded(self) -> FloatArray:
        """Rewards with NaN where they are missing, shape (T,)."""
        return self._recorded

    def complete(self, reward: FloatArray) -> LogArrays:
        """The same columns with other rewards; reward (T,)."""
        return LogArrays(**{**self.by_field(), "reward": reward})

    def __repr__(self) -> str:
        return (
            f"IncompleteArrays({', '.join(f'{name}={value!r}' for name, value in self.by_field().items())})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _incomplete, (self.by_field(),)


def _incomplete(columns: dict[str, Any]) -> IncompleteArrays:
    """Arrays from what was pickled."""
    return IncompleteArrays(**columns)


@dataclass(frozen=True, slots=True)
class DesignRecord:
    """Name and parameters of the design that gathered a log.

    Attributes
    ----------
    name : str
        The design, such as ``"PrivateUCB"``.
    parameters : dict of str to object
        Its parameters as plain values: numbers, strings, None, arrays, and lists, tuples or dicts of these.
    traits : DesignTraits or None
        What it says about itself. None where nothing is known but the name, which decides nothing: rewards
        and contexts may then have moved the choice of arms.

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.EpsilonGreedy(exploration=0.2)
    >>> log = design.run(ai.environments.BernoulliArms([0.2, 0.8]), horizon=100, rng=0)
    >>> log.design.name, log.design.parameters["exploration"]
    ('EpsilonGreedy', 0.2)
    """

    name: str
    parameters: dict[str, Any] = field(default_factory=dict)
    traits: DesignTraits | None = None
