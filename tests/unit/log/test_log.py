"""AdaptiveLog: its columns, arms, propensities, files and equality."""

from __future__ import annotations

import json
import math
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adaptinf.errors import LogValidationError, ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.log import RELEASE_COLUMNS, AdaptiveLog, DesignRecord, LogArrays, read_log
from adaptinf.log.validation import nested_options

FRAME = pd.DataFrame(
    {
        "arm": ["b", "a", "b", "c"],
        "y": [1, 0, 1, 0],
        "pb": [0.5, 0.25, 0.25, 0.125],
        "pa": [0.25, 0.5, 0.5, 0.375],
        "pc": [0.25, 0.25, 0.25, 0.5],
        "week": [12, 12, 13, 15],
        "who": ["u", "v", "w", "u"],
        "when": pd.date_range("2024-01-01", periods=4, freq="7h"),
        "stage": ["two", "two", "one", "one"],
        "coin": [True, False, True, True],
        "age": [30, 41, 29, 55],
        "town": pd.Categorical(["m", "n", "m", "m"], categories=["z", "m", "n"]),
        "other": [1, 2, 3, 4],
    },
    index=[7, 7, 3, 0],
)
OPTIONS: dict[str, Any] = {
    "action": "arm",
    "reward": "y",
    "propensities": {"a": "pa", "b": "pb", "c": "pc"},
    "context": ["age", "town"],
    "batch": "week",
    "unit": "who",
    "round": "when",
    "columns": {"phase": "stage", "randomised": "coin"},
    "reward_range": (0, 1),
}


def trusted_log(arms: tuple[Any, ...] = ("a", "b", "c"), **metadata: Any) -> AdaptiveLog:
    """Log of five rounds from arrays, with every kind of column."""
    table = np.array(
        [[1 / 3, 1 / 3, 1 / 3], [0.1, 0.2, 0.7], [0.6, 0.3, 0.1], [0.0, 0.5, 0.5], [0.2, 0.3, 0.5]]
    )
    action = np.array([0, 2, 1, 1, 2])
    arrays = LogArrays(
        action=action,
        reward=np.array([0.1, -1e-300, math.pi, 1e15, 2.0]),
        propensity=table[np.arange(5), action],
        propensities=table,
        batch=np.array([0, 0, 1, 1, 2]),
        phase=np.array([0, 0, 1, 1, 1]),
        randomised=np.array([True, True, False, False, True]),
        context={"feature": np.array([4, 0, 1, 1, 3]), "x": np.array([0.1, 0.2, 0.3, 1e-9, 5])},
    )
    return AdaptiveLog.from_arrays(arrays, arms=arms, phases=("learning", "estimation"), **metadata)


# Columns of a user's frame


def test_arrays_of_a_users_frame() -> None:
    log = AdaptiveLog(FRAME, **OPTIONS)
    arrays = log.arrays
    assert log.arms == ("a", "b", "c")
    assert arrays.action.tolist() == [1, 0, 1, 2]
    assert arrays.reward.tolist() == [1.0, 0.0, 1.0, 0.0]
    assert arrays.propensity.tolist() == [0.5, 0.5, 0.25, 0.5]
    assert arrays.propensities.tolist() == [
        [0.25, 0.5, 0.25],
        [0.5, 0.25, 0.25],
        [0.5, 0.25, 0.25],
        [0.375, 0.125, 0.5],
    ]
    assert arrays.batch.tolist() == [0, 0, 1, 2]
    assert log.phases == ("two", "one")
    assert arrays.phase.tolist() == [0, 0, 1, 1]
    assert arrays.randomised.tolist() == [True, False, True, True]
    assert log.context == ("age", "town")
    assert arrays.context["age"].tolist() == [30, 41, 29, 55]
    assert arrays.context["town"].tolist() == ["m", "n", "m", "m"]
    types = [
        arrays.action.dtype,
        arrays.reward.dtype,
        arrays.batch.dtype,
        arrays.phase.dtype,
        arrays.randomised.dtype,
    ]
    assert types == [np.int64, np.float64, np.int64, np.int64, np.bool_]


