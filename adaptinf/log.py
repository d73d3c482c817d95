"""AdaptiveLog: what a design writes and every method of inference reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from adaptinf.errors import ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.typing import BoolArray, FloatArray, IntArray

__all__ = ["RELEASE_COLUMNS", "AdaptiveLog", "DesignRecord", "LogArrays"]

Label: TypeAlias = Any
RELEASE_COLUMNS = ("round", "name", "group", "value", "mechanism", "scale")


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
    """

    name: str
    parameters: dict[str, Any] = field(default_factory=dict)


class AdaptiveLog:
    """A log of adaptively gathered data."""

    __slots__ = (
        "_columns",
        "_frame",
        "_releases",
        "_rounds",
        "_units",
        "adaptive_rounds",
        "arms",
        "arrays",
        "design",
        "guarantee",
        "noise",
        "phases",
        "propensity_status",
        "recommended",
        "reward_guarantee",
        "reward_range",
    )

    arrays: LogArrays
    arms: tuple[Label, ...]
    phases: tuple[str, ...]
    reward_range: tuple[float, float] | None
    propensity_status: str
    guarantee: PrivacyGuarantee | None
    reward_guarantee: PrivacyGuarantee | None
    design: DesignRecord | None
    noise: str | None
    adaptive_rounds: int | None
    recommended: Label | None

    @classmethod
    def from_arrays(
        cls,
        arrays: LogArrays,
        *,
        arms: Sequence[Label],
        phases: Sequence[str] = (),
        reward_range: tuple[float, float] | None = None,
        propensity_status: str | None = None,
        guarantee: PrivacyGuarantee | None = None,
        reward_guarantee: PrivacyGuarantee | None = None,
        design: DesignRecord | None = None,
        noise: str | None = None,
        releases: pd.DataFrame | Mapping[str, Any] | None = None,
        adaptive_rounds: int | None = None,
        recommended: Label | None = None,
    ) -> AdaptiveLog:
        """Log from arrays that are known to be right: nothing is checked and nothing is copied.

        Parameters
        ----------
        arrays : LogArrays
            The columns.
        arms : sequence of labels
            Arm labels: plain int, str, bool or float; ``arrays.action`` holds positions in it.
        phases : sequence of str
            Names of the phases that ``arrays.phase`` holds positions in.
        reward_range : (float, float), optional
            Smallest and largest possible reward.
        propensity_status : {"exact", "estimated", "absent"}, optional
            By default exact where there are propensities, absent where there are none.
        guarantee, reward_guarantee : PrivacyGuarantee, optional
            What the design promises; the second is for one round's rewards, by default what the first implies.
        design : DesignRecord, optional
            What gathered the log.
        noise : {"simulation", "release"}, optional
            Backend of the privacy noise.
        releases : DataFrame or mapping of columns, optional
            Columns round, name, group, value, mechanism and scale.
        adaptive_rounds : int, optional
            Number of rounds whose reward can change a later action; None where unknown.
        recommended : label, optional
            The arm that a best-arm design named.

        Returns
        -------
        AdaptiveLog
            Its frame is built when it is first asked for.

        Examples
        --------
        >>> import numpy as np
        >>> arrays = LogArrays(action=np.array([0, 1, 0]), reward=np.array([1.0, 0.0, 1.0]))
        >>> AdaptiveLog.from_arrays(arrays, arms=("a", "b")).frame
           t action  reward
        0  1      a     1.0
        1  2      b     0.0
        2  3      a     1.0
        """
        log = cls.__new__(cls)
        log.arrays = arrays
        log.arms = tuple(arms)
        log.phases = tuple(phases)
        log.reward_range = reward_range
        log.propensity_status = propensity_status or ("absent" if arrays.propensity is None else "exact")
        log.guarantee = guarantee
        if reward_guarantee is None and guarantee is not None:
            reward_guarantee = guarantee.reward_level()
        log.reward_guarantee = reward_guarantee
        log.design = design
        log.noise = noise
        log.adaptive_rounds = adaptive_rounds
        log.recommended = recommended
        log._columns = None
        log._frame = None
        log._releases = releases
        log._rounds = None
        log._units = None
        return log

    @property
    def n_rounds(self) -> int:
        """Number of rounds."""
        return len(self.arrays.action)

    @property
    def n_arms(self) -> int:
        """Number of arms, chosen or not."""
        return len(self.arms)

    @property
    def context(self) -> tuple[str, ...]:
        """Names of the context columns."""
        return tuple(self.arrays.context)

    @property
    def columns(self) -> dict[str, str]:
        """Canonical column names by the user's own names."""
        if self._columns is None:
            return {name: name for name in self.frame.columns}
        return dict(self._columns)

    @property
    def releases(self) -> pd.DataFrame:
        """Private releases: round, name, group, value, mechanism and scale; empty where there are none."""
        if not isinstance(self._releases, pd.DataFrame):
            self._releases = pd.DataFrame(self._releases or {}, columns=list(RELEASE_COLUMNS))
        return self._releases

    @property
    def frame(self) -> pd.DataFrame:
        """Canonical columns as a pandas frame: a fresh one, so that changing it does not change the log."""
        if self._frame is None:
            self._frame = pd.DataFrame(self._canonical_columns())
        return self._frame.copy(deep=False)

    def column(self, name: str) -> NDArray[Any]:
        """One column by the user's name for it or by its canonical name.

        Parameters
        ----------
        name : str
            Such as ``"y"`` or ``"reward"``.

        Returns
        -------
        ndarray, shape (T,)
            Its values; labels for actions and phases.

        Raises
        ------
        ParameterError
            If the log has no such column.
        """
        canonical = name if self._columns is None else self._columns.get(name, name)
        columns = self._canonical_columns()
        if canonical not in columns:
            known = ", ".join(map(str, dict.fromkeys([*(self._columns or {}), *columns])))
            raise ParameterError("AdaptiveLog.column", [f"there is no column {name!r}; the log has {known}"])
        return columns[canonical]

    def _canonical_columns(self) -> dict[str, NDArray[Any]]:
        """Columns of the frame in order."""
        arrays = self.arrays
        rounds = np.arange(1, self.n_rounds + 1) if self._rounds is None else self._rounds
        named: dict[str, NDArray[Any] | None] = {
            "t": rounds,
            "unit_id": self._units,
            "action": _label_array(self.arms)[arrays.action],
            "reward": arrays.reward,
            "propensity": arrays.propensity,
        }
        if arrays.propensities is not None:
            for code, arm in enumerate(self.arms):
                named[f"propensity_{arm}"] = arrays.propensities[:, code]
        named["batch"] = arrays.batch
        named["phase"] = None if arrays.phase is None else _label_array(self.phases)[arrays.phase]
        named["randomised"] = arrays.randomised
        named.update(arrays.context)
        return {name: values for name, values in named.items() if values is not None}


def _label_array(labels: Sequence[Label]) -> NDArray[Any]:
    """Labels as an array that keeps each one's type: native for numbers of one type, otherwise objects."""
    kinds = {type(label) for label in labels}
    if len(kinds) == 1 and kinds <= {int, float, bool}:
        array = np.array(labels)
        if array.dtype.kind in "ifb":
            return array
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array
