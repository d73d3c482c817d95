"""Private designs in epochs and calendar windows as trials: rows of noise, erasure, the last release."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crashes import both, entries

from adaptinf.cli import main
from adaptinf.designs import Design, DPConSE, Mixture, PrivateSuccessiveElimination
from adaptinf.designs.arms.elimination_kernel import elimination_epochs
from adaptinf.errors import ParameterError
from adaptinf.privacy import GRID_UNITS
from adaptinf.trial import Trial, requests
from adaptinf.trial import trial_noise as nodes

PEOPLE, WINDOW = 40, 3
CALENDAR = DPConSE(epsilon=1.0, first_window=5)
MIXED = Mixture(CALENDAR, exploration=0.2)
REWARDS = np.random.default_rng(7).random(PEOPLE).tolist()
CODES = ["fm"[int(code)] for code in np.random.default_rng(8).integers(0, 2, PEOPLE)]
WHY = {"reason": "asked for", "by": "a monitor"}
MISSING = (4, 11, PEOPLE - 1)


def no_noise(name: str, scale: float) -> int:
    raise AssertionError(f"a draw for {name}")


def made(path: Path, design: Design = CALENDAR, erased: dict[int, int] | None = None) -> None:
    """A finished trial; participants are erased after so many others have come, -1 when it is finished."""
    options: dict[str, Any] = {"features": ["f", "m"], "outcome_window": WINDOW}
    with Trial.create(path, design, ["a", "b"], horizon=PEOPLE, **options) as trial:
        for number in range(PEOPLE):
            trial.assign(f"unit {number}", CODES[number], key=f"assign {number}")
            if number not in MISSING:
                trial.record(number + 1, REWARDS[number], key=f"record {number}")
            for who, when in (erased or {}).items():
                if when == number:
                    trial.erase(f"unit {who}", key=f"erase {who}", **WHY)
        trial.finish("all were seen")
        for who, when in (erased or {}).items():
            if when < 0:
                trial.erase(f"unit {who}", key=f"erase {who}", **WHY)


@both
def test_sums_follow_from_rows_in_whole_numbers_and_the_last_ones_come_at_the_finish(path: Path) -> None:
    made(path)
    rows = entries(path)
    units = {row["node"]: row["units"] for row in rows if row["kind"] == "node"}
    kinds = [row["kind"] for row in rows]
    after = [
        next(kind for kind in kinds[place:] if kind != "node")
        for place, kind in enumerate(kinds)
        if kind == "node"
    ]
    assert after.count("finish") == 4  # two contexts, a sum and a count of each
    assert set(after) == {"assign", "finish"}
    decided = [row for row in rows if row["kind"] == "assign"]
    with Trial.open(path) as trial:
        log = trial.log(missing="drop")
        assert trial.verify().rows == len(rows)
    assert (log.noise, log.guarantee.epsilon, log.guarantee.unit) == ("release", 1.0, "record")  # type: ignore[union-attr]
    assert log.releases is not None
    ends = [5, PEOPLE // 2, PEOPLE]
    assert sorted(set(log.releases["round"])) == [min(end + WINDOW, PEOPLE) for end in ends]
    for window, (begin, end) in enumerate(zip([0, *ends], ends, strict=False), 1):
        estimating = begin == PEOPLE // 2
        shown = log.releases[log.releases["round"] == min(end + WINDOW, PEOPLE)]
        for name, label, value in shown[["name", "group", "value"]].values.tolist():
            group = "fm".index(label)
            mine = [step for step in range(begin, end) if CODES[step] == label]
            tossed = [step for step in mine if decided[step]["status"] == (2 if estimating else 0)]
            if name == "arrivals":
                exact = len(tossed if estimating else mine) * GRID_UNITS
            else:
                halves = [
                    (0 if step in MISSING else round(REWARDS[step] * GRID_UNITS)) - GRID_UNITS // 2
                    for step in tossed
                ]
                signs = [1 if decided[step]["arm"] == "b" else -1 for step in tossed]
                exact = sum(sign * half for sign, half in zip(signs, halves, strict=True))
            noise = units[f"sum {2 * group + (name == 'arrivals')}, window {window}"]
            assert Fraction(value) * GRID_UNITS == exact + noise


@both
@pytest.mark.parametrize("design", [CALENDAR, MIXED], ids=["alone", "mixed"])
def test_contexts_are_erased_when_their_window_has_ended_and_nothing_is_drawn_again(
    path: Path, monkeypatch: pytest.MonkeyPatch, design: Design
) -> None:
    """Decisions are as written from an erased participant's to the erasure, and made again from there."""
    monkeypatch.setattr(requests, "EVERY", 25)
    made(path, design, {2: 8, 6: 24, 16: 21, 30: 36, PEOPLE - 1: -1})
    kept = [row for row in entries(path) if row["kind"] == "node"]
    monkeypatch.setattr(nodes, "draw_node", no_noise)
    with Trial.open(path) as trial:
        before = trial.log(missing="drop", erased="keep")
        status = trial.verify()
        after = trial.log(missing="drop", erased="keep")
    assert status.erased == 5
    assert status.unrepeatable == len({*range(3, 10), *range(7, 26), *range(17, 23), *range(31, 38), PEOPLE})
    assert before.releases is not None
    assert len(before.releases) == len(kept) >= 8
    assert before.releases.equals(after.releases)
    assert np.array_equal(before.arrays.action, after.arrays.action)


