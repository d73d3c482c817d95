"""What a trial answers: the same to a request sent again, and one clear sentence to a wrong one."""

from __future__ import annotations

import hashlib
import hmac
import importlib
import os
import resource
import sqlite3
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crashes import both, entries, in_child

import adaptinf as ai
from adaptinf.designs import (
    ABSE,
    UCB,
    ConSE,
    Design,
    EpsilonGreedy,
    FunctionDesign,
    LinUCB,
    Mixture,
    SuccessiveElimination,
    Thompson,
    Uniform,
)
from adaptinf.errors import AdaptinfWarning, FileError, ParameterError
from adaptinf.sessions import open_session
from adaptinf.trial import Trial, requests
from adaptinf.trial.journal import Journal
from adaptinf.trial.trial_setup import Coins

HUGE = "x" * 10_000_000
SQL = "'; DROP TABLE journal; --"


def refused(call: Callable[..., Any], *given: Any, **options: Any) -> str:
    """The one problem of a call, in a text that anybody can read."""
    with pytest.raises(ParameterError) as caught:
        call(*given, **options)
    assert len(str(caught.value)) < 400
    assert len(caught.value.problems) == 1
    return caught.value.problems[0]


@both
def test_each_wrong_request_has_one_clear_answer_and_changes_nothing(path: Path) -> None:
    with Trial.create(path, Thompson(), ["a", "b"], horizon=3, features=["f", SQL]) as trial:
        first = trial.assign(SQL, SQL, key=SQL)
        assert trial.record(first.id, 1.0, key="r").reward == 1.0
        before = trial.status()
        assert "already has another outcome" in refused(trial.record, first.id, 0.0, key="again")
        assert "there is no decision 2" in refused(trial.record, 2, 1.0, key="unknown")
        assert "from 0 to 1" in refused(trial.record, first.id, 1.5, key="range")
        assert "from 0 to 1" in refused(trial.record, first.id, float("nan"), key="nan")
        assert "another request" in refused(trial.assign, "new", "f", key=SQL)
        assert "another request" in refused(trial.record, first.id, 1.0, key=SQL)
        assert "context must be one of" in refused(trial.assign, "new", HUGE, key="huge")
        assert "unit must be" in refused(trial.assign, HUGE, "f", key="huge")
        assert "key must be" in refused(trial.assign, "new", "f", key=HUGE)
        assert "key is required" in refused(trial.assign, "new", "f", key=None)
        assert "unit is required" in refused(trial.assign, None, "f", key="none")
        assert "with another context" in refused(trial.assign, SQL, "f", key="other context")
        assert "decision_id must be" in refused(trial.record, SQL, 1.0, key="text")
        assert "head must be" in refused(trial.verify, 3)
        assert "reason must be" in refused(trial.pause, " ")
        assert trial.verify(before.head) == before
        trial.assign("second", "f", key=2)
        trial.assign("third", "f", key=3)
        assert "the horizon of 3 rounds has been reached" in refused(trial.assign, "fourth", "f", key=4)
        assert refused(trial.log).startswith("2 outcomes are missing")
        assert trial.log(missing="drop").units.tolist() == [SQL, "second", "third"]
    assert "closed" in refused(trial.assign, "fifth", "f", key=5)
    assert len(entries(path)) == 5


@both
def test_a_request_sent_again_has_the_same_answer_and_no_row(path: Path) -> None:
    with Trial.create(path, Thompson(), ["a", "b"], horizon=9) as trial:
        first = trial.assign("one", key="k")
        outcome = trial.record(first.id, None, key="r")
        rows = trial.status().rows
    with Trial.open(f"sqlite:///{path}") as trial:
        assert trial.assign("one", key="k") == first
        assert trial.record(first.id, None, key="r") == outcome
        assert trial.status().rows == rows == 3
        assert trial.assign("one", key="another key") == first
        assert "another request" in refused(trial.assign, "two", key="another key")
        assert trial.status().rows == 4
    with Trial.open(path) as trial:
        assert "another request" in refused(trial.assign, "two", key="another key")


