"""The command line: ratio metrics and covariates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adaptinf as ai
from adaptinf.cli.entry import main
from adaptinf.inference.results import Results
from adaptinf.log.validation import OF_TABLES, nested_options

COLUMNS = ["--action", "arm", "--reward", "y", "--propensities", "p_{arm}", "--context", "before"]


def sample(tmp_path: Path) -> tuple[pd.DataFrame, str]:
    rng = np.random.default_rng(0)
    arm, before = rng.integers(2, size=400), rng.normal(size=400)
    orders = rng.poisson(2.0, size=400) + 1
    reward = orders * (rng.gamma(2.0, size=400) + before + 5)
    frame = pd.DataFrame({"arm": np.array(["a", "b"])[arm], "y": reward})
    frame = frame.assign(orders=orders, before=before, p_a=0.5, p_b=0.5)
    frame.to_csv(tmp_path / "log.csv", index=False)
    return frame, str(tmp_path / "log.csv")


def check(capsys: pytest.CaptureFixture[str], given: list[str], expected: Results) -> None:
    assert main(["analyze", *given, "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["model"] == expected.model
    assert [row["estimate"] for row in told["results"]] == pytest.approx(expected.estimate, rel=1e-12)
    assert [row["conf_low"] for row in told["results"]] == pytest.approx(expected.conf_int()["low"], rel=1e-9)


def test_ratios_and_covariates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame, path = sample(tmp_path)
    named: dict[str, Any] = {"action": "arm", "reward": "y", "propensities": "p_{arm}", "context": "before"}
    log = ai.AdaptiveLog(frame, **named, outcomes="orders")
    below, given = ["--denominator", "orders"], [path, *COLUMNS]
    check(capsys, [*given, *below], ai.ArmMeans(log, denominator="orders").fit())
    pair = ["--treatment", "b", "--control", "a"]
    expected = ai.Contrast(log, treatment="b", control="a", denominator="orders").fit(covariate="before")
    check(capsys, [*given, *below, *pair, "--covariate", "before"], expected)
    lifts = ai.Contrasts(log, control="a", denominator="orders").fit(lift=True)
    check(capsys, [*given, *below, "--control", "a", "--lift"], lifts)
    log.to_parquet(tmp_path / "log.parquet")
    check(capsys, [str(tmp_path / "log.parquet"), *below], ai.ArmMeans(log, denominator="orders").fit())


@pytest.mark.parametrize("option", ["denominator", "covariate"])
def test_what_does_not_take_them(tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str) -> None:
    _, path = sample(tmp_path)
    assert main(["analyze", path, *COLUMNS, f"--{option}", "before", "--winner"]) == 2
    assert f"--{option} cannot be combined with --by, --winner or --received" in capsys.readouterr().err


def test_of_a_table_of_sums(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame, _ = sample(tmp_path)
    y, z, x = frame["y"], frame["orders"], frame["before"]
    wide = frame.assign(week=np.arange(400) // 200, n=1, yy=y * y, zz=z * z, yz=y * z, xx=x * x, yx=y * x)
    table = wide.drop(columns=["p_a", "p_b"]).groupby(["week", "arm"], as_index=False).sum().assign(p=0.5)
    table.to_csv(tmp_path / "sums.csv", index=False)
    names = {"batch": "week", "n": "n", "sum": "y", "sum_squares": "yy", "propensity": "p"}
    names |= {"denominator": "orders", "denominator_sum_squares": "zz", "denominator_sum_products": "yz"}
    given = [str(tmp_path / "sums.csv"), "--action", "arm"]
    given += [text for name, column in names.items() for text in (f"--{name.replace('_', '-')}", column)]
    pair = {"treatment": "b", "control": "a"}
    sums = ai.Sums(table, arm="arm", **nested_options(names, OF_TABLES))
    asked = ["--treatment", "b", "--control", "a"]
    check(capsys, [*given, *asked], ai.Contrast(sums, **pair, denominator="orders").fit())
    covariate = {"covariate_sum_squares": "xx", "covariate_sum_products": "yx"}
    more = [text for name, column in covariate.items() for text in (f"--{name.replace('_', '-')}", column)]
    roles = {name: column for name, column in names.items() if not name.startswith("denominator")}
    sums = ai.Sums(table, arm="arm", covariate="before", **nested_options({**roles, **covariate}, OF_TABLES))
    plain = given[: given.index("--denominator")]
    expected = ai.Contrast(sums, **pair).fit(covariate="before")
    check(capsys, [*plain, *more, *asked, "--covariate", "before"], expected)
    sums.to_parquet(tmp_path / "sums.parquet")
    check(capsys, [str(tmp_path / "sums.parquet"), *asked, "--covariate", "before"], expected)
    assert main(["analyze", *plain, "--covariate", "before"]) == 2
    assert "--covariate also requires --covariate-sum-squares" in capsys.readouterr().err
    assert main(["analyze", *plain, *more, "--covariate", "before", "--covariate", "y"]) == 2
    assert "--covariate: a table of sums allows only one covariate" in capsys.readouterr().err
