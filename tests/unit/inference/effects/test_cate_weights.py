"""Weights of group effects: one for both arms, known before the context; the t law; where rewards start."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from claims_said import says
from scipy import stats

from adaptinf.claims import Claim, propensities, stationarity
from adaptinf.claims.effects import by_covariates as projections
from adaptinf.claims.effects import by_group as claims
from adaptinf.claims.effects import rounds_and_weights as effects
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.effects.cate import CATE
from adaptinf.inference.effects.effect_weights import Past, combined_weights, contrast_weights
from adaptinf.inference.effects.group_question import arm_propensities
from adaptinf.inference.effects.group_scores import group_aipw
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.typing import FloatArray, IntArray

ROUNDS = 600


def arrays(seed: int = 0, batches: int | None = 6, rounds: int = ROUNDS) -> LogArrays:
    """Two groups, another context that moves propensities within them, and the batches of the design."""
    rng = np.random.default_rng(seed)
    group, other = rng.integers(0, 2, rounds), rng.integers(0, 3, rounds)
    step = np.arange(rounds) * (batches or rounds) // rounds
    share = np.clip(0.5 + 0.3 * np.sin(step + group) * (other - 1), 0.1, 0.9)
    action = (rng.random(rounds) < share).astype(np.int64)
    both = np.column_stack([1 - share, share])
    return LogArrays(
        action,
        rng.normal(0.3 * action * (1 + other), 1.0),
        propensity=both[np.arange(rounds), action],
        propensities=both,
        batch=step if batches else None,
        context={"g": group, "x": other},
    )


def past(cell: IntArray, batch: IntArray | None, *, free: bool = False) -> Past:
    return Past(cell, None, batch, free)


def log_of(given: LogArrays, **options: Any) -> AdaptiveLog:
    return AdaptiveLog.from_arrays(given, arms=("a", "b"), **options)


def test_weights_of_the_previous_batch_in_its_literal_form() -> None:
    given = arrays()
    assert given.propensities is not None
    assert given.batch is not None
    group = given.context["g"]
    found = combined_weights(given.propensities, past(group, given.batch), movers=True)
    assert found is not None
    weights, fixed = found
    assert fixed == "batch"
    for t in range(ROUNDS):
        same = (group == group[t]) & (given.batch == given.batch[t] - 1)
        inverse = [1 / one + 1 / other for one, other in given.propensities[same]]
        expected = 1.0 if given.batch[t] == 0 else math.sqrt(len(inverse) / sum(inverse))
        assert weights[t] == pytest.approx(expected, rel=1e-12)


def test_a_group_that_skips_batches_uses_the_last_one_it_had() -> None:
    both = np.array([[0.5, 0.5], [0.2, 0.8], [0.1, 0.9], [0.3, 0.7]])
    cell = np.array([1, 0, 0, 1])
    for batch in (np.array([0, 1, 2, 3]), np.array([0, 1, 2, 2]), None):
        found = combined_weights(both, past(cell, batch), movers=False)
        assert found is not None
        assert found[1] == ("round before" if batch is None else "batch")
        np.testing.assert_allclose(found[0], [1.0, 1.0, 0.4, 0.5], rtol=1e-12)


def test_own_propensities_serve_where_they_are_known_before_the_context() -> None:
    rng = np.random.default_rng(1)
    share = rng.uniform(0.1, 0.9, 40)
    cell, batch = np.zeros(40, dtype=np.int64), np.arange(40) // 8
    by_batch = np.repeat(share[::8], 8)
    for shares, steps, free, fixed in (
        (share, None, False, "round before"),
        (share, None, True, "round"),
        (by_batch, batch, False, "round"),
        (by_batch, None, False, "round before"),
        (share, batch, False, "batch"),
        (share, batch, True, "round"),
        (share, np.arange(40), False, "batch"),
        (np.full(40, 0.3), None, False, "round"),
    ):
        both = np.column_stack([shares, 1 - shares])
        found = combined_weights(both, past(cell, steps, free=free), movers=False)
        assert found is not None
        assert found[1] == fixed
        if fixed == "round":
            np.testing.assert_array_equal(found[0], contrast_weights(both, "combined"))
        if steps is not None:
            again = combined_weights(both, past(cell, steps, free=free), movers=True)
            assert again is not None
            np.testing.assert_array_equal(again[0], found[0])
    assert combined_weights(np.column_stack([share, 1 - share]), past(cell, None), movers=True) is None


@pytest.mark.parametrize(
    ("batches", "options", "by", "kind", "before"),
    [
        (6, {}, "g", "combined", propensities.BATCH_BEFORE),
        (None, {}, "g", "uniform", None),
        (None, {"context_free": True}, "g", "combined", None),
        (None, {}, ["g", "x"], "combined", propensities.ROUND_BEFORE),
        (6, {}, ["g", "x"], "combined", None),
    ],
)
def test_the_default_weights_and_what_is_said_of_them(
    batches: int | None, options: dict[str, Any], by: Any, kind: str, before: Claim | None
) -> None:
    result = CATE(log_of(arrays(batches=batches), **options), by=by).fit("aipw")
    assert result.weights == kind
    notes = result.notes
    assert says(notes, effects.LAGGED) == (before is not None)
    assert before is None or says(notes, effects.LAGGED, by=before())
    assert says(notes, propensities.UNIFORM_FOR_CONTEXTS, contexts="x") == (kind == "uniform")
    assert says(notes, claims.COMBINED) == (kind == "combined")
    assert says(notes, stationarity.AVERAGED_EQUALLY) == (kind == "uniform")
    assert says(notes, stationarity.AVERAGED_BY_WEIGHT) == (kind == "combined")
    assert says(notes, stationarity.PAIR_SHARES_DRIFT)


def test_combined_weights_are_refused_where_none_are_known_in_time() -> None:
    model = CATE(log_of(arrays(batches=None)), by="g")
    with pytest.raises(InvalidForLog) as error:
        model.fit(weights="combined")
    assert says(error.value.reason, claims.UNFIXED_WEIGHTS, contexts="x")
    three = arrays(batches=None)
    alone = LogArrays(three.action, three.reward, propensity=three.propensity, context=three.context)
    log = AdaptiveLog.from_arrays(alone, arms=("a", "b", "c"))
    with pytest.raises(InvalidForLog) as error:
        CATE(log, by="g", treatment="b", control="a").fit(weights="combined")
    assert says(error.value.reason, effects.LACKS_BOTH_PROPENSITIES)


def test_own_weights_are_the_default_of_means_that_do_not_drift() -> None:
    free = log_of(arrays(batches=None), context_free=True)
    result = CATE(free, by="g").fit("aipw", stationary=True)
    assert result.weights == "sqrt"
    assert says(result.notes, claims.NO_DRIFT)
    asked = CATE(free, by="g").fit(weights="sqrt")
    np.testing.assert_array_equal(result.estimate, asked.estimate)
    assert result.cautions == asked.cautions == ()
    drifting = arrays(batches=None)
    moved = drifting.reward + 3.0 * np.arange(len(drifting.reward)) / len(drifting.reward)
    found = CATE(log_of(replace(drifting, reward=moved), context_free=True), by="g").fit(weights="sqrt")
    assert says(found.cautions, stationarity.VALUE_DRIFTS, move="rise")
    assert CATE(free, by="g").fit("aipw", weights="uniform", stationary=True).weights == "uniform"
    assert CATE(log_of(arrays()), by="g").fit("aipw", stationary=True).weights == "combined"
    with pytest.raises(ParameterError, match="stationary must be"):
        CATE(free, by="g").fit(stationary="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["combined", "sqrt", "uniform"])
@pytest.mark.parametrize(("shift", "scale"), [(1e6, 1.0), (-12.0, 1.0), (0.0, 1e9), (0.0, 1e-9)])
def test_effects_do_not_depend_on_where_rewards_start(kind: str, shift: float, scale: float) -> None:
    given = arrays(3)
    moved = LogArrays(
        given.action,
        given.reward * scale + shift,
        propensity=given.propensity,
        propensities=given.propensities,
        batch=given.batch,
        context=given.context,
    )
    plain, other = (CATE(log_of(one), by="g").fit("aipw", weights=kind) for one in (given, moved))
    gap = np.abs(other.estimate / scale - plain.estimate) / plain.std_error
    assert gap.max() < 1e-9
    np.testing.assert_allclose(other.std_error / scale, plain.std_error, rtol=1e-9)
    np.testing.assert_allclose(
        other.conf_int() / scale, plain.conf_int(), atol=1e-9 * float(plain.std_error.min()), rtol=0
    )


def test_few_effective_rewards_are_cautioned() -> None:
    given = arrays(4, rounds=60, batches=None)
    few = CATE(log_of(given), by=["g"]).fit(weights="uniform")
    assert len(few.cautions) == 1
    assert says(few.cautions, effects.FEW_EFFECTIVE, terms="g=0; g=1", enough=20.0)
    assert "Caution   g=0" in str(few)
    assert CATE(log_of(arrays()), by="g").fit("aipw").cautions == ()
    half = np.full((400, 2), 0.5)
    coin = np.random.default_rng(1).integers(0, 2, 400)
    found = group_aipw(np.zeros(400, dtype=np.int64), coin, np.arange(400.0), half[:, 0], 1, half)
    assert found.df[0] == pytest.approx(min(coin[1:].sum(), (1 - coin[1:]).sum()) - 1, rel=1e-12)


def thompson(
    rng: np.random.Generator, runs: int, rounds: int, floor: float, decay: float, drift: float, gap: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Many runs of Thompson sampling with a floor on two arms, beside each other; NumPy alone.

    Returns shape action, reward (R, T), and the second arm's propensity (R, T).
    """
    count, total = np.zeros((runs, 2)), np.zeros((runs, 2))
    action, reward = np.zeros((runs, rounds), dtype=np.int64), np.zeros((runs, rounds))
    share, rows = np.zeros((runs, rounds)), np.arange(runs)
    for t in range(rounds):
        variance = 1.0 / (1.0 + count)
        mean = total * variance
        win = stats.norm.cdf((mean[:, 1] - mean[:, 0]) / np.sqrt(variance.sum(axis=1)))
        least = floor * (t + 1.0) ** -decay
        share[:, t] = np.clip(win, least, 1.0 - least)
        action[:, t] = rng.random(runs) < share[:, t]
        reward[:, t] = rng.normal(size=runs) + drift * t / rounds + gap * action[:, t]
        count[rows, action[:, t]] += 1.0
        total[rows, action[:, t]] += reward[:, t]
    return action, reward, share


