"""The beginning of a log is the log that there was then: what was known later is not in it."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims.logs import coverage
from adaptinf.errors import ParameterError
from adaptinf.log.traits import AMENDED, LEFT_OUT, PLANNED, REMOVED, STOP_REASON, Outputs
from adaptinf.log.validation import DesignRecord, LogArrays

ARMS = ai.environments.BernoulliArms([0.3, 0.6])
CLOSE = ai.environments.BernoulliArms([0.45, 0.55])
SIZES = {"elimination": (2_900, 2_950)}
DESIGNS = {
    "thompson": ai.designs.Thompson(floor=0.1),
    "greedy": ai.designs.EpsilonGreedy(exploration=0.2),
    "private": ai.designs.PrivateUCB(epsilon=1.0),
    "elimination": ai.designs.PrivateSuccessiveElimination(epsilon=1.0),
}


def so_far_and_whole(design: Any, begun: int, rounds: int) -> tuple[Any, Any]:
    """The logs of one session after so many rounds, and after all."""
    rewards = np.random.default_rng(5).integers(0, 2, rounds)
    session = design.session(["a", "b"], horizon=rounds, rng=1)
    then = None
    for number, reward in enumerate(rewards, 1):
        session.record(session.assign().id, float(reward))
        then = session.log() if number == begun else then
    return then, session.log()


@pytest.mark.parametrize("name", DESIGNS)
def test_the_beginning_of_a_sessions_log_is_its_log_then(name: str) -> None:
    begun, rounds = SIZES.get(name, (25, 60))
    then, whole = so_far_and_whole(DESIGNS[name], begun, rounds)
    part = whole[:begun]
    pd.testing.assert_frame_equal(part.frame, then.frame)
    pd.testing.assert_frame_equal(part.releases, then.releases)
    assert part.design == then.design
    assert part.design.parameters[PLANNED] == rounds
    for field in ("arms", "guarantee", "reward_guarantee", "guarantee_source", "noise", "reward_range"):
        assert getattr(part, field) == getattr(then, field)
    assert (part.feedback_rounds, part.released_rounds) == (then.feedback_rounds, then.released_rounds)
    assert (part.n_rounds, len(part), part.missing, part.recommended) == (begun, begun, None, None)


def test_releases_that_came_later_are_left_out() -> None:
    whole = ai.designs.PrivateSuccessiveElimination(epsilon=2.0).run(CLOSE, horizon=20_000, rng=0)
    last = int(whole.releases["round"].max())
    assert len(whole[:last].releases) == len(whole.releases)
    part = whole[: last - 1]
    assert part.releases["round"].max() < last
    left = len(whole.releases) - len(part.releases)
    assert left > 0
    told = f"only the first {last - 1:,} of 20,000 rounds are used; later releases ({left}) were dropped"
    assert [str(reading.text) for reading in part.report.readings] == [told]
    assert part.guarantee == whole.guarantee


def test_outcomes_that_came_later_are_missing() -> None:
    session = ai.designs.EpsilonGreedy(exploration=0.5).session(2, horizon=6, rng=0)
    first = [session.assign() for _ in range(4)]
    session.record(first[0].id, 1.0)
    session.record(first[2].id, 0.0)
    then = session.log("drop")
    later = session.assign()
    session.record(first[1].id, 1.0)
    session.record(first[3].id, 1.0)
    session.record(later.id, 0.0)
    whole = session.log()
    part = whole.until(4, missing="drop")
    same = ["t", "action", "reward", "propensity"]
    pd.testing.assert_frame_equal(part.frame[same], then.frame[same])
    assert part.arrays.known.tolist() == [4, 4, 4, 4]
    assert part.frame["outcome_round"].tolist()[::2] == [4.0, 4.0]
    assert part.frame["outcome_round"].isna().tolist() == [False, True, False, True]
    assert (part.missing, part.feedback_rounds) == ("drop", then.feedback_rounds)
    assert "outcomes that became known later (2) count as missing" in str(part.report)
    with pytest.raises(ParameterError) as error:
        whole[:4]
    assert str(error.value) == (
        'AdaptiveLog: 2 outcomes were not known by then: set log.until(..., missing="drop" or '
        '"bounds") to define what that means'
    )
    assert whole[:5].missing is None


def dated(**options: Any) -> Any:
    frame = pd.DataFrame(
        {
            "day": pd.to_datetime(["2026-03-01 09:00", "2026-03-01 18:00", "2026-03-02 09:00"]),
            "in": pd.to_datetime(["2026-03-01 10:00", "2026-03-02 23:00", "2026-03-02 10:00"]),
            "arm": ["a", "b", "a"],
            "y": [1.0, 0.0, 1.0],
            "arm_id": ["i", "j", "k"],
        }
    )
    roles = {"action": "arm", "reward": "y", "round": "day", "reward_range": (0, 1)}
    return ai.AdaptiveLog(frame, **{**roles, **options})


def test_a_time_and_a_day_say_how_far() -> None:
    log = dated()
    assert [len(log.until(when)) for when in ("2026-03-01", "2026-03-01T09:00", "2026-03-02 08:59")] == [
        2,
        1,
        2,
    ]
    assert len(log.until(date(2026, 3, 1))) == len(log.until(np.datetime64("2026-03-01"))) == 2
    assert len(log.until(pd.Timestamp("2026-03-01 18:00"))) == 2
    assert len(log.until(np.datetime64("2026-03-01T17:59:59"))) == 1
    east = timezone(timedelta(hours=2))
    assert len(log.until(datetime(2026, 3, 1, 19, 59, tzinfo=east))) == 1
    assert len(log.until(datetime(2026, 3, 1, 18, 0, tzinfo=UTC))) == 2
    assert log.until("2027-01-01").equals(log)
    with pytest.raises(ParameterError) as error:
        log.until(2)
    assert str(error.value) == (
        "AdaptiveLog.until: round must be a time or a date (2026-03-01T12:00), like the log's rounds, got 2"
    )
    with pytest.raises(ParameterError) as error:
        log.until("2026-02-28")
    assert str(error.value).endswith(
        "no round had begun by '2026-02-28': the first round is 2026-03-01T09:00:00.000000"
    )


def test_an_outcome_counts_by_the_time_that_it_came() -> None:
    log = dated(columns={"outcome_round": "in"})
    part = log.until("2026-03-02 22:00", missing="worst")
    assert part.arrays.recorded.tolist()[::2] == [1.0, 1.0]
    assert part.arrays.observed.tolist() == [True, False, True]
    assert part.frame["outcome_round"].isna().tolist() == [False, True, False]
    assert log.until("2026-03-02").missing is None
    assert dated(id="arm_id")[:2].ids.tolist() == ["i", "j"]
    assert log[:1].arrays.reward.tolist() == [1.0]
    with pytest.raises(ParameterError, match="1 outcome was not known by then"):
        log[:2]


def test_who_cuts_a_log_chose_its_end_unless_it_is_said_otherwise() -> None:
    log = DESIGNS["thompson"].run(ARMS, horizon=200, rng=0)
    assert log.stopping == "fixed"
    assert [log[:50].stopping, log.until(50).stopping] == ["data-chosen", "data-chosen"]
    assert log.until(50, stopping="planned").stopping == "planned"
    caution = "data collection stopped after 50 of 200 rounds, at a time determined by the data"
    assert any(caution in said for said in ai.ArmMeans(log[:50]).fit().cautions)
    assert not any("stopped" in said for said in ai.ArmMeans(log.until(50, stopping="fixed")).fit().cautions)
    assert log[:].equals(log)
    assert log[:900].equals(log)
    assert log.until(200, stopping="planned").stopping == "planned"
    assert log.stopping == "fixed"


def test_a_part_of_a_part_keeps_the_plan() -> None:
    log = DESIGNS["thompson"].run(ARMS, horizon=200, rng=0)
    part = log[:100][:50]
    pd.testing.assert_frame_equal(part.frame, log[:50].frame)
    assert part.design == log[:50].design
    assert (part.feedback_rounds, log[:50].feedback_rounds) == (49, 49)


def test_a_log_of_unknown_length_has_no_plan() -> None:
    log = DESIGNS["thompson"].run(ARMS, horizon=200, rng=0).stating("data-chosen")
    assert PLANNED not in log[:50].design.parameters


def test_what_was_known_at_the_end_is_left_out() -> None:
    record = DesignRecord(
        "mine", {STOP_REASON: "enough", REMOVED: [["a", 2], ["b", 4]], PLANNED: 9, "depth": 3}
    )
    arrays = LogArrays(action=np.array([0, 1, 0, 1, 0]), reward=np.ones(5))
    log = ai.AdaptiveLog.from_arrays(
        arrays, arms=("a", "b"), design=record, recommended="a", adaptive=True, feedback_rounds=3
    )
    part = log[:4]
    assert part.design.parameters == {PLANNED: 9, "depth": 3, REMOVED: [["a", 2]]}
    assert (part.recommended, part.feedback_rounds, log[:3].feedback_rounds) == (None, 3, 2)
    assert REMOVED not in log[:2].design.parameters
    # that one round's reward moved none, and that assignment adapted, cannot both be stated
    assert log[:1].feedback_rounds is None
    assert log.design is record


def test_what_a_log_cannot_tell_is_refused_together() -> None:
    told = {LEFT_OUT: 3, AMENDED: 2}
    arrays = LogArrays(
        action=np.array([0, 1, 0]),
        reward=np.ones(3),
        known=np.array([2, 3, 3]),
        observation=np.full(3, 0.5),
        outcomes={"cost": np.ones(3)},
    )
    log = ai.AdaptiveLog.from_arrays(arrays, arms=("a", "b"), design=DesignRecord("mine", told))
    with pytest.raises(ParameterError) as error:
        log.until(2, missing="best")
    assert error.value.problems == (
        (
            "3 rounds of erased participants are omitted, and the log does not record which: use "
            'trial.log(erased="keep")'
        ),
        (
            "2 outcomes were amended, and the log does not record when: use log(amended=False), which has "
            "the original values"
        ),
        "missing='best' requires a finite reward_range",
        (
            "1 outcome was not known by then, but observation= contains the probabilities that outcomes are "
            "eventually observed"
        ),
        "1 outcome was not known by then, but every outcome in outcomes= ('cost') must be known",
    )
    with pytest.raises(ParameterError, match="missing='worst' requires a finite reward_range"):
        log.until(2, missing="worst")
    nothing = LogArrays(action=np.array([0, 1]), reward=np.ones(2), known=np.array([2, 2]))
    with pytest.raises(ParameterError, match="no outcome was known by then"):
        ai.AdaptiveLog.from_arrays(nothing, arms=("a", "b")).until(1, missing="drop")


@pytest.mark.parametrize("rounds", [5, slice(1, None), slice(None, None, 2), slice(3, 5), slice(-5, None)])
def test_there_are_no_other_parts(rounds: Any) -> None:
    log = DESIGNS["thompson"].run(ARMS, horizon=20, rng=0)
    with pytest.raises(
        ParameterError, match=r"^AdaptiveLog: log\[:n\] is the log of the first n rounds; other slices"
    ):
        log[rounds]


def test_a_log_has_a_length_and_no_rows_to_go_through() -> None:
    log = DESIGNS["thompson"].run(ARMS, horizon=20, rng=0)
    assert len(log) == 20
    with pytest.raises(TypeError, match="not iterable"):
        list(log)
    with pytest.raises(ParameterError, match="must contain at least one round"):
        log[:0]
    with pytest.raises(ParameterError, match=r"log\[:n\] requires a number of rounds"):
        log[:"2026"]  # type: ignore[misc]
    pd.testing.assert_frame_equal(log.head(3), log.frame.head(3))
    with pytest.raises(ParameterError, match="n must be a whole number of at least 0, got -1"):
        log.head(-1)


def test_persons_are_promised_what_their_rounds_of_the_beginning_spend() -> None:
    session = DESIGNS["private"].session(2, horizon=6, rng=0)
    for unit in ("ann", "bob", "ann", "bob", "ann", "cid"):
        session.record(session.assign(f"{unit} {session.rounds}").id, 1.0)
    log = session.log()
    log.units = np.array(["ann", "bob", "ann", "bob", "ann", "cid"])
    assert log.person_guarantee.epsilon == pytest.approx(3.0)
    assert log[:4].person_guarantee.epsilon == pytest.approx(2.0)
    assert log[:2].person_guarantee is None
    assert log[:4].guarantee == log.guarantee


def test_the_public_part_of_a_beginning_says_who_chose_its_length() -> None:
    design = ai.designs.PrivateSuccessiveElimination(epsilon=1.0)
    log = design.run(ARMS, horizon=5_000, rng=0)
    chosen, fixed = log[:900].public(), log.until(900, stopping="fixed").public()
    assert says(chosen.covered["n_rounds"], coverage.STOPPED_BY_DATA)
    assert says(fixed.covered["n_rounds"], coverage.SO_FAR)
    assert chosen.guarantee == log.guarantee
    assert (chosen.n_rounds, len(chosen.rounds), chosen.facts["parameters"][PLANNED]) == (900, 900, 5_000)


def test_a_design_that_ends_by_its_releases_did_not_end_the_beginning() -> None:
    traits = ai.designs.DesignTraits(outputs=Outputs(length="releases"))
    log = ai.AdaptiveLog.from_arrays(
        LogArrays(action=np.array([0, 1, 0]), reward=np.ones(3)),
        arms=("a", "b"),
        guarantee=ai.PrivacyGuarantee(1.0),
        design=DesignRecord("mine", {}, traits),
        stopping="planned",
    )
    assert says(log.public().covered["n_rounds"], coverage.BY_RELEASES)
    assert not says(log[:2].public().covered["n_rounds"], coverage.BY_RELEASES)
    assert log.until(2, stopping="fixed").design.parameters[PLANNED] == 3
    with pytest.raises(
        ParameterError, match=("stopping='planned' refers to the design's own stopping rule: use")
    ):
        log.until(2, stopping="planned")


def test_a_beginning_is_stored_and_read(tmp_path: Any) -> None:
    session = ai.designs.EpsilonGreedy(exploration=0.5).session(2, horizon=6, rng=0)
    ids = [session.assign().id for _ in range(4)]
    session.record(ids[0], 1.0)
    ids.append(session.assign().id)
    for number in (3, 1, 2, 4):
        session.record(ids[number], 1.0)
    part = session.log().until(4, missing="drop")
    assert part.arrays.observed.tolist() == [True, False, False, False]
    for name in ("log.parquet", "log.csv"):
        (part.to_parquet if name.endswith("t") else part.to_csv)(tmp_path / name)
        assert ai.read_log(tmp_path / name).equals(part)


def test_epochs_are_as_long_as_the_plan_makes_them() -> None:
    design = ai.designs.PrivateSuccessiveElimination(epsilon=2.0)
    log = design.run(CLOSE, horizon=20_000, rng=0)
    ends = np.unique(log.releases["round"])
    assert len(ends) > 1
    whole = ai.Contrast(log, treatment=1, control=0).fit("released")
    part = ai.Contrast(log.until(int(ends[-1]), stopping="fixed"), treatment=1, control=0).fit("released")
    assert part.params.tolist() == whole.params.tolist()
    assert part.details["pulls_an_arm"].tolist() == whole.details["pulls_an_arm"].tolist()
    assert math.isfinite(part.conf_int()["low"].iloc[0])
