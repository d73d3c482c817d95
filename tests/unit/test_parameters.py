"""Checks of parameters, and the refusals of designs that list everything at once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from adaptinf.designs import UCB, ConSE, DPConSE, EpsilonGreedy, PrivateUCB, Thompson
from adaptinf.errors import ParameterError
from adaptinf.parameters import choice_problem, count_problem, number_problem


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
    assert number_problem("epsilon", 1e-300, 0.0, open_low=True) == []
    assert number_problem("epsilon", 0.0, 0.0, open_low=True) == ["epsilon must be above 0, got 0.0"]
    assert number_problem("epsilon", math.inf, 0.0, open_low=True) == ["epsilon must be above 0, got inf"]


@pytest.mark.parametrize("value", [1, 7, np.int64(3), np.uint8(1)])
def test_counts_that_fit(value: Any) -> None:
    assert count_problem("horizon", value) == []


@pytest.mark.parametrize("value", [0, -1, 1.0, "1", None, True, math.nan])
def test_counts_that_do_not_fit(value: Any) -> None:
    assert count_problem("horizon", value) == [f"horizon must be a whole number of at least 1, got {value!r}"]


def test_choices() -> None:
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
