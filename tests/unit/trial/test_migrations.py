"""Another version of adaptinf in a running trial: rehearsed, refused, or from one row on."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crashes import both, entries, rechained
from test_kits import blinded, refused

import adaptinf as ai
from adaptinf.audit.rerun.logged_rows import late_problems
from adaptinf.cli import main
from adaptinf.designs import EpsilonGreedy, Mixture, PermutedBlocks, PrivateUCB, Thompson, Uniform
from adaptinf.errors import JournalError, ParameterError
from adaptinf.sessions.steppers import KernelStepper
from adaptinf.trial import Trial, requests, sealing
from adaptinf.trial.migration import migrations, switches, versions
from adaptinf.trial.replay import Replay

WHY = {"reason": "version 0.2", "by": "the office"}
NEXT = "0.2.0"
Changed = Callable[[], None]


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> Changed:
    """From its call on, the next version is installed."""

    def installed() -> None:
        monkeypatch.setattr(versions, "__version__", NEXT)
        for module in (versions, sealing):
            monkeypatch.setattr(module, "package_hash", lambda: NEXT)

    return installed


@contextmanager
def another_law() -> Iterator[None]:
    """Designs' own propensities are moved a tenth of the way to those of a coin."""
    whole = KernelStepper.choose

    def choose(self: KernelStepper, context: Any, now: int) -> Any:
        arm, own = whole(self, context, now)
        if own is None:
            return arm, own
        moved = 0.9 * own + 0.1 / len(own)
        return min(int(np.searchsorted(np.cumsum(moved), self.rng.random())), len(own) - 1), moved

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KernelStepper, "choose", choose)
        yield


def people(trial: Trial, first: int, last: int, site: str | None = None) -> None:
    for number in range(first, last):
        made = trial.assign(f"p{number}", key=f"a{number}", site=site)
        trial.record(made.id, float(number % 3 == 0), key=f"r{number}")


def begun(path: Any, design: Any = None, last: int = 40, **options: Any) -> str:
    """A trial of some participants; its head."""
    with Trial.create(
        path, design or EpsilonGreedy(exploration=0.3), ["a", "b"], horizon=100, **options
    ) as trial:
        people(trial, 0, last)
        return trial.status().head


@both
def test_a_version_that_decides_alike(path: Any, newer: Changed) -> None:
    head = begun(path)
    newer()
    with Trial.open(path) as trial:
        assert trial.status().version == "0.1.0"
        assert trial.verify(head).rounds == 40
        assert trial.log("drop").n_rounds == 40
        assert trial.assign("p3", key="a3").id == 4  # answers that were given stand
        problem = refused(trial.assign, "new", key="new")
        assert problem.startswith("adaptinf 0.1.0 decides in this trial, and 0.2.0 is installed")
        for call, given in (
            (trial.record, (1, 1.0)),
            (trial.add_arm, ("c",)),
            (trial.erase, ("p1",)),
        ):
            why = {} if call == trial.record else WHY
            assert "decides in this trial" in refused(call, *given, key="k", **why)
        assert "decides in this trial" in refused(trial.pause, "now")
        assert "decides in this trial" in refused(trial.add_token, "monitor")
        assert "decides in this trial" in refused(trial.set_retention, 3, **WHY)
        rows = trial.status().rows
    found = Trial.migrate(path, rehearse=True)
    assert (found.before, found.after, found.row) == ("0.1.0", NEXT, None)
    assert (found.rows, found.decisions, found.differing, found.obstacle) == (81, 40, 0, "")
    assert found.changes == ("adaptinf 0.1.0 to 0.2.0",)
    assert str(found).splitlines()[0] == (
        "Rehearsal: 81 rows with 40 decisions, recomputed by adaptinf 0.2.0; none differs"
    )
    done = Trial.migrate(path, **WHY)
    assert (done.row, done.differing) == (rows + 1, 0)
    with Trial.open(path) as trial:
        people(trial, 40, 60)
        assert trial.verify(head).version == NEXT
        (act,) = trial.history()
        assert (act.kind, act.version, act.differing, act.by) == ("migrate", NEXT, 0, "the office")
        design = trial.log("drop").design
        assert design is not None
        assert "versions_from" not in design.parameters
    assert refused(Trial.migrate, path, **WHY) == "adaptinf 0.2.0 decides in this trial already"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(versions, "__version__", "0.1.0")
        with Trial.open(path) as trial:
            assert "adaptinf 0.2.0 decides in this trial, and 0.1.0" in refused(trial.assign, "x", key="x")


