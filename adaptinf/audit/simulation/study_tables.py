"""The results of a study."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from adaptinf.audit.simulation.engine import DESIGN_TIME
from adaptinf.audit.simulation.measures import (
    SHOWN,
    check_columns,
    hypertext,
    latex,
    markdown,
    numbered,
    plain,
)
from adaptinf.audit.simulation.study_folder import Damaged, Folder, identity, read_manifest
from adaptinf.errors import ParameterError
from adaptinf.files import as_path, atomic_write
from adaptinf.parameters import refuse
from adaptinf.texts import absent, csv_text

_WHOLE = ("horizon", "runs", "missing", "invalid", "failed", "absent")
_TEXT = ("design", "environment", "analysis", "term", "note")
_PLACE = ("design", "environment", "horizon")
_SHOWN = (*SHOWN, "regret", "regret_se")


@dataclass(frozen=True, eq=False)
class Study:
    """Tables of a study.

    Attributes
    ----------
    frame : DataFrame
        One row per design, environment, horizon, analysis and term. `truth`: the true value; `null`: the null
        value. `runs`: trials with an interval; `missing` and `missing_share`: trials with a result but no
        interval, and their share; `invalid`: trials whose log does not support the analysis; `failed`: trials
        in which the analysis raised an error; `absent`: trials whose result lacks the row. The five counts
        add up to the replications, and `note` gives reasons with their number of trials. Among the trials
        with an interval: `coverage`; `below` and `above`: shares of intervals entirely below or above the
        truth; `rejected`: share of intervals that exclude the null, which is the type I error if `null`
        equals `truth`, and the power otherwise; `bias`; `sd` of the estimates; `rmse`; mean `width` and
        `width_median`; `std_error`: mean estimated standard error; `std_error_ratio`: its ratio to `sd`.
        `regret`: mean pseudo-regret of a trial, over all trials, the same in all rows of a cell. Standard
        errors of simulation: `coverage_se` and `rejected_se` (binomial), `bias_se`, `width_se`, `regret_se`.

        A test has the term "test", and a p-value instead of an interval: `rejected` is the share of p-values
        that are at most alpha. The `truth` of a test is the largest difference between the mean rewards of
        two arms in a context, and its `null` is 0; columns that apply only to intervals are NaN.
    times : DataFrame
        Processor time of designs and analyses: total seconds and milliseconds per run. The processor time
        varies between runs of the study, and is therefore stored separately from the tables.
    settings : dict
        The manifest: grid, seed, parameters and package versions.
    path : Path or None
        Folder of the study.

    Examples
    --------
    >>> import adaptinf as ai
    >>> study = ai.audit.study(
    ...     {"uniform": ai.designs.Uniform()},
    ...     {"arms": ai.environments.BernoulliArms([0.4, 0.6])},
    ...     {"default": lambda log: ai.ArmMeans(log).fit()},
    ...     horizons=[100], replications=64, rng=0, progress=False,
    ... )
    >>> study.frame[["design", "analysis", "term"]].to_dict("list")
    {'design': ['uniform', 'uniform'], 'analysis': ['default', 'default'], 'term': ['0', '1']}
    """

    frame: pd.DataFrame
    times: pd.DataFrame
    settings: Mapping[str, Any]
    path: Path | None = None
    _folder: Folder | None = field(default=None, repr=False)

    @classmethod
    def of_tables(
        cls,
        tables: Sequence[pa.Table],
        seconds: Sequence[Mapping[str, float]],
        manifest: Mapping[str, Any],
        folder: Folder | None = None,
    ) -> Study:
        """Create a study from the tables and times of its cells; unfinished cells have no table."""
        known = [table for table in tables if table is not None]
        frame = pa.concat_tables(known).to_pandas() if known else cell_table(("", "", 0), []).to_pandas()
        times = pd.DataFrame(
            list(_time_rows(seconds, manifest)),
            columns=[*_PLACE, "analysis", "cpu_seconds", "ms_per_run"],
        )
        return cls(frame, times, manifest, None if folder is None else folder.root, folder)

    @classmethod
    def of_folder(cls, folder: Folder, manifest: Mapping[str, Any], partial: bool = False) -> Study:
        """Read a study from its folder.

        Raises
        ------
        ParameterError
            If a cell is unfinished or damaged, and all are required.
        """
        tables, seconds, problems = [], [], []
        for index in range(len(folder.labels)):
            try:
                tables.append(folder.table(index))
                seconds.append(folder.seconds(index))
            except Damaged as damage:
                tables.append(None)
                seconds.append({})
                problems.append(str(damage))
        if problems and not partial:
            count = f"{len(problems)} of {len(tables)} cells are missing: call study again to resume, or use "
            advice = f"{count}Study.load(path, partial=True) for the others"
            raise ParameterError(f"study in {folder.root}", [advice, *problems])
        return cls.of_tables(tables, seconds, manifest, folder)

    @classmethod
    def load(cls, path: str | Path, partial: bool = False) -> Study:
        """Load a study from its folder.

        Parameters
        ----------
        path : str or Path
            The folder.
        partial : bool
            Use the finished cells only; by default all must be finished.

        Returns
        -------
        Study

        Raises
        ------
        ParameterError
            If there is no study in the folder, or it is unfinished or damaged.
        """
        manifest = read_manifest(Path(path))
        return cls.of_folder(open_folder(Path(path), manifest), manifest, partial)

    def cell(
        self,
        design: str | None = None,
        environment: str | None = None,
        horizon: int | None = None,
        analysis: str | None = None,
        term: str | None = None,
    ) -> pd.DataFrame:
        """Select rows of the table.

        Parameters
        ----------
        design, environment, horizon, analysis, term : str or int, optional
            Names that select rows; all by default.

        Returns
        -------
        DataFrame
            The selected rows, with the columns of `frame`.

        Raises
        ------
        ParameterError
            If a name is absent from the table; the message lists all such names.
        """
        asked = {"design": design, "environment": environment, "horizon": horizon}
        asked |= {"analysis": analysis, "term": term}
        rows, problems = self.frame, []
        for column, value in asked.items():
            if value is None:
                continue
            known = self.frame[column].unique().tolist()
            if value not in known:
                problems.append(absent(column, value, known))
            rows = rows[rows[column] == value]
        refuse("cell", problems)
        return rows.reset_index(drop=True)

    def estimates(self, design: str, environment: str, horizon: int) -> pd.DataFrame:
        """Estimates of single trials, if the study stored them.

        Parameters
        ----------
        design, environment, horizon : str, str, int
            The cell.

        Returns
        -------
        DataFrame
            Columns run, analysis, term, estimate, std_error, low, high and pvalue, in the order of the runs.

        Raises
        ------
        ParameterError
            If no estimates were stored, or there is no such cell.
        """
        if self._folder is None or self.settings["keep"] is None:
            raise ParameterError("estimates", ["no results of single trials were kept: set keep='estimates'"])
        places = list(grid_places(self.settings))
        if (design, environment, horizon) not in places:
            raise ParameterError("estimates", [f"there is no cell {(design, environment, horizon)!r}"])
        table = self._folder.estimates(places.index((design, environment, horizon)))
        frame: pd.DataFrame = table.to_pandas()
        return frame.astype({"analysis": "str", "term": "str"})

    def to_markdown(self, columns: Sequence[str] = _SHOWN, digits: int = 4) -> str:
        """The table as Markdown.

        Parameters
        ----------
        columns : sequence of str
            Columns of `frame` to show after design, environment, horizon, analysis and term; notes are
            numbered below the table.
        digits : int
            Decimals.

        Returns
        -------
        str

        Raises
        ------
        ParameterError
            If a column does not exist.
        """
        check_columns(self.frame, columns)
        rows, notes = self._shown(columns)
        return "\n\n".join([markdown(rows, digits), *numbered(notes)])

    def to_latex(
        self, columns: Sequence[str] = _SHOWN, digits: int = 4, path: str | Path | None = None
    ) -> str:
        r"""The table as LaTeX, with all text escaped.

        Parameters
        ----------
        columns : sequence of str
            Columns of `frame` to show after design, environment, horizon, analysis and term; of these five,
            the constant ones appear in the title. Notes are numbered below the table.
        digits : int
            Decimals.
        path : str or Path, optional
            File to which the table is also written.

        Returns
        -------
        str
            LaTeX code of the table, centred below its caption; it needs the booktabs package.

        Raises
        ------
        ParameterError
            If a column does not exist.
        FileError
            If the file cannot be written.

        Examples
        --------
        >>> import adaptinf as ai
        >>> tables = ai.audit.study(
        ...     designs={"100% random": ai.designs.Uniform()},
        ...     environments={"signal": ai.environments.BernoulliArms([0.3, 0.6])},
        ...     analyses={"means": lambda log: ai.ArmMeans(log).fit()},
        ...     horizons=[50],
        ...     replications=64,
        ...     rng=0,
        ...     progress=False,
        ... )
        >>> lines = tables.to_latex(["truth", "coverage"], digits=2).splitlines()
        >>> print(lines[2].partition("; ")[2])
        design 100\% random, environment signal, horizon 50, analysis means}
        >>> print(lines[5])
        \textbf{term} & \textbf{truth} & \textbf{coverage}  \\
        """
        check_columns(self.frame, columns, "to_latex")
        rows, notes = self._shown(columns)
        same = [name for name in (*_PLACE, "analysis", "term") if rows[name].nunique() == 1]
        same = same[: len(_PLACE) + 1]  # The term is kept, because a table needs a first column.
        given = ", ".join(f"{name} {rows[name].iloc[0]}" for name in same)
        title = f"{self._head}; {given}" if given else self._head
        return _stored("to_latex", latex(rows.drop(columns=same), title, notes, digits), path)

    def to_csv(self, path: str | Path | None = None) -> str:
        """The whole table as comma-separated text, at full precision.

        Parameters
        ----------
        path : str or Path, optional
            File to which the table is also written.

        Returns
        -------
        str
            All columns of `frame`. Text that a spreadsheet would treat as a formula is prefixed with an
            apostrophe.

        Raises
        ------
        FileError
            If the file cannot be written.

        Examples
        --------
        >>> import adaptinf as ai
        >>> tables = ai.audit.study(
        ...     designs={"uniform": ai.designs.Uniform()},
        ...     environments={"signal": ai.environments.BernoulliArms([0.3, 0.6])},
        ...     analyses={"means": lambda log: ai.ArmMeans(log).fit()},
        ...     horizons=[50],
        ...     replications=64,
        ...     rng=0,
        ...     progress=False,
        ... )
        >>> tables.to_csv().splitlines()[1][:29]
        'uniform,signal,50,means,0,0.3'
        """
        return _stored("to_csv", csv_text(self.frame), path)

    def _shown(self, columns: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
        """The printed form: rows whose notes are numbered, and the notes."""
        rows = self.frame[[*_PLACE, "analysis", "term", *(name for name in columns if name != "note")]]
        notes = [note for note in dict.fromkeys(self.frame["note"]) if note]
        if notes:
            numbers = [f"[{notes.index(note) + 1}]" if note else "" for note in self.frame["note"]]
            rows = rows.assign(note=numbers)
        return rows, notes

    @property
    def _head(self) -> str:
        runs = int(self.settings["replications"])
        return f"{runs:,} replications per cell, nominal coverage {1.0 - self.settings['alpha']:g}"

    def __str__(self) -> str:
        rows, notes = self._shown(_SHOWN)
        first = [*_PLACE, "analysis", "term", "runs", "missing", *(["note"] if notes else [])]
        ordered = rows[[*first, *(name for name in rows if name not in first)]]
        return plain(ordered, [self._head], notes, once=(*_PLACE, "analysis", "runs", "missing"))

    def _repr_html_(self) -> str:
        rows, notes = self._shown(_SHOWN)
        return hypertext(rows, self._head, notes)


def _stored(subject: str, text: str, path: str | Path | None) -> str:
    """Return the text, and write it to a file if one is given."""
    if path is not None:
        atomic_write(as_path(subject, "path", path), lambda file: file.write(text.encode()))
    return text


def grid_places(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Design, environment and horizon of each cell, in order."""
    return itertools.product(manifest["designs"], manifest["environments"], manifest["horizons"])


