"""Tables of what was simulated, as Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.errors import ParameterError


def check_columns(frame: pd.DataFrame, columns: Sequence[str]) -> None:
    """Refuse columns that a table does not have."""
    unknown = [name for name in columns if name not in frame.columns]
    if unknown:
        raise ParameterError("to_markdown", [f"the table has no column {name!r}" for name in unknown])


def markdown(frame: pd.DataFrame, digits: int = 4) -> str:
    """A frame as a Markdown table; what is not known stays empty."""
    lines = [list(map(str, frame.columns)), ["---"] * frame.shape[1]]
    lines += [[_written(value, digits) for value in row] for row in frame.itertuples(index=False, name=None)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _written(value: Any, digits: int) -> str:
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    if isinstance(value, (float, np.floating)):
        return "" if math.isnan(value) else f"{value:.{digits}f}"
    return " ".join(str(value).replace("|", r"\|").split())