def test_canonical_frame_has_the_columns_in_order() -> None:
    frame = AdaptiveLog(FRAME, **OPTIONS).frame
    assert list(frame.columns) == [
        "t", "unit_id", "action", "reward", "propensity", "propensity_a", "propensity_b", "propensity_c",
        "batch", "phase", "randomised", "age", "town",
    ]  # fmt: skip
    assert list(frame.index) == [0, 1, 2, 3]
    assert frame["action"].tolist() == FRAME["arm"].tolist()
    assert frame["phase"].tolist() == FRAME["stage"].tolist()
    assert frame["t"].tolist() == FRAME["when"].tolist()
    assert frame["unit_id"].tolist() == FRAME["who"].tolist()
    assert frame["propensity_a"].tolist() == FRAME["pa"].tolist()


def test_the_least_that_a_log_needs() -> None:
    log = AdaptiveLog(FRAME, action="arm", reward="y")
    assert list(log.frame.columns) == ["t", "action", "reward"]
    assert log.frame["t"].tolist() == [1, 2, 3, 4]
    assert (log.n_rounds, log.n_arms, log.context, log.phases) == (4, 3, (), ())
    assert log.propensity_status == "absent"
    assert log.arrays.propensity is None
    assert log.arrays.propensities is None
    assert [log.guarantee, log.reward_guarantee, log.design, log.noise, log.feedback_rounds] == [None] * 5
    assert log.releases.empty
    assert tuple(log.releases.columns) == RELEASE_COLUMNS


def test_columns_by_the_users_name_and_by_the_canonical_one() -> None:
    log = AdaptiveLog(FRAME, **OPTIONS)
    assert log.columns == {
        "arm": "action", "y": "reward", "week": "batch", "who": "unit_id", "when": "t", "stage": "phase",
        "coin": "randomised", "pa": "propensity_a", "pb": "propensity_b", "pc": "propensity_c",
        "age": "age", "town": "town",
    }  # fmt: skip
    for users, canonical in log.columns.items():
        assert log.column(users).tolist() == log.column(canonical).tolist() == log.frame[canonical].tolist()
    assert log.column("propensity").tolist() == [0.5, 0.5, 0.25, 0.5]
    with pytest.raises(ParameterError, match="there is no column 'other'; the log has 'arm', 'y'"):
        log.column("other")


def test_the_users_frame_is_neither_changed_nor_shared() -> None:
    frame = FRAME.copy()
    before = frame.copy()
    log = AdaptiveLog(frame, **OPTIONS)
    pd.testing.assert_frame_equal(frame, before)
    columns = [log.arrays.reward, log.arrays.propensities, log.arrays.randomised, log.arrays.context["age"]]
    for values in [*columns, log.column("t")]:
        for name in frame:
            assert not np.shares_memory(values, np.asarray(frame[name]))
        assert values.flags.writeable


def test_changing_the_shown_frame_does_not_change_the_log() -> None:
    log = AdaptiveLog(FRAME, **OPTIONS)
    shown = log.frame
    shown.loc[0, "reward"] = 99.0
    shown["new"] = 1
    assert log.frame.loc[0, "reward"] == 1.0
    assert log.arrays.reward[0] == 1.0
    assert "new" not in log.frame


def test_polars_and_pandas_frames_give_equal_logs() -> None:
    frame = pl.from_pandas(FRAME)
    assert AdaptiveLog(frame, **OPTIONS).equals(AdaptiveLog(FRAME, **OPTIONS))


def test_polars_columns_of_many_types() -> None:
    frame = pl.DataFrame(
        {
            "arm": pl.Series(["x", "y", "x"], dtype=pl.Enum(["y", "x", "unused"])),
            "y": pl.Series([1, 2, 3], dtype=pl.UInt8),
            "p": pl.Series([0.5, 0.25, 1.0], dtype=pl.Float32),
            "when": pl.Series([1, 5, 9]).cast(pl.Datetime("ms")),
            "c": pl.Series([True, False, None]),
        }
    )
    log = AdaptiveLog(frame, action="arm", reward="y", propensity="p", round="when")
    assert log.frame["action"].tolist() == ["x", "y", "x"]
    assert log.arrays.propensity.tolist() == [0.5, 0.25, 1.0]
    assert log.column("t").dtype.kind == "M"
    with pytest.raises(LogValidationError) as caught:
        AdaptiveLog(frame, action="arm", reward="c", columns={"randomised": "c"})
    assert [p.code for p in caught.value.problems] == [
        "column-used-twice",
        "missing-reward",
        "missing-randomised",
    ]
    assert caught.value.problems[1].rows == (2,)