def open_folder(root: Path, manifest: Mapping[str, Any]) -> Folder:
    """The folder of the study that a manifest describes."""
    labels = []
    for index, place in enumerate(grid_places(manifest)):
        name = re.sub(r"[^A-Za-z0-9.]+", "-", "_".join(map(str, place))).strip("-")
        labels.append(f"{index:04d}_{name[:80]}")
    return Folder(root, identity(manifest), tuple(labels), manifest["keep"] is not None)


def cell_table(place: tuple[str, str, int], rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """The table of a cell from its rows."""
    columns: dict[str, Any] = {
        name: pa.array([value] * len(rows), pa.int64() if name in _WHOLE else pa.string())
        for name, value in zip(_PLACE, place, strict=True)
    }
    for name in rows[0] if rows else ():
        kind = pa.int64() if name in _WHOLE else pa.string() if name in _TEXT else pa.float64()
        columns[name] = pa.array([row[name] for row in rows], kind)
    return pa.table(columns)


def _time_rows(
    seconds: Sequence[Mapping[str, float]], manifest: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    for place, spent in zip(grid_places(manifest), seconds, strict=True):
        for name, value in spent.items():
            yield {
                **dict(zip(_PLACE, place, strict=True)),
                "analysis": "" if name == DESIGN_TIME else name,
                "cpu_seconds": value,
                "ms_per_run": 1e3 * value / manifest["replications"],
            }
