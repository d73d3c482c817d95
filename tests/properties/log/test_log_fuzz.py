"""Ten thousand random frames: each is a log that equals its frame, or one error that lists the problems."""

from __future__ import annotations

import datetime
import warnings
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptinf.errors import LogValidationError
from adaptinf.log import AdaptiveLog, LogArrays, read_log
from adaptinf.log.validation import nested_options

Maker = Callable[[np.random.Generator, int], Any]


def objects(*choices: Any) -> Maker:
    """Column of objects drawn from some choices."""

    def make(rng: np.random.Generator, size: int) -> Any:
        values = np.empty(size, dtype=object)
        for row in range(size):
            values[row] = choices[rng.integers(len(choices))]
        return values

    return make


def typed(dtype: str, *choices: Any) -> Maker:
    """Column of a pandas type drawn from some choices."""
    return lambda rng, size: pd.array(
        [choices[k] for k in rng.integers(len(choices), size=size)], dtype=dtype
    )


WILD: list[Maker] = [
    objects("a", "b", None),
    objects(0.5, "x", np.nan),
    objects(1, 1.0, True, "1"),
    objects([1, 2], (3,), {4: 5}, {6}, np.ones(2)),
    objects(pd.NaT, pd.NA, None, np.nan),
    objects(Decimal("0.5"), 1j, b"bytes", datetime.date(2024, 1, 1), object()),
    objects(2**70, -(2**70), 3),
    objects(np.float32(0.5), np.int8(1), np.str_("a"), np.bool_(True), np.timedelta64(1, "s")),
    objects(True, False),
    objects(True, None, 0),
    objects("a", ""),
    lambda rng, n: rng.choice([0.0, 0.5, 1.0, np.nan, np.inf, -np.inf, -1.0, 1e308], size=n),
    lambda rng, n: rng.integers(-2, 3, size=n),
    lambda rng, n: rng.integers(2**63, 2**64 - 1, size=n, dtype=np.uint64),
    lambda rng, n: rng.integers(2**53, 2**62, size=n),
    lambda rng, n: rng.random(n).astype(np.float16),
    lambda rng, n: rng.random(n).astype(np.longdouble) / 3,
    lambda rng, n: rng.random(n) + 1j,
    lambda rng, n: rng.integers(0, 2, size=n).astype(bool),
    lambda rng, n: rng.integers(0, 99, size=n).astype("M8[ns]"),
    lambda rng, n: rng.choice(np.array(["2024-01-01", "NaT"], dtype="M8[s]"), size=n),
    lambda rng, n: pd.DatetimeIndex(rng.integers(0, 9, size=n).astype("M8[s]")).tz_localize("Asia/Tokyo"),
    lambda rng, n: rng.integers(0, 99, size=n).astype("m8[s]"),
    typed("Int64", 0, 1, pd.NA),
    typed("Float64", 0.5, 0.25, pd.NA),
    typed("boolean", True, False, pd.NA),
    typed("string", "a", "b", pd.NA),
    typed("category", "a", "b", None),
    typed("category", 1, 2),
    typed("category", None),
    typed("int64[pyarrow]", 0, 1, None),
    typed("double[pyarrow]", 0.5, None),
    typed("string[pyarrow]", "a", "b"),
    typed("bool[pyarrow]", True, False),
    typed("timestamp[ns][pyarrow]", pd.Timestamp("2024-01-01"), None),
    lambda rng, n: pd.arrays.SparseArray(rng.choice([0.0, 1.0, np.nan], size=n)),
    lambda rng, n: pd.period_range("2024-01", periods=n, freq="M"),
    lambda rng, n: pd.interval_range(0, periods=n) if n else pd.array([], dtype="interval"),
]
WILD_POLARS: list[Callable[[np.random.Generator, int], pl.Series]] = [
    lambda rng, n: pl.Series(rng.choice([0.0, 0.5, np.nan, np.inf], size=n)),
    lambda rng, n: pl.Series([None if draw < 0.3 else 1 for draw in rng.random(n)], dtype=pl.Int16),
    lambda rng, n: pl.Series(
        [None if draw < 0.3 else draw < 0.6 for draw in rng.random(n)], dtype=pl.Boolean
    ),
    lambda rng, n: pl.Series(["ab"[k] for k in rng.integers(2, size=n)], dtype=pl.Categorical),
    lambda rng, n: pl.Series(["ab"[k] for k in rng.integers(2, size=n)], dtype=pl.String),
    lambda rng, n: pl.Series([[1, 2]] * n, dtype=pl.List(pl.Int64)),
    lambda rng, n: pl.Series([[1, 2]] * n, dtype=pl.Array(pl.Int64, 2)),
    lambda rng, n: pl.Series([{"x": 1}] * n, dtype=pl.Struct({"x": pl.Int64})),
    lambda rng, n: pl.Series([Decimal("0.5")] * n, dtype=pl.Decimal(10, 2)),
    lambda rng, n: pl.Series([2**100] * n, dtype=pl.Int128),
    lambda rng, n: pl.Series([None] * n, dtype=pl.Null),
    lambda rng, n: pl.Series([b"x"] * n, dtype=pl.Binary),
    lambda rng, n: pl.Series([datetime.timedelta(1)] * n, dtype=pl.Duration),
    lambda rng, n: pl.Series([datetime.time(1)] * n, dtype=pl.Time),
    lambda rng, n: pl.Series(list(range(n)), dtype=pl.Int64).cast(pl.Datetime("us", "Asia/Tokyo")),
    lambda rng, n: pl.Series([object() for _ in range(n)], dtype=pl.Object),
]
NAMES = ["arm", "y", "p", "week", "who", "when", "stage", "coin", "age", "town"]
ROLES = ["action", "reward", "propensity", "batch", "unit", "round", "phase", "randomised"]
LABELS: list[list[Any]] = [["a", "b", "c"], [0, 1, 2], [False, True], [0.5, 1.5], ["only"], ["x", 3]]