@both
def test_an_amendment_is_a_row_of_its_own_with_who_and_why(path: Path) -> None:
    right = {"reason": "read from the wrong line", "by": "a monitor"}
    with Trial.create(path, Thompson(), ["a", "b"], horizon=9) as trial:
        first, second = (trial.assign(unit, key=unit) for unit in (1, 2))
        trial.record(first.id, 0.0, key="r")
        assert refused(trial.amend, second.id, 1.0, key="x", **right).endswith("no outcome yet: record it")
        assert "there is no decision 3" in refused(trial.amend, 3, 1.0, key="x", **right)
        assert "already" in refused(trial.amend, first.id, 0.0, key="x", **right)
        assert "key is required" in refused(trial.amend, first.id, 1.0, key=None, **right)
        with pytest.raises(ParameterError, match=r"reason must be a string[\s\S]*by must be a string"):
            trial.amend(first.id, 1.0, key="x", reason="", by=HUGE)
        assert trial.status().rows == 4
        trial.pause("for the night", by="the centre")
        outcome = trial.amend(first.id, 1.0, key="x", **right)
        assert (outcome.reward, outcome.in_time, trial.status().rows) == (1.0, False, 6)
        assert trial.amend(first.id, 1.0, key="x", **right) == outcome
        assert "another request" in refused(trial.amend, first.id, 0.5, key="x", **right)
        assert "amend it if that is a correction" in refused(trial.record, first.id, 1.0, key="y")
    with Trial.open(path) as trial:
        assert trial.amend(first.id, 1.0, key="x", **right) == outcome
        acts = trial.history()
        assert [(act.row, act.kind, act.by) for act in acts] == [
            (5, "pause", "the centre"),
            (6, "amend", "a monitor"),
        ]
        assert (acts[1].decision, acts[1].reward, acts[1].reason) == (1, 1.0, "read from the wrong line")
        assert trial.log("drop").frame["reward"][0] == 1.0
        assert trial.log("drop", amended=False).frame["reward"][0] == 0.0
        trial.finish("done")
        assert refused(trial.amend, first.id, 0.5, key="z", **right) == "the trial is finished: done"
        assert trial.amend(first.id, 1.0, key="x", **right) == outcome
        assert trial.verify().rows == 7
    kept = [row["reward"] for row in entries(path) if row["kind"] in ("record", "amend")]
    assert kept == [0.0, 1.0]


@both
def test_an_arm_is_told_in_an_emergency_and_that_it_was_told_is_kept(path: Path) -> None:
    why = {"reason": "a seizure", "by": "the ward"}
    with Trial.create(path, Thompson(), ["a", "b"], horizon=9) as trial:
        decisions = {unit: trial.assign(unit, key=unit) for unit in ("one", "two")}
        assert refused(trial.unblind, "three", **why) == "unit 'three' was not assigned"
        assert "unit is required" in refused(trial.unblind, None, **why)
        assert "by must be a string" in refused(trial.unblind, "two", reason="a seizure", by=None)
        assert refused(trial.unblind, SQL, **why) == f"unit {SQL!r} was not assigned"
        assert trial.status().rows == 3
        assert trial.unblind("two", **why) == decisions["two"]
        trial.finish("stopped for safety")
        assert trial.unblind("one", **why) == decisions["one"]
    with Trial.open(path) as trial:
        assert [(act.kind, act.decision, act.reason, act.by) for act in trial.history()] == [
            ("unblind", 2, "a seizure", "the ward"),
            ("finish", None, "stopped for safety", None),
            ("unblind", 1, "a seizure", "the ward"),
        ]
        assert trial.verify().rows == 6
        assert trial.unblind("one", **why) == decisions["one"]
        assert trial.status().rows == 7
    assert all("unit" not in row for row in entries(path) if row["kind"] == "unblind")


@both
def test_an_arm_is_not_told_where_that_cannot_be_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Trial.create(path, Thompson(), ["a", "b"], horizon=9) as trial:
        trial.assign("one", key="k")
        with monkeypatch.context() as broken:
            broken.setattr(Journal, "commit", _full)
            with pytest.raises(FileError, match="the disk is full"):
                trial.unblind("one", reason="a seizure", by="the ward")
        assert trial.history() == ()


