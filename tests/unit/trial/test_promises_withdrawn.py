"""What was chosen by what somebody saw has no promise of privacy, and says why."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import adaptinf as ai
from adaptinf.claims.logs.coverage import DECLARED, SO_FAR
from adaptinf.claims.privacy.guarantees import WITHDRAWN
from adaptinf.designs import DPConSE, Mixture, PrivateUCB, Thompson, Uniform
from adaptinf.errors import InvalidForLog
from tests.claims_said import says

PEOPLE = 8
WHY = {"reason": "asked for", "by": "a monitor"}
ASKED = "rounds of erased participants are excluded, and requests for erasure may have depended on outcomes"
ENDED = "after 6 of 8 rounds, possibly by someone who had seen outcomes"


def told(trial: ai.Trial, people: int, context: str | None = None) -> None:
    for number in range(people):
        decision = trial.assign(f"unit {number}", context, key=f"assign {number}")
        trial.record(decision.id, float(number % 2), key=f"record {number}")


def private(path: Path, people: int = PEOPLE) -> ai.Trial:
    design = Mixture(PrivateUCB(epsilon=1.0), exploration=0.2)
    trial = ai.Trial.create(path / "trial.db", design, ["a", "b"], PEOPLE, outcome_window=1)
    told(trial, people)
    return trial


def refused(log: ai.AdaptiveLog, reason: str, path: Path) -> None:
    """No promise, and the reason wherever the log is shown, kept in files."""
    assert (log.guarantee, log.reward_guarantee, log.guarantee_source) == (None, None, None)
    assert (log.person_guarantee, log.unpromised) == (None, (reason,))
    assert f"guarantee: none; exact noise (release)\n  no guarantee: {reason}\n" in repr(log)
    with pytest.raises(InvalidForLog, match=re.escape(f"none of it is covered ({reason})")):
        log.public()
    log.to_parquet(path / "log.parquet")
    again = ai.read_log(path / "log.parquet")
    assert again.equals(log)
    assert again.unpromised == (reason,)
    result = ai.ArmMeans(log).fit(estimator="ipw", weights="uniform")
    table = f"{result}\n{result.explain()}"
    assert re.search(r"Guarantee: +none ", table)
    assert says(" ".join(table.split()), WITHDRAWN, why=reason)


@pytest.mark.parametrize("erased", [(), ("unit 3",)], ids=["nobody", "somebody"])
def test_a_log_without_erased_rounds(tmp_path: Path, erased: tuple[str, ...]) -> None:
    """Whether or not anybody asked: that nobody did would tell as well."""
    with private(tmp_path) as trial:
        for unit in erased:
            trial.erase(unit, key=f"erase {unit}", **WHY)
        trial.finish("all came")
        assert trial.log(erased="keep").guarantee.epsilon == 1.0  # type: ignore[union-attr]
        log = trial.log(erased="drop")
    assert log.n_rounds == PEOPLE - len(erased)
    refused(log, ASKED, tmp_path)


@pytest.mark.parametrize(
    ("end", "state"), [(ai.Trial.finish, "finished"), (ai.Trial.pause, "paused")], ids=["finish", "pause"]
)
def test_a_trial_that_somebody_ended(tmp_path: Path, end: Callable[..., None], state: str) -> None:
    with private(tmp_path, people=6) as trial:
        assert trial.log().guarantee.epsilon == 1.0  # type: ignore[union-attr]
        assert trial.log().public().covered["n_rounds"] == SO_FAR()
        end(trial, "it harms")
        refused(trial.log(), f"the trial was {state} by hand {ENDED}", tmp_path)
        if state == "paused":
            trial.resume("it does not")
            assert trial.log().guarantee.epsilon == 1.0  # type: ignore[union-attr]


def test_reasons_add_up(tmp_path: Path) -> None:
    with private(tmp_path, people=6) as trial:
        trial.finish("it harms")
        log = trial.log(erased="drop")
    assert log.unpromised == (ASKED, f"the trial was finished by hand {ENDED}")


def test_a_trial_whose_horizon_is_used_up_keeps_its_promise(tmp_path: Path) -> None:
    with private(tmp_path) as trial:
        trial.pause("a holiday")
        assert trial.log().guarantee.epsilon == 1.0  # type: ignore[union-attr]
        trial.finish("all came")
        log = trial.log()
    assert (log.guarantee.epsilon, log.unpromised) == (1.0, ())  # type: ignore[union-attr]
    assert log.public().covered["n_rounds"] == DECLARED()


def test_contexts_that_were_erased_are_named_as_before(tmp_path: Path) -> None:
    """The parts do not tell that the log lost a context."""
    shown = []
    for name, erase in (("one", False), ("other", True)):
        design = DPConSE(epsilon=1.0, first_window=2)
        options = {"features": ["f"], "outcome_window": 1}
        with ai.Trial.create(tmp_path / f"{name}.db", design, ["a", "b"], PEOPLE, **options) as trial:
            told(trial, PEOPLE, "f")
            trial.finish("all came")
            if erase:
                trial.erase("unit 3", key="erase", **WHY)
            log = trial.log(erased="keep")
        assert log.context == (() if erase else ("feature",))
        shown.append((log.public().parts, log.public().statement))
    assert shown[0] == shown[1]
    assert "feature" in {part.name for part in shown[0][0]}


def test_designs_that_promise_nothing_have_no_reason(tmp_path: Path) -> None:
    with ai.Trial.create(tmp_path / "trial.db", Thompson(), ["a", "b"], PEOPLE) as trial:
        told(trial, 4)
        trial.finish("early")
        log = trial.log(erased="drop")
    assert (log.guarantee, log.unpromised) == (None, ())
    session = Uniform().session(["a", "b", "c"], PEOPLE, rng=1)
    for _ in range(4):
        session.record(session.assign().id, 1.0)
    session.remove_arm("b")
    removed = session.log()
    assert removed.unpromised == ("arms were removed by hand, possibly by someone who had seen outcomes",)