@pytest.mark.slow
@pytest.mark.parametrize(
    ("floor", "decay", "drift", "gap", "own"),
    [
        (0.05, 0.0, 0.5, 0.0, (0.15, 1.0)),
        (0.05, 0.0, 0.0, 0.0, (0.0, 0.075)),
        (0.5, 0.7, 0.5, 0.0, (0.15, 1.0)),
    ],
)
def test_common_drift_does_not_disturb_combined_weights(
    floor: float, decay: float, drift: float, gap: float, own: tuple[float, float]
) -> None:
    """Type-I error of two groups of 800 rounds, each with its own bandit, under a drift both arms share."""
    runs, rounds = 600, 800
    rng = np.random.default_rng(11)
    action, reward, share = thompson(rng, 2 * runs, rounds, floor, decay, drift, gap)
    miss: dict[str, list[bool]] = {"combined": [], "sqrt": []}
    group = np.tile([0, 1], rounds)
    for run in range(runs):
        pair = slice(2 * run, 2 * run + 2)
        arm, y, e = (part[pair].T.ravel() for part in (action, reward, share))
        both = np.column_stack([1.0 - e, e])
        chosen = both[np.arange(len(e)), arm]
        combined = np.repeat(contrast_weights(both, "combined")[:, None], 2, axis=1)
        for kind, weights in (("combined", combined), ("sqrt", np.sqrt(both))):
            found = group_aipw(group, arm, y, chosen, 2, both, weights)
            limit = stats.t.isf(0.025, found.df) * found.std_error
            miss[kind] += (np.abs(found.estimate - gap) > limit).tolist()
    error = math.sqrt(0.06 * 0.94 / (2 * runs))
    assert np.mean(miss["combined"]) < (0.06 if decay == 0.0 else 0.07) + 3.7 * error
    assert own[0] <= np.mean(miss["sqrt"]) <= own[1]