def test_a_context_that_a_sum_still_needs_is_not_erased(path: Path) -> None:
    with Trial.create(path, CALENDAR, 2, horizon=PEOPLE, features=2, outcome_window=WINDOW) as trial:
        for number in range(WINDOW + 1):
            trial.assign(number, 0, key=f"assign {number}")
        with pytest.raises(
            ParameterError, match="DPConSE needs the context of decision 1 until its window has"
        ):
            trial.erase(0, key="erase", **WHY)
        rows = trial.status().rows
        trial.assign(WINDOW + 1, 0, key="one more")
        assert trial.erase(0, key="erase", **WHY) == 1
        assert trial.status().rows == rows + 2
        with pytest.raises(
            ParameterError, match="waits for outcomes before it chooses, and its plan requires all"
        ):
            trial.remove_arm(0, key="remove", **WHY)
        trial.finish("too few came")  # before the horizon: what is pending enters nothing
        assert trial.erase(WINDOW + 1, key="erase another", **WHY) == WINDOW + 2
        assert trial.verify().erased == 2


@both
def test_elimination_is_a_trial(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise comes when the window of an epoch's last pull has ended; epochs are 40 times as short here."""

    def short_epochs(*given: Any) -> tuple[Any, Any]:
        lengths, thresholds = elimination_epochs(*given)
        return np.ceil(lengths / 40.0), thresholds

    monkeypatch.setattr("adaptinf.designs.arms.elimination_kernel.elimination_epochs", short_epochs)
    design = Mixture(PrivateSuccessiveElimination(epsilon=4.0, beta=1.0), exploration=0.05)
    people = 40
    with Trial.create(path, design, ["a", "b"], horizon=people, outcome_window=WINDOW) as trial:
        for number in range(people):
            decision = trial.assign(number, key=number)
            trial.record(decision.id, float(decision.arm == "b"), key=people + number)
        trial.erase(3, key="erase", **WHY)
        with pytest.raises(ParameterError, match="its plan requires all of its arms"):
            trial.remove_arm("a", key="remove", **WHY)
    rows = entries(path)
    drawn = {row["node"]: row for row in rows if row["kind"] == "node"}
    assert list(drawn) == ["arm 0, epoch 1", "arm 1, epoch 1"]
    monkeypatch.setattr(nodes, "draw_node", no_noise)
    with Trial.open(path) as trial:
        assert trial.verify().rows == len(rows)
        log = trial.log()
    assert log.releases is not None
    counted = np.flatnonzero(np.array([row["status"] for row in rows if row["kind"] == "assign"]) == 0)
    assert set(log.releases["round"]) == {int(counted[17]) + 1 + WINDOW}
    for number, mean in enumerate(log.releases["value"].tolist()):
        assert mean == (9 * number + drawn[f"arm {number}, epoch 1"]["units"] / GRID_UNITS) / 9
    late = log.arrays.propensities[int(counted[17]) + 1 + WINDOW :]  # type: ignore[index]
    assert (late[:, 1] == 0.975).all()


def test_the_command_line_makes_these_trials(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parameters = '{"epsilon": 1.0, "first_window": 5}'
    flags = [
        "--parameters",
        parameters,
        "--arm",
        "a",
        "--arm",
        "b",
        "--horizon",
        "40",
        "--feature",
        "f",
        "--feature",
        "m",
    ]
    made = ["trial", "create", str(path), "--design", "DPConSE", *flags]
    assert main(made) == 2
    assert "outcome_window is required: the number of" in capsys.readouterr().err
    assert main([*made, "--outcome-window", "20"]) == 2
    assert "window must be at most 19 at a horizon of 40, got 20" in capsys.readouterr().err
    assert main([*made, "--outcome-window", "3"]) == 0
    asked = ["trial", "assign", str(path), "--unit", "one", "--key", "1", "--context", '"m"']
    assert main(asked) == 0
    assert '"round": 1' in capsys.readouterr().out
