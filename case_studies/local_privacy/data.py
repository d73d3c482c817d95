"""Labelled data as trials: sets that ship with scikit-learn, and the paper's own from a local path.

Contexts are the first principal components of the standardised features, brought into the cube. Means,
standard deviations, components and bounds all come from rows that are set aside as public and take no part in
any trial.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.errors import AdaptinfWarning, ParameterError
from adaptinf.simulation.environments.classification import Classification
from adaptinf.simulation.environments.cube_contexts import AuxiliaryLog, UnitCube

DIMENSION = 3
PUBLIC, TARGET = -1, 0
SHIPPED = ("breast cancer", "wine", "digits")
ADULT_COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country",
    "label",
)  # fmt: skip


@dataclass(frozen=True)
class Rows:
    """Features, right classes, and whose a row is: `PUBLIC`, `TARGET`, or the number of a source from 1."""

    features: pd.DataFrame
    labels: pd.Series
    source: np.ndarray


@dataclass(frozen=True)
class Task:
    """A trial on labelled data.

    Attributes
    ----------
    name : str
        Of the data.
    environment : Classification
        The people that the trial meets.
    horizon : int
        Rounds.
    sources : tuple of DataFrame
        Contexts and labels of people from elsewhere, a frame a source.
    drawn : int or None
        Auxiliary participants drawn with replacement from each source; None takes every row once.
    """

    name: str
    environment: Classification
    horizon: int
    sources: tuple[pd.DataFrame, ...]
    drawn: int | None

    def reports(self, rng: np.random.SeedSequence) -> tuple[AuxiliaryLog, ...]:
        """Auxiliary logs: arms by a uniform policy, in an order of their own."""
        logs = []
        for frame, child in zip(self.sources, rng.spawn(len(self.sources)), strict=True):
            draws = np.random.default_rng(child)
            size, again = (len(frame), False) if self.drawn is None else (self.drawn, True)
            people = frame.iloc[draws.choice(len(frame), size, replace=again)]
            with clipping():
                logs.append(self.environment.auxiliary(people, epsilon=1.0, rng=draws))
        return tuple(logs)


class clipping(warnings.catch_warnings):  # noqa: N801
    """People beyond the public bounds are clipped to them, which the study's page says."""

    def __enter__(self) -> None:
        super().__enter__()
        warnings.filterwarnings("ignore", "UnitCube: among .* clipped", AdaptinfWarning)


def shipped(name: str, rng: np.random.SeedSequence) -> Rows:
    """One of the sets that come with scikit-learn, a third each public, of the trial and from elsewhere."""
    from sklearn import datasets

    load = {"breast cancer": "load_breast_cancer", "wine": "load_wine", "digits": "load_digits"}[name]
    features, labels = getattr(datasets, load)(return_X_y=True, as_frame=True)
    if name == "digits":  # ten arms are too many to tell apart at these sizes
        labels = labels % 2
    order = np.random.default_rng(rng).permutation(len(features))
    source = np.empty(len(features), dtype=np.int64)
    source[order] = np.arange(len(features)) % 3 - 1
    return Rows(features, labels, source)


def adult(folder: Path) -> Rows:
    """Adult as the UCI repository has it: adult.data, and adult.test where it is there.

    Rows with an unknown value ("?") are left out, as are fnlwgt (a weight of the survey) and education (the
    text of education-num). The trial meets people from the United States, 41,292 of the 45,222 complete rows
    of both files; all others are one source.
    """
    files = [Path(folder) / name for name in ("adult.data", "adult.test")]
    if not files[0].is_file():
        raise ParameterError("Adult", [f"{files[0]} is not a file: the folder must hold UCI's adult.data"])
    parts = []
    for path in files:
        if path.is_file():
            parts.append(_read("Adult", path, header=None, skipinitialspace=True, comment="|", na_values="?"))
            if parts[-1].shape[1] != len(ADULT_COLUMNS):
                told = f"{len(ADULT_COLUMNS)} columns, this has {parts[-1].shape[1]}"
                raise ParameterError("Adult", [f"{path} must have {told}"])
    frame = pd.concat(parts, ignore_index=True)
    frame.columns = pd.Index(ADULT_COLUMNS)
    frame = frame.dropna(ignore_index=True)
    labels = frame.pop("label").astype(str).str.rstrip(".")
    wrong = sorted(set(labels) - {"<=50K", ">50K"})
    if wrong:
        raise ParameterError("Adult", [f"the last column must be <=50K or >50K, found {wrong[0]!r:.60}"])
    source = (frame.pop("native-country") != "United-States").to_numpy(dtype=np.int64)
    return _rows("Adult", frame.drop(columns=["fnlwgt", "education"]), labels, source)


