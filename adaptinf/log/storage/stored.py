"""A log between its arrays and a file: canonical columns, plain metadata, and back after all checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from adaptinf.errors import ParameterError
from adaptinf.log.report import Reading, decode_readings
from adaptinf.log.traits import DesignTraits
from adaptinf.log.validation import (
    CANONICAL,
    LATER,
    METADATA,
    CheckedLog,
    DesignRecord,
    Label,
    LogArrays,
    Metadata,
    check_frame,
    label_array,
)
from adaptinf.parameters import FLAG, Is, OrNone, problems_of, refuse
from adaptinf.typing import IntArray

# These attributes are plain values, so they are stored without conversion.
PLAIN_FIELDS = (
    "arms",
    "phases",
    "reward_range",
    "propensity_status",
    "noise",
    "feedback_rounds",
    "released_rounds",
    "rounds_per_unit",
    "guarantee_source",
    "recommended",
    "context_free",
    "adaptive",
    "stopping",
    "missing",
)
METADATA_FIELDS = (
    *PLAIN_FIELDS,
    "context",
    "outcomes",
    "names",
    "has_rounds",
    "guarantee",
    "reward_guarantee",
    "design",
    "traits",
)
LATER_FIELDS = ("missing", "outcomes", "adaptive", "stopping")
"""Fields missing from files of earlier versions."""


@dataclass(frozen=True, slots=True)
class StoredLog:
    """A log as stored in a file; columns have shape (T,)."""

    columns: dict[str, NDArray[Any]]
    metadata: dict[str, Any]
    releases: pd.DataFrame
    not_covered: Mapping[str, str] = field(default_factory=dict)
    """Columns outside the log's privacy guarantee, with the reason; listed in files, but never read."""
    report: Any = None
    """Origin of the log and its processing, as plain values."""


def canonical_columns(
    arrays: LogArrays,
    arms: Sequence[Label],
    phases: Sequence[str],
    rounds: NDArray[Any] | None,
    units: NDArray[Any] | None,
    outcome_rounds: NDArray[Any] | None = None,
    ids: NDArray[Any] | None = None,
) -> dict[str, NDArray[Any]]:
    """Columns of the canonical frame in order, each of shape (T,), with labels for codes."""
    named: dict[str, NDArray[Any] | None] = {
        "t": np.arange(1, len(arrays.action) + 1) if rounds is None else rounds,
        "unit_id": units,
        "decision_id": ids,
        "action": label_array(arms)[arrays.action],
        "received": None if arrays.received is None else label_array(arms)[arrays.received],
        "reward": arrays.recorded,
        "observation": arrays.observation,
        "outcome_round": outcome_rounds,
        "propensity": arrays.propensity,
    }
    if arrays.propensities is not None:
        for code, arm in enumerate(arms):
            named[f"propensity_{arm}"] = arrays.propensities[:, code]
    named["batch"] = arrays.batch
    named["phase"] = None if arrays.phase is None else label_array(phases)[arrays.phase]
    named["randomised"] = arrays.randomised
    known = {name: values for name, values in named.items() if values is not None}
    return {**known, **arrays.context, **arrays.outcomes}


def storable(columns: dict[str, NDArray[Any]], arms: Sequence[Label]) -> dict[str, NDArray[Any]]:
    """Canonical columns whose actions a file can store: as text if the arms' types are mixed."""
    if len(set(map(str, arms))) < len(arms):
        raise ParameterError(
            "AdaptiveLog", [f"arms that look the same cannot be distinguished in a file: {arms!r}"]
        )
    if len(arms) and label_array(arms).dtype.kind == "O":
        for name in ("action", "received"):
            if name in columns and columns[name].dtype.kind == "O":
                columns = columns | {name: np.array([str(arm) for arm in columns[name]], dtype=object)}
    return columns


def same_values(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Whether two columns contain the same values; NaN equals NaN."""
    gaps = first.dtype.kind == second.dtype.kind and first.dtype.kind in "fM"
    return bool(np.array_equal(first, second, equal_nan=gaps))


_TAGS = frozenset({"float", "tuple", "array", "dict"})
_AS_THEY_ARE = frozenset({type(None), bool, int, str})


def encode(value: object) -> Any:
    """Plain value as JSON from which `decode` restores exactly the same value."""
    if type(value) in _AS_THEY_ARE:
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, tuple):
        return {"tuple": [encode(item) for item in value]}
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufUO":
        items = [encode(item) for item in value.ravel().tolist()]
        return {"array": {"dtype": value.dtype.str, "shape": list(value.shape), "values": items}}
    if isinstance(value, (dict, Mapping)):
        if _TAGS.isdisjoint(value) and all(isinstance(key, str) for key in value):
            return {key: encode(item) for key, item in value.items()}
        return {"dict": [[encode(key), encode(item)] for key, item in value.items()]}
    raise ParameterError("AdaptiveLog", [f"a file cannot store {value!r} of type {type(value).__name__}"])


def decode(value: Any) -> Any:
    """Plain value from the output of `encode`."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and (tag := next(iter(value))) in _TAGS:
        return _DECODERS[tag](value[tag])
    return {key: decode(item) for key, item in value.items()}


def _decode_array(stored: dict[str, Any]) -> NDArray[Any]:
    values, dtype = stored["values"], np.dtype(stored["dtype"])
    longest = max((len(item) for item in values if isinstance(item, str)), default=0)
    if dtype.kind not in "biufUO" or (dtype.kind == "U" and dtype.itemsize > 4 * max(longest, 1)):
        raise ValueError(f"an array with entries of {longest} characters cannot be of type {dtype}")
    flat = np.empty(len(values), dtype=dtype)
    for position, item in enumerate(values):
        flat[position] = decode(item)
    return flat.reshape(stored["shape"])


def _decode_float(text: str) -> float:
    if text not in ("inf", "-inf", "nan"):
        raise ValueError(f"{text!r:.40} is neither an infinity nor NaN")
    return float(text)


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "float": _decode_float,
    "tuple": lambda items: tuple(decode(item) for item in items),
    "array": _decode_array,
    "dict": lambda pairs: {decode(key): decode(item) for key, item in pairs},
}


