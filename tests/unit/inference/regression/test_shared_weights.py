"""Weighted regressions with one weight per round for all arms: what they equal, and what a drift does."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims import first, propensities, stationarity
from adaptinf.claims.regression import regressions, weighted_regression
from adaptinf.errors import InvalidForLog
from adaptinf.inference.regression.adaptive_ols import AdaptiveOLS
from adaptinf.inference.regression.facts.weighted_regression_facts import WeightedFacts
from adaptinf.inference.regression.weighted.own_weights import WEIGHTED
from adaptinf.inference.regression.weighted.running import running_regression
from adaptinf.inference.regression.weighted.shared_weights import arm_columns, shared_regression
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.typing import FloatArray

ARMS = ("a", "b", "c", "d")


def adaptive_log(
    n: int = 400,
    n_arms: int = 2,
    seed: int = 3,
    drift: float = 0.0,
    late: int = 0,
    size: int = 25,
    *,
    slope: float = 0.5,
    **metadata: Any,
) -> AdaptiveLog:
    """A softmax of the arms' means in batches with a floor of .1; arm b is possible from round `late` on."""
    rng = np.random.default_rng(seed)
    x, noise, draws = rng.normal(size=n), rng.normal(size=n), rng.random(n)
    action, reward, every = np.zeros(n, dtype=np.int64), np.zeros(n), np.zeros((n, n_arms))
    share = np.full(n_arms, 1.0 / n_arms)
    for t in range(n):
        if t % size == 0 and t:
            seen = [reward[:t][action[:t] == k] for k in range(n_arms)]
            means = np.array([one.mean() if len(one) else 0.0 for one in seen])
            grown = np.exp(3.0 * (means - means.max()))
            share = 0.1 + (1.0 - n_arms * 0.1) * grown / grown.sum()
        here = share.copy()
        if t < late:
            here[1] = 0.0
            here /= here.sum()
        every[t] = here
        action[t] = min(int(np.searchsorted(np.cumsum(here), draws[t])), n_arms - 1)
        reward[t] = slope * x[t] + 0.2 * action[t] + drift * t / n + noise[t]
    arrays = LogArrays(
        action,
        reward,
        propensity=every[np.arange(n), action],
        propensities=every,
        batch=np.arange(n) // size,
        context={"x": x},
    )
    options = {"context_free": True, "propensity_status": "exact", **metadata}
    return AdaptiveLog.from_arrays(arrays, arms=ARMS[:n_arms], **options)


def contextual_log(n: int = 600, *, batched: bool = True) -> AdaptiveLog:
    """Propensities that follow the sign of x, and the batch."""
    rng = np.random.default_rng(8)
    x, batch = rng.normal(size=n), np.arange(n) // 50
    b = np.where(x > 0.0, 0.3, 0.6) + 0.02 * (batch % 5)
    action = (rng.random(n) < b).astype(np.int64)
    every = np.column_stack([1.0 - b, b])
    arrays = LogArrays(
        action,
        x + action * (0.3 + 0.2 * x) + rng.normal(size=n),
        propensity=every[np.arange(n), action],
        propensities=every,
        batch=batch if batched else None,
        context={"x": x},
    )
    return AdaptiveLog.from_arrays(arrays, arms=("a", "b"), propensity_status="exact")


def without(log: AdaptiveLog, *names: str) -> AdaptiveLog:
    """The log without some of its arrays."""
    arrays = LogArrays(**{**log.arrays.by_field(), **dict.fromkeys(names)})
    return AdaptiveLog.from_arrays(arrays, arms=log.arms, context_free=True, propensity_status="exact")


# Agreement with Contrast


