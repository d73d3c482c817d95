"""Tables of what was simulated, as Markdown and LaTeX."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.errors import ParameterError
from adaptinf.markup import numbered_notes, table
from adaptinf.texts import absent, literal


def check_columns(frame: pd.DataFrame, columns: Sequence[str], subject: str = "to_markdown") -> None:
    """Refuse columns that a table does not have."""
    unknown = [name for name in columns if name not in frame.columns]
    if unknown:
        raise ParameterError(subject, [absent("column", name, list(frame.columns)) for name in unknown])


def markdown(frame: pd.DataFrame, digits: int = 4) -> str:
    """A frame as a Markdown table; what is not known stays empty."""
    lines = [list(map(str, frame.columns)), ["---"] * frame.shape[1]]
    lines += [[cell.replace("|", r"\|") for cell in row] for row in _cells(frame, digits)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def hypertext(frame: pd.DataFrame, caption: str, notes: Sequence[str], digits: int = 4) -> str:
    """A frame as an HTML table with its caption and a list of notes; what is not known stays empty."""
    rows = table(list(map(str, frame.columns)), _cells(frame, digits), caption)
    return "\n".join([rows, numbered_notes(notes)])


def latex(frame: pd.DataFrame, title: str, notes: Sequence[str], digits: int = 4) -> str:
    """A frame as a LaTeX tabular under a title, each note a line below; what is not known stays empty."""
    # statsmodels takes a while to load
    from adaptinf.inference.results.summary import ResultSummary
    from adaptinf.inference.results.tables import plain_table

    aligns = "".join("l" if frame[name].dtype.kind == "O" else "r" for name in frame.columns)
    tabular = plain_table(_cells(frame, digits), list(map(str, frame.columns)), aligns)
    # statsmodels leaves the corner empty
    corner = tabular[0][0]
    corner.data, corner.datatype = str(frame.columns[0]), "stub"
    return ResultSummary(title, [tabular], notes).as_latex()


def _cells(frame: pd.DataFrame, digits: int) -> list[list[str]]:
    rows = frame.itertuples(index=False, name=None)
    return [[_written(value, digits) for value in row] for row in rows]


def _written(value: Any, digits: int) -> str:
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    if isinstance(value, (float, np.floating)):
        return "" if math.isnan(value) else f"{value:.{digits}f}"
    return literal(str(value))
