"""The scoreboard: its cells, what tools are shown, how they are run and scored, and what its page says."""

from __future__ import annotations

import argparse
import csv
import json
import math
import re
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

from case_studies.scoreboard import __main__ as command
from case_studies.scoreboard import compare, environments, page, r_tools, score, work
from case_studies.scoreboard.adapters import adaptinf, evidential, growthbook, statsmodels
from case_studies.scoreboard.cells import INFORMATION, TARGETS, Cell, oracle_error, read_cells, truth
from case_studies.scoreboard.designs import DESIGNS
from case_studies.scoreboard.logs import BLOCK, Log, read, shown, simulate, store
from case_studies.scoreboard.tools import cells_of, left_out, read_tools

HERE = Path(compare.__file__).parent


def cell(name: str, target: str) -> Cell:
    return next(one for one in read_cells() if (one.cell, one.target) == (name, target))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def tree(cache: Path) -> list[Log]:
    one = cell("tree_thompson/leaves/2/all", "policy")
    return list(read(one, store(one, cache, BLOCK)))


def test_cells_are_many_and_each_part_is_among_them() -> None:
    cells = read_cells()
    assert len(cells) == len({(one.cell, one.target) for one in cells}) == 185
    assert {one.design for one in cells} == set(DESIGNS)
    assert {one.target for one in cells} == set(TARGETS)
    assert {one.information for one in cells} == set(INFORMATION)
    for one in cells:
        assert one.cell == f"{one.design}/{one.world}/{one.arms}/{one.information}"


def test_a_short_run_has_the_first_logs_of_a_long_one(cache: Path) -> None:
    one = cell("play_the_winner/equal/2/all", "arm")
    short = [log.rewards.tolist() for log in read(one, store(one, cache, 100))]
    again = list(read(one, store(one, cache, 200)))
    assert [log.rewards.tolist() for log in again[:100]] == short
    assert len(again) == 200
    assert store(one, cache, 150).stat().st_mtime_ns == store(one, cache, 200).stat().st_mtime_ns
    assert simulate(one, 1)["arms"][0].tolist() == again[100].arms.tolist()


def test_information_is_withheld() -> None:
    arms, rewards = np.array([0, 1] * 500), np.linspace(0, 1, 1000)
    shares = np.tile([0.25, 0.75], 1000)
    logs = {
        information: shown(
            Cell("", "thompson", "equal", 2, 1000, information, "leader"), arms, rewards, shares
        )
        for information in INFORMATION
        if information != "sums"
    }
    assert logs["all"].shares[3].tolist() == [0.25, 0.75]
    assert logs["all"].chosen[:2].tolist() == [0.25, 0.75]
    assert logs["chosen"].shares is None
    assert logs["chosen"].chosen[:2].tolist() == [0.25, 0.75]
    assert logs["none"].shares is logs["none"].chosen is None
    assert {log.arm for log in logs.values()} == {1}  # its rewards are higher by one step
    periods = np.tile([0.5, 0.5], 20)
    sums = shown(Cell("", "top_two", "equal", 2, 1000, "sums", "lowest"), arms, rewards, periods)
    assert sums.arms is sums.rewards is None
    assert sums.n.tolist() == [[25, 25]] * 20
    assert sums.sums.sum() == pytest.approx(500)
    assert sums.squares[0, 1] == pytest.approx((rewards[1:50:2] ** 2).sum())
    assert sums.arm == 0
    assert sums.frame().iloc[1].to_dict() == pytest.approx(
        {
            "period": 0,
            "arm": 1,
            "n": 25,
            "sum": rewards[1:50:2].sum(),
            "squares": sums.squares[0, 1],
            "share": 0.5,
        }
    )
    reverse = sums.reversed()
    assert reverse.sums[0].tolist() == pytest.approx((25 - sums.sums[0]).tolist())
    assert reverse.squares[0, 1] == pytest.approx(((1 - rewards[1:50:2]) ** 2).sum())


def test_a_tree_is_shown_with_its_contexts_and_policy(tree: list[Log]) -> None:
    log = tree[0]
    assert len(tree) == 100
    assert log.policy[log.leaves < 2].tolist() == [[0.0, 1.0]] * int((log.leaves < 2).sum())
    assert log.agreeing == ((log.leaves < 2) == (log.arms == 1)).sum()
    assert set(log.frame().columns) == {"arm", "reward", "chosen", "leaf", "p0", "p1"}
    one = cell("tree_thompson/leaves/2/all", "policy")
    assert truth(one, 0) == pytest.approx((0.7 + 0.5 + 0.5 + 0.7) / 4)
    assert oracle_error(one, np.array([500, 500]), 400.0, 0) == pytest.approx(0.5 / 20)


