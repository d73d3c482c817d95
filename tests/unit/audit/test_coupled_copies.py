"""A copy that takes a trial's place: both files together, coupled, cost at most what two runs promise."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from adaptinf.audit.privacy.coupled_pairs import Run, aligned
from adaptinf.audit.privacy.coupled_plays import GivenNoise, Release, Released
from adaptinf.designs import PrivateUCB
from adaptinf.trial import Trial
from adaptinf.trial.trial_setup import declared_entry

DESIGN = PrivateUCB(epsilon=1.0, counter="binary")
PEOPLE, COPIED = 8, 3
OUTCOMES = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0]


def go_on(trial: Any, outcomes: list[float], first: int, last: int) -> None:
    for number in range(first, last):
        decision = trial.assign(f"person {number}", key=f"assign {number}")
        trial.record(decision.id, outcomes[number], key=f"record {number}")


def releases(trial: Any) -> list[Release]:
    table = trial.log().releases
    return [Release(*row) for row in zip(*(table[name].tolist() for name in Release._fields), strict=True)]


def world(folder: Path, outcomes: list[float]) -> Run:
    """Runs of a trial that is lost after a copy was made, and of the copy, with these outcomes in both."""
    number = 0

    def run(shifts: Mapping[str, int], stretched: frozenset[str], until: str) -> Released:
        nonlocal number
        number += 1
        lost = GivenNoise(b"lost", told(shifts, "lost"), frozenset(told(dict.fromkeys(stretched, 0), "lost")))
        copy = GivenNoise(b"copy", told(shifts, "copy"), frozenset(told(dict.fromkeys(stretched, 0), "copy")))
        first = declared_entry(DESIGN, ["a"], PEOPLE, None, None, False, (0.0, 1.0), 0)
        with Trial._begun(folder / f"{number}.db", {**first, "seed": "0" * 64}, DESIGN, lost) as trial:
            go_on(trial, outcomes, 0, COPIED)
            trial.backup(folder / f"{number} copy.db")
            before = len(lost.asked)
            go_on(trial, outcomes, COPIED, PEOPLE)
            trial.finish("all have come")
            shown = releases(trial)
        with Trial._opened(folder / f"{number} copy.db", DESIGN, copy) as trial:
            trial.restore(reason="the disk broke", by="the operator")
            go_on(trial, outcomes, COPIED, PEOPLE)
            trial.finish("all have come")
            shown += releases(trial)[before:]
        asked = {f"lost: {name}": scale for name, scale in lost.asked.items()}
        return Released(shown, asked | {f"copy: {name}": scale for name, scale in copy.asked.items()})

    return run


def told(named: Mapping[str, int], file: str) -> dict[str, int]:
    """What is said of the nodes of a file, by their own names."""
    return {
        name.removeprefix(f"{file}: "): value for name, value in named.items() if name.startswith(f"{file}: ")
    }


@pytest.mark.slow
def test_a_copy_and_what_it_replaces_cost_what_two_runs_do(tmp_path: Path) -> None:
    """The third outcome is in the nodes at 3, 4 and 8, of scale 4 / epsilon, in both files."""
    others = [*OUTCOMES[:2], 1.0 - OUTCOMES[2], *OUTCOMES[3:]]
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
    first, second = world(folders[0], OUTCOMES), world(folders[1], others)
    found = aligned(first({}, frozenset(), ""), first, second)
    assert found.problem == ""
    assert sorted(found.shifts) == [
        f"{file}: arm 0, count {count}" for file in ("copy", "lost") for count in (3, 4, 8)
    ]
    assert DESIGN.epsilon < float(found.cost) <= 2.0 * DESIGN.epsilon
    assert float(found.cost) == pytest.approx(6.0 / 4.0, rel=1e-12)
