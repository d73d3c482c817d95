"""What an outsider computes from the published file is the table that was published."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims.logs.readings import LATE
from adaptinf.claims.logs.rows import NO_ROUNDS
from adaptinf.claims.privacy import releases
from adaptinf.claims.reports.collection import SHOWS_RELEASES
from adaptinf.claims.reports.page import SEVERAL_PAIRS
from adaptinf.designs import DPConSE, LDPBandit, PrivateSuccessiveElimination, PrivateUCB
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.simulation.environments.vector_arms import SmoothArms

PAIR = ai.environments.BernoulliArms([0.4, 0.6])
THREE = ai.environments.BernoulliArms([0.9, 0.5, 0.2])
GROUPS = ai.environments.FiniteContext([0.5, 0.5], [[0.3, 0.6], [0.6, 0.3]])
Fit = Callable[[Any], Any]


def groups(data: Any) -> Any:
    return ai.CATE(data, by="feature", treatment=0, control=1).fit("released")


def pair(data: Any) -> Any:
    return ai.Contrast(data, treatment=1, control=0).fit("released", null=0.1)


def best(data: Any) -> Any:
    return ai.Contrast(data, treatment=0, control=2).fit("released", named="after")


CASES: list[tuple[ai.designs.Design, ai.environments.Environment, int, Fit, bool]] = [
    (DPConSE(epsilon=1.0), GROUPS, 4_000, groups, False),
    (DPConSE(epsilon=0.3), GROUPS, 400, groups, False),  # too few arrivals for an estimate
    (DPConSE(epsilon=1.0, contrast_share=1), PAIR, 4_000, pair, False),
    (PrivateSuccessiveElimination(epsilon=1.0), THREE, 20_000, best, False),
    (LDPBandit(epsilon=8.0), SmoothArms(), 600, lambda data: ai.BinMeans(data).fit(), False),
]


@pytest.mark.parametrize(("design", "env", "horizon", "fit", "_"), CASES)
def test_the_same_table_to_the_digit(
    design: ai.designs.Design,
    env: ai.environments.Environment,
    horizon: int,
    fit: Fit,
    _: bool,
    tmp_path: Path,
) -> None:
    log = design.run(env, horizon, rng=2)
    mine = fit(log)
    log.public().to_parquet(tmp_path / "public.parquet")
    theirs = fit(ai.read_log(tmp_path / "public.parquet"))
    assert mine.private
    assert theirs.private
    assert mine.facts == theirs.facts
    for one, other in (
        (mine.estimate, theirs.estimate),
        (mine.std_error, theirs.std_error),
        (mine.conf_int(0.01).to_numpy(), theirs.conf_int(0.01).to_numpy()),
        (mine.pvalues.to_numpy(), theirs.pvalues.to_numpy()),
    ):
        np.testing.assert_array_equal(one, other)
    assert str(mine.summary()) == str(theirs.summary())
    pd.testing.assert_frame_equal(mine.to_frame(), theirs.to_frame())
    told = f"{mine.summary()}{mine.explain()}"
    assert "Guarantee:" in told
    assert "not covered" not in told
    assert f"epsilon = {design.epsilon:g}" in told  # type: ignore[attr-defined]


def test_what_releases_cannot_answer_is_refused_with_what_they_can() -> None:
    effects = DPConSE(epsilon=1.0).run(GROUPS, 4_000, rng=2).public()
    means = PrivateSuccessiveElimination(epsilon=1.0).run(THREE, 20_000, rng=2).public()
    nothing = PrivateUCB(epsilon=1.0).run(PAIR, 200, rng=2).public()
    group, two = r"CATE\(public, by='feature'\)", r"Contrast\(public, treatment=, control=\)"
    for call, way in (
        (lambda: ai.PolicyValue(effects, [0.5, 0.5]), group),
        (lambda: ai.recommend(effects), group),
        (lambda: ai.diagnose(effects), group),
        (lambda: ai.AdaptiveOLS.from_formula("reward ~ 1", effects), group),
        (lambda: ai.ConfidenceSequence(effects), group),
        (lambda: ai.CATE(effects, by="feature").fit("aipw"), group),
        (lambda: ai.CATE(effects, by="feature", rounds=[True]), group),
        (lambda: ai.Contrast(means, treatment=0, control=1).fit("aipw"), two),
        (lambda: ai.Contrast(means, treatment=0, control=1, denominator="z"), two),
        (lambda: ai.Contrast(means, treatment=0, control=1).fit(covariate="x"), two),
        (lambda: ai.Winner(means), two),
        (lambda: ai.Contrasts(means, control=0), two),
    ):
        with pytest.raises(InvalidForLog, match=f"{NO_ROUNDS()}.*{way}"):
            call()
    for call in (
        lambda: ai.Contrast(nothing, treatment=1, control=0).fit(),
        lambda: ai.Contrast(effects, treatment=1, control=0).fit(),
        lambda: ai.CATE(means, by="x"),
        lambda: ai.BinMeans(means),
    ):
        with pytest.raises((InvalidForLog, ParameterError)):
            call()


def test_units_that_may_come_back_are_refused_as_in_a_log() -> None:
    log = DPConSE(epsilon=1.0).run(GROUPS, 4_000, rng=2)
    log.rounds_per_unit = 2
    public = log.public()
    assert public.facts["rounds_per_unit"] == 2
    with pytest.raises(InvalidForLog) as error:
        ai.CATE(public, by="feature").fit()
    assert says(error.value.reason, releases.UNITS_AS_DECLARED, n=2)


def test_a_table_of_releases_tells_nothing_of_the_rows_behind_it() -> None:
    """Late outcomes, units and the rest are facts of the raw log; a released table has none of them."""
    session = DPConSE(epsilon=1.0, first_window=5, contrast_share=1).session([0, 1], 400, window=3, rng=1)
    late = DPConSE(epsilon=1.0, first_window=5, contrast_share=1).session([0, 1], 400, window=3, rng=1)
    for step in range(400):
        session.record(session.assign(unit=step).id, 0.0)
        late.assign()
        if step >= 9:
            late.record(step - 8, 1.0)
    for one in (session, late):
        one.finish()
    shown = [ai.Contrast(one.log("drop"), treatment=1, control=0).fit("released") for one in (session, late)]
    assert shown[0].facts == shown[1].facts
    assert shown[0].notes[-1] == shown[1].notes[-1]
    assert LATE(late=1).partition(". ")[2] not in " ".join(shown[1].explain().texts)


def test_released_effects_need_no_outcome_that_is_missing() -> None:
    """The raw log gives the table of its public part where that is asked for, and no other table."""
    session = DPConSE(epsilon=4.0).session([0, 1], 60, features=["x", "y"], window=2, rng=1)
    for step in range(60):
        given = session.assign(context="xy"[step % 2])
        if step % 5:
            session.record(given.id, float(step % 2))
    session.finish()
    log = session.log("drop")
    mine, theirs = ai.CATE(log, by="feature").fit("released"), ai.CATE(log.public(), by="feature").fit()
    assert mine.private
    assert str(mine.summary()) == str(theirs.summary())
    table = ai.recommend(log, "cate", by="feature")
    assert [row.verdict.name for row in table.methods if row.verdict.valid] == ["released"]
    for asked in ({}, {"estimator": "aipw"}, {"estimator": "difference-in-means", "pooled": True}):
        with pytest.raises(InvalidForLog) as error:
            ai.CATE(log, by="feature").fit(**asked)
        assert error.value.reason == "12 of 60 rewards are missing"
        assert error.value.alternatives[-1] == "CATE(log, by='feature').fit('released')"


def test_where_nothing_was_released_missing_outcomes_are_refused_without_a_word_on_releases() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"arm": rng.integers(0, 2, 80), "y": rng.random(80), "group": rng.integers(0, 2, 80)}
    )
    frame.loc[3:9, "y"] = np.nan
    log = ai.AdaptiveLog(frame, action="arm", reward="y", context="group", missing="drop")
    with pytest.raises(InvalidForLog) as error:
        ai.CATE(log, by="group")
    assert error.value.reason == "7 of 80 rewards are missing"
    assert "released" not in str(error.value)


def test_a_report_from_releases_alone(tmp_path: Path) -> None:
    public = DPConSE(epsilon=1.0, contrast_share=1).run(PAIR, 4_000, rng=2).public()
    ai.report(public, tmp_path / "r.html", title="A trial")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    low, high = ai.Contrast(public, treatment=1, control=0).fit().conf_int().iloc[0]
    for part in (
        "<h1>A trial</h1>",
        f"{low:.4f}",
        f"{high:.4f}",
        f">{SHOWS_RELEASES()}",
        " releases</caption>",
        "Left out:",
    ):
        assert part in text, part
    assert 'class="box"' not in text
    many = PrivateSuccessiveElimination(epsilon=1.0).run(THREE, 20_000, rng=2).public()
    ai.report(many, tmp_path / "r.html")
    assert SEVERAL_PAIRS(arms=3) in (tmp_path / "r.html").read_text(encoding="utf-8")
    ai.report(PrivateUCB(epsilon=1.0).run(PAIR, 200, rng=2).public(), tmp_path / "r.html")
    assert "The last 100 of 200 releases" in (tmp_path / "r.html").read_text(encoding="utf-8")
    with pytest.raises(ParameterError, match="not to a public part: omit them"):
        ai.report(public, tmp_path / "r.html", plan=3)  # type: ignore[arg-type]
