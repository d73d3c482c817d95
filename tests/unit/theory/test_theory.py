"""Theory as functions: what they take, what they refuse, and the shapes of what they return."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from adaptinf import theory
from adaptinf.errors import ParameterError

MEANS = [0.8, 0.5, 0.2]

# function, arguments that broadcast to (2, 3), and what any further argument is
CURVES: list[tuple[Any, dict[str, Any]]] = [
    (theory.private_ucb_regret, {"means": MEANS}),
    (theory.private_ucb_worst_case, {"n_arms": 4}),
    (theory.private_ucb_worst_case, {"n_arms": 4, "form": "published"}),
    (theory.private_elimination_regret, {"means": MEANS}),
    (theory.private_elimination_regret, {"means": MEANS, "form": "published"}),
    (theory.private_elimination_worst_case, {"n_arms": 4}),
    (theory.linpriv_regret, {"n_arms": 4, "dimension": 2}),
    (theory.linpriv_regret, {"n_arms": 4, "dimension": 2, "form": "published"}),
    (theory.counter_norm_bound, {"n_arms": 4, "dimension": 2, "failure": 0.1}),
]
NAMES = [f"{function.__name__}-{options.get('form', 'explicit')}" for function, options in CURVES]


@pytest.mark.parametrize(("function", "options"), CURVES, ids=NAMES)
def test_a_curve_is_its_points(function: Any, options: dict[str, Any]) -> None:
    horizons, epsilons = np.array([50, 5_000, 500_000]), np.array([[0.05], [2.0]])
    curve = function(horizon=horizons, epsilon=epsilons, **options)
    assert curve.shape == (2, 3)
    assert np.isfinite(curve).all()
    assert (curve > 0).all()
    point = function(horizon=5_000, epsilon=2.0, **options)
    assert isinstance(point, float)
    assert point == pytest.approx(curve[1, 1], rel=1e-12)
    # more rounds cost more, more privacy costs more
    assert (np.diff(curve, axis=1) >= 0).all()
    assert (curve[0] >= curve[1]).all()


@pytest.mark.parametrize(("function", "options"), CURVES, ids=NAMES)
def test_no_privacy_is_the_limit_of_little(function: Any, options: dict[str, Any]) -> None:
    none = function(horizon=10_000, epsilon=math.inf, **options)
    # LinUCB need not set half of the failure probability aside for noise
    tolerance = 0.02 if function is theory.linpriv_regret else 1e-6
    little = function(horizon=10_000, epsilon=1e12, **options)
    assert little == pytest.approx(none, rel=tolerance, abs=1e-6)


@pytest.mark.parametrize(("function", "options"), CURVES, ids=NAMES)
def test_bad_horizon_and_epsilon_are_one_error(function: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError) as caught:
        function(horizon=[10, 2.5], epsilon=[0.0, 1.0, math.nan], **options)
    problems = caught.value.problems
    assert len(problems) >= 2
    assert any("horizon must be a whole number" in problem and "2.5" in problem for problem in problems)
    assert any("epsilon must be above 0" in problem for problem in problems)
    assert caught.value.subject == function.__name__


def test_every_problem_is_listed() -> None:
    with pytest.raises(ParameterError) as caught:
        theory.linpriv_regret(
            0,
            "five",
            2.5,
            -1,
            regularisation=0,
            failure=1,
            form="tight",
            noise_scale=-1,
            bound=math.inf,
            noise_width="none",
            counter="none",
            noise_norm=math.nan,
        )
    text = str(caught.value)
    for name in (
        "horizon",
        "n_arms",
        "dimension",
        "epsilon",
        "regularisation",
        "failure",
        "form",
        "noise_scale",
        "bound",
        "noise_width",
        "counter",
        "noise_norm",
    ):
        assert f"  - {name} must be" in text


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.private_ucb_regret([0.5, 1.2], 10, 1.0), "means must be at least 0 and at most 1"),
        (lambda: theory.private_ucb_regret([[0.5]], 10, 1.0), "means must be a list"),
        (lambda: theory.private_ucb_regret([], 10, 1.0), "means must be"),
        (lambda: theory.private_ucb_regret([0.1, 0.2], 10, 1.0, [5, 6]), "sum to at most the horizon"),
        (lambda: theory.private_ucb_regret([0.1, 0.2], 10, 1.0, [5]), "one entry per arm"),
        (lambda: theory.private_ucb_regret([0.1, 0.2], True, 1.0), "horizon must be a whole number"),
        (
            lambda: theory.private_ucb_regret([0.1, 0.2], [1, 2], [1, 2, 3]),
            "shapes must be compatible for broadcasting",
        ),
        (lambda: theory.private_ucb_worst_case(1, 3, 1.0), "horizon must be a whole number of at least 2"),
        (
            lambda: theory.private_elimination_pulls(MEANS, 100, 1.0, beta=1.0),
            "beta must be above 0 and below",
        ),
        (lambda: theory.private_elimination_pulls(MEANS, 1, 1.0), "at least 2"),
        (
            lambda: theory.private_elimination_regret(MEANS, 100, 1.0, 0.1, form="published"),
            "beta must be omitted for",
        ),
        (lambda: theory.hybrid_error(0, 1.0, 0.1), "count must be a whole number of at least 1"),
        (lambda: theory.hybrid_error(3, 1.0, 1.1), "delta must be above 0 and at most 1"),
        (lambda: theory.hybrid_error(3, 1.0, 0.1, form="order"), "form must be one of 'exact', 'published'"),
        (lambda: theory.iterated_log(math.inf), "values must be finite"),
        (lambda: theory.stopping_time_bound(1.5, 0.1, 0.1, 1.0), r"mean must lie in \[-bound, bound\]"),
        (lambda: theory.stopping_time_bound(0.5, 1.0, 0.1, 1.0), "alpha must be above 0 and below 1"),
        (
            lambda: theory.stopping_time_bound(0.5, 0.1, 0.1, 1.0, form="published"),
            "beta must be at most 0.08",
        ),
        (
            lambda: theory.stopping_time_bound(0.5, 0.1, 0.05, form="published"),
            "epsilon must be given for the published form",
        ),
        (
            lambda: theory.stopping_time_bound(0.5, 0.1, 0.05, 1.0, form="published", steps="every"),
            "steps must be exponential",
        ),
        (lambda: theory.stopping_time_lower_bound(0.0, 0.1, 0.1, 1.0), "mean must not be 0"),
        (lambda: theory.stopping_time_order(0.1, 0.1, 0.25, 1.0), "beta must be below 1/4"),
        (lambda: theory.potential_bound(3, 0), "dimension must be a whole number"),
    ],
)
def test_refusals_say_what_is_wrong(call: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()


def test_equal_means_cost_nothing() -> None:
    for function in (theory.private_ucb_regret, theory.private_elimination_regret):
        assert function([0.5, 0.5, 0.5], 1_000, 0.1) == 0.0
    np.testing.assert_array_equal(theory.private_elimination_pulls([0.5, 0.5], 1_000, 0.1), [1_000, 1_000])


def test_no_bound_exceeds_the_horizon_times_the_largest_gap() -> None:
    for horizon in (2, 30, 1_000):
        assert theory.private_ucb_regret(MEANS, horizon, 1e-6) <= 0.6 * horizon + 1e-9
        limit = 0.6 * horizon * (1 + 1 / horizon) + 1e-9
        assert theory.private_elimination_regret(MEANS, horizon, 1e-6) <= limit


def test_a_gap_that_is_a_power_of_two_ends_with_its_epoch() -> None:
    """Gaps of 1, 1/2 and 1/4 are gone after epochs 1, 1 and 2, and just below 1/2 takes epoch 2."""
    pulls = theory.private_elimination_pulls([1.0, 0.0, 0.5, 0.75, 0.500001], 10**9, 1.0)
    assert pulls[1] == pulls[2]
    assert pulls[3] == pulls[4] > 2 * pulls[1]


def test_a_mean_of_zero_never_stops() -> None:
    for form in ("explicit", "published"):
        times = theory.stopping_time_bound([0.0, 0.5, -0.5], 0.1, 0.05, 1.0, form=form)
        assert times[0] == math.inf
        assert times[1] == times[2] < math.inf


def test_stopping_times_scale_with_the_bound() -> None:
    small = theory.stopping_time_bound(0.3, 0.2, 0.05, 0.7, 1.0, steps="every")
    large = theory.stopping_time_bound(3.0, 0.2, 0.05, 0.7, 10.0, steps="every")
    assert small == pytest.approx(large, abs=1)
    assert theory.stopping_time_lower_bound(0.3, 0.2, 0.05, 0.7) == pytest.approx(
        theory.stopping_time_lower_bound(3.0, 0.2, 0.05, 0.7, 10.0)
    )


def test_linpriv_published_needs_a_round_an_arm() -> None:
    assert math.isnan(theory.linpriv_regret(3, 4, 2, 1.0, form="published"))
    assert theory.linpriv_regret(3, 4, 2, 1.0) > 0


@dataclasses.dataclass
class Runs:
    """The least that `frontier` reads."""

    regret: np.ndarray
    truth: np.ndarray
    tallies: np.ndarray

    def phase_tallies(self, phase: str, randomised: bool | None = None) -> np.ndarray:
        assert (phase, randomised) == ("estimation", True)
        return self.tallies


def runs(pulls: list[list[float]], sums: list[list[float]]) -> Runs:
    """One feature, whose effect is .5."""
    tallies = np.stack([np.array(pulls), np.array(sums), np.array(sums)], axis=-1)[:, None]
    return Runs(np.arange(1.0, len(pulls) + 1.0), np.array([[0.25, 0.75]]), tallies)


def test_a_frontier_by_hand() -> None:
    """Estimates 1, 0 and none: squared errors of .25, regrets 1, 2 and 3."""
    point = theory.frontier(runs([[2, 4], [2, 2], [0, 3]], [[0, 4], [1, 1], [0, 1]]))
    assert (point.error, point.error_se) == (0.25, 0.0)
    assert (point.regret, point.regret_se) == (2.0, pytest.approx(1 / math.sqrt(3)))
    assert (point.product, point.product_se) == (0.5, pytest.approx(0.25 / math.sqrt(3)))
    assert (point.runs, point.worst) == (3, 0)
    np.testing.assert_array_equal(point.undefined, [1])
    np.testing.assert_array_equal(point.errors, [0.25])
    with pytest.raises(dataclasses.FrozenInstanceError):
        point.error = 0.0  # type: ignore[misc]


def test_frontier_refuses_what_it_cannot_compute() -> None:
    sims = runs([[2, 4], [0, 2], [0, 3]], [[0, 4], [0, 1], [0, 1]])
    with pytest.raises(ParameterError, match="feature 0 has fewer than two runs with an estimate"):
        theory.frontier(sims)
    with pytest.raises(ParameterError, match=r"estimates must have shape \(3, 1\), got \(3,\)"):
        theory.frontier(sims, [0.1, 0.2, 0.3])
    with pytest.raises(ParameterError, match="finite, or NaN"):
        theory.frontier(sims, [[0.1], [math.inf], [0.3]])
    with pytest.raises(ParameterError, match="estimates must be numbers"):
        theory.frontier(sims, [["a"], ["b"], ["c"]])
    with pytest.raises(ParameterError, match="at least two runs are needed, got 1"):
        theory.frontier(runs([[1, 1]], [[0, 1]]))


def test_what_is_public() -> None:
    for name in theory.__all__:
        assert getattr(theory, name).__doc__
