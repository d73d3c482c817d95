"""Reports for a data monitoring committee: what each of the two shows, and who can read its file."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims.logs import committees as claims
from adaptinf.errors import ParameterError

COIN = ai.designs.Uniform()


def plan_of(**others: Any) -> ai.Plan:
    options: dict[str, Any] = {"arms": ("usual", "new <b>"), "treatment": "new <b>", "control": "usual"}
    return ai.Plan(COIN, **{**options, "looks": [100, 200], **others})


def log_of(means: tuple[float, float], rounds: int) -> ai.AdaptiveLog:
    return COIN.run(ai.environments.NormalArms(means), horizon=rounds, rng=1)


def test_an_open_report_shows_nothing_by_arm() -> None:
    log = log_of((0.0, 0.1), 120)
    found = plan_of().committee(log)
    assert found.looks.to_dict("records") == [{"look": 1, "participants": 100, "ends the trial": "no"}]
    assert found.by_arm.empty
    assert (found.facts["Participants"], found.facts["Outcomes"]) == ("120", "120")
    assert found.facts["Mean outcome"] == f"{log.arrays.reward.mean():.4g}"
    assert found.facts["Standard deviation"] == f"{log.arrays.reward.std(ddof=1):.4g}"
    assert found.statements == [claims.OPEN()]
    text = found.to_markdown()
    look, by_arm = plan_of().look(log), plan_of().committee(log, closed=True).by_arm
    hidden = [f"{look.statistic:.4f}", f"{look.bound:.4f}", *map(str, by_arm["participants"])]
    hidden += [f"{mean:.4f}" for mean in by_arm["mean"]]
    assert not any(number in text for number in hidden)
    assert "Information" not in text


def test_a_closed_report_shows_looks_arms_and_conditional_power() -> None:
    log, plan = log_of((0.0, 0.1), 120), plan_of()
    found, look = plan.committee(log, closed=True), plan.look(log)
    (row,) = found.looks.to_dict("records")
    assert (row["statistic"], row["bound"], row["decision"]) == (look.statistic, look.bound, "continue")
    arrays = log.arrays
    for code, arm in enumerate(("usual", "new <b>")):
        own = found.by_arm.set_index("arm").loc[arm]
        assert own["mean"] == pytest.approx(arrays.reward[arrays.action == code].mean(), rel=1e-12)
        assert own["participants"] == own["outcomes"] == np.count_nonzero(arrays.action == code)
    assert found.facts["Information"] == f"{plan.information(log):.4g}"
    power = {"estimate": plan.conditional_power(log), "null": plan.conditional_power(log, 0.0)}
    assert found.statements[:2] == [claims.CLOSED(), claims.NAIVE()]
    assert says(found.statements[2], claims.POWER, **power, predictive=plan.predictive_power(log))
    assert found.to_markdown().startswith("# Closed report for the data monitoring committee\n")


def test_after_the_stop_it_shows_the_result() -> None:
    log = log_of((0.0, 1.0), 120)
    found = plan_of().committee(log, closed=True)
    sentence = plan_of().analyse(log).sentence()
    assert found.statements[-1] == claims.RESULT(decision="reject", sentence=sentence)
    assert plan_of().committee(log).looks["ends the trial"].tolist() == ["yes"]
    before = plan_of().committee(log_of((0.0, 1.0), 50), closed=True)
    assert before.looks.empty
    assert says(before.statements[-1], claims.NO_POWER)
    assert "None." in before.to_markdown()


def test_pages_and_who_can_read_them(tmp_path: Path) -> None:
    log, plan = log_of((0.0, 0.1), 120), plan_of()
    for closed in (False, True):
        path = tmp_path / f"{closed}.html"
        ai.report(plan.committee(log, closed=closed), path)
        page = path.read_text(encoding="utf-8")
        assert f"<h1>{'Closed' if closed else 'Open'} report for the data monitoring committee</h1>" in page
        assert "new <b>" not in page
        assert (stat.S_IMODE(path.stat().st_mode) == 0o600) == closed
        assert ("Outcomes by arm" in page) == closed


def test_a_live_trial_states_its_looks(tmp_path: Path) -> None:
    with ai.Trial.create(tmp_path / "trial.db", plan_of(looks=[4, 8], least=0)) as trial:
        for number in range(5):
            trial.record(trial.assign(number, key=f"a{number}").id, float(number % 2), key=f"r{number}")
            trial.look() if number == 3 else None
        trial.assign(5, key="a5")
        log, taken = trial.log(missing="drop"), trial.looks()
    found = ai.Plan.of(log).committee(log, closed=True)
    assert found.looks["statistic"].tolist() == pytest.approx(taken["statistic"].tolist(), nan_ok=True)
    assert (found.facts["Participants"], found.facts["Outcomes"]) == ("6", "5")
    assert found.by_arm["outcomes"].sum() == 5


def test_a_private_trial_is_framed(tmp_path: Path) -> None:
    design = ai.designs.Mixture(ai.designs.PrivateUCB(epsilon=1.0), exploration=0.5)
    plan = ai.Plan(design, arms=(0, 1), treatment=1, control=0, looks=[40, 80])
    log = design.run(ai.environments.BernoulliArms([0.3, 0.6]), horizon=50, rng=0)
    found = plan.committee(log, closed=True)
    assert claims.UNCOVERED() in found.statements
    ai.report(found, tmp_path / "closed.html")
    page = (tmp_path / "closed.html").read_text(encoding="utf-8")
    assert page.index('class="box"') < page.index("Outcomes by arm")


def test_refusals(tmp_path: Path) -> None:
    log = log_of((0.0, 0.1), 120)
    with pytest.raises(ParameterError, match="closed must be"):
        plan_of().committee(log, closed="yes")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="the log has the arms"):
        plan_of(arms=("usual", "new <b>", "third")).committee(log)
    with pytest.raises(ParameterError, match="docx= applies only"):
        ai.report(plan_of().committee(log), tmp_path / "a.html", docx=tmp_path / "a.docx")
