"""A thief with the files of a trial, who knows the code: with a key outside there is nothing to find."""

from __future__ import annotations

import base64
from pathlib import Path

import key_attack
import pytest
from crashes import on_a_server
from key_attack import (
    ARMS,
    PEOPLE,
    chances,
    commits,
    groups,
    largest_bit,
    lengths,
    read,
    run,
    score,
    seen,
    stolen,
)
from postgres_server import Database

from adaptinf.designs import Design, Mixture, PrivateUCB, Thompson, Uniform
from adaptinf.trial import Trial, requests
from adaptinf.trial.keys import data_key

PRIVATE = Mixture(PrivateUCB(epsilon=1.0), exploration=0.2)
BOTH = pytest.mark.parametrize(
    "design",
    [
        pytest.param(Thompson(floor=0.1), id="Thompson"),
        pytest.param(PRIVATE, id="PrivateUCB", marks=pytest.mark.slow),
    ],
)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    Trial.make_key(tmp_path / "key")
    return tmp_path / "key"


@pytest.fixture
def thief(tmp_path: Path) -> Path:
    (tmp_path / "thief").mkdir()
    return tmp_path / "thief"


def test_without_a_key_everything_is_found(path: Path, thief: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "EVERY", 250)
    truth, trial = run(path, None)
    trial.backup(thief / "copy.db")
    place = stolen(path, thief)
    trial.close()
    for file in (place, thief / "copy.db"):
        found = read(file)
        assert found["arm"] == set(ARMS)
        assert found["unit"] == set(truth.units)
        assert found["key"] == set(truth.keys)
        assert found["reward"] == set(map(str, truth.rewards))
        assert found["seed"] == {truth.seed}
    content = b"".join(file.read_bytes() for file in thief.iterdir())
    assert seen(content, truth.words()) >= {truth.seed, *ARMS, "Thompson", "propensities"}
    found_out = chances(truth, lengths(place))
    assert found_out["journal.entry", 0, "arm"] == 0.001
    assert found_out["journal.entry", 1, "digits"] == 0.001


@BOTH
def test_with_a_key_nothing_is_found(
    path: Path, thief: Path, key: Path, design: Design, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "EVERY", 250)
    truth, trial = run(path, key, design)
    token = trial.add_token("assigner", by="Dr. Ames")
    trial.erase("Ms Example 4", key="letter 9", reason="asked in writing", by="data protection")
    trial.backup(thief / "copy.db")
    place = stolen(path, thief)
    trial.close()
    more = {
        "Dr. Ames",
        "letter 9",
        "asked in writing",
        "data protection",
        token.text,
        *design.record().parameters,
    }
    files = {file.name: file.read_bytes() for file in thief.iterdir()}
    assert {"trial.db", "trial.db-wal", "trial.db-shm", "copy.db"} <= set(files)
    for name, content in files.items():
        assert (
            seen(content, truth.words() | more | {str(one) for one in truth.rewards if one % 1}) == set()
        ), name
    for file in (place, thief / "copy.db"):
        assert read(file) == {name: set() for name in ("arm", "reward", "unit", "key", "seed")}
        assert key_attack.opened_by_what_is_stored(file) == 0


@BOTH
def test_lengths_and_pages_of_commits_tell_nothing(
    path: Path, thief: Path, key: Path, design: Design
) -> None:
    truth, trial = run(path, key, design)
    place = stolen(path, thief)
    pages = [len(its) for its in commits((thief / "trial.db-wal").read_bytes())]
    content = key_attack.tables(place)
    trial.close()
    sizes = lengths(place)
    # The first row declares the design: it is as long before anybody joins as after.
    assert sizes["journal.entry"].pop(1) in (1_104, 2_128)
    assert {column: set(its.values()) for column, its in sizes.items()} == {
        "journal.entry": {1_104},
        "journal.digest": {64},
        "secrets.secret": {72},
        "wrapped_key.scope": {16},
        "wrapped_key.content": {72},
    }
    assert set(chances(truth, sizes).values()) == {1.0}
    assert len(pages) == 2 * PEOPLE
    rows = {row["number"]: base64.b64decode(row["entry"]) for row in content["journal"]}
    for place_of in (0, 1):
        of_kind = list(truth.about)[place_of::2]
        for what, its in groups(truth).items():
            assert score(pages[place_of::2], its) < 6, (what, place_of)
            assert largest_bit([rows[row] for row in of_kind], its) < 7, (what, place_of)


def test_the_attack_sees_rows_that_are_not_padded(
    path: Path, thief: Path, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_key.DataKey, "_width", lambda self, whole, names: whole)
    truth, trial = run(path, key)
    found = chances(truth, lengths(stolen(path, thief)))
    trial.close()
    assert found["journal.entry", 0, "arm"] == 0.001
    assert found["journal.entry", 1, "digits"] == 0.001


def test_an_arm_that_joins_does_not_show_in_lengths(
    path: Path, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in this process, not after opening from the snapshot, and not in another that was open before."""
    with Trial.create(path, Uniform(), ["a", "b"], horizon=200, key_file=key) as trial:
        first = trial.assign("p", key="p")
        with Trial.open(path, key_file=key) as other:
            trial.add_arm("c" * 700, key="c", reason="amendment 2", by="the sponsor")
            _told_alike(path, trial, first.id)
            _told_alike(path, other, trial.status().rounds)
        monkeypatch.setattr(requests, "EVERY", 3)
        _told_alike(path, trial, trial.status().rounds)
        assert trial._requests._kept
    with Trial.open(path, key_file=key) as trial:
        _told_alike(path, trial, trial.status().rounds)
        assert trial.verify().arms[-1] == "c" * 700


def _told_alike(path: Path, trial: Trial, last: int) -> None:
    """Rows of further participants have one length, whatever their arm."""
    before, arms = trial.status().rows, set()
    while len(arms) < 3:
        last += 1
        arms.add(trial.assign(f"p{last}", key=f"a{last}").arm)
        trial.record(last, 1.0, key=f"r{last}")
    sizes = lengths(path)["journal.entry"]
    assert len({size for row, size in sizes.items() if row > before}) == 1


@on_a_server
def test_a_dump_of_the_database_has_nothing_either(path: Database, key: Path) -> None:
    truth, trial = run(path, key)
    trial.close()
    assert seen(path.dump(), truth.words() | {str(one) for one in truth.rewards if one % 1}) == set()
    assert path.ask("SELECT DISTINCT length(entry) FROM journal") == [(1_104,)]
    assert path.ask("SELECT DISTINCT length(secret) FROM secrets") == [(72,)]


@pytest.mark.parametrize("length", [0, 40, 100, 200, 400, 900])
def test_rows_have_the_length_of_a_class_whatever_arm_and_outcome(length: int) -> None:
    made = data_key.DataKey(bytes(32), bytes(16))
    made.declare({"arms": ARMS, "features": None, "dimension": 3, "per_arm": True})
    name = "n" * length
    widths = {
        len(made.row(2, "", {"kind": "assign", "sealed": name, "arm": arm, "propensities": both}))
        for arm in ARMS
        for both in ([0.5, 0.5], [1e-17 / 3, 1 - 1e-16])
    }
    widths |= {
        len(made.row(2, "", {"kind": "record", "sealed": name, "decision": 1, "reward": reward}))
        for reward in (None, 0.0, -1.2345678901234567e-300)
    }
    assert len(widths) == 1
    assert widths <= {1_444, 2_808}
