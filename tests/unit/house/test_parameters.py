"""Checks of parameters, and the refusals of designs that list everything at once."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Any

import numpy as np
import pytest

from adaptinf.designs import (
    UCB,
    ConSE,
    DPConSE,
    EpsilonGreedy,
    ExplorationSampling,
    PrivateUCB,
    Thompson,
    TopTwoThompson,
)
from adaptinf.errors import ParameterError
from adaptinf.parameters import (
    COUNT,
    POSITIVE,
    SEED,
    SHARE,
    UNIT,
    Callee,
    Constraint,
    Count,
    Each,
    Is,
    OneOf,
    OrNone,
    Positive,
    check,
    check_fields,
    number_array,
    problems_of,
)
from adaptinf.texts import absent, did_you_mean


@pytest.mark.parametrize("value", [0, 0.0, 1, 0.5, np.float32(0.5), np.int64(1), np.float64(1.0)])
def test_numbers_that_fit(value: Any) -> None:
    assert UNIT("alpha", value) == []


@pytest.mark.parametrize(
    "value", [-0.001, 1.001, math.nan, math.inf, -math.inf, "0.5", None, True, np.True_, [0.5], 1j]
)
def test_numbers_that_do_not_fit(value: Any) -> None:
    (problem,) = UNIT("alpha", value)
    assert problem.startswith("alpha must be ")
    assert "at least 0 and at most 1" in problem
    assert repr(value).removeprefix("np.").split("(")[-1].rstrip(")") in problem


def test_an_open_end_is_excluded_and_infinity_too() -> None:
    assert POSITIVE("epsilon", 1e-30) == []
    assert POSITIVE("epsilon", 0.0) == ["epsilon must be above 0, got 0.0"]
    (problem,) = POSITIVE("epsilon", math.inf)
    assert problem == "epsilon must be above 0, and at most 1e+100 in absolute value, got inf"


@pytest.mark.parametrize("value", [1e-320, 1e-31, 1e101, 10**400])
def test_sizes_that_floats_cannot_square_or_invert_are_refused(value: float) -> None:
    (problem,) = POSITIVE("epsilon", value)
    assert "epsilon must be above 0, and at " in problem
    assert SHARE("share", 1e-320) == []


@pytest.mark.parametrize("value", [1, 7, np.int64(3), np.uint8(1)])
def test_counts_that_fit(value: Any) -> None:
    assert COUNT("horizon", value) == []


@pytest.mark.parametrize("value", [0, -1, 1.0, "1", None, True, math.nan])
def test_counts_that_do_not_fit(value: Any) -> None:
    assert COUNT("horizon", value) == [f"horizon must be a whole number of at least 1, got {value!r}"]


@pytest.mark.parametrize("value", [2**53 + 1, 2**63, 10**400])
def test_counts_that_a_float_cannot_hold(value: int) -> None:
    (problem,) = COUNT("horizon", value)
    assert problem.startswith("horizon must be a whole number of at most 2^53, got ")
    assert COUNT("horizon", 2**53) == []


@pytest.mark.parametrize("value", [-1, 1_001, 2.0, True, np.timedelta64(3), 2**60])
def test_counts_with_an_upper_limit(value: Any) -> None:
    allowed = Count(0, 1_000)
    assert allowed("days", value) == [f"days must be a whole number from 0 to 1,000, got {value!r:.60}"]
    assert allowed("days", 0) == allowed("days", np.int64(1_000)) == []
    assert COUNT("days", np.timedelta64(3)) == [
        "days must be a whole number of at least 1, got np.timedelta64(3)"
    ]


@pytest.mark.parametrize("rng", [None, 0, 2**200, np.int64(3), np.random.default_rng(0)])
def test_sources_of_randomness(rng: Any) -> None:
    assert SEED("rng", rng) == []


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
    assert OneOf("binary")("counter", ["binary"]) == ["counter must be one of 'binary', got ['binary']"]
    assert OneOf("binary", "x")("counter", np.array(["binary", "x"])) != []
    assert OneOf("binary", "hybrid")("counter", "binary") == []
    assert OneOf("binary", "hybrid")("counter", "tree") == [
        "counter must be one of 'binary', 'hybrid', got 'tree'"
    ]


@pytest.mark.parametrize(
    ("given", "known", "hint"),
    [
        ("IPW", ["ipw", "aipw"], "; did you mean 'ipw'?"),
        ("sequental", ["simultaneous", "sequential"], "; did you mean 'sequential'?"),
        ("1", [0, 1], "; did you mean 1?"),
        (2, ["1", "2"], "; did you mean '2'?"),
        (10, [1, 100], ""),
        ("zebra", ["ipw", "aipw"], ""),
        ("arm a", [], ""),
        (None, ["none"], ""),
        (["ipw"], ["ipw"], ""),
        ("a" * 10**7, ["a" * 60, "b"], f"; did you mean {'a' * 60!r:.60}?"),
    ],
)
def test_a_misspelt_name_is_guessed(given: object, known: list[object], hint: str) -> None:
    assert did_you_mean(given, known) == hint


def test_what_is_not_listed_is_told_with_all_that_is() -> None:
    assert OneOf("binary", "hybrid")("counter", "Hybird") == [
        "counter must be one of 'binary', 'hybrid', got 'Hybird'; did you mean 'hybrid'?"
    ]
    assert absent("arm", "d\x1b", range(40), "the log has") == (
        f"there is no arm 'd\\x1b'; the log has {', '.join(map(str, range(30)))} and 10 more"
    )
    assert absent("arm", 2, []) == "there is no arm 2; available: none"


@dataclasses.dataclass(frozen=True)
class Dose:
    """Parameters with their constraints beside them."""

    size: Positive
    share: Annotated[float, SHARE] | None = None
    rounds: Annotated[int, Count(2)] = 2

    def __post_init__(self) -> None:
        check_fields(self, self._problems)

    def _problems(self) -> list[str]:
        return ["share must be left out with three rounds"] if self.share and self.rounds == 3 else []


class Doses(Dose):
    """Inherits the constraints."""


@pytest.mark.parametrize("kind", [Dose, Doses])
def test_constraints_stand_beside_the_fields(kind: type[Dose]) -> None:
    assert kind(size=1.0, share=None, rounds=5).share is None
    with pytest.raises(ParameterError) as told:
        kind(size=0.0, share=2.0, rounds=3)
    assert told.value.subject == kind.__name__
    assert told.value.problems == (
        "size must be above 0, got 0.0",
        "share must be above 0 and at most 1, got 2.0",
        "share must be left out with three rounds",
    )


def test_all_arguments_are_checked_at_once_and_in_order() -> None:
    check("trial", horizon=(3, COUNT), share=(None, OrNone(SHARE)))
    with pytest.raises(ParameterError) as told:
        check("trial", ["and more"], horizon=(0, COUNT), share=(2.0, OrNone(SHARE)))
    assert [problem.split()[0] for problem in told.value.problems] == ["horizon", "share", "and"]
    assert problems_of(epsilon=(1.0, POSITIVE)) == []


_OPEN = Each(SHARE, Is(lambda share: share < 1.0, "below 1"))


@pytest.mark.parametrize(
    ("constraint", "value", "told"),
    [
        (Is(Dose, "a dose"), 1, "x must be a dose, got 1"),
        (Is(callable, "a function", shown=False), 1, "x must be a function"),
        (_OPEN, 1.0, "x must be below 1, got 1.0"),
        (
            Each(SHARE, Is(lambda share: share < 1.0, "below 1")),
            2.0,
            "x must be above 0 and at most 1, got 2.0",
        ),
        (
            Callee("a", "b"),
            lambda a: a,
            "x is called with 2 arguments, (a, b): too many positional arguments",
        ),
    ],
)
def test_other_constraints(constraint: Constraint, value: Any, told: str) -> None:
    assert constraint("x", value) == [told]


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
    (DPConSE, {"epsilon": 1.0, "contrast_share": 1.1}, ["contrast_share"]),
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
            "initial": "thrown",
            "floor": 1.5,
            "prior_parameters": (1.0, 0.0),
        },
        [
            "prior",
            "noise_scale",
            "batch_size",
            "draws",
            "initial_pulls",
            "initial",
            "floor",
            "prior failures",
        ],
    ),
    (Thompson, {"prior": "normal", "prior_parameters": (math.nan, 1.0)}, ["prior mean"]),
    (Thompson, {"prior": "normal", "prior_parameters": ("0", -1.0)}, ["prior mean", "prior variance"]),
    (Thompson, {"prior_parameters": 3.0}, ["prior_parameters"]),
    (Thompson, {"floor": (0.1, 0.2, 0.3)}, ["floor"]),
    (Thompson, {"floor": (-0.1, -0.2)}, ["floor scale", "floor decay"]),
    (ExplorationSampling, {"batch_size": 0, "floor": 2.0}, ["batch_size", "floor"]),
    (TopTwoThompson, {"leader_share": 0.0, "draws": 2.5}, ["draws", "leader_share"]),
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
