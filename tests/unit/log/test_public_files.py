"""The public part as one file: read back whole, and refused where anything in it was changed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import adaptinf as ai
from adaptinf import claims
from adaptinf.claims.logs import public_part
from adaptinf.cli import main
from adaptinf.errors import ParameterError
from adaptinf.log import PublicLog
from adaptinf.log.storage.parquet import KEY, TABLES
from tests.unit.log.test_public import COVERED, named


@pytest.mark.parametrize(("design", "environment", "horizon", "covered"), COVERED, ids=named)
def test_everything_is_as_it_was(
    design: ai.designs.Design, environment: Any, horizon: int, covered: dict[str, str], tmp_path: Path
) -> None:
    public = design.run(environment, horizon, rng=0).public()
    public.to_parquet(tmp_path / "public.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["public.parquet"]
    again = ai.read_log(tmp_path / "public.parquet")
    assert isinstance(again, PublicLog)
    assert again.equals(public)
    assert (again.guarantee, again.parts, again.statement) == (
        public.guarantee,
        public.parts,
        public.statement,
    )
    assert again.facts == public.facts
    pd.testing.assert_frame_equal(again.releases, public.releases)
    assert (again.rounds is None) == (public.rounds is None)
    if again.rounds is not None and public.rounds is not None:
        pd.testing.assert_frame_equal(again.rounds, public.rounds)
    again.to_parquet(tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "public.parquet").read_bytes()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    arms = ai.environments.BernoulliArms([0.4, 0.55])
    log = ai.designs.DPConSE(epsilon=1.0, contrast_share=1).run(arms, horizon=400, rng=0)
    log.public().to_parquet(tmp_path / "public.parquet")
    return tmp_path / "public.parquet"


def changed(path: Path, metadata: dict[bytes, bytes], column: str | None = None) -> None:
    """The file with other metadata, and with its values in a column rounded."""
    table = pq.read_table(path)
    if column is not None:
        place = table.column_names.index(column)
        values = [round(float(value), 1) for value in table.column(column).to_pylist()]
        table = table.set_column(place, column, pa.array(values))
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, **metadata}), path)


def told(path: Path, **others: Any) -> dict[bytes, bytes]:
    header = json.loads(pq.read_schema(path).metadata[KEY])
    return {KEY: json.dumps({**header, **others}).encode()}


def test_what_was_changed_is_refused(path: Path, tmp_path: Path) -> None:
    whole = path.read_bytes()
    header = json.loads(pq.read_schema(path).metadata[KEY])
    damaged = "is damaged: its content does not match its digest"
    cases: list[tuple[dict[bytes, bytes], str | None, str]] = [
        (told(path, guarantee={**header["guarantee"], "epsilon": 0.1}), None, damaged),
        (told(path, facts={**header["facts"], "n_rounds": 401}), None, damaged),
        (told(path, statement="All of it is covered."), None, damaged),
        ({}, "value", damaged),
        ({TABLES: b""}, None, "not a readable Parquet file|releases that are truncated"),
        (told(path, version=2), None, "is a public part of version 2, but this version of adaptinf reads 1"),
        ({KEY: json.dumps({"version": 1}).encode()}, None, "without statement and guarantee and facts"),
        ({KEY: b"{"}, None, "not a readable Parquet file"),
    ]
    for metadata, column, reason in cases:
        path.write_bytes(whole)
        changed(path, metadata, column)
        with pytest.raises(ParameterError, match=reason) as caught:
            ai.read_log(path)
        assert str(path) in str(caught.value)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ParameterError, match=re.escape(str(path))):
        ai.read_log(path)


def test_it_needs_no_names_of_columns(path: Path) -> None:
    with pytest.raises(ParameterError, match="already states the roles of its columns: omit action"):
        ai.read_log(path, action="group")


def test_the_command_line_says_where_it_goes(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(path)]) == 2
    assert "it is the public part of a log, without rows" in capsys.readouterr().err


def test_a_log_that_is_raw_stays_one(tmp_path: Path) -> None:
    log = ai.designs.PrivateUCB(epsilon=1.0).run(ai.environments.BernoulliArms([0.4, 0.6]), 20, rng=0)
    log.to_parquet(tmp_path / "log.parquet")
    assert isinstance(ai.read_log(tmp_path / "log.parquet"), ai.AdaptiveLog)


def test_a_file_outlives_its_wording(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = ai.read_log(path)
    reworded = (claims.Claim("always", "In other words.", "note"), *public_part.OPENING[1:])
    monkeypatch.setattr(public_part, "OPENING", reworded)
    after = ai.read_log(path)
    assert isinstance(after, PublicLog)
    assert "In other words." in after.statement
    pd.testing.assert_frame_equal(before.releases, after.releases)
