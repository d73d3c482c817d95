"""The folder of a study: shards while it runs, one table a cell when a cell is done."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from adaptinf.audit.simulation.engine import Chunk, total_seconds
from adaptinf.audit.simulation.measures import BlockSums
from adaptinf.audit.studies.shards import (
    Damaged,
    block_table,
    kept_table,
    read_parquet,
    sums_of,
    write_json,
    write_parquet,
)
from adaptinf.errors import AdaptinfWarning, ParameterError
from adaptinf.files import file_digest


@dataclass(frozen=True, slots=True)
class Folder:
    """Where a study keeps what it has computed."""

    root: Path
    fingerprint: str
    labels: tuple[str, ...]
    keep: bool = False

    def _cell(self, index: int) -> Path:
        return self.root / "cells" / f"{self.labels[index]}.parquet"

    def _times(self, index: int) -> Path:
        return self.root / "times" / f"{self.labels[index]}.json"

    def _shards(self, index: int) -> Path:
        return self.root / "shards" / self.labels[index]

    def _estimates(self, index: int, start: int) -> Path:
        return self.root / "estimates" / self.labels[index] / f"{start:09d}.parquet"

    def prepare(self) -> None:
        """Make the folders, and clear away what a killed process left half-written."""
        for index in range(len(self.labels)):
            folders = [self._cell(index).parent, self._times(index).parent, self._shards(index)]
            for folder in [*folders, *([self._estimates(index, 0).parent] if self.keep else [])]:
                folder.mkdir(parents=True, exist_ok=True)
        for leftover in self.root.rglob(".*.tmp"):
            leftover.unlink(missing_ok=True)

    def save(self, index: int, chunk: Chunk) -> int:
        """Write a chunk, and return its number of runs; the shard of sums, written last, marks it as done."""
        metadata = {
            "fingerprint": self.fingerprint,
            "cell": self.labels[index],
            "start": chunk.start,
            "stop": chunk.stop,
            "estimates": None,
        }
        if self.keep:
            path = self._estimates(index, chunk.start)
            write_parquet(path, kept_table(chunk.kept), metadata)
            metadata["estimates"] = file_digest(path)
        path = self._shards(index) / f"{chunk.start:09d}.parquet"
        write_parquet(path, block_table(chunk), {**metadata, "seconds": chunk.seconds})
        return chunk.stop - chunk.start

    def has_chunk(self, index: int, start: int, stop: int) -> bool:
        """Whether a chunk has been computed and is whole; a damaged one is told of."""
        path = self._shards(index) / f"{start:09d}.parquet"
        return path.exists() and self._whole(self._read_shard, index, start, stop)

    def has_cell(self, index: int) -> bool:
        """Whether a cell's table is there and whole; a damaged one is told of."""
        return self._cell(index).exists() and self._whole(self.table, index)

    def _whole(self, read: Any, *arguments: Any) -> bool:
        try:
            read(*arguments)
        except Damaged as damage:
            warnings.warn(f"{damage}; it is computed again", AdaptinfWarning, stacklevel=4)
            return False
        return True

    def _read_shard(self, index: int, start: int, stop: int) -> tuple[list[BlockSums], dict[str, Any]]:
        path = self._shards(index) / f"{start:09d}.parquet"
        table, metadata = read_parquet(path, self.fingerprint)
        if (metadata["cell"], metadata["start"], metadata["stop"]) != (self.labels[index], start, stop):
            raise Damaged(f"{path} holds other runs than its name says")
        self._check_estimates(index, {str(start): metadata["estimates"]})
        return sums_of(table), metadata

    def _check_estimates(self, index: int, digests: dict[str, str | None]) -> None:
        for start, digest in digests.items():
            path = self._estimates(index, int(start))
            if self.keep and file_digest(path) != digest:
                raise Damaged(f"{path} is missing or damaged")

    def finish(self, index: int, chunks: Sequence[tuple[int, int]], tabulate: Any) -> None:
        """Merge the shards of a cell, in order, into its table; then remove them."""
        total, seconds, estimates = BlockSums(), list[dict[str, float]](), dict[str, str | None]()
        for start, stop in chunks:
            blocks, metadata = self._read_shard(index, start, stop)
            for block in blocks:
                total.merge(block)
            seconds.append(metadata["seconds"])
            estimates[str(start)] = metadata["estimates"]
        write_json(self._times(index), total_seconds(seconds))
        metadata = {"fingerprint": self.fingerprint, "cell": self.labels[index]}
        stored = estimates if self.keep else {}
        write_parquet(self._cell(index), tabulate(index, total), {**metadata, "estimates": stored})
        self.sweep(index)

    def sweep(self, index: int) -> None:
        """Remove the shards of a finished cell."""
        shutil.rmtree(self._shards(index), ignore_errors=True)

    def table(self, index: int) -> pa.Table:
        """The table of a finished cell."""
        table, metadata = read_parquet(self._cell(index), self.fingerprint)
        if metadata["cell"] != self.labels[index]:
            raise Damaged(f"{self._cell(index)} holds another cell than its name says")
        self._check_estimates(index, metadata["estimates"])
        return table

    def seconds(self, index: int) -> dict[str, float]:
        """Processor seconds of a finished cell by analysis; empty where they were lost."""
        try:
            found: dict[str, float] = json.loads(self._times(index).read_text())
        except (FileNotFoundError, ValueError):
            return {}
        return found

    def estimates(self, index: int) -> pa.Table:
        """What is kept of the runs of a finished cell, in the order of the runs."""
        paths = sorted(self._estimates(index, 0).parent.glob("*.parquet"))
        tables = [read_parquet(path, self.fingerprint)[0] for path in paths]
        return pa.concat_tables(tables).unify_dictionaries()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep a second study out of the folder, where the system can lock files."""
        with (self.root / ".lock").open("a") as file:
            _lock(file.fileno(), self.root)
            yield


def _lock(handle: int, root: Path) -> None:
    if os.name != "posix":
        return
    import fcntl

    try:
        # The lock goes with the process, however it ends.
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ParameterError("study", [f"another process is running the study in {root}"]) from None