_TEXTS = Is(
    lambda value: (
        isinstance(value, tuple)
        and all(isinstance(item, str) for item in value)
        and len(set(value)) == len(value)
    ),
    "a tuple of distinct strings",
)
_LABELS = Is(
    lambda value: (
        isinstance(value, tuple)
        and bool(value)
        and all(map(_is_label, value))
        and len({(type(label), label) for label in value}) == len(value)
    ),
    "a tuple of distinct labels",
)
_NAMES = OrNone(
    Is(
        lambda value: isinstance(value, dict) and all(isinstance(item, str) for item in value.values()),
        "a dict of strings or None",
    )
)
_DESIGN = OrNone(
    Is(
        lambda value: isinstance(value, tuple) and [type(item) for item in value] == [str, dict],
        "a name and its parameters, or None",
    )
)
_PLAIN = OrNone(Is(dict, "a dict or None"))
_PAIR = OrNone(Is(lambda value: isinstance(value, tuple) and len(value) == 2, "two numbers or None"))


@dataclass(frozen=True, slots=True)
class RestoredLog:
    """All parts of a log, as written; rounds, units and ids have shape (T,)."""

    arrays: LogArrays
    phases: tuple[str, ...]
    checked: CheckedLog
    names: dict[Hashable, str] | None
    rounds: NDArray[Any] | None
    units: NDArray[Any] | None
    ids: NDArray[Any] | None = None
    source: str = "a file"
    readings: tuple[Reading, ...] = ()


def restored(stored: StoredLog) -> RestoredLog:
    """Arrays and metadata of a stored log; one error lists all problems."""
    if isinstance(stored.metadata, Mapping):
        stored = replace(stored, metadata={**dict.fromkeys(LATER_FIELDS), **stored.metadata})
    columns, metadata = stored.columns, stored.metadata
    _check_metadata(metadata)
    _check_columns(columns, metadata)
    arms, phases = metadata["arms"], metadata["phases"]
    action = _codes("action", columns["action"], arms)
    phase = _codes("phase", columns["phase"], phases) if "phase" in columns else None
    own = _own_columns(columns, metadata)
    received = _codes("received", columns["received"], arms) if "received" in own else None
    checked = _check_like_a_frame(stored, action, received)
    by_arm = [f"propensity_{arm}" for arm in arms]
    table = np.column_stack([columns[name] for name in by_arm]) if by_arm[0] in columns else None
    arrays = replace(
        checked.arrays,
        action=action,
        reward=columns["reward"],
        propensity=columns.get("propensity"),
        propensities=table,
        batch=columns.get("batch"),
        phase=phase,
        randomised=columns.get("randomised"),
        context={name: columns[name] for name in metadata["context"]},
        outcomes={name: columns[name] for name in metadata["outcomes"] or ()},
    )
    rounds = columns["t"] if metadata["has_rounds"] else None
    _check_counts(arrays, checked, columns["t"], rounds)
    source, readings = ("a file", ()) if stored.report is None else _report(stored.report)
    units, ids = (columns[name] if name in own else None for name in ("unit_id", "decision_id"))
    return RestoredLog(arrays, phases, checked, metadata["names"], rounds, units, ids, source, readings)


def _report(stored: Any) -> tuple[str, tuple[Reading, ...]]:
    try:
        return decode_readings(stored)
    except ValueError as error:
        raise ParameterError("report", [str(error)]) from None