@pytest.mark.parametrize("n_arms", [2, 3])
@pytest.mark.parametrize("formula", ["reward ~ C(action)", "reward ~ 0 + C(action)"])
def test_arms_alone_are_the_contrasts(n_arms: int, formula: str) -> None:
    log = adaptive_log(n_arms=n_arms)
    result = AdaptiveOLS.from_formula(formula, log).fit()
    assert (result.adjustment, result.weights) == ("weighted", "combined")
    for arm in log.arms[1:]:
        other = ai.Contrast(log, treatment=arm, control="a").fit("aipw", "combined")
        if formula.startswith("reward ~ C"):
            term = f"C(action)[T.{arm}]"
            found = result.params[term], result.bse[term], *result.conf_int().loc[term]
            expected = other.params.iloc[0], other.bse.iloc[0], *other.conf_int().iloc[0]
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        test = result.t_test(difference(formula, arm))
        np.testing.assert_allclose(test.effect, other.params, rtol=1e-11)
        np.testing.assert_allclose(test.std_error, other.bse, rtol=1e-11)


def difference(formula: str, arm: str) -> str:
    """The arm's coefficient less that of the first arm, as the formula has them."""
    if "0 +" in formula:
        return f"`C(action)[{arm}]` - `C(action)[a]`"
    return f"`C(action)[T.{arm}]`"


@pytest.mark.parametrize("batched", [True, False])
def test_propensities_by_context_fix_the_weight_before_the_context(batched: bool) -> None:
    log = contextual_log(batched=batched)
    result = AdaptiveOLS.from_formula("reward ~ C(action)", log).fit("weighted")
    other = ai.Contrast(log, treatment="b", control="a").fit("aipw")
    assert result.weights == other.weights == ("combined" if batched else "uniform")
    before = f", computed from {propensities.BATCH_BEFORE()}"
    assert says(result.notes, weighted_regression.SHARED_WEIGHTS, by=before) == batched
    np.testing.assert_allclose(result.params.iloc[1], other.params.iloc[0], rtol=1e-12)
    np.testing.assert_allclose(result.bse.iloc[1], other.bse.iloc[0], rtol=1e-12)
    if not batched:  # asked for, they are fixed all the same
        asked = AdaptiveOLS.from_formula("reward ~ C(action)", log).fit("weighted", weights="combined")
        before = f", computed from {propensities.ROUND_BEFORE()}"
        assert says(asked.notes, weighted_regression.SHARED_WEIGHTS, by=before)


def test_the_chosen_arm_s_propensity_alone_gives_uniform_weights() -> None:
    log = without(adaptive_log(n_arms=3), "propensities")
    result = AdaptiveOLS.from_formula("reward ~ C(action)", log).fit("weighted")
    other = ai.Contrast(log, treatment="c", control="a").fit("aipw")
    assert result.weights == other.weights == "uniform"
    np.testing.assert_allclose(result.params.iloc[2], other.params.iloc[0], rtol=1e-12)
    np.testing.assert_allclose(result.bse.iloc[2], other.bse.iloc[0], rtol=1e-12)
    with pytest.raises(InvalidForLog) as caught:
        AdaptiveOLS.from_formula("reward ~ C(action)", log).fit("weighted", weights="combined")
    assert says(caught.value.reason, propensities.EVERY_ONE_NEEDED)


def test_an_arm_that_joins_late_is_compared_where_it_could_be_chosen() -> None:
    log = adaptive_log(n_arms=3, late=150, drift=2.0)
    result = AdaptiveOLS.from_formula("reward ~ C(action)", log).fit("weighted")
    for arm in ("b", "c"):
        other = ai.Contrast(log, treatment=arm, control="a").fit("aipw")
        term = f"C(action)[T.{arm}]"
        np.testing.assert_allclose(result.params[term], other.params.iloc[0], rtol=1e-12)
        np.testing.assert_allclose(result.bse[term], other.bse.iloc[0], rtol=1e-12)
    gaps = "arm 'b' has propensity 0 in 150 of 400 rounds"
    assert says(result.notes, weighted_regression.COMPARED_WHERE_POSSIBLE, gaps=gaps)
    with pytest.raises(InvalidForLog) as caught:
        AdaptiveOLS.from_formula("reward ~ C(action)", log).fit("weighted", weights="sqrt")
    assert says(caught.value.reason, weighted_regression.OWN_IMPOSSIBLE, gaps=gaps)


