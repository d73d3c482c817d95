"""Other engines give the sums of the rows too; the SQL of warehouses stays as it was read."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import dask.dataframe as dd
import ibis
import pandas as pd
import pyarrow as pa
import pytest
from sum_rows import (
    NAMES,
    assert_same_cells,
    assert_same_contrast,
    rows_of,
    stacked,
    sums_of_rows,
    timed,
)

import adaptinf as ai
from adaptinf.errors import LogValidationError, ParameterError
from adaptinf.sums import engines

# ibis calls what DuckDB and pandas deprecate.
pytestmark = [
    pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The 'future.infer_string' option:DeprecationWarning"),
]
SNAPSHOTS = Path(__file__).with_name("sql")
DIALECTS = ("duckdb", "postgres", "bigquery", "snowflake", "databricks")
WAREHOUSE = {
    "at": "timestamp",
    "arm": "string",
    "y": "float64",
    "user": "string",
    "propensity_a": "float64",
    "propensity_b": "float64",
}


def in_ibis(frame: pd.DataFrame) -> Any:
    return ibis.memtable(pa.Table.from_pandas(frame, preserve_index=False))


def in_dask(frame: pd.DataFrame) -> Any:
    return dd.from_pandas(frame, npartitions=3)


ENGINES: dict[str, Callable[[pd.DataFrame], Any]] = {"ibis": in_ibis, "dask": in_dask}


@pytest.mark.parametrize("seed", range(20))
def test_ibis_on_duckdb_gives_the_sums_of_the_rows(seed: int) -> None:
    n_arms = 2 + seed % 3
    frame = rows_of(seed, (20 + seed, 35, 12)[: 1 + seed % 3], n_arms, 1e4 * (seed % 2))
    expected = sums_of_rows(frame, range(n_arms))
    shuffled = in_ibis(frame.sample(frac=1, random_state=seed))
    found = ai.aggregate(shuffled, **NAMES, centre=expected.cells.centre)
    assert_same_cells(found, expected)
    assert_same_contrast(ai.aggregate(shuffled, **NAMES), expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_twenty_logs_in_one_table(engine: str) -> None:
    frame, expected = stacked()
    found = ai.aggregate(ENGINES[engine](frame), **NAMES, centre=expected.cells.centre)
    assert_same_cells(found, expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_labels_shares_and_chosen_propensities(engine: str) -> None:
    frame = rows_of(1)
    frame["p"] = frame[[f"propensity_{k}" for k in range(3)]].to_numpy()[range(len(frame)), frame["arm"]]
    bare = frame[["batch", "arm", "y", "p"]].assign(arm=frame["arm"].map({0: "x", 1: "y z", 2: "ü"}))
    for options in ({"propensity": "p"}, {}):
        found, expected = (
            ai.aggregate(table, **NAMES, **options, centre=2.0) for table in (ENGINES[engine](bare), bare)
        )
        assert (found.arms, found.shares) == (("x", "y z", "ü"), not options)
        assert_same_cells(found, expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_times_are_cut_to_periods(engine: str) -> None:
    frame, starts = timed(rows_of(8, (400, 400), 2))
    frame = frame.assign(propensity_0=0.5, propensity_1=0.5)
    options = {**NAMES, "batch": "at", "centre": 1.0, "about": {"propensity_status": "estimated"}}
    for every, due in starts.items():
        found = ai.aggregate(ENGINES[engine](frame), **options, every=every)
        assert pd.to_datetime(found.batches).tolist() == due


@pytest.mark.parametrize(
    "engine", [pytest.param(one, marks=pytest.mark.slow) if one == "dask" else one for one in ENGINES]
)
def test_faults_are_counted_in_the_query(engine: str) -> None:
    frame = rows_of(2)
    for column, value, message in [
        ("y", None, "'y' has no value .NaN or None. in 3 rows, such as in batch 0"),
        ("y", float("inf"), "'y' is infinite in 3 rows"),
        ("propensity_2", -0.1, "has values outside .0, 1. in 3 rows"),
        ("propensity_0", 0.0, "the chosen arm has a propensity of 0 in its column in 3 rows"),
    ]:
        wrong = frame.copy()
        wrong.loc[frame.index[frame["arm"] == 0][:3], column] = value
        with pytest.raises(LogValidationError, match=message):
            ai.aggregate(ENGINES[engine](wrong), **NAMES)


def sql_of(dialect: str) -> dict[str, str]:
    """Queries of a table that no driver has opened, as ibis compiles them for a warehouse, by their files."""
    compiler = importlib.import_module(f"ibis.backends.sql.compilers.{dialect}").compiler
    table = ibis.table(WAREHOUSE, name="log")
    roles: dict[str, Any] = {"action": "arm", "reward": "y", "batch": "at", "every": "day", "centre": 10.0}
    cells, units = ai.aggregate(table, **roles, unit="user", collect=False)
    assert cells.equals(ai.aggregate(table, **roles, collect=False))
    with patch.object(engines, "cell_query", partial(weighted_query, engines.cell_query)):
        weighted = ai.aggregate(table, **roles, collect=False)
    queries = {dialect: cells, f"{dialect}_weighted": weighted, f"{dialect}_units": units}
    return {
        f"{name}.sql": str(compiler.to_sqlglot(query).sql(dialect=compiler.dialect, pretty=True)) + "\n"
        for name, query in queries.items()
    }


def weighted_query(real: Callable[..., Any], *given: Any, **options: Any) -> Any:
    """The query that follows where propensities vary within a batch and arm."""
    return real(*given, **options | {"weighted": True})


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_sql_of_warehouses(dialect: str) -> None:
    """Where this is right and differs, ``python tests/unit/sums/test_engines.py`` writes the files again."""
    for name, query in sql_of(dialect).items():
        assert query == (SNAPSHOTS / name).read_text(encoding="utf-8"), name


CLOCKS = {
    "duckdb": """TIMEZONE('Europe/Berlin', "t1"."at")""",
    "postgres": """TIMEZONE('Europe/Berlin', "t1"."at")""",
    "bigquery": "DATETIME(`t1`.`at`, 'Europe/Berlin')",
    "snowflake": """TO_TIMESTAMP_NTZ(CONVERT_TIMEZONE('Europe/Berlin', "t1"."at"))""",
    "databricks": "CONVERT_TIMEZONE('Europe/Berlin', `t1`.`at`)",
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_instants_are_read_by_a_clock_in_the_words_of_a_warehouse(
    dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = importlib.import_module(f"ibis.backends.sql.compilers.{dialect}").compiler
    monkeypatch.setattr(ibis.Table, "get_backend", lambda table: SimpleNamespace(name=dialect))
    table = ibis.table(WAREHOUSE | {"at": "timestamp('UTC')"}, name="log")
    roles: dict[str, Any] = {"action": "arm", "reward": "y", "batch": "at", "every": "day", "centre": 10.0}
    query = ai.aggregate(table, **roles, collect=False, reading={"timezone": "Europe/Berlin"})
    sql = str(compiler.to_sqlglot(query).sql(dialect=compiler.dialect))
    assert CLOCKS[dialect] in sql
    monkeypatch.setattr(ibis.Table, "get_backend", lambda table: SimpleNamespace(name="oracle"))
    with pytest.raises(ParameterError, match="times with a zone cannot be divided into periods in oracle"):
        ai.aggregate(table, **roles, collect=False)


if __name__ == "__main__":
    for each in DIALECTS:
        for name, query in sql_of(each).items():
            (SNAPSHOTS / name).write_text(query, encoding="utf-8")