@pytest.mark.parametrize("outcome", ["running-mean", "running-ridge"])
@pytest.mark.parametrize(("shift", "scale"), [(1e6, 1.0), (0.0, 1e-9)])
def test_projections_do_not_depend_on_where_rewards_start(outcome: str, shift: float, scale: float) -> None:
    given = arrays(3)
    moved = LogArrays(
        given.action,
        given.reward * scale + shift,
        propensity=given.propensity,
        propensities=given.propensities,
        batch=given.batch,
        context=given.context,
    )
    fits = [CATE.from_formula("~ g + x", log_of(one)).fit(outcome=outcome) for one in (given, moved)]
    plain, other = fits
    assert (np.abs(other.estimate / scale - plain.estimate) / plain.std_error).max() < 1e-9
    np.testing.assert_allclose(other.std_error / scale, plain.std_error, rtol=1e-9)


def test_the_default_weights_of_projections_are_known_before_the_context() -> None:
    given = arrays()
    assert given.propensities is not None
    lagged = CATE.from_formula("~ x", log_of(given)).fit()
    assert lagged.weights == "combined"
    assert says(lagged.notes, projections.BEST_APPROXIMATION)
    assert says(lagged.notes, effects.LAGGED, by=propensities.BATCH_BEFORE())
    cell = np.zeros(ROUNDS, dtype=np.int64)
    found = combined_weights(given.propensities, past(cell, given.batch), movers=True)
    assert found is not None
    np.testing.assert_array_equal(
        CATE.from_formula("~ x", log_of(given)).question.weights("combined", None), found[0]
    )
    alone = arrays(batches=None)
    assert CATE.from_formula("~ x", log_of(alone)).fit().weights == "uniform"
    free = CATE.from_formula("~ x", log_of(alone, context_free=True)).fit()
    assert free.weights == "combined"
    assert says(free.notes, projections.BEST_APPROXIMATION)
    asked = CATE.from_formula("~ x", log_of(alone)).fit(weights="combined")
    assert projections.WEIGHED_CONTEXTS(weights="the weights") in asked.notes[1]


