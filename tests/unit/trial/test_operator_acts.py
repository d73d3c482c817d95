"""Arms that are removed from a trial, and participants who are erased from its file."""

from __future__ import annotations

import base64
import json
import sqlite3
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crashes import both, entries, twin_of
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

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
from adaptinf.errors import AdaptinfWarning, FileError, JournalError, ParameterError
from adaptinf.trial import Trial, requests
from adaptinf.trial.journal import Journal

WHY = {"reason": "asked for in writing", "by": "data protection"}
LABELS, VECTORS = {"features": ["young", "old"]}, {"dimension": 2}
PEOPLE = 30


@pytest.fixture(autouse=True)
def many_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "EVERY", 12)


def refused(call: Any, *given: Any, **options: Any) -> str:
    with pytest.raises(ParameterError) as caught:
        call(*given, **options)
    assert len(caught.value.problems) == 1
    return caught.value.problems[0]


def create(path: Path, design: Design, **options: Any) -> Trial:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptinfWarning)  # of designs without coins
        return Trial.create(path, design, ["a", "b"], horizon=200, **options)


def context(number: int, options: dict[str, Any]) -> Any:
    if "features" in options:
        return ["young", "old"][number % 3 == 0]
    return [0.1234567, number / 500] if "dimension" in options else None


def send(trial: Trial, people: range, options: dict[str, Any]) -> list[Any]:
    """Participants and their outcomes; the arms they had."""
    arms = []
    for number in people:
        told = trial.assign(f"person {number}.", context(number, options), key=f"visit {number}.")
        trial.record(told.id, float(number % 3 == 0), key=f"form {number}.")
        arms.append(told.arm)
    return arms


def run(path: Path, *statements: str) -> list[Any]:
    with sqlite3.connect(path, isolation_level=None) as connection:
        rows = [connection.execute(statement).fetchall() for statement in statements]
    connection.close()
    return rows[-1]


def files(path: Path) -> bytes:
    return b"".join(place.read_bytes() for place in sorted(path.parent.glob(f"{path.name}*")))


DESIGNS: list[tuple[Design, dict[str, Any], int]] = [
    (Thompson(floor=0.1), {}, 0),
    (EpsilonGreedy(batch_size=7), LABELS, 0),
    (SuccessiveElimination(), {}, 0),
    (LinUCB(), VECTORS, 25),
    (Mixture(LinUCB()), VECTORS, 25),
    (ConSE(), LABELS, 25),
    (ABSE(), VECTORS, 25),
    (FunctionDesign(lambda state, context, rng: [0.4, 0.6]), {}, 0),
]


@pytest.mark.parametrize(
    ("design", "options", "unrepeatable"), DESIGNS, ids=[type(design).__name__ for design, _, _ in DESIGNS]
)
def test_decisions_after_an_erasure_are_those_without_it(
    path: Path, design: Design, options: dict[str, Any], unrepeatable: int
) -> None:
    """The twin is a copy of the file, on the same coins, from which nobody is erased."""
    twin = path.with_name("twin.db")
    with create(path, design, **options) as trial:
        before = send(trial, range(PEOPLE), options)
        twin_of(trial, twin)
        assert trial.erase("person 5.", key="e", **WHY) == 6
        after = send(trial, range(PEOPLE, 50), options)
        status = trial.verify()
        assert (status.erased, status.unrepeatable, status.rounds) == (1, unrepeatable, 50)
        frame = trial.log(erased="keep").frame
    with Trial.open(twin, design) as calm:
        assert send(calm, range(PEOPLE, 50), options) == after
        whole = calm.log().frame
    run(path, "DROP TABLE IF EXISTS snapshot_state", "DROP TABLE IF EXISTS snapshot_parts")
    with Trial.open(path, design) as trial:  # from the first row
        assert trial.log(erased="keep").frame.equals(frame)
        assert trial.verify().unrepeatable == unrepeatable
        assert send(trial, range(50, 60), options) == send(Trial.open(twin, design), range(50, 60), options)
    assert frame["action"].tolist() == before + after
    kept = [name for name in whole.columns if name in frame.columns and name != "unit_id"]
    assert frame[kept].equals(whole[kept])
    assert frame["unit_id"].tolist() == ["erased 6" if n == 5 else f"person {n}." for n in range(50)]


