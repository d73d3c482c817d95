"""Sums as a frame, and in a Parquet file that also contains their metadata and a digest of all content."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adaptinf.errors import ParameterError
from adaptinf.files import as_path, atomic_write
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.log import DesignTraits
from adaptinf.log.storage.header import content_digest
from adaptinf.log.storage.log_files import check_regular
from adaptinf.log.storage.parquet import read_columns
from adaptinf.log.storage.stored import decode, encode
from adaptinf.log.validation import DesignRecord, Label
from adaptinf.parameters import refuse
from adaptinf.sums.cells import DEGREES, POWERS, Cells
from adaptinf.sums.covariate_products import further_sums, read_sums
from adaptinf.sums.groups import Key, Parts
from adaptinf.sums.unit_totals import UnitTotals
from adaptinf.typing import FloatArray


def frame_of(parts: Parts, arms: Sequence[Label]) -> pd.DataFrame:
    """A frame of counts, means, sums and mean propensities; any group columns come first."""
    tables = [_table(parts, label, arms) for label in parts.by_group]
    return pd.concat(tables, ignore_index=True)


def _table(parts: Parts, label: Key, arms: Sequence[Label]) -> pd.DataFrame:
    """The rows of the frame for one group."""
    cells, batches = parts.by_group[label]
    raw = cells.about(0.0)
    columns = {
        "n": raw.pulls,
        "sum": raw.moments[0, 1],
        "sum_squares": raw.moments[0, 2],
        "propensity": raw.expected / raw.rounds[:, None],
    }
    columns |= _further(cells)
    places = {"batch": np.repeat(batches, len(arms)), "arm": list(arms) * len(batches)}
    groups = {name: [one] * raw.pulls.size for name, one in zip(parts.names, label, strict=True)}
    return pd.DataFrame(groups | places | {name: values.ravel() for name, values in columns.items()})


def _further(cells: Cells) -> dict[str, FloatArray]:
    """Sums of additional columns, of their squares and of their products with rewards; shapes (B, K)."""
    if cells.products is None:
        return {}
    raw, found = cells.products.about(np.zeros(cells.products.size)), dict[str, FloatArray]()
    for place, name in enumerate(raw.names, start=2):
        found[f"{name}_sum"] = raw.table[0, 0, 0, place]
        found[f"{name}_sum_squares"] = raw.table[0, 0, place, place]
        found[f"{name}_sum_products"] = raw.table[0, 0, 1, place]
    return found


KEY = b"adaptinf.sums"
"""Key under which a file's schema stores the metadata of the sums."""
_VERSION = 3
_SUFFIXES = (".parquet", ".pq")
_OVER_ALL = ("inverse", "expected", "spread", "smallest", "nonzero")
_GUARANTEES = ("guarantee", "reward_guarantee")


@dataclass(frozen=True, slots=True, eq=False)
class StoredSums:
    """The parts of `Sums` that are stored."""

    parts: Parts
    arms: tuple[Label, ...]
    metadata: Mapping[str, Any]
    also: Mapping[str, Any]
    by_unit: UnitTotals | None = None


def write_stored(path: Any, sums: StoredSums, owner_only: bool = False) -> None:
    """Write sums to a file; if this fails, an existing file is left unchanged."""
    place = _place("Sums.to_parquet", path)
    columns = _columns(sums)
    metadata = dict(sums.metadata)
    for name in _GUARANTEES:
        metadata[name] = None if metadata[name] is None else metadata[name].to_dict()
    design = metadata["design"]
    traits = None if design is None or design.traits is None else design.traits.to_dict()
    metadata["design"] = None if design is None else (design.name, design.parameters, traits)
    first = next(iter(sums.parts.by_group.values()))[0]
    header = {
        "version": _VERSION,
        "arms": encode(tuple(sums.arms)),
        "groups": encode((sums.parts.names, tuple(sums.parts.by_group))),
        "centre": encode(first.centre),
        "metadata": encode(metadata),
        "also": encode(dict(sums.also)),
        "units": encode(None if sums.by_unit is None else dict(sums.by_unit.values)),
    }
    if first.products is not None:
        centres = tuple(_centres(first).tolist())
        header["further"] = encode((first.products.names, first.products.roles, centres))
    told = header | {"digest": content_digest(header, None, columns)}
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    table = table.replace_schema_metadata({KEY: json.dumps(told, allow_nan=False).encode()})
    atomic_write(place, lambda file: pq.write_table(table, file), owner_only)