def _full(self: Journal) -> None:
    raise FileError(str(self.path), "written", "the disk is full")


@both
def test_pause_and_finish(path: Path) -> None:
    with Trial.create(path, Uniform(), ["a", "b"], horizon=9) as trial:
        first = trial.assign(1, key=1)
        trial.pause("a batch was bad")
        trial.pause("said twice")
        assert refused(trial.assign, 2, key=2) == "the trial is paused: a batch was bad"
        assert trial.assign(1, key=1) == first
        assert trial.record(first.id, 1.0, key="r").in_time
    with Trial.open(path) as trial:
        assert trial.status().state == "paused"
        trial.resume("a new batch")
        second = trial.assign(2, key=2)
        trial.finish("all are in")
        assert refused(trial.record, second.id, 1.0, key="late") == "the trial is finished: all are in"
        assert refused(trial.assign, 3, key=3) == "the trial is finished: all are in"
        assert refused(trial.resume, "no") == "the trial is finished: all are in"
        assert trial.record(first.id, 1.0, key="r").in_time
        assert (trial.status().state, trial.status().pending) == ("finished", 1)


@pytest.mark.parametrize(
    "design",
    [ai.designs.LinPriv(epsilon=1.0, delta=1e-6), ai.designs.LDPBandit(epsilon=1.0)],
)
def test_a_design_without_exact_noise_is_refused_before_there_is_a_file(path: Path, design: Design) -> None:
    options = {"dimension": 2} if design.needs.vectors == "needed" else {}
    problem = refused(Trial.create, path, design, 2, horizon=100, **options)
    assert "requires exact release noise" in problem
    assert not path.exists()


def test_what_is_declared_wrongly_is_listed_before_there_is_a_file(path: Path) -> None:
    with pytest.raises(ParameterError) as caught:
        Trial.create(path, Thompson(), ["a", "a"], horizon=0, reward_range=(1.0, 0.0))
    assert len(caught.value.problems) >= 2
    assert "design must be a design" in refused(Trial.create, path, "thompson", 2, horizon=5)
    said = refused(Trial.create, "mysql://me:secret@host/trials", Thompson(), 2, horizon=5)
    assert said == (
        "a trial must be stored in a SQLite file, given by its path, or a PostgreSQL database, "
        "postgresql://user@host/database; got 'mysql'://"
    )
    assert not path.exists()


def test_a_file_is_never_written_over_and_another_is_not_taken_for_a_trial(path: Path) -> None:
    Trial.create(path, Thompson(), 2, horizon=5).close()
    with pytest.raises(FileError, match="already contains a trial or other tables"):
        Trial.create(path, Thompson(), 2, horizon=5)
    other = path.with_name("other.db")
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE people (name TEXT)")
    connection.close()
    with pytest.raises(FileError, match="other tables"):
        Trial.create(other, Thompson(), 2, horizon=5)
    with pytest.raises(FileError, match="contains no trial"):
        Trial.open(other)
    with pytest.raises(FileError, match="the file does not exist"):
        Trial.open(path.with_name("none.db"))
    text = path.with_name("text.db")
    text.write_text("not a database" * 100)
    with pytest.raises(ai.errors.JournalError, match="not a database"):
        Trial.open(text)
    with Trial.open(path) as trial, pytest.raises(FileError, match="of that name already"):
        trial.backup(text)


def test_a_design_that_can_be_foreseen_is_pointed_out(path: Path) -> None:
    with pytest.warns(AdaptinfWarning, match="wrap it in a Mixture"):
        Trial.create(path, UCB(), 2, horizon=5).close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Trial.create(path.with_name("mixed.db"), Mixture(UCB()), 2, horizon=5).close()


def favour(state: Any, context: Any, rng: np.random.Generator) -> list[float]:
    return [0.3, 0.7]