@pytest.mark.parametrize("options", [LABELS, VECTORS], ids=["labels", "vectors"])
def test_no_file_holds_the_bytes_of_who_was_erased(path: Path, options: dict[str, Any]) -> None:
    with create(path, Mixture(UCB()), **options) as trial, Trial.open(path) as other:
        send(trial, range(20), options)
        trial.amend(6, 0.5, key="correction 5.", reason="Mrs Five called", by="a monitor")
        trial.unblind("person 5.", reason="Mr Five called", by="the ward")
        send(other, range(20, 40), options)
        ((secret,),) = run(path, "SELECT secret FROM secrets WHERE number = 6")
        ((shared,),) = run(path, "SELECT secret FROM secrets WHERE number = -1")
        sealed = [row[0] for row in run(path, "SELECT entry FROM journal")]
        assert run(path, "SELECT count(*) FROM snapshot_parts")[0][0] > 3
        vector = np.array([0.1234567, 5 / 500]).tobytes()
        traces = [b"person 5.", b"visit 5.", b"form 5.", b"correction 5.", secret, shared]
        traces += [vector] if options is VECTORS else []
        content = files(path)
        # Snapshots are sealed, too; what opens the rows and them is in the table of secrets.
        assert [trace for trace in traces if trace in content] == [secret, shared]
        trial.erase("person 5.", key="e", **WHY)
        content = files(path)
        assert not any(trace in content for trace in traces)
        assert b"Five" not in content
        send(other, range(40, 60), options)
        assert other.status().erased == 1
        content = files(path)
        assert run(path, "SELECT count(*) FROM snapshot_parts")[0][0] > 0  # made since
        assert not any(trace in content for trace in traces)
        reasons = [(act.kind, act.decision, act.reason, act.by) for act in other.history()]
        assert reasons == [
            ("amend", 6, None, "a monitor"),
            ("unblind", 6, None, "the ward"),
            ("erase", 6, *WHY.values()),
        ]
        rows = [row[0] for row in run(path, "SELECT entry FROM journal")]
        assert rows[: len(sealed)] == sealed  # no row has changed
    assert [row["kind"] for row in entries(path) if "gone" in row] == ["assign", "record", "amend", "unblind"]


def test_a_row_is_sealed_as_it_is_documented(path: Path) -> None:
    """Opened from the definition: AES-256-GCM, 12 bytes of nonce, bound to row, kind and decision."""
    with create(path, Thompson(), **LABELS) as trial:
        trial.assign("person 1.", "old", key=17)
        trial.record(1, None, key="form")
    secrets = dict(run(path, "SELECT number, secret FROM secrets"))
    assert sorted(secrets) == [0, 1]
    rows = [json.loads(row[0]) for row in run(path, "SELECT entry FROM journal ORDER BY number")]
    assert "person" not in json.dumps(rows)
    found = []
    for number, row in enumerate(rows[1:], 2):
        content = base64.b64decode(row["sealed"])
        place = f"{number} {row['kind']} 1".encode()
        found.append(json.loads(AESGCM(secrets[1]).decrypt(content[:12], content[12:], place)))
        assert len(content) % 32 == 28  # padded: 12 of the nonce, 16 of the tag
    assert found == [{"key": 17, "unit": "person 1.", "context": "old"}, {"key": "form"}]


