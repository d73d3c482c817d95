"""Comparisons of the effects of groups: interactions, and tests of no heterogeneity."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from claims_said import says
from scipy import stats
from statsmodels.stats.oneway import anova_oneway

from adaptinf.claims import propensities
from adaptinf.claims.effects import by_group as claims
from adaptinf.claims.effects import rounds_and_weights as effects
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.distributions.tails import log_f_tail
from adaptinf.inference.effects.cate import CATE
from adaptinf.inference.effects.comparisons import equal_effects
from adaptinf.inference.released.effects import effect_from_mean
from adaptinf.inference.released.group_effects import ReleasedDifferenceReference, log_common_pvalue
from adaptinf.log import AdaptiveLog, LogArrays

SHARES = np.array([0.5, 0.3, 0.7])


def trial(seed=0, rounds=600, effects=(1.0, 2.0, 3.0), arms=("old", "new")):
    """Arms by coins of known bias in three groups; rewards whose spread differs by group and arm."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, rounds)
    action = (rng.random(rounds) < SHARES[group]).astype(np.int64)
    reward = rng.normal(0.0, 1.0 + group + action) + np.array(effects)[group] * action
    propensities = np.column_stack([1 - SHARES[group], SHARES[group]])
    arrays = LogArrays(
        action,
        reward,
        propensity=propensities[np.arange(rounds), action],
        propensities=propensities,
        context={"g": group},
    )
    return AdaptiveLog.from_arrays(arrays, arms=arms), group, action, reward


def cells(group, action, reward, g):
    return reward[(group == g) & (action == 1)], reward[(group == g) & (action == 0)]


def literal_interaction(group, action, reward, first, second):
    """Difference of differences, its error and Satterthwaite degrees of freedom, from four samples."""
    parts = [*cells(group, action, reward, first), *cells(group, action, reward, second)]
    signs = (1, -1, -1, 1)
    variances = [x.var(ddof=1) / len(x) for x in parts]
    # Welch's degrees of freedom of either effect, and then of their difference, are those of the four.
    df = sum(variances) ** 2 / sum(v**2 / (len(x) - 1) for v, x in zip(variances, parts, strict=True))
    return sum(s * x.mean() for s, x in zip(signs, parts, strict=True)), math.sqrt(sum(variances)), df


def test_interactions_are_differences_of_differences():
    log, *data = trial()
    result = CATE(log, by="g").fit().interactions()
    assert list(result.terms) == ["g=1 - g=0", "g=2 - g=0", "g=2 - g=1"]
    for row, (first, second) in enumerate([(1, 0), (2, 0), (2, 1)]):
        estimate, error, df = literal_interaction(*data, first, second)
        assert result.params.iloc[row] == pytest.approx(estimate, rel=1e-10)
        assert result.bse.iloc[row] == pytest.approx(error, rel=1e-10)
        half = stats.t.isf(0.025, df) * error
        np.testing.assert_allclose(result.conf_int().iloc[row], [estimate - half, estimate + half], rtol=1e-8)
        assert result.pvalues.iloc[row] == pytest.approx(2 * stats.t.sf(abs(estimate / error), df), rel=1e-8)
    assert result.estimands[2].kind == "interaction"
    assert result.estimands[2].group == (2, 1)
    assert result.reference.name in " ".join(result.explain().texts)


def test_interactions_share_their_groups_variance():
    result = CATE(trial()[0], by="g").fit()
    pairs = result.interactions()
    variance = result.bse.to_numpy() ** 2
    np.testing.assert_allclose(np.diag(pairs.cov_params()), pairs.bse**2, rtol=1e-12)
    assert pairs.cov_params().loc["g=1 - g=0", "g=2 - g=0"] == pytest.approx(variance[0])
    assert pairs.cov_params().loc["g=1 - g=0", "g=2 - g=1"] == pytest.approx(-variance[1])
    joint = pairs.wald_test("`g=1 - g=0` = 0, `g=2 - g=0` = 0")
    assert joint.statistic == pytest.approx(result.heterogeneity("chi2").statistic, rel=1e-9)
    assert joint.df_denom == pytest.approx(pairs.reference.df[:2].min())
    assert joint.pvalue == pytest.approx(stats.f.sf(joint.statistic / 2, 2, joint.df_denom), rel=1e-9)