@pytest.mark.parametrize(
    "values",
    [
        pd.array([1, 0, 1, 0], dtype="Int8"),
        pd.array([True, False, True, False], dtype="boolean"),
        pd.array([1, 0, 1, 0], dtype="Float32"),
        pd.array([1, 0, 1, 0], dtype="int64[pyarrow]"),
        pd.array([1.0, 0, 1, 0], dtype="double[pyarrow]"),
        pd.arrays.SparseArray([1, 0, 1, 0]),
        pd.Categorical([1, 0, 1, 0]),
        np.array([1, 0, 1, 0], dtype=np.float16),
        np.array([1, 0, 1, 0], dtype=bool),
    ],
)
def test_rewards_of_every_numeric_type(values: Any) -> None:
    log = AdaptiveLog(FRAME.assign(y=values), action="arm", reward="y", reward_range=(0, 1))
    assert log.arrays.reward.tolist() == [1.0, 0.0, 1.0, 0.0]
    assert log.arrays.reward.dtype == np.float64


@pytest.mark.parametrize(
    ("values", "shown", "kind"),
    [
        (np.array([1, 2, 3, 4], dtype=np.uint8), [1, 2, 3, 4], "i"),
        (np.array([1.5, 2, 3, 4], dtype=np.float32), [1.5, 2, 3, 4], "f"),
        ([True, False, True, True], [True, False, True, True], "b"),
        (pd.Series([True, False, True, True], dtype=object).to_numpy(), [True, False, True, True], "b"),
        (pd.array([1, 2, 3, 4], dtype="Int64"), [1, 2, 3, 4], "i"),
        (pd.Categorical([3, 1, 3, 1]), [3, 1, 3, 1], "i"),
        (pd.array(["q", "r", "q", ""], dtype="string"), ["q", "r", "q", ""], "O"),
    ],
)
def test_contexts_of_every_type(values: Any, shown: list[Any], kind: str) -> None:
    log = AdaptiveLog(FRAME.assign(x=values), action="arm", reward="y", context="x")
    assert log.arrays.context["x"].tolist() == shown
    assert log.arrays.context["x"].dtype.kind == kind


def test_times_with_a_zone_become_utc() -> None:
    when = pd.date_range("2024-07-01 12:00", periods=4, tz="Europe/Paris")
    log = AdaptiveLog(FRAME.assign(when=when), action="arm", reward="y", round="when")
    assert log.column("t")[0] == np.datetime64("2024-07-01T10:00")


# Arms and propensities


@pytest.mark.parametrize(
    ("actions", "arms"),
    [
        (["b", "a", "c", "a"], ("a", "b", "c")),
        ([10, 9, 2, 9], (2, 9, 10)),
        ([True, False, True, True], (False, True)),
        ([2.5, 0.5, 2.5, 2.5], (0.5, 2.5)),
        (pd.Series(["b", 3, "a", 3], dtype=object).to_numpy(), ("b", 3, "a")),
        (pd.Categorical(["b", "a", "b", "a"], categories=["q", "b", "a"]), ("a", "b")),
        (pd.array([5, 4, 5, 4], dtype="Int64"), (4, 5)),
        ([2**70, 3, 2**70, 3], (3, 2**70)),
    ],
)
def test_arms_are_sorted_where_of_one_type(actions: Any, arms: tuple[Any, ...]) -> None:
    log = AdaptiveLog(FRAME.assign(arm=actions), action="arm", reward="y")
    assert log.arms == arms
    assert list(map(type, log.arms)) == list(map(type, arms))
    assert [log.arms[code] for code in log.arrays.action] == list(actions)
    assert log.frame["action"].tolist() == list(actions)


