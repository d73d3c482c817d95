"""The appendix of a protocol: twelve topics, numbers from the table, Markdown and a page."""

from __future__ import annotations

import html
import re
from pathlib import Path

import numpy as np
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims.logs import protocols as claims
from adaptinf.claims.reports.answers import E20_TOPICS, FOR_AUTHORS
from adaptinf.errors import ParameterError

WORLDS = {
    "equal": ai.environments.BernoulliArms([0.3, 0.3]),
    "higher": ai.environments.BernoulliArms([0.6, 0.6]),
    "better": ai.environments.BernoulliArms([0.3, 0.6]),
}


def plan_of(**others: object) -> ai.Plan:
    options = {"arms": ("usual", "new <b>"), "treatment": "new <b>", "control": "usual", "looks": [100, 200]}
    return ai.Plan(ai.designs.Thompson(floor=0.2), **{**options, **others})


@pytest.fixture(scope="module")
def appendix() -> ai.plans.Protocol:
    return plan_of(futility=0.1).protocol(WORLDS, 128, rng=3)


def test_the_twelve_topics_are_answered_from_the_table(appendix: ai.plans.Protocol) -> None:
    found = appendix.topics.set_index("topic")["answer"]
    assert list(found.index) == list(E20_TOPICS)
    assert len(found) == 12
    frame = appendix.found.frame.set_index("scenario")
    null = frame.loc[["equal", "higher"], "rejected"]
    assert says(found.iloc[2], claims.LEVEL, share=null.max(), scenario=null.idxmax(), scenarios=2)
    assert says(found.iloc[3], claims.POWER, share=frame.loc["better", "rejected"], scenario="better")
    assert says(found.iloc[4], claims.BIAS, bias=frame["bias"][frame["bias"].abs().idxmax()])
    assert says(found.iloc[5], claims.COVERAGE, share=frame["coverage"].min(), nominal=0.95)
    assert says(found.iloc[9], claims.SIMULATION, trials=128, seed=3, scenarios="equal, higher, better")
    assert (found == FOR_AUTHORS).sum() == 2
    assert list(found[found == FOR_AUTHORS].index) == [E20_TOPICS[0], E20_TOPICS[10]]


def test_markdown_has_every_part(appendix: ai.plans.Protocol) -> None:
    text = appendix.to_markdown()
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    assert headings == [
        "Appendix: adaptive design",
        "Critical values",
        "Operating characteristics",
        "Looks",
        "Topics of the ICH E20 draft",
    ]
    for part in ("| Looks | after 100, 200 rounds |", "| Level | 0.05, two-sided |", "not binding"):
        assert part in text
    assert f"| {E20_TOPICS[0]} | {FOR_AUTHORS} |" in text


def test_every_characteristic_is_in_words(appendix: ai.plans.Protocol) -> None:
    several = {"arms": ("c", "x_1", "y"), "treatment": ("x_1", "y"), "control": "c"}
    plan = ai.Plan(ai.designs.Uniform(), **several, looks=[60, 120], delay=5, accrual=2.0)
    worlds = {"equal": ai.environments.NormalArms([0.0, 0.0, 0.0])}
    for one in (appendix, plan.protocol(worlds, 8, rng=1)):
        names = one.characteristics["characteristic"].tolist()
        assert len(set(names)) == len(names) == one.found.frame.shape[1] - 1
        plain = [name.replace("x_1", "") for name in names]
        assert not [name for name in plain if "_" in name]
    words = one.characteristics.set_index("characteristic")["equal"]
    frame = one.found.frame.iloc[0]
    assert words["Rounds of x_1, mean"] == frame["rounds_x_1"]
    assert words["Number of rounds, 90% quantile"] == frame["size_q90"]
    assert words["Any null hypothesis rejected"] == frame["rejected"]
    assert words["Any null hypothesis rejected, Monte Carlo error"] == frame["rejected_se"]
    assert words["Joint coverage of the intervals"] == frame["coverage"]
    assert words["x_1 dropped before the end"] == frame["dropped_x_1"]
    assert appendix.characteristics["characteristic"].iloc[0] == "True difference"
    assert one.looks.columns[-1] == "rejected so far"


def test_the_page_escapes_labels_and_states_the_same(appendix: ai.plans.Protocol, tmp_path: Path) -> None:
    ai.report(appendix, tmp_path / "appendix.html", call="plan.protocol(worlds, 128, rng=3)")
    page = (tmp_path / "appendix.html").read_text(encoding="utf-8")
    assert "<h1>Appendix: adaptive design</h1>" in page
    assert "new <b>" not in page
    for topic, answer in appendix.topics.to_numpy():
        assert topic in html.unescape(page)
        assert answer in html.unescape(page)
    with pytest.raises(ParameterError, match="docx="):
        ai.report(appendix, tmp_path / "again.html", docx=tmp_path / "again.docx")


def test_other_laws_and_sides_say_what_holds_for_them() -> None:
    worlds = {"better": WORLDS["better"]}
    exact = plan_of(law="exact", looks=[20, 40], sides=1, alpha=0.025).protocol(worlds, 64, rng=1)
    found = exact.topics["answer"]
    assert says(found[2], claims.LEVEL_NOT_SIMULATED, alpha=0.025)
    assert says(found[5], claims.NO_INTERVAL)
    assert says(found[6], claims.BY_COUNTS)
    assert says(found[7], claims.NO_DRIFT)
    assert found[8] == FOR_AUTHORS
    assert exact.facts["Null hypothesis"] == "the difference is at most 0"
    assert "Least data at a look" not in exact.facts
    ranked = plan_of(law="rerandomization", looks=[20, 40], replays=19, spending="power", rho=3.0)
    facts = ranked.protocol(worlds, 4, rng=None)
    assert facts.facts["Replays"] == "19, seed 0"
    assert facts.facts["Spending"] == "power, rho 3"
    assert facts.seed is None
    assert says(facts.topics["answer"][9], claims.SIMULATION, seed="not stated")


def test_several_treatments() -> None:
    means = {"equal": [0.0, 0.0, 0.0], "b": [0.0, 0.1, 1.0]}
    worlds = {name: ai.environments.NormalArms(each) for name, each in means.items()}
    arms = {"arms": ("c", "x", "y"), "treatment": ("x", "y"), "control": "c"}
    plan = ai.Plan(ai.designs.Uniform(), **arms, looks=[90, 180], drop=-1.0)
    appendix = plan.protocol(worlds, 32, rng=1)
    found, frame = appendix.topics["answer"], appendix.found.frame
    assert appendix.facts["Comparison"] == "x minus c, y minus c"
    assert appendix.facts["Dropping"] == "not binding, standardised score at most -1"
    assert says(found[2], claims.LEVEL, scenario="equal", scenarios=1)
    assert says(found[3], claims.POWER, scenario="b")
    biases = frame[["bias_x", "bias_y"]].to_numpy()
    assert says(found[4], claims.JOINT_BIAS, bias=biases.ravel()[np.nanargmax(np.abs(biases))])
    assert says(found[5], claims.JOINT_COVERAGE, share=frame["coverage"].min())
    assert says(found[6], claims.REPEATED)
    curve = plan.power_curve(worlds, 32, rng=1).frame
    assert curve["difference"].tolist() == [0.0, 1.0]
    late = plan.changed(delay=5).operating_characteristics(worlds, 4, rng=1).frame
    assert late["duration_mean"].tolist() == (late["size_mean"] + 5.0).tolist()
    with pytest.raises(ParameterError, match="must have one treatment, got 2"):
        ai.calibrate(plan, 0.05, worlds["equal"], replications=4)