def good_columns(rng: np.random.Generator, size: int) -> tuple[dict[Any, Any], dict[str, Any]]:
    """Columns of a log without damage, and options that read them."""
    labels = LABELS[rng.integers(len(LABELS))]
    chosen = rng.integers(len(labels), size=size)
    table = rng.dirichlet(np.ones(len(labels)), size=size)
    columns: dict[Any, Any] = {
        "arm": [labels[code] for code in chosen],
        "y": rng.choice([0.0, 0.25, 1.0], size=size),
        "p": table[np.arange(size), chosen],
        "week": np.sort(rng.integers(0, 3, size=size)),
        "who": [f"u{number}" for number in rng.integers(0, 3, size=size)],
        "when": np.cumsum(rng.integers(1, 4, size=size)),
        "stage": np.where(np.arange(size) < 2, "learn", "estimate"),
        "coin": rng.random(size) < 0.5,
        "age": rng.normal(size=size),
        "town": [["m", "n"][code] for code in rng.integers(2, size=size)],
    }
    if columns["arm"] and len({type(label) for label in labels}) > 1:
        columns["arm"] = pd.Series(columns["arm"], dtype=object).to_numpy()
    options: dict[str, Any] = {"action": "arm", "reward": "y"}
    for role, name in zip(ROLES[2:], NAMES[2:], strict=False):
        if rng.random() < 0.5:
            options[role] = name
    options["context"] = [name for name in ("age", "town") if rng.random() < 0.5]
    if rng.random() < 0.5:
        columns |= {f"propensity_{label}": table[:, code] for code, label in enumerate(labels)}
        if rng.random() < 0.5:
            options["propensities"] = {label: f"propensity_{label}" for label in labels}
    if rng.random() < 0.5:
        options["arms"] = labels
    if rng.random() < 0.03:
        columns["batch"] = columns["age"]
        options["context"].append("batch")
    return columns, options


def wild_options(rng: np.random.Generator, options: dict[str, Any]) -> None:
    """Put something odd into one of the options."""
    odd: list[Any] = [
        None,
        "absent",
        "arm",
        3,
        ["y"],
        (),
        {},
        np.nan,
        {"a": "p"},
        {"a": ["p"]},
        [None],
        object(),
    ]
    oddities: dict[str, list[Any]] = {
        "reward_range": [(0, 1), (1, 0), (0, np.nan), (0, 0.5), "ab", 3],
        "guarantee": [
            {"epsilon": 1},
            {"epsilon": -1},
            {"unit": "user", "epsilon": 1},
            7,
            {"epsilon": np.ones(2)},
        ],
        "arms": [*odd, ["a", "b"], [0, 1, 2, 3], [1, True], ["a", "a"], [0, "0"]],
        "propensities": odd,
        "context": [*odd, ["age", "age"], ["town", "missing"], "age", ["y"]],
        "releases": odd,
        "noise": [*odd, "release"],
        "feedback_rounds": [*odd, 2, 10**9, -1],
        "recommended": [*odd, "a", 0],
        "propensity_status": [*odd, "exact", "estimated"],
        "design": [*odd, "UCB"],
        **dict.fromkeys(ROLES, odd + NAMES),
    }
    name = list(oddities)[rng.integers(len(oddities))]
    options[name] = oddities[name][rng.integers(len(oddities[name]))]