def test_arms_that_never_meet_are_refused() -> None:
    log = adaptive_log(n_arms=2)
    every = np.where(np.arange(400)[:, None] < 200, [[1.0, 0.0]], [[0.0, 1.0]])
    arrays = LogArrays(every.argmax(axis=1), log.arrays.reward, propensity=np.ones(400), propensities=every)
    apart = AdaptiveLog.from_arrays(arrays, arms=("a", "b"), propensity_status="exact")
    with pytest.raises(InvalidForLog) as caught:
        AdaptiveOLS.from_formula("reward ~ C(action)", apart).fit("weighted")
    assert says(caught.value.reason, weighted_regression.NOT_TOLD_APART)


# The old weights


FROZEN = {
    2: [
        [0.03665554423572143, 0.2019814086501675, 0.4666654144483379, -0.08425116753785061],
        [0.07016816571596629, 0.09897774393240012, 0.07457500484695226, 0.09960807810488266],
        [-0.10129314754842056, 0.007393875230955527, 0.32005299764274575, -0.28007792067434556],
        [0.1746042360198634, 0.3965689420693795, 0.6132778312539301, 0.11157558559864433],
    ],
    3: [
        [0.04966015511895358, 0.2903215672792703, 0.2836098137642714, 0.4329365146274416],
        [0.09532605568402802, 0.12795854127540496, 0.12601700983062245, 0.050097307865447624],
        [-0.13774825922928868, 0.03875858011210365, 0.03586382423602952, 0.33444657960590535],
        [0.23706856946719584, 0.5418845544464369, 0.5313558032925133, 0.5314264496489778],
    ],
}
"""Coefficients, errors and limits by square roots of importance weights, each arm's own."""


@pytest.mark.parametrize(
    ("n_arms", "formula"), [(2, "reward ~ C(action) * x"), (3, "reward ~ C(action) + x")]
)
def test_stationary_logs_keep_the_square_roots_of_importance_weights(n_arms: int, formula: str) -> None:
    model = AdaptiveOLS.from_formula(formula, adaptive_log(n_arms=n_arms))
    stated = model.fit(stationary=True)
    found = [stated.params, stated.bse, *stated.conf_int().to_numpy().T]
    np.testing.assert_allclose(np.array(found), FROZEN[n_arms], rtol=1e-12)
    assert stated.cautions == ()
    named = model.fit("weighted", weights="sqrt")
    np.testing.assert_array_equal(named.params, stated.params)
    (caution,) = named.cautions
    assert says(caution, stationarity.OWN_WEIGHTS, weights="sqrt importance")


# A literal version


