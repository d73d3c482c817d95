"""Processes that are killed in the middle of requests to a trial, and what has to hold afterwards."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import select
import shutil
import signal
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from postgres_server import Database

import adaptinf as ai
from adaptinf.trial import requests
from adaptinf.trial.databases.addresses import address_of
from adaptinf.trial.journal import Journal
from adaptinf.trial.replay import Replay
from adaptinf.trial.requests import Requests
from adaptinf.trial.sealing import Sealing, Snapshots

Place = Path | Database
_KEPT = pytest.mark.filterwarnings("ignore:erase. the secret was overwritten:adaptinf.errors.AdaptinfWarning")


def both(test: Callable[..., Any]) -> Callable[..., Any]:
    """Run a test of a trial at `path` on a file and on a server."""
    return pytest.mark.parametrize("path", ["file", "server"], indirect=True)(_KEPT(test))


def on_a_server(test: Callable[..., Any]) -> Callable[..., Any]:
    """Run a test of a trial at `path` on a server."""
    return pytest.mark.parametrize("path", ["server"], indirect=True)(_KEPT(test))


STEPS = (
    (Requests, "change"),
    (Journal, "begin"),
    (Journal, "news"),
    (Replay, "assign"),
    (Replay, "record"),
    (Replay, "amend"),
    (Replay, "remove_arm"),
    (Replay, "erase"),
    (Sealing, "destroy"),
    (Journal, "append"),
    (Journal, "commit"),
    (Journal, "purge"),
    (Snapshots, "write"),
)
SELDOM = ("remove_arm", "erase", "destroy", "purge")
"""Steps that a process takes once or twice: it is killed at one of these."""
EVERY = 4
"""Rows from one snapshot to the next in processes that are killed."""
POINTS = [(owner, name, when) for owner, name in STEPS for when in ("before", "after")]
NAMES = [f"{when} {owner.__name__}.{name}" for owner, name, when in POINTS]


def die() -> None:
    """End this process as kill -9 does: nothing is flushed, closed or told."""
    os.kill(os.getpid(), signal.SIGKILL)


def named_noise(name: str, scale: float) -> int:
    """Noise that follows from the name, so that runs can be compared."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:3], "big") - 2**23


def arm(point: int, count: int) -> None:
    """Kill this process when it comes to a point for the given time."""
    owner, name, when = POINTS[point]
    whole: Callable[..., Any] = getattr(owner, name)
    left = [count]

    def reached(here: str) -> None:
        if here == when:
            left[0] -= 1
            if left[0] == 0:
                die()

    def step(self: Any, *given: Any, **options: Any) -> Any:
        reached("before")
        done = whole(self, *given, **options)
        reached("after")
        return done

    def rows(self: Any) -> Iterator[Any]:
        reached("before")
        yield from whole(self)
        reached("after")

    setattr(owner, name, rows if name == "news" else step)


ERASED = ["erased"]
"""The answer to a request about a participant who was erased."""
_EARLY = 3
"""A participant who is erased before the outcome is recorded."""


@dataclass
class Scenario:
    """Requests in their order, each with its key.

    Outcomes come two participants late; an arm is removed half-way, where the design lets that; amendments
    and erasures come last, but for one participant who is erased before the outcome is recorded, or later
    where a design with a window goes by groups. A trial with a window is finished before the last erasure.
    """

    participants: int
    rewards: list[float]
    uses_context: str = "no"
    window: int | None = None
    answers: dict[int, Any] = field(default_factory=dict)
    requests: list[tuple[str, int]] = field(init=False)

    def __post_init__(self) -> None:
        waits = self.window is not None and self.uses_context == "groups"
        self.requests = [("assign", 0), ("assign", 1)]
        for who in range(self.participants):
            self.requests.append(("record", who))
            if who + 2 < self.participants:
                self.requests.append(("assign", who + 2))
            if who + 2 == (_EARLY + self.window + 2 if waits else _EARLY):
                self.requests.append(("erase", _EARLY))
            if self.window is None and who + 2 == self.participants // 2:
                self.requests.append(("remove", 0))
        self.requests += [("amend", who) for who in range(0, self.participants, 2)]
        last = self.participants - 1 - self.window if waits else self.participants
        self.requests += [("erase", who) for who in range(0, last, 5)]
        if self.window is not None:
            self.requests += [("finish", 0), ("erase", self.participants - 1)]

    def __len__(self) -> int:
        return len(self.requests)

    def erased(self, answered: int) -> list[int]:
        """Participants who are erased by the first so many requests."""
        return [who for kind, who in self.requests[:answered] if kind == "erase"]

    def may_be(self, number: int, answer: Any) -> bool:
        """Whether this is how a request that had its answer before may be answered now."""
        kind, who = self.requests[number]
        if kind in ("erase", "remove", "finish"):
            return bool(answer == self.answers[number])
        done = len(self.answers)
        if who in self.erased(done):
            return bool(answer == ERASED)
        return bool(answer == self.answers[number]) or (answer == ERASED and who in self.erased(done + 1))

    def send(self, trial: ai.Trial, number: int) -> list[Any]:
        """Send a request and have its answer; the id of a decision is its round."""
        kind, who = self.requests[number]
        why, unit = {"reason": f"about participant {who}.", "by": "a monitor"}, f"participant {who}."
        try:
            if kind == "assign":
                told = trial.assign(unit, self.context(who), key=f"assign {who}.")
                return [told.id, told.arm]
            if kind == "record":
                return [trial.record(who + 1, self.rewards[who], key=f"record {who}.").in_time]
            if kind == "amend":
                right = 1.0 - self.rewards[who]
                return [trial.amend(who + 1, right, key=f"amend {who}.", **why).reward]
        except ai.errors.ParameterError as error:
            if "erased" not in str(error) and "finished" not in str(error):
                raise
            return ERASED
        why["reason"] = "for safety"
        if kind == "remove":
            return list(trial.remove_arm("c", key="remove", **why))
        if kind == "finish":
            trial.finish(**why)
            return []
        return [trial.erase(unit, key=f"erasure {number}", **why)]

    def context(self, who: int) -> list[float] | str | None:
        """What is known of a participant."""
        known = {"vectors": [0.5, who / self.participants], "groups": "fm"[who % 3 == 0]}
        return known.get(self.uses_context)


