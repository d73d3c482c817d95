"""An estimator's own numbers as a result: tables, tests, simulations, and one error for all that is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says
from scipy import stats

import adaptinf as ai
from adaptinf.claims.tables import OWN_NUMBERS
from adaptinf.errors import ParameterError
from adaptinf.log import AdaptiveLog


def means(log: AdaptiveLog) -> Any:
    """Sample means of the arms, and the difference, as an analyst would write them."""
    arms = log.frame.groupby("action")["reward"]
    mean, error = arms.mean(), arms.std() / np.sqrt(arms.size())
    estimate = {**mean.to_dict(), (1, 0): mean[1] - mean[0]}
    return ai.result(estimate, {**error.to_dict(), (1, 0): np.hypot(*error)}, label="plain", log=log)


def test_tests_and_intervals_are_normal_or_students() -> None:
    normal = ai.result({"a": 1.0, "b": -0.5}, {"b": 0.25, "a": 0.5})
    assert normal.pvalues["a"] == pytest.approx(2 * stats.norm.sf(2.0))
    np.testing.assert_allclose(normal.conf_int(0.1).loc["b"], -0.5 + 0.25 * stats.norm.ppf([0.05, 0.95]))
    student = ai.result([1.0, -0.5], 0.5, terms=["a", "b"], df={"a": 4, "b": 9}, null=0.2)
    assert student.pvalues["a"] == pytest.approx(2 * stats.t.sf(0.8 / 0.5, 4))
    assert student.pvalues["b"] == pytest.approx(2 * stats.t.sf(0.7 / 0.5, 9))
    one = ai.result(0.3, 0.1, terms=["a"], validity="exact", notes=["By hand."])
    assert (one.validity, one.estimator, one.notes[-1]) == ("exact", "own", "By hand.")
    assert says(one.notes[0], OWN_NUMBERS, validity="exact")
    assert "0.3000" in str(one)
    gap = ai.result({"a": np.nan, "b": 1.0}, 0.5)
    assert np.isnan(gap.conf_int().loc["a"]).all()
    assert np.isnan(gap.pvalues["a"])


def test_a_covariance_gives_joint_tests() -> None:
    spread = pd.DataFrame([[0.25, 0.1], [0.1, 0.16]], index=["b", "a"], columns=["b", "a"])
    found = ai.result({"a": 1.0, "b": 2.0}, covariance=spread)
    np.testing.assert_allclose(found.std_error, [0.4, 0.5])
    np.testing.assert_allclose(found.cov_params().to_numpy(), [[0.16, 0.1], [0.1, 0.25]])
    difference = found.t_test("b - a")
    assert float(difference.std_error[0]) == pytest.approx(np.sqrt(0.25 + 0.16 - 0.2))
    value = np.array([1.0, 2.0])
    wald = value @ np.linalg.solve([[0.16, 0.1], [0.1, 0.25]], value)
    assert float(found.wald_test(np.eye(2)).statistic) == pytest.approx(wald)


def test_it_serves_simulations_like_a_fit() -> None:
    env = ai.environments.NormalArms([0.0, 0.5])
    design = ai.designs.EpsilonGreedy(exploration=0.3)
    runs = {
        jobs: ai.audit.coverage(design, env, means, horizon=200, replications=128, rng=4, n_jobs=jobs)
        for jobs in (1, 2)
    }
    frame = runs[1].frame
    pd.testing.assert_frame_equal(frame, runs[2].frame)
    assert set(frame["term"]) == {"0", "1", "1 - 0"}
    assert frame.set_index("term")["truth"].to_dict() == {"0": 0.0, "1": 0.5, "1 - 0": 0.5}
    log = design.run(env, 200, rng=5)
    own = means(log)
    naive = ai.ArmMeans(log).fit("sample-mean")
    np.testing.assert_allclose(own.estimate[:2], naive.estimate, rtol=1e-12)
    np.testing.assert_allclose(own.std_error[:2], naive.std_error, rtol=1e-12)
    assert own.facts.design == "EpsilonGreedy"
    assert "1 - 0" in str(ai.compare({"own": own, "naive": naive}))


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"estimate": {"a": 1.0}}, ["give std_error= or covariance="]),
        ({"estimate": {"a": 1.0, "b": 2.0}, "std_error": {"a": 1.0, "c": 2.0}}, ["lacks 'b'", "has 'c'"]),
        (
            {"estimate": {"a": 1.0}, "std_error": -0.1, "df": 0},
            ["must not be negative", "df must be positive"],
        ),
        ({"estimate": [1.0, 2.0], "std_error": 1.0}, ["terms= must be a list of 2 names"]),
        ({"estimate": [1.0, 2.0], "std_error": 1.0, "terms": ["a"]}, ["must name 2 estimates, got 1"]),
        (
            {"estimate": {"a": 1.0}, "std_error": 1.0, "terms": ["a"]},
            ["terms= applies to estimates without labels"],
        ),
        ({"estimate": {"a": "x"}, "std_error": 1.0}, ["estimate must be numbers"]),
        ({"estimate": {"a": np.inf}, "std_error": 1.0}, ["estimate must be numbers"]),
        ({"estimate": {1: 1.0, "1": 2.0}, "std_error": 1.0}, ["terms must be distinct"]),
        ({"estimate": {("a", "b", "c"): 1.0}, "std_error": 1.0}, ["a pair (treatment, control)"]),
        ({"estimate": {"a": 1.0}, "std_error": [1.0, 2.0]}, ["std_error must be 1 numbers"]),
        (
            {"estimate": [1.0, 2.0], "terms": ["a", "b"], "covariance": [[1.0, 2.0], [0.0, 1.0]]},
            ["covariance must be symmetric"],
        ),
        (
            {"estimate": [1.0, 2.0], "terms": ["a", "b"], "covariance": [[1.0, 2.0], [2.0, 1.0]]},
            ["no negative eigenvalue"],
        ),
        ({"estimate": {"a": 1.0}, "std_error": 2.0, "covariance": [[1.0]]}, ["contradicts the covariance"]),
        (
            {"estimate": {"a": 1.0}, "std_error": 1.0, "validity": "sure", "null": np.nan, "label": 3},
            ["validity must be", "null must be", "label must be a name"],
        ),
    ],
)
def test_everything_that_is_wrong_is_one_error(given: dict[str, Any], wanted: list[str]) -> None:
    with pytest.raises(ParameterError) as caught:
        ai.result(**given)
    for words in wanted:
        assert words in str(caught.value)


def test_terms_must_be_arms_of_the_log() -> None:
    log = ai.designs.Uniform().run(ai.environments.BernoulliArms([0.4, 0.6]), 50, rng=1)
    with pytest.raises(ParameterError, match="there is no arm 'a'; the log has 0, 1"):
        ai.result({"a": 1.0}, 0.1, log=log)


def test_assumptions_and_references_are_shown(tmp_path: Path) -> None:
    told = {
        "assumptions": ["outcomes are independent."],
        "references": ["Hodges (1963), Estimates of location"],
    }
    found = ai.result({"a": 1.0}, {"a": 0.5}, label="median", **told)
    reasons = found.explain()
    assert [(one.text, one.check) for one in reasons.of("assumes")] == [
        ("outcomes are independent", "cannot be checked from this log")
    ]
    assert "Reference: Hodges (1963), Estimates of location." in reasons.texts
    assert "Assumes   Not checkable: outcomes are independent." in str(found)
    ai.report(found, tmp_path / "own.html")
    page = (tmp_path / "own.html").read_text(encoding="utf-8")
    assert "<li>Hodges (1963), Estimates of location</li>" in page
    assert ">outcomes are independent<" in page
    with pytest.raises(ParameterError) as caught:
        ai.result({"a": 1.0}, {"a": 0.5}, assumptions="none", references=[1])
    assert caught.value.problems == (
        "assumptions must be a list of strings, got 'none'",
        "references must be a list of strings, got [1]",
    )