@pytest.mark.parametrize(
    ("name", "target", "arm", "true", "error"),
    [
        ("coin/better/2/all", "contrast", 0, 0.1, math.sqrt(0.25 / 100 + 0.24 / 400)),
        ("coin/better/2/all", "ratio", 0, 1.2, math.sqrt(0.24 / 400 / 0.25 + 0.36 * 0.25 / 100 / 0.0625)),
        ("epsilon_greedy/better/2/all", "leader", 1, 0.6, math.sqrt(0.24 / 400)),
        ("epsilon_greedy/drift/2/all", "arm", 0, 0.5, math.sqrt(0.236667 / 100)),
        (
            "epsilon_greedy/better/2/all",
            "policy",
            0,
            0.575,
            math.sqrt(0.0625 * 0.25 / 100 + 0.5625 * 0.24 / 400),
        ),
    ],
)
def test_truths_and_the_oracles_errors(name: str, target: str, arm: int, true: float, error: float) -> None:
    one = cell(name, target)
    assert truth(one, arm) == pytest.approx(true)
    assert oracle_error(one, np.array([100, 400]), 0.0, arm) == pytest.approx(error, rel=1e-5)


def test_a_refusal_is_no_miss() -> None:
    found = {
        "low": [0.1, 0.6, None, 0.0],
        "high": [0.6, 0.9, None, 0.4],
        "truth": [0.5] * 4,
        "error": [0.1] * 4,
        "seconds": [0.001, 0.003, 0.002, 0.010],
        "warned": [True, False, True, False],
    }
    row = score.row("c", "t", "arm", found)
    assert tuple(row) == score.COLUMNS
    assert row == {
        "cell": "c", "tool": "t", "target": "arm", "runs": 4, "answered": 3,
        "coverage": 0.3333, "below": 0.3333,
        "above": 0.3333, "width": 1.02, "seconds": 0.0025, "warned": 0.3333,
    }  # fmt: skip
    nothing = {**found, "low": [None] * 4, "high": [None] * 4}
    assert [score.row("c", "t", "arm", nothing)[name] for name in ("answered", "coverage", "width")] == [
        0,
        "",
        "",
    ]


def answer(log: Log, target: str) -> tuple[float, float] | None:
    if log.rewards[0]:
        warnings.warn("a caution", stacklevel=1)
        return 0.0, 1.0
    if log.rewards[1]:
        raise ValueError("no such log")
    return None


def test_a_tool_is_run_log_by_log_and_its_words_are_kept(cache: Path) -> None:
    one = cell("play_the_winner/equal/2/all", "arm")
    path = store(one, cache, 100)
    found = work.run(SimpleNamespace(interval=answer), one, path, 1.0, 40)
    first = np.array([log.rewards[:2] for log in read(one, path)][:40])
    assert [low is not None for low in found["found"]["low"]] == (first[:, 0] == 1).tolist()
    assert found["found"]["warned"] == (first[:, 0] == 1).tolist()
    refused = int(((first[:, 0] == 0) & (first[:, 1] == 1)).sum())
    assert found["refusals"] == {"ValueError: no such log": refused}
    assert found["found"]["truth"] == [0.5] * 40


def test_slow_tools_get_as_many_logs_as_fit() -> None:
    assert work.enough(0.0029, 1, 2000) == 2000
    assert work.enough(0.01, 10, 2000) == 1000
    assert work.enough(10, 10, 2000) == 200
    assert work.enough(0.01, 100, 2000) == 2000


