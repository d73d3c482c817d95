"""Sentences on several arms against one, with the intervals that their table shows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import adaptinf as ai
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
    arm, x = np.tile([0.0, 1.0], 200), np.repeat([-1.0, 1.0, 0.5, -0.5], 100)
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
