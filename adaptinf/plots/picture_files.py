"""Plots and tables as files with reproducible bytes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from adaptinf.errors import ParameterError
from adaptinf.files import atomic_write
from adaptinf.inference.results.tables import escape_markdown
from adaptinf.parameters import COUNT, Number
from adaptinf.plots.style import pyplot
from adaptinf.texts import csv_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_PICTURES, _TABLES = (".png", ".svg"), (".csv", ".md")
_DIGITS = 10
_UNTOLD: dict[str, dict[str, None]] = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}


def save(picture: Any, path: str | Path, *, dpi: float = 300.0) -> tuple[Path, Path]:
    """Write a plot as PNG and as SVG.

    Parameters
    ----------
    picture : Axes or Figure
        The plot to write; if axes are given, their whole figure is written.
    path : str or Path
        File name, with or without the extension; its folder must exist.
    dpi : float
        Resolution of the PNG in dots per inch.

    Returns
    -------
    (Path, Path)
        Paths of the two files.

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    ParameterError
        If arguments are inconsistent; the message lists every problem.
    FileError
        If a file cannot be written; an existing file is left unchanged.

    Notes
    -----
    The files contain neither the time nor random names: the same plot gives the same bytes, provided that
    matplotlib and its fonts have the same versions.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [file.name for file in ai.plots.save(ai.plots.figure()[0], f"{folder}/empty")]
    ['empty.png', 'empty.svg']
    """
    pyplot("plots.save")
    owner, problems = _figure_of(picture)
    stem, found = _stem(path, _PICTURES)
    problems += found + Number(10.0, 2400.0)("dpi", dpi)
    if problems or owner is None:
        raise ParameterError("plots.save", problems)
    files = (stem.with_name(f"{stem.name}.png"), stem.with_name(f"{stem.name}.svg"))
    for file in files:
        _write(file, drawn(owner, file.suffix[1:], float(dpi)))
    return files


def drawn(owner: Figure, form: str, dpi: float = 300.0) -> bytes:
    """A figure as PNG or SVG, without timestamps and random names."""
    written = io.BytesIO()
    with pyplot("plots.save").rc_context({"svg.hashsalt": "adaptinf", "svg.fonttype": "path"}):
        owner.savefig(written, format=form, dpi=dpi, metadata=_UNTOLD[form])
    return written.getvalue()


def save_table(table: Any, path: str | Path, *, digits: int = 4) -> tuple[Path, Path]:
    """Write a table as CSV and as Markdown.

    Parameters
    ----------
    table : DataFrame, or a result
        A frame, or an object with ``to_frame()`` (results, comparisons) or a ``frame`` (studies, coverage).
        An index other than 0, 1, ... becomes the first column.
    path : str or Path
        File name, with or without the extension; its folder must exist.
    digits : int
        Significant digits in the Markdown file; the CSV file has ten.

    Returns
    -------
    (Path, Path)
        Paths of the two files.

    Raises
    ------
    ParameterError
        If arguments are inconsistent; the message lists every problem.
    FileError
        If a file cannot be written; an existing file is left unchanged.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> import pandas as pd
    >>> import tempfile
    >>> frame = pd.DataFrame({"arm": ["a", "b"], "mean": [1 / 3, np.nan], "pulls": [1200, 0]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     csv, markdown = ai.plots.save_table(frame, f"{folder}/means")
    ...     print(csv.read_text() + markdown.read_text())
    arm,mean,pulls
    a,0.3333333333,1200
    b,,0
    | arm | mean | pulls |
    | --- | ---: | ---: |
    | a | 0.3333 | 1,200 |
    | b |  | 0 |
    """
    frame, problems = _frame_of(table)
    stem, found = _stem(path, _TABLES)
    problems += found + COUNT("digits", digits)
    if problems or frame is None:
        raise ParameterError("plots.save_table", problems)
    files = (stem.with_name(f"{stem.name}.csv"), stem.with_name(f"{stem.name}.md"))
    text = csv_text(frame, f"%.{_DIGITS}g")
    for file, content in zip(files, (text, _markdown(frame, int(digits))), strict=True):
        _write(file, content.encode())
    return files


def _write(path: Path, content: bytes) -> None:
    atomic_write(path, lambda file: file.write(content))


def _figure_of(picture: Any) -> tuple[Figure | None, list[str]]:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    if isinstance(picture, Axes):
        owner: Any = picture.get_figure(root=True)
        return owner, [] if owner is not None else ["the axes no longer belong to a figure"]
    if isinstance(picture, Figure):
        return picture, []
    return None, [f"picture must be Axes or a Figure of matplotlib, got {picture!r:.60}"]


def _stem(path: Any, endings: tuple[str, str]) -> tuple[Path, list[str]]:
    """Path without any of the given extensions."""
    if not isinstance(path, (str, Path)) or not Path(path).name or "\0" in str(path):
        return Path(), [f"path must name a file, got {path!r:.60}"]
    given = Path(path)
    stem = given.with_suffix("") if given.suffix.lower() in endings else given
    if not stem.parent.is_dir():
        return stem, [f"the folder {stem.parent} does not exist: create it first"]
    return stem, []


def _frame_of(table: Any) -> tuple[pd.DataFrame | None, list[str]]:
    if not isinstance(table, pd.DataFrame):
        maker = getattr(table, "to_frame", None)
        table = maker() if callable(maker) else getattr(table, "frame", table)
    if not isinstance(table, pd.DataFrame):
        return None, [
            f"table must be a DataFrame, or have a method to_frame or an attribute frame, got {table!r:.60}"
        ]
    if table.shape[1] == 0:
        return None, ["the table has no columns"]
    plain = isinstance(table.index, pd.RangeIndex) and table.index.name is None
    return (table if plain else table.reset_index()), []


def _markdown(frame: pd.DataFrame, digits: int) -> str:
    """A frame in Markdown: numbers are right-aligned, and unknown values are empty."""
    numeric = [pd.api.types.is_numeric_dtype(frame.iloc[:, i]) for i in range(frame.shape[1])]
    lines = [[escape_markdown(str(name)) for name in frame.columns]]
    lines.append(["---:" if number else "---" for number in numeric])
    lines += [[_written(value, digits) for value in row] for row in frame.itertuples(index=False, name=None)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _written(value: Any, digits: int) -> str:
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    if isinstance(value, (float, np.floating)):
        return _number(float(value), digits)
    return "" if value is None or value is pd.NA or value is pd.NaT else escape_markdown(str(value))


def _number(value: float, digits: int) -> str:
    if np.isnan(value):
        return ""
    size = abs(value)
    if np.isinf(value) or (size > 0.0 and not 1e-4 <= size < 1e9):
        return f"{value:.{digits}g}"
    if size >= 10.0**digits:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"
