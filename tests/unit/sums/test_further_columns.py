"""Denominators and covariates in sums: as rows add up, in engines, tables, files and parts."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sum_rows import NAMES, rows_of

import adaptinf as ai
from adaptinf.claims.logs.rows import NEEDS_ROWS
from adaptinf.errors import InvalidForLog, LogValidationError, ParameterError
from adaptinf.log.validation import OF_TABLES, nested_options

# ibis calls what DuckDB and pandas deprecate.
pytestmark = [
    pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The 'future.infer_string' option:DeprecationWarning"),
]
SNAPSHOTS = Path(__file__).with_name("sql") / "further"
DIALECTS = ("duckdb", "postgres", "bigquery", "snowflake", "databricks")
FURTHER = {"denominator": "orders", "covariate": "before"}
FEW: dict[str, Callable[[pd.DataFrame], Any]] = {
    "ibis": lambda frame: ibis.memtable(pa.Table.from_pandas(frame, preserve_index=False)),
    "dask": lambda frame: dd.from_pandas(frame, npartitions=3),
}
MANY: dict[str, Callable[[pd.DataFrame], Any]] = {
    "duckdb": lambda frame: duckdb.from_df(frame),
    "polars": lambda frame: pl.DataFrame(frame).lazy(),
}


def further_rows(seed: int, sizes: tuple[int, ...] = (60, 80, 50), n_arms: int = 3) -> pd.DataFrame:
    """Rewards that grow with orders and with what was spent before, which is far from 0."""
    frame, rng = rows_of(seed, sizes, n_arms), np.random.default_rng(seed + 10**6)
    frame["orders"] = rng.poisson(1.0 + frame["arm"]) + (rng.random(len(frame)) < 0.5)
    frame["before"] = 1_000.0 + rng.normal(size=len(frame))
    return frame.assign(y=frame["y"] + 2.0 * frame["orders"] + (frame["before"] - 1_000.0))


def log_of(frame: pd.DataFrame, **options: Any) -> ai.AdaptiveLog:
    return ai.AdaptiveLog(frame, **NAMES_OF_LOG, **options)


NAMES_OF_LOG: dict[str, Any] = {
    "action": "arm",
    "reward": "y",
    "batch": "batch",
    "outcomes": "orders",
    "context": "before",
}


def answers(data: Any) -> list[Any]:
    """Differences and lifts of ratios and with a covariate, all against one arm."""
    asked = {"estimator": "aipw", "outcome": "batch-mean", "test": "t"}
    ratios, plain = ai.Contrasts(data, control=1, denominator="orders"), ai.Contrasts(data, control=1)
    return [
        *(model.fit(**asked, lift=lift) for model in (ratios, plain) for lift in (False, True)),
        *(model.fit(**asked, covariate="before") for model in (ratios, plain)),
        ai.ArmMeans(data, denominator="orders").fit(**asked),
    ]


def assert_same(found: Any, expected: Any) -> None:
    for name in ("estimate", "std_error"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-10)
    if expected.covariance is not None:
        scale = float(np.nanmax(np.abs(expected.covariance)))
        np.testing.assert_allclose(found.covariance, expected.covariance, rtol=1e-10, atol=1e-10 * scale)


def assert_all_same(found: Any, expected: Any) -> None:
    for one, other in zip(answers(found), answers(expected), strict=True):
        assert_same(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("engine", MANY)
@settings(max_examples=3, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), sizes=st.lists(st.integers(40, 90), min_size=2, max_size=4))
def test_one_query_gives_what_the_rows_give(engine: str, seed: int, sizes: list[int]) -> None:
    frame = further_rows(seed, tuple(sizes))
    shuffled = frame.sample(frac=1, random_state=seed)
    assert_all_same(ai.aggregate(MANY[engine](shuffled), **NAMES, **FURTHER), log_of(frame))


@pytest.mark.parametrize("engine", FEW)
def test_other_engines_too(engine: str) -> None:
    frame = further_rows(7)
    further = FURTHER if engine == "ibis" else {"covariate": "before"}
    sums = ai.aggregate(FEW[engine](frame), **NAMES, **further)
    pair, asked = {"treatment": 2, "control": 0}, {"outcome": "batch-mean", "covariate": "before"}
    assert_same(ai.Contrast(sums, **pair).fit(**asked), ai.Contrast(log_of(frame), **pair).fit(**asked))
    due = (("orders",) * (engine == "ibis"), ("before",), ("before",))
    assert (sums.denominators, sums.covariates, sums.context) == due


def test_parts_in_any_order_files_and_groups(tmp_path: Path) -> None:
    frame = further_rows(3)
    whole = ai.Sums.of_log(log_of(frame), **FURTHER)
    frame["who"] = np.arange(len(frame)) % 2
    parts = [
        ai.aggregate(frame[frame["who"] == part].reset_index(drop=True), **NAMES, **FURTHER)
        for part in (1, 0)
    ]
    assert_all_same(parts[0] + parts[1], whole)
    assert_all_same(parts[1] + parts[0], whole)
    (parts[0] + parts[1]).to_parquet(tmp_path / "sums.parquet")
    assert_all_same(ai.Sums.read_parquet(tmp_path / "sums.parquet"), whole)
    grouped = ai.aggregate(frame, **NAMES, **FURTHER, by="who")
    assert_all_same(grouped, whole)
    grouped.to_parquet(tmp_path / "groups.parquet")
    assert_all_same(ai.Sums.read_parquet(tmp_path / "groups.parquet").of_group(1), parts[0])
    bare = ai.aggregate(frame[frame["who"] == 0].reset_index(drop=True), **NAMES)
    with pytest.raises(ParameterError, match="denominators differs"):
        parts[0] + bare


def test_the_frame_has_their_sums() -> None:
    frame = further_rows(4)
    table = ai.Sums.of_log(log_of(frame), **FURTHER).frame.set_index(["batch", "arm"])
    own = frame.assign(squares=frame["orders"] ** 2, products=frame["orders"] * frame["y"])
    due = own.groupby(["batch", "arm"])[["orders", "squares", "products"]].sum()
    columns = ["orders_sum", "orders_sum_squares", "orders_sum_products"]
    np.testing.assert_allclose(table[columns], due, rtol=1e-12)


def test_plain_queries_have_no_further_columns() -> None:
    frame = further_rows(5)
    plain, more = (
        ai.aggregate(pl.DataFrame(frame).lazy(), **NAMES, **given, collect=False)
        for given in ({}, {"denominator": "orders"})
    )
    fewer, names = plain.collect_schema().names(), more.collect_schema().names()
    assert [name for name in names if name in set(fewer)] == fewer
    assert sum(name.startswith("product_") for name in names) == 24
    assert set(names) - set(fewer) == {
        name for name in names if name.startswith(("product_", "positive_")) or name == "least__further_0"
    }
    # With a centre no row is looked at, and the sums over propensities may follow from fewer.
    few = ai.aggregate(pl.DataFrame(frame).lazy(), **NAMES, denominator="orders", centre=0.0, collect=False)
    assert sum(name.startswith("product_") for name in few.collect_schema().names()) == 6


@pytest.mark.parametrize("engine", [*MANY, "ibis"])
def test_rows_that_must_not_count(engine: str) -> None:
    frame = further_rows(6)
    frame.loc[[3, 9], "orders"] = -1
    frame.loc[5, "before"] = np.inf
    with pytest.raises(LogValidationError) as caught:
        ai.aggregate((MANY | FEW)[engine](frame), **NAMES, **FURTHER)
    told = {problem.code: problem.message for problem in caught.value.problems}
    assert told["bad-denominator"].startswith(
        "denominator 'orders' is negative in 2 rows, such as in batch 0"
    )
    assert told["infinite-context"].startswith(
        "context column 'before' is infinite in 1 row, such as in batch"
    )
    assert len(told) == 2


def test_names_of_columns() -> None:
    frame = further_rows(6).assign(city="x")
    for options, message in [
        ({"denominator": "order"}, "there is no column 'order'"),
        ({"covariate": "y"}, "column 'y' in covariate= already has another role"),
        ({"covariate": "city"}, "'city' must contain numbers"),
    ]:
        with pytest.raises(LogValidationError, match=message):
            ai.aggregate(frame, **NAMES, **options)
    with pytest.raises(ParameterError, match="known before the choice, but denominators are not"):
        ai.aggregate(frame, **NAMES, denominator="orders", covariate="orders")
    log = log_of(frame.assign(orders=-1.0).drop(columns="city"))
    with pytest.raises(ParameterError, match="orders is negative in 190 of 190 rounds"):
        ai.Sums.of_log(log, denominator="orders")
    with pytest.raises(ParameterError, match="no context column 'orders'"):
        ai.Sums.of_log(log, covariate="orders")


ROLES = {
    "batch": "batch",
    "arm": "arm",
    "n": "n",
    "sum": "y",
    "sum_squares": "yy",
    "propensity": "p",
    "denominator": "orders",
    "denominator_sum_squares": "oo",
    "denominator_sum_products": "yo",
    "covariate": "before",
    "covariate_sum_squares": "bb",
    "covariate_sum_products": "yb",
}
CUBES: dict[str, Any] = {
    "sum_cubes": "yyy",
    "denominator_sum_cubes": ["yyo", "yoo", "ooo"],
    "covariate_sum_cubes": ["yyb", "ybb", "bbb"],
}


def constant_rows(seed: int = 0) -> pd.DataFrame:
    """Rows whose propensities are the same in a batch."""
    rng = np.random.default_rng(seed)
    batch = np.repeat([0, 1, 2], 400)
    share = np.array([0.5, 0.3, 0.6])[batch]
    arm = (rng.random(1_200) < share).astype(int)
    frame = pd.DataFrame({"batch": batch, "arm": arm, "orders": rng.poisson(2.0 + arm)})
    frame["before"] = rng.normal(3.0, size=1_200)
    frame["y"] = frame["orders"] * rng.gamma(0.4, size=1_200) + frame["before"]
    return frame.assign(propensity_0=1.0 - share, propensity_1=share)


def table_of(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each batch and arm; a column such as "yyo" holds sums of products."""
    v = {"y": rows["y"], "o": rows["orders"].astype(float), "b": rows["before"]}
    products = {
        name: np.prod([v[letter] for letter in name], axis=0)
        for name in ("yy", "yyy", "oo", "yo", "yyo", "yoo", "ooo", "bb", "yb", "yyb", "ybb", "bbb")
    }
    wide = rows[["batch", "arm", "y", "orders", "before"]].assign(n=1, **products)
    table = wide.groupby(["batch", "arm"], as_index=False).sum()
    share = np.array([0.5, 0.3, 0.6])[table["batch"]]
    return table.assign(p=np.where(table["arm"] == 1, share, 1.0 - share))


