"""Checks of parameters, and the refusals of designs that list everything at once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from adaptinf.designs import UCB, ConSE, DPConSE, EpsilonGreedy, PrivateUCB, Thompson
from adaptinf.errors import ParameterError
from adaptinf.parameters import choice_problem, count_problem, number_array, number_problem, seed_problem


@pytest.mark.parametrize("value", [0, 0.0, 1, 0.5, np.float32(0.5), np.int64(1), np.float64(1.0)])
def test_numbers_that_fit(value: Any) -> None:
    assert number_problem("alpha", value, 0.0, 1.0) == []


@pytest.mark.parametrize(
    "value", [-0.001, 1.001, math.nan, math.inf, -math.inf, "0.5", None, True, np.True_, [0.5], 1j]
)
def test_numbers_that_do_not_fit(value: Any) -> None:
    (problem,) = number_problem("alpha", value, 0.0, 1.0)
    assert problem.startswith("alpha must be ")
    assert "at least 0 and at most 1" in problem
    assert repr(value).removeprefix("np.").split("(")[-1].rstrip(")") in problem


def test_an_open_end_is_excluded_and_infinity_too() -> None:
    assert number_problem("epsilon", 1e-30, 0.0, open_low=True) == []
    assert number_problem("epsilon", 0.0, 0.0, open_low=True) == ["epsilon must be above 0, got 0.0"]
    (problem,) = number_problem("epsilon", math.inf, 0.0, open_low=True)
    assert problem == "epsilon must be above 0, and at most 1e+100 in size, got inf"


@pytest.mark.parametrize("value", [1e-320, 1e-31, 1e101, 10**400])
def test_sizes_that_floats_cannot_square_or_invert_are_refused(value: float) -> None:
    (problem,) = number_problem("epsilon", value, 0.0, open_low=True)
    assert "epsilon must be above 0, and at " in problem
    assert number_problem("share", 1e-320, 0.0, 1.0, open_low=True) == []


@pytest.mark.parametrize("value", [1, 7, np.int64(3), np.uint8(1)])
def test_counts_that_fit(value: Any) -> None:
    assert count_problem("horizon", value) == []


@pytest.mark.parametrize("value", [0, -1, 1.0, "1", None, True, math.nan])
def test_counts_that_do_not_fit(value: Any) -> None:
    assert count_problem("horizon", value) == [f"horizon must be a whole number of at least 1, got {value!r}"]


@pytest.mark.parametrize("value", [2**53 + 1, 2**63, 10**400])
def test_counts_that_a_float_cannot_hold(value: int) -> None:
    (problem,) = count_problem("horizon", value)
    assert problem.startswith("horizon must be a whole number of at most 2^53, got ")
    assert count_problem("horizon", 2**53) == []


@pytest.mark.parametrize("rng", [None, 0, 2**200, np.int64(3), np.random.default_rng(0)])
def test_sources_of_randomness(rng: Any) -> None:
    assert seed_problem(rng) == []


@pytest.mark.parametrize(
    "values", [[1, 2.5], np.array([[1], [0]], dtype=np.int8), [True], [], 3, [1, 10**20]]
)
def test_arrays_of_numbers(values: Any) -> None:
    array = number_array(values)
    assert array is not None
    assert array.dtype == np.float64
    assert array.tolist() == np.asarray(values, dtype=np.float64).tolist()


@pytest.mark.parametrize(
    "values",
    [
        "1",
        ["1", "2"],
        [1j],
        [[1], [2, 3]],
        {},
        [None, 1],
        [10**400],
        np.array(["2020"], dtype="M8[D]"),
        {1.0},
    ],
)
def test_what_is_no_array_of_numbers(values: Any) -> None:
    assert number_array(values) is None


def test_numbers_of_a_design_are_pythons_own() -> None:
    """float32 would round the noise that epsilon is divided into; NumPy's numbers print their type."""
    design = DPConSE(epsilon=np.float32(0.1), alpha=np.float64(0.5), first_window=np.int64(7))
    assert type(design.epsilon) is float
    assert repr(design).startswith("DPConSE(epsilon=0.10000000149011612, alpha=0.5,")
    assert type(design.first_window) is int


