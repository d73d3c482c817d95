"""Batches give the rows of the readers, name file and line of what is wrong, and need little memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from sum_rows import assert_same_cells

import adaptinf as ai
from adaptinf.cli import main
from adaptinf.errors import LogValidationError, ParameterError
from adaptinf.formats import convert, read_dsjson, read_open_bandit, streaming
from adaptinf.formats.streaming import Clock

NAMES = ("news", "sport", "art")
HOUR = pd.Timedelta(hours=1)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "_DECISIONS", 37)
    monkeypatch.setattr(streaming, "_IMPRESSIONS", 37)


def events(count: int, seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    made = []
    for row in range(count):
        share = rng.dirichlet(np.full(3, 3.0)) * 0.7 + 0.1
        order = rng.permutation(3)
        played = rng.choice(3, p=share)
        ranking = [int(played), *(int(place) for place in order if place != played)]
        place = {int(arm): at for at, arm in enumerate(order, 1)}
        event = {
            "Timestamp": f"{pd.Timestamp('2024-03-04') + row * HOUR:%Y-%m-%dT%H:%M:%S.1230000}Z",
            "_label_cost": float(-rng.integers(0, 3)),
            "_label_probability": share[played],
            "_label_Action": place[int(played)],
            "a": [place[arm] for arm in ranking],
            "p": [share[arm] for arm in ranking],
            "c": {
                "hour": int(rng.integers(24)),
                "user": {
                    "age": float(rng.integers(20, 60)) if row % 2 else 30,
                    "new": bool(row % 3),
                    "tags": [1],
                },
                "site": "aé"[row % 2],
                "_multi": [{"id": NAMES[arm]} for arm in order],
            },
        }
        if row % 5:
            event["c"]["seldom"] = 1
        made.append(event | ({"_skipLearn": True} if row % 11 == 3 else {}))
    return made


def written(path: Path, listed: list[Any]) -> Path:
    texts = [each if isinstance(each, str) else json.dumps(each) for each in listed]
    path.write_text("\n\n".join(texts), encoding="utf-8")
    return path


def by_day(times: pd.Series[Any]) -> Any:
    return times.dt.normalize().to_numpy()


def test_events_are_those_of_the_reader(tmp_path: Path) -> None:
    made = events(400)
    log = read_dsjson(written(tmp_path / "whole.dsjson", made), action_id="id")
    (tmp_path / "parts").mkdir()
    for part in range(3):
        written(tmp_path / "parts" / f"{part}.json", made[part * 150 : (part + 1) * 150])
    output = tmp_path / "log.parquet"
    assert convert(tmp_path / "parts", output, action_id="id") == log.n_rounds
    frame = pd.read_parquet(output)
    propensities = [f"propensity_{name}" for name in log.arms]
    assert list(frame) == ["action", "reward", "propensity", *propensities, "timestamp", *log.context]
    for name in frame.columns.drop("timestamp"):
        assert frame[name].tolist() == log.frame[name].tolist()
        assert frame[name].dtype == log.frame[name].dtype
    kept = [event for event in made if "_skipLearn" not in event]
    assert frame["timestamp"].tolist() == [pd.Timestamp(event["Timestamp"][:-1]) for event in kept]
    columns = {"action": "action", "reward": "reward", "propensity": "propensity"}
    named = frame.assign(day=by_day(frame["timestamp"]))
    shares = dict(zip(log.arms, propensities, strict=True))
    whole = ai.AdaptiveLog(named, **columns, batch="day", propensities=shares, arms=log.arms)
    expected = ai.Sums.of_log(whole)
    found = ai.aggregate(
        output, **columns, batch="timestamp", every="day", arms=log.arms, centre=expected.cells.centre
    )
    assert found.n_batches == 17
    assert_same_cells(found, expected)


def test_events_without_times_names_or_contexts(tmp_path: Path) -> None:
    made = [event | {"c": event["c"] | {"_multi": [{}, {}, {}]}} for event in events(90)]
    for event in made:
        del event["Timestamp"]
    path = written(tmp_path / "log.dsjson", made)
    log = read_dsjson(path, context=["user.age"])
    convert(path, tmp_path / "log.parquet", context="user.age")
    frame = pd.read_parquet(tmp_path / "log.parquet")
    assert list(frame) == [
        "action",
        "reward",
        "propensity",
        *(f"propensity_{k}" for k in (1, 2, 3)),
        "user.age",
    ]
    pd.testing.assert_frame_equal(frame, log.frame[list(frame)])


def test_events_that_are_wrong_are_told_with_file_and_line(tmp_path: Path) -> None:
    made = events(120)
    written(tmp_path / "a.json", made[:60])
    other = made[60:]
    other[4:6] = ["{", '{"a": 1, "a": 2}']
    other[7] = other[7] | {"p": [0.5, 0.2, 0.2]}
    other[10] = json.loads(json.dumps(other[10]).replace('"news"', '"weather"'))
    written(tmp_path / "b.json", other)
    with pytest.raises(LogValidationError) as caught:
        convert(tmp_path, tmp_path / "log.parquet", action_id="id")
    found = {problem.code: problem for problem in caught.value.problems}
    assert list(found) == ["no-object", "bad-probabilities", "other-actions"]
    assert (found["no-object"].total, found["no-object"].rows) == (2, (64, 65))
    assert "(b.json, line 9: Expecting property name" in found["no-object"].message
    assert "(b.json, line 15: p is [0.5, 0.2, 0.2])" in found["bad-probabilities"].message
    assert "(b.json, line 21)" in found["other-actions"].message
    assert not (tmp_path / "log.parquet").exists()


def test_events_that_cannot_be_one_table(tmp_path: Path) -> None:
    made = events(80)
    output = tmp_path / "log.parquet"

    def wrong(listed: list[Any], message: str, **options: Any) -> None:
        with pytest.raises((LogValidationError, ParameterError), match=message):
            convert(written(tmp_path / "log.dsjson", listed), output, **options)
        assert not output.exists()

    wrong(made, "no action has the feature name; available: id", action_id="name")
    wrong(made, "no event has the shared feature sex", action_id="id", context=["sex"])
    mixed = [event | {"c": event["c"] | {"site": 3 if row else "x"}} for row, event in enumerate(made)]
    wrong(mixed, "site has values of several types", action_id="id")
    wrong(
        [event | {"pdrop": row % 2 / 4} for row, event in enumerate(made)],
        "at different rates",
        action_id="id",
    )
    late = [*made[:70], made[70] | {"Timestamp": "2024-03-04T00:00:00"}]
    wrong(late, r"Timestamp must be a time .*line 141: '2024-03-04T00:00:00'", action_id="id")
    named = [event | {"c": event["c"] | {"reward": 1}} for event in made]
    wrong(named, "must not be called reward", action_id="id")
    wrong([], "contains no events")
    (tmp_path / "log.dsjson").write_bytes(b"{}\n\n\xff\n")
    with pytest.raises(ParameterError, match=r"log.dsjson cannot be read as UTF-8 text: line 3"):
        convert(tmp_path / "log.dsjson", output)


def campaign(root: Path, count: int, seed: int = 0) -> tuple[Path, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    folder = root / "random" / "men"
    folder.mkdir(parents=True)
    at = pd.Timestamp("2019-11-24T00:00:17.5+00:00") + rng.permutation(count) * HOUR
    frame = pd.DataFrame({"timestamp": [str(each) for each in at], "item_id": rng.integers(0, 4, count)})
    frame["position"], frame["click"] = rng.integers(1, 4, count), rng.integers(0, 2, count)
    frame["propensity_score"] = 0.25
    frame["user_feature_0"] = rng.choice(["81ce", "9b,2"], count)
    frame["user-item_affinity_0"] = rng.choice([0.0, 1.5], count)
    frame.to_csv(folder / "men.csv")
    pd.DataFrame({"item_id": range(4), "item_feature_0": 1.0}).to_csv(folder / "item_context.csv")
    return folder, frame


def test_impressions_are_those_of_the_reader(tmp_path: Path) -> None:
    folder, made = campaign(tmp_path, 500)
    log, output = read_open_bandit(folder, affinities=True), tmp_path / "log.parquet"
    assert convert(folder, output, affinities=True) == 500
    frame = pd.read_parquet(output)
    assert frame["item_id"].tolist() == made["item_id"].tolist()
    ordered = frame.sort_values("timestamp", kind="stable")
    roles = {"item_id": "action", "click": "reward", "propensity_score": "propensity"}
    for name in ["item_id", "click", "propensity_score", *log.context]:
        assert ordered[name].tolist() == log.frame[roles.get(name, name)].tolist()
    columns = {"action": "item_id", "reward": "click", "propensity": "propensity_score"}
    whole = ai.AdaptiveLog(ordered.assign(week=by_week(ordered["timestamp"])), **columns, batch="week")
    expected = ai.Sums.of_log(whole)
    found = ai.aggregate(output, **columns, batch="timestamp", every="week", centre=expected.cells.centre)
    assert_same_cells(found, expected)
    convert(folder, output)
    assert pq.read_schema(output).names == [*frame.columns[:5], "user_feature_0"]


def by_week(times: pd.Series[Any]) -> Any:
    days = times.dt.normalize()
    return (days - pd.to_timedelta(times.dt.day_of_week, unit="D")).to_numpy()


def test_items_with_leading_zeros_stay_text(tmp_path: Path) -> None:
    folder, _ = campaign(tmp_path, 60)
    for name, column in (("men.csv", 2), ("item_context.csv", 1)):
        lines = [line.split(",") for line in (folder / name).read_text().splitlines()]
        for fields in lines[1:]:
            fields[column] = "0" + fields[column]
        (folder / name).write_text("\n".join(map(",".join, lines)))
    log = read_open_bandit(folder)
    convert(folder, tmp_path / "log.parquet")
    frame = pd.read_parquet(tmp_path / "log.parquet").sort_values("timestamp")
    assert frame["item_id"].tolist() == log.frame["action"].tolist()
    assert set(frame["item_id"]) == {"00", "01", "02", "03"}


FAULTS: dict[str, tuple[str, str, str]] = {
    "bad-time": ("timestamp", "yesterday", "timestamp is 'yesterday'"),
    "no-zone": ("timestamp", "2019-11-24", "timestamp is '2019-11-24'"),
    "unknown-item": ("item_id", "9", "item_id is '9'"),
    "bad-position": ("position", "1.5", "position is '1.5'"),
    "bad-click": ("click", "2", "click is '2'"),
    "propensity-out-of-range": ("propensity_score", "0", "propensity_score is '0'"),
    "missing-context": ("user_feature_0", " ", "user_feature_0 is ' '"),
    "bad-affinity": ("user-item_affinity_0", "much", "user-item_affinity_0 is 'much'"),
}


def test_impressions_that_are_wrong_are_told_with_lines(tmp_path: Path) -> None:
    folder, made = campaign(tmp_path, 200)
    texts = made.astype(str)
    for place, (column, value, _) in enumerate(FAULTS.values()):
        texts.loc[[100 + place, 150 + place], column] = value
    texts.to_csv(folder / "men.csv", index=False)
    with (folder / "men.csv").open("a") as file:
        file.write("1,2\n")
    with pytest.raises(LogValidationError) as caught:
        convert(folder, tmp_path / "log.parquet", affinities=True)
    told = str(caught.value)
    assert str(folder / "men.csv") in told
    assert "a row has a different number of fields from the header (line 202: 2, not 7) [row 200]" in told
    codes = {problem.code: problem for problem in caught.value.problems}
    for place, (code, (_, _, content)) in enumerate(FAULTS.items()):
        problem = codes["bad-time" if code == "no-zone" else code]
        assert problem.total == (4 if "time" in problem.code else 2)
        assert code == "no-zone" or f"(line {102 + place}: {content})" in problem.message
    assert not (tmp_path / "log.parquet").exists()


@pytest.mark.parametrize("zones", [("Z", ""), ("", "Z")], ids=["lost", "gained"])
def test_zones_that_change_between_batches(zones: tuple[str, str]) -> None:
    clock = Clock()
    first, second = ([f"2024-03-0{day}T10:00:00{zone}" for day in (4, 5)] for zone in zones)
    times, bad = clock.read(["yesterday", *first])
    assert bad.tolist() == [True, False, False]
    assert times[1:].tolist() == [pd.Timestamp(f"2024-03-0{day}T10:00:00").to_pydatetime() for day in (4, 5)]
    assert not clock.read(first)[1].any()
    assert clock.read(second)[1].all()


def test_folders_and_arguments_that_make_no_sense(tmp_path: Path) -> None:
    folder, _ = campaign(tmp_path, 60)
    output = tmp_path / "log.parquet"
    (tmp_path / "empty").mkdir()
    calls: list[tuple[Path, Path, dict[str, Any], str]] = [
        (folder, tmp_path / "log.csv", {}, "output must end in .parquet or .pq"),
        (folder, output, {"action_id": "id"}, "apply only to dsjson"),
        (tmp_path / "empty", output, {}, "contains neither item_context.csv nor files"),
        (written(tmp_path / "log.parquet", []), output, {"affinities": True}, "would overwrite"),
    ]
    for source, target, options, message in calls:
        with pytest.raises(ParameterError, match=message):
            convert(source, target, **options)
    (folder / "men.csv").write_text("timestamp,item_id\n")
    with pytest.raises(ParameterError, match=r"men\.csv has no column position, click, propensity_score"):
        convert(folder, tmp_path / "other.parquet")
    with pytest.raises(FileNotFoundError):
        convert(tmp_path / "none.dsjson", tmp_path / "other.parquet")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "log.dsjson", events(40))
    output = tmp_path / "log.parquet"
    given = ["convert", str(path), "--output", str(output)]
    assert main([*given, "--action-id", "id", "--context", "hour"]) == 0
    assert capsys.readouterr().err == f"adaptinf convert: wrote {output} (36 rows)\n"
    assert pq.read_schema(output).names[-2:] == ["timestamp", "hour"]
    assert main([*given, "--action-id", "name"]) == 2
    assert "no action has the feature name" in capsys.readouterr().err


def dsjson_copies(root: Path, times: int) -> Path:
    lines = "\n".join(json.dumps(event) for event in events(1_000)) + "\n"
    path = root / f"{times}.dsjson"
    with path.open("w") as file:
        for _ in range(times):
            file.write(lines)
    return path


def campaign_copies(root: Path, times: int) -> Path:
    folder, _ = campaign(root / str(times), 2_000)
    head, rows = (folder / "men.csv").read_text().split("\n", 1)
    with (folder / "men.csv").open("w") as file:
        file.write(head + "\n")
        for _ in range(times * 2):
            file.write(rows)
    return folder


PEAK = """
import resource, sys
import adaptinf as ai
options = {"action_id": "id"} if sys.argv[1].endswith("dsjson") else {}
ai.formats.convert(sys.argv[1], sys.argv[1] + ".parquet", **options)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.parametrize("make", [dsjson_copies, campaign_copies])
def test_memory_does_not_grow_with_the_log(tmp_path: Path, make: Callable[[Path, int], Path]) -> None:
    """Files of 20 and 60 thousand events, and of 80 and 240 thousand impressions."""
    peaks = []
    for times in (20, 60):
        command = [sys.executable, "-c", PEAK, str(make(tmp_path, times))]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout) / 1024)
    assert peaks[1] - peaks[0] < 15.0, peaks