def test_a_table_of_sums_gives_what_the_rows_give() -> None:
    rows = constant_rows()
    sums, log = ai.Sums(table_of(rows), **nested_options({**ROLES, **CUBES}, OF_TABLES)), log_of(rows)
    pair = {"treatment": 1, "control": 0}
    for below, covariate in (("orders", None), (None, "before")):
        asked = {"estimator": "aipw", "outcome": "batch-mean", "test": "hall", "covariate": covariate}
        found, due = (ai.Contrast(data, **pair, denominator=below).fit(**asked) for data in (sums, log))
        assert_same(found, due)
        np.testing.assert_allclose(found.conf_int(), due.conf_int(), rtol=1e-9)
    with pytest.raises(InvalidForLog, match="do not contain products of 'orders' with 'before'"):
        ai.ArmMeans(sums, denominator="orders").fit(covariate="before")
    bare = ai.Sums(table_of(rows), **nested_options(ROLES, OF_TABLES))
    with pytest.raises(InvalidForLog, match="do not contain the skewness of the rewards"):
        ai.ArmMeans(bare, denominator="orders").fit(test="hall")
    assert_same(ai.ArmMeans(bare, denominator="orders").fit(), ai.ArmMeans(sums, denominator="orders").fit())


def test_clicks_of_views_need_no_cubes() -> None:
    """Of two columns of 0 and one other value everything follows."""
    rng, rows = np.random.default_rng(2), constant_rows()
    views = (rng.random(len(rows)) < 0.5).astype(float)
    rows = rows.assign(orders=views, y=views * (rng.random(len(rows)) < 0.3))
    sums, log = ai.Sums(table_of(rows), **nested_options(ROLES, OF_TABLES)), log_of(rows)
    found, due = (
        ai.ArmMeans(data, denominator="orders").fit("aipw", outcome="batch-mean", test="hall")
        for data in (sums, log)
    )
    assert_same(found, due)
    np.testing.assert_allclose(found.conf_int(), due.conf_int(), rtol=1e-9)


