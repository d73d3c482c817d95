"""Write the schema of a stored log from the code that reads it: log_schema.json and log_schema.arrow.txt.

    python docs/log_schema.py

The first is a JSON Schema of what a file says beside its columns: of the key ``adaptinf`` of a Parquet file,
and of the file beside a CSV. The second has the columns of a log of two arms that has all of them.
"""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa

from adaptinf.guarantee import MODELS, NOTIONS, UNITS, PrivacyGuarantee
from adaptinf.log.provenance import SOURCES
from adaptinf.log.report import KINDS, STOPPINGS
from adaptinf.log.storage.header import SIZES, VERSION
from adaptinf.log.storage.stored import LATER_FIELDS, METADATA_FIELDS, canonical_columns
from adaptinf.log.traits import (
    ArmMeans,
    DesignTraits,
    Floor,
    FreshEpochs,
    Length,
    Outputs,
    Phases,
    Propensities,
    Stability,
    UsesContext,
)
from adaptinf.log.validation import RELEASE_COLUMNS, LogArrays
from adaptinf.log.validation.check import MEANINGS
from adaptinf.log.validation.metadata import BACKENDS, STATUSES

HERE = Path(__file__).parent
JSON_SCHEMA, ARROW_SCHEMA = HERE / "log_schema.json", HERE / "log_schema.arrow.txt"
DIGEST = (
    "SHA-256 in hexadecimal over parts, each of them after its length in bytes as a big-endian integer of "
    "64 bits. The parts are: this object without digest (and, beside a CSV, without sha256 and releases) "
    "as ASCII JSON with sorted keys, ', ' between entries and ': ' after keys, numbers as Python writes "
    "them; the releases likewise; then of each column its name in UTF-8, its entry in dtypes, and its "
    "values. Values of fixed width are their little-endian bytes, every NaN the same (numpy.nan). Values "
    "of dtype |O are two parts: the lengths of the UTF-8 texts in bytes as little-endian integers of 64 "
    "bits, and the texts one after the other."
)

NUMBER = {"$ref": "#/$defs/number"}
TEXT, TRUTH = {"type": "string"}, {"type": "boolean"}
COUNT = {"type": "integer", "minimum": 0}
LABEL = {"type": ["string", "boolean", "integer", "number"]}


def or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [{"type": "null"}, schema]}


def one_of(choices: Any) -> dict[str, Any]:
    return {"enum": list(choices)}


def a_tuple(items: dict[str, Any], **limits: Any) -> dict[str, Any]:
    """A list that is a tuple when it is read."""
    return whole({"tuple": {"type": "array", "items": items, **limits}})


