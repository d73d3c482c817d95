"""Foreign files: every number lands where it belongs, and what is wrong is told at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from transport import write_transport

from adaptinf.claims.logs import readings as claims
from adaptinf.errors import AdaptinfWarning, LogValidationError, ParameterError
from adaptinf.formats import read_adam, read_dsjson, read_open_bandit

EMPTY = pd.DataFrame()


def _codes(error: LogValidationError) -> list[str]:
    return [problem.code for problem in error.problems]


def _bandit_folder(root: Path, policy: str = "bts") -> Path:
    folder = root / policy / "men"
    folder.mkdir(parents=True)
    frame = pd.DataFrame(
        {
            "timestamp": [
                "2019-11-24 00:00:20.5+00:00",
                "2019-11-24 00:00:17+00:00",
                "2019-11-24 00:00:20.5+00:00",
                "2019-11-24 00:01:00+00:00",
            ],
            "item_id": [2, 0, 1, 2],
            "position": [1, 3, 2, 1],
            "click": [1, 0, 0, 1],
            "propensity_score": [0.25, 0.5, 1e-6, 0.125],
            "user_feature_0": ["x", "y", "x", "x"],
            "user-item_affinity_0": [0.0, 1.5, 0.0, 0.25],
        }
    )
    frame.to_csv(folder / "men.csv")
    pd.DataFrame({"item_id": [0, 1, 2, 3]}).to_csv(folder / "item_context.csv")
    return folder


def test_an_open_bandit_folder_is_read_in_order_of_time(tmp_path: Path) -> None:
    log = read_open_bandit(_bandit_folder(tmp_path), affinities=True)
    assert log.arms == (0, 1, 2, 3)
    assert log.arrays.action.tolist() == [0, 2, 1, 2]
    assert log.arrays.reward.tolist() == [0.0, 1.0, 0.0, 1.0]
    assert log.arrays.propensity is not None
    assert log.arrays.propensity.tolist() == [0.5, 0.25, 1e-6, 0.125]
    assert log.context == ("position", "user_feature_0", "user-item_affinity_0")
    assert log.column("position").tolist() == [3, 1, 2, 1]
    assert log.column("user-item_affinity_0").tolist() == [1.5, 0.0, 0.0, 0.25]
    assert (log.propensity_status, log.reward_range) == ("estimated", (0.0, 1.0))
    assert log.design is not None
    assert log.design.name == "BernoulliTS"


def test_one_position_of_an_open_bandit_folder(tmp_path: Path) -> None:
    log = read_open_bandit(_bandit_folder(tmp_path, "random"), position=1)
    assert log.arrays.action.tolist() == [2, 2]
    assert log.propensity_status == "exact"
    assert log.design is not None
    assert log.design.name == "Uniform"
    with pytest.raises(ParameterError, match=r"men\.csv has no impressions at position 9"):
        read_open_bandit(tmp_path / "random" / "men", position=9)


def test_an_open_bandit_folder_that_lacks_things(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="is not a folder"):
        read_open_bandit(tmp_path / "nowhere")
    folder = tmp_path / "bts" / "men"
    folder.mkdir(parents=True)
    with pytest.raises(ParameterError) as caught:
        read_open_bandit(folder)
    assert len(caught.value.problems) == 2
    (folder / "men.csv").write_text("timestamp,item_id\n2019,1\n")
    (folder / "item_context.csv").write_text("name\nx\n")
    with pytest.raises(ParameterError, match="no column position, click, propensity_score") as caught:
        read_open_bandit(folder)
    assert "item_context.csv has no column item_id" in caught.value.problems


def test_open_bandit_rows_with_no_time(tmp_path: Path) -> None:
    folder = _bandit_folder(tmp_path)
    text = (folder / "men.csv").read_text().replace("2019-11-24 00:01:00+00:00", "yesterday")
    (folder / "men.csv").write_text(text)
    with pytest.raises(ParameterError, match="1 timestamps are not times in ISO 8601, the first in row 3"):
        read_open_bandit(folder)


def _event(played: int, cost: float, chances: dict[int, float], **more: Any) -> dict[str, Any]:
    ranking = [played, *(place for place in chances if place != played)]
    event = {
        "_label_cost": cost,
        "_label_probability": chances[played],
        "_label_Action": played,
        "_labelIndex": played - 1,
        "Version": "1",
        "a": ranking,
        "p": [chances[place] for place in ranking],
        "c": {
            "hour": 7,
            "user": {"age": 30.5, "new": True, "tags": [1, 2]},
            "_multi": [{"article": {"id": "news"}}, {"article": {"id": "sport"}}, {"article": {"id": "art"}}],
        },
    }
    return event | more


def _write(path: Path, events: list[Any]) -> Path:
    path.write_text("\n".join(event if isinstance(event, str) else json.dumps(event) for event in events))
    return path


def test_costs_are_negated_and_propensities_put_in_one_order(tmp_path: Path) -> None:
    first = _event(2, -1.0, {1: 0.1, 2: 0.7, 3: 0.2})
    second = _event(1, 0.25, {1: 0.5, 2: 0.25, 3: 0.25})
    second["c"]["_multi"] = [{"article": {"id": name}} for name in ("art", "news", "sport")]
    log = read_dsjson(_write(tmp_path / "log.dsjson", [first, second]), action_id="article.id")
    assert log.arms == ("news", "sport", "art")
    assert log.arrays.action.tolist() == [1, 2]
    assert log.arrays.reward.tolist() == [1.0, -0.25]
    assert log.arrays.propensities is not None
    assert log.arrays.propensities.tolist() == [[0.1, 0.7, 0.2], [0.25, 0.25, 0.5]]
    assert log.context == ("hour", "user.age", "user.new")
    assert log.column("user.age").tolist() == [30.5, 30.5]


def test_actions_without_names_are_their_places(tmp_path: Path) -> None:
    log = read_dsjson(_write(tmp_path / "x", [_event(3, 0.0, {1: 0.1, 2: 0.2, 3: 0.7})]), context="hour")
    assert log.arms == (1, 2, 3)
    assert log.arrays.action.tolist() == [2]
    assert log.context == ("hour",)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"_label_cost": None}, "no-label"),
        ({"_label_cost": float("nan")}, "no-object"),
        ({"c": {"hour": 3}}, "no-actions"),
        ({"a": [1, 1, 3]}, "bad-ranking"),
        ({"a": [0, 1, 2]}, "zero-based"),
        ({"_skipLearn": "yes"}, "bad-skip"),
        ({"p": [0.5, 0.5]}, "bad-probabilities"),
        ({"p": [0.9, 0.2, 0.2]}, "bad-probabilities"),
        ({"p": [0.0, 0.5, 0.5]}, "impossible"),
        ({"_label_Action": 2}, "other-action"),
        ({"_label_probability": 0.4}, "other-action"),
        ({"pdrop": 0.5}, "changing-pdrop"),
    ],
)
def test_every_damage_of_an_event_is_named(tmp_path: Path, change: dict[str, Any], code: str) -> None:
    good = _event(1, 0.0, {1: 0.5, 2: 0.25, 3: 0.25})
    with pytest.raises(LogValidationError) as caught:
        read_dsjson(_write(tmp_path / "x", [good, good | change]))
    assert _codes(caught.value) == [code]
    assert caught.value.problems[0].rows == (() if code == "changing-pdrop" else (1,))


def test_all_damaged_lines_are_told_at_once(tmp_path: Path) -> None:
    good = _event(1, 0.0, {1: 0.5, 2: 0.25, 3: 0.25})
    lines = ["{not json", good, {"EventId": "7", "RewardValue": 1.0}, "[]", good | {"p": [1.0]}]
    with pytest.raises(LogValidationError) as caught:
        read_dsjson(_write(tmp_path / "x", lines))
    assert _codes(caught.value) == ["no-object", "late-outcome", "bad-probabilities"]
    assert [problem.rows for problem in caught.value.problems] == [(0, 3), (2,), (4,)]


def test_other_actions_than_the_first_event_offers(tmp_path: Path) -> None:
    events = [_event(1, 0.0, {1: 0.5, 2: 0.25, 3: 0.25}) for _ in range(3)]
    events[1]["c"]["_multi"][0]["article"]["id"] = "weather"
    del events[2]["c"]["_multi"][0]["article"]
    with pytest.raises(LogValidationError) as caught:
        read_dsjson(_write(tmp_path / "x", events), action_id="article.id")
    assert [(p.code, p.rows) for p in caught.value.problems] == [
        ("unnamed-action", (2,)),
        ("other-actions", (1,)),
    ]


def test_a_dsjson_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"read_dsjson: file .*nowhere"):
        read_dsjson(tmp_path / "nowhere")
    with pytest.raises(ParameterError, match="contains no events"):
        read_dsjson(_write(tmp_path / "empty", ["", " "]))
    with pytest.raises(ParameterError, match="no event has the shared feature weight; available: hour"):
        read_dsjson(_write(tmp_path / "x", [_event(1, 0.0, {1: 0.5, 2: 0.5, 3: 0.0})]), context=["weight"])
    with pytest.raises(ParameterError, match="2 problems") as caught:
        read_dsjson(tmp_path / "x", action_id="name", context=["weight"])
    assert caught.value.problems[0].endswith("x: no action has the feature name; available: article.id")
    assert "shared feature weight; available: hour" in caught.value.problems[1]


def _trial() -> tuple[pd.DataFrame, pd.DataFrame]:
    adsl = pd.DataFrame(
        {
            "USUBJID": ["s3", "s1", "s2", "s4", "s5"],
            "ITTFL": ["Y", "Y", "Y", "Y", "N"],
            "TRT01P": ["Drug", "Placebo", "Drug", "Drug", "Drug"],
            "TRT01A": ["Drug", "Placebo", "Drug", "Drug", "Drug"],
            "RANDDT": [22000.0, 21990.0, 22000.0, 22010.0, 22011.0],
            "RANDNUM": [3, 1, 2, 4, 5],
            "STAGE": [1, 1, 1, 2, 2],
            "AGE": [50.0, 61.0, 47.0, 70.0, 33.0],
            "PROB": [0.5, 0.5, 0.5, 0.75, 0.75],
        }
    )
    rows = [
        ("s1", "RESP", 8, 0.0),
        ("s2", "RESP", 8, 1.0),
        ("s3", "RESP", 8, 0.5),
        ("s4", "RESP", 8, 1.0),
        ("s1", "RESP", 4, 0.9),
        ("s1", "OTHER", 8, 7.0),
    ]
    return adsl, pd.DataFrame(rows, columns=["USUBJID", "PARAMCD", "AVISITN", "AVAL"])


_USUAL: dict[str, Any] = {
    "parameter": "RESP",
    "order": ["RANDDT", "RANDNUM"],
    "records": {"AVISITN": 8},
    "covariates": ["AGE"],
    "batch": "STAGE",
}


def _check_trial(log: Any) -> None:
    assert log.frame["unit_id"].tolist() == ["s1", "s2", "s3", "s4"]
    assert log.frame["action"].tolist() == ["Placebo", "Drug", "Drug", "Drug"]
    assert log.arrays.reward.tolist() == [0.0, 1.0, 0.5, 1.0]
    assert log.arrays.propensity.tolist() == [0.5, 0.5, 0.5, 0.75]
    assert log.arrays.batch.tolist() == [0, 0, 0, 1]
    assert log.column("AGE").tolist() == [61.0, 47.0, 50.0, 70.0]


def test_propensities_from_a_column_or_a_table(tmp_path: Path) -> None:
    adsl, analysis = _trial()
    _check_trial(read_adam(adsl, analysis, propensity="PROB", **_USUAL))
    table = pd.DataFrame({"STAGE": [2, 1], "Placebo": [0.25, 0.5], "Drug": [0.75, 0.5]})
    log = read_adam(adsl, analysis, propensity=table, **_USUAL)
    _check_trial(log)
    assert log.arrays.propensities is not None
    assert log.arrays.propensities[:, list(log.arms).index("Placebo")].tolist() == [0.5, 0.5, 0.5, 0.25]
    adsl.to_csv(tmp_path / "adsl.csv", index=False)
    analysis.to_parquet(tmp_path / "adeff.parquet")
    _check_trial(read_adam(tmp_path / "adsl.csv", tmp_path / "adeff.parquet", propensity="PROB", **_USUAL))


def test_sas_transport_files(tmp_path: Path) -> None:
    adsl, analysis = _trial()
    first = write_transport(tmp_path / "adsl.xpt", adsl)
    second = write_transport(tmp_path / "adeff.xpt", analysis, "ADEFF")
    _check_trial(read_adam(first, second, propensity="PROB", **_USUAL))


def test_one_probability_an_arm() -> None:
    adsl, analysis = _trial()
    log = read_adam(adsl, analysis, propensity={"Placebo": 0.25, "Drug": 0.75}, **_USUAL)
    assert log.arrays.propensity is not None
    assert log.arrays.propensity.tolist() == [0.25, 0.75, 0.75, 0.75]
    with pytest.raises(ParameterError, match="propensity has no column for Drug"):
        read_adam(adsl, analysis, propensity={"Placebo": 1.0}, **_USUAL)


def test_subjects_who_got_another_treatment_are_counted() -> None:
    adsl, analysis = _trial()
    adsl.loc[3, "TRT01A"] = "Placebo"
    with pytest.warns(
        AdaptinfWarning, match=r"1 of 4 subjects received a treatment other than the planned one \(s4\)"
    ):
        log = read_adam(adsl, analysis, **_USUAL)
    assert log.frame["action"].tolist()[3] == "Drug"
    with pytest.warns(AdaptinfWarning):
        log = read_adam(adsl, analysis, treatment="actual", **_USUAL)
    assert log.frame["action"].tolist()[3] == "Placebo"
    assert log.propensity_status == "absent"
    with pytest.raises(ParameterError, match="propensities refer to the planned treatment"):
        read_adam(adsl, analysis, treatment="actual", propensity="PROB", **_USUAL)


def test_nobody_is_dropped() -> None:
    adsl, analysis = _trial()
    adsl = pd.concat([adsl, adsl.iloc[[1]].assign(ITTFL="Y", RANDNUM=9)], ignore_index=True)
    adsl.loc[adsl["USUBJID"] == "s3", "RANDDT"] = np.nan
    analysis = pd.concat([analysis, analysis.iloc[[1]]])[lambda frame: frame["USUBJID"] != "s4"]
    with pytest.raises(LogValidationError) as caught:
        read_adam(adsl, analysis, **_USUAL)
    assert _codes(caught.value) == ["repeated-subject", "no-outcome", "several-outcomes", "no-order"]
    assert "no record for s4" in str(caught.value)
    assert "several records for s2" in str(caught.value)


def test_the_order_of_assignment_must_be_told() -> None:
    adsl, analysis = _trial()
    with pytest.raises(LogValidationError, match="subjects share a position in the order"):
        read_adam(adsl, analysis, **(_USUAL | {"order": "RANDDT"}))


def test_a_missing_outcome_is_an_error_of_the_log() -> None:
    adsl, analysis = _trial()
    analysis.loc[0, "AVAL"] = np.nan
    with pytest.raises(LogValidationError) as caught:
        read_adam(adsl, analysis, **_USUAL)
    assert caught.value.problems[0].rows == (0,)


def test_what_is_missing_in_the_data_sets_is_told_at_once() -> None:
    adsl, analysis = _trial()
    with pytest.raises(ParameterError) as caught:
        read_adam(
            adsl.drop(columns=["TRT01A", "AGE"]),
            analysis.drop(columns="AVAL"),
            treatment="other",
            **_USUAL,
        )
    assert caught.value.problems == (
        "treatment must be planned or actual, got 'other'",
        "ADSL has no column TRT01A, AGE",
        "the analysis data set has no column AVAL",
    )
    with pytest.raises(ParameterError, match="no subject with ITTFL = Y") as caught:
        read_adam(adsl.assign(ITTFL="N"), analysis, **(_USUAL | {"parameter": "NONE"}))
    assert len(caught.value.problems) == 2
    with pytest.raises(ParameterError, match=r"must end in \.xpt, \.csv, \.parquet"):
        read_adam("adsl.sas7bdat", analysis, **_USUAL)
    with pytest.raises(FileNotFoundError, match=r"read_adam: file nowhere\.csv"):
        read_adam("nowhere.csv", analysis, **_USUAL)


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"PHASE": [1, 2], "Placebo": [0.5, 0.5], "Drug": [0.5, 0.5]}, "shares no column with ADSL"),
        ({"STAGE": [1, 2]}, "has no columns named after arms"),
        ({"STAGE": [1, 1], "Placebo": [0.5, 0.4], "Drug": [0.5, 0.6]}, "several rows for the same STAGE"),
    ],
)
def test_a_table_of_propensities_that_does_not_fit(table: dict[str, Any], told: str) -> None:
    adsl, analysis = _trial()
    with pytest.raises(ParameterError, match=told):
        read_adam(adsl, analysis, propensity=pd.DataFrame(table), **_USUAL)


def test_a_stage_that_the_table_of_propensities_lacks() -> None:
    adsl, analysis = _trial()
    table = pd.DataFrame({"STAGE": [1], "Placebo": [0.5], "Drug": [0.5]})
    with pytest.raises(LogValidationError) as caught:
        read_adam(adsl, analysis, propensity=table, **_USUAL)
    assert [(p.code, p.rows) for p in caught.value.problems] == [("no-propensity", (3,))]


def _adam(adsl: Any, analysis: Any, **options: Any) -> Any:
    return read_adam(adsl, analysis, parameter="RESP", **options)


def _bandit(folder: Any) -> Any:
    return read_open_bandit(folder)


def _dsjson(path: Any, **options: Any) -> Any:
    return read_dsjson(path, **options)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (
            lambda: _bandit(None),
            "folder must be the name of a file or folder, got NoneType",
        ),
        (lambda: _bandit(EMPTY), "folder must be the name of a file or folder, got DataFrame"),
        (lambda: _dsjson(None), "read_dsjson: path must be the name of a file or folder, got NoneType"),
        (lambda: _dsjson("x", context=3), "read_dsjson: context must be the name of a column or a list"),
        (
            lambda: _adam(None, EMPTY, order="RANDNUM"),
            "read_adam: adsl must be the name of a file or folder or a DataFrame, got NoneType",
        ),
        (lambda: _adam(EMPTY, 3, order="RANDNUM"), "analysis must be the name"),
        (
            lambda: _adam(EMPTY, EMPTY, order=None),
            "read_adam: order must be the name of a column or a list of names, got None",
        ),
        (lambda: _adam(EMPTY, EMPTY, order=[1]), "a list of names, got [1]"),
        (
            lambda: _adam(EMPTY, EMPTY, order="X", covariates=3),
            "covariates must be the name",
        ),
        (
            lambda: _adam(EMPTY, EMPTY, order="X", records=3),
            "records must be a mapping",
        ),
        (
            lambda: _adam(EMPTY, EMPTY, order="X", propensity=0.5),
            "propensity must be a",
        ),
        (
            lambda: _adam(EMPTY, EMPTY, order="X", treatment=EMPTY),
            "treatment must be planned or actual, got DataFrame",
        ),
    ],
)
def test_odd_kinds_of_arguments_are_one_clear_error(use: Callable[[], Any], message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        use()
    assert message in str(caught.value)
    assert len(caught.value.problems) == 1


def test_adam_reads_text_outcomes_codes_and_says_what_it_left_out(tmp_path: Path) -> None:
    adsl, adeff = _trial()
    adsl = adsl.assign(TRT01P=["01", "1", "01", "01", "1"], TRT01A=["01", "1", "01", "01", "1"])
    adeff = adeff.assign(AVALC=np.where(adeff["AVAL"] > 0.4, "Y", "N"))
    adsl.to_csv(tmp_path / "adsl.csv", index=False)
    adeff.to_csv(tmp_path / "adeff.csv", index=False)
    log = read_adam(
        tmp_path / "adsl.csv",
        tmp_path / "adeff.csv",
        parameter="RESP",
        order="RANDNUM",
        records={"AVISITN": 8},
        value="AVALC",
        success="Y",
    )
    assert log.arms == ("01", "1")
    assert log.arrays.reward.tolist() == [0.0, 1.0, 1.0, 1.0]
    assert log.reward_range == (0.0, 1.0)
    report = str(log.report)
    assert f"dropped: {claims.OUTSIDE_POPULATION(left=1, everyone=5, population='ITTFL')}\n" in report
    assert f"order: {claims.SUBJECTS_SORTED(keys='RANDNUM')}" in report
    assert f"labels: in ADSL, {claims.AS_WRITTEN(name='TRT01P', example='01')}\n" in report


def test_open_bandit_says_what_it_left_out(tmp_path: Path) -> None:
    folder = _bandit_folder(tmp_path)
    report = str(read_open_bandit(folder, position=1).report)
    assert report.startswith("Read from Open Bandit file men.csv: 2 rounds")
    assert f"dropped: {claims.OTHER_POSITIONS(others=2, total=4, position=1)}" in report
    whole = str(read_open_bandit(folder).report)
    assert f"order: {claims.IMPRESSIONS_SORTED()}" in whole
    assert "dropped" not in whole