def test_declared_arms_fix_the_order_and_may_never_be_chosen() -> None:
    log = AdaptiveLog(FRAME, action="arm", reward="y", arms=["c", "z", "a", "b"])
    assert log.arms == ("c", "z", "a", "b")
    assert log.arrays.action.tolist() == [3, 2, 3, 0]
    assert log.n_arms == 4


def test_declared_arms_of_numpy_type_become_plain() -> None:
    log = AdaptiveLog(FRAME.assign(arm=[1, 0, 1, 0]), action="arm", reward="y", arms=np.arange(3))
    assert log.arms == (0, 1, 2)
    assert set(map(type, log.arms)) == {int}


@pytest.mark.parametrize(
    ("actions", "extra", "arms"),
    [
        ([0, 1, 0, 1], "2", (0, 1, 2)),
        (["0", "1", "0", "1"], "2", ("0", "1", "2")),
        ([False] * 4, "True", (False, True)),
        ([0.5, 2.0, 0.5, 2.0], "3.0", (0.5, 2.0, 3.0)),
    ],
)
def test_columns_named_after_arms_are_picked_up(
    actions: list[Any], extra: str, arms: tuple[Any, ...]
) -> None:
    shares = {f"propensity_{arm}": 1 / len(arms) for arm in arms}
    frame = FRAME.assign(arm=actions, **shares)
    log = AdaptiveLog(frame, action="arm", reward="y")
    assert log.arms == arms
    assert log.arrays.propensities.tolist() == [[1 / len(arms)] * len(arms)] * 4
    assert log.propensity_status == "exact"
    assert log.columns[f"propensity_{extra}"] == f"propensity_{extra}"


def test_a_column_that_looks_like_an_arms_is_left_alone_where_it_cannot_be_one() -> None:
    frame = FRAME.assign(arm=[0, 1, 0, 1], propensity_score=0.7)
    log = AdaptiveLog(frame, action="arm", reward="y", propensity="propensity_score")
    assert log.arms == (0, 1)
    assert log.arrays.propensities is None
    assert log.arrays.propensity.tolist() == [0.7] * 4
    named = frame.assign(propensity_0=0.5, propensity_1=0.5, propensity_02=0.5)
    assert AdaptiveLog(named, action="arm", reward="y").arms == (0, 1)
    with_names = FRAME.assign(propensity_a=0.3, propensity_b=0.3, propensity_c=0.4, propensity_score=0.7)
    with pytest.raises(LogValidationError, match=r"rows of .*'propensity_score' do not sum to 1"):
        AdaptiveLog(with_names, action="arm", reward="y")
    assert AdaptiveLog(with_names, action="arm", reward="y", arms=["a", "b", "c"]).n_arms == 3
    chosen = with_names.assign(propensity_score=[0.3, 0.3, 0.3, 0.4])
    assert AdaptiveLog(chosen, action="arm", reward="y", propensity="propensity_score").n_arms == 3


def test_the_chosen_propensity_is_used_as_given() -> None:
    frame = FRAME.assign(p=[0.5 + 1e-9, 0.5, 0.25, 0.5])
    log = AdaptiveLog(frame, **OPTIONS, propensity="p")
    assert log.arrays.propensity[0] == 0.5 + 1e-9
    assert log.arrays.propensities[0, 1] == 0.5


def test_propensity_of_the_chosen_arm_alone() -> None:
    log = AdaptiveLog(
        FRAME, action="arm", reward="y", propensity="pa", about={"propensity_status": "estimated"}
    )
    assert log.arrays.propensity.tolist() == [0.25, 0.5, 0.5, 0.375]
    assert log.arrays.propensities is None
    assert log.propensity_status == "estimated"


# Logs from arrays


def test_from_arrays_keeps_the_arrays_and_derives_the_rest() -> None:
    log = trusted_log(guarantee=PrivacyGuarantee(1.0, unit="record"))
    assert log.propensity_status == "exact"
    assert log.reward_guarantee == PrivacyGuarantee(1.0)
    assert log.columns == {name: name for name in log.frame.columns}
    assert log.column("action").tolist() == ["a", "c", "b", "b", "c"]
    assert log.column("phase").tolist() == ["learning"] * 2 + ["estimation"] * 3
    assert AdaptiveLog.from_arrays(log.arrays, arms=log.arms).arrays is log.arrays


