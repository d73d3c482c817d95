"""Comparison with an earlier report of the same installation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from adaptinf.errors import FileError
from adaptinf.files import told
from adaptinf.qualification.installed import Package
from adaptinf.qualification.rows import FAIL, PASS, Row

DIGEST = "digest"
_PART, _SHOWN = "Since the earlier report", 5


def digest_of(record: Mapping[str, Any]) -> str:
    """SHA-256 of a report without its digest."""
    content = {name: value for name, value in record.items() if name != DIGEST}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def read_report(path: Path) -> dict[str, Any]:
    """An earlier report, if it has not been changed."""
    with told(path, "read"):
        text = path.read_bytes()
    try:
        record = json.loads(text)
        right = record[DIGEST] == digest_of(record)
        files = record["files"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise FileError(str(path), "read", "it is not a report written by adaptinf qualify --json") from None
    if not right or not isinstance(files, dict):
        raise FileError(str(path), "read", "its digest is not that of its content: the report was changed")
    return dict(record)


def compared(record: Mapping[str, Any], installed: Sequence[Package]) -> list[Row]:
    """Packages whose files differ from those of an earlier report."""
    source = f"report of {record['date']}, sha256 {record[DIGEST][:16]}"
    before, now = record["files"], {one.name: one.files for one in installed}
    rows = []
    for name in sorted({*before, *now}):
        faults = list(_faults(before.get(name, {}), now.get(name, {})))
        more = [f"and {len(faults) - _SHOWN:,} more"] if len(faults) > _SHOWN else []
        said = "; ".join([*faults[:_SHOWN], *more]) or "the same files"
        rows.append(Row(_PART, name, "the same files", said, FAIL if faults else PASS, source))
    return rows


def _faults(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for name in sorted({*before, *now}):
        if name not in now:
            yield f"missing: {name}"
        elif name not in before:
            yield f"new: {name}"
        elif before[name] != now[name]:
            yield f"changed: {name}"
