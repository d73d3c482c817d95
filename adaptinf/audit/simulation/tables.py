"""Tables of what was simulated, as Markdown and LaTeX."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.errors import ParameterError
from adaptinf.texts import literal


def check_columns(frame: pd.DataFrame, columns: Sequence[str], subject: str = "to_markdown") -> None:
    """Refuse columns that a table does not have."""
    unknown = [name for name in columns if name not in frame.columns]
    if unknown:
        raise ParameterError(subject, [f"the table has no column {name!r}" for name in unknown])


def markdown(frame: pd.DataFrame, digits: int = 4) -> str:
    """A frame as a Markdown table; what is not known stays empty."""
    lines = [list(map(str, frame.columns)), ["---"] * frame.shape[1]]
    lines += [[cell.replace("|", r"\|") for cell in row] for row in _cells(frame, digits)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def latex(frame: pd.DataFrame, title: str, notes: Sequence[str], digits: int = 4) -> str:
    """A frame as a LaTeX tabular under a title, each note a line below; what is not known stays empty."""
    # statsmodels takes a while to load
    from adaptinf.inference.results.summary import ResultSummary
    from adaptinf.inference.results.tables import plain_table

    aligns = "".join("l" if frame[name].dtype.kind == "O" else "r" for name in frame.columns)
    table = plain_table(_cells(frame, digits), list(map(str, frame.columns)), aligns)
    # statsmodels leaves the corner empty
    corner = table[0][0]
    corner.data, corner.datatype = str(frame.columns[0]), "stub"
    return ResultSummary(title, [table], notes).as_latex()


def _cells(frame: pd.DataFrame, digits: int) -> list[list[str]]:
    rows = frame.itertuples(index=False, name=None)
    return [[_written(value, digits) for value in row] for row in rows]


def _written(value: Any, digits: int) -> str:
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    if isinstance(value, (float, np.floating)):
        return "" if math.isnan(value) else f"{value:.{digits}f}"
    return literal(str(value))