def test_anticipating_guarantees_imply_nothing_about_rewards() -> None:
    anticipating = PrivacyGuarantee(1.0, unit="record", notion="anticipating")
    assert trusted_log(guarantee=anticipating).reward_guarantee is None
    stated = PrivacyGuarantee(2.0)
    assert trusted_log(guarantee=anticipating, reward_guarantee=stated).reward_guarantee == stated


def test_a_trusted_log_passes_the_validation_of_its_own_frame() -> None:
    log = trusted_log()
    roles = {name: name for name in ("action", "reward", "propensity", "batch", "phase", "randomised")}
    again = AdaptiveLog(log.frame, **nested_options(roles), context=["feature", "x"], round="t")
    for name in ("action", "reward", "propensity", "propensities", "batch", "phase", "randomised"):
        assert np.array_equal(getattr(again.arrays, name), getattr(log.arrays, name))


def test_releases_may_be_a_mapping() -> None:
    columns = {
        "round": [1],
        "name": ["sum"],
        "group": [0],
        "value": [0.5],
        "mechanism": ["laplace"],
        "scale": [2.0],
    }
    log = trusted_log(releases=columns)
    assert log.releases.to_dict("list") == columns
    assert log.releases is log.releases


def test_repr_names_what_matters() -> None:
    log = trusted_log(guarantee=PrivacyGuarantee(0.5), design=DesignRecord("PrivateUCB"))
    assert repr(log) == (
        "AdaptiveLog: 5 rounds, 3 arms ('a', 'b', 'c')\n"
        "  design: PrivateUCB\n"
        "  guarantee: epsilon = 0.5, pure, per reward, central, standard; stated by the user, not derived\n"
        "  propensities: exact, every arm"
    )
    many = AdaptiveLog(FRAME, action="arm", reward="y", propensity="pa", arms=["a", "b", "c", *range(9)])
    assert "12 arms ('a', 'b', 'c', 0, 1, 2, 3, 4, ...)" in repr(many)
    assert "chosen arm only" in repr(many)
    assert "propensities: absent" in repr(AdaptiveLog(FRAME, action="arm", reward="y"))


# Files


RELEASES = pd.DataFrame(
    {
        "round": [1, 5, 5],
        "name": ["contrast_sum", "arrivals", 'é, "quoted"\n'],
        "group": [0, 1, 2],
        "value": [np.nan, -np.inf, 0.1 + 0.2],
        "mechanism": ["laplace", "laplace", "gaussian"],
        "scale": [1 / 3, np.inf, 2.0],
    }
)
METADATA: dict[str, Any] = {
    "guarantee": PrivacyGuarantee(math.inf, unit="record", reasons=("not corrected", "§")),
    "reward_guarantee": PrivacyGuarantee(0.3, 1e-6),
    "design": DesignRecord(
        "DPConSE",
        {
            "epsilon": 0.1 + 0.2,
            "bound": math.inf,
            "features": np.array([[1.0, np.nan], [0.5, 2.0]]),
            "steps": (1, 2),
            "nested": {"float": [None, True, "x"], 3: 4},
            "named_like_a_tag": {"tuple": "x"},
        },
    ),
    "noise": "release",
    "reward_range": (-1.0, 1e23),
    "releases": RELEASES,
    "feedback_rounds": 3,
    "propensity_status": "estimated",
}
ARMS = [
    ("a", "b", "c"),
    (3, 1, 2),
    (True, False),
    (0.1, 0.2, 1e-17),
    ("NA", "", 'comma, "quote"\r\nline'),
    ("one", "b", 2),
    (2**80, 1, 2),
    ("é", "None", " padded "),
]


def write(log: AdaptiveLog, path: Path) -> AdaptiveLog:
    """Log that is read back from a file of that name."""
    if path.suffix == ".csv":
        log.to_csv(path)
    else:
        log.to_parquet(path)
    return read_log(path)


