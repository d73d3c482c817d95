"""What a stolen trial tells a thief who knows the code: by content, by length, by pages of commits."""

from __future__ import annotations

import base64
import itertools
import json
import re
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from adaptinf.designs import Design, Thompson
from adaptinf.trial import Trial

ARMS = ["usual care", "a letter with a much longer name"]
PEOPLE = 300
_FRAME, _WAL_HEADER = 24, 32
_BASE64 = re.compile(rb"[A-Za-z0-9+/]*")


@dataclass
class Truth:
    """What the trial's owner knows, in the order of the decisions."""

    units: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    arms: list[str] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    seed: str = ""
    about: dict[int, int] = field(default_factory=dict)
    """The decision of each row of an assignment or an outcome."""

    def words(self) -> set[str]:
        """What may not be found in any file."""
        return {
            *self.units[::10],
            *self.keys[::10],
            *self.arms,
            self.seed,
            "Thompson",
            '"kind":"assign"',
            "propensities",
        }


def run(path: Any, key: Path | None, design: Design | None = None) -> tuple[Truth, Trial]:
    """A trial of some hundred people, which is still open; its seed and arms are as they came."""
    design = Thompson(floor=0.1) if design is None else design
    private = {} if isinstance(design, Thompson) else {"outcome_window": 0}
    trial = Trial.create(path, design, ARMS, horizon=1_000, key_file=key, **private)
    truth, rng = Truth(), np.random.default_rng(7)
    if isinstance(path, Path):
        # All commits stay in the write-ahead log, which a thief may have copied at any time.
        trial._requests.journal._driver.execute("PRAGMA wal_autocheckpoint = 0")
    for number in range(PEOPLE):
        unit, names = f"Ms Example {number}", (f"visit {number}", f"form {number}")
        reward = float(rng.random() if rng.random() < 0.7 else rng.integers(2))
        decision = trial.assign(unit, key=names[0])
        truth.about[trial.status().rows] = number
        trial.record(decision.id, reward, key=names[1])
        truth.about[trial.status().rows] = number
        truth.units.append(unit)
        truth.keys += names
        truth.arms.append(decision.arm)
        truth.rewards.append(reward)
    truth.seed = trial._requests.read(lambda replay: replay.declared["seed"])
    return truth, trial


def groups(truth: Truth) -> dict[str, list[bool]]:
    return {
        "arm": [arm == ARMS[0] for arm in truth.arms],
        "outcome": [reward > 0.5 for reward in truth.rewards],
        "digits": [len(str(reward)) > 5 for reward in truth.rewards],
    }


def chances(truth: Truth, found: dict[str, dict[int, int]]) -> dict[tuple[str, int, str], float]:
    """p values of the lengths of all values, of assignments (0) and outcomes (1), by what should not show."""
    rng, chances = np.random.default_rng(1), {}
    for column, sizes in found.items():
        for place in (0, 1):
            rows = [row for number in range(PEOPLE) for row in list(truth.about)[2 * number + place :][:1]]
            rows = rows if column.startswith("journal") else list(range(1, PEOPLE + 1))
            if not set(rows) <= set(sizes):
                continue
            for what, its in groups(truth).items():
                chances[column, place, what] = chance([sizes[row] for row in rows], its, rng)
    return chances


def stolen(path: Path, folder: Path) -> Path:
    """Copies of the files of a trial that is open; the database among them."""
    for file in path.parent.glob(f"{path.name}*"):
        shutil.copyfile(file, folder / file.name)
    return folder / path.name