def test_shares_in_place_of_propensities() -> None:
    """sum w (mean y) / sum w (mean z), w a batch's share of the rounds, with the variance of each batch."""
    rows = constant_rows().drop(columns=["propensity_0", "propensity_1"])
    sums = ai.aggregate(rows, **NAMES, denominator="orders", covariate="before")
    result, both = (
        ai.ArmMeans(sums, denominator="orders").fit(test="t"),
        ai.Contrasts(sums, control=0, denominator="orders").fit(test="t"),
    )
    weight, variance = rows.groupby("batch").size() / len(rows), {}
    for arm in (0, 1):
        own = rows[rows["arm"] == arm].groupby("batch")
        level = (weight * own["orders"].mean()).sum()
        ratio = (weight * own["y"].mean()).sum() / level
        gaps = (rows["y"] - ratio * rows["orders"])[rows["arm"] == arm].groupby(rows["batch"])
        variance[arm] = float((weight**2 * gaps.var() / gaps.size()).sum() / level**2)
        assert result.estimate[arm] == pytest.approx(ratio, rel=1e-12)
        assert result.std_error[arm] ** 2 == pytest.approx(variance[arm], rel=1e-10)
    assert both.std_error[0] ** 2 == pytest.approx(variance[0] + variance[1], rel=1e-10)
    with pytest.raises(InvalidForLog, match="the shares used in their place"):
        ai.ArmMeans(sums).fit(covariate="before")