def literal(
    log: AdaptiveLog, x: FloatArray, rows: list[FloatArray], outcome: FloatArray, own: int
) -> tuple[FloatArray, FloatArray]:
    """Coefficients and covariance for columns whose last `own` involve arms and are 0 for the first arm."""
    arrays, size = log.arrays, x.shape[1]
    y, action, every = arrays.reward, arrays.action, arrays.propensities
    assert every is not None
    rest, arm = np.arange(size - own), np.arange(size - own, size)
    left, right = np.zeros((own, own)), np.zeros(own)
    parts: list[list[tuple[float, FloatArray, float]]] = []
    for t in range(len(y)):
        scores = [
            outcome[t, k] + (action[t] == k) * (y[t] - outcome[t, k]) / every[t, k] for k in range(len(rows))
        ]
        parts.append([])
        for k in range(1, len(rows)):
            h = (1.0 / every[t, k] + 1.0 / every[t, 0]) ** -0.5 * (t > 0)
            d = rows[k][t, arm] - rows[0][t, arm]
            left += h * np.outer(d, d)
            right += h * d * (scores[k] - scores[0])
            parts[-1].append((h, d, scores[k] - scores[0]))
    effect = np.linalg.solve(left, right)
    change = np.array(
        [np.linalg.solve(left, sum(h * d * (s - d @ effect) for h, d, s in round_)) for round_ in parts]
    )
    weight = (1.0 / every).sum(axis=1) ** -0.5 / every[np.arange(len(y)), action]
    z = y - x[:, arm] @ effect
    gram = x[:, rest].T @ (weight[:, None] * x[:, rest])
    level = np.linalg.solve(gram, x[:, rest].T @ (weight * z))
    leverage = weight * np.einsum("ti,ij,tj->t", x[:, rest], np.linalg.inv(gram), x[:, rest])
    residual = (z - x[:, rest] @ level) / (1.0 - leverage)
    own_part = np.linalg.solve(gram, x[:, rest].T * (weight * residual)).T
    carried = np.linalg.solve(gram, x[:, rest].T @ (weight[:, None] * x[:, arm]))
    influence = np.column_stack([own_part - change @ carried.T, change])
    return np.append(level, effect), influence.T @ influence


@pytest.mark.parametrize("n_arms", [2, 4])
def test_coefficients_are_the_literal_ones(n_arms: int) -> None:
    log = adaptive_log(250, n_arms=n_arms, drift=1.0)
    # Of the form (1, x, arms, arms times x), as formulaic has it for C(action) * x with x first.
    model = AdaptiveOLS.from_formula("reward ~ x + C(action) + C(action):x", log)
    order = [0, model.data.names.index("x")]
    order += [j for j in range(model.data.size) if j not in order]
    assert model.data.rows_of is not None
    rows = [model.data.rows_of(k)[:, order] for k in range(n_arms)]
    fitted = running_regression(model.data.x, model.data.y)
    outcome = np.column_stack([fitted.predict(model.data.rows_of(k)) for k in range(n_arms)])
    estimate, covariance = literal(log, model.data.x[:, order], rows, outcome, model.data.size - 2)
    result = model.fit("weighted")
    np.testing.assert_allclose(result.params.to_numpy()[order], estimate, rtol=1e-9)
    np.testing.assert_allclose(result.bse.to_numpy()[order], np.sqrt(np.diag(covariance)), rtol=1e-9)
    assert result.covariance is not None
    np.testing.assert_allclose(result.covariance[np.ix_(order, order)], covariance, rtol=1e-6, atol=1e-12)


def test_predictions_are_the_literal_ridge_of_the_rounds_before_their_block() -> None:
    rng = np.random.default_rng(0)
    x = np.column_stack([np.ones(90), rng.normal(5.0, 2.0, 90), np.arange(90) >= 60])
    y = x @ [1.0, 0.3, 2.0] + rng.normal(size=90)
    fitted, other = running_regression(x, y), rng.normal(4.0, 1.0, (90, 3))
    starts = np.flatnonzero(np.diff(fitted.block, prepend=-2))
    assert fitted.start == 1
    predicted = fitted.predict(other)
    for t in (5, 37, 61, 89):
        stop = int(starts[starts <= t][-1])
        past, rewards = x[:stop], y[:stop]
        varies = past.std(axis=0) > 0.0
        scale = np.where(varies, past.std(axis=0), 1.0)
        z = (past - past.mean(axis=0)) / scale
        slope = np.linalg.solve(z.T @ z + np.eye(3), z.T @ rewards) / scale * varies
        value = rewards.mean() + (other[t] - past.mean(axis=0)) @ slope
        assert predicted[t] == pytest.approx(np.clip(value, rewards.min(), rewards.max()), rel=1e-9)