def read_stored(path: Any) -> StoredSums:
    """Read sums from a file and verify its digest."""
    place = _place("Sums.read_parquet", path)
    check_regular(place, "Sums.read_parquet")
    try:
        return _read(place)
    except ParameterError as error:
        problems = [f"{place} {problem}" for problem in error.problems]
        raise ParameterError("Sums.read_parquet", problems) from error
    except Exception as error:
        # A damaged file can make the libraries below raise nearly any exception.
        said = f"{place} contains no readable sums: {type(error).__name__}: {error}"
        raise ParameterError("Sums.read_parquet", [f"{said:.400}"]) from error


def _place(subject: str, path: Any) -> Path:
    place = as_path(subject, "path", path)
    known = place.suffix.lower() in _SUFFIXES
    refuse(subject, [] if known else [f"the name must end in {' or '.join(_SUFFIXES)}, got {place.name!r}"])
    return place


def _columns(sums: StoredSums) -> dict[str, NDArray[Any]]:
    """The columns of a file, which has one row for each group, batch and arm, in order."""
    parts = list(sums.parts.by_group.values())
    about = len(sums.arms), _centres(parts[0][0])
    tables = [_of_group(place, *part, *about) for place, part in enumerate(parts)]
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


def _centres(cells: Cells) -> FloatArray:
    """The centres relative to which products are stored; empty if there are no products."""
    if cells.products is None:
        return np.zeros(0)
    return np.array([0.0, cells.centre, *cells.products.centres[2:]])


def _of_group(
    place: int, cells: Cells, batches: NDArray[Any], n_arms: int, centres: FloatArray
) -> dict[str, NDArray[Any]]:
    """The rows for the group at a position; centres, which are those of the products, has shape (D,)."""
    columns: dict[str, NDArray[Any]] = {
        "group": np.full(len(batches) * n_arms, place),
        "batch": np.repeat(batches, n_arms),
        "arm": np.tile(np.arange(n_arms), len(batches)),
        "rounds": np.repeat(cells.rounds, n_arms),
    }
    for power in range(POWERS):
        for degree in range(DEGREES):
            columns[f"moment_{power}_{degree}"] = cells.moments[power, degree].ravel()
    columns |= {name: getattr(cells, name).ravel() for name in _OVER_ALL}
    further = {} if cells.products is None else further_sums(cells.products.about(centres))
    return columns | {name: values.ravel() for name, values in further.items()}


def _read(place: Path) -> StoredSums:
    table = read_columns(place)
    metadata = table.schema.metadata or {}
    if KEY not in metadata:
        refuse(
            "file",
            [
                "contains no sums written by adaptinf: read it as a frame, and pass the names of its "
                "columns to Sums"
            ],
        )
    header = json.loads(metadata[KEY])
    digest = header.pop("digest", None)
    if header.get("version") != _VERSION:
        refuse(
            "file",
            [
                f"has format version {header.get('version')!r:.20}, but this version of adaptinf reads "
                f"{_VERSION}"
            ],
        )
    columns = {name: np.asarray(table.column(name).to_numpy()) for name in table.column_names}
    if content_digest(header, None, columns) != digest:
        refuse("file", ["is damaged: its content does not match its digest; restore it from a copy"])
    arms, said = decode(header["arms"]), decode(header["metadata"])
    for name in _GUARANTEES:
        said[name] = None if said[name] is None else PrivacyGuarantee.from_dict(said[name])
    if said["design"] is not None:
        name, parameters, traits = said["design"]
        own = None if traits is None else DesignTraits.from_dict(traits)
        said["design"] = DesignRecord(name, parameters, own)
    names, labels = decode(header["groups"])
    about = decode(header["centre"]), decode(header["further"]) if "further" in header else None
    by_group = {}
    for code, label in enumerate(labels):
        rows = {key: values[columns["group"] == code] for key, values in columns.items()}
        by_group[label] = (_cells(rows, len(arms), *about), rows["batch"][:: len(arms)])
    units = decode(header["units"])
    by_unit = None if units is None else UnitTotals(units, len(arms))
    return StoredSums(Parts(names, by_group), arms, said, decode(header["also"]), by_unit)


def _cells(columns: Mapping[str, NDArray[Any]], n_arms: int, centre: float, further: Any) -> Cells:
    """Cells from the columns of a file."""

    def whole(name: str) -> FloatArray:
        return np.array(columns[name], dtype=np.float64).reshape(-1, n_arms)

    moments = np.array(
        [[whole(f"moment_{power}_{degree}") for degree in range(DEGREES)] for power in range(POWERS)]
    )
    inverse, expected, spread, smallest, nonzero = map(whole, _OVER_ALL)
    products = None if further is None else read_sums(further, whole, moments)
    rounds = whole("rounds")[:, 0]
    return Cells(moments, rounds, inverse, expected, spread, smallest, nonzero, centre, products)