def twin_of(trial: ai.Trial, path: Path) -> None:
    """A copy of a trial's file that goes on as if it were the trial itself: its rows name its own file."""
    trial.backup(path)
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA user_version = 0")
        file.execute("DROP TABLE IF EXISTS snapshot_state")
        file.execute("DROP TABLE IF EXISTS snapshot_parts")
        at_home(file, path)


def twin_in(place: Database, name: str) -> Database:
    """The same of a database without clients."""
    twin = place.copy(name)
    with twin.connected() as connection:
        at_home(connection, twin, "%s")
    return twin


def at_home(file: Any, place: Place, mark: str = "?") -> None:
    """Let the rows name the place where they are."""
    with closing(Journal(address_of("a twin", place))) as journal:
        here = journal.place
    rechained(file, lambda _, entry: {**entry, "place": here} if "place" in entry else entry, mark=mark)


def rechained(
    file: Any,
    change: Callable[[int, dict[str, Any]], dict[str, Any]],
    spoil: Callable[[str], str] = str,
    last: bool = False,
    mark: str = "?",
) -> None:
    """Make the digests anew over rows that were changed; the last text may be spoilt, too."""
    rows, head = file.execute("SELECT number, entry FROM journal ORDER BY number").fetchall(), ""
    for number, text in rows:
        changed = json.dumps(change(number, json.loads(text)), separators=(",", ":"))
        if last and number == len(rows):
            changed = spoil(changed)
        head = hashlib.sha256(f"{head}{changed}".encode()).hexdigest()
        update = f"UPDATE journal SET entry = {mark}, digest = {mark} WHERE number = {mark}"
        file.execute(update, (changed, head, number))
    file.commit()