def random_index(rng: np.random.Generator, size: int) -> Any:
    """Row labels that a log has to ignore."""
    kind = rng.integers(5)
    if kind == 0:
        return np.zeros(size)
    if kind == 1:
        return pd.MultiIndex.from_arrays([rng.integers(2, size=size), ["q"] * size])
    if kind == 2:
        return [np.nan] * size
    if kind == 3:
        return pd.date_range("2024-01-01", periods=size)[::-1]
    return rng.permutation(size)


def random_pandas(rng: np.random.Generator, columns: dict[Any, Any], size: int) -> pd.DataFrame:
    """Frame with some columns damaged, dropped, repeated or oddly named, and an odd index."""
    for name in list(columns):
        if rng.random() < 0.06:
            columns[name] = WILD[rng.integers(len(WILD))](rng, size)
        elif rng.random() < 0.02:
            del columns[name]
        elif size and rng.random() < 0.05:
            values = list(columns[name])
            values[rng.integers(size)] = [None, np.nan, np.inf, -0.5, "odd", 0.1][rng.integers(6)]
            columns[name] = pd.Series(values, dtype=None if rng.random() < 0.5 else object)
    frame = pd.DataFrame(columns, index=range(size))
    if rng.random() < 0.3:
        frame.index = random_index(rng, size)
    if rng.random() < 0.05 and frame.shape[1] > 1:
        names = list(frame.columns)
        odd: list[Any] = [
            names[0],
            3,
            None,
            np.nan,
            ("y", 1),
            pd.Timestamp("2024-01-01"),
            "t",
            "propensity_a",
        ]
        names[rng.integers(len(names))] = odd[rng.integers(len(odd))]
        frame.columns = pd.Index(names, dtype=object, tupleize_cols=False)
    return frame


def random_polars(rng: np.random.Generator, columns: dict[Any, Any], size: int) -> pl.DataFrame:
    """Polars frame with some columns damaged."""
    series = {}
    for name, values in columns.items():
        if rng.random() < 0.06:
            series[name] = WILD_POLARS[rng.integers(len(WILD_POLARS))](rng, size)
        else:
            mixed = len(set(map(type, list(values)))) > 1
            series[name] = pl.Series(list(values), dtype=pl.Object if mixed else None)
    return pl.DataFrame(series)


def random_case(rng: np.random.Generator) -> tuple[Any, dict[str, Any]]:
    """A frame and the options to read it with."""
    size = int(rng.choice([0, 1, 2, 5, 7], p=[0.03, 0.1, 0.17, 0.4, 0.3]))
    columns, options = good_columns(rng, size)
    if rng.random() < 0.2:
        wild_options(rng, options)
    make = random_polars if rng.random() < 0.15 else random_pandas
    return make(rng, columns, size), options


def read(frame: Any, name: Any) -> list[Any]:
    """Values of a column, read without the package."""
    if isinstance(frame, pl.DataFrame):
        return [plain(value) for value in frame[name].to_list()]
    return [plain(value) for value in frame[name].tolist()]


def plain(value: Any) -> Any:
    """A NumPy scalar as a Python one; long doubles have none of their own."""
    if isinstance(value, np.longdouble | Decimal):
        return float(value)
    return value.item() if isinstance(value, np.generic) else value


def same_labels(first: list[Any], second: list[Any]) -> bool:
    """Whether labels are equal, and of the same type."""
    return [(type(value), value) for value in first] == [(type(value), value) for value in second]


def check_log(log: AdaptiveLog, frame: Any, options: dict[str, Any]) -> None:
    """Compare a log with an independent reading of its frame."""
    size, arrays = len(frame), log.arrays
    actions, rewards = read(frame, options["action"]), read(frame, options["reward"])
    assert log.n_rounds == size == len(actions) > 0
    assert same_labels([log.arms[code] for code in arrays.action], actions)
    assert arrays.reward.tolist() == [float(reward) for reward in rewards]
    assert np.isfinite(arrays.reward).all()
    low, high = options.get("reward_range") or (-np.inf, np.inf)
    assert all(low <= reward <= high for reward in rewards)
    if options.get("propensity") is not None:
        assert arrays.propensity.tolist() == [float(value) for value in read(frame, options["propensity"])]
    mapping = options.get("propensities") or {arm: f"propensity_{arm}" for arm in log.arms}
    if arrays.propensities is not None:
        for code, arm in enumerate(log.arms):
            assert arrays.propensities[:, code].tolist() == [
                float(value) for value in read(frame, mapping[arm])
            ]
        assert arrays.propensities.min() >= 0
        assert np.allclose(arrays.propensities.sum(axis=1), 1, rtol=0, atol=1e-6)
        own = arrays.propensities[np.arange(size), arrays.action]
        assert np.allclose(arrays.propensity, own, rtol=1e-6, atol=0)
    if arrays.propensity is not None:
        assert ((arrays.propensity > 0) & (arrays.propensity <= 1)).all()
    check_other_columns(log, frame, options)


