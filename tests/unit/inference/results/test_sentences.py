"""Sentences on arms, with the intervals that their table shows; on those without one, and on ties."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adaptinf as ai
from adaptinf.inference.distributions.references import NormalReference
from adaptinf.inference.results.tables import format_number, percent


def contrasts(means: list[float], rounds: int = 3_000) -> ai.AdaptiveLog:
    arms = ai.environments.BernoulliArms(means)
    return ai.designs.EpsilonGreedy(exploration=0.4).run(arms, horizon=rounds, rng=0)


def test_against_one_control_the_clearest_arm_comes_first_with_simultaneous_limits() -> None:
    result = ai.Contrasts(contrasts([0.30, 0.32, 0.60, 0.50]), control=0).fit()
    limits = result.conf_int_simultaneous()
    told = []
    for arm in ("2", "3"):
        low, high = (format_number(x) for x in limits.loc[f"{arm} - 0"])
        at = format_number(result.params[f"{arm} - 0"])
        told.append(
            f"arm {arm} has a higher mean reward (difference {at}, 95% simultaneous interval {low} to {high})"
        )
    wanted = f"Compared with arm 0: {'; '.join(told)}; undecided for arm 1."
    assert result.sentence() == result.sentence(adjust="max-t") == wanted
    assert "simultaneous" not in result.sentence(adjust=None)


def test_where_no_arm_differs_the_sentence_says_undecided() -> None:
    result = ai.Contrasts(contrasts([0.3, 0.3, 0.3], 400), control=0).fit()
    assert (
        result.sentence(adjust="max-t")
        == "It is undecided whether any of 2 arms differs from arm 0 in mean reward. Read the cautions first."
    )


def test_levels_of_arms_take_the_adjustment_too() -> None:
    result = ai.ArmMeans(contrasts([0.30, 0.32, 0.60])).fit()
    low, high = (format_number(x) for x in result.conf_int_simultaneous().loc["2"])
    assert f"(95% simultaneous interval {low} to {high})" in result.sentence(adjust="max-t")
    with pytest.raises(ai.errors.ParameterError, match="adjustment must be"):
        result.sentence(adjust="tukey")


def lifts(means: list[float]) -> ai.Results:
    return ai.Contrasts(contrasts(means), control=0).fit(lift=True)


def ends(result: ai.Results, sign: float = 1.0) -> str:
    low, high = sorted(sign * result.conf_int().iloc[0])
    return f"{percent(low)} to {percent(high)}"


def test_a_lift_is_told_in_percent() -> None:
    up, down, alike = lifts([0.4, 0.6]), lifts([0.6, 0.4]), lifts([0.5, 0.5])
    size = percent(up.params.iloc[0])
    assert size == f"{100 * up.params.iloc[0]:.1f}%"
    wanted = f"The mean reward is {size} higher for arm 1 than for arm 0 (95% interval {ends(up)})."
    assert up.sentence() == wanted
    size = percent(-down.params.iloc[0])
    wanted = f"The mean reward is {size} lower for arm 1 than for arm 0 (95% interval {ends(down, -1.0)})."
    assert down.sentence() == wanted
    size = percent(alike.params.iloc[0])
    told = f"lift {size} (95% interval {ends(alike)})"
    wanted = f"It is undecided whether arm 1 or arm 0 has the higher mean reward: {told}."
    assert alike.sentence() == wanted


def test_several_lifts_are_told_in_percent_too() -> None:
    result = lifts([0.3, 0.6, 0.31])
    low, high = result.conf_int_simultaneous().iloc[0]
    assert result.sentence() == (
        f"Compared with arm 0: arm 1 has a higher mean reward (lift {percent(result.params.iloc[0])}, "
        f"95% simultaneous interval {percent(low)} to {percent(high)}); undecided for arm 2."
    )


def test_a_lift_has_no_unit() -> None:
    with pytest.raises(ai.errors.ParameterError, match="relative lifts have no unit: omit unit="):
        lifts([0.4, 0.6]).sentence(unit="clicks")


def regression(effect: float, slope: float) -> ai.Results:
    arm = np.random.default_rng(1).permutation(np.tile([0.0, 1.0], 200))
    x = np.repeat([-1.0, 1.0, 0.5, -0.5], 100)
    noise = np.resize([0.5, -0.3, -0.5, 0.3, 0.1], 400)
    frame = pd.DataFrame({"arm": arm.astype(int), "x": x, "y": effect * arm + slope * x + noise})
    log = ai.AdaptiveLog(frame, action="arm", reward="y", context=["x"], adaptive=False)
    return ai.AdaptiveOLS(log, ["x"]).fit(adjustment="none")


def test_coefficients_are_told_by_whether_they_differ_from_0() -> None:
    result = regression(2.0, 0.0)
    low, high = (format_number(x) for x in result.conf_int().loc["Intercept"])
    at = format_number(result.params["Intercept"])
    told = f"Terms that differ from 0: Intercept {at} (95% interval {low} to {high}); undecided: x."
    assert result.sentence() == told
    assert result.sentence("x").endswith("; it is undecided whether this differs from 0.")
    assert regression(0.0, 0.0).sentence() == "It is undecided whether these differ from 0: Intercept, x."
    both = regression(2.0, 3.0).sentence()
    assert both.startswith("Terms that differ from 0: Intercept 1.0200 (")
    assert "undecided" not in both


def test_an_undecided_result_that_is_not_valid_is_one_sentence() -> None:
    result = ai.Contrasts(contrasts([0.3, 0.3, 0.3], 400), control=0).fit(estimator="sample-mean")
    assert result.sentence(adjust=None).startswith(
        "Not valid under adaptive assignment: it is undecided whether any of 2 arms differs"
    )


def frame(rounds: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    arm = rng.choice(["A", "B"], rounds)
    return pd.DataFrame({"arm": arm, "y": (rng.random(rounds) < 0.3).astype(float)})


LOGS = {
    "constant rewards": frame().assign(y=1.0),
    "one constant arm": frame().assign(y=lambda f: f["y"].where(f["arm"] == "A", 1.0)),
    "one round per arm": pd.DataFrame({"arm": ["A", "B"], "y": [1.0, 1.0]}),
    "three rounds": frame().head(3),
    "two arms, one of them constant, and a third": pd.concat(
        [frame().assign(y=0.0), pd.DataFrame({"arm": "C", "y": [0.0, 1.0] * 50})], ignore_index=True
    ),
}
MODELS: dict[str, Any] = {
    "ArmMeans": ai.ArmMeans,
    "Contrast": lambda log: ai.Contrast(log, treatment="B", control="A"),
    "Contrasts": lambda log: ai.Contrasts(log, control="A"),
    "AdaptiveOLS": lambda log: ai.AdaptiveOLS.from_formula("y ~ C(arm)", log),
    "Winner": ai.Winner,
}


@pytest.mark.parametrize("rows", LOGS.values(), ids=LOGS)
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("known", [{}, {"adaptive": False}, {"propensity": "p"}], ids=str)
def test_prose_says_no_interval_in_words(model: Any, rows: pd.DataFrame, known: dict[str, Any]) -> None:
    log = ai.AdaptiveLog(rows.assign(p=1.0 / rows["arm"].nunique()), action="arm", reward="y", **known)
    try:
        result = model(log).fit()
    except (ai.errors.InvalidForLog, ai.errors.ParameterError):
        return
    prose = [result.sentence(), result.sentence(adjust=None), *result.notes, *result.cautions]
    prose += [result.sentence(term=str(term)) for term in result.terms]
    assert [text for text in prose if re.search(r"\bnan\b", text)] == []


def test_a_report_says_no_interval_in_words(tmp_path: Path) -> None:
    log = log_of(LOGS["one constant arm"])
    result = ai.ArmMeans(log).fit()
    ai.report(result, tmp_path / "report.html", log=log, checklist="consort")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert result.sentence() in page
    assert "B: 1.0000 (no 95% interval)" in page
    assert "interval nan" not in page


SELECTION = "; the intervals do not allow for this selection"


def log_of(rows: pd.DataFrame) -> ai.AdaptiveLog:
    return ai.AdaptiveLog(rows, action="arm", reward="y")


def test_equal_arms_are_named_together() -> None:
    told = "A and B have the same estimated mean y, 1.0000 (no 95% interval). Read the cautions first."
    assert ai.ArmMeans(log_of(LOGS["constant rewards"])).fit().sentence() == told


def test_an_arm_without_an_interval_beside_one_that_has_one() -> None:
    result = ai.ArmMeans(log_of(LOGS["one constant arm"])).fit()
    low, high = result.conf_int().loc["A"]
    assert result.sentence() == (
        f"Of 2 arms, B has the highest estimated mean y, 1.0000 (no 95% interval), and A the lowest, "
        f"{result.params['A']:.4f} (95% interval {low:.4f} to {high:.4f}){SELECTION}. Read the cautions "
        "first."
    )


def levels(estimates: list[float], errors: list[float]) -> ai.Results:
    """Arm means with other numbers."""
    arms = ai.environments.BernoulliArms([0.5] * len(estimates))
    found = ai.ArmMeans(ai.designs.EpsilonGreedy(exploration=1.0).run(arms, horizon=400, rng=0)).fit()
    values, spread = np.array(estimates), np.array(errors)
    return replace(
        found, estimate=values, std_error=spread, reference=NormalReference(values, spread), contrast_of=None
    )


TOLD = {
    "tied at the top, with other intervals": (
        ([0.5, 0.1 + 0.4, 0.2], [0.1, 0.2, 0.1]),
        "Of 3 arms, arm 0 and arm 1 have the highest estimated mean reward, 0.5000 (arm 0: 95% interval "
        "0.3040 to 0.6960; arm 1: 95% interval 0.1080 to 0.8920), and arm 2 the lowest, 0.2000 (95% "
        f"interval 0.0040 to 0.3960){SELECTION}.",
    ),
    "tied at the bottom": (
        ([0.5, 0.2, 0.2], [0.1, 0.1, 0.1]),
        "Of 3 arms, arm 0 has the highest estimated mean reward, 0.5000 (95% interval 0.3040 to 0.6960), and "
        f"arm 1 and arm 2 the lowest, 0.2000 (95% interval 0.0040 to 0.3960){SELECTION}.",
    ),
    "one arm without an estimate": (
        ([0.5, 0.2, np.nan], [0.1, 0.1, np.nan]),
        "Of 3 arms, arm 0 has the highest estimated mean reward, 0.5000 (95% interval 0.3040 to 0.6960), and "
        f"arm 1 the lowest, 0.2000 (95% interval 0.0040 to 0.3960){SELECTION}. There is no estimate for "
        "arm 2.",
    ),
    "one arm with an estimate": (
        ([np.nan, 0.2, np.nan], [np.nan, 0.1, np.nan]),
        "Arm 1 has mean reward 0.2000 (95% interval 0.0040 to 0.3960). There is no estimate for arm 0, "
        "arm 2.",
    ),
    "no estimate": (
        ([np.nan] * 3, [np.nan] * 3),
        "There is no estimate for arm 0, arm 1, arm 2 (see explain()).",
    ),
    "no interval": (
        ([0.5, 0.2, 0.3], [np.nan] * 3),
        "Of 3 arms, arm 0 has the highest estimated mean reward, 0.5000 (no 95% interval), and arm 1 the "
        "lowest, 0.2000 (no 95% interval).",
    ),
}


@pytest.mark.parametrize(("numbers", "wanted"), TOLD.values(), ids=TOLD)
def test_levels_that_are_tied_or_lacking(numbers: tuple[list[float], list[float]], wanted: str) -> None:
    assert levels(*numbers).sentence() == wanted


def test_differences_without_an_interval_are_not_undecided() -> None:
    arms = ai.environments.BernoulliArms([0.5, 0.5, 0.5])
    log = ai.designs.EpsilonGreedy(exploration=1.0).run(arms, horizon=400, rng=0)
    found = ai.Contrasts(log, control=0).fit()
    values, errors = np.array([0.4, 0.0]), np.array([0.1, np.nan])

    def told(values: np.ndarray, errors: np.ndarray) -> str:
        law = NormalReference(values, errors)
        result = replace(found, estimate=values, std_error=errors, reference=law, covariance=None)
        return result.sentence(adjust=None)

    assert told(values, errors) == (
        "Compared with arm 0: arm 1 has a higher mean reward (difference 0.4000, 95% interval 0.2040 to "
        "0.5960). There is no interval for 2 - 0."
    )
    assert told(values, np.full(2, np.nan)) == "There is no interval for 1 - 0, 2 - 0 (see explain())."


def test_a_winner_that_is_tied_is_not_called_the_highest() -> None:
    rows = pd.DataFrame({"arm": ["A", "B", "B", "A"] * 100, "y": [0.0, 0.0, 1.0, 1.0] * 100, "p": 0.5})
    result = ai.Winner(ai.AdaptiveLog(rows, action="arm", reward="y", propensity="p", adaptive=False)).fit()
    low, high = result.conf_int().iloc[0]
    assert result.sentence() == (
        "Of 2 arms, A and B have the same highest estimate; for A: mean y 0.5000 (95% interval "
        f"{low:.4f} to {high:.4f}, allowing for this selection); it is undecided which arm is best: A, B are "
        "not ruled out at level 0.05."
    )
    assert any(
        note
        == "Arms 'A', 'B' have the same estimate, the highest of the 2 arms compared; arm 'A' is taken as "
        "the winner."
        for note in result.notes
    )