@both
def test_a_design_of_ones_own_is_given_again(path: Path) -> None:
    own = FunctionDesign(favour)
    with Trial.create(path, own, 2, horizon=5) as trial:
        first = trial.assign(1, key=1)
    assert "user-defined design: pass it as design=" in refused(Trial.open, path)
    assert "FunctionDesign, differs from Thompson" in refused(Trial.open, path, Thompson())
    with Trial.open(path, own) as trial:
        assert trial.assign(1, key=1) == first
        assert trial.log(missing="drop").arrays.propensities.tolist() == [[0.3, 0.7]]
    with Trial.open(path, FunctionDesign(favour)) as trial:
        assert trial.status().rounds == 1


DESIGNS: list[tuple[Design, dict[str, Any]]] = [
    (Thompson(floor=(0.5, 0.7)), {}),
    (EpsilonGreedy(exploration=0.3), {}),
    (Mixture(SuccessiveElimination(), exploration=0.2), {}),
    (UCB(), {}),
    (ConSE(), {"features": ["f", "m"]}),
    (LinUCB(), {"dimension": 3}),
    (ABSE(), {"dimension": 2}),
    (FunctionDesign(favour), {}),
]


@pytest.mark.filterwarnings("ignore:.*no random draws of its own:adaptinf.errors.AdaptinfWarning")
@pytest.mark.parametrize(("design", "options"), DESIGNS, ids=lambda given: type(given).__name__)
def test_a_trial_is_a_session_whose_coins_are_set_for_each_event(
    path: Path, design: Design, options: dict[str, Any]
) -> None:
    rng, horizon = np.random.default_rng(4), 40
    declared = ["a", "b"], options.get("features"), options.get("dimension"), False, (0.0, 1.0)
    with Trial.create(path, design, ["a", "b"], horizon, **options) as trial:
        coins = Coins(bytes.fromhex(entries(path)[0]["seed"]))
        session = open_session(design, declared, horizon, None, None, coins.generator)
        for number in range(1, horizon + 1):
            context: Any = rng.random(options["dimension"]) if "dimension" in options else None
            if "features" in options:
                context = str(rng.choice(["f", "m"]))
            decision = trial.assign(number, context, key=f"assign {number}")
            coins.set("assign", number)
            assert session.assign(number, context) == decision
            reward = float(rng.integers(0, 2))
            trial.record(decision.id, reward, key=f"record {number}")
            coins.set("record", number)
            session.record(decision.id, reward)
        assert trial.log().frame.equals(session.log().frame)
        assert trial.verify().rows == 2 * horizon + 1
    with Trial.open(path, design) as trial:
        assert trial.log().frame.equals(session.log().frame)


def literal_pcg64(state: int, increment: int) -> int:
    """First output of PCG64 (XSL-RR), written from its definition."""
    state = (state * 0x2360ED051FC65DA44385DF649FCCF645 + increment) % 2**128
    mixed, turn = (state >> 64) ^ (state % 2**64), state >> 122
    return (mixed >> turn | mixed << (64 - turn)) % 2**64


def test_coins_are_those_of_the_seed_and_the_event_alone() -> None:
    seed = bytes(range(32))
    coins = Coins(seed)
    coins.set("record", 8)
    coins.generator.random(7)
    coins.set("assign", 17)
    drawn = hmac.new(seed, b"assign 17", hashlib.sha256).digest()
    state, increment = int.from_bytes(drawn[:16], "big"), int.from_bytes(drawn[16:], "big") | 1
    assert coins.generator.random() == (literal_pcg64(state, increment) >> 11) / 2**53


def test_coins_of_events_are_uniform_and_unrelated() -> None:
    coins, drawn = Coins(bytes(32)), np.empty((20_000, 2))
    for number in range(len(drawn)):
        coins.set("assign", number)
        drawn[number] = coins.generator.random(2)
    cells = np.histogram2d(*drawn.T, bins=10, range=[[0, 1], [0, 1]])[0]
    assert ((cells - 200.0) ** 2 / 200.0).sum() < 160.0  # chi-squared of 99: beyond with probability 1e-4
    assert abs(np.corrcoef(drawn[:-1, 0], drawn[1:, 0])[0, 1]) < 0.03


