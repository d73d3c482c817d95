"""Trials in PostgreSQL: durability, one writer at a time, lost connections, copies, and silent passwords."""

from __future__ import annotations

import gc
import json
import logging
import os
import subprocess
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from crashes import NAMES, SELDOM, arm, crashed_run, entries, in_child, named_noise, on_a_server
from postgres_server import ADMIN, CLERK, PASSWORD, Database, programs
from test_errors_quote_nothing import check_silent, told
from test_trial_snapshots import follows

from adaptinf.cli.entry import main
from adaptinf.designs import Design, Mixture, PrivateUCB, Thompson
from adaptinf.errors import AdaptinfError, AdaptinfWarning, FileError, JournalError, ParameterError
from adaptinf.trial import Trial, requests
from adaptinf.trial import trial_noise as nodes
from adaptinf.trial.databases.sql_statements import Prepared
from adaptinf.trial.journal import Journal
from adaptinf.trial.replay import Replay
from adaptinf.trial.sealing import Sealing, Snapshots

WHY: dict[str, Any] = {"reason": "the server broke", "by": "Dr. Ames"}
PRIVATE = Mixture(PrivateUCB(epsilon=0.5), exploration=0.2)


def made(path: str, people: int = 4, **options: Any) -> Trial:
    trial = Trial.create(path, Thompson(floor=0.1), ["a", "b"], horizon=200, **options)
    for number in range(people):
        decision = trial.assign(f"unit {number}", key=f"a{number}")
        trial.record(decision.id, float(number % 2), key=f"r{number}")
    return trial


