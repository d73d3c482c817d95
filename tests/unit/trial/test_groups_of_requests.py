"""Several requests in one transaction: answered as one after the other, all kept or none."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from crashes import NAMES, SELDOM, arm, both, entries, in_child

from adaptinf.designs import Mixture, PrivateUCB, Thompson
from adaptinf.errors import ParameterError
from adaptinf.trial import Trial
from adaptinf.trial.journal import Journal

UNITS = [f"unit {number}" for number in range(6)]
KEYS = [f"assign {number}" for number in range(6)]
TELLS = [f"record {number}" for number in range(6)]
REWARDS = [1.0, 0.0, None, 0.25, 1.0, 0.5]


def made(path: Path, private: bool = False) -> Trial:
    if private:
        design = Mixture(PrivateUCB(epsilon=1.0), exploration=0.2)
        return Trial.create(path, design, ["a", "b"], horizon=40, outcome_window=1)
    return Trial.create(path, Thompson(floor=0.1), ["a", "b"], horizon=40)


@both
@pytest.mark.parametrize("private", [False, True])
def test_a_group_is_its_requests_one_after_the_other(path: Path, private: bool) -> None:
    with made(path, private) as trial:
        first = trial.assign_many(UNITS[:4], keys=KEYS[:4])
        told = trial.record_many([one.id for one in first], REWARDS[:4], keys=TELLS[:4])
        assert [one.id for one in first] == [one.id for one in told] == [1, 2, 3, 4]
        assert [one.reward for one in told] == REWARDS[:4]
        # Sent again, alone or with others that are new: the same answers, and rows for the new ones alone.
        before = trial.status().rows
        assert trial.assign(UNITS[2], key=KEYS[2]) == first[2]
        assert trial.assign_many(UNITS[:4], keys=KEYS[:4]) == first
        assert trial.status().rows == before
        assert trial.assign_many(UNITS, keys=KEYS)[:4] == first
        kinds = [row["kind"] for row in entries(path)]
        assert (kinds.count("assign"), kinds.count("record")) == (6, 4)
        assert ("node" in kinds) == private
        status = trial.verify()
        assert (status.rounds, status.pending) == (6, 2)
        assert trial.assign_many([], keys=[]) == []
    with Trial.open(path) as trial:
        assert trial.status().head == status.head


@both
def test_contexts_come_with_their_units(path: Path) -> None:
    with Trial.create(path, Thompson(floor=0.1), 2, horizon=9, features=["young", "old"]) as trial:
        trial.assign_many(["Ann", "Bob"], ["old", "young"], keys=[1, 2])
        trial.record_many([1, 2], [0.0, 1.0], keys=[3, 4])
        (context,) = trial.log().arrays.context.values()
        assert list(context) == ["old", "young"]


@both
@pytest.mark.parametrize("private", [False, True])
def test_one_refusal_keeps_none_and_every_wrong_request_is_listed(path: Path, private: bool) -> None:
    with made(path, private) as trial:
        first = trial.assign_many(UNITS[:3], keys=KEYS[:3])
        before = trial.status()
        with pytest.raises(ParameterError) as caught:
            trial.record_many([1, 2, 9, 3], [1.0, 7.0, 0.0, 0.5], keys=TELLS[:4])
        problems = caught.value.problems
        assert len(problems) == 2
        assert problems[0].startswith("request 1 (key 'record 1'): reward must be")
        assert problems[1].startswith("request 2 (key 'record 2'): there is no decision 9")
        assert trial.status() == before
        with pytest.raises(ParameterError, match=r"request 1 \(key 'assign 0'\): .*another request"):
            trial.assign_many(["new", "unit 4"], keys=["n", KEYS[0]])
        assert trial.status() == before
        assert len(entries(path)) == before.rows
        # What was refused is unknown: the keys are free, and the decisions open.
        told = trial.record_many([1, 2, 3], [0.0, 1.0, 0.5], keys=TELLS[:3])
        assert [one.reward for one in told] == [0.0, 1.0, 0.5]
        assert trial.assign_many(UNITS[:3], keys=KEYS[:3]) == first
        trial.verify()


@both
def test_lengths_that_differ_are_told_at_once(path: Path) -> None:
    with made(path) as trial:
        for act in (
            lambda: trial.assign_many(UNITS, keys=KEYS[:5]),
            lambda: trial.assign_many(UNITS, [None], keys=KEYS),
            lambda: trial.record_many([1], [1.0, 0.0], keys=["r"]),
        ):
            with pytest.raises(ParameterError, match="must have the same length"):
                act()
        assert trial.status().rows == 1


@both
def test_a_group_waits_for_the_disk_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commits, whole = [], Journal.commit

    def counted(journal: Journal) -> None:
        whole(journal)
        commits.append(journal.rows)

    with made(path) as trial:
        monkeypatch.setattr(Journal, "commit", counted)
        trial.assign_many(UNITS, keys=KEYS)
        trial.record_many([1, 2, 3], [0.0, 1.0, 0.5], keys=TELLS[:3])
    assert commits == [7, 10]


def sent(trial: Trial, act: Callable[[], object]) -> list[str]:
    """Statements that SQLite gets for a request, each by its verb and its table; one for each row written."""
    texts: list[str] = []
    driver = trial._requests.journal._driver
    driver.set_trace_callback(texts.append)
    act()
    driver.set_trace_callback(None)
    told = [re.match(r"(\w+)(?:.*?(?:FROM|INTO)\s+(\w+))?", text, re.DOTALL) for text in texts]
    return [" ".join(filter(None, found.groups())) for found in told if found is not None]


WRITES, ROW, SECRET = ["BEGIN", "SELECT journal"], "INSERT journal", "INSERT secrets"


def test_a_request_asks_for_nothing_twice(path: Path) -> None:
    with made(path) as trial:
        # The first request alone asks whether the file is a copy, and for the largest number of a secret.
        first = sent(trial, lambda: trial.assign("Zoe", key="z"))
        assert first == [*WRITES, "PRAGMA", "SELECT secrets", SECRET, ROW, "COMMIT"]
        assigned = sent(trial, lambda: trial.assign("Ann", key="a"))
        assert assigned == [*WRITES, SECRET, ROW, "COMMIT"]
        assert sent(trial, lambda: trial.assign("Ann", key="a")) == [*WRITES, "ROLLBACK"]
        told = sent(trial, lambda: trial.record(1, 1.0, key="r"))
        assert told == [*WRITES, "SELECT secrets", ROW, "COMMIT"]
        assert sent(trial, lambda: trial.record(1, 1.0, key="r")) == [*WRITES, "ROLLBACK"]
        assert sent(trial, trial.status) == ["BEGIN", "SELECT journal", "PRAGMA", "ROLLBACK"]
        group = sent(trial, lambda: trial.assign_many(UNITS, keys=KEYS))
        assert group == [*WRITES, *6 * [SECRET], *6 * [ROW], "COMMIT"]
        group = sent(trial, lambda: trial.record_many([3, 4, 5], [0.0, 1.0, 0.5], keys=TELLS[:3]))
        assert group == [*WRITES, *3 * ["SELECT secrets"], *3 * [ROW], "COMMIT"]


def test_rows_of_another_process_cost_one_secret_each(path: Path) -> None:
    with made(path) as trial, Trial.open(path) as other:
        first = trial.assign_many(UNITS[:3], keys=KEYS[:3])
        found = sent(other, lambda: other.assign(UNITS[3], key=KEYS[3]))
        assert found == [*WRITES, *4 * ["SELECT secrets"], "PRAGMA", SECRET, ROW, "COMMIT"]
        found = sent(trial, lambda: trial.assign(UNITS[4], key=KEYS[4]))
        assert found == [*WRITES, "SELECT secrets", SECRET, ROW, "COMMIT"]
        # Its own secrets, and those of the other, are known to be there.
        assert other.record(first[1].id, 1.0, key="r").reward == 1.0
        assert trial.record(4, 0.0, key="s").reward == 0.0
        assert trial.verify() == other.verify()


def test_rows_of_noise_are_written_with_those_of_their_request(path: Path) -> None:
    with made(path, private=True) as trial:
        trial.assign_many(UNITS[:2], keys=KEYS[:2])
        trial.record_many([1, 2], [1.0, 0.0], keys=TELLS[:2])
        found = sent(trial, lambda: trial.assign(UNITS[2], key=KEYS[2]))
        assert found == [*WRITES, ROW, ROW, SECRET, "COMMIT"]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.parametrize("private", [False, True])
def test_a_kill_inside_a_group_keeps_all_of_it_or_none(tmp_path: Path, private: bool) -> None:
    kills = 0
    for point, name in enumerate(NAMES):
        if name.endswith((*SELDOM, "amend", "Snapshots.write")):
            continue
        path = tmp_path / f"{point}.db"
        with made(path, private) as trial:
            trial.assign_many(UNITS[:3], keys=KEYS[:3])
        before = len(entries(path))

        def work(path: Path = path, prepare: Callable[[int, int], None] = arm, point: int = point) -> None:
            with Trial.open(path) as trial:
                prepare(point, 2)
                trial.assign_many(UNITS[3:], keys=KEYS[3:])
                trial.record_many([1, 2, 3], [1.0, 0.0, 1.0], keys=TELLS[:3])
                trial.assign("last", key="last")

        kills += os.waitpid(in_child(work), 0)[1] != 0
        kinds = [row["kind"] for row in entries(path)][before:]
        assert kinds.count("assign") in (0, 3, 4)
        assert kinds.count("record") in (0, 3)
        with Trial.open(path) as trial:
            assigned = trial.assign_many(UNITS, keys=KEYS)
            assert [one.id for one in assigned] == [1, 2, 3, 4, 5, 6]
            trial.record_many([1, 2, 3], [1.0, 0.0, 1.0], keys=TELLS[:3])
            trial.verify()
    assert kills >= 10