def test_a_full_disk_is_told_and_the_same_request_counts_once_afterwards(path: Path) -> None:
    Trial.create(path, Thompson(), 2, horizon=2_000).close()

    def work() -> None:
        with Trial.open(path) as trial:
            hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
            for number in range(2_000):
                try:
                    trial.assign(number, key=number)
                except FileError as error:
                    told = str(error)
                    break
            assert "cannot be written" in told
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
            again = trial.assign(number, key=number)
            assert again.round == number + 1
            assert trial.verify().rounds == number + 1

    assert os.waitstatus_to_exitcode(os.waitpid(in_child(work), 0)[1]) == 0


@both
def test_a_failed_commit_is_forgotten_and_read_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Trial.create(path, Thompson(), 2, horizon=9) as trial:
        first = trial.assign(1, key=1)
        whole = Journal.commit

        def kept_but_not_told(self: Journal) -> None:
            whole(self)
            raise FileError("trial.db", "written", "the answer was lost")

        monkeypatch.setattr(Journal, "commit", kept_but_not_told)
        with pytest.raises(FileError):
            trial.assign(2, key=2)
        monkeypatch.setattr(Journal, "commit", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            trial.record(first.id, 1.0, key="r")
        monkeypatch.setattr(Journal, "commit", whole)
        assert trial.status().rounds == 2
        assert trial.assign(2, key=2).round == 2
        assert trial.record(first.id, 0.0, key="r").reward == 0.0


@both
def test_a_handle_is_of_one_process_and_threads_share_it(path: Path) -> None:
    trial = Trial.create(path, Thompson(), 2, horizon=100)

    def work() -> None:
        assert "open it with Trial.open in each process" in refused(trial.status)

    assert os.waitstatus_to_exitcode(os.waitpid(in_child(work), 0)[1]) == 0
    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(lambda number: trial.assign(number, key=number), range(40)))
    assert sorted(decision.round for decision in told) == list(range(1, 41))
    assert trial.verify().rounds == 40
    trial.close()
    trial.close()


@both
def test_a_clock_that_goes_backwards_moves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Trial.create(path, Thompson(), 2, horizon=9) as trial:
        monkeypatch.setattr(requests, "now", lambda: "1970-01-01T00:00:00.000+00:00")
        assert [trial.assign(number, key=number).round for number in (1, 2)] == [1, 2]
        assert trial.verify().rounds == 2


@both
def test_another_process_waits_and_is_seen(path: Path) -> None:
    with Trial.create(path, Thompson(), 2, horizon=9) as one, Trial.open(path) as other:
        first = one.assign(1, key=1)
        assert other.assign(1, key=1) == first
        assert other.assign(2, key=2).round == 2
        assert one.assign(3, key=3).round == 3
        assert one.status() == other.status()


@pytest.mark.parametrize("package", ["sqlalchemy", "cryptography"])
def test_without_its_packages_a_trial_names_the_extra(
    path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setattr(ai, "trial", importlib.import_module("adaptinf.trial"))
    for name in [name for name in sys.modules if name.startswith("adaptinf.trial")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    fresh = importlib.import_module("adaptinf.trial").Trial
    for use in (lambda: fresh.create(path, Thompson(), 2, horizon=9), lambda: fresh.open(path)):
        with pytest.raises(
            ai.errors.MissingDependencyError, match=r"^a live trial requires SQLAlchemy.*\[trial\]"
        ):
            use()
    assert not path.exists()


def test_without_its_driver_a_trial_on_a_server_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "psycopg"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "adaptinf.trial.databases.postgres_server", raising=False)
    for use in (Trial.open, lambda address: Trial.create(address, Thompson(), 2, horizon=9)):
        with pytest.raises(
            ai.errors.MissingDependencyError, match=r"^a trial in PostgreSQL requires psycopg.*\[postgres\]"
        ):
            use("postgresql://user@host/database")
