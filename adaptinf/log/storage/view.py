"""The columns of a log, under the user's names and the canonical ones."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from numbers import Real
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from adaptinf.claims.logs import readings as claims
from adaptinf.errors import ParameterError
from adaptinf.log.provenance import Promises
from adaptinf.log.report import LogReport, Reading, reading_notes
from adaptinf.log.storage.stored import canonical_columns
from adaptinf.log.validation import RELEASE_COLUMNS, IncompleteArrays, Label, LogArrays
from adaptinf.parameters import Count, check
from adaptinf.texts import absent
from adaptinf.typing import IntArray


class LogColumns(Promises):
    """A log's columns; the arrays are the log itself, and a frame is created on request."""

    arrays: LogArrays
    arms: tuple[Label, ...]
    phases: tuple[str, ...]
    n_rounds: int
    """Number of rounds."""
    n_arms: int
    """Number of arms, chosen or not."""
    context: tuple[str, ...]
    """Names of the context columns."""
    outcomes: tuple[str, ...]
    """Names of the columns with additional outcomes."""
    units: NDArray[Any] | None
    """Unit of every round, shape (T,), if the log names units."""
    ids: NDArray[Any] | None
    """Identifier of every round's decision in other tables, shape (T,), if the log has them."""
    _frame: pd.DataFrame | None
    _releases: pd.DataFrame | Mapping[str, Any] | None
    _names: dict[Hashable, str] | None
    _rounds: NDArray[Any] | None
    _outcome_rounds: NDArray[Any] | None
    _also_read: tuple[Hashable, ...]
    _source: str
    _readings: tuple[Reading, ...]
    kept: dict[str, Any]
    """Values computed once by readers of the log and cached with it; not part of its content."""

    @property
    def columns(self) -> dict[Hashable, str]:
        """Canonical column names keyed by the user's own names."""
        if self._names is None:
            return {name: name for name in self._canonical_columns()}
        return dict(self._names)

    @property
    def read_columns(self) -> set[Hashable]:
        """The user's columns that were read, including columns of lists and of 0 and 1."""
        return {*self.columns, *self._also_read}

    def read_from(self, source: str, readings: Sequence[Reading] = ()) -> Self:
        """The log with its source and other processing added to the report; for readers."""
        self._source, self._readings = source, (*self._readings, *readings)
        return self

    @property
    def reading_notes(self) -> tuple[str, ...]:
        """Notes on rows sorted, converted or dropped on reading, and on arms and outcomes."""
        arrays, notes = self.arrays, list(reading_notes(self._readings))
        if arrays.received is not None:
            count = int(np.count_nonzero(arrays.received != arrays.action))
            notes.append(claims.BY_ASSIGNMENT(count=count, rounds=self.n_rounds))
        if late := self._late:
            notes.append(claims.LATE(late=late))
        return tuple(notes)

    @property
    def _late(self) -> int:
        """Number of observed outcomes that became known after a later choice."""
        if self.arrays.known is None:
            return 0
        late = self.arrays.known > np.arange(1, self.n_rounds + 1)
        return int(np.count_nonzero(late if self.arrays.observed is None else late & self.arrays.observed))

    @property
    def outcomes_told(self) -> tuple[str, ...]:
        """Lines on missing or late outcomes, and on received arms that differ from the assigned ones."""
        arrays, lines = self.arrays, []
        if arrays.observed is not None:
            count = int(np.count_nonzero(~arrays.observed))
            known = "" if arrays.observation is None else ", observation probabilities known"
            lines.append(claims.SHOWN_MISSING(count=count, meaning=self.missing, known=known))
        if arrays.received is not None:
            count = int(np.count_nonzero(arrays.received != arrays.action))
            lines.append(claims.SHOWN_RECEIVED(count=count))
        if arrays.known is not None:
            lines.append(claims.SHOWN_LATE(late=self._late))
        return tuple(f"  {line}" for line in lines)

    def _rounds_by_arm(self) -> IntArray:
        # Every fit needs these counts, so they are cached.
        if "rounds by arm" not in self.kept:
            self.kept["rounds by arm"] = np.bincount(self.arrays.action, minlength=self.n_arms)
        found: IntArray = self.kept["rounds by arm"]
        return found

    def filled(self, values: Any) -> Self:
        """The log with missing rewards replaced by numbers, which then count as rewards.

        Parameters
        ----------
        values : float, mapping of arm to float, or array of shape (T,)
            The replacement values; entries for rounds with an observed reward are not used.

        Returns
        -------
        AdaptiveLog
            A complete log; the original is not changed.

        Raises
        ------
        ParameterError
            If a value that is used is not finite or lies outside `reward_range`, or an arm has no value.

        Examples
        --------
        >>> import adaptinf as ai
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"arm": ["a", "b", "a"], "y": [1, None, 0]})
        >>> log = ai.AdaptiveLog(frame, action="arm", reward="y", missing="drop", reward_range=(0, 1))
        >>> log.filled(0.5).arrays.reward
        array([1. , 0.5, 0. ])
        """
        log, arrays = copy(self), self.arrays
        log.missing, log.kept, log._frame = None, {}, None
        if isinstance(arrays, IncompleteArrays):
            observed = arrays.observed
            given = self._by_round(values)
            used = given[~observed]
            low, high = self.reward_range or (-np.inf, np.inf)
            if not np.all(np.isfinite(used) & (used >= low) & (used <= high)):
                raise ParameterError(
                    "AdaptiveLog.filled", [f"values must be finite and within reward_range, got {used!r:.80}"]
                )
            log.arrays = arrays.complete(np.where(observed, arrays.recorded, given))
        return log

    def _by_round(self, values: Any) -> NDArray[Any]:
        """Numbers by round, shape (T,), from one value for all rounds or from values by arm or by round."""
        problem = "values must be a number, a number for every arm, or an array with one number per round"
        if isinstance(values, Mapping):
            if not all(isinstance(values.get(arm), Real) for arm in self.arms):
                raise ParameterError("AdaptiveLog.filled", [problem])
            return np.array([float(values[arm]) for arm in self.arms])[self.arrays.action]
        try:
            given = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise ParameterError("AdaptiveLog.filled", [problem]) from None
        if given.shape not in ((), (self.n_rounds,)):
            raise ParameterError("AdaptiveLog.filled", [f"{problem}; got shape {given.shape}"])
        return np.broadcast_to(given, (self.n_rounds,))

    @property
    def report(self) -> LogReport:
        """A report on reading: rounds, arms, outcomes, and anything that was sorted, converted or dropped."""
        pulls = self._rounds_by_arm().tolist()
        reward = self.arrays.recorded[np.isfinite(self.arrays.recorded)]
        names = {canonical: name for name, canonical in (self._names or {}).items()}
        told = f"column {names.get('reward', 'reward')!r}, {len(reward):,} numbers"
        if len(reward):
            told += f" from {reward.min():.6g} to {reward.max():.6g}"
        arms = dict(zip(self.arms, pulls, strict=True))
        return LogReport(self._source, self.n_rounds, arms, told, self._readings)

    @property
    def dates(self) -> NDArray[np.datetime64] | None:
        """Time at which each round began, shape (T,), if ``round=`` was a column of times; otherwise None."""
        dated = self._rounds is not None and self._rounds.dtype.kind == "M"
        return self._rounds if dated else None

    @property
    def releases(self) -> pd.DataFrame:
        """Private releases: round, name, group, value, mechanism and scale; empty if there are none."""
        if not isinstance(self._releases, pd.DataFrame):
            self._releases = pd.DataFrame(self._releases or {}, columns=list(RELEASE_COLUMNS))
        return self._releases

    @property
    def frame(self) -> pd.DataFrame:
        """Canonical columns as a pandas frame; a fresh copy, so changes do not affect the log."""
        if self._frame is None:
            self._frame = pd.DataFrame(self._canonical_columns())
        return self._frame.copy(deep=False)

    def head(self, n: int = 5) -> pd.DataFrame:
        """The first rows of `frame`.

        Parameters
        ----------
        n : int
            Number of rows, 0 or more.

        Returns
        -------
        DataFrame
            A frame with the canonical column names.

        Raises
        ------
        ParameterError
            If `n` is not a nonnegative whole number.

        Examples
        --------
        >>> import adaptinf as ai
        >>> log = ai.designs.UCB().run(ai.environments.BernoulliArms([0.4, 0.6]), horizon=50, rng=0)
        >>> log.head(2)[["t", "action", "reward"]]
           t  action  reward
        0  1       0     0.0
        1  2       1     1.0
        """
        check("AdaptiveLog.head", n=(n, Count(0)))
        return pd.DataFrame({name: values[: int(n)] for name, values in self._canonical_columns().items()})

    def __len__(self) -> int:
        return self.n_rounds

    def column(self, name: str) -> NDArray[Any]:
        """One column, by the user's name or by its canonical name.

        Parameters
        ----------
        name : str
            A name such as ``"y"`` or ``"reward"``.

        Returns
        -------
        ndarray, shape (T,)
            The values of the column; labels for actions and phases.

        Raises
        ------
        ParameterError
            If the log has no such column.
        """
        canonical = name if self._names is None else self._names.get(name, name)
        columns = self._canonical_columns()
        if canonical not in columns:
            known = list(dict.fromkeys([*(self._names or {}), *columns]))
            raise ParameterError("AdaptiveLog.column", [absent("column", name, known, "the log has")])
        return columns[canonical]

    @property
    def rounds_told(self) -> tuple[str, ...]:
        """Printed lines on rounds, arms and the design."""
        arms = ", ".join(map(repr, self.arms[:8])) + (", ..." if self.n_arms > 8 else "")
        return (
            f"AdaptiveLog: {self.n_rounds:,} rounds, {self.n_arms} arms ({arms})",
            f"  design: {'unknown' if self.design is None else self.design.name}{self.adaptive_told}",
            *self.stopping_told,
        )

    @property
    def propensities_told(self) -> str:
        """Printed text on how propensities are known."""
        known = ", chosen arm only" if self.arrays.propensities is None else ", every arm"
        return f"  propensities: {self.propensity_status}{'' if self.arrays.propensity is None else known}"

    def _canonical_columns(self) -> dict[str, NDArray[Any]]:
        return canonical_columns(
            self.arrays, self.arms, self.phases, self._rounds, self.units, self._outcome_rounds, self.ids
        )
