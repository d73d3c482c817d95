"""What is rarer than the arguments of a log stands in `columns=`, `reading=` and `about=`."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adaptinf as ai
from adaptinf.errors import LogValidationError
from adaptinf.inference.inputs.rounds import log_of_rounds
from adaptinf.log.validation import OF_AGGREGATES, OF_LOGS, OF_TABLES, nested_options

FRAME = pd.DataFrame(
    {
        "arm": ["a", "b", "a", "b"],
        "y": ["Y", "N", "N", "Y"],
        "p": 0.5,
        "day": ["03/04/2020", "03/04/2020", "02/04/2020", "02/04/2020"],
        "part": ["one", "one", "two", "two"],
        "key": [7, 5, 9, 1],
    }
)
ROLES: dict[str, Any] = {"action": "arm", "reward": "y", "propensity": "p", "batch": "day"}
READING: dict[str, Any] = {"success": "Y", "sort": True, "date_format": "%d/%m/%Y"}
SUMS = pd.DataFrame({"day": [1, 1], "arm": ["a", "b"], "n": [5, 5], "y": [2, 3]})
NAMES = {"batch": "day", "arm": "arm", "n": "n", "sum": "y", "sum_squares": "y"}


def told(make: Any) -> str:
    with pytest.raises(LogValidationError) as caught:
        make()
    return str(caught.value)


@pytest.mark.parametrize("call", [ai.AdaptiveLog, ai.Sums, ai.aggregate])
def test_no_front_has_more_than_twenty_arguments(call: Any) -> None:
    given = [one for one in inspect.signature(call).parameters.values() if one.kind is one.KEYWORD_ONLY]
    assert len(given) <= 20


def test_options_of_every_dict_reach_the_log() -> None:
    log = ai.AdaptiveLog(
        FRAME,
        **ROLES,
        columns={"phase": "part"},
        reading=READING,
        about={"design": "mine", "context_free": True, "feedback_rounds": 2, "recommended": "b"},
    )
    assert log.arrays.reward.tolist() == [0.0, 1.0, 1.0, 0.0]
    assert log.phases == ("two", "one")
    assert log.design is not None
    assert (log.design.name, log.context_free, log.feedback_rounds, log.recommended) == ("mine", True, 2, "b")


def test_what_a_dict_cannot_hold_is_one_error() -> None:
    message = told(
        lambda: ai.AdaptiveLog(
            FRAME,
            **ROLES,
            columns={"phase": "prat", "phsae": "part"},
            reading={**READING, "sep": ";", "decimal": ",", "sotr": True, "round_to": 3},
            about={"sort": True, "feedback_rounds": 9},
        )
    )
    assert message == (
        "the log has 7 problems (rows are counted from 0):\n  - columns= has no option 'phsae'; did you "
        "mean 'phase'?\n  - reading= has no option 'sotr'; did you mean 'sort'?\n  - reading= has no option "
        "'round_to'; its options are 'sep', 'decimal', 'encoding', 'missing_values', 'date_format', "
        "'timezone', 'sort', 'every', 'round_propensities', 'success'\n  - reading= has options "
        "that apply only to files, 'sep', 'decimal', but the log is created from a frame: "
        "omit it\n  - about= has no option "
        "'sort': give it in reading=\n  - there is no column 'prat' for phase; did you mean 'part'?\n  - "
        "feedback_rounds must be a whole number from 0 to 4, got 9"
    )


def test_a_group_must_be_a_dict() -> None:
    message = told(lambda: ai.AdaptiveLog(FRAME, **ROLES, reading=READING, about="UCB", columns=["part"]))
    assert message == (
        "the log has 2 problems (rows are counted from 0):\n"
        "  - columns= must be a dict of options by name, got ['part']\n"
        "  - about= must be a dict of options by name, got 'UCB'"
    )


def test_sums_and_aggregates_take_dicts_too() -> None:
    assert ai.Sums(SUMS, **NAMES, about={"context": ["x"], "feedback_rounds": 4}).context == ("x",)
    message = told(
        lambda: ai.Sums(SUMS, **NAMES, columns={"covariate_sum": "y"}, reading={"sort": True}, about=3)
    )
    assert message == (
        "the table of sums has 3 problems (rows are counted from 0):\n"
        "  - columns= has no option 'covariate_sum'; did you mean 'covariate_sum_cubes'?\n"
        "  - reading= has no option 'sort'; its options are 'sep', 'decimal', 'encoding', "
        "'missing_values', 'date_format', 'round_propensities'\n"
        "  - about= must be a dict of options by name, got 3"
    )
    rows = FRAME.assign(y=[1, 0, 1, 0], day=[1, 1, 2, 2])
    assert ai.aggregate(rows, **ROLES, about={"feedback_rounds": 3}).feedback_rounds == 3
    message = told(lambda: ai.aggregate(rows, **ROLES, reading={"time_zone": "UTC"}, about={"desing": "x"}))
    assert message == (
        "the table has 2 problems (rows are counted from 0):\n"
        "  - reading= has no option 'time_zone'; did you mean 'timezone'?\n"
        "  - about= has no option 'desing'; did you mean 'design'?"
    )


@pytest.mark.parametrize("groups", [OF_LOGS, OF_TABLES, OF_AGGREGATES])
def test_flat_options_go_to_their_dicts(groups: Any) -> None:
    flat = {name: object() for options in groups.values() for name in options}
    nested = nested_options({"action": "arm", **flat}, groups)
    assert nested.pop("action") == "arm"
    assert {group: tuple(options) for group, options in nested.items()} == dict(groups)
    assert {name: value for options in nested.values() for name, value in options.items()} == flat


def test_flat_options_join_those_of_a_dict_and_leave_what_is_none() -> None:
    assert nested_options({"sort": True, "reading": {"success": "Y"}}) == {
        "reading": {"success": "Y", "sort": True}
    }
    assert nested_options({"sort": True, "reading": 3}) == {"reading": 3}


def test_a_file_is_read_by_flat_options_and_by_dicts(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "log.csv", index=False)
    flat = ai.read_log(tmp_path / "log.csv", **ROLES, **READING, phase="part", feedback_rounds=1)
    nested = ai.read_log(
        tmp_path / "log.csv",
        **ROLES,
        columns={"phase": "part"},
        reading=READING,
        about={"feedback_rounds": 1},
    )
    assert flat.equals(nested)
    assert flat.feedback_rounds == 1


@pytest.mark.parametrize("name", ["log.parquet", "log.csv"])
def test_ids_of_decisions_are_kept(tmp_path: Path, name: str) -> None:
    log = ai.AdaptiveLog(FRAME, **ROLES, reading=READING, id="key")
    assert log.ids is not None
    assert log.ids.tolist() == [9, 1, 7, 5]
    assert log.columns["key"] == "decision_id"
    assert log_of_rounds(log, np.array([True, False, True, False])).ids.tolist() == [9, 7]
    (log.to_csv if name == "log.csv" else log.to_parquet)(tmp_path / name)
    again = ai.read_log(tmp_path / name)
    assert again.equals(log)
    assert again.ids.tolist() == [9, 1, 7, 5]
    assert ai.AdaptiveLog(FRAME, **ROLES, reading=READING).ids is None


def test_ids_must_be_labels() -> None:
    frame = FRAME.assign(key=[2.0**53, None, 3.0, 4.0])
    assert told(lambda: ai.AdaptiveLog(frame, **ROLES, reading=READING, id="key")) == (
        "the log has 2 problems (rows are counted from 0):\n  - id column 'key' has no value [row 1]\n  - "
        "id column 'key' has floats of 2**53 or more, each of which represents several whole numbers: read "
        "it as text [row 0]"
    )


def test_a_context_may_have_the_name_of_ids_where_there_are_none(tmp_path: Path) -> None:
    frame = FRAME.rename(columns={"key": "decision_id"})
    log = ai.AdaptiveLog(frame, **ROLES, reading=READING, context="decision_id")
    log.to_parquet(tmp_path / "log.parquet")
    again = ai.read_log(tmp_path / "log.parquet")
    assert again.equals(log)
    assert again.ids is None
    assert again.arrays.context["decision_id"].tolist() == [9, 1, 7, 5]


def test_ids_are_in_no_public_part() -> None:
    design = ai.designs.PrivateSuccessiveElimination(epsilon=1.0)
    log = design.run(ai.environments.BernoulliArms([0.9, 0.2]), horizon=3_000, rng=0)
    assert log.public().left_out["decision_id"] == "decision identifiers can be linked to participants"