def whole(properties: dict[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """An object of these entries and no others."""
    required = [name for name in properties if name not in optional]
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def of_fields(kind: type, described: dict[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """An object of the fields of a dataclass, all of which must be described."""
    return whole({field.name: described[field.name] for field in fields(kind)}, optional)


def guarantee() -> dict[str, Any]:
    described = {
        "epsilon": {"anyOf": [{"type": "number", "minimum": 0}, {"const": "inf"}]},
        "delta": {"type": "number", "minimum": 0, "maximum": 1},
        "unit": one_of(UNITS),
        "model": one_of(MODELS),
        "notion": one_of(NOTIONS),
        "reasons": {"type": "array", "items": TEXT},
        "rounds": {"type": "integer", "minimum": 1},
    }
    optional = tuple(name for name in described if name != "epsilon")
    return of_fields(PrivacyGuarantee, described, optional)


def traits() -> dict[str, Any]:
    floor = of_fields(Floor, {"scale": NUMBER, "decay": NUMBER, "shared": TRUTH})
    stability = of_fields(Stability, {"stable": TRUTH, "condition": TEXT, "source": TEXT})
    epochs = of_fields(FreshEpochs, {"epsilon": NUMBER, "beta": or_null(NUMBER)})
    outputs = {
        "length": one_of(get_args(Length)),
        "propensities": one_of(get_args(Propensities)),
        "phase": one_of(get_args(Phases)),
        "recommended": TRUTH,
        "epochs": or_null(epochs),
    }
    described = {
        "adapts": TRUTH,
        "uses_context": one_of(get_args(UsesContext)),
        "own_coins": TRUTH,
        "floor": or_null(floor),
        "dealt": COUNT,
        "stability": or_null(stability),
        "arm_means": one_of(get_args(ArmMeans)),
        "auxiliary": a_tuple(NUMBER),
        "outputs": or_null(of_fields(Outputs, outputs)),
    }
    return of_fields(DesignTraits, described, optional=("dealt",))


def log_fields() -> dict[str, Any]:
    """What a log says about itself, by the names that the reader asks for."""
    count, named = or_null(COUNT), {"type": "object", "additionalProperties": TEXT}
    pairs = whole({"dict": {"type": "array", "items": {"type": "array", "minItems": 2, "maxItems": 2}}})
    design = whole(
        {
            "tuple": {
                "type": "array",
                "prefixItems": [TEXT, {"type": "object"}],
                "minItems": 2,
                "maxItems": 2,
            }
        }
    )
    described = {
        "arms": a_tuple(LABEL, minItems=1, uniqueItems=True),
        "phases": a_tuple(TEXT, uniqueItems=True),
        "reward_range": or_null(a_tuple(NUMBER, minItems=2, maxItems=2)),
        "propensity_status": one_of(STATUSES),
        "noise": or_null(one_of(BACKENDS)),
        "feedback_rounds": count,
        "released_rounds": count,
        "rounds_per_unit": or_null({"type": "integer", "minimum": 1}),
        "guarantee_source": or_null(one_of(SOURCES)),
        "recommended": or_null(LABEL),
        "context_free": or_null(TRUTH),
        "adaptive": or_null(TRUTH),
        "stopping": or_null(one_of(STOPPINGS)),
        "missing": or_null(one_of(MEANINGS)),
        "context": a_tuple(TEXT, uniqueItems=True),
        "outcomes": or_null(a_tuple(TEXT, uniqueItems=True)),
        "names": {"anyOf": [{"type": "null"}, named, pairs]},
        "has_rounds": TRUTH,
        "guarantee": or_null({"$ref": "#/$defs/guarantee"}),
        "reward_guarantee": or_null({"$ref": "#/$defs/guarantee"}),
        "design": or_null(design),
        "traits": or_null({"$ref": "#/$defs/traits"}),
    }
    return whole({name: described[name] for name in METADATA_FIELDS}, LATER_FIELDS)


def dtypes() -> dict[str, Any]:
    """NumPy's types of the columns."""
    plain = [np.dtype(f"{kind}{size}").str for kind in "biuf" for size in SIZES[kind]]
    times_and_texts = {"type": "string", "pattern": r"^(<M8\[\d*[a-zA-Z]+\]|<U\d+)$", "maxLength": 20}
    return {
        "type": "object",
        "required": ["t", "action", "reward"],
        "additionalProperties": {"anyOf": [one_of([*plain, np.dtype("O").str]), times_and_texts]},
    }


def json_schema() -> dict[str, Any]:
    column = whole({"dtype": TEXT, "values": {"type": "array"}})
    reading = {"type": "array", "prefixItems": [one_of(KINDS), TEXT], "minItems": 2, "maxItems": 2}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"What a log of adaptinf says beside its columns, format version {VERSION}",
        "type": "object",
        "properties": {
            "version": {"const": VERSION},
            "n_rounds": {"type": "integer", "minimum": 1, "description": "Rows of the table."},
            "dtypes": {**dtypes(), "description": "NumPy's type of each column, in their order."},
            "log": {**log_fields(), "description": "What the log says about itself."},
            "not_covered": {
                "type": "object",
                "additionalProperties": TEXT,
                "description": "Columns outside the privacy guarantee, with the reason. It is not read.",
            },
            "report": or_null(whole({"source": TEXT, "readings": {"type": "array", "items": reading}})),
            "digest": {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": DIGEST},
            "sha256": {
                "type": "string",
                "pattern": "^[0-9a-f]{64}$",
                "description": "Beside a CSV: SHA-256 of the CSV file.",
            },
            "releases": {
                **whole(dict.fromkeys(RELEASE_COLUMNS, column)),
                "description": "Beside a CSV: the private releases. In a Parquet file they are the key "
                "adaptinf.releases, compressed by zlib and in base64.",
            },
        },
        "required": ["version", "n_rounds", "dtypes", "log", "not_covered", "digest"],
        "$defs": {
            "number": {
                "description": "A number; one that is not finite is an object.",
                "anyOf": [{"type": "number"}, whole({"float": one_of(["inf", "-inf", "nan"])})],
            },
            "guarantee": guarantee(),
            "traits": traits(),
        },
    }


def arrow_schema() -> pa.Schema:
    """The columns of a log of the arms a and b that has all of them, with a context and a further outcome."""
    one, code = np.ones(1), np.zeros(1, dtype=np.int64)
    arrays = LogArrays(
        action=code,
        reward=one,
        propensity=one,
        propensities=np.ones((1, 2)),
        batch=code,
        phase=code,
        randomised=np.ones(1, dtype=bool),
        context={"<context>": one},
        received=code,
        known=code,
        observation=one,
        outcomes={"<outcome>": one},
    )
    texts = np.array(["u"], dtype=object)
    columns = canonical_columns(arrays, ("a", "b"), ("phase",), None, texts, one, texts)
    return pa.table({name: pa.array(values) for name, values in columns.items()}).schema


def texts() -> dict[Path, str]:
    """What the files contain."""
    whole_json = json.dumps(json_schema(), indent=1, ensure_ascii=True)
    return {JSON_SCHEMA: f"{whole_json}\n", ARROW_SCHEMA: f"{arrow_schema().to_string()}\n"}


if __name__ == "__main__":
    for path, text in texts().items():
        path.write_text(text, encoding="utf-8")
