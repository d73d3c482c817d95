"""Sums over powers of propensities follow from plain sums where these are constant in a batch and arm."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import dask.dataframe as dd
import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sum_rows import NAMES, PARTS

import adaptinf as ai
from adaptinf.errors import LogValidationError
from adaptinf.sums import engines

# Dask, and what ibis calls.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
SOURCES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "duckdb": lambda frame: duckdb.from_df(frame),
    "ibis": lambda frame: ibis.memtable(pa.Table.from_pandas(frame, preserve_index=False)),
    "pandas": lambda frame: frame,
    "pyarrow": lambda frame: pa.table({name: frame[name].to_numpy() for name in frame}),
    "polars": lambda frame: pl.from_pandas(frame, nan_to_null=False).lazy(),
    "dask": lambda frame: dd.from_pandas(frame, npartitions=3),
}
SLOWEST = ("ibis", "dask")  # test_aggregate.py and test_engines.py run them quickly
BY_SOURCE = pytest.mark.parametrize(
    "source", [pytest.param(one, marks=pytest.mark.slow) if one in SLOWEST else one for one in SOURCES]
)
SHARES = np.array([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.6, 0.4, 0.0]])
SIZES = (500, 700, 400)


def frame_of(seed: int = 0) -> pd.DataFrame:
    """Rounds of three batches with propensities of their own, in the last of which an arm is impossible."""
    rng = np.random.default_rng(seed)
    batch = np.repeat(np.arange(3), SIZES)
    arm = np.array([rng.choice(3, p=row) for row in SHARES[batch]])
    rewards = {"y": rng.gamma(1.5, 1.0 + arm) * (rng.random(len(arm)) < 0.9)}
    columns = {f"propensity_{k}": SHARES[batch, k] for k in range(3)}
    more = {
        "p": SHARES[batch, arm],
        "orders": rng.poisson(2.0, len(arm)),
        "site": rng.integers(0, 2, len(arm)),
    }
    return pd.DataFrame({"batch": batch, "arm": arm, **rewards, **columns, **more})


def queried(monkeypatch: pytest.MonkeyPatch, call: Callable[[], Any]) -> tuple[Any, list[bool]]:
    """The answer of a call, and for each query by batch and arm whether it adds up powers of propensities."""
    asked, real = list[bool](), engines.cell_query

    def spied(*given: Any, **options: Any) -> Any:
        asked.append(options["weighted"])
        return real(*given, **options)

    monkeypatch.setattr(engines, "cell_query", spied)
    return call(), asked


def assert_close(found: ai.Sums, due: ai.Sums) -> None:
    for name in PARTS:
        got, expected = getattr(found.cells, name), getattr(due.cells, name)
        if name == "moments":  # of fourth powers only the sum of weights is used
            got, expected = ([*part[:4].ravel(), *part[4, 0].ravel()] for part in (got, expected))
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-9)


CASES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "every": (["propensity_0", "propensity_1", "propensity_2"], {}),
    "chosen": (["p"], {"propensity": "p"}),
    "both": (["p", "propensity_0", "propensity_1", "propensity_2"], {"propensity": "p"}),
    "by": (["propensity_0", "propensity_1", "propensity_2", "site"], {"by": "site"}),
    "ratio": (["propensity_0", "propensity_1", "propensity_2", "orders"], {"denominator": "orders"}),
}


@BY_SOURCE
@pytest.mark.parametrize("case", CASES)
def test_one_query_of_plain_sums_gives_the_sums_of_the_rows(
    case: str, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns, options = CASES[case]
    frame = frame_of()[["batch", "arm", "y", *columns]]
    found, asked = queried(monkeypatch, lambda: ai.aggregate(SOURCES[source](frame), **NAMES, **options))
    assert asked == [False]
    monkeypatch.undo()
    monkeypatch.setattr(engines, "constant", lambda *given: False)
    centre = {} if "denominator" in options else {"centre": found.cells.centre}
    due, asked = queried(monkeypatch, lambda: ai.aggregate(frame, **NAMES, **options, **centre))
    assert asked == [False, True]
    assert_close(found, due)
    assert not np.isnan(due.cells.moments[:4]).any()
    for (mine, _), (other, _) in zip(
        found._parts.by_group.values(), due._parts.by_group.values(), strict=True
    ):
        np.testing.assert_allclose(mine.moments[:4], other.moments[:4], rtol=1e-12, atol=1e-9)
        if mine.products is not None and other.products is not None:
            table = mine.products.about(other.products.centres).table
            np.testing.assert_allclose(table, other.products.table, rtol=1e-11, atol=1e-8)


@BY_SOURCE
def test_propensities_that_move_after_the_first_rows_take_a_second_query(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = frame_of()
    late = frame.index >= 1_300
    shift = np.where(late & (frame.index % 2 == 0), 1e-3, 0.0)
    frame["propensity_0"] += shift
    frame["propensity_1"] -= shift
    frame["p"] = frame[[f"propensity_{k}" for k in range(3)]].to_numpy()[frame.index, frame["arm"]]
    chosen, frame = frame[["batch", "arm", "y", "p"]], frame.drop(columns=["p", "orders", "site"])
    for table, options in ((frame, {}), (chosen, {"propensity": "p"})):
        call = partial(ai.aggregate, SOURCES[source](table), **NAMES, **options, centre=1.0)
        found, asked = queried(monkeypatch, call)
        monkeypatch.undo()
        assert asked == [False, True]
        log = ai.AdaptiveLog(table, action="arm", reward="y", batch="batch", **options)
        np.testing.assert_allclose(
            found.cells.moments[:4], ai.Sums.of_log(log, centre=1.0).cells.moments[:4], rtol=1e-12, atol=1e-9
        )
    frame.loc[::2, ["propensity_0", "propensity_1"]] += [1e-3, -1e-3]
    _, asked = queried(monkeypatch, lambda: ai.aggregate(SOURCES[source](frame), **NAMES))
    assert asked == [True]  # the first rows show it


@pytest.mark.parametrize("source", ["duckdb", "polars", "pyarrow"])  # NaN is the largest or ignored
@pytest.mark.parametrize("moving", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("column", "entry"),
    [
        *(("y", entry) for entry in (np.nan, np.inf, 1e300, 2.0**53, -0.5)),
        *(("propensity_1", entry) for entry in (np.nan, -0.5, 1.5)),
        *(("orders", entry) for entry in (np.nan, np.inf, 1e300, -0.5)),
    ],
)
def test_one_odd_entry_is_found(
    column: str, entry: float, moving: bool, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = frame_of().astype({"orders": float}).drop(columns=["p", "site"])
    frame.loc[1_234, column] = entry
    if moving:
        monkeypatch.setattr(engines, "moves", lambda *given: True)
    options = {**NAMES, "denominator": "orders", "reward_range": (0, 2**54)}
    with pytest.raises(LogValidationError, match="in 1 row, such as in batch 2 of arm"):
        ai.aggregate(SOURCES[source](frame), **options)


@BY_SOURCE
def test_propensities_that_contradict_each_other_are_found(source: str) -> None:
    frame = frame_of().drop(columns=["orders", "site"])
    off, zero, apart = frame.copy(), frame.copy(), frame.copy()
    off["propensity_1"] += 1e-5 * (frame["batch"] == 1)
    rows = (frame["batch"] == 0) & (frame["arm"] == 0)
    zero.loc[rows, ["propensity_0", "propensity_1"]] = 0.0, 0.8
    apart.loc[rows, "p"] = 0.4
    for table, options, told in (
        (off.drop(columns="p"), {}, r"do not sum to 1.* in 700 rows"),
        (zero.drop(columns="p"), {}, f"has a propensity of 0 in its column in {rows.sum()} rows"),
        (apart, {"propensity": "p"}, f"in {rows.sum()} rows, such as in batch 0 of arm 0"),
    ):
        with pytest.raises(LogValidationError, match=told):
            ai.aggregate(SOURCES[source](table), **NAMES, **options)


def test_a_far_centre_is_refused_with_the_ends_of_the_rewards() -> None:
    frame = frame_of().assign(y=lambda rows: rows["y"] + 5.0)
    least, most = frame["y"].min(), frame["y"].max()
    with pytest.raises(LogValidationError, match=f"which range from {least:g} to {most:g}, that"):
        ai.aggregate(frame, **NAMES, centre=1e12)
    assert ai.aggregate(frame.assign(y=5.0), **NAMES, centre=1e12).n_rounds == sum(SIZES)


def test_an_engine_that_stops_at_a_power_does_not_hide_the_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*given: Any) -> Any:
        raise RuntimeError("value out of range: overflow")

    frame = frame_of().drop(columns=["p", "orders", "site"])
    monkeypatch.setattr(engines, "_summed", stopped)
    with pytest.raises(LogValidationError, match=r"engine that holds the table stopped .*: overflow"):
        ai.aggregate(frame, **NAMES)
    frame.loc[3, "y"] = 1e300
    with pytest.raises(
        LogValidationError, match=r"'y' of type Float64 .* in 1 row, such as in batch 0"
    ) as caught:
        ai.aggregate(frame, **NAMES)
    assert [problem.code for problem in caught.value.problems] == ["rounded-reward"]