@both
def test_requests_about_who_was_erased_have_one_clear_answer(path: Path) -> None:
    with create(path, Thompson()) as trial:
        send(trial, range(8), {})
        pending = trial.assign("person 8.", key="visit 8.")
        assert refused(trial.erase, "person 99.", key="e", **WHY) == "unit 'person 99.' was not assigned"
        assert "already identifies another request (assign)" in refused(
            trial.erase, "person 1.", key="visit 2.", **WHY
        )
        assert "by must be a string" in refused(trial.erase, "person 1.", key="e", reason="r", by="")
        assert "key is required" in refused(trial.erase, "person 1.", key=None, **WHY)
        assert trial.status().rows == 18
        assert trial.erase("person 1.", key="e", **WHY) == trial.erase("person 1.", key="e", **WHY) == 2
        assert trial.erase("person 8.", key="e 8", **WHY) == pending.id
        assert trial.status().pending == 0
        assert trial.log("drop").frame["reward"].isna().tolist() == [False] * 8 + [True]
    with Trial.open(path) as trial:
        of_it = "belongs to the participant of decision 2, who was erased"
        assert refused(trial.assign, "person 1.", key="visit 1.") == f"key 'visit 1.' {of_it}"
        assert refused(trial.assign, "person 1.", key="a new one") == f"unit 'person 1.' {of_it}"
        assert refused(trial.assign, "new", key="form 1.") == f"key 'form 1.' {of_it}"
        assert refused(trial.unblind, "person 1.", **WHY) == f"unit 'person 1.' {of_it}"
        assert refused(trial.erase, "person 1.", key="e 2", **WHY) == f"unit 'person 1.' {of_it}"
        assert refused(trial.erase, "new", key="visit 1.", **WHY) == f"key 'visit 1.' {of_it}"
        nothing = "has been erased: no further records are kept for them"
        assert nothing in refused(trial.record, 2, 0.0, key="form 1.")
        assert nothing in refused(trial.record, pending.id, 1.0, key="late")
        assert nothing in refused(trial.amend, 2, 1.0, key="x", **WHY)
        assert "already identifies another erasure" in refused(trial.erase, "person 2.", key="e", **WHY)
        rows = trial.status().rows
        assert trial.erase("person 1.", key="e", **WHY) == 2
        assert trial.status().rows == rows
        assert trial.assign("person 9.", key="visit 9.").round == 10
        assert "all text" in refused(trial.assign, 7, key="of another type")


def test_a_finished_trial_forgets_how_to_know_the_erased(path: Path) -> None:
    with create(path, Thompson()) as trial:
        send(trial, range(4), {})
        trial.erase("person 1.", key="e", **WHY)
        trial.finish("done")
        assert trial.erase("person 2.", key="e 2", **WHY) == 3
        assert refused(trial.assign, "person 1.", key="visit 1.") == "the trial is finished: done"
        assert refused(trial.unblind, "person 1.", **WHY) == "unit 'person 1.' was not assigned"
        assert trial.verify().erased == 2
    assert [len(row["marks"]) for row in entries(path) if row["kind"] == "erase"] == [3, 0]
    assert run(path, "SELECT number FROM secrets WHERE secret = zeroblob(32)") == [(0,), (2,), (3,)]


def test_several_are_erased_one_of_them_before_the_outcome_is_in(path: Path) -> None:
    """A second context goes after the design has learnt from its outcome: blind again from there."""
    with create(path, Mixture(LinUCB()), **VECTORS) as trial:
        send(trial, range(5), VECTORS)
        late = trial.assign("late", [0.5, 0.5], key="late")
        send(trial, range(5, 9), VECTORS)
        trial.erase("person 3.", key="e 1", **WHY)
        send(trial, range(9, 12), VECTORS)
        trial.record(late.id, 1.0, key="late form")
        send(trial, range(12, 15), VECTORS)
        trial.erase("late", key="e 2", **WHY)
        pending = trial.assign("pending", [0.4, 0.4], key="pending")
        trial.erase("pending", key="e 3", **WHY)
        send(trial, range(15, 40), VECTORS)
        status = trial.status()
        assert (status.erased, status.unrepeatable, status.pending) == (3, 14, 0)
        frame = trial.log("drop", erased="keep").frame
        assert pending.id == 17
    run(path, "DROP TABLE snapshot_state", "DROP TABLE snapshot_parts")
    with Trial.open(path) as trial:
        assert trial.log("drop", erased="keep").frame.equals(frame)
        assert trial.verify() == status


@both
def test_the_log_says_what_becomes_of_contexts_that_are_gone(path: Path, tmp_path: Path) -> None:
    with create(path, Mixture(LinUCB()), **VECTORS) as trial:
        send(trial, range(20), VECTORS)
        whole = trial.log()
        trial.erase("person 4.", key="e", **WHY)
        assert 'set erased="drop" for a log without' in refused(trial.log)
        assert "erased must be" in refused(trial.log, erased="all")
        kept, dropped = trial.log(erased="keep"), trial.log(erased="drop")
        assert (kept.context, kept.context_free, kept.n_rounds) == ((), False, 20)
        rest = [row for row in range(20) if row != 4]
        for name in ("action", "reward", "propensity", "propensities"):
            expected = getattr(whole.arrays, name)[rest]
            assert np.array_equal(getattr(dropped.arrays, name), expected)
        assert dropped.arrays.context["x2"].tolist() == whole.arrays.context["x2"][rest].tolist()
        assert (dropped.feedback_rounds, dropped.units.tolist()) == (18, whole.units[rest].tolist())
        for log in (kept, dropped):
            place = tmp_path / "log.parquet"
            log.to_parquet(place)
            assert ai.read_log(place).equals(log)
        problem = "1 rounds of participants who were erased are omitted, but Mixture used them"
        assert problem in refused(ai.audit.randomization_test, dropped, Mixture(LinUCB()))
        with pytest.raises((ParameterError, ai.errors.InvalidForLog), match="context"):
            ai.CATE(kept, by="x1", treatment="a", control="b").fit()


