"""What the notes under the table of `diagnose` ask of its checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.inference.diagnostics.results import Check, tests_among

if TYPE_CHECKING:
    import pandas as pd

    from adaptinf.inference.validity.profile import LogProfile
    from adaptinf.typing import FloatArray


class NotesFacts:
    """Checks that were made, and the tables behind them."""

    def __init__(
        self,
        profile: LogProfile,
        checks: Sequence[Check],
        tables: Mapping[str, pd.DataFrame],
        alpha: float,
    ) -> None:
        self.profile, self.tables, self.alpha = profile, tables, alpha
        self._tests = tests_among(checks)

    @property
    def tests(self) -> dict[str, Any]:
        """Number of tests, and their level together."""
        return {"tests": self._tests, "alpha": self.alpha} if self._tests else {}

    @property
    def _missed(self) -> FloatArray:
        """Drift that the tests would have found, of each arm and of all; empty without such tests."""
        frame = self.tables.get("drift")
        least = np.zeros(0) if frame is None else frame["could_be_missed"].to_numpy()
        return least if np.isfinite(least).any() else np.zeros(0)

    @property
    def missed(self) -> dict[str, Any]:
        """The smallest drift that would have been found, of all arms together or of the only one."""
        drift = "common drift" if len(self._missed) > 1 else "drift"
        return {"drift": drift, "least": self._missed[-1]} if len(self._missed) else {}

    @property
    def missed_alone(self) -> dict[str, float]:
        """The smallest of one arm, where there are several."""
        return {"least": np.nanmin(self._missed[:-1])} if len(self._missed) > 1 else {}