@both
def test_a_version_that_decides_differently(path: Any, newer: Changed, monkeypatch: Any) -> None:
    monkeypatch.setattr(requests, "EVERY", 25)
    head = begun(path)
    before = entries(path)
    newer()
    with another_law():
        with pytest.raises(
            JournalError, match=r"row 2 differs from what its design decides .*adaptinf 0.1.0 to 0.2.0"
        ):
            Trial.open(path)
        found = Trial.migrate(path, rehearse=True)
        assert (found.differing, found.decisions, found.rows) == (40, 40, 81)
        assert [one.round for one in found.differences] == list(range(1, 11))
        assert found.differences[0].fields[-1] == "propensities"
        assert str(found).splitlines()[-1] == "  ... and 30 more"
        with pytest.raises(ParameterError) as caught:
            Trial.migrate(path, **WHY)
        problems = caught.value.problems
        assert problems[0] == "adaptinf 0.1.0 to 0.2.0: of 81 rows, 40 differ"
        assert problems[1].startswith("row 2 (assign, round 1): ")
        assert list(problems[-2:]) == [
            "... and 30 more",
            "continue with the earlier version, or set decide_from_now=True, so that all rows stand as "
            "written",
        ]
        assert entries(path) == before
        done = Trial.migrate(path, decide_from_now=True, **WHY)
        assert (done.row, done.differing) == (82, 40)
        with Trial.open(path) as trial:
            people(trial, 40, 70)
            expected = trial.log("drop")
            trial.verify(head)
        with Trial.open(path) as trial:  # from its snapshot
            people(trial, 70, 75)
            trial.verify(head)
            log = trial.log("drop")
    assert entries(path)[:81] == before
    assert log.design is not None
    assert log.design.parameters["versions_from"] == [[NEXT, 40]]
    assert log.design.traits.floor is None
    assert log.guarantee is None
    assert log.until(70, missing="drop").arrays.propensities.tolist() == expected.arrays.propensities.tolist()
    assert late_problems(log)[0] == (
        "other versions of adaptinf decided in parts of the trial (0.2.0 after round 40), and a re-run uses "
        "one"
    )
    early = log.until(40, missing="drop").design
    assert early is not None
    assert "versions_from" not in early.parameters
    with pytest.raises(JournalError, match="differs from what its design decides"):
        Trial.open(path)  # rows after the switch are as strict as before


def test_later_choices_follow_from_what_stands(path: Path, newer: Changed) -> None:
    """Propensities after the switch are those of the new law given the arms and outcomes as written."""
    begun(path)
    newer()
    with another_law():
        Trial.migrate(path, decide_from_now=True, **WHY)
        with Trial.open(path) as trial:
            people(trial, 40, 70)
            log = trial.log("drop")
    action, reward = log.arrays.action, log.arrays.recorded
    for step in range(70):
        means = [reward[:step][action[:step] == arm] for arm in range(2)]
        best = int(np.argmax([one.mean() if len(one) else np.inf for one in means]))
        row = np.full(2, 0.15)
        row[best] += 0.7
        row = row if step < 40 else 0.9 * row + 0.05
        assert log.arrays.propensities[step] == pytest.approx(row, abs=1e-12)


def test_a_uniform_trial_becomes_adaptive_and_loses_its_guarantee(path: Path, newer: Changed) -> None:
    begun(path, Uniform())
    newer()
    with another_law():
        assert Trial.migrate(path, rehearse=True).differing > 0  # the arms differ, the propensities do not
        Trial.migrate(path, decide_from_now=True, **WHY)
        with Trial.open(path) as trial:
            people(trial, 40, 50)
            log = trial.log("drop")
    assert log.guarantee is None
    assert log.design is not None
    assert log.design.traits.adapts
    assert "a version that decides differently took over" in log.design.parameters["no_guarantee"][0]
    assert log.feedback_rounds == 40


REFUSED = [
    (PermutedBlocks(), {}, "PermutedBlocks plans its choices, and cannot continue"),
    (Thompson(initial_pulls=2), {}, "Thompson plans its choices, and cannot continue"),
    (
        Mixture(PrivateUCB(epsilon=1.0), exploration=0.2),
        {"outcome_window": 1},
        "the trial is private, and the guarantee of Mixture holds for one version",
    ),
]


@pytest.mark.parametrize(("design", "options", "problem"), REFUSED)
def test_designs_that_cannot_continue(
    path: Path, newer: Changed, design: Any, options: Any, problem: str
) -> None:
    begun(path, design, last=12, **options)
    before = entries(path)
    newer()
    assert Trial.migrate(path, rehearse=True).differing == 0
    with another_law():
        found = Trial.migrate(path, rehearse=True)
        assert found.obstacle.startswith(problem)
        with pytest.raises(ParameterError) as caught:
            Trial.migrate(path, decide_from_now=True, **WHY)
    assert caught.value.problems[-1] == found.obstacle
    assert entries(path) == before


