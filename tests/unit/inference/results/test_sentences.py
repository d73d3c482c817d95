"""Sentences on several arms against one, with the intervals that their table shows."""

from __future__ import annotations

import pytest

import adaptinf as ai
from adaptinf.inference.results.tables import format_number


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
            f"{arm} has a higher mean reward (difference {at}, 95% simultaneous interval {low} to {high})"
        )
    wanted = f"Compared with 0: {'; '.join(told)}; undecided: 1."
    assert result.sentence() == result.sentence(adjust="max-t") == wanted
    assert "simultaneous" not in result.sentence(adjust=None)


def test_where_no_arm_differs_the_sentence_says_undecided() -> None:
    result = ai.Contrasts(contrasts([0.3, 0.3, 0.3], 400), control=0).fit()
    assert (
        result.sentence(adjust="max-t")
        == "Undecided whether any of 2 arms differs from 0 in mean reward. Read the cautions first."
    )


def test_levels_of_arms_take_the_adjustment_too() -> None:
    result = ai.ArmMeans(contrasts([0.30, 0.32, 0.60])).fit()
    low, high = (format_number(x) for x in result.conf_int_simultaneous().loc["2"])
    assert f"(95% simultaneous interval {low} to {high})" in result.sentence(adjust="max-t")
    with pytest.raises(ai.errors.ParameterError, match="adjustment must be"):
        result.sentence(adjust="tukey")