def spellings(word: str) -> set[bytes]:
    """A word as files may have it: plain, as UTF-16, in hexadecimal, and in base64 at each offset."""
    plain = word.encode()
    found = {plain, word.encode("utf-16-le"), plain.hex().encode(), json.dumps(word)[1:-1].encode()}
    with suppress(ValueError):
        found.add(bytes.fromhex(word))
    for shift in range(3):
        whole = base64.b64encode(bytes(shift) + plain)
        found.add(whole[(shift * 8 + 5) // 6 : len(whole) - 4])
    # Short ones come about by chance: the files contain much base64.
    return {one for one in found if len(one) >= (8 if _BASE64.fullmatch(one) else 6)}


def seen(content: bytes, words: Iterable[str]) -> set[str]:
    """Words whose spelling is in the bytes of a file."""
    return {word for word in words if any(spelling in content for spelling in spellings(word))}


def tables(path: Path) -> dict[str, list[dict[str, Any]]]:
    """All values of a database."""
    with closing(sqlite3.connect(path)) as file:
        file.row_factory = sqlite3.Row
        names = [name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: list(map(dict, file.execute(f"SELECT * FROM {name}"))) for name in names}


def decoded(text: Any) -> Iterator[dict[str, Any]]:
    """The entry in a row, if it is JSON."""
    with suppress(ValueError):
        entry = json.loads(text)
        if isinstance(entry, dict):
            yield entry


def read(path: Path) -> dict[str, set[str]]:
    """What a thief who knows the code reads in the rows, sealed fields as well, with secrets in the file."""
    found: dict[str, set[str]] = {name: set() for name in ("arm", "reward", "unit", "key", "seed")}
    content = tables(path)
    keys = {value for row in content.get("secrets", []) for value in row.values() if isinstance(value, bytes)}
    entries = [entry for row in content["journal"] for entry in decoded(row["entry"])]
    for number, entry in enumerate(entries, start=1):
        about = entry.get("round", entry.get("decision"))
        place = f"{number} {entry['kind']} {about}".encode()
        sealed = base64.b64decode(entry.get("sealed", ""))
        for secret in keys if sealed else ():
            with suppress(InvalidTag, ValueError):
                entry |= json.loads(AESGCM(secret).decrypt(sealed[:12], sealed[12:], place))
        for name in found:
            if name in entry:
                found[name].add(str(entry[name]))
    return found


def opened_by_what_is_stored(path: Path) -> int:
    """Number of ciphertexts that open with some stored bytes as their key."""
    content = tables(path)
    blobs = [
        value for rows in content.values() for row in rows for value in row.values() if type(value) is bytes
    ]
    texts = [base64.b64decode(row["entry"]) for row in content["journal"]]
    keys = {blob[at : at + 32] for blob in blobs[:40] for at in range(0, min(len(blob), 80) - 31, 4)}
    opened = 0
    for key, text in itertools.product(keys, [*texts[:10], *blobs[:10]]):
        for start, nonce in ((0, 12), (12, 12), (18, 24)):
            with suppress(InvalidTag, ValueError):
                AESGCM(key).decrypt(text[start + nonce - 12 : start + nonce], text[start + nonce :], None)
                opened += 1
    return opened


def lengths(path: Path) -> dict[str, dict[int, int]]:
    """Lengths of all stored values, by table and column, and the number of the row."""
    found: dict[str, dict[int, int]] = {}
    for name, rows in tables(path).items():
        for number, row in enumerate(rows, start=1):
            for column, value in row.items():
                if isinstance(value, (bytes, str)):
                    found.setdefault(f"{name}.{column}", {})[row.get("number", number)] = len(value)
    return found


def commits(wal: bytes) -> list[tuple[int, ...]]:
    """The pages of each commit in a write-ahead log."""
    size, found, pages = int.from_bytes(wal[8:12], "big"), [], []
    for at in range(_WAL_HEADER, len(wal) - size - _FRAME + 1, size + _FRAME):
        pages.append(int.from_bytes(wal[at : at + 4], "big"))
        if int.from_bytes(wal[at + 4 : at + 8], "big"):
            found.append(tuple(pages))
            pages = []
    return found


def chance(
    values: Sequence[float], groups: Sequence[Any], rng: np.random.Generator, draws: int = 999
) -> float:
    """A permutation test's p value of equal means of the values in all groups."""
    numbers, _, codes = np.asarray(values, float), *np.unique(np.asarray(groups), return_inverse=True)
    sizes = np.bincount(codes)

    def between(order: np.ndarray) -> float:
        return float(np.sum(np.bincount(order, numbers - numbers.mean()) ** 2 / sizes))

    observed = between(codes)
    if not numbers.var():
        return 1.0
    return (1 + sum(between(rng.permutation(codes)) >= observed - 1e-9 for _ in range(draws))) / (1 + draws)


def score(values: Sequence[float], groups: Sequence[bool]) -> float:
    """The standard score of the difference between the means of two groups."""
    return float(np.max(_scores(np.asarray(values, float)[:, None], np.asarray(groups, bool))))


def largest_bit(texts: Sequence[bytes], groups: Sequence[bool]) -> float:
    """The largest standard score of any bit's mean between two groups of texts of one length."""
    bits = np.unpackbits(np.frombuffer(b"".join(texts), np.uint8).reshape(len(texts), -1), axis=1)
    return float(np.max(_scores(bits, np.asarray(groups, bool))))


def _scores(columns: np.ndarray, one: np.ndarray) -> np.ndarray:
    error = columns.std(axis=0) * np.sqrt(1 / one.sum() + 1 / (~one).sum())
    gap = np.abs(columns[one].mean(axis=0) - columns[~one].mean(axis=0))
    return np.divide(gap, error, out=np.zeros(len(gap)), where=error > 0)