def test_what_was_run_is_not_run_again(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = [
        "--tools",
        "evidential",
        "--cells",
        "play_the_winner/equal/*/arm",
        "--most",
        "30",
        "--cache",
        str(cache),
    ]
    out = cache / "results.csv"
    command.main([*asked, "--output", str(out)])
    kept = work.place(cache, "evidential", cell("play_the_winner/equal/2/all", "arm"))
    before = kept.stat().st_mtime_ns
    command.main([*asked, "--output", str(out)])
    assert kept.stat().st_mtime_ns == before
    with out.open() as file:
        [row] = csv.DictReader(file)
    assert (row["tool"], row["runs"], row["answered"]) == ("evidential", "30", "30")
    assert len(json.loads(kept.read_text())["found"]["low"]) == 30
    assert capsys.readouterr().out.endswith(f"1 rows in {out}\n")
    with pytest.raises(SystemExit):
        command.main(["--tools", "evidental"])
    assert "no such tool: evidental" in capsys.readouterr().err


def test_a_tool_that_is_missing_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tools = read_tools()
    options = argparse.Namespace(cache=tmp_path, snapshots=tmp_path, until=math.inf, seconds=1.0, most=1)
    command.run_tool(tools["avlm"], [], options)
    said = capsys.readouterr().out
    assert said.startswith("avlm was not run to the end: ")
    assert "clone https://github.com/michaellindon/avlm at e4d98c5" in said or "R is not installed" in said
    assert environments.python_of(tools["statsmodels"], tmp_path) == Path(sys.executable)


def test_rows_for_r_are_numbered_by_log(tree: list[Log]) -> None:
    rows = r_tools.table(tree[:2], "policy")
    assert rows.groupby("log").size().tolist() == [1000, 1000]
    assert rows.loc[rows["log"] == 1, "policy1"].tolist() == tree[1].policy[:, 1].tolist()
    assert rows["about"].tolist() == [0] * 2000


def test_the_platforms_formulas() -> None:
    n = np.array([[3.0, 1.0], [2.0, 4.0]])
    log = Log(
        2, 0, n, np.array([[1.0, 1.0], [1.0, 2.0]]), np.array([[1.0, 1.0], [1.0, 2.0]]), True, False, 10
    )
    mean = [0.4 / 3 + 0.6 / 2, 0.4 * 1 + 0.6 / 2]
    error = [math.sqrt(0.16 * (1 / 3) / 3 + 0.36 * 0.5 / 2), math.sqrt(0.36 * (1 / 3) / 4)]
    for target, arm in (("arm", 0), ("leader", 1), ("lowest", 0)):
        low, high, named = growthbook.interval(log, target)
        assert (low, high) == pytest.approx(
            (mean[arm] - 1.959964 * error[arm], mean[arm] + 1.959964 * error[arm])
        )
        assert named == arm
    low, high, named = evidential.interval(log, "leader")
    assert named == 1
    assert (low, high) == pytest.approx(beta.ppf([0.025, 0.975], 4, 3), abs=1e-8)


def test_statsmodels_and_adaptinf_answer_every_target() -> None:
    rng = np.random.default_rng(1)
    arms, rewards = rng.integers(2, size=1000), (rng.random(1000) < 0.5).astype(float)
    for target in ("arm", "contrast", "leader", "lowest", "policy", "ratio"):
        one = Cell("", "coin", "equal", 2, 1000, "all", target)
        log = shown(one, arms, rewards, np.full(2000, 0.5))
        naive = statsmodels.interval(log, target)
        low, high, *_ = adaptinf.interval(log, target)
        assert low < truth(one, 0) < high
        assert high - low == pytest.approx(naive[1] - naive[0], rel=0.35), target
        if target == "lowest":
            own = rewards[arms == log.arm]
            error = own.std() / math.sqrt(len(own)) * math.sqrt(1000 / 998)
            assert naive == pytest.approx(
                [own.mean() - 1.959964 * error, own.mean() + 1.959964 * error], rel=1e-6
            )


def test_tools_are_at_least_fourteen_and_short() -> None:
    tools = read_tools()
    assert len(tools) >= 15
    adapters = {path.stem: path for path in (HERE / "adapters").iterdir() if path.suffix in (".py", ".R")}
    assert set(adapters) - {"__init__"} == set(tools)
    for name, tool in tools.items():
        assert adapters[name].read_text(encoding="utf-8").count("\n") <= 40, name
        assert (adapters[name].suffix == ".R") == (tool.environment == "R")
        assert cells_of(tool), name
    few = {name: len(cells_of(tool)) for name, tool in tools.items() if len(cells_of(tool)) < 24}
    assert few == {"growthbook": 12, "pyssed": 4}  # sums by period, and one design, are what they speak of
    assert len(cells_of(tools["adaptinf"])) == 185
    assert {"lifejacket", "cramR"} <= set(left_out())
    pinned = (HERE / "requirements" / "tools.txt").read_text(encoding="utf-8")
    for name, tool in tools.items():
        if tool.environment == "tools":
            package = name.removesuffix("_gaussian").replace("_", "-")
            assert f"{package}=={tool.version.split()[0]}" in pinned


def test_results_are_of_the_cells_and_tools_that_are_listed() -> None:
    rows = pd.read_csv(compare.RESULTS)
    assert tuple(rows.columns) == score.COLUMNS
    tools = read_tools()
    wanted = {(one.cell, name, one.target) for name, tool in tools.items() for one in cells_of(tool)}
    keys = list(zip(rows["cell"], rows["tool"], rows["target"], strict=True))
    assert set(keys) <= wanted
    assert len(keys) == len(set(keys))
    assert (rows["answered"] <= rows["runs"]).all()
    assert rows["runs"].min() >= 200
    answered = rows[rows["answered"] > 0]
    assert (answered[["coverage", "below", "above"]].sum(axis=1) - 1).abs().max() < 2e-4
    assert (
        rows[rows["answered"] == 0][["coverage", "below", "above", "width", "warned"]].isna().all(axis=None)
    )


def test_the_page_says_what_the_results_say() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    rows = compare.read_results()
    assert page.filled(text, rows) == text
    changed = rows.assign(coverage=rows["coverage"] * 0.9)
    assert page.filled(text, changed) != text
    with pytest.raises(ValueError, match="the page must have the part <!-- tools -->"):
        page.filled(text.replace("<!-- tools -->", ""), rows)


def test_which_is_narrowest_is_judged_among_those_that_cover() -> None:
    told = [
        ("ours", "a", 0.95, 1.2),
        ("naive", "a", 0.95, 1.0),
        ("ours", "b", 0.95, 1.2),
        ("naive", "b", 0.5, 1.0),
    ]
    rows = pd.DataFrame(
        {
            "cell": f"coin/{world}/2/all", "tool": tool, "target": "arm", "runs": 400, "answered": 400,
            "coverage": coverage, "width": width, "design": "coin", "world": world, "arms": 2,
            "information": "all",
            "valid": coverage > 0.9, "near": coverage > 0.9, "refused": 0.0,
        }
        for tool, world, coverage, width in told
    )  # fmt: skip
    assert compare.share_narrowest(rows, "ours") == {"in the cell": 0.5, "in every world": 1.0}
    [wider] = compare.not_narrowest(rows, "ours").to_dict("records")
    assert (wider["cell"], wider["narrower"], wider["elsewhere"]) == ("coin/a/2/all", "naive", 0.5)
    assert wider["why"] == "wider; the other misses in another world of this design"
    [group] = compare.causes(rows, "ours").to_dict("records")
    assert group == {
        "cause": "the other misses in another world of this design",
        "cells": 1,
        "wider": pytest.approx(1.2),
        "lowest elsewhere": 0.5,
    }


@pytest.mark.parametrize(
    ("cell", "target", "why", "cause"),
    [
        ("coin/rare/2/all", "ratio", "refused in every log", "refused in every log"),
        ("coin/rare/2/all", "leader", "wider, and", "the interval allows for the choice of the arm"),
        ("ucb/equal/2/none", "arm", "wider, and", "no chances are logged"),
        ("coin/skewed/2/all", "arm", "wider, and", "rare, skewed or repeated outcomes"),
        ("mad/equal/2/all", "arm", "wider, and", "the interval does not assume that chances settle"),
    ],
)
def test_cells_are_grouped_by_what_their_width_is_the_price_of(
    cell: str, target: str, why: str, cause: str
) -> None:
    assert compare._cause(pd.Series({"cell": cell, "target": target, "why": why})).startswith(cause)


def test_tools_with_few_cells_say_why() -> None:
    rows = pd.DataFrame(
        [("growthbook", 0.001)] * 12 + [("ville", 0.02)] * 30 + [("pyssed", 0.002)] * 4,
        columns=["tool", "seconds"],
    )
    lines = page.few_cells(rows).splitlines()[2:]
    assert lines == [
        "| growthbook | 12 | 12 | 1.0 | its documentation speaks to no others |",
        "| ville | 30 | 131 | 20.0 | the others were not run |",
        "| pyssed | 4 | 4 | 2.0 | its documentation speaks to no others |",
    ]


def test_sentences_of_the_page_quote_its_tables() -> None:
    first = pd.read_csv(HERE / "tables" / "first_figures.csv")
    ten = first[first["arms"] == 10].set_index("tool")
    text = page.PAGE.read_text(encoding="utf-8")
    found = re.search(r"leading arm covers in (\.\d+) of 500 logs, and\s+Evidential's in (\.\d+)", text)
    assert [float(number) for number in found.groups()] == ten.loc[
        ["growthbook", "evidential"], "leader"
    ].tolist()
    earlier = {
        "growthbook": {2: (0.960, 0.978), 5: (0.880, 0.815), 10: (0.775, 0.562), 20: (0.490, 0.165)},
        "evidential": {2: (0.952, 0.911), 5: (0.899, 0.842), 10: (0.832, 0.865), 20: (0.728, 1.000)},
    }
    for row in first.itertuples():
        logs = 400 if row.tool == "growthbook" else 1000
        for ours, other in zip((row.leader, row.lowest), earlier[row.tool][row.arms], strict=True):
            error = math.sqrt(ours * (1 - ours) / row.logs + other * (1 - other) / logs)
            assert abs(ours - other) <= 0.02 + 1.96 * error, row


def test_a_tool_that_was_not_run_in_all_of_its_worlds_is_not_called_valid_in_all() -> None:
    rows = compare.read_results()
    mad = rows[(rows["design"] == "mad") & (rows["target"] == "arm")]
    assert set(mad[mad["tool"] == "sandwich"]["world"]) < set(mad["world"])
    assert mad[mad["tool"] == "sandwich"]["near"].all()
    assert "sandwich" not in set(compare.everywhere(mad)["tool"])
    assert "adaptinf" in set(compare.everywhere(mad)["tool"])