def in_child(work: Callable[[], None]) -> int:
    """Start a process that does some work and nothing else."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of forks beside threads: the child touches none of them
        child = os.fork()
    if child:
        return child
    gc.freeze()  # what the parent left behind may belong to its threads, which the child has not
    try:
        work()
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
        os._exit(1)
    os._exit(0)


def attempt(path: Place, scenario: Scenario, prepare: Callable[[], None], rng: np.random.Generator) -> bool:
    """Send what has no answer yet from a child, which may be killed; whether it was.

    Answers that came before are asked for again, and have to be the same.
    """
    reader, writer = os.pipe()
    again = rng.integers(0, 2**31)

    def work() -> None:
        choices, requests.EVERY = np.random.default_rng(again), EVERY
        prepare()
        trial = ai.Trial.open(path)
        for number in range(len(scenario.answers), len(scenario)):
            if scenario.answers and choices.random() < 0.3:
                known = int(choices.choice(list(scenario.answers)))
                os.write(writer, f"{json.dumps([known, scenario.send(trial, known)])}\n".encode())
            os.write(writer, f"{json.dumps([number, scenario.send(trial, number)])}\n".encode())

    child = in_child(work)
    os.close(writer)
    said = b""
    while select.select([reader], [], [], 60.0)[0] and (part := os.read(reader, 65_536)):
        said += part
    os.close(reader)
    _, status = os.waitpid(child, 0)
    for line in said.decode().splitlines():
        number, answer = json.loads(line)
        if number in scenario.answers:
            assert scenario.may_be(number, answer), (scenario.requests[number], answer)
        else:
            scenario.answers[number] = answer
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    assert killed or os.waitstatus_to_exitcode(status) == 0, status
    return killed


def entries(path: Place) -> list[dict[str, Any]]:
    """Entries of a journal, opened where their secret is there, without their times and places."""
    journal = Journal(address_of("entries", path))
    sealing = Sealing(journal)
    journal.begin(write=False)
    try:
        rows = [sealing.opened(number, entry) for number, entry, _ in journal.news()]
    finally:
        journal.rollback()
        journal.close()
    left_out = ("time", "place")
    return [{name: value for name, value in row.items() if name not in left_out} for row in rows]


def undisturbed(path: Place, scenario: Scenario) -> list[Any]:
    """Answers of a run that nothing stops."""
    with ai.Trial.open(path) as trial:
        return [scenario.send(trial, number) for number in range(len(scenario))]


def crashed_run(
    folder: Place,
    design: ai.designs.Design,
    participants: int,
    rng: np.random.Generator,
    plan: Callable[[], Callable[[], None]],
    struck: list[str] | None = None,
    window: int | None = None,
) -> int:
    """A trial whose processes are killed until it is through; it must be as one that nothing stopped.

    `plan` says how the next child prepares its death, and may add its name to `struck`, whose last one
    is taken off where the child lived on. Noise of a private design, which has a window, has to follow from
    the name of its node. Returns the number of kills. The trial is in a folder, or beside a database.
    """
    path: Place
    if isinstance(folder, Database):
        path = folder.server.database()
    else:
        path = folder / "trial.db"
        for old in folder.glob("t*.db*"):
            old.unlink()
    rewards = rng.integers(0, 2, size=participants).astype(float).tolist()
    scenario = Scenario(participants, rewards, design.traits.uses_context, window)
    contexts: dict[str, dict[str, Any]] = {"vectors": {"dimension": 2}, "groups": {"features": ["f", "m"]}}
    options: dict[str, Any] = {"outcome_window": window, **contexts.get(scenario.uses_context, {})}
    arms = ["a", "b"] if scenario.uses_context == "groups" else ["a", "b", "c"]
    twin: Place = path.with_name("twin.db") if isinstance(path, Path) else path
    with ai.Trial.create(path, design, arms, horizon=participants, **options) as trial:
        if isinstance(twin, Path):
            twin_of(trial, twin)
    if isinstance(path, Database):
        twin = twin_in(path, "twin")
    expected = undisturbed(twin, scenario)
    kills = 0
    while len(scenario.answers) < len(scenario):
        killed = attempt(path, scenario, plan(), rng)
        if struck and not killed:
            struck.pop()
        kills += killed
    assert [scenario.answers[number] for number in range(len(scenario))] == expected
    assert entries(path) == entries(twin)
    with ai.Trial.open(path) as trial, ai.Trial.open(twin) as calm:
        nodes = [entry["node"] for entry in entries(path) if entry["kind"] == "node"]
        assert len(set(nodes)) == len(nodes)
        assert bool(nodes) == (window is not None)
        assert trial.verify().rows == 1 + len(scenario) - expected.count(ERASED) + len(nodes)
        logs = [one.log("drop", erased="keep") for one in (trial, calm)]
        assert logs[0].equals(logs[1])
    content = whole(path)
    for who in scenario.erased(len(scenario)):
        traces = (f"participant {who}.", f"assign {who}.", f"record {who}.", f"amend {who}.")
        assert not any(trace.encode() in content for trace in traces), who
    return kills


def whole(path: Place) -> bytes:
    """All that is stored of a trial."""
    if isinstance(path, Database):
        return path.dump()
    return b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))


def flipped(source: Path, place: Path, bit: int) -> None:
    """A copy of a file with one bit changed."""
    for old in place.parent.glob(f"{place.name}*"):
        old.unlink(missing_ok=True)  # SQLite removes a file beside it when a last statement is collected
    shutil.copyfile(source, place)
    with place.open("r+b") as file:
        file.seek(bit // 8)
        byte = file.read(1)[0] ^ (1 << bit % 8)
        file.seek(bit // 8)
        file.write(bytes([byte]))


def fate(place: Path, rows: list[dict[str, Any]], head: str | None = None) -> str:
    """What becomes of a damaged file: "detected", "identical", or "unnoticed", which must not be."""
    try:
        with ai.Trial.open(place) as trial:
            trial.verify(head)
        return "identical" if entries(place) == rows else "unnoticed"
    except (ai.errors.JournalError, ai.errors.FileError):
        return "detected"
