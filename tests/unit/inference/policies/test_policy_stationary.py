"""Rewards that are stated to stay: weights of each policy's own, numbers kept, and when tables caution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims import policies as claims
from adaptinf.log import AdaptiveLog

HORIZON = 240
HALF = HORIZON // 2
ARMS = ("a", "b", "c")
MIXED = np.array([0.6, 0.3, 0.1])


def lean(frame: pd.DataFrame) -> np.ndarray:
    first = np.where(frame["x"] > 0, 0.7, 0.1)
    return np.column_stack([first, 0.2 * np.ones(len(frame)), 0.8 - first])


def sign(frame: pd.DataFrame) -> np.ndarray:
    right = (frame["x"] > 0).to_numpy(float)
    return np.column_stack([1 - right, right, 0 * right])


def log_of(kind: str) -> AdaptiveLog:
    """Rewards that rise; propensities that wander, or follow the context in the second half."""
    rng = np.random.default_rng(11)
    x = np.round(rng.normal(size=HORIZON), 6)
    wave = 0.3 * np.sin(np.arange(HORIZON) / 15.0)
    every = np.column_stack([1 / 3 + wave, np.full(HORIZON, 1 / 3), 1 / 3 - wave])
    if kind in ("contexts", "snapshots"):
        every[:HALF] = 1 / 3
        every[HALF:] = lean(pd.DataFrame({"x": x[HALF:]}))
    if kind == "constant":
        every[:] = [0.5, 0.3, 0.2]
    action = (rng.random(HORIZON)[:, None] > np.cumsum(every, axis=1)[:, :-1]).sum(axis=1)
    time = np.arange(HORIZON)
    frame = pd.DataFrame({"arm": np.array(ARMS)[action], "x": x, "who": time % 40})
    frame["y"] = 0.5 * action * x + action + rng.normal(size=HORIZON) + time / HORIZON
    frame["p"] = every[time, action]
    frame["a"], frame["b"], frame["c"] = every[:, 0], every[:, 1], 1.0 - every[:, 0] - every[:, 1]
    known: dict[str, Any] = {"propensities": {arm: arm for arm in ARMS}}
    if kind == "chosen":
        known = {"propensity": "p"}
    if kind == "units":
        known["unit"] = "who"
    if kind in ("contexts", "snapshots"):
        known["context"] = ["x"]
    return AdaptiveLog(frame, action="arm", reward="y", **known)


def fits(kind: str, **options: Any) -> dict[str, Any]:
    """Values of two policies, and their differences from a third."""
    log, first = log_of(kind), sign if kind in ("contexts", "snapshots") else "b"
    if kind == "snapshots":
        options["snapshots"] = ai.PolicySnapshots([0, HALF], [np.full(3, 1 / 3), lean])
    return {
        "value": ai.PolicyValue(log, [first, MIXED]).fit(**options),
        "contrast": ai.PolicyContrast(log, [first, MIXED], baseline="a").fit(**options),
    }


def minds_drift(result: Any) -> bool:
    """Whether a drift is among the cautions."""
    return any(says(result.cautions, one) for one in (claims.OWN_WEIGHTS, claims.OWN_WEIGHTS_OF_PAIR))


# Estimates, standard errors and 95% intervals that were the default when nothing was assumed of drifts.
KEPT: dict[tuple[str, str], tuple[str, list[float], list[float], list[list[float]]]] = {
    ("moving", "value"): (
        "stable-variance, non-contextual",
        [1.5269571812151483, 0.8943653953706914],
        [0.12478684347039526, 0.08660044510984025],
        [[1.278313967974051, 1.7756003944562457], [0.7172410564115023, 1.0714897343298804]],
    ),
    ("moving", "contrast"): (
        "stable-variance, non-contextual",
        [1.1860799372896806, 0.5534881514452237],
        [0.17158290376859472, 0.06706134037338278],
        [[0.8328049062576155, 1.5393549683217458], [0.4169090294490048, 0.6900672734414426]],
    ),
    ("chosen", "value"): (
        "uniform",
        [1.5269571812151477, 0.8340511068518471],
        [0.12478684347039476, 0.10892380093318754],
        [[1.2783139679740514, 1.775600394456244], [0.5236666213009866, 1.1444355924027076]],
    ),
    ("chosen", "contrast"): (
        "uniform",
        [1.3236363815125944, 0.6307303071492941],
        [0.2057751665737989, 0.07916451730127237],
        [[0.660379863969588, 1.9868928990556007], [0.37556646530939775, 0.8858941489891905]],
    ),
    ("units", "value"): (
        "uniform",
        [1.5276185721225253, 0.8350081189492393],
        [0.12948170002189094, 0.10183043243845406],
        [[1.2649941163437188, 1.7902430279013317], [0.5448365851334259, 1.1251796527650528]],
    ),
    ("units", "contrast"): (
        "uniform",
        [1.3231156935680293, 0.6305052403947433],
        [0.22172966667057176, 0.08385582476409491],
        [[0.6084344761959972, 2.0377969109400613], [0.3602203307295937, 0.9007901500598929]],
    ),
    ("contexts", "value"): (
        "uniform",
        [1.3008837674891693, 1.0361132900907304],
        [0.180510430766035, 0.10600162089082467],
        [[0.9216025868737929, 1.6801649481045458], [0.8179768486858159, 1.254249731495645]],
    ),
    ("contexts", "contrast"): (
        "uniform",
        [0.6641705427491293, 0.3994000653506905],
        [0.14253844747964078, 0.07996407848547163],
        [[0.36997788900100353, 0.9583631964972552], [0.22846600295412167, 0.5703341277472593]],
    ),
    ("snapshots", "value"): (
        "stable-variance, non-contextual",
        [1.2032806570660821, 0.9788233318441169],
        [0.16419988816287656, 0.10110523124572983],
        [[0.8684405978089237, 1.5381207163232404], [0.7743565244241971, 1.1832901392640367]],
    ),
    ("snapshots", "contrast"): (
        "stable-variance, non-contextual",
        [0.6295607761413172, 0.40510345091935196],
        [0.14099509183639852, 0.07590848123941475],
        [[0.3419956401980658, 0.9171259120845687], [0.248224317289171, 0.561982584549533]],
    ),
}


@pytest.mark.parametrize(("kind", "model"), KEPT)
def test_numbers_are_kept(kind: str, model: str) -> None:
    result = fits(kind, stationary=True)[model]
    weights, estimate, std_error, interval = KEPT[kind, model]
    assert result.weights == weights
    np.testing.assert_allclose(result.estimate, estimate, rtol=1e-12)
    np.testing.assert_allclose(result.std_error, std_error, rtol=1e-12)
    np.testing.assert_allclose(result.conf_int().to_numpy(), interval, rtol=1e-11)
    assert not minds_drift(result)


@pytest.mark.parametrize("kind", ["moving", "snapshots"])
def test_without_a_word_a_drift_is_allowed_for(kind: str) -> None:
    found = fits(kind)
    assert [one.weights for one in found.values()] == ["uniform", "combined"]
    assert not any(map(minds_drift, found.values()))


@pytest.mark.parametrize("weights", ["stable-variance", "min-variance"])
@pytest.mark.parametrize("contextual", [False, True])
def test_weights_that_assume_it_say_so_unless_it_is_stated(weights: str, contextual: bool) -> None:
    own = {"weights": weights, "contextual": contextual}
    told, stated = fits("snapshots", **own), fits("snapshots", **own, stationary=True)
    value, contrast = (told[model].cautions[0] for model in ("value", "contrast"))
    assert says(value, claims.OWN_WEIGHTS, weights=weights)
    assert says(contrast, claims.OWN_WEIGHTS_OF_PAIR, weights=weights)
    for model in told:
        assert told[model].cautions[1:] == stated[model].cautions
        np.testing.assert_array_equal(told[model].estimate, stated[model].estimate)
        np.testing.assert_array_equal(told[model].std_error, stated[model].std_error)


def test_cadr_gives_a_difference_one_weight_and_a_value_its_own() -> None:
    found = fits("snapshots", estimator="cadr")
    assert says(found["value"].cautions[0], claims.OWN_WEIGHTS, weights="1 / conditional sd")
    assert not minds_drift(found["contrast"])
    assert not minds_drift(fits("snapshots", estimator="cadr", stationary=True)["value"])


def test_propensities_that_never_move_need_no_caution() -> None:
    for result in fits("constant", weights="stable-variance").values():
        assert result.cautions == ()


def test_recommended_calls_state_what_they_assume() -> None:
    table = ai.recommend(log_of("moving"), "policy-value", policy="b")
    valid = [row for row in table.methods if row.call.startswith("PolicyValue(") and row.verdict.valid]
    assert valid[0].call == "PolicyValue(log, policy='b').fit(estimator='aipw', weights='uniform')"
    for row in valid:
        own = row.verdict.arguments.get("weights") != "uniform"
        assert ("stationary=True" in row.call) is own
        assert not minds_drift(row.run())


def test_that_a_policy_was_chosen_on_this_log_is_said_to_be_invisible() -> None:
    for result in (*fits("moving").values(), *fits("moving", stationary=True).values()):
        assert says(result.notes, claims.CHOSEN_ON_LOG)


def test_stationary_is_a_flag() -> None:
    with pytest.raises(ai.errors.ParameterError, match="stationary"):
        fits("moving", stationary="yes")


def test_a_value_has_no_combined_weights() -> None:
    with pytest.raises(ai.errors.ParameterError, match="shared by both policies of a PolicyContrast"):
        ai.PolicyValue(log_of("moving"), "b").fit("combined")
    with pytest.raises(ai.errors.ParameterError, match="combined weights are not contextual"):
        ai.PolicyContrast(log_of("moving"), "b", baseline="a").fit("combined", contextual=True)
