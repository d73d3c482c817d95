"""Times of a file that is read in batches: with a zone in all rows, or in none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from adaptinf.formats.tables import column_of
from adaptinf.log.validation.row_order import read_times
from adaptinf.typing import BoolArray


class Clock:
    """Reads times, and remembers one of them."""

    def __init__(self) -> None:
        self._known: list[Any] = []

    def read(self, texts: Sequence[Any]) -> tuple[NDArray[np.datetime64], BoolArray]:
        """Times in UTC and what is none, or is with a zone or without against those before; (n,) each."""
        frame = pd.DataFrame({"time": [*self._known, *texts]}, dtype=object)
        times, wrong = read_times(column_of(frame, "time"))
        skipped = len(self._known)
        values, bad = np.asarray(times.values, dtype="datetime64[us]"), wrong | times.missing
        bad = bad[skipped:] | bad[:skipped].any()
        if not skipped and not bad.all():
            self._known.append(texts[int(np.argmin(bad))])
        return values[skipped:], bad
