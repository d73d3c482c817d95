"""Labels that a reader takes for one another, and ids that floats merged before a log saw them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import adaptinf as ai
from adaptinf.errors import LogValidationError, ParameterError
from adaptinf.spelling import reads_as, told_apart

CYRILLIC_A, GREEK_A = "\N{CYRILLIC CAPITAL LETTER A}", "\N{GREEK CAPITAL LETTER ALPHA}"
PAIRS = [
    ("A", CYRILLIC_A),
    ("A", GREEK_A),
    (CYRILLIC_A, GREEK_A),
    ("A", "\N{FULLWIDTH LATIN CAPITAL LETTER A}"),
    ("cafe\u0301", "caf\u00e9"),
    ("dose\u00a010", "dose 10"),
    ("dose  10", "dose 10"),
    ("do\u200bse", "dose"),
    ("do\u00adse", "dose"),
    ("\ufeffdose", "dose"),
    ("arm\u20131", "arm-1"),
    ("\N{CYRILLIC SMALL LETTER IO}", "\u00eb"),
]
APART = [
    ("A", "a"),
    (CYRILLIC_A, "\N{CYRILLIC CAPITAL LETTER BE}"),
    (GREEK_A, "\N{GREEK CAPITAL LETTER BETA}"),
    ("I", "l"),
    ("O", "0"),
    ("\u0645\u06cc\u200c\u062e", "\u0645\u06cc\u062e"),
]


def frame_of(labels: tuple[str, str]) -> pd.DataFrame:
    return pd.DataFrame({"arm": [*labels] * 4, "y": np.arange(8.0), "p": 0.5, "day": [0] * 4 + [1] * 4})


def from_frame(frame: pd.DataFrame, folder: Path) -> Any:
    return ai.AdaptiveLog(frame, action="arm", reward="y", propensity="p")


def from_polars(frame: pd.DataFrame, folder: Path) -> Any:
    return ai.AdaptiveLog(pl.from_pandas(frame), action="arm", reward="y", propensity="p")


def from_arrow(frame: pd.DataFrame, folder: Path) -> Any:
    kind = pd.ArrowDtype(pa.string())
    return from_frame(frame.assign(arm=frame["arm"].astype(kind)), folder)


def from_csv(frame: pd.DataFrame, folder: Path) -> Any:
    frame.to_csv(folder / "log.csv", index=False)
    return ai.read_log(folder / "log.csv", action="arm", reward="y", propensity="p")


def from_rows(frame: pd.DataFrame, folder: Path) -> Any:
    return ai.aggregate(frame, action="arm", reward="y", batch="day", propensity="p")


def from_sums(frame: pd.DataFrame, folder: Path) -> Any:
    cells = frame.assign(n=1.0, squares=frame["y"] ** 2).groupby(["day", "arm"], sort=False)
    table = cells[["n", "y", "squares"]].sum().reset_index()
    return ai.Sums(table, batch="day", arm="arm", n="n", sum="y", sum_squares="squares")


@pytest.mark.parametrize("read", [from_frame, from_polars, from_arrow, from_csv, from_rows, from_sums])
@pytest.mark.parametrize("labels", PAIRS)
def test_arms_that_read_the_same_are_refused_with_their_code_points(
    labels: tuple[str, str], read: Callable[[pd.DataFrame, Path], Any], tmp_path: Path
) -> None:
    with pytest.raises(LogValidationError) as caught:
        read(frame_of(labels), tmp_path)
    codes = {problem.code: str(problem) for problem in caught.value.problems}
    assert "U+" in codes["ambiguous-arm"]


@pytest.mark.parametrize("read", [from_frame, from_polars, from_arrow, from_csv, from_rows, from_sums])
@pytest.mark.parametrize("labels", APART)
def test_arms_that_read_differently_are_arms(
    labels: tuple[str, str], read: Callable[[pd.DataFrame, Path], Any], tmp_path: Path
) -> None:
    assert set(read(frame_of(labels), tmp_path).arms) == set(labels)


def test_what_tells_labels_apart() -> None:
    assert told_apart(["A", CYRILLIC_A]) == f"'A' (U+0041), '{CYRILLIC_A}' (U+0410)"
    assert told_apart(["cafe\u0301", "caf\u00e9"]) == "'cafe\u0301' (U+0065 U+0301), 'caf\u00e9' (U+00E9)"
    assert told_apart([1, "1"]) == "1, '1'"
    assert reads_as("\ud800 a") == "\ud800 a"


@pytest.mark.parametrize("labels", PAIRS)
def test_arms_of_trials_that_read_the_same(labels: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"U\+"):
        ai.Trial.create(tmp_path / "trial.db", ai.designs.Thompson(), arms=labels, horizon=10)


@pytest.mark.parametrize("labels", PAIRS)
def test_units_of_logs_that_read_the_same(labels: tuple[str, str]) -> None:
    frame = frame_of(("a", "b")).assign(who=[*labels, *"cdefgh"])
    with pytest.raises(LogValidationError, match=r"U\+") as caught:
        ai.AdaptiveLog(frame, action="arm", reward="y", propensity="p", unit="who")
    assert [(problem.code, problem.rows) for problem in caught.value.problems] == [("ambiguous-unit", (0, 1))]


def test_units_of_a_trial_that_read_the_same(tmp_path: Path) -> None:
    with ai.Trial.create(tmp_path / "trial.db", ai.designs.Thompson(), arms=["a", "b"], horizon=10) as trial:
        first = trial.assign("P1", key="1")
        for place, other in enumerate(["p1 ", "\N{CYRILLIC CAPITAL LETTER ER}1", "P1\u00a0", "p1"]):
            with pytest.raises(ParameterError, match="'P1'") as caught:
                trial.assign(other, key=f"other {place}")
            assert "U+" in str(caught.value)
        with pytest.raises(ParameterError, match="'P2'"):
            trial.assign_many(["P2", "p2"], keys=["2", "3"])
        assert trial.assign_many(["P2"], keys=["2"])[0].round == 2
        assert trial.assign("P1", key="1") == trial.assign("P1", key="again") == first
        assert trial.erase("P1", key="gone", reason="asked", by="nurse") == 1
        assert trial.assign("p1", key="5").round == 3
        with pytest.raises(ParameterError, match="'p2 '"):
            trial.assign("p2 ", key="6")
    with ai.Trial.open(tmp_path / "trial.db") as trial, pytest.raises(ParameterError, match="'P2'"):
        trial.assign("p2", key="7")


def float_units(kind: str, first: float) -> dict[str, Callable[[], Any]]:
    """Readers of rows with the ids `first` and more, as floats of a kind."""
    ids = np.array([first, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], dtype=kind)
    frame = frame_of(("a", "b")).assign(who=ids)
    arrow = frame.assign(who=frame["who"].astype(pd.ArrowDtype(pa.from_numpy_dtype(kind))))
    nullable = frame.assign(who=frame["who"].astype(kind.capitalize()))
    named = {"action": "arm", "reward": "y", "propensity": "p", "unit": "who"}
    summed = {**named, "batch": "day"}
    return {
        "pandas": lambda: ai.AdaptiveLog(frame, **named),
        "nullable": lambda: ai.AdaptiveLog(nullable, **named),
        "objects": lambda: ai.AdaptiveLog(frame.assign(who=pd.Series(list(ids), dtype=object)), **named),
        "arrow": lambda: ai.AdaptiveLog(arrow, **named),
        "polars": lambda: ai.AdaptiveLog(pl.from_pandas(frame), **named),
        "aggregate": lambda: ai.aggregate(frame, **summed),
        "aggregate polars": lambda: ai.aggregate(pl.from_pandas(frame), **summed),
        "aggregate lazy": lambda: ai.aggregate(pl.from_pandas(frame).lazy(), **summed),
        "aggregate arrow": lambda: ai.aggregate(pa.Table.from_pandas(frame), **summed),
    }


@pytest.mark.parametrize(("kind", "size"), [("float64", 53), ("float32", 24)])
def test_float_ids_that_stand_for_several_numbers_are_refused(kind: str, size: int) -> None:
    for name, read in float_units(kind, 2.0**size).items():
        with pytest.raises(LogValidationError, match=rf"2\*\*{size} or more") as caught:
            read()
        assert [problem.code for problem in caught.value.problems] == ["inexact-unit"], name
    for read in float_units(kind, 2.0**size - 1.0).values():
        read()