@pytest.mark.parametrize("name", ["log.parquet", "log.pq", "log.csv"])
@pytest.mark.parametrize("arms", ARMS)
def test_files_restore_an_equal_log(tmp_path: Path, name: str, arms: tuple[Any, ...]) -> None:
    log = trusted_log(arms, recommended=arms[1], **METADATA) if len(arms) == 3 else two_arms(arms)
    again = write(log, tmp_path / name)
    assert again.equals(log)
    assert again.arms == arms
    assert list(map(type, again.arms)) == list(map(type, arms))
    for field in ("action", "reward", "propensity", "propensities", "batch", "phase", "randomised"):
        np.testing.assert_array_equal(getattr(again.arrays, field), getattr(log.arrays, field), strict=True)
    assert again.arrays.reward.flags.writeable
    pd.testing.assert_frame_equal(again.releases, log.releases)
    for field in ("guarantee", "reward_guarantee", "noise", "reward_range", "feedback_rounds", "recommended"):
        assert getattr(again, field) == getattr(log, field)
    assert again.propensity_status == log.propensity_status
    pd.testing.assert_frame_equal(again.frame, log.frame)


def two_arms(arms: tuple[Any, ...]) -> AdaptiveLog:
    """Log without anything that is optional."""
    return AdaptiveLog.from_arrays(LogArrays(np.array([1, 0]), np.array([0.5, -0.0])), arms=arms)


@pytest.mark.parametrize("name", ["log.parquet", "log.csv"])
def test_design_parameters_come_back_in_their_types(tmp_path: Path, name: str) -> None:
    parameters = write(trusted_log(**METADATA), tmp_path / name).design.parameters
    assert parameters["epsilon"] == 0.1 + 0.2
    assert parameters["bound"] == math.inf
    assert parameters["steps"] == (1, 2)
    assert parameters["nested"] == {"float": [None, True, "x"], 3: 4}
    assert parameters["named_like_a_tag"] == {"tuple": "x"}
    assert np.array_equal(parameters["features"], np.array([[1.0, np.nan], [0.5, 2.0]]), equal_nan=True)


@pytest.mark.parametrize("name", ["log.parquet", "log.csv"])
def test_users_names_rounds_units_and_labels_come_back(tmp_path: Path, name: str) -> None:
    log = AdaptiveLog(FRAME, **OPTIONS, guarantee={"epsilon": 1})
    again = write(log, tmp_path / name)
    assert again.equals(log)
    assert again.columns == log.columns
    assert again.column("when").tolist() == log.column("when").tolist()
    assert again.column("who").tolist() == ["u", "v", "w", "u"]
    assert again.column("town").tolist() == ["m", "n", "m", "m"]
    pd.testing.assert_frame_equal(again.frame, log.frame)


@pytest.mark.parametrize("name", ["log.parquet", "log.csv"])
def test_releases_with_groups_of_several_types_come_back(tmp_path: Path, name: str) -> None:
    releases = RELEASES.assign(
        group=pd.Series([None, "x", 3], dtype=object), round=pd.array([1, None, 2], dtype="Int64")
    )
    again = write(trusted_log(releases=releases), tmp_path / name)
    pd.testing.assert_frame_equal(again.releases, releases)


def test_a_log_of_our_own_parquet_is_plain_parquet_for_others(tmp_path: Path) -> None:
    log = trusted_log((1, 2, 3))
    log.to_parquet(tmp_path / "log.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "log.parquet"), log.frame)
    log.to_csv(tmp_path / "log.csv")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "log.csv"), log.frame, check_dtype=False)


def test_foreign_files_are_validated_like_frames(tmp_path: Path) -> None:
    plain = FRAME.drop(columns=["town", "when"])
    options = {**OPTIONS, "context": ["age"], "round": None}
    expected = AdaptiveLog(plain, **options)
    plain.to_csv(tmp_path / "users.csv", index=False)
    plain.to_parquet(tmp_path / "users.parquet")
    assert read_log(tmp_path / "users.csv", **options).equals(expected)
    assert read_log(str(tmp_path / "users.parquet"), **options).equals(expected)
    plain.assign(y=[1, 2, np.nan, 0]).to_csv(tmp_path / "bad.csv", index=False)
    with pytest.raises(LogValidationError) as caught:
        read_log(tmp_path / "bad.csv", **options)
    assert [(p.code, p.rows) for p in caught.value.problems] == [
        ("missing-reward", (2,)),
        ("reward-out-of-range", (1,)),
    ]


