"""The command line: the winner."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import adaptinf as ai
from adaptinf.cli.entry import main


def test_the_winner_alone_and_against_a_control(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    env = ai.environments.BernoulliArms([0.3, 0.4, 0.5])
    log = ai.designs.Thompson(floor=0.1).run(env, horizon=600, rng=0)
    file = tmp_path / "log.parquet"
    log.to_parquet(file)
    for given, fit in (([], ai.Winner(log).fit()), (["--control", "0"], ai.Winner(log, control=0).fit())):
        assert main(["analyze", str(file), "--winner", "--format", "json", *given]) == 0
        told = json.loads(capsys.readouterr().out)
        row = told["results"][0]
        assert (told["model"], row["term"]) == ("Winner", fit.terms[0])
        assert [row["conf_low"], row["conf_high"]] == pytest.approx(fit.conf_int().to_numpy()[0], rel=1e-9)
    assert main(["analyze", str(file), "--winner", "--treatment", "1", "--control", "0"]) == 2
    assert "must be used alone or with --control" in capsys.readouterr().err