@pytest.mark.parametrize("reference", ["y", "site=y"])
def test_a_reference_group_is_subtracted_from_the_others(reference):
    log, group, *_ = trial()
    arrays = log.arrays
    named = LogArrays(
        arrays.action,
        arrays.reward,
        propensities=arrays.propensities,
        propensity=arrays.propensity,
        context={"site": np.array(["x", "y", "z"], dtype=object)[group]},
    )
    result = CATE(AdaptiveLog.from_arrays(named, arms=log.arms), by="site").fit()
    against = result.interactions(reference)
    assert list(against.terms) == ["site=x - site=y", "site=z - site=y"]
    np.testing.assert_allclose(against.params, (result.params - result.params["site=y"]).drop("site=y"))


def test_wald_tests_of_groups_use_their_diagonal_covariance():
    result = CATE(trial()[0], by="g").fit("aipw")
    np.testing.assert_allclose(result.cov_params(), np.diag(result.bse**2))
    test = result.wald_test("`g=0` = `g=1`, `g=1` = `g=2`")
    assert test.df == 2
    assert test.statistic == pytest.approx(result.heterogeneity("chi2").statistic, rel=1e-9)


def test_no_heterogeneity_of_two_groups_is_the_test_of_their_interaction():
    _, group, action, reward = trial()
    two = np.flatnonzero(group < 2)
    arrays = LogArrays(
        action[two], reward[two], randomised=np.full(len(two), True), context={"g": group[two]}
    )
    result = CATE(AdaptiveLog.from_arrays(arrays, arms=("old", "new")), by="g").fit()
    test = result.heterogeneity()
    assert (test.test, test.df) == ("F", 1)
    assert test.pvalue == pytest.approx(result.interactions().pvalues.iloc[0], rel=1e-9)


def test_equal_effects_is_welchs_analysis_of_variance():
    rng = np.random.default_rng(3)
    samples = [rng.normal(0.3 * i, 1 + i, 8 + 3 * i) for i in range(4)]
    other = anova_oneway(samples, use_var="unequal", welch_correction=True)
    statistic, mean_square, df = equal_effects(
        np.array([x.mean() for x in samples]),
        np.array([x.var(ddof=1) / len(x) for x in samples]),
        np.array([len(x) - 1.0 for x in samples]),
    )
    assert statistic == pytest.approx(other.statistic, rel=1e-10)
    assert df == pytest.approx(other.df_denom, rel=1e-10)
    assert math.exp(log_f_tail(statistic, 3, df)) == pytest.approx(other.pvalue, rel=1e-9)
    assert mean_square > statistic


def test_log_tail_of_f_goes_on_where_the_tail_underflows():
    for statistic, df, denominator in [(3.0, 2, 7.5), (100.0, 4, 30.0)]:
        assert log_f_tail(statistic, df, denominator) == pytest.approx(
            stats.f.logsf(statistic, df, denominator), rel=1e-9
        )
    # With 2 degrees of freedom above, the tail is (1 + 2 f / d)^(-d/2) exactly.
    assert log_f_tail(1e6, 2, 400.0) == pytest.approx(-200.0 * math.log1p(2e6 / 400.0), rel=1e-10)
    assert log_f_tail(2.0, 3, math.inf) == pytest.approx(stats.chi2.logsf(6.0, 3), rel=1e-10)


@pytest.mark.slow
def test_no_heterogeneity_holds_its_level_and_finds_effects_that_differ():
    rejected, rejected_chi2, found = [], [], []
    for seed in range(800):
        result = CATE(trial(seed, rounds=90, effects=(1, 1, 1))[0], by="g").fit()
        rejected.append(result.heterogeneity().pvalue <= 0.05)
        rejected_chi2.append(result.heterogeneity("chi2").pvalue <= 0.05)
        found.append(CATE(trial(seed, rounds=900)[0], by="g").fit().heterogeneity().pvalue <= 0.05)
    error = 4 * math.sqrt(0.05 * 0.95 / 800)
    assert abs(np.mean(rejected) - 0.05) < error
    assert np.mean(rejected_chi2) >= np.mean(rejected)
    assert np.mean(found) > 0.95