def check_other_columns(log: AdaptiveLog, frame: Any, options: dict[str, Any]) -> None:
    """Compare batches, phases, rounds, units and contexts with the frame."""
    arrays = log.arrays
    if options.get("batch") is not None:
        values = read(frame, options["batch"])
        steps = np.diff(arrays.batch)
        assert arrays.batch[0] == 0
        assert set(steps.tolist()) <= {0, 1}
        assert [values[k] != values[k + 1] for k in range(len(steps))] == (steps == 1).tolist()
        assert len(set(values)) == arrays.batch[-1] + 1
    if options.get("phase") is not None:
        assert same_labels([log.phases[code] for code in arrays.phase], read(frame, options["phase"]))
    if options.get("randomised") is not None:
        assert same_labels(arrays.randomised.tolist(), read(frame, options["randomised"]))
    if options.get("unit") is not None:
        assert same_labels(log.column("unit_id").tolist(), read(frame, options["unit"]))
    if options.get("round") is not None:
        rounds = log.column("t")
        assert (rounds[1:] >= rounds[:-1]).all()
        tied = bool((rounds[1:] == rounds[:-1]).any())
        assert tied == ("have the same value in round column" in str(log.report))
        if rounds.dtype.kind != "M":
            assert rounds.tolist() == read(frame, options["round"])
    context = options.get("context") or []
    names = [context] if isinstance(context, str) else list(context)
    assert log.context == tuple(names)
    for name in names:
        assert arrays.context[name].tolist() == read(frame, name)


def check_error(error: LogValidationError, size: int) -> None:
    """An error names its problems, and rows that exist."""
    assert error.problems
    for problem in error.problems:
        assert all(0 <= row < size for row in problem.rows)
        assert len(problem.rows) == problem.total


def unchanged(frame: Any, before: Any) -> bool:
    """Whether a frame is what it was."""
    if isinstance(frame, pl.DataFrame):  # its own equals finds objects unlike themselves
        return repr(frame.to_dict(as_series=False)) == repr(before.to_dict(as_series=False))
    return bool(frame.equals(before))


@pytest.mark.parametrize(
    "frames", [pytest.param(3_000, marks=pytest.mark.slow), pytest.param(10_000, marks=pytest.mark.long)]
)
def test_random_frames_are_logs_or_one_error(frames: int) -> None:
    rng = np.random.default_rng(20240607)
    outcomes: Counter[str] = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(frames):
            frame, options = random_case(rng)
            before = frame.clone() if isinstance(frame, pl.DataFrame) else frame.copy()
            try:
                log = AdaptiveLog(frame, **nested_options(options))
            except LogValidationError as error:
                check_error(error, len(frame))
                outcomes.update({problem.code for problem in error.problems})
            else:
                check_log(log, frame, options)
                assert unchanged(frame, before)
                outcomes["log"] += 1
    assert 0.2 * frames < outcomes["log"] < 0.8 * frames
    assert len(outcomes) > 50, sorted(outcomes)


TEXT = st.text(st.characters(codec="utf-8"), max_size=6)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(
    labels=st.lists(TEXT, min_size=2, max_size=2, unique=True),
    rewards=st.lists(NUMBERS, min_size=2, max_size=2),
    town=st.lists(TEXT, min_size=2, max_size=2),
)
def test_files_keep_any_text_and_every_digit(
    tmp_path_factory: Any, labels: list[str], rewards: list[float], town: list[str]
) -> None:
    folder: Path = tmp_path_factory.mktemp("logs")
    contexts = {"town": np.array(town, dtype=object), "x": np.array(rewards)}
    arrays = LogArrays(np.array([0, 1]), np.array(rewards), context=contexts)
    log = AdaptiveLog.from_arrays(arrays, arms=labels)
    if len({label.strip() for label in labels}) == 1:
        for write, name in [(log.to_csv, "log.csv"), (log.to_parquet, "log.parquet")]:
            with pytest.raises(LogValidationError, match="cannot be distinguished"):
                write(folder / name)
        return
    log.to_csv(folder / "log.csv")
    log.to_parquet(folder / "log.parquet")
    assert read_log(folder / "log.csv").equals(log)
    assert read_log(folder / "log.parquet").equals(log)
