"""Files for download: the declaration, the head of the journal, the log, its public part, and a report."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from adaptinf.log import AdaptiveLog
from adaptinf.log.storage.stored import encode
from adaptinf.reports import report
from adaptinf.service.pages.reading import Facts

MEDIA = {
    ".json": "application/json",
    ".csv": "text/csv; charset=utf-8",
    ".parquet": "application/vnd.apache.parquet",
    ".html": "text/html; charset=utf-8",
}


def as_json(value: Any) -> bytes:
    """A value in readable form, with labels and dates as stored in the journal."""
    return f"{json.dumps(encode(value), indent=1, ensure_ascii=False)}\n".encode()


def head_of(facts: Facts, when: str) -> bytes:
    """The head of the journal, and the time at which it was read."""
    return as_json({"time": when, "rows": facts.status["rows"], "head": facts.status["head"]})


def _written(name: str, write: Callable[[Path], None]) -> bytes:
    """The bytes of a file, written in a folder that only its owner can open."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        write(path)
        return path.read_bytes()


def of_log(name: str, log: AdaptiveLog) -> bytes:
    """A file made from the log; raises `InvalidForLog` or `ParameterError` if that is impossible."""
    writers: dict[str, Callable[[Path], None]] = {
        "log.csv": log.to_csv,
        "log.parquet": log.to_parquet,
        "public.parquet": lambda path: log.public().to_parquet(path),
        "report.html": lambda path: report(log, path, title="Report of a running trial"),
    }
    return _written(name, writers[name])