def test_dates_of_a_csv_are_rounds(tmp_path: Path) -> None:
    days = ["2024-02-28", "2024-02-29", "2024-03-01", "2024-03-02"]
    FRAME.assign(when=days).to_csv(tmp_path / "trial.csv", index=False)
    log = read_log(tmp_path / "trial.csv", action="arm", reward="y", round="when")
    assert log.column("when").astype("M8[D]").astype(str).tolist() == days
    for name in ("again.csv", "again.parquet"):
        write(log, tmp_path / name)
        assert read_log(tmp_path / name).equals(log)


def test_repeated_columns_of_a_csv_are_not_renamed_away(tmp_path: Path) -> None:
    (tmp_path / "twice.csv").write_text("arm,y,y\na,1,0\nb,0,1\n")
    with pytest.raises(LogValidationError, match="several columns have the same name: 'y'"):
        read_log(tmp_path / "twice.csv", action="arm", reward="y")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("surplus.csv", b"arm,y\na,1,9\nb,0,9\n"),
        ("ragged.csv", b"arm,y\na,1\nb,0,9\n"),
        ("empty.csv", b""),
        ("binary.csv", bytes(range(256)) * 4),
        ("image.csv", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"),
        ("text.parquet", b"arm,y\na,1\n"),
        ("empty.parquet", b""),
    ],
)
def test_files_that_cannot_be_read_give_one_clear_error(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ParameterError, match=r"is not a readable (CSV|Parquet) file"):
        read_log(path, action="arm", reward="y")


def test_paths_that_lead_nowhere(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"file .*absent\.csv"):
        read_log(tmp_path / "absent.csv", action="arm", reward="y")
    (tmp_path / "log.txt").write_text("arm,y\na,1\n")
    with pytest.raises(
        ParameterError, match=r"must end in .parquet or .pq or .csv or .tsv or .*, got 'log.txt'"
    ):
        read_log(tmp_path / "log.txt", action="arm", reward="y")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ParameterError, match="is a directory"):
        read_log(tmp_path / "folder.csv", action="arm", reward="y")
    for save in (trusted_log().to_parquet, trusted_log().to_csv):
        with pytest.raises(ParameterError, match="must end in"):
            save(tmp_path / "log.json")


def test_options_and_metadata_do_not_mix(tmp_path: Path) -> None:
    trusted_log().to_parquet(tmp_path / "log.parquet")
    with pytest.raises(ParameterError, match="already states the roles of its columns: omit action, reward"):
        read_log(tmp_path / "log.parquet", action="action", reward="reward")
    FRAME[["arm", "y"]].to_csv(tmp_path / "users.csv")
    with pytest.raises(ParameterError, match="requires action= and reward="):
        read_log(tmp_path / "users.csv")
    with pytest.raises(ParameterError, match="requires reward="):
        read_log(tmp_path / "users.csv", action="arm")


