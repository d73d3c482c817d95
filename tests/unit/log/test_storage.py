"""Files of logs: what is refused when they are read, how large they may be, and where they go."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import adaptinf as ai
from adaptinf.errors import AdaptinfError, FileError, LogValidationError, ParameterError
from adaptinf.log import AdaptiveLog, DesignRecord
from adaptinf.log.storage import header
from adaptinf.log.storage import header as limits
from adaptinf.log.storage.header import stated_sizes
from adaptinf.log.storage.log_files import write_file
from adaptinf.log.storage.stored import StoredLog

FRAME = pd.DataFrame(
    {
        "arm": ["a", "b", "a", "b"],
        "y": [1.0, 0.5, 0.25, 0.0],
        "pa": [0.5, 0.25, 0.75, 0.5],
        "pb": [0.5, 0.75, 0.25, 0.5],
        "week": [0, 0, 1, 1],
        "town": ["m", "n", "m", "n"],
        "who": ["u", "v", "u", "w"],
    }
)


def sample() -> AdaptiveLog:
    return AdaptiveLog(
        FRAME,
        action="arm",
        reward="y",
        propensities={"a": "pa", "b": "pb"},
        batch="week",
        context=["town"],
        unit="who",
        reward_range=(0, 1),
        guarantee=ai.PrivacyGuarantee(1.0),
        about={
            "design": DesignRecord("UCB", {"width": 2.0}, ai.designs.UCB().traits),
            "feedback_rounds": 3,
            "releases": {
                "round": [1],
                "name": ["sum"],
                "group": [0],
                "value": [0.5],
                "mechanism": ["laplace"],
                "scale": [2.0],
            },
        },
    )


@pytest.fixture(params=["log.parquet", "log.csv"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / str(request.param)


def save(log: AdaptiveLog, path: Path) -> Path:
    write_file(path, log._stored(), path.suffix[1:])
    return path


def forge(path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[StoredLog], Any]) -> None:
    """Write a changed log with a right digest, as if by a writer that checks nothing."""
    stored = sample()._stored()
    stored.columns.update({name: values.copy() for name, values in stored.columns.items()})
    changed = change(stored)
    with monkeypatch.context() as patched:
        patched.setattr(header, "restored", lambda log: None)
        write_file(path, changed if isinstance(changed, StoredLog) else stored, path.suffix[1:])


def column(name: str, values: Any) -> Callable[[StoredLog], None]:
    return lambda stored: stored.columns.update({name: np.asarray(values)})


def said(name: str, value: Any) -> Callable[[StoredLog], None]:
    return lambda stored: stored.metadata.update({name: value})


def shuffled(stored: StoredLog) -> None:
    stored.columns.update({name: values[[2, 0, 3, 1]] for name, values in stored.columns.items()})


def released(**values: Any) -> Callable[[StoredLog], StoredLog]:
    return lambda stored: StoredLog(stored.columns, stored.metadata, stored.releases.assign(**values))


TRAITS = ai.designs.UCB().traits.to_dict()
FORGED: list[tuple[Any, str]] = [
    (column("propensity", [-5.0, 0.75, 0.75, 0.5]), r"'propensity' has values outside \(0, 1\] \[row 0\]"),
    (column("propensity_a", [9.0, 0.25, 0.75, 0.5]), "'propensity_a' has values outside"),
    (column("reward", [1.0, np.nan, 0.25, 0.0]), r"'reward' has no value \(NaN or None\) \[row 1\]"),
    (column("reward", [1.0, 7.0, 0.25, 0.0]), "rewards outside reward_range"),
    (column("action", np.array(["a", "b", "a", "c"], dtype=object)), r"metadata: \['c'\]"),
    (column("batch", [0, 1, 0, 1]), "returns to an earlier batch"),
    (column("batch", [5, 5, 6, 6]), "batches must be numbered 0, 1, 2"),
    (column("t", [1, 2, 3, 5]), "rows are missing or out of order"),
    (column("extra", [1, 2, 3, 4]), "the columns must be t, unit_id, action, .*, not .*extra"),
    (shuffled, "rows are missing or out of order|returns to an earlier batch"),
    (said("arms", ("a", "b", "a")), "arms must be a tuple of distinct labels"),
    (said("arms", ()), "arms must be a tuple of distinct labels"),
    (said("arms", ("b", "a")), r"differs from the arm's own column|the columns must be"),
    (said("context", ("town", "town")), "context must be a tuple of distinct strings"),
    (said("context", ("elsewhere",)), "the columns must be"),
    (said("names", {"arm": "action", "wrong": "nowhere"}), "refer to columns that do not exist: nowhere"),
    (said("names", {"arm": "action", "other": "action"}), "two of the user's names refer to the same column"),
    (said("names", [1]), "names must be a dict of strings"),
    (said("has_rounds", "no"), "has_rounds must be True or False"),
    (said("phases", "learning"), "phases must be a tuple"),
    (said("reward_range", (1.0, 0.0)), "low < high"),
    (said("reward_range", 1.0), "reward_range must be two numbers"),
    (said("reward_range", ("a", "b")), "reward_range must be two finite numbers"),
    (said("reward_range", (0.0, np.nan)), "low < high"),
    (said("noise", "loud"), "noise must be 'simulation'"),
    (said("feedback_rounds", 99), "feedback_rounds must be a whole number from 0 to 4"),
    (said("recommended", "z"), "recommended must be one of 'a', 'b', got 'z'"),
    (said("propensity_status", "absent"), "but the log has propensities"),
    (said("context_free", 1), "context_free must be True, False or None"),
    (said("guarantee", {"epsilon": -1.0}), "epsilon must be 0 or more"),
    (said("guarantee", {"epsilon": 1.0, "colour": "red"}), "unknown field 'colour'"),
    (said("guarantee", "strong"), "guarantee must be a dict or None"),
    (said("reward_guarantee", {"epsilon": 1.0, "unit": "record"}), "must have unit 'reward'"),
    (said("design", ("UCB",)), "design must be a name and its parameters"),
    (said("design", None), "there are traits, but no design"),
    (said("design", ("UCB", {1: 2})), "design must have a name and parameters by name"),
    (said("traits", {**TRAITS, "adapts": "often"}), r"traits\.adapts must be one of True, False"),
    (said("colour", "red"), "no others; check .'colour'"),
    (released(scale=[-1.0]), "releases: scale must be a number of at least 0"),
    (released(round=[-1]), "releases: round must be a whole number"),
    (released(value=["x"]), "releases: value must be a number"),
    (released(name=[3]), "releases: name must be a text"),
    (released(mechanism=[None]), "releases: mechanism must be a text"),
]


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [("log.parquet", *case) for case in FORGED] + [("log.csv", *case) for case in FORGED[::6]],
)
def test_restored_logs_pass_the_checks_of_a_users_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, change: Any, message: str
) -> None:
    path = tmp_path / name
    forge(path, monkeypatch, change)
    with pytest.raises(ParameterError, match=message) as caught:
        ai.read_log(path)
    assert str(path) in str(caught.value)


def test_a_forged_log_that_is_right_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forge(path, monkeypatch, lambda stored: None)
    assert ai.read_log(path).equals(sample())


def test_what_could_not_be_read_again_is_not_written(path: Path) -> None:
    save(sample(), path)
    before = path.read_bytes()
    arrays = sample().arrays
    arrays.reward[1] = np.nan
    with pytest.raises(LogValidationError, match="reward column 'reward' has no value"):
        save(AdaptiveLog.from_arrays(arrays, arms=("a", "b")), path)
    assert path.read_bytes() == before


def test_an_action_without_a_value_is_no_arm(tmp_path: Path) -> None:
    path = save(sample(), tmp_path / "log.parquet")
    table = pq.read_table(path)
    place = table.column_names.index("action")
    pq.write_table(table.set_column(place, "action", pa.array(["a", "b", "a", None])), path)
    with pytest.raises(ParameterError, match=r"log\.parquet has no value in column 'action', first in row 3"):
        ai.read_log(path)
    pq.write_table(table.set_column(place, "action", pa.array([1, 2, 3, 4])), path)
    with pytest.raises(ParameterError, match=r"has column 'action' as int64, but its metadata state \|O"):
        ai.read_log(path)


def test_damage_of_what_a_file_says_is_refused_by_name(path: Path) -> None:
    for change, message in [
        ({"version": 1}, "is a log of format version 1, which has no digest"),
        ({"version": 3}, "has format version 3, but this version of adaptinf reads 2"),
        ({"version": 2.0}, r"has format version 2\.0"),
        ({"digest": None}, "has metadata without digest"),
        ({"digest": "0" * 64}, "does not match its digest"),
        ({"dtypes": None}, "has metadata that are damaged or were not written by adaptinf"),
        ({"n_rounds": 5}, "has 4 rows, but its metadata state 5"),
        ({"more": 1}, "does not match its digest"),
    ]:
        save(sample(), path)
        _change_header(path, change)
        with pytest.raises(ParameterError, match=message) as caught:
            ai.read_log(path)
        assert str(path) in str(caught.value)


def _change_header(path: Path, change: dict[str, Any]) -> None:
    def changed(text: bytes) -> bytes:
        known = {**json.loads(text), **change}
        return json.dumps({name: value for name, value in known.items() if value is not None}).encode()

    if path.suffix == ".csv":
        sidecar = path.with_name("log.csv.json")
        sidecar.write_bytes(changed(sidecar.read_bytes()))
        return
    table = pq.read_table(path)
    metadata = dict(table.schema.metadata)
    metadata[b"adaptinf"] = changed(metadata[b"adaptinf"])
    pq.write_table(table.replace_schema_metadata(metadata), path)


DEEP = b"[" * 100_000
HOSTILE: dict[str, bytes] = {
    "nothing": b"",
    "no text": b"\xff\xfe\x00",
    "deep": DEEP,
    "deep in a header": b'{"version": 2, "dtypes": ' + DEEP,
    "a long number": b'{"version": ' + b"9" * 5000 + b', "dtypes": {}}',
    "a wrong type": b'{"version": 2, "n_rounds": 4, "dtypes": 7, "log": {}, "digest": ""}',
    "a huge type": b'{"version": 2, "n_rounds": 4, "dtypes": {"t": "<U900000000"}, "log": {}, "digest": ""}',
    "an odd number": b'{"version": 2, "n_rounds": NaN, "dtypes": {"t": "<i8"}, "log": 1e999, "digest": ""}',
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=list(HOSTILE))
def test_any_failure_to_decode_is_one_error_that_names_the_file(path: Path, content: bytes) -> None:
    save(sample(), path)
    if path.suffix == ".csv":
        path.with_name("log.csv.json").write_bytes(content)
    else:
        table = pq.read_table(path)
        metadata = dict(table.schema.metadata) | {b"adaptinf": content}
        pq.write_table(table.replace_schema_metadata(metadata), path)
    with pytest.raises(ParameterError) as caught:
        ai.read_log(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 1500


# Sizes


@pytest.fixture
def peak() -> Iterator[Callable[[], float]]:
    """MiB that Python and NumPy have held at most."""
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()


def test_a_header_of_commas_does_not_fill_the_memory(tmp_path: Path, peak: Callable[[], float]) -> None:
    path = tmp_path / "commas.csv"
    path.write_bytes(b"," * 20_000_000 + b"\n1\n")
    with pytest.raises(ParameterError, match=r"or more characters in the first row; from 0 to 4,194,304 are"):
        ai.read_log(path, action="a", reward="y")
    path.write_bytes(b",".join(b"%d" % number for number in range(100_001)) + b"\n1\n")
    with pytest.raises(ParameterError, match="contains 100,001 columns; from 0 to 100,000 are allowed"):
        ai.read_log(path, action="a", reward="y")
    assert peak() < 150


def test_releases_are_inflated_no_further_than_their_limit(tmp_path: Path, peak: Callable[[], float]) -> None:
    path = save(sample(), tmp_path / "log.parquet")
    table = pq.read_table(path)
    for text, message in [
        (b"[" + b" " * 2**25 + b"]", "or more bytes of releases; from 0 to 16,777,216"),
        (b"[" + b"[]," * 2**22 + b"0]", "4,194,305 lists and objects in its releases; from 0 to 2,258"),
        (b"[" + b" " * 2**22 + b"]", "does not match its digest"),
    ]:
        bomb = base64.b64encode(zlib.compress(text))
        metadata = dict(table.schema.metadata) | {b"adaptinf.releases": bomb}
        pq.write_table(table.replace_schema_metadata(metadata), path)
        with pytest.raises(ParameterError, match=message):
            ai.read_log(path)
    cut = base64.b64encode(zlib.compress(b"[" * 1000)[:-8])
    pq.write_table(
        table.replace_schema_metadata(dict(table.schema.metadata) | {b"adaptinf.releases": cut}), path
    )
    with pytest.raises(ParameterError, match="has releases that are truncated"):
        ai.read_log(path)
    assert peak() < 100


def test_releases_that_compress_too_well_are_still_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "_INFLATED", (100, 2))
    assert ai.read_log(save(sample(), tmp_path / "log.parquet")).equals(sample())


@pytest.mark.parametrize("store_schema", [True, False])
def test_rows_that_share_a_text_do_not_fill_the_memory(
    tmp_path: Path, peak: Callable[[], float], store_schema: bool
) -> None:
    path = tmp_path / "texts.parquet"
    texts = pa.DictionaryArray.from_arrays(np.zeros(20_000, dtype=np.int32), ["x" * 2**20])
    pq.write_table(pa.table({"arm": texts, "y": np.zeros(20_000)}), path, store_schema=store_schema)
    assert path.stat().st_size < 10 * 2**20
    before = pa.total_allocated_bytes()
    with pytest.raises(
        ParameterError, match=r"contains 20,97\d,\d+ bytes of text|contains 20,9\d+,\d+,\d+ bytes"
    ):
        ai.read_log(path, action="arm", reward="y")
    assert pa.total_allocated_bytes() - before < 2**25  # of 20 GiB; the error keeps the text itself alive
    assert peak() < 100


def test_columns_are_decoded_no_further_than_their_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "zeros.parquet"
    pq.write_table(pa.table({"arm": np.zeros(200_000, dtype=int), "y": np.zeros(200_000)}), path)
    assert ai.read_log(path, action="arm", reward="y").n_rounds == 200_000
    monkeypatch.setattr(limits, "_DECODED", (1_000_000, 100))
    with pytest.raises(ParameterError, match="contains 1,600,000 bytes in column 'arm'; from 0 to 1,0"):
        ai.read_log(path, action="arm", reward="y")
    monkeypatch.setattr("adaptinf.log.storage.header.COLUMNS", 1)
    with pytest.raises(ParameterError, match="contains 2 columns; from 0 to 1 are allowed"):
        ai.read_log(path, action="arm", reward="y")


def test_the_sizes_of_a_footer_are_those_that_arrow_reads(tmp_path: Path) -> None:
    path = tmp_path / "frame.parquet"
    frame = FRAME.assign(when=pd.Timestamp("2024-01-01"), flag=True, items=[["x", "y"], [], ["x"], None])
    frame.to_parquet(path, row_group_size=3)
    found = list(stated_sizes(path))
    metadata = pq.read_metadata(path)
    chunks = [metadata.row_group(g).column(c) for g in range(2) for c in range(metadata.num_columns)]
    assert [size.size for size in found[1::2]] == [chunk.total_uncompressed_size for chunk in chunks]
    widths = {"BOOLEAN": 1}
    stated = [chunk.num_values * widths.get(chunk.physical_type, 8) for chunk in chunks]
    assert [size.size for size in found[::2]] == stated
    assert [size.name for size in found[:4]] == ["arm", "arm", "y", "y"]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\xff" * 40 + b"\x20\0\0\0PAR1", b"\x19" * 99])
def test_what_is_no_footer_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "log.parquet"
    for end in (content, content + len(content).to_bytes(4, "little") + b"PAR1"):
        path.write_bytes(end)
        with pytest.raises(ParameterError, match=r"log\.parquet is not a readable Parquet file"):
            ai.read_log(path)


def test_lists_of_nothing_in_a_footer_do_not_fill_the_memory(
    tmp_path: Path, peak: Callable[[], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adaptinf.log.storage.header.FOOTER_VALUES", 100_000)
    path = tmp_path / "log.parquet"
    count = b"\x80\x89\x7a"  # 2,000,000 as a varint
    footer = b"\x29\xfc" + count + b"\0" * 2_000_000 + b"\0"
    path.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(ParameterError, match="100,001 or more values in its footer; from 0 to 100,000 are"):
        ai.read_log(path)
    assert peak() < 40


def test_texts_and_categories_of_other_files_come_back_as_they_are(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "arm": pd.Categorical(["b", "a", "b"]),
            "y": [1, 0, 1],
            "town": ["m", None, "Åre"],
            "raw": [b"1", b"2", b"1"],
            "list": [["x", "y"], [], ["x"]],
        }
    )
    frame.to_parquet(tmp_path / "frame.parquet", row_group_size=2)
    log = ai.read_log(tmp_path / "frame.parquet", action="arm", reward="y")
    assert log.column("action").tolist() == ["b", "a", "b"]
    with pytest.raises(
        LogValidationError, match=r"in .*frame\.parquet has 1 problem.*\n.*'town' has no value"
    ):
        ai.read_log(tmp_path / "frame.parquet", action="arm", reward="y", context="town")


# Paths


def test_paths_that_are_no_files_give_one_clear_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "s.csv"))
    (tmp_path / "circle.csv").symlink_to(tmp_path / "circle.csv")
    for name, error, message in [
        ("a\0b.csv", ParameterError, "path must not contain a NUL character"),
        ("pipe.csv", FileError, r"pipe\.csv cannot be read: it is not a regular file"),
        ("s.csv", FileError, r"s\.csv cannot be read: it is not a regular file"),
        ("circle.csv", FileError, r"circle\.csv cannot be read: Too many levels of symbolic links"),
        ("x" * 300 + ".csv", FileError, "cannot be read: File name too long"),
        ("pipe.csv/log.csv", FileNotFoundError, "does not exist"),
    ]:
        with pytest.raises(error, match=message):
            ai.read_log(f"{tmp_path}/{name}", action="arm", reward="y")
    server.close()
    with pytest.raises(ParameterError, match=r"path must be the name of a file or folder, .* got int"):
        ai.read_log(7)


def test_a_file_that_may_not_be_read_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(sample(), path)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(FileError, match=r"cannot be read: permission denied"):
        ai.read_log(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent/log", "cannot be written: No such file or directory"),
        ("folder", "cannot be written: it is a directory"),
        ("a\0b", "path must not contain a NUL character"),
    ],
)
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_places_where_no_file_can_go(tmp_path: Path, name: str, suffix: str, message: str) -> None:
    (tmp_path / f"folder{suffix}").mkdir()
    with pytest.raises(AdaptinfError, match=message):
        getattr(sample(), f"to_{suffix[1:]}")(f"{tmp_path}/{name}{suffix}")
    assert not list(tmp_path.glob(".*"))


# The two files of a CSV


def test_a_stopped_writer_of_a_csv_is_completed_by_readers_and_writers(tmp_path: Path) -> None:
    """Stopped after each of its steps; `test_own_files.py` kills it between any two calls of the system."""
    first, second, third = (
        AdaptiveLog(FRAME.assign(y=value), action="arm", reward="y") for value in (1.0, 2.0, 3.0)
    )
    new = save(second, tmp_path / "new.csv")
    path = save(first, tmp_path / "log.csv")
    sidecar, waiting = tmp_path / "log.csv.json", tmp_path / "log.csv.json.new"
    shutil.copy(tmp_path / "new.csv.json", waiting)
    assert ai.read_log(path).equals(first)
    shutil.copy(new, path)
    assert ai.read_log(path).equals(second)
    # The next writer, stopped after its own second step, leaves the second log readable.
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("adaptinf.log.storage.csvs.stage", _no_space)
        with pytest.raises(FileError, match="No space left"):
            third.to_csv(path)
    assert not waiting.exists()
    assert ai.read_log(path).equals(second)
    third.to_csv(path)
    assert ai.read_log(path).equals(third)
    assert sorted(each.name for each in tmp_path.iterdir() if each.name.startswith("log")) == [
        "log.csv",
        "log.csv.json",
    ]
    # Nothing but the new table and its waiting sidecar: the first log of that name.
    sidecar.unlink()
    shutil.copy(new, path)
    shutil.copy(tmp_path / "new.csv.json", waiting)
    assert ai.read_log(path).equals(second)
    # A table of other people beside the waiting sidecar of a log that never came.
    FRAME.to_csv(path, index=False)
    assert ai.read_log(path, action="arm", reward="y").n_rounds == 4


def _no_space(*_: Any, **__: Any) -> Path:
    raise OSError(28, "No space left on device")


def test_links_are_written_and_read_through(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for suffix in ("csv", "parquet"):
        link = tmp_path / f"link.{suffix}"
        link.symlink_to(tmp_path / "data" / f"log.{suffix}")
        save(sample(), link)
        assert link.is_symlink()
        assert ai.read_log(link).equals(sample())
        assert ai.read_log(tmp_path / "data" / f"log.{suffix}").equals(sample())
    assert sorted(each.name for each in (tmp_path / "data").iterdir()) == [
        "log.csv",
        "log.csv.json",
        "log.parquet",
    ]


def test_a_sidecar_that_is_a_link_is_written_through_as_well(tmp_path: Path) -> None:
    for folder in ("tables", "objects"):
        (tmp_path / folder).mkdir()
    table, sidecar = tmp_path / "log.csv", tmp_path / "log.csv.json"
    table.symlink_to("tables/1")
    sidecar.symlink_to("objects/2")
    other = AdaptiveLog(FRAME, action="arm", reward="y")
    for log in (sample(), other):
        (tmp_path / "objects" / "2").touch()
        save(log, table)
        assert ai.read_log(table).equals(log)
    assert sorted(str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*") if each.is_file()) == [
        "log.csv",
        "log.csv.json",
        "objects/2",
        "tables/1",
    ]
    # Stopped before the waiting sidecar got its name.
    save(sample(), tmp_path / "new.csv")
    shutil.copy(tmp_path / "new.csv", tmp_path / "tables" / "1")
    shutil.copy(tmp_path / "new.csv.json", tmp_path / "objects" / "2.new")
    assert ai.read_log(table).equals(sample())


def test_a_json_file_of_other_people_is_no_sidecar_where_columns_are_named(tmp_path: Path) -> None:
    path = tmp_path / "trial.csv"
    FRAME.to_csv(path, index=False)
    (tmp_path / "trial.csv.json").write_text('{"title": "a trial"}')
    with pytest.raises(ParameterError, match="has metadata that are damaged or were not written by adaptinf"):
        ai.read_log(path)
    assert ai.read_log(path, action="arm", reward="y").n_rounds == 4


# Whole numbers that float64 cannot hold


@pytest.mark.parametrize(
    "values",
    [
        [2**53 + 1, 1, 0, 1],
        [2**53 + 1, 0.5, 0, 1],  # pandas makes these float64 itself
        [-(2.0**53), 0.5, 0, 1],
        [2**70, 0.5, 0, 1],
        np.array([2**53 + 1, 1, 0, 1], dtype=np.uint64),
        pd.array([2**53 + 1, 1, 0, 1], dtype="Int64"),
        pd.Series([2**53 + 1, 0.5, 0, 1], dtype=object),
        pd.array([2**53 + 1, 0.5, 0, 1], dtype="Float64"),
    ],
)
def test_rewards_beyond_whole_numbers_of_float64_are_refused(tmp_path: Path, values: Any) -> None:
    frame = FRAME.assign(y=values)
    with pytest.raises(LogValidationError, match=r"'y' .*(cannot represent exactly|2\*\*53 or more|numeric)"):
        AdaptiveLog(frame, action="arm", reward="y")
    frame.to_csv(tmp_path / "trial.csv", index=False)
    with pytest.raises(LogValidationError, match=r"'y' .*(cannot represent exactly|2\*\*53 or more|numeric)"):
        ai.read_log(tmp_path / "trial.csv", action="arm", reward="y")


def test_a_designs_own_large_rewards_are_stored_as_they_are(path: Path) -> None:
    arrays = sample().arrays
    arrays.reward[:] = [1e300, -1e20, 2.0**53, 0.5]
    log = AdaptiveLog.from_arrays(arrays, arms=("a", "b"), reward_range=(-np.inf, np.inf))
    assert ai.read_log(save(log, path)).equals(log)


@pytest.mark.parametrize(
    "text", ["\0", "a\0b", "\r", "\r\n", "﻿", '"', "", " ", "NA", "nan", "=1+1", "\u2028"]
)
def test_odd_texts_come_back(path: Path, text: str) -> None:
    log = AdaptiveLog(FRAME.assign(town=[text, "m", "n", text]), action="arm", reward="y", context="town")
    again = ai.read_log(save(log, path))
    assert again.column("town").tolist() == [text, "m", "n", text]
    assert again.equals(log)


def test_text_that_utf8_cannot_write_is_refused(path: Path) -> None:
    arrays = replace(sample().arrays, context={"town": np.array(["\ud800", "m", "m", "m"], dtype=object)})
    with pytest.raises(ParameterError, match="'town' contains text that UTF-8 cannot encode"):
        save(AdaptiveLog.from_arrays(arrays, arms=("a", "b")), path)
    assert not path.exists()


def test_the_sidecar_of_a_private_table_is_private(tmp_path: Path) -> None:
    path, sidecar = tmp_path / "log.csv", tmp_path / "log.csv.json"
    save(sample(), path)
    path.chmod(0o600)
    sidecar.chmod(0o600)
    for _ in range(2):
        save(sample(), path)
        assert [each.stat().st_mode & 0o777 for each in (path, sidecar)] == [0o600, 0o600]
        sidecar.unlink()
        path.chmod(0o600)


def test_a_circle_of_links_is_one_clear_error(tmp_path: Path) -> None:
    circle = tmp_path / "log.csv"
    circle.symlink_to(circle)
    with pytest.raises(FileError, match="cannot be written: Too many levels of symbolic links"):
        save(sample(), circle)