def binary_trial(counts, successes):
    frame = pd.DataFrame(
        [
            {"g": g, "arm": "ab"[arm], "y": float(i < successes[g][arm]), "coin": True}
            for (g, arm), n in np.ndenumerate(counts)
            for i in range(n)
        ]
    )
    return AdaptiveLog(
        frame, action="arm", reward="y", context=["g"], arms=["a", "b"], columns={"randomised": "coin"}
    )


def test_adjusted_groups_are_compared_around_their_adjusted_middles():
    result = CATE(binary_trial(np.full((2, 2), 40), [[20, 25], [3, 30]]), by="g").fit()
    pairs = result.interactions()
    rates = [(31 / 42, 4 / 42), (25 / 40, 20 / 40)]
    middle = (rates[0][0] - rates[0][1]) - (rates[1][0] - rates[1][1])
    variance = sum(p * (1 - p) / 42 for p in rates[0]) + sum(p * (1 - p) / 39 for p in rates[1])
    assert pairs.params.iloc[0] == pytest.approx(27 / 40 - 5 / 40)
    assert pairs.bse.iloc[0] == pytest.approx(math.sqrt(variance), rel=1e-10)
    assert pairs.conf_int().mean(axis=1).iloc[0] == pytest.approx(middle, rel=1e-10)
    known = CATE(binary_trial(np.full((2, 2), 40), [[2, 5], [3, 30]]), by="g").fit()
    assert known.heterogeneity().test == "chi2"
    assert claims.ADJUSTED_ENTER() in str(known.heterogeneity())


def test_groups_without_a_standard_error_are_left_out_with_the_reason():
    counts = np.array([[30, 30], [12, 1], [30, 30]])
    scaled = CATE(scaled_log(counts), by="g").fit()
    test = scaled.heterogeneity()
    assert (test.df, test.groups) == (1, ("g=0", "g=2"))
    assert says(test.notes, claims.GROUPS_LEFT_OUT, terms="g=1")
    assert claims.GROUPS_LEFT_OUT(terms="g=1") in str(test)
    pairs = scaled.interactions()
    np.testing.assert_array_equal(np.isnan(pairs.pvalues), [True, False, True])
    assert says(pairs.notes, claims.NO_TEST, terms="g=1 - g=0, g=2 - g=1")
    assert scaled.wald_test("`g=0` = `g=2`").pvalue == pytest.approx(scaled.heterogeneity("chi2").pvalue)


def scaled_log(counts):
    rng = np.random.default_rng(0)
    group, action = (
        np.array([key[axis] for key, n in np.ndenumerate(counts) for _ in range(n)]) for axis in (0, 1)
    )
    arrays = LogArrays(
        action, rng.normal(0, 1, len(group)), randomised=np.full(len(group), True), context={"g": group}
    )
    return AdaptiveLog.from_arrays(arrays, arms=("a", "b"))


def test_what_cannot_be_compared_is_refused():
    result = CATE(trial()[0], by="g").fit()
    with pytest.raises(ParameterError, match=r"no group 7; available: 0, 1, 2"):
        result.interactions(7)
    with pytest.raises(ParameterError, match="test must be one of 'auto', 'chi2', 'F'"):
        result.heterogeneity("t")
    lone = CATE(scaled_log(np.array([[20, 20]])), by="g").fit()
    with pytest.raises(ParameterError, match="there is only one group"):
        lone.interactions()
    with pytest.raises(InvalidForLog) as error:
        lone.heterogeneity()
    assert says(error.value.reason, claims.TOO_FEW_GROUPS, n=1, all=1)


# --- private releases


def released_effect(center=(0.5, 0.1, 0.4), size=(400, 300, 500)):
    return effect_from_mean(list(center), list(size), scale=[0.02, 0.03, 0.01])


@pytest.mark.slow
def test_released_differences_combine_two_intervals():
    effect = released_effect()
    reference = ReleasedDifferenceReference(effect, np.array([1, 2]), np.array([0, 0]))
    low, high = effect.interval(math.log(0.025))
    np.testing.assert_allclose(
        reference.interval(math.log(0.05)),
        [[low[1] - high[0], high[1] - low[0]], [low[2] - high[0], high[2] - low[0]]],
    )
    log_p = reference.log_pvalues(0.0)
    for row in range(2):
        # The interval at the p-value just touches 0.
        touching = reference.interval(float(log_p[row]))[row]
        assert np.min(np.abs(touching)) < 1e-9
    assert np.isneginf(reference.log_pvalues(2.5)).all()


