"""Bounds, power, sizes and estimates after a stop equal those of R's rpact (group_sequential.R).

rpact searches with a tolerance of 1e-10 at best, so the last digits of its numbers are not exact.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adaptinf as ai
from adaptinf.inference.group_sequential import Boundary, futility_bounds, spending_bounds
from adaptinf.inference.group_sequential.spending import SPENDING
from adaptinf.inference.group_sequential.stagewise import Stopped
from adaptinf.plans.planning.sizes import fixed_law

FOUND = json.loads(Path(__file__).with_name("group_sequential.json").read_text(encoding="utf-8"))
DESIGNS, FUTILE, SIZES, PER_ARM = FOUND["designs"], FOUND["futile"], FOUND["sizes"], FOUND["per_arm"]
CLOSE = 1e-6


def name(one: dict[str, Any]) -> str:
    kind = one["spending"] if one.get("parameter") is None else f"{one['spending']} {one['parameter']}"
    rest = f"sides {one['sides']}" if "sides" in one else f"binding {one['binding']}"
    return f"{kind}, {one['fractions']}, {rest}"


def bounds_of(one: dict[str, Any]) -> Any:
    given = {} if one["parameter"] is None else {"gamma": one["parameter"], "rho": max(one["parameter"], 0.1)}
    return spending_bounds(one["fractions"], 0.025 * one["sides"], one["sides"], one["spending"], **given)


def test_the_grid_is_as_wide_as_promised() -> None:
    assert (FOUND["rpact"], len(DESIGNS), len(FUTILE), len(SIZES)) == ("3.3.4", 64, 16, 64)
    assert sum(len(one.get("stopped", [])) for one in DESIGNS) == 80


@pytest.mark.parametrize("one", DESIGNS, ids=name)
def test_bounds_power_and_size(one: dict[str, Any]) -> None:
    upper = bounds_of(one)
    np.testing.assert_allclose(upper, one["bounds"], atol=CLOSE)
    lower = -upper if one["sides"] == 2 else np.full(len(upper), -np.inf)
    boundary = Boundary(np.array(one["fractions"]), lower, upper, one["sides"])
    for place, effect in enumerate((0.0, 0.1, 0.2)):
        drift = effect * PER_ARM**0.5
        assert boundary.rejection(drift) == pytest.approx(one["rejection"][place], abs=CLOSE)
        assert boundary.expected_information(drift) == pytest.approx(one["information"][place], abs=CLOSE)
    assert boundary.drift_of_power(0.9) == pytest.approx(one["drift"], abs=CLOSE)


@pytest.mark.parametrize("one", SIZES, ids=name)
def test_sample_sizes(one: dict[str, Any]) -> None:
    plan = ai.Plan(
        ai.designs.Uniform(),
        arms=(0, 1),
        treatment=1,
        control=0,
        looks=[round(1_000 * fraction) for fraction in one["fractions"]],
        spending=one["spending"],
        gamma=one["parameter"] or -4.0,
        rho=max(one["parameter"] or 2.0, 0.1),
        sides=one["sides"],
        alpha=0.025 * one["sides"],
    )
    world = ai.environments.NormalArms([0.0, 0.4])
    law = fixed_law(plan, world)
    assert law is not None
    rounds = law.horizon(0.9)
    assert rounds == pytest.approx(one["largest"], rel=CLOSE)
    assert law.size(rounds) == pytest.approx(one["mean"], rel=CLOSE)
    assert plan.sample_size(world).horizon == np.ceil(one["largest"])


@pytest.mark.parametrize("one", [one for one in DESIGNS if "stopped" in one], ids=name)
def test_estimates_after_a_stop(one: dict[str, Any]) -> None:
    upper = bounds_of(one)
    for stop in one["stopped"]:
        information = np.array(one["fractions"][: stop["look"]]) * PER_ARM / 4
        none = np.full(len(information), -np.inf)
        score = stop["z"] * information[-1] ** 0.5
        stopped = Stopped(information, information, none, upper[: len(none)], score)
        assert stopped.tail(0.0) == pytest.approx(stop["p_value"], abs=CLOSE)
        assert stopped.estimate == pytest.approx(stop["estimate"], abs=CLOSE)
        assert stopped.interval(0.05) == pytest.approx((stop["low"], stop["high"]), abs=CLOSE)


@pytest.mark.parametrize("one", FUTILE, ids=name)
def test_bounds_for_futility(one: dict[str, Any]) -> None:
    looks = np.array(one["fractions"])
    spend = SPENDING[one["spending"]]
    beta, level = (np.diff(spend(looks, total, 0.0), prepend=0.0) for total in (0.1, 0.025))
    upper = spending_bounds(looks, 0.025, 1, one["spending"])
    lower, above, drift = futility_bounds(looks, upper, beta, level if one["binding"] else None)
    np.testing.assert_allclose(above, one["upper"], atol=CLOSE)
    np.testing.assert_allclose(lower, one["lower"], atol=CLOSE)
    assert drift == pytest.approx(one["drift"], abs=CLOSE)