def test_rewards_that_are_not_known_yet_move_no_prediction() -> None:
    rng = np.random.default_rng(1)
    x, y = np.column_stack([np.ones(80), rng.normal(size=80)]), rng.normal(size=80)
    known = np.minimum(np.arange(80) + 1 + rng.integers(0, 30, 80), 80)
    first = running_regression(x, y, known).predict(x)
    for t in (20, 50, 79):
        changed = np.where(known > t, y + 100.0, y)
        np.testing.assert_allclose(running_regression(x, changed, known).predict(x)[: t + 1], first[: t + 1])
    assert not np.allclose(running_regression(x, y + np.arange(80), known).predict(x), first)


# What it does not depend on


def test_codings_and_references_do_not_matter() -> None:
    log = adaptive_log(n_arms=3)
    plain = AdaptiveOLS.from_formula("reward ~ C(action) * x", log).fit("weighted")
    own = AdaptiveOLS.from_formula("reward ~ 0 + C(action) + C(action):x", log).fit("weighted")
    # Predictions by ridge depend on the coding a little, and so do the estimates.
    assert own.t_test(difference("0 +", "b")).effect[0] == pytest.approx(
        plain.params["C(action)[T.b]"], abs=0.02
    )
    assert own.bse["C(action)[a]"] == pytest.approx(plain.bse["Intercept"], rel=0.05)
    data = AdaptiveOLS.from_formula("reward ~ C(action, contr.treatment('c')) + x", log).data
    assert data.rows_of is not None
    arms = arm_columns(data.rows_of, np.arange(3), data.x, data.action)
    assert arms is not None
    assert arms.reference == 2


def test_a_level_that_all_share_moves_the_other_coefficients_alone() -> None:
    log = adaptive_log(n_arms=3)
    model = AdaptiveOLS.from_formula("reward ~ C(action) + x", log)
    base, moved = model.fit("weighted"), None
    model.data = dataclasses.replace(model.data, y=model.data.y + 1e3)
    moved = model.fit("weighted")
    np.testing.assert_allclose(moved.params.iloc[1:], base.params.iloc[1:], rtol=1e-9)
    np.testing.assert_allclose(moved.bse, base.bse, rtol=1e-9)
    assert moved.params.iloc[0] == pytest.approx(base.params.iloc[0] + 1e3, rel=1e-12)


def test_columns_that_look_at_other_rounds_arms_are_weighted_without_a_projection() -> None:
    log = adaptive_log()
    model = AdaptiveOLS.from_formula("reward ~ C(action) + I(x - np.mean(x * (action == 'b')))", log)
    assert model.data.rows_of is not None
    assert arm_columns(model.data.rows_of, np.arange(2), model.data.x, model.data.action) is None
    result = model.fit("weighted")
    assert not says(result.notes, weighted_regression.PROJECTED)
    action, every = log.arrays.action, log.arrays.propensities
    assert every is not None
    weight = (1.0 / every).sum(axis=1) ** -0.5 / every[np.arange(400), action]
    root = np.sqrt(weight)[:, None]
    expected = np.linalg.lstsq(root * model.data.x, root[:, 0] * model.data.y, rcond=None)[0]
    np.testing.assert_allclose(result.params, expected, rtol=1e-9)


def test_one_arm_s_regression_has_its_own_weights() -> None:
    log = adaptive_log()
    result = AdaptiveOLS(log, ["x"], arm="b").fit("weighted")
    old = AdaptiveOLS(log, ["x"], arm="b").fit("weighted", weights="sqrt")
    np.testing.assert_allclose(result.params, old.params, rtol=1e-12)
    np.testing.assert_allclose(result.bse, old.bse, rtol=1e-12)
    assert old.cautions == ()


# Drift


def hourly_log(rng: np.random.Generator, n: int = 480) -> AdaptiveLog:
    """Shares and level follow the hour, and nothing adapts; the arms are equal."""
    wave = np.sin(2.0 * np.pi * np.arange(n) / 24.0)
    b = 0.5 + 0.35 * wave
    action, x = (rng.random(n) < b).astype(np.int64), rng.normal(size=n)
    every = np.column_stack([1.0 - b, b])
    arrays = LogArrays(
        action,
        wave + 0.5 * x + rng.normal(size=n),
        propensity=every[np.arange(n), action],
        propensities=every,
        context={"x": x},
    )
    return AdaptiveLog.from_arrays(arrays, arms=("a", "b"), context_free=True, propensity_status="exact")