def prepared(name: str, path: Path) -> Rows:
    """A CSV with a column `label`, a column `source` (0: the trial's people; 1, 2, ..: sources) and features.

    Jobs and Taxi are read so: the paper's text says neither which files they are nor how target and
    auxiliary rows were told apart. Features may be numbers or text; rows with missing values are left out.
    """
    if not Path(path).is_file():
        raise ParameterError(name, [f"{path} is not a file"])
    frame = _read(name, path).dropna(ignore_index=True)
    missing = [column for column in ("label", "source") if column not in frame.columns]
    if missing:
        raise ParameterError(name, [f"{path} has no column {' and no column '.join(missing)}"])
    codes = pd.to_numeric(frame.pop("source"), errors="coerce").to_numpy(dtype=np.float64)
    if not np.isin(codes, np.arange(100)).all():
        raise ParameterError(name, ["column source must hold whole numbers from 0"])
    labels = frame.pop("label")
    return _rows(name, frame, labels, codes.astype(np.int64))


def _read(name: str, path: Path, **options: Any) -> pd.DataFrame:
    """A table of comma-separated values, or one error that says which file is none."""
    try:
        return pd.read_csv(path, **options)
    except (pd.errors.EmptyDataError, pd.errors.ParserError, UnicodeDecodeError) as error:
        raise ParameterError(name, [f"{path} is no table of comma-separated values: {error}"]) from error


def _rows(name: str, frame: pd.DataFrame, labels: pd.Series, source: np.ndarray) -> Rows:
    """Numbers of all features, after a check that there is something to learn from."""
    problems = []
    if labels.nunique() < 2:
        problems.append(f"there must be two classes or more, found {labels.nunique()}")
    expected = np.arange(1, source.max(initial=0) + 1)
    if (source == TARGET).sum() < 10 * DIMENSION:
        problems.append(f"the trial needs {10 * DIMENSION} complete rows or more")
    if expected.size == 0 or not np.isin(expected, source).all():
        problems.append("sources must be numbered 1, 2, .., with rows in each")
    features = pd.get_dummies(frame, dtype=np.float64).astype(np.float64)
    if features.shape[1] < DIMENSION:
        problems.append(f"there must be {DIMENSION} features or more, found {features.shape[1]}")
    if problems:
        raise ParameterError(name, problems)
    return Rows(features, labels, source)


def set_aside(rows: Rows, share: float, rng: np.random.SeedSequence) -> Rows:
    """Make a share of the trial's rows public, so that scales can be taken from them."""
    people = np.flatnonzero(rows.source == TARGET)
    chosen = np.random.default_rng(rng).choice(people, int(np.ceil(share * people.size)), replace=False)
    source = rows.source.copy()
    source[chosen] = PUBLIC
    return Rows(rows.features, rows.labels, source)


def scores(rows: Rows) -> pd.DataFrame:
    """First principal components of the features, standardised; all by the public rows."""
    values = rows.features.to_numpy(dtype=np.float64)
    public = values[rows.source == PUBLIC]
    centre, spread = public.mean(axis=0), public.std(axis=0)
    scaled = (values - centre) / np.where(spread > 0.0, spread, 1.0)
    axes = np.linalg.svd(scaled[rows.source == PUBLIC], full_matrices=False)[2][:DIMENSION]
    largest = axes[np.arange(DIMENSION), np.abs(axes).argmax(axis=1)]
    found = scaled @ (axes * np.sign(largest)[:, None]).T
    return pd.DataFrame(found, columns=[f"component_{k}" for k in range(1, DIMENSION + 1)])


def task(name: str, rows: Rows, horizon: int | None = None, drawn: int | None = None) -> Task:
    """A trial: with a horizon its people are drawn with replacement, without each comes once."""
    frame = scores(rows)
    columns = list(frame.columns)
    cube = UnitCube.from_public(frame[rows.source == PUBLIC], columns, outside="clip", description=name)
    frame["label"] = rows.labels.to_numpy()
    people = frame[rows.source == TARGET]
    arms = sorted(set(frame["label"]))
    order = "shuffled" if horizon is None else "resampled"
    with clipping():
        world = Classification(people, "label", columns, scaler=cube, order=order, arms=arms)
    sources = tuple(frame[rows.source == number] for number in range(1, int(rows.source.max()) + 1))
    return Task(name, world, len(people) if horizon is None else horizon, sources, drawn)
