"""The published schema is that of the code: written logs keep it, and a log is written from it alone."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import math
import zlib
from copy import deepcopy
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import adaptinf as ai
from adaptinf.errors import ParameterError
from adaptinf.log.validation import DesignRecord, LogArrays

DOCS = Path(__file__).parents[3] / "docs"
SCHEMA = json.loads((DOCS / "log_schema.json").read_text(encoding="utf-8"))
KINDS = {"int64": pa.int64(), "string": pa.string(), "double": pa.float64(), "bool": pa.bool_()}
DTYPES = {"int64": "<i8", "string": "|O", "double": "<f8", "bool": "|b1"}
CHECK = jsonschema.Draft202012Validator(SCHEMA)


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("log_schema", DOCS / "log_schema.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_files_are_what_the_code_makes(script: ModuleType) -> None:
    made = script.texts()
    assert sorted(path.name for path in made) == ["log_schema.arrow.txt", "log_schema.json"]
    for path, text in made.items():
        assert path.read_text(encoding="utf-8") == text, f"run docs/{script.__name__}.py"
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def arrow_columns() -> dict[str, str]:
    """Names and types of the columns, as the text has them."""
    lines = (DOCS / "log_schema.arrow.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split(": ") for line in lines)


def stranger() -> tuple[dict[str, Any], dict[str, Any], dict[str, list[Any]], dict[str, str]]:
    """A log by somebody who has the schema and no adaptinf: header, releases, columns and their types."""
    columns: dict[str, list[Any]] = {
        "t": [1, 2, 3],
        "unit_id": ["u", "v", "ü"],
        "decision_id": ["i", "j", "k"],
        "action": ["a", "b", "a"],
        "received": ["a", "b", "b"],
        "reward": [1.0, 0.0, math.nan],
        "observation": [0.5, 0.9, 0.9],
        "outcome_round": [1.0, 3.0, math.nan],
        "propensity": [0.5, 0.25, 0.75],
        "propensity_a": [0.5, 0.75, 0.75],
        "propensity_b": [0.5, 0.25, 0.25],
        "batch": [0, 1, 1],
        "phase": ["first", "main", "main"],
        "randomised": [True, True, False],
        "<context>": [0.1, 0.2, 0.3],
        "<outcome>": [2.0, 3.0, 4.0],
    }
    kinds = arrow_columns()
    promised = {"epsilon": 1.0, "delta": 0.0, "unit": "reward", "model": "central", "notion": "standard"}
    log = {
        "arms": {"tuple": ["a", "b"]},
        "phases": {"tuple": ["first", "main"]},
        "reward_range": {"tuple": [0.0, {"float": "inf"}]},
        "propensity_status": "exact",
        "noise": "simulation",
        "feedback_rounds": 1,
        "released_rounds": 3,
        "rounds_per_unit": 1,
        "guarantee_source": "stated",
        "recommended": None,
        "context_free": False,
        "adaptive": True,
        "stopping": "fixed",
        "missing": "drop",
        "context": {"tuple": ["<context>"]},
        "outcomes": {"tuple": ["<outcome>"]},
        "names": {"who": "unit_id"},
        "has_rounds": False,
        "guarantee": {**promised, "reasons": [], "rounds": 1},
        "reward_guarantee": promised,
        "design": {"tuple": ["mine", {"depth": 3}]},
        "traits": {
            "adapts": True,
            "uses_context": "vectors",
            "own_coins": True,
            "floor": {"scale": 0.1, "decay": 0.0, "shared": True},
            "stability": None,
            "arm_means": "comparable",
            "auxiliary": {"tuple": []},
            "outputs": None,
        },
    }
    header = {
        "version": 2,
        "n_rounds": 3,
        "dtypes": {name: DTYPES[kind] for name, kind in kinds.items()},
        "log": log,
        "not_covered": {},
        "report": {"source": "a stranger", "readings": [["dropped", "nothing"]]},
    }
    released = {"round": [2], "name": ["mean"], "group": ["a"], "value": [0.25], "mechanism": ["laplace"]}
    releases = {
        name: {"dtype": "object" if isinstance(values[0], str) else "float64", "values": values}
        for name, values in {**released, "scale": [0.5]}.items()
    }
    return header, releases, columns, kinds


def digest_of(header: Any, releases: Any, columns: dict[str, list[Any]], kinds: dict[str, str]) -> str:
    """The digest as the schema describes it."""
    digest = hashlib.sha256()

    def add(part: bytes) -> None:
        digest.update(len(part).to_bytes(8, "big") + part)

    for plain in (header, releases):
        add(json.dumps(plain, sort_keys=True).encode("ascii"))
    for name, values in columns.items():
        add(name.encode())
        add(header["dtypes"][name].encode())
        if kinds[name] == "string":
            texts = [text.encode() for text in values]
            add(b"".join(len(text).to_bytes(8, "little") for text in texts))
            add(b"".join(texts))
        else:
            add(np.array(values, dtype=DTYPES[kinds[name]]).tobytes())
    return digest.hexdigest()


def written(path: Path, header: Any, releases: Any, columns: Any, kinds: dict[str, str]) -> Path:
    """A Parquet file by Arrow alone."""
    if "digest" not in header:
        header = {**header, "digest": digest_of(header, releases, columns, kinds)}
    table = pa.table({name: pa.array(values, KINDS[kinds[name]]) for name, values in columns.items()})
    metadata = {
        "adaptinf": json.dumps(header),
        "adaptinf.releases": base64.b64encode(zlib.compress(json.dumps(releases).encode())),
    }
    pq.write_table(table.replace_schema_metadata(metadata), path)
    return path


def test_a_log_is_written_from_the_schema_alone(tmp_path: Path) -> None:
    header, releases, columns, kinds = stranger()
    assert list(CHECK.iter_errors({**header, "digest": "0" * 64, "releases": releases})) == []
    log = ai.read_log(written(tmp_path / "log.parquet", header, releases, columns, kinds))
    assert {name: log.frame[name].tolist()[:2] for name in columns} == {
        name: values[:2] for name, values in columns.items()
    }
    assert np.isnan(log.arrays.recorded[2])
    assert (log.arms, log.phases, log.missing, log.stopping) == (
        ("a", "b"),
        ("first", "main"),
        "drop",
        "fixed",
    )
    assert log.reward_range == (0.0, math.inf)
    assert (log.guarantee.epsilon, log.reward_guarantee.epsilon) == (1.0, 1.0)
    assert (log.design.name, log.design.parameters) == ("mine", {"depth": 3})
    assert log.design.traits.floor.scale == 0.1
    assert log.column("who").tolist() == columns["unit_id"]
    assert log.releases["value"].tolist() == [0.25]
    assert log.report.source == "a stranger"
    log.to_parquet(tmp_path / "again.parquet")
    assert ai.read_log(tmp_path / "again.parquet").equals(log)


BREAKS: dict[str, tuple[tuple[str, ...], Any]] = {
    "another version": (("version",), 3),
    "no rounds": (("n_rounds",), 0),
    "an unknown type": (("dtypes", "reward"), "decimal"),
    "labels in a list": (("log", "arms"), ["a", "b"]),
    "an arm twice": (("log", "arms"), {"tuple": ["a", "a"]}),
    "a range of three": (("log", "reward_range"), {"tuple": [0.0, 1.0, 2.0]}),
    "an unknown status": (("log", "propensity_status"), "guessed"),
    "an unknown noise": (("log", "noise"), "loud"),
    "a negative count": (("log", "released_rounds"), -1),
    "no round of a unit": (("log", "rounds_per_unit"), 0),
    "an unknown source": (("log", "guarantee_source"), "a friend"),
    "a truth as text": (("log", "context_free"), "no"),
    "an unknown stopping": (("log", "stopping"), "at night"),
    "an unknown meaning": (("log", "missing"), "ignore"),
    "contexts in a list": (("log", "context"), ["<context>"]),
    "rounds as a number": (("log", "has_rounds"), 0),
    "a negative epsilon": (("log", "guarantee", "epsilon"), -1.0),
    "an unknown unit": (("log", "reward_guarantee", "unit"), "person"),
    "a design without parameters": (("log", "design"), {"tuple": ["mine"]}),
    "an unknown trait": (("log", "traits", "uses_context"), "sometimes"),
    "a trait that is no field": (("log", "traits", "colour"), "red"),
    "a field that is none": (("log", "colour"), "red"),
    "a reading of no kind": (("report", "readings"), [["odd", "text"]]),
    "a digest of another content": (("digest",), "0" * 63),
}


@pytest.mark.parametrize("name", BREAKS)
def test_what_breaks_the_schema_is_refused(tmp_path: Path, name: str) -> None:
    header, releases, columns, kinds = stranger()
    (*path, last), value = BREAKS[name]
    broken = place = deepcopy(header)
    for step in path:
        place = place[step]
    place[last] = value
    assert list(CHECK.iter_errors({"digest": "0" * 64, **broken})) != []
    with pytest.raises(ParameterError, match=r"^read_log: .*log\.parquet"):
        ai.read_log(written(tmp_path / "log.parquet", broken, releases, columns, kinds))


@pytest.mark.parametrize("field", SCHEMA["properties"]["log"]["required"])
def test_what_the_schema_requires_is_needed(tmp_path: Path, field: str) -> None:
    header, releases, columns, kinds = stranger()
    del header["log"][field]
    assert list(CHECK.iter_errors({**header, "digest": "0" * 64})) != []
    with pytest.raises(ParameterError, match=f"check \\['{field}'\\]"):
        ai.read_log(written(tmp_path / "log.parquet", header, releases, columns, kinds))


def some_logs() -> dict[str, ai.AdaptiveLog]:
    arms = ai.environments.BernoulliArms([0.2, 0.9])
    arrays = LogArrays(action=np.array([0, 1]), reward=np.array([1.0, np.nan]))
    groups = ai.environments.FiniteContext([0.5, 0.5], [[0.4, 0.7], [0.6, 0.3]])
    return {
        "plain": ai.designs.UCB().run(arms, horizon=9, rng=0),
        "private": ai.designs.PrivateSuccessiveElimination(epsilon=2.0).run(arms, horizon=4_000, rng=1),
        "not private": ai.AdaptiveLog.from_arrays(
            LogArrays(action=np.array([0]), reward=np.ones(1)),
            arms=("a",),
            guarantee=ai.PrivacyGuarantee(math.inf),
        ),
        "contexts": ai.designs.DPConSE(epsilon=1.0).run(groups, horizon=200, rng=0),
        "missing": ai.AdaptiveLog.from_arrays(
            arrays,
            arms=(1, 2.5),
            missing="worst",
            reward_range=(0.0, 1.0),
            design=DesignRecord("mine", {"odd": {1: math.inf}, "table": np.ones((1, 2))}),
        ),
        "a beginning": ai.designs.Thompson(floor=0.1).run(arms, horizon=20, rng=0)[:9],
    }


def test_logs_that_are_written_keep_the_schema(tmp_path: Path) -> None:
    for name, log in some_logs().items():
        log.to_parquet(tmp_path / "log.parquet")
        header = json.loads(pq.read_schema(tmp_path / "log.parquet").metadata[b"adaptinf"])
        assert list(CHECK.iter_errors(header)) == [], name
        log.to_csv(tmp_path / "log.csv")
        beside = json.loads((tmp_path / "log.csv.json").read_text(encoding="utf-8"))
        assert list(CHECK.iter_errors(beside)) == [], name
        assert {"sha256", "releases"} <= set(beside)
