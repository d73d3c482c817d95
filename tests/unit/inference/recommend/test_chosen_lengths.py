"""What a log states of how its number of rounds was chosen: kept by every door, and said by every table."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adaptinf as ai
from adaptinf.claims import recommendations
from adaptinf.claims.logs import coverage, stopping
from adaptinf.cli.entry import main
from adaptinf.designs import DPConSE, FunctionDesign, Thompson, Uniform
from adaptinf.errors import LogValidationError, ParameterError
from adaptinf.inference.inputs.rounds import log_of_rounds
from adaptinf.log.report import STOPPINGS
from adaptinf.log.traits import Outputs
from tests.claims_said import says

PAIR = {"treatment": "b", "control": "a"}
ROWS = 160
STATED = pytest.mark.parametrize("stated", [*STOPPINGS, None])


def frame(first: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(first)
    arm = rng.choice(["a", "b"], ROWS)
    rate = np.where(arm == "b", 0.6, 0.4)
    rows = {"arm": arm, "y": rng.binomial(1, rate), "p_a": 0.5, "p_b": 0.5, "x": rng.normal(size=ROWS)}
    return pd.DataFrame({**rows, "week": first + np.arange(ROWS) // 40})


def log_of(stated: str | None, **options: Any) -> ai.AdaptiveLog:
    given: dict[str, Any] = {"action": "arm", "reward": "y", "propensities": "p_{arm}", "batch": "week"}
    return ai.AdaptiveLog(frame(), **given, context="x", reward_range=(0, 1), stopping=stated, **options)


def sums_of(stated: str | None, first: int = 0) -> ai.Sums:
    given: dict[str, Any] = {"action": "arm", "reward": "y", "propensities": "p_{arm}", "batch": "week"}
    return ai.aggregate(frame(first), **given, reward_range=(0, 1), stopping=stated)


# Kept


@STATED
@pytest.mark.parametrize("name", ["log.parquet", "log.csv"])
def test_files_keep_it(stated: str | None, name: str, tmp_path: Path) -> None:
    log = log_of(stated)
    (log.to_parquet if name.endswith("parquet") else log.to_csv)(tmp_path / name)
    again = ai.read_log(tmp_path / name)
    assert again.stopping == stated
    assert again.equals(log)
    assert again.equals(log_of("fixed")) is (stated == "fixed")


@STATED
def test_sums_keep_it(stated: str | None, tmp_path: Path) -> None:
    sums = sums_of(stated)
    sums.to_parquet(tmp_path / "sums.parquet")
    assert ai.Sums.read_parquet(tmp_path / "sums.parquet").stopping == sums.stopping == stated
    assert (sums + sums_of(stated, 9)).stopping == stated
    assert ai.Sums.of_log(log_of(stated)).stopping == stated
    with pytest.raises(ParameterError, match="stopping differs"):
        sums + sums_of("fixed" if stated is None else None, 9)


def test_other_words_are_refused() -> None:
    for made in (log_of, sums_of):
        with pytest.raises(LogValidationError, match="stopping must be one of 'fixed', 'data-chosen', 'plan"):
            made("early")


def test_in_print() -> None:
    assert "\n  stopping: fixed\n" in repr(log_of("fixed"))
    assert "\n  stopping: planned\n" in repr(sums_of("planned"))
    assert "stopping" not in repr(log_of(None))


def test_runs_have_the_length_that_was_asked_for() -> None:
    arms = ai.environments.BernoulliArms([0.3, 0.5])
    assert Thompson().run(arms, horizon=50, rng=0).stopping == "fixed"
    session = Uniform().session(["a", "b"], horizon=3, rng=0)
    lengths = []
    for _ in range(3):
        session.record(session.assign().id, 1.0)
        lengths.append(session.log().stopping)
    assert lengths == [None, None, "fixed"]


def test_releases_that_decide_the_length_are_a_plan() -> None:
    traits = ai.designs.DesignTraits(outputs=Outputs(length="releases"))
    design = FunctionDesign(lambda state, context, rng: [0.5, 0.5], traits=traits)
    assert design.run(ai.environments.BernoulliArms([0.3, 0.5]), horizon=50, rng=0).stopping == "planned"


def test_the_public_part_says_it() -> None:
    groups = ai.environments.FiniteContext([0.5, 0.5], [[0.4, 0.7], [0.6, 0.3]])
    log = DPConSE(epsilon=1.0).run(groups, horizon=2_000, rng=0)
    assert log.public().stopping == "fixed"
    stopped = log.stating("data-chosen")
    public = stopped.public()
    assert (public.stopping, public.facts["stopping"]) == ("data-chosen", "data-chosen")
    assert says(public.covered["n_rounds"], coverage.STOPPED_BY_DATA)
    by = public.facts["contexts"][0]
    tables = [ai.CATE(data, by=by).fit("released") for data in (stopped, public)]
    for table in tables:
        assert says(table.cautions, stopping.DATA_CHOSEN, rounds="2,000 rounds")
        assert says(table.cautions, stopping.NO_RELEASED_METHOD)
    assert str(tables[0]) == str(tables[1])


# Trials


def stopped_trial(path: Path, people: int, horizon: int = 8) -> ai.AdaptiveLog:
    with ai.Trial.create(path / "trial.db", Uniform(), ["a", "b"], horizon) as trial:
        for number in range(people):
            decision = trial.assign(f"unit {number}", key=f"assign {number}")
            trial.record(decision.id, float(number % 3 == 0), key=f"record {number}")
        assert trial.log().stopping == ("fixed" if people == horizon else None)
        trial.finish("stopped for efficacy")
    with ai.Trial.open(path / "trial.db") as trial:
        return trial.log()


def test_a_trial_that_is_finished_early(tmp_path: Path) -> None:
    log = stopped_trial(tmp_path, 6)
    assert log.stopping == "data-chosen"
    assert "stopping: data-chosen, after 6 of 8 rounds ('stopped for efficacy')" in repr(log)
    log.to_parquet(tmp_path / "log.parquet")
    for data in (log, ai.read_log(tmp_path / "log.parquet"), log_of_rounds(log, np.arange(6) > 1)):
        result = ai.ArmMeans(data).fit()
        told = {"rounds": "6 of 8 rounds", "reason": "stopped for efficacy"}
        assert says(result.cautions[:1], stopping.STOPPED, **told)
        assert says(replace(result, null=0.5).cautions, stopping.STOPPED)
        assert len(replace(result, null=0.5).cautions) == len(result.cautions)


def test_a_trial_that_is_finished_at_its_horizon(tmp_path: Path) -> None:
    log = stopped_trial(tmp_path, 8)
    assert log.stopping == "fixed"
    result = ai.ArmMeans(log).fit()
    assert not any(says(result.cautions, claim) for claim in stopping.FIXED_LENGTH)
    assert not says(result.notes, stopping.ASSUMED_FIXED)


# Tables

FITS = {
    "means": lambda log: ai.ArmMeans(log).fit(),
    "contrast": lambda log: ai.Contrast(log, **PAIR).fit(),
    "contrasts": lambda log: ai.Contrasts(log, control="a").fit(),
    "winner": lambda log: ai.Winner(log).fit(),
    "policy": lambda log: ai.PolicyValue(log, "uniform").fit(),
    "projection": lambda log: ai.CATE.from_formula("x", log, **PAIR).fit(),
    "regression": lambda log: ai.AdaptiveOLS(log, ["x"]).fit(),
}
FOLLOWED = ("means", "contrast", "contrasts", "winner", "policy")


@pytest.mark.parametrize("name", FITS)
def test_every_table_of_a_fixed_length_says_what_chose_it(name: str) -> None:
    unstated, fixed, chosen, planned = (FITS[name](log_of(said)) for said in (None, *STOPPINGS))
    assert says(unstated.notes, stopping.ASSUMED_FIXED)
    assert sum(says(note, stopping.ASSUMED_FIXED) for note in unstated.notes) == 1
    assert unstated.cautions == fixed.cautions == chosen.cautions[1:] == planned.cautions[1:]
    for result in (fixed, chosen, planned):
        assert not says(result.notes, stopping.ASSUMED_FIXED)
    assert says(chosen.cautions[:1], stopping.DATA_CHOSEN, rounds="160 rounds")
    assert says(planned.cautions[:1], stopping.PLANNED, rounds="160 rounds")
    instead = stopping.ELLIPSOID if name == "regression" else stopping.NO_METHOD
    assert says(chosen.cautions, stopping.CONFIDENCE_SEQUENCE if name in FOLLOWED else instead)


@pytest.mark.parametrize("name", ["means", "contrast"])
def test_tables_from_sums_say_it(name: str) -> None:
    assert says(FITS[name](sums_of(None)).notes, stopping.ASSUMED_FIXED)
    assert says(FITS[name](sums_of("data-chosen")).cautions, stopping.DATA_CHOSEN)


def test_tables_that_hold_at_any_length_say_nothing() -> None:
    ols = {"adjustment": "ellipsoid", "bound": 2.0}
    for said in (None, *STOPPINGS):
        tables = [
            ai.ConfidenceSequence(log_of(said)).fit(),
            ai.ConfidenceSequence(log_of(said)).fit(method="asymptotic"),
            ai.ConfidenceSequence(sums_of(said)).fit(),
            ai.AdaptiveOLS(log_of(said), ["x"]).fit(**ols),
        ]
        for table in tables:
            told = (*table.notes, *table.cautions)
            assert not any(says(told, claim) for claim in stopping.FIXED_LENGTH), table


def test_no_sequence_is_named_where_rewards_are_missing() -> None:
    rows = frame().assign(y=lambda x: x["y"].where(x.index % 9 > 0))
    given: dict[str, Any] = {"action": "arm", "reward": "y", "propensities": "p_{arm}", "missing": "drop"}
    log = ai.AdaptiveLog(rows, **given, stopping="data-chosen")
    assert says(ai.ArmMeans(log).fit().cautions, stopping.NO_METHOD)


def test_a_result_without_a_log_says_nothing() -> None:
    own = ai.result({"a": 0.5}, {"a": 0.1}, label="my estimator")
    assert not says(own.notes, stopping.ASSUMED_FIXED)


# Recommendations


@pytest.mark.parametrize("data", [log_of, sums_of])
@pytest.mark.parametrize("target", ["arm-means", "contrast"])
def test_sequences_come_first_where_the_length_was_chosen(data: Any, target: str) -> None:
    pair = PAIR if target == "contrast" else {}
    reasons = {
        "data-chosen": recommendations.STOPPED_BY_DATA,
        "planned": recommendations.STOPPED_BY_PLAN,
    }
    for said, reason in reasons.items():
        table = ai.recommend(data(said), target, **pair)
        valid = [one for one in table.methods if one.verdict.valid]
        assert valid
        assert all("sequence" in one.verdict.name for one in valid)
        others = [one.verdict for one in table.methods if one.verdict.reason == reason()]
        assert others
        assert table.fit().at_any_length
    for said in (None, "fixed"):
        table = ai.recommend(data(said), target, **pair)
        assert not table.fit().at_any_length
        assert says(table.best.verdict.assumes, stopping.ASSUMED_FIXED) is (said is None)


def test_policies_have_sequences_too() -> None:
    table = ai.recommend(log_of("data-chosen"), "policy-value", policy="uniform")
    assert table.fit().at_any_length


def test_the_argument_is_in_the_place_of_the_log() -> None:
    table = ai.recommend(log_of("data-chosen"), stopping="fixed")
    assert not table.fit().at_any_length
    assert not says(table.fit().cautions, stopping.DATA_CHOSEN)
    assert dict(table.facts)["Rounds"] == "160, stopping fixed"
    log = log_of(None)
    assert ai.recommend(log, stopping="planned").fit().at_any_length
    assert log.stopping is None
    assert says(dict(ai.recommend(log).facts)["Rounds"], stopping.UNSTATED)


def test_the_reason_of_a_default_names_the_call_that_has_it_first() -> None:
    first = ai.recommend(log_of("data-chosen"), stopping="fixed").best
    fitted = ai.ArmMeans(log_of("data-chosen")).fit()
    assert first.call == f"ArmMeans(log).fit(estimator={fitted.estimator!r})"
    assert any("recommend(log, stopping='fixed')" in note for note in fitted.notes)


# Elsewhere


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ab.csv"
    frame().to_csv(path, index=False)
    given = [str(path), "--action", "arm", "--reward", "y", "--stopping", "data-chosen"]
    assert main(["validate", *given]) == 0
    assert "stopping: data-chosen" in capsys.readouterr().out
    assert main(["analyze", *given, "--format", "json"]) == 0
    told = [one["text"] for one in json.loads(capsys.readouterr().out)["claims"] if one["kind"] == "caution"]
    assert says(told, stopping.DATA_CHOSEN, rounds="160 rounds")


def test_a_report_opens_with_it(tmp_path: Path) -> None:
    ai.report(log_of("data-chosen"), tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "160 rounds of an unnamed design, stopping data-chosen" in page.split("<h2")[0]
    assert "Confidence" in page