def test_what_is_wrong_with_a_table_in_one_error() -> None:
    table = table_of(constant_rows())
    table.loc[0, "yo"] *= 3.0
    table.loc[1, "orders"] = -1.0
    table.loc[2, "bb"] = 1.0
    table.loc[3, "ooo"] = 1e9
    with pytest.raises(LogValidationError) as caught:
        ai.Sums(table, **nested_options({**ROLES, **CUBES}, OF_TABLES))
    told = {(problem.code, problem.rows) for problem in caught.value.problems}
    assert told >= {
        ("bad-denominator", (1,)),
        ("impossible-products", (0, 1)),
        ("impossible-squares", (2,)),
        ("impossible-cubes", (3,)),
    }
    for dropped, message in [
        ("denominator_sum_squares", "denominator= also requires 'denominator_sum_squares'"),
        ("covariate", "'covariate_sum_squares', 'covariate_sum_products' cannot be used without covariate="),
    ]:
        roles = {role: name for role, name in ROLES.items() if role != dropped}
        with pytest.raises(LogValidationError, match=message):
            ai.Sums(table_of(constant_rows()), **nested_options(roles, OF_TABLES))
    with pytest.raises(LogValidationError, match="'denominator_sum_cubes' must name three columns"):
        ai.Sums(
            table_of(constant_rows()),
            **nested_options({**ROLES, "denominator_sum_cubes": ["yyo"]}, OF_TABLES),
        )
    with pytest.raises(LogValidationError, match="the denominator is 0 in every round"):
        ai.Sums(table_of(constant_rows()).assign(orders=0, oo=0, yo=0), **nested_options(ROLES, OF_TABLES))


def test_columns_that_the_sums_do_not_have() -> None:
    rows = constant_rows()
    sums = ai.Sums.of_log(log_of(rows), denominator="orders")
    with pytest.raises(
        InvalidForLog, match=r"do not contain products of rewards with 'profit'.*denominator='orders'"
    ):
        ai.Contrasts(sums, control=0, denominator="profit")
    with pytest.raises(ParameterError, match="must name a column with sums"):
        ai.ArmMeans(sums, denominator=np.ones(len(rows)))
    with pytest.raises(InvalidForLog, match="do not contain products of rewards with 'before'"):
        ai.ArmMeans(sums).fit(covariate="before")
    with pytest.raises(InvalidForLog, match=NEEDS_ROWS()):
        ai.ArmMeans(sums, denominator="orders").fit("alee")
    single = ai.Sums.of_log(log_of(rows.assign(batch=0)), covariate="before")
    with pytest.raises(
        InvalidForLog, match=("slopes are estimated from earlier batches, but there is only one batch")
    ):
        ai.ArmMeans(single).fit(covariate="before")


WAREHOUSE = {
    "at": "timestamp",
    "arm": "string",
    "y": "float64",
    "orders": "int64",
    "propensity_a": "float64",
    "propensity_b": "float64",
}


def sql_of(dialect: str) -> str:
    """The query with a denominator, as ibis compiles it for a warehouse that no driver has opened."""
    compiler = importlib.import_module(f"ibis.backends.sql.compilers.{dialect}").compiler
    table = ibis.table(WAREHOUSE, name="log")
    names = {"action": "arm", "reward": "y", "batch": "at", "denominator": "orders"}
    query = ai.aggregate(table, **names, every="day", centre=10.0, collect=False)
    return str(compiler.to_sqlglot(query).sql(dialect=compiler.dialect, pretty=True)) + "\n"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_sql_of_warehouses(dialect: str) -> None:
    """Where this is right and differs, ``python tests/unit/sums/test_further_columns.py`` writes it again."""
    assert sql_of(dialect) == (SNAPSHOTS / f"{dialect}.sql").read_text(encoding="utf-8")


if __name__ == "__main__":
    for each in DIALECTS:
        (SNAPSHOTS / f"{each}.sql").write_text(sql_of(each), encoding="utf-8")