@pytest.mark.slow
def test_released_effects_without_a_common_value_are_told_apart():
    log_p = log_common_pvalue(released_effect(), np.arange(3))
    low, high = released_effect().interval(log_p - math.log(3))
    assert log_p < math.log(0.05)
    assert np.max(low) == pytest.approx(np.min(high), abs=1e-9)
    assert log_common_pvalue(released_effect(center=(0.3, 0.3, 0.3)), np.arange(3)) == 0.0


@pytest.mark.slow
def test_released_tests_hold_their_level():
    rng = np.random.default_rng(9)
    rounds, epsilon, replications = 200, 1.0, 400
    scale = 2 / (epsilon * rounds)
    wrong = []
    for _ in range(replications):
        rates = rng.binomial(rounds // 2, [[0.4, 0.6]] * 3) / (rounds // 2)
        released = rates[:, 1] - rates[:, 0] + rng.laplace(0, scale, 3)
        effect = effect_from_mean(released, np.full(3, rounds), scale=np.full(3, scale))
        low, high = effect.interval(math.log(0.05 / 3))
        wrong.append(np.max(low) > np.min(high))
    assert np.mean(wrong) < 0.05 + 4 * math.sqrt(0.05 * 0.95 / replications)


def test_joint_tests_of_releases_go_by_intervals():
    from adaptinf.designs.contextual.private_conse import DPConSE
    from adaptinf.simulation.environments import FiniteContext

    environment = FiniteContext([0.5, 0.3, 0.2], [[0.4, 0.7], [0.6, 0.3], [0.3, 0.65]])
    log = DPConSE(epsilon=1.0).run(environment, horizon=20_000, rng=1)
    result = CATE(log, by="feature").fit("released")
    test = result.heterogeneity()
    assert test.test == "intervals"
    assert test.pvalue < 0.01
    assert result.interactions(0).private
    assert (result.interactions(0).conf_int().loc["feature=1 - feature=0"] < 0).all()
    for call in (lambda: result.wald_test("`feature=0` = 0"), lambda: result.heterogeneity("chi2")):
        with pytest.raises(InvalidForLog) as error:
            call()
        assert says(error.value.reason, claims.NOT_NORMAL)


# --- weights where other contexts move the propensities


def moved_by_another_context(rounds=4_000, often=0.9, seldom=0.1):
    """No effect anywhere; a second context moves the rewards and the propensities."""
    rng = np.random.default_rng(4)
    group, other = rng.integers(0, 2, rounds), rng.integers(0, 2, rounds)
    share = np.where(other == 1, often, seldom)
    action = (rng.random(rounds) < share).astype(np.int64)
    propensities = np.column_stack([1 - share, share])
    arrays = LogArrays(
        action,
        10.0 * other + rng.normal(0, 1, rounds),
        propensity=propensities[np.arange(rounds), action],
        propensities=propensities,
        context={"g": group, "z": other},
    )
    return AdaptiveLog.from_arrays(arrays, arms=("a", "b"))


def test_default_weights_do_not_mix_contexts_that_move_the_propensities():
    # With chances of .9 and .1 the weight of both arms stays the same, whatever z is.
    assert CATE(moved_by_another_context(), by="g").fit("aipw").weights == "combined"
    log = moved_by_another_context(often=0.8)
    result = CATE(log, by="g").fit("aipw")
    assert result.weights == "uniform"
    assert (np.abs(result.tvalues) < 4).all()
    assert says(result.notes, propensities.UNIFORM_FOR_CONTEXTS, contexts="z")
    assert says(result.notes, propensities.UNSETTLED)
    assert says(result.notes, propensities.RIGHT)
    asked = CATE(log, by="g").fit("aipw", weights="sqrt")
    # By the round's own, sqrt(.8) against sqrt(.1): one mean would lean to z = 1, the other to z = 0.
    assert (np.abs(asked.tvalues) < 4).all()
    assert says(asked.notes, effects.LAGGED, by=propensities.ROUND_BEFORE())
    assert not says(asked.notes, propensities.UNSETTLED)
    both = CATE(log, by=["g", "z"])
    assert both.fit("aipw").weights == "combined"
    assert says(both.fit("aipw").notes, propensities.RIGHT)
    assert says(both.fit("aipw", weights="uniform").notes, claims.UNIFORM)