def test_noise_that_differs_cannot_stand(path: Path, newer: Changed, monkeypatch: Any) -> None:
    begun(path, Mixture(PrivateUCB(epsilon=1.0), exploration=0.2), last=12, outcome_window=1)
    newer()
    monkeypatch.setattr("adaptinf.trial.trial_noise.Nodes.__call__", _doubled)
    found = Trial.migrate(path, rehearse=True)
    assert found.obstacle.startswith("the trial is private, and the guarantee of Mixture holds")
    assert found.rows < 12 * 3
    assert found.differences[-1].fields == ()
    assert str(found.differences[-1]).endswith("cannot be recomputed")


def test_only_decisions_may_stand(path: Path, newer: Changed, monkeypatch: Any) -> None:
    begun(path)
    newer()
    whole = Replay.record

    def record(self: Replay, decision: Any, reward: Any, key: Any) -> Any:
        outcome, entry = whole(self, decision, reward, key)
        return outcome, entry if entry is None or decision != 7 else {**entry, "reward": 0.5}

    monkeypatch.setattr(Replay, "record", record)
    found = Trial.migrate(path, rehearse=True)
    assert found.obstacle == (
        "row 15 (record): reward: this row cannot stand as written, only decisions of participants can"
    )
    assert (found.rows, found.differing, found.decisions) == (15, 1, 7)
    with pytest.raises(ParameterError, match="cannot stand as written"):
        Trial.migrate(path, decide_from_now=True, **WHY)


def _doubled(self: Any, name: str, scale: float) -> int:
    if not self._waiting or self._waiting[0]["scale"] != 2.0 * scale:
        raise JournalError(
            "it", "a row of noise is missing or differs from the noise that its request requires"
        )
    return int(self._waiting.pop(0)["units"])


def test_a_plan_has_one_design(path: Path, newer: Changed) -> None:
    plan = ai.Plan(Thompson(floor=0.1), arms=["a", "b"], treatment="b", control="a", looks=[50, 100])
    with Trial.create(path, plan) as trial:
        people(trial, 0, 20)
    newer()
    with another_law():
        assert "has a plan" in Trial.migrate(path, rehearse=True).obstacle


def test_a_changed_row_is_no_other_version(path: Path, newer: Changed) -> None:
    """Rows changed by hand differ, too, and must not stand because of a migration."""
    begun(path)

    def other(number: int, entry: dict[str, Any]) -> dict[str, Any]:
        return {**entry, "propensities": [0.4, 0.6]} if number == 4 else entry

    with closing(sqlite3.connect(path)) as file:
        file.execute("DROP TABLE IF EXISTS snapshot_state")
        rechained(file, other)
    found = Trial.migrate(path, rehearse=True)
    assert (found.differing, found.changes) == (1, ())
    assert found.obstacle.startswith("nothing is installed in another version than before")
    with pytest.raises(ParameterError, match="the file was damaged or changed"):
        Trial.migrate(path, decide_from_now=True, **WHY)
    newer()
    with pytest.raises(ParameterError, match=r"row 4 \(assign, round 2\): propensities"):
        Trial.migrate(path, **WHY)