@pytest.mark.slow
def test_arms_that_share_a_drift_are_not_told_apart() -> None:
    rng, runs = np.random.default_rng(2026), 200
    hits = {"combined": 0, "uniform": 0, "sqrt": 0}
    for _ in range(runs):
        model = AdaptiveOLS.from_formula("reward ~ C(action) + x", hourly_log(rng))
        for weights in hits:
            low, high = model.fit("weighted", weights=weights).conf_int().loc["C(action)[T.b]"]
            hits[weights] += bool(low <= 0.0 <= high)
    # .95 with a false alarm below 1e-4: 3.72 binomial errors
    least = runs * (0.95 - 3.72 * (0.95 * 0.05 / runs) ** 0.5)
    assert hits["combined"] >= least
    assert hits["uniform"] >= least
    assert hits["sqrt"] < 0.3 * runs


# The order of the adjustments


def survey() -> pd.DataFrame:
    """Waves of Thompson sampling by area, four treatments, 0/1 outcomes; the smallest propensity is .042."""
    rng = np.random.default_rng(11)
    arms, rows = ("none", "sms", "call", "visit"), []
    won, seen, share = np.zeros((2, 4)), np.zeros((2, 4)), np.full((2, 4), 0.25)
    effect = np.array([[0.0, 0.05, 0.08, 0.05], [0.0, 0.02, 0.05, 0.18]])
    for wave in range(8):
        new = []
        for _ in range(150):
            area, age, interviewer = rng.integers(2), int(rng.integers(18, 70)), int(rng.integers(40))
            arm = rng.choice(4, p=share[area])
            mean = 0.25 + effect[area][arm] + 0.003 * (age - 44) + 0.08 * np.sin(interviewer * 1.7)
            outcome = float(rng.random() < mean)
            new.append((area, arm, outcome))
            row = {"wave": wave, "area": ("urban", "rural")[area], "age": age, "educ": float(rng.normal())}
            row |= {"treat": arms[arm], "interested": outcome}
            rows.append(row | {f"p_{arms[k]}": share[area][k] for k in range(4)})
        for area, arm, outcome in new:
            seen[area, arm] += 1
            won[area, arm] += outcome
        draws = rng.beta(1 + won[..., None], 1 + (seen - won)[..., None], size=(2, 4, 2000))
        best = np.stack([np.bincount(one.argmax(0), minlength=4) / 2000 for one in draws])
        best = best * (1 - best)
        share = 0.1 * 0.25 + 0.9 * best / best.sum(1, keepdims=True)
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    "formula",
    ["reward ~ C(action) * area + age + educ", "reward ~ C(action) * area + scale(age) + scale(educ)"],
)
def test_small_propensities_leave_weighted_regression_the_default_and_name_the_rule(
    formula: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = ai.AdaptiveLog(
        survey(),
        action="treat",
        reward="interested",
        propensities={arm: f"p_{arm}" for arm in ("none", "sms", "call", "visit")},
        batch="wave",
        context=["area", "age", "educ"],
        reward_range=(0, 1),
    )
    model = AdaptiveOLS.from_formula(formula, log)
    result = model.fit()
    assert result.adjustment == "weighted"
    reason = first(WEIGHTED.reasons, WEIGHTED.facts(model.data, profile_of(log), None))
    assert says(reason, weighted_regression.SMALL_BUT_ENOUGH, floor=0.05)
    assert "0.042" in reason
    assert says(result.notes, regressions.CHOSEN, name="weighted", reason=reason)
    assert result.cautions == ()  # every arm is worth enough rewards
    assert result.bse["C(action)[T.visit]"] < 0.12
    monkeypatch.setattr("adaptinf.inference.regression.facts.weighted_regression_facts.FEW_EFFECTIVE", 1e6)
    assert says(model.fit("weighted").cautions, weighted_regression.BELOW_FLOOR, floor=0.05)


def test_batches_come_before_w_decorrelation(monkeypatch: pytest.MonkeyPatch) -> None:
    log = without(adaptive_log(), "propensity", "propensities")
    model = AdaptiveOLS.from_formula("reward ~ C(action) + x", log)
    result = model.fit()
    assert result.adjustment == "batched"
    assert result.bse.iloc[1] < 0.6 * model.fit("w-decorrelation").bse.iloc[1]
    assert result.cautions == ()
    settled = model.fit("w-decorrelation")
    assert settled.cautions == ()
    assert says(settled.notes, regressions.NO_TREND)
    monkeypatch.setattr(
        "adaptinf.inference.regression.facts.residual_trends.LEAST_ROUNDS", 1_000
    )  # more than it has
    (caution,) = model.fit("w-decorrelation").cautions
    assert says(caution, regressions.MOVES)
    assert model.fit("w-decorrelation", stationary=True).cautions == ()


def test_what_passes_weighted_regression_over_is_told() -> None:
    log = adaptive_log(size=400)
    tiny = np.array(log.arrays.propensities)
    chosen = log.arrays.action
    tiny[3] = np.where(np.arange(2) == chosen[3], 1e-3, 1.0 - 1e-3)
    arrays = LogArrays(
        chosen,
        log.arrays.reward,
        propensity=tiny[np.arange(400), chosen],
        propensities=tiny,
        context=dict(log.arrays.context),
    )
    small = AdaptiveLog.from_arrays(arrays, arms=("a", "b"), context_free=True, propensity_status="exact")
    model = AdaptiveOLS.from_formula("reward ~ C(action) + x", small)
    result = model.fit()
    assert result.adjustment == "w-decorrelation"
    passed = WeightedFacts(model.data, profile_of(small)).passed_over
    assert says(passed, weighted_regression.TOO_SMALL, floor=0.05, least=0.001)
    assert any(passed in note for note in result.notes)
    # Where w-decorrelation would leave the bias in, weighted regression is the default after all.
    rough = AdaptiveOLS.from_formula("reward ~ C(action) + I(40 * x + 60)", small).fit()
    assert rough.adjustment == "weighted"
    assert any(regressions.WEIGHTED_LEFT(reason=passed) in note for note in rough.notes)


def test_a_regression_without_rounds_of_weight_says_why() -> None:
    x = np.ones((3, 1))
    found = shared_regression(
        x,
        np.array([1.0, 2.0, 4.0]),
        np.zeros(3, dtype=np.int64),
        np.ones(3),
        np.ones(3),
        None,
        lambda control, treatment: np.ones(3),
        np.zeros((3, 1)),
        0,
        np.zeros(1, dtype=np.int64),
    )
    assert found.estimate[0] == pytest.approx(7.0 / 3.0)
    assert found.freedom[0] == pytest.approx(2.0)


def test_an_arm_without_rewards_of_weight_has_no_error() -> None:
    log = adaptive_log()
    action = np.zeros(400, dtype=np.int64)
    action[0] = 1
    fair = np.full((400, 2), 0.5)
    arrays = LogArrays(
        action, log.arrays.reward, propensity=fair[:, 0], propensities=fair, context=dict(log.arrays.context)
    )
    once = AdaptiveLog.from_arrays(arrays, arms=("a", "b"), propensity_status="exact")
    result = AdaptiveOLS.from_formula("reward ~ C(action) + x", once).fit("weighted")
    assert result.bse.isna().tolist() == [False, True, False]
    assert says(result.cautions, propensities.FEW_EFFECTIVE, term="b", worth=1.0)
    assert says(result.notes, weighted_regression.FEW_WITH_WEIGHT)