def test_a_csv_that_was_changed_no_longer_matches_its_sidecar(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    trusted_log().to_csv(path)
    path.write_text(path.read_text().replace("3.14", "3.15"))
    with pytest.raises(ParameterError, match=r"was changed after its sidecar log\.csv\.json was written"):
        read_log(path)
    path.with_name("log.csv.json").unlink()
    assert read_log(path, action="action", reward="reward").arrays.reward[2] == math.pi + 0.01


def test_damaged_metadata_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    trusted_log().to_csv(path)
    sidecar = path.with_name("log.csv.json")
    good = json.loads(sidecar.read_text())
    for damage, message in [
        ({"version": 99}, "format version 99"),
        ({"n_rounds": 4}, "has 5 rows, but its metadata state 4"),
        ({"dtypes": {"t": "<i8"}}, "has the columns"),
    ]:
        sidecar.write_text(json.dumps({**good, **damage}))
        with pytest.raises(ParameterError, match=message):
            read_log(path)
    sidecar.write_text("{")
    with pytest.raises(
        ParameterError, match=r"log\.csv has metadata that are damaged or were not written by adaptinf"
    ):
        read_log(path)


def test_columns_that_another_program_changed_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    trusted_log().to_parquet(path)
    table = pq.read_table(path)
    column = pa.array(["a", "c", "b", "b", "zz"])
    pq.write_table(table.set_column(table.column_names.index("action"), "action", column), path)
    with pytest.raises(
        ParameterError, match=r"log\.parquet is damaged: its content does not match its digest"
    ):
        read_log(path)


@pytest.mark.parametrize("name", ["log.parquet", "log.csv"])
def test_what_a_file_cannot_hold_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ParameterError, match="a file cannot store <object"):
        write(trusted_log(design=DesignRecord("Mine", {"kernel": object()})), tmp_path / name)
    with pytest.raises(ParameterError, match="arms that look the same"):
        write(trusted_log((1, "1", 2)), tmp_path / name)
    mixed = LogArrays(np.array([0]), np.array([1.0]), context={"x": np.array([None], dtype=object)})
    with pytest.raises(ParameterError, match="column 'x' contains values that are not strings"):
        write(AdaptiveLog.from_arrays(mixed, arms=("a",)), tmp_path / name)


# Equality


@pytest.mark.parametrize(
    "change",
    [
        {"arms": ("a", "b", "d")},
        {"noise": "simulation"},
        {"design": DesignRecord("Other")},
        {"guarantee": PrivacyGuarantee(2.0)},
        {"reward_guarantee": PrivacyGuarantee(0.1)},
        {"reward_range": (0.0, 2.0)},
        {"feedback_rounds": 2},
        {"recommended": "a"},
        {"propensity_status": "exact"},
        {"releases": RELEASES.assign(value=0.0)},
    ],
)
def test_logs_differ_by_any_of_their_metadata(change: dict[str, Any]) -> None:
    assert not trusted_log(**{**METADATA, **change}).equals(trusted_log(**METADATA))
    assert trusted_log(**METADATA).equals(trusted_log(**METADATA))


OTHER_VALUES = {
    "y": 1,
    "week": 13,
    "who": "x",
    "when": pd.Timestamp("2025-01-01"),
    "stage": "two",
    "coin": False,
    "age": 1,
    "town": "n",
    "arm": "a",
}


@pytest.mark.parametrize("column", [*OTHER_VALUES, "pb"])
def test_logs_differ_by_any_of_their_columns(column: str) -> None:
    changed = FRAME.copy()
    values = changed[column].tolist()
    if column == "pb":
        changed["pb"] += 1 / 64
        changed["pc"] -= 1 / 64
    else:
        values[3] = OTHER_VALUES[column]
        changed[column] = values
    assert not AdaptiveLog(changed, **OPTIONS).equals(AdaptiveLog(FRAME, **OPTIONS))


def test_no_step_of_a_log_warns(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        log = AdaptiveLog(FRAME, **OPTIONS, guarantee={"epsilon": 1})
        assert write(log, tmp_path / "log.csv").frame.equals(log.frame)


def test_long_decimals_of_persons_do_not_become_one_float() -> None:
    persons = [Decimal("12345678901234567890"), Decimal("12345678901234567891")]
    frame = pd.DataFrame({"arm": ["a", "b"], "y": [0.0, 1.0], "who": persons})
    whole = AdaptiveLog(frame, action="arm", reward="y", unit="who")
    assert whole.column("unit_id").tolist() == [12345678901234567890, 12345678901234567891]
    with pytest.raises(LogValidationError, match="unit column 'who' has floats of 2\\*\\*53 or more"):
        AdaptiveLog(frame.assign(who=list(map(float, persons))), action="arm", reward="y", unit="who")
    long = [Decimal("1234567890.12345678901"), Decimal("1234567890.12345678902")]
    with pytest.raises(LogValidationError, match="unit column 'who' must contain strings, whole numbers"):
        AdaptiveLog(frame.assign(who=long), action="arm", reward="y", unit="who")
    short = AdaptiveLog(
        frame.assign(who=[Decimal("0.50"), Decimal("0.25")]), action="arm", reward="y", unit="who"
    )
    assert short.column("unit_id").tolist() == [0.5, 0.25]