def test_a_library_of_another_version(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trial goes on with another NumPy, as long as all decisions are the same."""
    begun(path)
    whole = versions.installed()

    def here(**others: str) -> None:
        for module in (versions, switches, migrations):
            monkeypatch.setattr(module, "installed", lambda: {**whole, **others})

    here(numpy="9.9")
    with Trial.open(path) as trial:
        people(trial, 40, 42)
    found = Trial.migrate(path, **WHY)
    assert found.changes == (f"numpy {whole['numpy']} to 9.9",)
    here(numpy="8.8", more="1")
    with Trial.open(path) as trial:
        people(trial, 42, 44)
        trial.verify()
    since = re.escape(f"changed since: numpy {whole['numpy']} to 8.8;")
    with another_law(), pytest.raises(JournalError, match=since):
        Trial.open(path)


def test_arguments(path: Path, newer: Changed) -> None:
    begun(path)
    with pytest.raises(ParameterError) as caught:
        Trial.migrate(path, decide_from_now=2, reason="", by=None)  # type: ignore[arg-type]
    assert len(caught.value.problems) == 3
    assert "not both" in refused(Trial.migrate, path, rehearse=True, decide_from_now=True)
    newer()
    problem = refused(Trial.migrate, path, decide_from_now=True, **WHY)
    assert problem == "decide_from_now must be omitted: the installed version decides as before"


def test_a_copy_can_be_rehearsed_and_not_migrated(path: Path, newer: Changed) -> None:
    begun(path)
    copy = path.with_name("copy.db")
    with Trial.open(path) as trial:
        trial.backup(copy)
    newer()
    content = copy.read_bytes()
    assert Trial.migrate(copy, rehearse=True).differing == 0
    assert "the file is a copy" in refused(Trial.migrate, copy, **WHY)
    assert copy.read_bytes() == content


def test_a_trial_in_use_is_closed_to_the_earlier_version(path: Path, newer: Changed) -> None:
    """A process of the earlier version that goes on is refused as soon as the row is there."""
    begun(path)
    with Trial.open(path) as earlier:
        people(earlier, 40, 41)
        newer()
        Trial.migrate(path, **WHY)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(versions, "__version__", "0.1.0")
            assert "adaptinf 0.2.0 decides" in refused(earlier.assign, "late", key="late")
            assert "adaptinf 0.2.0 decides" in refused(earlier.record, 1, 0.0, key="late")


def test_kits_of_rows_that_stand(path: Path, newer: Changed) -> None:
    with blinded(path, design=EpsilonGreedy(exploration=0.3)) as trial:
        people(trial, 0, 20, "Basel")
        kits = trial.kits()
    newer()
    with another_law():
        assert Trial.migrate(path, rehearse=True).differing == 20
        Trial.migrate(path, decide_from_now=True, **WHY)
        with Trial.open(path) as trial:
            assert trial.kits().equals(kits)
            trial.assign("next", key="next", site="Basel")
            trial.verify()


def test_arms_that_joined_and_erased_participants(path: Path, newer: Changed) -> None:
    begun(path)
    with Trial.open(path) as trial:
        trial.add_arm("c", key="c", **WHY)
        people(trial, 40, 50)
        trial.erase("p3", key="e", **WHY)
    newer()
    with another_law():
        assert Trial.migrate(path, decide_from_now=True, **WHY).differing == 50
        with Trial.open(path) as trial:
            people(trial, 50, 60)
            trial.add_arm("d", key="d", **WHY)
            people(trial, 60, 70)
            trial.verify()
            design = trial.log("drop").design
    assert design is not None
    assert design.parameters["versions_from"] == [[NEXT, 50]]


def test_a_second_switch(path: Path, newer: Changed, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(path)
    newer()
    with another_law():
        Trial.migrate(path, decide_from_now=True, **WHY)
        with Trial.open(path) as trial:
            people(trial, 40, 50)
    monkeypatch.setattr(versions, "__version__", "0.3.0")
    found = Trial.migrate(path, decide_from_now=True, **WHY)
    assert found.differing == 10  # what stands already is not counted again
    with Trial.open(path) as trial:
        people(trial, 50, 60)
        trial.verify()
        assert [act.version for act in trial.history()] == [NEXT, "0.3.0"]


def test_a_sealed_trial(path: Path, newer: Changed) -> None:
    key = path.with_name("key")
    Trial.make_key(key)
    begun(path, key_file=key)
    newer()
    with another_law():
        Trial.migrate(path, decide_from_now=True, key_file=key, **WHY)
        with Trial.open(path, key_file=key) as trial:
            people(trial, 40, 50)
            trial.verify()


def test_on_the_command_line(path: Path, newer: Changed, capsys: pytest.CaptureFixture[str]) -> None:
    begun(path)
    newer()
    place = str(path)
    assert main(["trial", "migrate", place, "--rehearse"]) == 0
    assert json.loads(capsys.readouterr().out)["decisions"] == 40
    with another_law():
        assert main(["trial", "migrate", place, "--rehearse"]) == 1
        assert json.loads(capsys.readouterr().out)["differing"] == 40
        assert main(["trial", "migrate", place, "--reason", "x", "--by", "y"]) == 2
        assert "set --decide-from-now" in capsys.readouterr().err
    assert main(["trial", "serve", place, "--port", "0"]) == 2
    assert "adaptinf 0.1.0 decides in this trial" in capsys.readouterr().err
    assert main(["trial", "migrate", place, "--reason", "x", "--by", "y"]) == 0
    assert json.loads(capsys.readouterr().out)["row"] == 82


def test_a_snapshot_is_not_written_by_another_version(
    path: Path, newer: Changed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "EVERY", 25)
    begun(path)
    content = path.read_bytes()
    newer()
    with Trial.open(path) as trial:
        assert trial.status().rounds == 40
    assert path.read_bytes() == content