@on_a_server
def test_a_trial_is_created_and_opened_by_its_address(path: Database) -> None:
    with made(path) as trial:
        assert repr(trial) == f"Trial('{path}')"
        before = trial.status()
        assert (before.rounds, before.pending, before.rows, before.copied) == (4, 0, 9, False)
    with Trial.open(path.replace("postgresql://", "postgres://")) as trial:
        assert trial.verify(before.head) == before
        assert trial.assign("unit 2", key="a2").id == 3
        assert trial.log().n_rounds == 4
    tables = path.ask("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
    assert tables == [("journal",), ("secrets",)]


@on_a_server
def test_a_database_with_tables_is_never_written_over(path: Database) -> None:
    with pytest.raises(FileError, match="contains no trial"):
        Trial.open(path)
    made(path, 0).close()
    with pytest.raises(FileError, match="already contains a trial or other tables"):
        made(path)
    other = path.with_name("other")
    other.ask("CREATE TABLE people (name text)")
    with pytest.raises(FileError, match="already contains a trial or other tables"):
        made(other)


@on_a_server
def test_of_processes_that_create_at_once_one_does(path: Database) -> None:
    def create(_: int) -> str:
        try:
            made(path, 0).close()
        except FileError as error:
            return error.reason
        return "made"

    with ThreadPoolExecutor(4) as pool:
        found = sorted(pool.map(create, range(4)))
    assert found == [*["it already contains a trial or other tables"] * 3, "made"]
    assert len(entries(path)) == 1


@on_a_server
def test_schemas_hold_a_trial_each_and_do_not_wait_for_each_other(path: Database) -> None:
    for name in ("one", "two"):
        path.ask(f"CREATE SCHEMA {name}")
    one, two = (f"{path}?options=-csearch_path%3D{name}" for name in ("one", "two"))
    with made(one) as first, made(two, 1) as second:
        first._requests.journal.begin()
        assert second.assign("new", key="n").id == 2
        first._requests.journal.rollback()
        assert (first.verify().rows, second.verify().rows) == (9, 4)
    with pytest.raises(FileError, match="contains no trial"):
        Trial.open(path)
    with pytest.raises(FileError, match="none of the schemas in its search_path exists"):
        made(f"{path}?options=-csearch_path%3Dthree")


@on_a_server
def test_a_server_that_does_not_sync_is_refused(path: Database) -> None:
    made(path).close()
    path.server.stop()
    path.server.start("fsync=off")
    try:
        for act in (lambda: Trial.open(path), lambda: made(path.with_name("other"))):
            with pytest.raises(FileError, match="a power failure may lose requests: set fsync = on"):
                act()
    finally:
        path.server.stop()
        path.server.start("synchronous_commit=off")
    try:
        with Trial.open(path) as trial:
            driver = trial._requests.journal._driver
            assert driver.execute("SHOW synchronous_commit").fetchone() == ("on",)
            assert trial.status().rounds == 4
    finally:
        path.server.stop()
        path.server.start()


def until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait for something that another thread does."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


@on_a_server
def test_rows_are_read_after_the_lock_was_had(path: Database) -> None:
    """Attack: with a snapshot from before the lock, two processes choose the same number for their rows."""
    made(path, 0).close()
    with Trial.open(path) as one, Trial.open(path) as other:
        journal = one._requests.journal
        journal.begin()
        waits = threading.Thread(target=lambda: other.assign("second", key="2"))
        waits.start()
        until(lambda: bool(path.ask("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")))
        replay = one._requests._caught_up()
        one._requests._write(replay, replay.assign_new("first", None, "1")[1])
        journal.commit()
        waits.join()
        assert [row["unit"] for row in entries(path)[1:]] == ["first", "second"]
        assert one.verify() == other.verify()


@on_a_server
def test_a_reader_sees_one_state_and_waits_for_nobody(path: Database) -> None:
    with made(path) as one, Trial.open(path) as other:
        one._requests.journal.begin()
        assert other.status().rounds == 4  # while the other holds the lock
        one._requests.journal.rollback()

        def read(replay: Replay) -> int:
            one.assign("new", key="n")
            assert path.ask("SELECT max(number) FROM journal") == [(10,)]
            return int(other._requests.journal.digest(10) is not None)

        assert other._requests.read(read) == 0
        assert other.status().rounds == 5


@on_a_server
def test_secrets_of_many_rows_of_others_come_in_one_answer(
    path: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    whole = Prepared._text

    def text(self: Prepared, connection: Any) -> Any:
        found = whole(self, connection)
        asked.append(" ".join(found[0].split()))
        return found

    with made(path, 4) as one, Trial.open(path) as other:
        for number in range(20):
            one.record(one.assign(f"new {number}", key=f"n{number}").id, 1.0, key=f"s{number}")
        monkeypatch.setattr(Prepared, "_text", text)
        assert other.assign("last", key="last").id == 25
        assert sum("FROM secrets" in each and "BETWEEN" in each for each in asked) == 1
        assert len(asked) == 4  # with the rows, and the two that are written
        assert other.verify() == one.verify()


@on_a_server
def test_processes_side_by_side_leave_no_gap(path: Database) -> None:
    workers, each = 4, 12
    made(path, 0).close()

    def work(worker: int) -> None:
        with Trial.open(path) as trial:
            for number in range(each):
                decision = trial.assign(f"{worker}-{number}", key=f"assign {worker} {number}")
                trial.record(decision.id, float(number % 2), key=f"record {worker} {number}")

    children = [in_child(lambda worker=worker: work(worker)) for worker in range(workers)]
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * workers
    rounds = [row["round"] for row in entries(path) if row["kind"] == "assign"]
    assert rounds == list(range(1, workers * each + 1))
    with Trial.open(path) as trial:
        assert trial.verify().pending == 0


@on_a_server
def test_the_database_itself_takes_no_node_twice(path: Database) -> None:
    with Trial.create(path, PRIVATE, ["a", "b"], horizon=40, outcome_window=1) as trial:
        trial.assign_many(range(6), keys=range(6))
        trial.pause("\ud800 and \0 are no JSON to PostgreSQL")
        assert trial.verify().rows == len(entries(path)) > 9
        assert trial.audit_noise().trials == (path.name,)
    import psycopg

    row = 'SELECT 1000, entry, digest FROM journal WHERE entry LIKE \'{"kind":"node"%\' LIMIT 1'
    with pytest.raises(psycopg.errors.UniqueViolation, match="nodes"):
        path.ask(f"INSERT INTO journal {row}")


LOST = "the connection to its server was lost or could not be made"
CUTS = [(Journal, name, when) for name in ("begin", "append", "write", "commit") for when in (0, 1)]


@on_a_server
@pytest.mark.parametrize("how", ["cut", "restart"])
def test_a_connection_lost_anywhere_in_a_request_is_told_and_the_key_answers(
    path: Database, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "draw_node", named_noise)
    said: list[str] = []
    with Trial.create(path, PRIVATE, ["a", "b"], horizon=40, outcome_window=1) as trial:
        for number, (owner, name, when) in enumerate(CUTS if how == "cut" else CUTS[::3]):
            whole, left = getattr(owner, name), [1]

            def step(
                self: Journal, *given: Any, whole: Any = whole, when: int = when, left: Any = left
            ) -> Any:
                done = whole(self, *given) if when else None
                if left and left.pop():
                    path.server.cut(path.name) if how == "cut" else path.server.kill()
                return done if when else whole(self, *given)

            with monkeypatch.context() as cut:
                cut.setattr(owner, name, step)
                try:
                    trial.assign(f"unit {number}", key=f"a{number}")
                except FileError as error:
                    said.append(error.reason)
            assert trial.assign(f"unit {number}", key=f"a{number}").round == number + 1
            assert trial.record(number + 1, 1.0, key=f"r{number}").id == number + 1
        assert len(said) >= len(CUTS if how == "cut" else CUTS[::3]) - 3
        assert set(said) == {f"{LOST}: send the request again with its key"}
        assert trial.verify().rounds == number + 1
    rows = [row["node"] for row in entries(path) if row["kind"] == "node"]
    assert len(set(rows)) == len(rows) > 0


WITHIN = [(Sealing, "destroy"), (Snapshots, "read"), (Snapshots, "write")]


@on_a_server
@pytest.mark.parametrize(("owner", "name"), [*WITHIN, (Journal, "commit"), (Journal, "rollback")])
def test_a_connection_lost_among_statements_of_sqlalchemy_is_made_again(
    path: Database, owner: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "EVERY", 6)
    with made(path, 5) as trial:
        whole, cuts = getattr(owner, name), []

        def step(self: Any, *given: Any) -> Any:
            joined = owner is not Journal or trial._requests.journal.connection.in_transaction()
            if joined and len(cuts) < 2:
                path.server.cut(path.name)
                cuts.append(name)
            return whole(self, *given)

        monkeypatch.setattr(owner, name, step)
        said = set()
        for number in range(12):
            try:
                trial._requests._forget()
                trial.status()
                trial.erase(f"unit {number % 3}", key=f"e{number % 3}", **WHY)
                trial.assign(f"new {number}", key=f"n{number}")
            except FileError as error:
                said.add(error.reason)
        assert cuts
        assert said <= {f"{LOST}: send the request again with its key"}
        assert (trial.verify().erased, trial.status().pending) == (3, trial.status().rounds - 5)


@on_a_server
def test_an_answer_lost_behind_its_commit_counts_once(
    path: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with made(path, 1) as trial:

        def commit(self: Journal) -> None:
            self.write()
            self._driver.execute("COMMIT")
            path.server.cut(path.name)
            self.ask("written", lambda: self._driver.execute("SELECT 1"))

        with monkeypatch.context() as cut:
            cut.setattr(Journal, "commit", commit)
            with pytest.raises(FileError, match="was lost or could not be made: send the request again"):
                trial.assign("lost", key="k")
        assert path.ask("SELECT count(*) FROM journal") == [(4,)]
        assert trial.assign("lost", key="k").id == 2
        assert trial.verify().rows == 4


@on_a_server
def test_a_server_that_is_gone_is_told_and_comes_back(path: Database) -> None:
    with made(path) as trial:
        path.server.cut(path.name)
        assert trial.assign("unit 0", key="a0").id == 1  # nothing had been asked: it is asked anew
        path.server.stop()
        try:
            for act in (lambda: trial.assign("new", key="n"), trial.status, lambda: Trial.open(path)):
                with pytest.raises(FileError, match=r"cannot be (read|written): its server does not answer"):
                    act()
        finally:
            path.server.start()
        assert trial.assign("new", key="n").id == 5
        assert trial.verify().rows == 10


@on_a_server
def test_a_connection_lost_while_a_trial_is_opened_is_told_and_not_logged(
    path: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made(path).close()
    whole = Journal.readers

    def readers(self: Journal) -> str:
        path.server.cut(path.name)
        return whole(self)

    monkeypatch.setattr(Journal, "readers", readers)
    with pytest.raises(FileError, match=f"cannot be read: {LOST}: send the request again with its key"):
        Trial.open(path)
    gc.collect()
    assert not caplog.records


@on_a_server
def test_rows_that_the_server_has_lost_are_not_missed_in_memory(path: Database) -> None:
    """A standby that goes on may lack the last rows: the trial is read again after every new connection."""
    with made(path) as trial:
        path.ask("DELETE FROM journal WHERE number > 7")
        path.server.cut(path.name)
        with pytest.raises(JournalError, match="the secret of decision 4"):
            trial.verify()
        assert trial.status().rows == 7


@on_a_server
def test_one_that_waits_too_long_for_the_lock_is_told(path: Database) -> None:
    with made(path, 1) as one, Trial.open(path) as other:
        other._requests.journal._driver.execute("SET lock_timeout = '50ms'")
        one._requests.journal.begin()
        with pytest.raises(FileError, match="another process has been using it for 60 s"):
            other.assign("new", key="n")
        one._requests.journal.rollback()
        assert other.assign("new", key="n").id == 2


@on_a_server
def test_snapshots_serve_here_too_and_an_erasure_says_what_remains(
    path: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "EVERY", 6)
    seen = follows(monkeypatch)
    made(path, 10).close()
    assert path.ask("SELECT number FROM snapshot_state") == [(18,)]
    seen.clear()
    with Trial.open(path) as trial:
        assert seen == [19, 20, 21]
        with pytest.warns(
            AdaptinfWarning, match=r"erase: the secret was overwritten, but PostgreSQL keeps.*dumps"
        ):
            assert trial.erase("unit 3", key="e", **WHY) == 4
        assert path.ask("SELECT count(*) FROM snapshot_parts") == [(1,)]  # made anew
        assert trial.verify().erased == 1
    assert path.ask("SELECT encode(secret, 'hex') FROM secrets WHERE number = 4") == [("00" * 32,)]
    assert b"unit 3" not in path.dump()


@on_a_server
@pytest.mark.parametrize("how", ["template", "dump"])
def test_a_copy_of_the_database_is_read_only_until_it_takes_its_place(path: Database, how: str) -> None:
    with Trial.create(path, PRIVATE, ["a", "b"], horizon=40, outcome_window=1) as trial:
        trial.assign_many([f"unit {n}" for n in range(5)], keys=[f"a{n}" for n in range(5)])
        head = trial.status().head
        with pytest.raises(ParameterError, match="use pg_dump; a database restored from the dump"):
            trial.backup("copy.db")
    if how == "template":
        copy = path.copy("copy")
    else:
        folder, copy = programs(), path.with_name("copy")
        assert folder is not None
        dumped = subprocess.run([folder / "pg_dump", path], capture_output=True, check=True).stdout
        subprocess.run([folder / "psql", "-q", copy], input=dumped, check=True, capture_output=True)
    with Trial.open(copy) as trial:
        assert (trial.verify().copied, trial.status().head) == (True, head)
        assert trial.assign("unit 4", key="a4").id == 5
        with pytest.raises(ParameterError, match=r"differs from the one.*restore.*moved"):
            trial.assign("new", key="n")
        with pytest.raises(ParameterError, match="no row of the copy has this head"):
            trial.restore(**WHY, head="0" * 64)
        trial.restore(**WHY, head=head)
        assert trial.assign("new", key="n").id == 6
        assert (trial.verify().copied, trial.status().restored) == (False, 1)
    with Trial.open(copy) as trial:
        assert trial.assign("newer", key="o").id == 7
        assert trial.log("drop").guarantee.epsilon == 0.5  # type: ignore[union-attr]
    with Trial.open(path) as trial:
        assert trial.status().copied is False


@on_a_server
def test_a_new_timeline_makes_a_copy_of_a_running_trial_too(
    path: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a standby was promoted, which may lack the last answers: connections are made anew then."""
    with made(path) as trial:
        whole = type(trial._requests.journal.store).place
        for later in ("00000002", None):
            monkeypatch.setattr(
                "adaptinf.trial.databases.postgres_server.PostgresServer.place",
                lambda self, driver, later=later: {**whole(self, driver), "timeline": later},
            )
            path.server.cut(path.name)
            assert trial.status().copied is True
            with pytest.raises(ParameterError, match="differs from the one recorded in its journal"):
                trial.assign("new", key="n")
        monkeypatch.undo()
        path.server.cut(path.name)
        assert trial.assign("new", key="n").id == 5


@on_a_server
def test_tables_that_everybody_may_read_are_told(path: Database) -> None:
    made(path).close()
    path.ask("GRANT SELECT ON journal TO PUBLIC")
    with pytest.warns(AdaptinfWarning, match="every user of the database may read or change.*REVOKE"):
        Trial.open(path).close()
    path.ask("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM PUBLIC")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Trial.open(path).close()


@on_a_server
@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("DELETE FROM journal WHERE number = 4", "row 4 is missing"),
        ("UPDATE journal SET entry = replace(entry, '1.0', '0.0') WHERE number = 5", "row 5 does not follow"),
        ("UPDATE journal SET digest = '7' WHERE number = 2", "row 2 does not follow"),
        ("UPDATE secrets SET secret = 'x' WHERE number = 3", "the sealed fields of row 6 do not match"),
        ("ALTER TABLE journal DROP COLUMN entry", "PostgreSQL reported SQLSTATE 42703"),
        ("DROP TABLE journal", "contains no trial"),
        ("DROP TABLE secrets", "PostgreSQL reported SQLSTATE 42P01"),
    ],
)
def test_rows_that_others_changed_are_named(path: Database, statement: str, problem: str) -> None:
    made(path).close()
    path.ask(statement)
    with pytest.raises((JournalError, FileError), match=problem) as caught:
        Trial.open(path)
    check_silent(caught.value, "unit ", "SELECT")


@pytest.mark.slow
@on_a_server
@pytest.mark.parametrize("design", [Thompson(floor=0.1), PRIVATE], ids=["Thompson", "private"])
def test_a_kill_at_any_step_loses_nothing_and_counts_nothing_twice(
    path: Database, design: Design, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "draw_node", named_noise)
    rng, kills, window = np.random.default_rng(7), 0, None if design is not PRIVATE else 2
    order = [(point, 2) for point, name in enumerate(NAMES) if not name.endswith(SELDOM)]
    rng.shuffle(order)

    def plan() -> Callable[[], None]:
        if not order or kills >= 10:
            return lambda: None
        point, count = order.pop()
        return lambda: arm(point, count)

    while kills < 10:
        kills += crashed_run(path, design, 8, rng, plan, window=window)
    assert path.server.ask("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == [(0,)]


def clerk(path: Database, password: str = PASSWORD, **change: str) -> str:
    """The address of a database for a user with a password."""
    path.ask(f"GRANT ALL ON SCHEMA public TO {CLERK}")
    whole = path.replace(f"{ADMIN}@", f"{CLERK}:{quote(password, safe='')}@")
    for before, after in change.items():
        whole = whole.replace(str(getattr(path, before, before)), after)
    return whole


@on_a_server
def test_a_password_is_shown_nowhere(
    path: Database, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    right = clerk(path)
    hidden = (PASSWORD, quote(PASSWORD, safe=""), "s3cret")
    port = str(path.server.port)
    wrong: list[tuple[Callable[[], object], str]] = [
        (lambda: made(right), "already contains a trial"),
        (lambda: Trial.open(clerk(path, "s3cret")), "its server rejected the user name or the password"),
        (
            lambda: Trial.open(f"{clerk(path, 's3cret')}?password=s3cret"),
            "rejected the user name or the password",
        ),
        (lambda: Trial.open(right.replace(path.name, "nowhere")), "the database does not exist"),
        (lambda: Trial.open(right.replace(port, "1")), "its server does not answer"),
        (
            lambda: Trial.open(right.replace("127.0.0.1", "no.such.host.invalid")),
            "there is no server with that name",
        ),
        (lambda: Trial.open(right.replace(port, "s3cret")), "the address cannot be read"),
        (lambda: Trial.open(f"postgresql://{CLERK}:s3cret@s3cret@host/db"), "the address cannot be read"),
        (lambda: Trial.open(f"postgresql://{CLERK}:s3cret@a/s3cret@host/db"), "the address cannot be read"),
        (lambda: Trial.open(right.replace("postgresql", "mysql")), "got 'mysql'://"),
        (lambda: trial.assign(" ", key="x"), "unit"),
        (lambda: trial.verify("0" * 64), "no row has the head"),
    ]
    with made(right) as trial:
        shown = f"postgresql://{CLERK}@127.0.0.1:{port}/{path.name}"
        assert repr(trial) == f"Trial('{shown}')"
        texts = [repr(trial.status()), repr(trial._requests.journal.path)]
        for act, problem in wrong:
            with pytest.raises(AdaptinfError, match=problem) as caught:
                act()
            texts.append(told(caught.value))
    for action in ("status", "verify", "history"):
        assert main(["trial", action, right]) == 0
        assert main(["trial", action, clerk(path, "s3cret")]) == 2
    said = capsys.readouterr()
    texts += [said.out, said.err, caplog.text]
    assert not [secret for secret in hidden if any(secret in text for text in texts)]
    assert shown in said.err


@on_a_server
def test_the_command_line_takes_addresses(path: Database, capsys: pytest.CaptureFixture[str]) -> None:
    create = ["--design", "Thompson", "--arm", "a", "--arm", "b", "--horizon", "9"]
    assert main(["trial", "create", path, *create]) == 0
    assert main(["trial", "assign", path, "--unit", "x", "--key", "1"]) == 0
    assert main(["trial", "record", path, "--decision", "1", "--reward", "1", "--key", "2"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {"id": 1, "reward": 1.0, "in_time": True}
    why = ["--reason", "asked", "--by", "the office"]
    assert main(["trial", "erase", path, "--unit", "x", "--key", "3", *why]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == {"decision": 1}
    assert said.err.startswith("adaptinf trial: erase: the secret was overwritten, but PostgreSQL keeps")
    assert main(["trial", "verify", path]) == 0
    assert main(["trial", "backup", path, "copy.db"]) == 2
    assert "use pg_dump" in capsys.readouterr().err
