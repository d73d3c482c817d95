"""Errors of trials and sessions: nowhere in their chain is a row, an outcome, an arm or a seed."""

from __future__ import annotations

import io
import json
import sqlite3
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from crashes import entries, rechained

from adaptinf.cli import main
from adaptinf.designs import Thompson
from adaptinf.errors import AdaptinfError, FileError, JournalError, ParameterError
from adaptinf.trial import Trial, requests
from adaptinf.trial.databases.sql_statements import Prepared
from adaptinf.trial.journal import Journal

OUTCOMES = [0.3141, 0.2718]
ARMS = ["arm zeta", "arm eta"]
WHY: dict[str, Any] = {"reason": "a slip", "by": "Dr. Ames"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trial.db"


def filled(path: Path) -> Trial:
    trial = Trial.create(path, Thompson(floor=0.1), ARMS, horizon=20)
    for number in range(10):
        trial.assign(f"Ms Example {number}", key=f"visit {number}")
        trial.record(number + 1, OUTCOMES[number % 2], key=f"form {number}")
    trial.amend(3, 0.5772, key="amend", **WHY)
    return trial


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error with all that it names as cause or context, shown or not."""
    while error is not None:
        yield error
        if error.__cause__ is not None and error.__cause__ is not error.__context__:
            yield from chain(error.__cause__)
        error = error.__context__


def told(error: BaseException) -> str:
    """All that any tool may show of an error, but for lines of code: its traceback, texts and arguments."""
    lines = "".join(traceback.format_exception(error)).splitlines()
    parts = [line for line in lines if not line.startswith("    ")]
    return "\n".join(parts) + "".join(f"{one!s} {one.args!r} {vars(one)!r}" for one in chain(error))


def check_silent(error: BaseException, *stored: str) -> None:
    text = told(error)
    for trace in ("Ms Example", "visit ", "form ", "INSERT", "0.3141", "0.2718", "0.5772", *ARMS, *stored):
        assert trace not in text, trace
    assert all(isinstance(one, AdaptinfError) for one in chain(error))


def repeated(act: Callable[[int], object]) -> BaseException:
    """The error that an act comes to when it is done again and again."""
    try:
        for number in range(400):
            act(number)
    except AdaptinfError as error:
        return error
    raise AssertionError("nothing was refused")


def test_a_full_disk_shows_no_row(path: Path) -> None:
    """Attack: SQLAlchemy printed the statement and its parameters, the secret of the row among them."""
    with filled(path) as trial:
        seed = entries(path)[0]["seed"]
        connection = trial._requests.journal.connection
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.rollback()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        connection.rollback()
        acts: list[Callable[[int], object]] = [
            lambda n: trial.unblind("Ms Example 3", reason=f"visit of {n} " * 60, by="x"),
            lambda n: trial.assign(f"Ms Example of {n}", key=f"visit of {n}"),
            lambda n: trial.amend(3, n / 1e3, key=f"form of {n}", **WHY),
            lambda n: trial.assign_many([f"Ms Example of {n}"], keys=[f"visit of {n}"]),
            lambda n: trial.erase(f"Ms Example {n % 10}", key=f"visit {'x' * 150} {n}", **WHY),
        ]
        for act in acts:
            error = repeated(act)
            assert isinstance(error, FileError | ParameterError)
            if isinstance(error, FileError):
                assert "the disk is full" in str(error)
                check_silent(error, seed)
        assert isinstance(repeated(acts[0]), FileError)


def test_whatever_the_database_says_is_told_by_its_code_alone(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(path).close()
    said: list[Exception] = []
    for code in ("SQLITE_IOERR_WRITE", "SQLITE_CONSTRAINT_UNIQUE", "SQLITE_FULL", "SQLITE_CORRUPT"):
        origin = sqlite3.OperationalError("DETAIL: Failing row contains (Ms Example 3, 0.3141)")
        origin.sqlite_errorname = code  # type: ignore[misc]
        said.append(sa.exc.OperationalError("INSERT INTO journal", {"entry": "Ms Example 3"}, origin))
        said.append(origin)
    said.append(UnicodeDecodeError("utf-8", b"Ms Example 3 \xff", 13, 14, "invalid start byte"))
    doors: list[tuple[type, str]] = [
        (sa.Connection, "execute"),
        (sa.Connection, "exec_driver_sql"),
        (Prepared, "cursor"),
        (Prepared, "write"),
        (Journal, "_driver"),
    ]
    ways: list[Callable[[Trial], object]] = [
        lambda trial: trial.assign("Ms Example 30", key="visit 30"),
        lambda trial: trial.erase("Ms Example 4", key="visit 31", **WHY),
        lambda trial: trial.verify(),
        lambda trial: trial.status(),
        lambda trial: trial.backup(path.with_name("copy.db")),
    ]
    caught = 0
    for error in said:
        for owner, name in doors:
            for act in ways:
                with Trial.open(path) as trial, monkeypatch.context() as broken:

                    def fail(*given: Any, error: Exception = error, **more: Any) -> Any:
                        raise error

                    broken.setattr(owner, name, property(fail) if owner is Journal else fail)
                    try:
                        act(trial)
                    except (FileError, JournalError) as found:
                        caught += 1
                        check_silent(found, "DETAIL", "Failing row")
                path.with_name("copy.db").unlink(missing_ok=True)
    assert caught > 100
    with pytest.raises(FileError, match="SQLite reported SQLITE_IOERR_WRITE"):
        raise_as(path, said[1])


def raise_as(path: Path, error: Exception) -> None:
    with closing(Journal(path)) as opened:

        def fail() -> None:
            raise error

        opened.ask("written", fail)


def test_no_refusal_quotes_what_is_stored(path: Path) -> None:
    """Attack: `record` of another outcome answered with the one that was kept."""
    with filled(path) as trial:
        seed = entries(path)[0]["seed"]
        wrong: list[Callable[[], object]] = [
            lambda: trial.record(1, 1.0, key="other"),
            lambda: trial.record(1, None, key="lost"),
            lambda: trial.record(1, 1.0, key="r0"),
            lambda: trial.record(2, 1.0, key="amend"),
            lambda: trial.record_many([1, 2], [1.0, 0.0], keys=["m1", "m2"]),
            lambda: trial.amend(1, OUTCOMES[0], key="again", **WHY),
            lambda: trial.amend(3, 0.5772, key="again", **WHY),
            lambda: trial.amend(3, 2.0, key="range", **WHY),
            lambda: trial.assign("somebody else", key="amend"),
            lambda: trial.erase("nobody", key="e", **WHY),
            lambda: trial.unblind("nobody", **WHY),
            lambda: trial.remove_arm("no such", key="amend", **WHY),
            lambda: trial.restore(**WHY),
            lambda: trial.moved(**WHY),
        ]
        for number, act in enumerate(wrong):
            with pytest.raises(ParameterError) as caught:
                act()
            # The arms that there are were declared: a list of them is no assignment.
            text = told(caught.value) if number != 11 else ""
            for trace in ("0.3141", "0.2718", "0.5772", "Ms Example", seed, *ARMS):
                assert trace not in text, (number, trace)
    session = Thompson().session(ARMS, 9, rng=1)
    session.record(session.assign("Ms Example 1").id, 0.3141)
    for value in (0.5, None, 0.3141):
        act = session.amend if value == 0.3141 else session.record
        with pytest.raises(ParameterError) as caught:
            act(1, value)
        check_silent(caught.value)


def test_the_command_line_quotes_none_either(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(path).close()
    capsys.readouterr()
    lines = [json.dumps({"decision": n, "reward": 1.0, "key": f"k{n}"}) for n in (1, 2, 3)]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join([*lines, '{"decision": 1, "reward": 0.3141'])))
    assert main(["trial", "record", str(path)]) == 2
    said = capsys.readouterr()
    assert said.out.count("already has another outcome") == 3
    assert not [trace for trace in ("0.3141", "0.2718", "0.5772") if trace in said.out + said.err]


@pytest.mark.parametrize(
    "change",
    [
        {"reward": 7.3141},
        {"reward": 0.3142, "decision": 1},
        {"kind": "arm zeta"},
        {"kind": "record", "decision": 99},
        {"sealed": "0.3141"},
    ],
)
def test_a_damaged_journal_is_told_by_the_number_of_its_row(path: Path, change: dict[str, Any]) -> None:
    filled(path).close()
    with closing(sqlite3.connect(path)) as file:
        rechained(file, lambda number, entry: {**entry, **change} if number == 5 else entry)
    with pytest.raises(JournalError, match="row 5") as caught:
        Trial.open(path)
    check_silent(caught.value, "7.3141", "0.3142")


def test_a_row_that_is_no_json_is_not_shown(path: Path) -> None:
    filled(path).close()
    with closing(sqlite3.connect(path)) as file:
        rechained(file, lambda number, entry: entry, lambda text: f"Ms Example {text[:-1]}", last=True)
    with pytest.raises(JournalError, match="row 22 has the wrong layout") as caught:
        Trial.open(path)
    check_silent(caught.value)


def test_a_snapshot_that_cannot_be_read_is_not_shown(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "EVERY", 6)
    filled(path).close()

    def broken(*given: Any) -> Any:
        raise ValueError("Ms Example 3 had 0.3141")

    monkeypatch.setattr("adaptinf.trial.sealing.unpacked", broken)
    with pytest.warns(match="the snapshot is damaged") as caught:
        Trial.open(path).close()
    assert "Ms Example" not in str(caught[0].message)


def test_journals_hide_parameters_even_where_an_error_escapes(path: Path) -> None:
    with filled(path) as trial:
        journal = trial._requests.journal
        assert journal._engine.hide_parameters
        assert journal.store.failures[0] is sa.exc.DBAPIError