def test_choices() -> None:
    assert choice_problem("counter", ["binary"], ("binary",)) == [
        "counter must be one of binary, got ['binary']"
    ]
    assert choice_problem("counter", np.array(["binary", "x"]), ("binary", "x")) != []
    assert choice_problem("counter", "binary", ("binary", "hybrid")) == []
    assert choice_problem("counter", "tree", ("binary", "hybrid")) == [
        "counter must be one of binary, hybrid, got 'tree'"
    ]


REFUSED: list[tuple[type, dict[str, Any], list[str]]] = [
    (UCB, {"width": 0.0}, ["width"]),
    (
        PrivateUCB,
        {"epsilon": -1.0, "calibration": "best", "counter": "tree", "width": math.nan, "delta": 2.0},
        ["epsilon", "calibration", "counter", "width", "delta"],
    ),
    (PrivateUCB, {"epsilon": math.inf}, ["epsilon"]),
    (PrivateUCB, {"epsilon": 1.0, "delta": 0.05}, ["delta"]),
    (PrivateUCB, {"epsilon": 1.0, "calibration": "published", "relaxation": "off"}, ["relaxation"]),
    (PrivateUCB, {"epsilon": True}, ["epsilon"]),
    (ConSE, {"alpha": 1.5}, ["alpha"]),
    (
        DPConSE,
        {"epsilon": 0.0, "alpha": -0.1, "calibration": "x", "contrast_share": 2.0, "first_window": 0},
        ["epsilon", "alpha", "calibration", "contrast_share", "first_window"],
    ),
    (DPConSE, {"epsilon": 1.0, "contrast_share": 1.0}, ["contrast_share"]),
    (DPConSE, {"epsilon": 1.0, "contrast_share": 0.0}, ["contrast_share"]),
    (DPConSE, {"epsilon": 1.0, "first_window": 10.5}, ["first_window"]),
    (
        EpsilonGreedy,
        {"exploration": 1.1, "decay": -1.0, "batch_size": 0},
        ["exploration", "decay", "batch_size"],
    ),
    (
        Thompson,
        {
            "prior": "cauchy",
            "noise_scale": 0.0,
            "batch_size": 0,
            "draws": 0,
            "initial_pulls": -1,
            "floor": 1.5,
            "prior_parameters": (1.0, 0.0),
        },
        ["prior", "noise_scale", "batch_size", "draws", "initial_pulls", "floor", "prior failures"],
    ),
    (Thompson, {"prior": "normal", "prior_parameters": (math.nan, 1.0)}, ["prior mean"]),
    (Thompson, {"prior": "normal", "prior_parameters": ("0", -1.0)}, ["prior mean", "prior variance"]),
    (Thompson, {"prior_parameters": 3.0}, ["prior_parameters"]),
    (Thompson, {"floor": (0.1, 0.2, 0.3)}, ["floor"]),
    (Thompson, {"floor": (-0.1, -0.2)}, ["floor scale", "floor decay"]),
]


@pytest.mark.parametrize(("design", "parameters", "named"), REFUSED)
def test_designs_list_everything_that_is_wrong(
    design: type, parameters: dict[str, Any], named: list[str]
) -> None:
    with pytest.raises(ParameterError) as caught:
        design(**parameters)
    message = str(caught.value)
    assert design.__name__ in message.splitlines()[0]
    for name in named:
        assert f"{name} must" in message
    assert sum(" must " in line for line in message.splitlines()) == len(named)


def test_designs_take_keywords_only_and_are_frozen() -> None:
    with pytest.raises(TypeError):
        PrivateUCB(1.0)  # type: ignore[misc]
    with pytest.raises(TypeError):
        PrivateUCB()  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        PrivateUCB(epsilon=1.0).epsilon = 2.0  # type: ignore[misc]
    assert PrivateUCB(epsilon=1.0) == PrivateUCB(epsilon=1.0)