def test_outcomes_that_came_late_are_counted_anew_where_rounds_are_left_out(path: Path) -> None:
    with create(path, Thompson(), **LABELS) as trial:
        for number in range(6):
            trial.assign(number, "young", key=number)
        for number in range(6):
            trial.record(number + 1, 1.0, key=10 + number)
        trial.assign(6, "old", key=6)
        trial.record(7, 0.0, key=16)
        trial.erase(2, key="e", **WHY)
        log = trial.log(erased="drop")
        assert log.arrays.known.tolist() == [5, 5, 5, 5, 5, 6]
        assert trial.log(erased="keep").units.tolist() == [0, 1, -3, 3, 4, 5, 6]


def test_what_a_design_cannot_do_without_is_refused(path: Path) -> None:
    own = FunctionDesign(lambda state, context, rng: [0.5, 0.5])
    with create(path, own, **LABELS) as trial:
        send(trial, range(3), LABELS)
        assert "uses contexts, and no file can store" in refused(trial.erase, "person 1.", key="e", **WHY)
    with create(path.with_name("waits.db"), ConSE(), **LABELS) as trial:
        trial.assign("person 1.", "old", key=1)
        assert "decision 1 requires an outcome" in refused(trial.erase, "person 1.", key="e", **WHY)
        trial.record(1, 1.0, key=2)
        assert trial.erase("person 1.", key="e", **WHY) == 1
        assert trial.verify().rows == 4


def test_a_purge_that_failed_is_made_up_for_when_the_request_is_sent_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with create(path, Thompson()) as trial:
        send(trial, range(20), {})
        ((secret,),) = run(path, "SELECT secret FROM secrets WHERE number = 6")
        reader = sqlite3.connect(path)
        reader.execute("BEGIN").execute("SELECT count(*) FROM journal").fetchone()
        trial._requests.journal.connection.connection.driver_connection.execute("PRAGMA busy_timeout = 10")
        with pytest.raises(FileError, match="send the request again with its key"):
            trial.erase("person 5.", key="e", **WHY)
        assert secret in files(path)
        reader.close()
        assert trial.erase("person 5.", key="e", **WHY) == 6
        assert secret not in files(path)
        assert b"person 5." not in files(path)


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE secrets SET secret = x'{secret}' WHERE number = 3", "decision 3 was erased, but its secret"),
        (
            "UPDATE secrets SET secret = zeroblob(32) WHERE number = 5",
            ("decision 5 is gone, although no row records an erasure"),
        ),
        ("DELETE FROM secrets WHERE number = 5", "secret of decision 5 is gone"),
        ("DELETE FROM secrets WHERE number = 3", "secret of decision 3 is missing"),
        ("UPDATE secrets SET number = 99 WHERE number = 5", "secret of decision 5 is gone"),
        (
            "UPDATE secrets SET secret = zeroblob(32) WHERE number = 0",
            ("decision 0 is gone, although no row records an erasure"),
        ),
        (
            "INSERT INTO secrets VALUES (77, zeroblob(32))",
            ("secret of decision 77 is missing or belongs to no"),
        ),
        ("UPDATE secrets SET secret = 'text' WHERE number = 5", "do not match their secret"),
        ("UPDATE secrets SET secret = x'{secret}' WHERE number = 5", "row 10 do not match their secret"),
        ("DROP TABLE secrets", "SQLITE_ERROR, for example because a table is missing"),
    ],
)
def test_secrets_that_others_changed_are_noticed(path: Path, statement: str, problem: str) -> None:
    with create(path, Thompson()) as trial:
        send(trial, range(5), {})
        ((secret,),) = run(path, "SELECT hex(secret) FROM secrets WHERE number = 3")
        trial.erase("person 2.", key="e", **WHY)
    run(path, "DROP TABLE IF EXISTS snapshot_state", statement.format(secret=secret))
    with pytest.raises(JournalError, match=problem), Trial.open(path) as trial:
        trial.verify()