def _check_metadata(metadata: Any) -> None:
    """Refuse metadata whose parts lack the types that later checks need."""
    if not isinstance(metadata, Mapping) or set(metadata) != set(METADATA_FIELDS):
        found = set(metadata) if isinstance(metadata, Mapping) else set()
        odd = sorted(map(str, found ^ set(METADATA_FIELDS)))
        refuse("metadata", [f"the fields must be {', '.join(METADATA_FIELDS)}, and no others; check {odd}"])
    refuse(
        "metadata",
        problems_of(
            arms=(metadata["arms"], _LABELS),
            phases=(metadata["phases"], _TEXTS),
            context=(metadata["context"], _TEXTS),
            outcomes=(metadata["outcomes"], OrNone(_TEXTS)),
            names=(metadata["names"], _NAMES),
            has_rounds=(metadata["has_rounds"], Is(bool, "True or False")),
            design=(metadata["design"], _DESIGN),
            traits=(metadata["traits"], _PLAIN),
            guarantee=(metadata["guarantee"], _PLAIN),
            reward_guarantee=(metadata["reward_guarantee"], _PLAIN),
            reward_range=(metadata["reward_range"], _PAIR),
            context_free=(metadata["context_free"], FLAG),
            adaptive=(metadata["adaptive"], FLAG),
        ),
    )


def _check_columns(columns: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> None:
    """Refuse columns other than those of a canonical frame in the same order."""
    by_arm = [f"propensity_{arm}" for arm in metadata["arms"]]
    order = ["t", "unit_id", "decision_id", "action", "received", "reward", "observation", "outcome_round"]
    order += ["propensity", *by_arm, "batch", "phase", "randomised"]
    optional = {*CANONICAL.values()} - {"t", "action", "reward"}
    optional |= set(by_arm) if not set(by_arm) & set(columns) else set()
    own = _own_columns(columns, metadata)
    expected = [name for name in order if name in own or name not in optional]
    others = [*metadata["context"], *(metadata["outcomes"] or ())]
    expected += [name for name in others if name not in expected]
    problems = []
    if list(columns) != expected:
        problems.append(f"the columns must be {', '.join(expected)}, not {', '.join(columns)}")
    elsewhere = sorted(set((metadata["names"] or {}).values()) - set(columns))
    if elsewhere:
        problems.append(f"the user's names refer to columns that do not exist: {', '.join(elsewhere)}")
    if metadata["names"] and len(set(metadata["names"].values())) < len(metadata["names"]):
        problems.append("two of the user's names refer to the same column")
    refuse("columns", problems)


def _own_columns(columns: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> set[str]:
    """Columns with one role each, except contexts and outcomes that share a name with a later role."""
    others = {*metadata["context"], *(metadata["outcomes"] or ())}
    taken = {CANONICAL[role] for role in LATER} & others
    return set(columns) - taken


def _check_like_a_frame(stored: StoredLog, action: IntArray, received: IntArray | None) -> CheckedLog:
    """Check the columns like those of a user's frame; actions become labels of their original types."""
    columns, metadata = stored.columns, stored.metadata
    arms = metadata["arms"]
    labels = {"action": label_array(arms)[action]}
    if received is not None:
        labels["received"] = label_array(arms)[received]
    own = _own_columns(columns, metadata)
    by_arm = {arm: f"propensity_{arm}" for arm in arms}
    return check_frame(
        pd.DataFrame({**columns, **labels}),
        single={role: name if name in own else None for role, name in CANONICAL.items()},
        context=metadata["context"],
        outcomes=metadata["outcomes"],
        propensities=by_arm if set(by_arm.values()) <= set(columns) else None,
        arms=arms,
        reward_range=metadata["reward_range"],
        metadata=Metadata(
            **{name: metadata[name] for name in METADATA if name != "design"},
            design=_design(metadata["design"], metadata["traits"]),
            releases=stored.releases,
        ),
        as_written=True,
    )


def _design(stored: tuple[str, dict[str, Any]] | None, traits: dict[str, Any] | None) -> DesignRecord | None:
    if stored is None:
        refuse("metadata", [] if traits is None else ["there are traits, but no design to which they apply"])
        return None
    return DesignRecord(stored[0], stored[1], None if traits is None else DesignTraits.from_dict(traits))


def _check_counts(
    arrays: LogArrays, checked: CheckedLog, counted: NDArray[Any], rounds: NDArray[Any] | None
) -> None:
    """Refuse rounds and batches that are not numbered as in a log."""
    problems = []
    if rounds is None and not np.array_equal(counted, np.arange(1, len(counted) + 1)):
        problems.append("rows are missing or out of order: t must be 1, 2, 3, ...")
    if arrays.batch is not None and not np.array_equal(arrays.batch, checked.arrays.batch):  # type: ignore[arg-type]
        problems.append("batches must be numbered 0, 1, 2, ...")
    refuse("columns", problems)


def _codes(what: str, values: NDArray[Any], labels: Sequence[Label]) -> IntArray:
    """Positions of labels, which are distinguished by their text."""
    positions = {str(label): code for code, label in enumerate(labels)}
    codes, distinct = pd.factorize(values, use_na_sentinel=False)
    unknown = [label for label in distinct.tolist() if str(label) not in positions]
    if unknown:
        shown = f"{unknown!r:.200}"
        raise ParameterError(f"column {what}", [f"some labels are absent from the metadata: {shown}"])
    return np.array([positions[str(label)] for label in distinct.tolist()], dtype=np.int64)[codes]


def _is_label(value: object) -> bool:
    return isinstance(value, (str, bool, int)) or (isinstance(value, float) and bool(np.isfinite(value)))
