"""Plain records that a log is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from adaptinf.log.traits import DesignTraits
from adaptinf.typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class LogArrays:
    """The columns of a log as NumPy arrays, one entry a round.

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
    """

    action: IntArray
    reward: FloatArray
    propensity: FloatArray | None = None
    propensities: FloatArray | None = None
    batch: IntArray | None = None
    phase: IntArray | None = None
    randomised: BoolArray | None = None
    context: dict[str, NDArray[Any]] = field(default_factory=dict)


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
    """

    name: str
    parameters: dict[str, Any] = field(default_factory=dict)
    traits: DesignTraits | None = None
