"""Exports of experiment platforms: numbers land where the platform means them, what is missing is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from adaptinf.claims.logs import readings as claims
from adaptinf.errors import LogValidationError, ParameterError
from adaptinf.formats import (
    read_eppo,
    read_evidential,
    read_growthbook,
    read_mrt,
    read_statsig,
    read_tensorzero,
)

EXPOSURES = """user_id,variation,first_exposure_timestamp,value
u4,0,2025-03-02T00:00:00Z,4
u1,v_b,2025-03-01T08:00:00Z,1
u2,1,2025-03-01T23:59:59.9Z,2
u3,0,2025-03-03T08:00:00Z,3
u5,__multiple__,2025-03-02T08:00:00Z,9
"""


def _write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def _bandit(*periods: tuple[str, Any], **more: Any) -> str:
    events = [
        {"date": date, "banditResult": {"currentWeights": [0.5, 0.5], "updatedWeights": weights}}
        for date, weights in periods
    ]
    variations = [{"id": "v_a", "key": "0", "name": "old"}, {"id": "v_b", "key": "1", "name": "new"}]
    first = {"variationWeights": [0.9, 0.1], "banditEvents": []}
    phases = [first, {"variationWeights": [0.5, 0.5], "banditEvents": events}]
    return json.dumps({"experiment": {"variations": variations, "phases": phases} | more})


PERIODS = (("2025-03-01T00:00:00.000Z", [0.5, 0.5]), ("2025-03-02T00:00:00.000Z", [0.25, 0.75]))


def test_growthbook_weights_are_those_of_the_period(tmp_path: Path) -> None:
    bandit = _write(tmp_path / "bandit.json", _bandit(*PERIODS))
    units = _write(tmp_path / "units.csv", EXPOSURES)
    log = read_growthbook(bandit, units, reward_range=(0, 5))
    assert log.arms == ("0", "1")
    assert log.arrays.action.tolist() == [1, 1, 0, 0]
    assert log.arrays.reward.tolist() == [1.0, 2.0, 4.0, 3.0]
    assert log.arrays.batch is not None
    assert log.arrays.batch.tolist() == [0, 0, 1, 1]
    assert log.arrays.propensities is not None
    assert log.arrays.propensities.tolist() == [[0.5, 0.5]] * 2 + [[0.25, 0.75]] * 2
    report = str(log.report)
    assert f"dropped: {claims.SEVERAL_ARMS(moved=1, units=5)}" in report
    assert f"order: {claims.ROWS_SORTED(column='first_exposure_timestamp')}" in report
    fixed = read_growthbook(bandit, units, phase=1)
    assert fixed.arrays.propensities is not None
    assert fixed.arrays.propensities.tolist() == [[0.9, 0.1]] * 4
    assert fixed.adaptive is False


@pytest.mark.parametrize(
    ("bandit", "told"),
    [
        (_bandit(PERIODS[1]), ["2 units were exposed before the first period of the phase"]),
        (
            _bandit(PERIODS[0], ("2025-03-02", [0.5, 0.4]), ("2025-03-01", [1.0])),
            [
                "the weights of period 2 sum to 0.9, not 1",
                "period 3 of the phase must have one weight per variation, but has [1.0]",
                "banditEvents must have dates in ISO 8601 that increase",
            ],
        ),
        (
            _bandit(*PERIODS, type="contextual-bandit"),
            ["it is a contextual bandit, whose weights differ between leaves: this format cannot be read"],
        ),
        (
            _bandit(*PERIODS, variations=[{"id": "v_b", "key": "1"}, {"id": "z", "key": "2"}]),
            ["the experiment has no variation '0'"],
        ),
        ("{}", ["has no variations, a list of objects", "has no phases, a list of objects"]),
        ("[", ["is not JSON: Expecting value: line 1 column 2 (char 1)"]),
    ],
)
def test_a_growthbook_export_that_lacks_things(tmp_path: Path, bandit: str, told: list[str]) -> None:
    with pytest.raises(ParameterError) as caught:
        read_growthbook(_write(tmp_path / "bandit.json", bandit), _write(tmp_path / "units.csv", EXPOSURES))
    assert [problem.endswith(text) for problem, text in zip(caught.value.problems, told, strict=True)] == [
        True
    ] * len(told)


def test_growthbook_units_once_each(tmp_path: Path) -> None:
    bandit = _write(tmp_path / "bandit.json", _bandit(*PERIODS))
    twice = _write(tmp_path / "units.csv", EXPOSURES + "u1,0,2025-03-03T08:00:00Z,3\n")
    with pytest.raises(
        ParameterError,
        match=r"1 of \d+ rows repeat the user_id of an earlier row: keep only each unit's first exposure",
    ):
        read_growthbook(bandit, twice)
    with pytest.raises(ParameterError, match="phase must be from 1 to 2, got 3"):
        read_growthbook(bandit, twice, phase=3)


_NAMES = "timestamp,bandit_key,subject,subject_numeric_attributes,subject_categorical_attributes,action,"
ACTIONS = f"""{_NAMES}action_probability,model_version,value
2024-08-14 12:20:00,ads,u2,"{{""age"": 41}}","{{""tier"": ""gold""}}",adidas,0.25,v1,0
2024-08-14 12:19:25.959,ads,u1,"{{""age"": 30}}","{{""tier"": ""none""}}",nike,0.75,v1,1
2024-08-15 09:00:00,ads,u1,"{{""age"": 30}}","{{""tier"": ""none""}}",nike,0.5,v2,2
2024-08-15 09:00:00,other,u1,,,x,0.5,v2,2
"""


def test_eppo_actions_have_the_probability_of_the_client(tmp_path: Path) -> None:
    path = _write(tmp_path / "actions.csv", ACTIONS)
    with pytest.raises(
        ParameterError, match="has more than one bandit_key: set experiment= to one of ads, other"
    ):
        read_eppo(path)
    log = read_eppo(path, experiment="ads", context=["age", "tier"])
    assert log.arms == ("adidas", "nike")
    assert log.arrays.action.tolist() == [1, 0, 1]
    assert log.arrays.reward.tolist() == [1.0, 0.0, 2.0]
    assert log.arrays.propensity is not None
    assert log.arrays.propensity.tolist() == [0.75, 0.25, 0.5]
    assert log.arrays.batch is not None
    assert log.arrays.batch.tolist() == [0, 0, 1]
    assert (log.column("age").tolist(), log.column("tier").tolist()) == (
        [30, 41, 30],
        ["none", "gold", "none"],
    )
    assert (log.context_free, log.adaptive) == (False, None)
    told = claims.OTHER_EXPERIMENTS(others=1, rows=4, column="bandit_key", wanted="ads")
    assert f"dropped: {told}" in str(log.report)
    mixed = _write(
        path,
        ACTIONS.replace("12:20:00,ads,u2", "23:20:00,ads,u2").replace(",0.25,v1", ",0.25,v3")
        + ("2024-08-15 10:00:00,ads,u3,,,nike,0.5,v1,2\n"),
    )
    overlapping = read_eppo(mixed, experiment="ads")
    assert overlapping.arrays.batch is None
    assert f"caution: {claims.VERSIONS_OVERLAP()}" in str(overlapping.report)


def test_eppo_actions_that_lack_things(tmp_path: Path) -> None:
    path = _write(tmp_path / "actions.csv", ACTIONS.replace("action_probability", "weight"))
    with pytest.raises(ParameterError) as caught:
        read_eppo(path, experiment="ads", weights={"nike": 1.0})
    assert caught.value.problems == (
        "actions.csv has no column action_probability",
        "weights apply only to experiments: a bandit's log has action_probability",
    )
    path = _write(path, ACTIONS)
    with pytest.raises(ParameterError, match="no subject has the attribute size; available: age, tier"):
        read_eppo(path, experiment="ads", context="size")
    with pytest.raises(
        ParameterError, match="1 repeated actions by the same subject: put the outcome of each action"
    ):
        read_eppo(path, path, experiment="ads")
    with pytest.raises(ParameterError, match="has no bandit_key 'adz'; available: ads, other; did you mean"):
        read_eppo(path, experiment="adz")


ASSIGNED = """timestamp,experiment,subject,variation
2021-06-22T17:35:12.000Z,algo-17,1,control
2021-06-22T17:35:13.000Z,algo-17,2,new
2021-06-22T17:35:14.000Z,algo-17,1,control
2021-06-22T17:35:15.000Z,algo-17,3,control
2021-06-22T17:35:16.000Z,algo-17,3,new
2021-06-22T17:35:17.000Z,algo-17,04,new
"""


def test_eppo_assignments_are_one_row_a_subject(tmp_path: Path) -> None:
    path = _write(tmp_path / "assigned.csv", ASSIGNED)
    outcomes = _write(tmp_path / "outcomes.csv", "subject,value\n1,5\n04,7\n4,8\n")
    log = read_eppo(path, outcomes, absent=0, weights={"control": 0.5, "new": 0.5})
    assert log.arrays.action.tolist() == [0, 1, 1]
    assert log.arrays.reward.tolist() == [5.0, 0.0, 7.0]
    assert log.arrays.propensities is not None
    assert log.arrays.propensities.tolist() == [[0.5, 0.5]] * 3
    assert log.adaptive is False
    report = str(log.report)
    assert f"dropped: {claims.SEVERAL_ARMS(moved=1, units=4)}" in report
    assert f"dropped: {claims.LATER_EXPOSURES(later=1, rows=4)}" in report
    assert f"outcome: {claims.ABSENT_OUTCOMES(absent=0, rows=1)}" in report
    unknown = read_eppo(path, outcomes, absent=0, weights="unknown")
    assert (unknown.propensity_status, unknown.adaptive) == ("absent", None)
    assert f"caution: {claims.NO_PROPENSITIES()}" in str(unknown.report)


@pytest.mark.parametrize(
    ("weights", "told"),
    [
        (
            None,
            "Eppo's assignment log does not contain the traffic allocation: pass weights={arm: share} if "
            "the shares of traffic",
        ),
        (
            {"control": 0.5, "new": 0.4},
            'weights must be shares in (0, 1] that sum to 1, by arm, or "unknown"',
        ),
        ({"control": 1.0}, "weights= has no share for arm 'new'"),
        ({}, "weights must be shares"),
        ("even", "weights must be shares"),
    ],
)
def test_shares_that_are_no_shares(tmp_path: Path, weights: Any, told: str) -> None:
    path = _write(tmp_path / "assigned.csv", ASSIGNED)
    outcomes = _write(tmp_path / "outcomes.csv", "subject,value\n1,5\n2,1\n04,7\n")
    with pytest.raises(ParameterError) as caught:
        read_eppo(path, outcomes, weights=weights)
    assert told in str(caught.value)


def test_outcomes_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = _write(tmp_path / "assigned.csv", ASSIGNED)
    outcomes = _write(tmp_path / "outcomes.csv", "subject,value\n1,5\n1,6\n")
    with pytest.raises(ParameterError) as caught:
        read_eppo(path, outcomes, weights="unknown")
    assert caught.value.problems == (
        f"{outcomes}: 1 of 2 rows repeat the subject of an earlier row: sum the rows of each "
        "subject to one row",
        "2 of 3 rows have no outcome in outcomes.csv: pass absent=0 if that means 0, or add the rows",
    )
    with pytest.raises(
        ParameterError, match=r"outcomes\.csv has no column revenue; its columns are subject, value"
    ):
        read_eppo(path, outcomes, value="revenue", weights="unknown")


EXPOSED = """company_id,unit_id,unit_type,name,experiment_group,first_exposure_utc,percent
c,u2,userID,button,Test,2025-01-01 10:00:00,10
c,u1,userID,button,Control,2025-01-01 09:00:00,10
c,u1,userID,other,Control,2025-01-01 08:00:00,10
"""


def test_statsig_exposures_are_joined_to_outcomes(tmp_path: Path) -> None:
    path = _write(tmp_path / "exposures.csv", EXPOSED)
    outcomes = _write(tmp_path / "outcomes.csv", "unit_id,value\nu1,1.5\nu2,2.5\nu9,0\n")
    log = read_statsig(path, outcomes, experiment="button", weights={"Control": 0.75, "Test": 0.25})
    assert log.arms == ("Control", "Test")
    assert log.arrays.reward.tolist() == [1.5, 2.5]
    assert log.arrays.propensity is not None
    assert log.arrays.propensity.tolist() == [0.75, 0.25]
    assert f"left out: {claims.UNUSED_OUTCOMES(unused=1, rows=3)}" in str(log.report)
    with pytest.raises(ParameterError) as caught:
        read_statsig(path, outcomes, value="revenue", experiment="button")
    assert caught.value.problems == (
        "outcomes.csv has no column revenue; its columns are unit_id, value",
        "Statsig's exposures do not contain the allocation by group: pass weights={arm: share} if the "
        'shares of traffic were constant, or weights="unknown" for a log without propensities',
    )
    lacking = _write(path, EXPOSED.replace("experiment_group", "group"))
    with pytest.raises(
        ParameterError, match=r"exposures\.csv has no column experiment_group; its columns are company_id"
    ):
        read_statsig(lacking, outcomes, weights="unknown")


def _id(place: int) -> str:
    return f"{place:012x}"[:8] + f"-{place:012x}"[:1] + f"{place:012x}"[8:] + "-7000-8000-000000000000"


INFERENCES = [
    {"id": _id(30), "function_name": "draft", "variant_name": "short", "episode_id": _id(2), "tags": {}},
    {
        "id": _id(10),
        "function_name": "draft",
        "variant_name": "long",
        "episode_id": _id(1),
        "tags": {"a": "b"},
    },
    {"id": _id(20), "function_name": "draft", "variant_name": "long", "episode_id": _id(1), "tags": {}},
    {"id": _id(40), "function_name": "other", "variant_name": "x", "episode_id": _id(3), "tags": {}},
    {"id": _id(50), "function_name": "draft", "variant_name": "long", "episode_id": _id(4), "tags": {}},
    {"id": _id(60), "function_name": "draft", "variant_name": "short", "episode_id": _id(4), "tags": {}},
]


def _lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    return _write(path, "".join(json.dumps(row) + "\n" for row in rows))


def _feedback(*rows: tuple[int, int, Any]) -> list[dict[str, Any]]:
    return [
        {"id": _id(place), "target_id": _id(target), "metric_name": "liked", "value": value}
        for place, target, value in rows
    ]


def test_tensorzero_feedback_is_joined_by_inference_or_episode(tmp_path: Path) -> None:
    path = _lines(tmp_path / "chat.jsonl", INFERENCES)
    feedback = _lines(tmp_path / "feedback.jsonl", _feedback((90, 10, False), (80, 10, True), (70, 20, True)))
    weights = {"long": 0.75, "short": 0.25}
    log = read_tensorzero(path, feedback, function="draft", absent=0, weights=weights)
    assert log.arms == ("long", "short")
    assert log.arrays.action.tolist() == [0, 0, 1]
    assert log.arrays.reward.tolist() == [0.0, 1.0, 0.0]
    assert log.arrays.propensity is not None
    assert log.arrays.propensity.tolist() == [0.75, 0.75, 0.25]
    assert log.units is not None
    assert log.units.tolist() == [_id(1), _id(1), _id(2)]
    report = str(log.report)
    assert f"dropped: {claims.SEVERAL_ARMS(moved=1, units=3)}" in report
    assert f"dropped: {claims.REPLACED_FEEDBACK(replaced=1, rows=3)}" in report
    episodes = _lines(tmp_path / "episodes.jsonl", _feedback((80, 1, 2.5), (81, 2, 0.5)))
    by_episode = read_tensorzero(path, episodes, function="draft", level="episode", weights="unknown")
    assert by_episode.arrays.action.tolist() == [0, 1]
    assert by_episode.arrays.reward.tolist() == [2.5, 0.5]
    assert by_episode.propensity_status == "absent"


def test_tensorzero_tables_that_lack_things(tmp_path: Path) -> None:
    path = _lines(tmp_path / "chat.jsonl", INFERENCES)
    feedback = _lines(tmp_path / "feedback.jsonl", _feedback((90, 10, "yes")))
    with pytest.raises(ParameterError) as caught:
        read_tensorzero(path, feedback, level="run")
    assert caught.value.problems == (
        'level must be "inference" or "episode", got \'run\'',
        "TensorZero's tables do not contain sampling probabilities: pass weights={arm: share} if the shares "
        'of traffic were constant, or weights="unknown" for a log without propensities',
    )
    with pytest.raises(ParameterError, match="value must be true, false or numbers, such as 'yes'"):
        read_tensorzero(path, feedback, function="draft", weights="unknown")
    _lines(feedback, _feedback((90, 10, True)))
    with pytest.raises(
        ParameterError, match="2 of 3 targets have no feedback: pass absent=0 if that means 0"
    ):
        read_tensorzero(path, feedback, function="draft", weights="unknown")
    _lines(path, [row | {"id": "12"} for row in INFERENCES])
    with pytest.raises(ParameterError, match="id must be a UUID of version 7, not '12'"):
        read_tensorzero(path, feedback, function="draft", weights="unknown")
    _write(path, "{}\n[]\n")
    with pytest.raises(ParameterError, match="line 2 is not a JSON object"):
        read_tensorzero(path, feedback, weights="unknown")


DRAWS = """participant_id,arm_id,arm_name,created_at,outcome,context_vals
p2,arm_b,text,2025-06-01T09:00:00Z,0,"{1,2.5}"
p1,arm_a,call,2025-06-01T08:00:00Z,1,"{0,1}"
p3,arm_a,call,2025-06-01T10:00:00Z,,"{1,0}"
"""


def test_evidential_draws_are_read_in_order_of_time(tmp_path: Path) -> None:
    path = _write(tmp_path / "draws.csv", DRAWS)
    log = read_evidential(path, weights="unknown", context=["urban", "age"], missing="drop")
    assert log.arms == ("call", "text")
    assert log.arrays.action.tolist() == [0, 1, 0]
    assert (log.report.pulls, log.missing) == ({"call": 2, "text": 1}, "drop")
    assert log.filled(9.0).arrays.reward.tolist() == [1.0, 0.0, 9.0]
    assert (log.column("urban").tolist(), log.column("age").tolist()) == ([0.0, 1.0, 1.0], [1.0, 2.5, 0.0])
    assert (log.propensity_status, log.context_free) == ("absent", None)
    hidden = read_evidential(path, weights={"call": 0.5, "text": 0.5}, missing="drop")
    assert hidden.context_free is False
    assert hidden.arrays.propensity is not None
    assert hidden.arrays.propensity.tolist() == [0.5, 0.5, 0.5]


def test_evidential_draws_that_lack_things(tmp_path: Path) -> None:
    path = _write(tmp_path / "draws.csv", DRAWS)
    with pytest.raises(LogValidationError, match="outcome"):
        read_evidential(path, weights="unknown")
    with pytest.raises(
        ParameterError, match="Evidential's draws do not contain probabilities: pass weights="
    ):
        read_evidential(path)
    with pytest.raises(
        ParameterError, match=("context_vals must have 1 values, one per name in context, but is")
    ):
        read_evidential(path, weights="unknown", context="urban")
    for old, new in (("arm_b,text", "arm_b,call"), ("p3,arm_a,call", "p3,arm_a,mail")):
        _write(path, DRAWS.replace(old, new))
        with pytest.raises(ParameterError, match="every arm_id must have its own"):
            read_evidential(path, weights="unknown", missing="drop")
    _write(path, "participant_id,arm_id,arm_name,created_at,gender\np1,a,call,2025-06-01T08:00:00Z,F\n")
    with pytest.raises(
        ParameterError,
        match=r"draws\.csv has no column outcome; its columns are "
        r"participant_id",
    ):
        read_evidential(path, weights="unknown")


TRIAL = """userid,time,avail,intervention,rand_prob,steps,home
a,2,1,-1,0.25,20,1
a,1,1,1,0.25,10,0
b,1,0,-1,0,,1
b,2,1,1,0.6,40,0
"""


def test_a_micro_randomised_trial_has_rounds_where_it_randomised(tmp_path: Path) -> None:
    path = _write(tmp_path / "mrt.csv", TRIAL)
    columns = {"unit": "userid", "treatment": "intervention", "probability": "rand_prob", "outcome": "steps"}
    log = read_mrt(path, **columns, decision="time", available="avail", context="home", adaptive=False)
    assert log.arms == (0, 1)
    assert log.arrays.action.tolist() == [1, 0, 1]
    assert log.arrays.reward.tolist() == [10.0, 20.0, 40.0]
    assert log.arrays.propensities is not None
    assert log.arrays.propensities.tolist() == [[0.75, 0.25], [0.75, 0.25], [0.4, 0.6]]
    assert log.column("home").tolist() == [0, 1, 0]
    assert f"dropped: {claims.NOT_AVAILABLE(absent=1, rows=4)}" in str(log.report)
    in_file = read_mrt(path, **(columns | {"probability": 0.6}), available="avail")  # type: ignore[arg-type]
    assert in_file.arrays.reward.tolist() == [20.0, 10.0, 40.0]
    assert in_file.arrays.propensity is not None
    assert in_file.arrays.propensity.tolist() == [0.4, 0.6, 0.6]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("a,2,1,-1", "a,2,1,2", "intervention must be 1 and 0, or 1 and -1, but has [2, 1]"),
        ("a,2,1,-1,0.25", "a,2,1,-1,1.25", "rand_prob must be in [0, 1], but is 1.25 in 1 rows"),
        ("a,2,1,-1,0.25", "a,2,1,-1,", "rand_prob must be numbers, but has [nan, 0.25, 0.6]"),
        ("a,2,1", "a,2,yes", "avail must be 1 (available) or 0, but has ['yes', '1', '0']"),
        ("a,2,", "a,1,", "1 of 3 rows repeat the userid and time of an earlier row"),
        ("steps", "stairs", "mrt.csv has no column steps; its columns are userid, time"),
    ],
)
def test_a_micro_randomised_trial_that_is_none(tmp_path: Path, old: str, new: str, told: str) -> None:
    path = _write(tmp_path / "mrt.csv", TRIAL.replace(old, new))
    columns = {"unit": "userid", "treatment": "intervention", "probability": "rand_prob", "outcome": "steps"}
    with pytest.raises(ParameterError) as caught:
        read_mrt(path, **columns, decision="time", available="avail")
    assert told in str(caught.value)


def test_rows_of_a_trial_are_counted_as_in_the_file(tmp_path: Path) -> None:
    path = _write(tmp_path / "mrt.csv", TRIAL.replace("b,2,1,1,0.6,40", "b,2,1,1,0.6,"))
    with pytest.raises(LogValidationError) as caught:
        read_mrt(
            path, unit="userid", treatment="intervention", probability=0.5, outcome="steps", available="avail"
        )
    assert caught.value.problems[0].rows == (3,)
    with pytest.raises(ParameterError, match=r"probability must be a column or a number in \(0, 1\), got 1"):
        read_mrt(path, unit="userid", treatment="intervention", probability=1, outcome="steps")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("2025-01-01 10:00:00 UTC", "2025-01-01 09:59:59.5 UTC"),
        ("2025-01-01 10:00:00+00", "2025-01-01 11:30:00+02"),
        ("2025-01-01 10:00:00.000 +0000", "2025-01-01 15:00:00.000 +0530"),
        ("2025-01-01 10:00:00.000 Z", "2025-01-01 09:00:00.000 Z"),
    ],
)
def test_times_as_warehouses_write_them(tmp_path: Path, first: str, second: str) -> None:
    text = EXPOSED.replace("2025-01-01 10:00:00", first).replace("2025-01-01 09:00:00", second)
    path = _write(tmp_path / "exposures.csv", text.replace("2025-01-01 08:00:00", first))
    outcomes = _write(tmp_path / "outcomes.csv", "unit_id,value\nu1,1.5\nu2,2.5\n")
    log = read_statsig(path, outcomes, experiment="button", weights="unknown")
    assert log.arrays.reward.tolist() == [1.5, 2.5]
    _write(path, text.replace(first, "10 o'clock UTC"))
    with pytest.raises(ParameterError, match='are not times in ISO 8601, such as "10 o\'clock UTC"'):
        read_statsig(path, outcomes, experiment="button", weights="unknown")


def test_parquet_is_read_as_csv(tmp_path: Path) -> None:
    _write(tmp_path / "draws.csv", DRAWS)
    frame = pd.read_csv(tmp_path / "draws.csv").assign(context_vals=[[1.0, 2.5], [0.0, 1.0], [1.0, 0.0]])
    frame.to_parquet(tmp_path / "draws.parquet")
    log = read_evidential(
        tmp_path / "draws.parquet", weights="unknown", context=["urban", "age"], missing="drop"
    )
    assert log.column("age").tolist() == [1.0, 2.5, 0.0]
