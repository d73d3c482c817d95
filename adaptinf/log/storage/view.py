"""The columns of a log, by the user's names and by the canonical ones."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from adaptinf.errors import ParameterError
from adaptinf.log.promises import Promises
from adaptinf.log.report import LogReport, Reading
from adaptinf.log.storage.stored import canonical_columns
from adaptinf.log.validation import RELEASE_COLUMNS, Label, LogArrays


class LogColumns(Promises):
    """What a log shows of its columns; the arrays are the log, a frame is made when it is asked for."""

    arrays: LogArrays
    arms: tuple[Label, ...]
    phases: tuple[str, ...]
    n_rounds: int
    """Number of rounds."""
    n_arms: int
    """Number of arms, chosen or not."""
    context: tuple[str, ...]
    """Names of the context columns."""
    units: NDArray[Any] | None
    """Unit of every round, shape (T,), where the log names them."""
    _frame: pd.DataFrame | None
    _releases: pd.DataFrame | Mapping[str, Any] | None
    _names: dict[Hashable, str] | None
    _rounds: NDArray[Any] | None
    _source: str
    _readings: tuple[Reading, ...]
    kept: dict[str, Any]
    """What readers of the log computed once and keep with it; it is no part of the log's content."""

    @property
    def columns(self) -> dict[Hashable, str]:
        """Canonical column names by the user's own names."""
        if self._names is None:
            return {name: name for name in self._canonical_columns()}
        return dict(self._names)

    @property
    def report(self) -> LogReport:
        """What was read: rounds, arms, outcomes, and what was put in order, converted or dropped."""
        pulls = np.bincount(self.arrays.action, minlength=self.n_arms).tolist()
        reward = self.arrays.reward[np.isfinite(self.arrays.reward)]
        names = {canonical: name for name, canonical in (self._names or {}).items()}
        told = f"column {names.get('reward', 'reward')!r}, {len(reward):,} numbers"
        if len(reward):
            told += f" from {reward.min():.6g} to {reward.max():.6g}"
        arms = dict(zip(self.arms, pulls, strict=True))
        return LogReport(self._source, self.n_rounds, arms, told, self._readings)

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
        canonical = name if self._names is None else self._names.get(name, name)
        columns = self._canonical_columns()
        if canonical not in columns:
            known = ", ".join(map(str, dict.fromkeys([*(self._names or {}), *columns])))
            raise ParameterError("AdaptiveLog.column", [f"there is no column {name!r}; the log has {known}"])
        return columns[canonical]

    def _canonical_columns(self) -> dict[str, NDArray[Any]]:
        return canonical_columns(self.arrays, self.arms, self.phases, self._rounds, self.units)