def test_sealed_fields_belong_to_their_row_alone(path: Path) -> None:
    """A chain made anew over rows whose ciphertexts were swapped does not open them."""
    with create(path, Thompson()) as trial:
        trial.assign("person 1.", key="k")
        trial.record(1, 1.0, key="r")
        trial.record(1, 1.0, key="s")
    journal = Journal(path)
    journal.begin()
    rows = [json.loads(row[0]) for row in run(path, "SELECT entry FROM journal ORDER BY number")]
    rows[2]["sealed"], rows[3]["sealed"] = rows[3]["sealed"], rows[2]["sealed"]
    journal.connection.exec_driver_sql("DELETE FROM journal")
    for row in rows:
        journal.append(row)
        journal.rows, journal.head = journal._appended  # type: ignore[misc]
    journal.commit()
    journal.close()
    with pytest.raises(JournalError, match="sealed fields of row 3 do not match"):
        Trial.open(path)


def test_a_file_of_the_first_format_is_refused(path: Path) -> None:
    create(path, Thompson()).close()
    (first,) = entries(path)
    for number, told in ((1, "an earlier version"), (4, "a later version")):
        place = path.with_name(f"{number}.db")
        journal = Journal(place, create=True)
        journal.start({**first, "format": number}, lambda: None)
        journal.close()
        with pytest.raises(FileError, match=f"{told} of adaptinf wrote it .in format {number}; this "):
            Trial.open(place)


def test_an_arm_is_removed_for_good(path: Path) -> None:
    safety = {"reason": "two seizures", "by": "the safety board"}
    design = Thompson(floor=0.1)
    with Trial.create(path, design, ["a", "b", "c"], horizon=90) as trial:
        assert "no one has been assigned yet" in refused(trial.remove_arm, "b", key="s", **safety)
        before = send(trial, range(20), {})
        assert "'d'" in refused(trial.remove_arm, "d", key="s", **safety)
        assert "by must be a string" in refused(trial.remove_arm, "b", key="s", reason="r", by=None)
        assert "another request (assign)" in refused(trial.remove_arm, "b", key="visit 3.", **safety)
        trial.pause("for the night")
        assert trial.remove_arm("b", key="s", **safety) == ("a", "c")
        rows = trial.status().rows
        assert trial.remove_arm("b", key="s", **safety) == ("a", "c")
        assert "another request" in refused(trial.remove_arm, "c", key="s", **safety)
        assert "after round 20" in refused(trial.remove_arm, "b", key="t", **safety)
        assert trial.status().rows == rows
        trial.resume("a new day")
        after = send(trial, range(20, 60), {})
        status = trial.verify()
        assert (status.removed, status.arms) == (("b",), ("a", "b", "c"))
        log = trial.log()
    assert "b" in before
    assert set(after) == {"a", "c"}
    for snapshot in (True, False):
        if not snapshot:
            run(path, "DROP TABLE snapshot_state", "DROP TABLE snapshot_parts")
        with Trial.open(path) as trial:
            assert trial.log().equals(log)
            assert trial.verify() == status
            act = next(act for act in trial.history() if act.kind == "remove_arm")
            assert (act.arm, act.reason, act.by) == ("b", *safety.values())
    assert log.design.parameters["removed_arms"] == [["b", 20]]
    assert log.design.traits.floor is None
    with Trial.open(path) as trial:
        trial.finish("done")
        assert "is finished" in refused(trial.remove_arm, "c", key="u", **safety)
        assert trial.remove_arm("b", key="s", **safety) == ("a", "c")
    with create(path.with_name("ucb.db"), UCB()) as trial:
        send(trial, range(3), {})
        assert "no random draws" in refused(trial.remove_arm, "b", key="s", **safety)
    with create(path.with_name("one.db"), Uniform()) as trial:
        send(trial, range(3), {})
        assert trial.remove_arm("b", key="s", **safety) == ("a",)
        assert "'a' is the only one left: pause or finish" in refused(
            trial.remove_arm, "a", key="t", **safety
        )
        assert set(send(trial, range(3, 13), {})) == {"a"}
        assert trial.log().guarantee is None
