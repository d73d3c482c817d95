"""Outcomes that are corrected: the log has the right ones, and the design what it was told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adaptinf as ai
from adaptinf.audit import randomization_test
from adaptinf.designs import EpsilonGreedy, PrivateUCB, Session, Thompson, Uniform
from adaptinf.errors import ParameterError
from adaptinf.simulation.environments import Tableau

ROUNDS = 60
REWARDS = (np.random.default_rng(3).random((ROUNDS, 2)) < [0.3, 0.6]).astype(float)
RIGHT = {4: 1.0, 17: 0.0, 30: 1.0}


def walked(design: Any, amended: bool, upto: int = ROUNDS, **options: Any) -> tuple[Session, list[int]]:
    """A session whose outcomes of some rounds are corrected ten rounds later; and its arms."""
    session, arms = design.session(2, ROUNDS, rng=2, **options), []
    for step in range(upto):
        decision = session.assign(unit=step)
        arms.append(decision.arm)
        session.record(decision.id, REWARDS[step, decision.arm])
        wrong = step - 10
        if amended and wrong in RIGHT:
            told = float(REWARDS[wrong, arms[wrong]])
            session.amend(wrong + 1, 1.0 - told, key=f"amend {wrong}")
    return session, arms


@pytest.mark.parametrize("design", [Uniform(), EpsilonGreedy(), Thompson(floor=0.1)])
def test_the_log_has_the_right_outcomes_and_choices_are_as_if_nothing_had_been_corrected(design: Any) -> None:
    session, arms = walked(design, amended=True)
    other, same = walked(design, amended=False)
    assert arms == same
    assert session.log(amended=False).frame.equals(other.log().frame)
    right = other.log().frame["reward"].to_numpy().copy()
    right[list(RIGHT)] = 1.0 - right[list(RIGHT)]
    log = session.log()
    np.testing.assert_array_equal(log.frame["reward"], right)
    kept = [name for name in log.frame if name != "reward"]
    assert log.frame[kept].equals(other.log().frame[kept])
    assert log.design is not None
    assert log.design.parameters["amended_outcomes"] == 3


def test_weighted_means_are_those_of_the_right_outcomes() -> None:
    log = walked(Thompson(floor=0.1), amended=True)[0].log()
    frame = walked(Thompson(floor=0.1), amended=False)[0].log().frame
    frame.loc[list(RIGHT), "reward"] = 1.0 - frame.loc[list(RIGHT), "reward"]
    found = ai.ArmMeans(log).fit("ipw", weights="uniform").params.to_numpy()
    weights = [(frame["action"] == arm) / frame[f"propensity_{arm}"] for arm in (0, 1)]
    slow = [(weight * frame["reward"]).mean() for weight in weights]
    np.testing.assert_allclose(found, slow, rtol=1e-12)


def test_a_design_that_learnt_otherwise_is_not_run_again_on_amended_outcomes() -> None:
    session = walked(Thompson(floor=0.1), amended=True)[0]
    with pytest.raises(ParameterError, match=r"3 outcomes were amended after .* log\(amended=False\)"):
        randomization_test(session.log(), replications=99, rng=1)
    told = randomization_test(session.log(amended=False), replications=99, rng=1)
    same = randomization_test(walked(Thompson(floor=0.1), amended=False)[0].log(), replications=99, rng=1)
    assert told.pvalue == same.pvalue
    uniform = walked(Uniform(), amended=True)[0].log()
    right = uniform.frame["reward"].to_numpy()
    again = Uniform().run(Tableau(np.column_stack([right, right]), reward_range=(0, 1)), ROUNDS, rng=1)
    assert again.n_rounds == ROUNDS
    assert 0.0 < randomization_test(uniform, replications=99, rng=1).pvalue <= 1.0


def refused(call: Any, *given: Any, **options: Any) -> str:
    with pytest.raises(ParameterError) as caught:
        call(*given, **options)
    assert len(caught.value.problems) == 1
    return caught.value.problems[0]


def test_each_wrong_amendment_has_one_clear_answer_and_changes_nothing() -> None:
    session, _ = walked(Thompson(), amended=False, upto=20)
    pending = session.assign(unit=20)
    before = session.log("drop").frame
    told = float(before["reward"][0])
    assert refused(session.amend, 99, 1.0) == "there is no decision 99: decisions 1 to 21 have been made"
    assert refused(session.amend, pending.id, 1.0) == "decision 21 has no outcome yet: record it"
    assert refused(session.amend, 1, told) == "decision 1 already has this outcome"
    assert "from 0 to 1" in refused(session.amend, 1, 1.5)
    assert "decision_id must be" in refused(session.amend, "1", 1.0)
    assert "key must be" in refused(session.amend, 1, 1.0 - told, key=" ")
    assert "has another outcome" in refused(session.record, 1, 1.0 - told)
    assert "amend it if that is a correction" in refused(session.record, 1, 1.0 - told)
    assert session.log("drop").frame.equals(before)


def test_amendments_that_come_again_and_that_follow_each_other() -> None:
    session = Uniform().session(2, 9, rng=1)
    for unit in range(4):
        session.record(session.assign(unit).id, None if unit == 3 else 0.0, key=f"record {unit}")
    first = session.amend(1, 0.5, key="a")
    assert (first.id, first.reward, first.in_time) == (1, 0.5, False)
    assert session.amend(1, 0.5, key="a") == first
    assert "already identifies another request (amend)" in refused(session.amend, 1, 0.7, key="a")
    assert "already identifies another request (amend)" in refused(session.amend, 2, 0.5, key="a")
    assert "already identifies another request (record)" in refused(session.amend, 1, 0.7, key="record 1")
    session.amend(1, 0.25, key="b")
    assert session.amend(1, 0.5, key="a") == first  # its answer, though another one holds now
    assert session.record(1, 0.0, key="record 0").reward == 0.0
    session.amend(2, None, key="c")
    session.amend(4, 1.0, key="d")
    assert session.log("drop").frame["reward"].tolist()[0] == 0.25
    np.testing.assert_array_equal(session.log("drop").frame["reward"], [0.25, np.nan, 0.0, 1.0])
    np.testing.assert_array_equal(session.log("drop", amended=False).frame["reward"], [0, 0, 0, np.nan])
    assert refused(session.log).startswith("1 outcome is missing")
    session.amend(2, 0.0, key="e")
    assert session.log().n_rounds == 4
    assert refused(session.amend, 2, 0.0, key="f") == "decision 2 already has this outcome"


def test_releases_of_a_private_design_do_not_change_by_an_amendment_within_the_window() -> None:
    runs = [walked(PrivateUCB(epsilon=1.0), amended, window=20)[0] for amended in (True, False)]
    logs = [run.log("worst", amended=False) for run in runs]
    assert logs[0].frame.equals(logs[1].frame)
    assert logs[0].releases is not None
    assert logs[0].releases.equals(logs[1].releases)
    assert runs[0].log("worst").releases.equals(logs[0].releases)