@pytest.mark.slow
def test_weights_of_the_previous_batch_are_unbiased_where_contexts_move_propensities() -> None:
    """A context moves propensities and effects, by what the past has shown; 2 groups, 10 batches, drift."""
    runs, rounds, per = 500, 600, 60
    rng = np.random.default_rng(12)
    x = rng.integers(0, 2, (runs, rounds))
    sums, counts = np.zeros((runs, 2, 2)), np.full((runs, 2, 2), 1e-9)
    action, reward, share = (np.zeros((runs, rounds)) for _ in range(3))
    rows = np.arange(runs)
    for start in range(0, rounds, per):
        block = slice(start, start + per)
        means = sums / counts
        better = means[:, :, 1] > means[:, :, 0]
        e = np.where(start == 0, 0.5, np.where(better, 0.95, 0.5))[rows[:, None], x[:, block]]
        a = (rng.random(e.shape) < e).astype(np.int64)
        drift = np.arange(start, start + per) / rounds
        y = rng.normal(size=e.shape) + drift + a * np.where(x[:, block] == 1, 0.8, -0.4)
        action[:, block], reward[:, block], share[:, block] = a, y, e
        for context in (0, 1):
            for arm in (0, 1):
                mine = (x[:, block] == context) & (a == arm)
                sums[:, context, arm] += (y * mine).sum(axis=1)
                counts[:, context, arm] += mine.sum(axis=1)
    batch, group = np.arange(rounds) // per, np.tile([0, 1], rounds // 2)
    error = {"previous": np.zeros((runs, 2)), "own": np.zeros((runs, 2))}
    miss = np.zeros((runs, 2))
    for run in range(runs):
        arm, e = action[run].astype(np.int64), share[run]
        both = np.column_stack([1 - e, e])
        previous = combined_weights(both, past(group, batch), movers=True)
        assert previous is not None
        for kind, weights in (("previous", previous[0]), ("own", contrast_weights(both, "combined"))):
            pair = np.repeat(weights[:, None], 2, axis=1)
            found = group_aipw(group, arm, reward[run], both[np.arange(rounds), arm], 2, both, pair)
            error[kind][run] = found.estimate - 0.2
            if kind == "previous":
                miss[run] = np.abs(error[kind][run]) > stats.t.isf(0.025, found.df) * found.std_error
    spread = error["previous"].std() / math.sqrt(2 * runs)
    assert abs(error["previous"].mean()) < 4.0 * spread
    assert miss.mean() < 0.06 + 4.0 * math.sqrt(0.06 * 0.94 / (2 * runs))
    assert abs(error["own"].mean()) > 10.0 * spread, error["own"].mean()


def test_the_chosen_propensity_gives_both_where_there_are_two_arms_only() -> None:
    given, pair = replace(arrays(), propensities=None), np.array([0, 1])
    two, three = (profile_of(AdaptiveLog.from_arrays(given, arms=arms)) for arms in ("ab", "abc"))
    np.testing.assert_allclose(arm_propensities(two, pair), arrays().propensities, rtol=1e-12)
    assert arm_propensities(three, pair) is None
    unlogged = AdaptiveLog.from_arrays(replace(given, propensity=None), arms="ab", propensity_status="absent")
    assert arm_propensities(profile_of(unlogged), pair) is None
