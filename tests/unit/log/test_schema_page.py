"""The page for R: its schema is that of a saved log, and its blocks run where R is installed."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import adaptinf as ai
from adaptinf.log.validation import nested_options

PAGE = (Path(__file__).parents[3] / "docs" / "r.md").read_text(encoding="utf-8")
FRAME = pd.DataFrame(
    {
        "who": ["u", "v", "u", "w"],
        "visit": [14, 11, 12, 13],
        "given": ["a", "b", "a", "b"],
        "got": ["a", "b", "b", "b"],
        "y": [0.0, 1.0, None, 1.0],
        "seen": 0.9,
        "known": [1.0, 3.0, None, 4.0],
        "pa": 0.5,
        "pb": 0.5,
        "week": [3, 3, 4, 4],
        "stage": ["first", "first", "main", "main"],
        "coin": [True, True, False, True],
        "age": [40.5, 30.0, 20.0, 10.0],
        "site": ["x", "y", "x", "y"],
        "views": [1.0, 2.0, 3.0, 4.0],
    }
)
ROLES: dict[str, Any] = {
    "unit": "who",
    "id": "visit",
    "assigned": "given",
    "action": "got",
    "reward": "y",
    "observation": "seen",
    "outcome_round": "known",
    "propensities": {"a": "pa", "b": "pb"},
    "batch": "week",
    "phase": "stage",
    "randomised": "coin",
    "context": ["age", "site"],
    "outcomes": ["views"],
    "reward_range": (0, 1),
}
TYPES = {
    "string": pa.string(),
    "int64": pa.int64(),
    "double": pa.float64(),
    "bool": pa.bool_(),
    "timestamp": pa.timestamp("us"),
}


def rows(heading: str) -> list[list[str]]:
    """Rows of the first table below a sentence of the page, without code marks around names."""
    text = PAGE[PAGE.index(heading) :]
    table = re.search(r"^\|.*?(?=\n\n)", text, re.MULTILINE | re.DOTALL)
    assert table is not None
    lines = table.group().splitlines()[2:]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


def saved(log: ai.AdaptiveLog, folder: Path) -> pa.Schema:
    log.to_parquet(folder / "log.parquet")
    return pq.read_schema(folder / "log.parquet")


def documented(
    arms: tuple[Any, ...] = (), context: tuple[str, ...] = (), outcomes: tuple[str, ...] = ()
) -> dict[str, tuple[str, str]]:
    """Columns of the page in order, for these arms and names: Arrow types, and when they are there."""
    several = {"names of contexts": context, "names of outcomes": outcomes}
    found: dict[str, tuple[str, str]] = {}
    for name, kinds, there, _ in rows("## The columns of a saved log"):
        names = [f"propensity_{arm}" for arm in arms] if "<arm>" in name else [name]
        for each in several.get(name, names):
            found[each] = kinds, there
    return found


def allowed(kinds: str, action: pa.DataType) -> list[pa.DataType]:
    if kinds == "as `action":
        return [action]
    names = TYPES if kinds == "as in the input" else re.split(", | or ", kinds)
    return [TYPES[name] for name in names]


def test_the_columns_of_a_full_log_are_those_of_the_page(tmp_path: Path) -> None:
    log = ai.AdaptiveLog(FRAME, **nested_options(ROLES))
    schema, told = saved(log, tmp_path), documented(log.arms, log.context, log.outcomes)
    assert schema.names == list(told)
    action = schema.field("action").type
    for name, (kinds, _) in told.items():
        assert schema.field(name).type in allowed(kinds, action), name


def test_columns_are_there_where_the_page_says(tmp_path: Path) -> None:
    """Without its argument a column is not there, and every other one still is."""
    for name, (_, there) in documented(("a", "b"), ("age", "site"), ("views",)).items():
        if there == "always":
            continue
        arguments = {a or b for a, b in re.findall(r"`(\w+)=`|(\w+)=", there)}
        roles = {name} if arguments == {"columns"} else arguments
        given = {role: value for role, value in ROLES.items() if role not in roles}
        if "assigned" in arguments:
            given["action"] = "given"
        if name in ("observation", "outcome_round"):
            given["missing"] = "drop"
        assert name not in saved(ai.AdaptiveLog(FRAME, **nested_options(given)), tmp_path).names
    bare = saved(ai.AdaptiveLog(FRAME.dropna(), action="got", reward="y"), tmp_path)
    told = documented()
    assert bare.names == [name for name, (_, there) in told.items() if there == "always"]


@pytest.mark.parametrize("labels", [["a", "b"], [3, 4], [0.5, 1.5], [False, True]])
def test_types_of_labels_and_times(tmp_path: Path, labels: list[Any]) -> None:
    times = pd.to_datetime(["2026-01-01", "2026-01-02", "2026-01-05", "2026-01-06"])
    frame = FRAME.assign(got=[labels[0], labels[1], labels[0], labels[1]], when=times)
    frame["known"] = [times[0], times[2], pd.NaT, times[3]]
    roles = {"action": "got", "reward": "y", "missing": "drop", "round": "when", "outcome_round": "known"}
    schema = saved(ai.AdaptiveLog(frame, **nested_options(roles)), tmp_path)
    told = documented()
    assert schema.field("action").type in allowed(told["action"][0], schema.field("action").type)
    for name in ("t", "outcome_round"):
        assert pa.types.is_timestamp(schema.field(name).type)
        assert "timestamp" in told[name][0]


def test_the_metadata_are_those_of_the_page(tmp_path: Path) -> None:
    env = ai.environments.BernoulliArms([0.2, 0.9])
    log = ai.designs.PrivateSuccessiveElimination(epsilon=2.0).run(env, horizon=4_000, rng=1)
    metadata = saved(log, tmp_path).metadata
    assert sorted(metadata) == [b"adaptinf", b"adaptinf.releases"]
    header = json.loads(metadata[b"adaptinf"])
    assert list(header) == [name for name, _ in rows("`adaptinf` is JSON:")]
    assert header["version"] == 2
    assert header["n_rounds"] == 4_000
    own = rows("`log` has these keys")
    assert set(header["log"]) == {name for name, _ in own}
    assert len(own) == len(header["log"])
    assert header["log"]["arms"] == {"tuple": [0, 1]}
    fields = next(told for name, told in own if name == "guarantee")
    assert list(header["log"]["guarantee"]) == re.split(", | and ", fields)
    releases = json.loads(zlib.decompress(base64.b64decode(metadata[b"adaptinf.releases"])))
    named = PAGE[PAGE.index("Their columns are") : PAGE.index(", each `{")]
    assert list(releases) == re.findall(r"`(\w+)`", named) == list(log.releases.columns)
    assert releases["value"]["values"] == log.releases["value"].tolist() != []
    assert list(releases["value"]) == ["dtype", "values"]


def test_a_stranger_reads_the_columns_without_adaptinf(tmp_path: Path) -> None:
    log = ai.AdaptiveLog(FRAME, **nested_options(ROLES))
    saved(log, tmp_path)
    table = pq.read_table(tmp_path / "log.parquet")
    assert table["action"].to_pylist() == FRAME["given"].tolist()
    assert table["received"].to_pylist() == FRAME["got"].tolist()
    assert table["batch"].to_pylist() == [0, 0, 1, 1]
    assert table["t"].to_pylist() == [1, 2, 3, 4]
    assert table["propensity_b"].to_pylist() == [0.5] * 4
    assert pd.isna(table["reward"].to_pylist()[2])


def has_reticulate() -> bool:
    program = shutil.which("Rscript")
    return program is not None and subprocess.run([program, "-e", "library(reticulate)"]).returncode == 0


@pytest.mark.slow
def test_the_blocks_of_r_run(tmp_path: Path) -> None:
    if not has_reticulate():
        pytest.skip("R with reticulate is not installed")
    blocks = re.findall(r"^```r\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    (tmp_path / "page.R").write_text("\n".join(blocks), encoding="utf-8")
    root = str(Path(__file__).parents[3])
    done = subprocess.run(
        ["Rscript", "page.R"],
        cwd=tmp_path,
        env={**os.environ, "RETICULATE_PYTHON": sys.executable, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "b - a" in done.stdout
    assert "aipw with uniform weights" in done.stdout
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert ai.read_log(tmp_path / "trial.parquet").n_rounds == 500
