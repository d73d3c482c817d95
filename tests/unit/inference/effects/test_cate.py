"""Effects within groups of the context."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from claims_said import says
from scipy import stats

from adaptinf.claims import propensities
from adaptinf.claims.effects import by_group as claims
from adaptinf.claims.effects import rounds_and_weights as effects
from adaptinf.claims.privacy import guarantees, releases
from adaptinf.designs.contextual.conse import ConSE
from adaptinf.designs.contextual.private_conse import DPConSE
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.distributions.sample_shape import rows_of_cells
from adaptinf.inference.effects.cate import CATE
from adaptinf.inference.effects.effect_weights import contrast_weights
from adaptinf.inference.effects.group_question import group_terms
from adaptinf.inference.effects.group_scores import arm_moments, group_aipw, group_codes
from adaptinf.inference.released.effects import released_intervals
from adaptinf.inference.scores.inverse import aipw_scores, indicators, running_means
from adaptinf.inference.scores.means import effective_size, weighted_means
from adaptinf.log import AdaptiveLog, DesignRecord, LogArrays
from adaptinf.log.validation import nested_options
from adaptinf.simulation.environments import FiniteContext

ENVIRONMENT = FiniteContext([0.5, 0.3, 0.2], [[0.4, 0.7], [0.6, 0.3], [0.3, 0.65]])


def simple_frame(seed=0, rounds=600, groups=("x", "y")):
    """A user's file: two arms by a coin of known bias in each group, rewards on a scale of their own."""
    rng = np.random.default_rng(seed)
    site = rng.integers(0, len(groups), rounds)
    bias = np.array([0.5, 0.3, 0.7])[site]
    new = rng.random(rounds) < bias
    return pd.DataFrame(
        {
            "site": np.array(groups, dtype=object)[site],
            "arm": np.where(new, "new", "old"),
            "score": 100.0 + rng.normal(0, 3, rounds) + 2.0 * new * (site + 1),
            "p_new": bias,
            "p_old": 1 - bias,
            "coin": rng.random(rounds) < 0.5,
        }
    )


def simple_log(frame, propensities=True, **columns):
    given = {"propensities": {"new": "p_new", "old": "p_old"}} if propensities else {}
    given |= {"arms": ["old", "new"], "context": ["site", "coin"]} | columns
    return AdaptiveLog(frame, action="arm", reward="score", **nested_options(given))


def welch_by_hand(rows, alpha=0.05):
    treated, control = (rows.loc[rows["arm"] == arm, "score"] for arm in ("new", "old"))
    test = stats.ttest_ind(treated, control, equal_var=False)
    limits = test.confidence_interval(1 - alpha)
    return treated.mean() - control.mean(), test.pvalue, limits.low, limits.high


def assert_welch(result, frame):
    for site, rows in frame.groupby("site"):
        term = f"site={site}"
        estimate, p, low, high = welch_by_hand(rows)
        assert result.params[term] == pytest.approx(estimate, rel=1e-10)
        assert result.pvalues[term] == pytest.approx(p, rel=1e-8)
        np.testing.assert_allclose(result.conf_int().loc[term], [low, high], rtol=1e-8)


# --- difference in means


def test_constant_propensities_make_every_round_usable():
    frame = simple_frame()
    result = CATE(simple_log(frame), by="site").fit()
    assert_welch(result, frame)
    assert result.reference.name == "Welch t"
    assert says(result.notes, effects.ALL_ROUNDS, n=600, where="the log")
    assert says(result.notes, effects.CONSTANT_IN_GROUPS)
    assert result.correction is None


@pytest.mark.parametrize("how", ["column", "mask", "randomised"])
def test_marked_rounds_alone_are_used(how):
    frame = simple_frame()
    frame.loc[~frame["coin"], "score"] = 1e9
    if how == "randomised":
        model = CATE(simple_log(frame, context=["site"], randomised="coin"), by="site")
    else:
        rounds = "coin" if how == "column" else frame["coin"].to_numpy()
        model = CATE(simple_log(frame), by="site", rounds=rounds)
    assert_welch(model.fit(), frame[frame["coin"]])


def test_a_series_of_rounds_must_be_in_the_order_of_the_log():
    frame = simple_frame()
    flag = pd.Series(np.arange(600) >= 100)
    expected = CATE(simple_log(frame), by="site", rounds=flag.to_numpy()).fit()
    np.testing.assert_array_equal(
        CATE(simple_log(frame), by="site", rounds=flag).fit().estimate, expected.estimate
    )
    for wrong in (flag[::-1], flag.set_axis(np.arange(1, 601)), flag.set_axis([f"p{t}" for t in range(600)])):
        with pytest.raises(
            ParameterError, match=r"rounds: its index is not 0, ..., 599 in order.*plain array"
        ):
            CATE(simple_log(frame), by="site", rounds=wrong)
        with pytest.raises(ParameterError, match="its index is not 0"):
            CATE.from_formula("age", simple_log(frame.assign(age=1.0), context=["site", "age"]), rounds=wrong)


def test_treatment_and_control_may_be_exchanged():
    log = simple_log(simple_frame())
    forward = CATE(log, by="site").fit()
    for names in ({"treatment": "old"}, {"control": "new"}, {"treatment": "old", "control": "new"}):
        back = CATE(log, by="site", **names).fit()
        np.testing.assert_allclose(back.params, -forward.params, rtol=1e-12)
    assert (forward.estimands[0].treatment, forward.estimands[0].group) == ("new", "x")


def test_groups_may_be_combinations_of_columns():
    frame = simple_frame()
    frame["wave"] = np.arange(600) % 3
    result = CATE(simple_log(frame, context=["site", "wave"]), by=["site", "wave"]).fit()
    assert list(result.terms)[:2] == ["site=x, wave=0", "site=x, wave=1"]
    assert result.estimands[1].group == ("x", 1)
    rows = frame[(frame["site"] == "y") & (frame["wave"] == 2)]
    assert result.params["site=y, wave=2"] == pytest.approx(welch_by_hand(rows)[0], rel=1e-10)


def test_propensities_that_vary_within_a_group_are_refused():
    frame = simple_frame()
    frame.loc[599, ["p_new", "p_old"]] = [0.4, 0.6]
    site = f"site={frame['site'].iloc[599]}"
    with pytest.raises(InvalidForLog) as error:
        CATE(simple_log(frame), by="site").fit("difference-in-means")
    assert says(error.value.reason, effects.PROPENSITIES_VARY, groups=site)
    assert error.value.alternatives[0] == "aipw"
    marked = CATE(simple_log(frame), by="site", rounds=np.full(600, True)).fit()
    assert says(marked.notes, effects.MARKED_VARY, groups=site)
    rest = CATE(simple_log(frame), by="site", rounds=np.arange(600) < 599).fit()
    assert not says(rest.notes, effects.MARKED_VARY)


def test_one_propensity_a_round_serves_as_well():
    frame = simple_frame()
    frame["p"] = np.where(frame["arm"] == "new", frame["p_new"], frame["p_old"])
    log = simple_log(frame, propensities=False, propensity="p")
    assert_welch(CATE(log, by="site").fit(), frame)
    frame.loc[0, "p"] += 0.01
    with pytest.raises(InvalidForLog) as error:
        CATE(simple_log(frame, propensities=False, propensity="p"), by="site").fit("difference-in-means")
    assert says(error.value.reason, effects.PROPENSITIES_VARY)


def test_without_propensities_or_marks_nothing_is_known():
    with pytest.raises(InvalidForLog) as error:
        CATE(simple_log(simple_frame(), propensities=False), by="site").fit()
    assert says(error.value.reason, effects.NOTHING_RANDOMISED)
    assert says(error.value.alternatives, effects.MARK_THE_ROUNDS)
    with pytest.raises(InvalidForLog) as error:
        CATE(simple_log(simple_frame(), propensities=False), by="site").fit("aipw")
    assert says(error.value.reason, propensities.NEEDED)


def binary_log(counts, successes):
    """Randomised rounds with the given counts and successes, shape (groups, 2)."""
    group, action, reward = [], [], []
    for (g, arm), n in np.ndenumerate(counts):
        group += [g] * n
        action += [arm] * n
        reward += [1.0] * successes[g][arm] + [0.0] * (n - successes[g][arm])
    arrays = LogArrays(
        np.array(action),
        np.array(reward),
        randomised=np.full(len(reward), True),
        context={"g": np.array(group)},
    )
    return AdaptiveLog.from_arrays(arrays, arms=("a", "b"))


def test_few_events_switch_a_group_to_agresti_caffo():
    log = binary_log(np.array([[40, 40], [40, 40]]), [[20, 25], [20, 35]])
    result = CATE(log, by="g").fit()
    assert result.reference.name == "Welch t or Agresti-Caffo"
    np.testing.assert_allclose(result.params, [5 / 40, 15 / 40])
    rates = 36 / 42, 21 / 42
    error = np.sqrt(sum(p * (1 - p) / 42 for p in rates))
    middle = rates[0] - rates[1]
    z = stats.norm.isf(0.025)
    np.testing.assert_allclose(
        result.conf_int().loc["g=1"], [middle - z * error, middle + z * error], rtol=1e-10
    )
    assert result.pvalues["g=1"] == pytest.approx(2 * stats.norm.sf(middle / error), rel=1e-9)
    assert says(result.notes, claims.ADJUSTED, terms="g=1")


def test_groups_without_enough_data_are_nan_with_the_reason():
    log = binary_log(np.array([[5, 0], [0, 0], [12, 1], [30, 30]]), [[2, 0], [0, 0], [6, 1], [14, 12]])
    arrays = log.arrays
    reward = arrays.reward * 7 + 0.1
    reward[-1] = 3.0  # a third value: these rewards are no successes and failures
    scaled = LogArrays(arrays.action, reward, randomised=arrays.randomised, context=arrays.context)
    result = CATE(AdaptiveLog.from_arrays(scaled, arms=("a", "b")), by="g").fit()
    assert list(result.terms) == ["g=0", "g=2", "g=3"]
    np.testing.assert_array_equal(np.isnan(result.params), [True, False, False])
    np.testing.assert_array_equal(np.isnan(result.conf_int()["low"]), [True, True, False])
    np.testing.assert_array_equal(np.isnan(result.pvalues), [True, True, False])
    assert says(result.notes, claims.ONE_ARM_MISSING, terms="g=0")
    assert says(result.notes, claims.SINGLE_REWARD, terms="g=2")


def test_rewards_that_do_not_vary_have_no_standard_error():
    counts = np.array([[3, 4], [2, 2]])
    arrays = binary_log(counts, [[3, 0], [0, 0]]).arrays
    constant = np.where(arrays.context["g"] == 1, 0.7, np.where(arrays.action == 1, 0.3, 0.1))
    same = LogArrays(arrays.action, constant, randomised=arrays.randomised, context=arrays.context)
    result = CATE(AdaptiveLog.from_arrays(same, arms=("a", "b")), by="g").fit()
    assert result.params.iloc[0] == pytest.approx(0.2)
    assert np.isnan(result.bse.iloc[0])
    assert says(result.notes, claims.NO_VARIATION, terms="g=0; g=1")


def test_rewards_far_from_zero_keep_their_digits():
    frame = simple_frame()
    plain = CATE(simple_log(frame), by="site").fit()
    frame["score"] += 1e9
    far = CATE(simple_log(frame), by="site").fit()
    np.testing.assert_allclose(far.bse, plain.bse, rtol=1e-6)
    np.testing.assert_allclose(far.params, plain.params, rtol=1e-6)


def test_labels_of_several_types_are_groups_of_their_own():
    codes, labels = group_codes([np.array([1, "1", 1, None], dtype=object)])
    assert len(labels) == 3
    assert codes[0] == codes[2] != codes[1]


# --- AIPW


def moving_propensities(seed=1, rounds=400, arms=2):
    """Propensities that follow the running means, as a bandit's do."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, rounds)
    tilt = np.clip(0.5 + np.cumsum(rng.normal(0, 0.02, rounds)), 0.1, 0.9)
    propensities = np.column_stack([1 - tilt, tilt])
    if arms == 3:
        propensities = np.column_stack([0.75 * propensities, np.full(rounds, 0.25)])
    action = (rng.random(rounds)[:, None] > np.cumsum(propensities, axis=1)).sum(axis=1)
    reward = rng.normal(0.2 * action + 0.1 * group, 1.0)
    return group, action, reward, propensities


def literal_aipw(group, action, reward, propensities, code, kind="combined", by=None):
    """Round by round, with lists, weights by given propensities or the rounds' own.

    Returns estimate, standard error, degrees of freedom.
    """
    weighing = propensities if by is None else by
    seen, own, every = {0: [], 1: []}, [], []
    scores, weights, gains = [], [], {0: [], 1: []}
    for t, (g, a, y, e) in enumerate(zip(group, action, reward, propensities, strict=True)):
        if g == code:
            row = []
            for arm in (0, 1):
                known = next((part for part in (seen[arm], own, every) if part), [0.0])
                model = sum(known) / len(known)
                row.append(model + (a == arm) / e[arm] * (y - model))
            q = weighing[t]
            h = {
                "uniform": [1.0, 1.0],
                "sqrt": [np.sqrt(q[0]), np.sqrt(q[1])],
                "combined": [(1 / q[0] + 1 / q[1]) ** -0.5] * 2,
            }[kind]
            scores.append(row)
            weights.append(h if t > 0 else [0.0, 0.0])
            own.append(y)
            if a in seen:
                seen[a].append(y)
                gains[a].append((weights[-1][a] / e[a]) ** 2)
        every.append(y)
    scores, weights = np.array(scores), np.array(weights)
    mean = (weights * scores).sum(axis=0) / weights.sum(axis=0)
    influence = weights * (scores - mean) / weights.sum(axis=0)
    error = np.sqrt(np.sum((influence[:, 1] - influence[:, 0]) ** 2))
    sizes = [sum(w) ** 2 / sum(one**2 for one in w) for w in gains.values()]
    return mean[1] - mean[0], error, min(sizes) - 1


def weights_of(kind, pair):
    if kind == "uniform":
        return None
    if kind == "sqrt":
        return np.sqrt(pair)
    return np.repeat(contrast_weights(pair, "combined")[:, None], 2, axis=1)


@pytest.mark.parametrize("arms", [2, 3])
@pytest.mark.parametrize("kind", ["combined", "sqrt", "uniform"])
def test_group_aipw_equals_the_round_by_round_version(arms, kind):
    group, action, reward, propensities = moving_propensities(arms=arms)
    treated = np.where(action < 2, action, -1)
    chosen, pair = propensities[np.arange(400), action], propensities[:, :2]
    result = group_aipw(group, treated, reward, chosen, 3, pair, weights_of(kind, pair))
    for code in range(3):
        estimate, error, df = literal_aipw(group, action, reward, propensities, code, kind)
        assert result.estimate[code] == pytest.approx(estimate, rel=1e-10)
        assert result.std_error[code] == pytest.approx(error, rel=1e-10)
        assert result.df[code] == pytest.approx(df, rel=1e-10)


def test_group_aipw_in_blocks_equals_the_score_functions():
    group, action, reward, propensities = moving_propensities(seed=2, rounds=40_000)
    group[:12_000], action[:12_000] = 0, 1
    group[12_000] = 1
    own = propensities[np.arange(40_000), action]
    result = group_aipw(group, action, reward, own, 3, propensities, np.sqrt(propensities))
    every = np.append(0.0, np.cumsum(reward)[:-1] / np.arange(1, 40_000))
    for code, rows in enumerate(rows_of_cells(group, 3)):
        chosen = indicators(action[rows], np.array([0, 1]))
        predicted = running_means(chosen, reward[rows])
        lagged = np.append(every[rows[0]], np.cumsum(reward[rows])[:-1] / np.arange(1, len(rows)))
        unseen = np.cumsum(chosen, axis=0) - chosen == 0
        predicted = np.where(unseen, lagged[:, None], predicted)
        scores = aipw_scores(chosen, reward[rows], own[rows], predicted)
        weights = np.sqrt(propensities[rows])
        weights[rows == 0] = 0.0
        estimate, error = weighted_means(scores, weights).difference(1, 0)
        assert result.estimate[code] == pytest.approx(estimate, rel=1e-9)
        assert result.std_error[code] == pytest.approx(error, rel=1e-9)
        gains = weights * chosen / own[rows, None]
        assert result.ess[code] == pytest.approx(effective_size(gains).min(), rel=1e-10)
        assert result.df[code] == pytest.approx(effective_size(gains**2).min() - 1, rel=1e-10)
        assert result.min_propensity[code] == propensities[rows].min()


def test_group_aipw_has_no_numbers_for_empty_groups_and_arms():
    none = group_aipw(
        np.array([0, 2]), np.array([1, 0]), np.ones(2), np.full(2, 0.5), 3, np.full((2, 2), 0.5)
    )
    assert np.isnan(none.estimate).all()
    assert np.isnan(none.std_error).all()
    np.testing.assert_array_equal(none.count, [[0, 1], [0, 0], [1, 0]])
    np.testing.assert_array_equal(none.used, [[0, 0], [0, 0], [1, 0]])


def adaptive_log(arms=2, chosen_only=False, **options):
    group, action, reward, propensities = moving_propensities(arms=arms)
    arrays = LogArrays(
        action,
        reward,
        propensity=propensities[np.arange(400), action],
        propensities=None if chosen_only else propensities,
        context={"g": group},
    )
    return AdaptiveLog.from_arrays(arrays, arms=("a", "b", "c")[:arms], **options)


def before(group, propensities, first):
    """Propensities of the group's previous round; at first those given."""
    last, found = {}, []
    for g, e in zip(group, propensities, strict=True):
        found.append(last.get(g, first))
        last[g] = e
    return np.array(found)


@pytest.mark.parametrize("chosen_only", [True, False])
@pytest.mark.parametrize("context_free", [True, None])
def test_aipw_results_use_a_t_with_the_smaller_arm(chosen_only, context_free):
    log = adaptive_log(chosen_only=chosen_only, context_free=context_free)
    result = CATE(log, by="g").fit("aipw")
    assert result.weights == "combined"
    group, action, reward, propensities = moving_propensities()
    by = propensities if context_free else before(group, propensities, [2.0, 2.0])  # a weight of 1
    for code in range(3):
        estimate, error, df = literal_aipw(group, action, reward, propensities, code, by=by)
        half = stats.t.isf(0.05, df) * error
        np.testing.assert_allclose(
            result.conf_int(0.1).iloc[code], [estimate - half, estimate + half], rtol=1e-9
        )
        p = 2 * stats.t.sf(abs(estimate / error), df)
        assert result.pvalues.iloc[code] == pytest.approx(p, rel=1e-8)
    assert result.min_propensity == pytest.approx(propensities.min())


def test_sqrt_weights_are_by_the_group_s_round_before():
    group, action, reward, moving = moving_propensities()
    result = CATE(adaptive_log(), by="g").fit("aipw", weights="sqrt")
    by = before(group, moving, [0.5, 0.5])
    for code in range(3):
        estimate, error, _ = literal_aipw(group, action, reward, moving, code, "sqrt", by)
        assert result.params.iloc[code] == pytest.approx(estimate, rel=1e-10)
        assert result.bse.iloc[code] == pytest.approx(error, rel=1e-10)
    assert says(result.notes, effects.LAGGED, by=propensities.ROUND_BEFORE())


def test_aipw_may_weight_all_scores_alike():
    result = CATE(adaptive_log(), by="g").fit("aipw", weights="uniform")
    estimate, error, _ = literal_aipw(*moving_propensities(), 1, "uniform")
    assert result.weights == "uniform"
    assert result.params.iloc[1] == pytest.approx(estimate, rel=1e-10)
    assert result.bse.iloc[1] == pytest.approx(error, rel=1e-10)


def test_aipw_with_more_arms_and_the_chosen_propensity_alone():
    log = adaptive_log(arms=3, chosen_only=True)
    model = CATE(log, by="g", treatment="b", control="a")
    result = model.fit("aipw")
    assert result.weights == "uniform"
    group, action, reward, propensities = moving_propensities(arms=3)
    for code in range(3):
        estimate, error, _ = literal_aipw(group, action, reward, propensities, code, "uniform")
        assert result.params.iloc[code] == pytest.approx(estimate, rel=1e-10)
        assert result.bse.iloc[code] == pytest.approx(error, rel=1e-10)
    with pytest.raises(InvalidForLog, match="aipw with uniform weights"):
        model.fit("aipw", weights="sqrt")
    with pytest.raises(InvalidForLog) as error:
        model.fit("difference-in-means")
    assert says(error.value.reason, effects.PROPENSITIES_VARY)
    default = model.fit()
    assert (default.estimator, default.weights) == ("aipw", "uniform")
    np.testing.assert_array_equal(default.estimate, result.estimate)
    assert says(default.notes[-1:], claims.CHOSEN, name="difference-in-means", reason=error.value.reason)


def test_aipw_leaves_out_rounds_where_an_arm_was_impossible():
    group, action, reward, propensities = moving_propensities()
    propensities, reward = propensities.copy(), reward.copy()
    late = np.arange(400) >= 300
    propensities[late] = np.eye(2)[action[late]]
    reward[late] = 1e6
    arrays = LogArrays(
        action,
        reward,
        propensity=propensities[np.arange(400), action],
        propensities=propensities,
        context={"g": group},
    )
    log = AdaptiveLog.from_arrays(arrays, arms=("a", "b"), context_free=True)
    result = CATE(log, by="g").fit("aipw")
    estimate, error, _ = literal_aipw(group[:300], action[:300], reward[:300], propensities[:300], 1)
    assert result.params.iloc[1] == pytest.approx(estimate, rel=1e-10)
    assert result.bse.iloc[1] == pytest.approx(error, rel=1e-10)
    assert says(result.notes, effects.LEFT_OUT, n=100)
    with pytest.raises(InvalidForLog) as error:
        CATE(log, by="g", rounds=late).fit("aipw")
    assert says(error.value.reason, effects.NEVER_BOTH, n=100)


def test_estimated_propensities_are_noted():
    frame = simple_frame()
    log = simple_log(frame, propensity_status="estimated")
    assert says(CATE(log, by="site").fit("aipw").notes, propensities.ESTIMATED)
    with pytest.raises(InvalidForLog) as error:
        CATE(log, by="site").fit("difference-in-means")
    assert says(error.value.reason, effects.ESTIMATES_SHOW_NOTHING)


# --- logs of ConSE and DP-ConSE


@pytest.fixture(scope="module")
def private_log():
    return DPConSE(epsilon=1.0, alpha=0.2).run(ENVIRONMENT, horizon=20_000, rng=3)


def cell_means(log, keep):
    arrays = log.arrays
    feature = arrays.context["feature"]
    return np.array(
        [
            np.subtract(*(arrays.reward[keep & (feature == j) & (arrays.action == a)].mean() for a in (1, 0)))
            for j in range(3)
        ]
    )


def test_randomised_rounds_of_the_second_phase_are_the_default(private_log):
    arrays = private_log.arrays
    estimation = arrays.phase == private_log.phases.index("estimation")
    result = CATE(private_log, by="feature").fit()
    np.testing.assert_allclose(
        result.params, cell_means(private_log, estimation & arrays.randomised), rtol=1e-10
    )
    pooled = CATE(private_log, by="feature").fit(pooled=True)
    np.testing.assert_allclose(pooled.params, cell_means(private_log, estimation), rtol=1e-10)
    assert (pooled.bse < result.bse).all()
    assert result.correction is None
    assert pooled.correction is None
    assert not result.private


def test_aipw_of_corrected_releases_uses_the_whole_second_phase(private_log):
    result = CATE(private_log, by="feature").fit("aipw")
    arrays = private_log.arrays
    late = arrays.phase == private_log.phases.index("estimation")
    inputs = (arrays.context["feature"], arrays.action, arrays.reward, arrays.propensities)
    estimate, error, _ = literal_aipw(*(part[late] for part in inputs), 2)
    assert result.params["feature=2"] == pytest.approx(estimate, rel=1e-9)
    assert result.bse["feature=2"] == pytest.approx(error, rel=1e-9)
    assert result.correction is None


def test_rounds_after_conse_has_stopped_randomising_are_not_pooled():
    log = ConSE(alpha=0.2).run(ENVIRONMENT, horizon=20_000, rng=3)
    model = CATE(log, by="feature")
    with pytest.raises(InvalidForLog, match=r"pooled=True.*pooled=False"):
        model.fit(pooled=True)
    weighted, plain = model.fit("aipw"), model.fit()
    np.testing.assert_array_equal(
        weighted.diagnostics()["pulls_treatment"], plain.diagnostics()["pulls_treatment"]
    )
    assert says(weighted.notes, effects.LEFT_OUT)
    with pytest.raises(InvalidForLog) as error:
        model.fit("released")
    assert says(error.value.reason, releases.NO_GROUP_EFFECTS)


def test_released_estimates_come_from_the_releases_alone(private_log):
    result = CATE(private_log, by="feature").fit("released")
    rows = private_log.releases
    last = rows[rows["round"] == 20_000].set_index(["name", "group"])["value"]
    early = rows[(rows["round"] < 20_000) & (rows["name"] == "arrivals")]
    planned = max(4 * np.log(20_000) / 0.4, early.groupby("group")["value"].sum().min() ** 0.8)
    estimate, low, high = released_intervals(
        last["contrast_sum"].loc[[0, 1, 2]].to_numpy(),
        last["arrivals"].loc[[0, 1, 2]].to_numpy(),
        epsilon_sum=0.6,
        epsilon_count=0.4,
        minimum=planned / 4,
    )
    np.testing.assert_allclose(result.params, estimate, rtol=1e-12)
    np.testing.assert_allclose(result.conf_int(), np.column_stack([low, high]), atol=1e-12)
    np.testing.assert_allclose(result.diagnostics()["t_min"], planned, rtol=1e-12)
    assert result.private
    assert result.correction is None
    assert says(result.explain().texts, guarantees.COVERS_RELEASES)


def test_planned_rounds_are_those_of_the_design():
    design = DPConSE(epsilon=1.0, alpha=0.2)
    sims = design.replicate(ENVIRONMENT, horizon=20_000, replications=1, rng=3, by_rounds=True)
    result = CATE(design.run(ENVIRONMENT, horizon=20_000, rng=3), by="feature").fit("released")
    assert result.diagnostics()["t_min"].iloc[0] == pytest.approx(sims.released["t_min"][0, 0], rel=1e-12)
    released = result.diagnostics()["released_count"]
    np.testing.assert_allclose(released, sims.released["arrivals"][0], rtol=1e-12)


def test_released_effects_change_sign_with_the_arms(private_log):
    forward = CATE(private_log, by="feature").fit("released", null=0.1)
    back = CATE(private_log, by="feature", treatment=0, control=1).fit("released", null=-0.1)
    np.testing.assert_array_equal(back.params, -forward.params)
    np.testing.assert_allclose(back.conf_int()["low"], -forward.conf_int()["high"], atol=1e-12)
    np.testing.assert_allclose(back.log_pvalues, forward.log_pvalues, rtol=1e-10)


def release_log(arrivals, contrast=3.0, labels=(0, 1), alpha=0.0, names=("arrivals", "contrast_sum")):
    rows = [(5, "arrivals", g, 50.0, "laplace", 5.0) for g in labels]
    rows += [(10, names[0], g, n, "laplace", 5.0) for g, n in zip(labels, arrivals, strict=True)]
    rows += [(10, names[1], g, contrast, "laplace", 5 / 3) for g in labels]
    columns = ["round", "name", "group", "value", "mechanism", "scale"]
    arrays = LogArrays(np.arange(10) % 2, np.ones(10), context={"feature": np.arange(10) % 2})
    return AdaptiveLog.from_arrays(
        arrays,
        arms=(0, 1),
        design=DesignRecord("DPConSE", {} if alpha is None else {"alpha": alpha}),
        releases=pd.DataFrame(rows, columns=columns),
    )


def test_small_released_counts_are_nan_with_the_reason():
    result = CATE(release_log([30.0, 11.0]), by="feature").fit("released")
    np.testing.assert_array_equal(np.isnan(result.params), [False, True])
    np.testing.assert_array_equal(np.isnan(result.conf_int()["low"]), [False, True])
    assert says(result.notes, releases.SMALL_COUNT, terms="feature=1", count=11.0)


def test_the_smallest_count_is_a_quarter_of_the_planned_rounds():
    result = CATE(release_log([12.6, 12.4]), by="feature").fit("released")
    np.testing.assert_array_equal(np.isnan(result.params), [False, True])
    np.testing.assert_array_equal(np.isnan(result.pvalues), [False, True])
    floor = CATE(release_log([30.0, 30.0], alpha=1.0), by="feature").fit("released")
    np.testing.assert_allclose(floor.diagnostics()["t_min"], 4 * np.log(10) / 0.4, rtol=1e-12)


def test_effects_beyond_one_by_far_have_no_interval():
    result = CATE(release_log([30.0, 30.0], contrast=60.0), by="feature").fit("released")
    assert np.isnan(result.conf_int()["low"]).all()
    assert says(result.notes, claims.EMPTY_INTERVAL, terms="feature=0; feature=1")


def test_releases_that_do_not_fit_are_refused():
    for log, claim, values in (
        (release_log([30.0, 30.0], alpha=None), releases.NO_LEAST_COUNT, {}),
        (release_log([30.0, 30.0], labels=(0, 5)), claims.OTHER_LABELS, {"by": "feature", "groups": "0, 5"}),
        (release_log([30.0, 30.0], names=("arrivals", "other")), releases.NO_GROUP_EFFECTS, {}),
    ):
        with pytest.raises(InvalidForLog) as error:
            CATE(log, by="feature").fit("released")
        assert says(error.value.reason, claim, **values)
    with pytest.raises(ParameterError, match="rounds="):
        CATE(release_log([30.0, 30.0]), by="feature", rounds=np.arange(10) > 4).fit("released")


def test_published_releases_give_their_own_interval():
    design = DPConSE(epsilon=1.0, alpha=0.2, calibration="published")
    log = design.run(ENVIRONMENT, horizon=20_000, rng=3)
    result = CATE(log, by="feature").fit("released")
    rows = log.releases.set_index(["name", "group"])["value"]
    np.testing.assert_array_equal(result.params, rows["estimate"].loc[[0, 1, 2]])
    length = rows["length"].loc[[0, 1, 2]].to_numpy()
    spread = np.sqrt((1 - result.params**2) / length + 2 * (2 / length) ** 2)
    np.testing.assert_allclose(result.bse, spread, rtol=1e-12)
    low, high = result.conf_int().to_numpy().T
    np.testing.assert_allclose(high - low, 2 * 1.96 * spread, rtol=0.03)


def test_published_estimates_that_were_never_released_are_nan():
    design = DPConSE(epsilon=1.0, alpha=0.2, calibration="published")
    log = design.run(ENVIRONMENT, horizon=20_000, rng=3)
    kept = log.releases[~((log.releases["name"] == "estimate") & (log.releases["group"] == 1))]
    partial = AdaptiveLog.from_arrays(log.arrays, arms=log.arms, phases=log.phases, releases=kept)
    result = CATE(partial, by="feature").fit("released")
    np.testing.assert_array_equal(np.isnan(result.params), [False, True, False])
    assert says(result.notes, releases.NOT_RELEASED, terms="feature=1")


# --- all estimators


@pytest.mark.parametrize("estimator", ["difference-in-means", "aipw", "released"])
@pytest.mark.parametrize("alpha", [0.2, 0.05, 1e-3])
def test_p_value_is_at_most_alpha_exactly_where_the_interval_excludes_the_null(private_log, estimator, alpha):
    model = CATE(private_log, by="feature")
    limits = model.fit(estimator).conf_int(alpha)
    nulls = [
        *np.linspace(-0.9, 0.9, 7),
        *(limits.to_numpy() + 1e-9).ravel(),
        *(limits.to_numpy() - 1e-9).ravel(),
    ]
    for null in nulls:
        inside = (limits["low"] <= null) & (null <= limits["high"])
        np.testing.assert_array_equal(model.fit(estimator, null=null).pvalues > alpha, inside)


def test_summaries_name_what_was_done(private_log):
    result = CATE(private_log, by="feature").fit()
    text = str(result)
    assert "CATE Results" in text
    assert "feature=2" in text
    assert any("the randomised rounds of phase 'estimation'" in one for one in result.explain().texts)


def test_arguments_that_do_not_fit_the_log_are_listed_together():
    log = simple_log(simple_frame())
    with pytest.raises(ParameterError) as error:
        CATE(log, by=["age", "site"], treatment="newer")
    assert "there is no arm 'newer'" in str(error.value)
    assert "there is no context column 'age'" in str(error.value)
    with pytest.raises(ParameterError, match="treatment and control must be different arms"):
        CATE(log, by="site", treatment="new", control="new")
    with pytest.raises(ParameterError, match="more than once"):
        CATE(log, by=["site", "site"])
    with pytest.raises(ParameterError, match="at least one"):
        CATE(log, by=[])
    with pytest.raises(ParameterError, match="specify treatment= and control="):
        CATE(adaptive_log(arms=3), by="g", treatment="a")


def test_a_reward_or_propensity_is_not_a_group():
    log = simple_log(simple_frame())
    for name in ("score", "reward", "p_new"):
        with pytest.raises(ParameterError, match="no context column"):
            CATE(log, by=name)
    bare = AdaptiveLog.from_arrays(LogArrays(np.array([0, 1]), np.array([1.0, 0.0])), arms=("a", "b"))
    with pytest.raises(ParameterError, match="no context columns"):
        CATE(bare, by="g")


def test_a_continuous_context_is_not_a_group():
    frame = simple_frame()
    frame["age"] = np.random.default_rng(1).normal(size=600)
    with pytest.raises(ParameterError, match="divides 600 rounds into 600 groups"):
        CATE(simple_log(frame, context=["age"]), by="age")


@pytest.mark.parametrize(
    ("rounds", "problem"),
    [
        (np.ones(5), "one entry per round"),
        (np.zeros(600), "selects no round"),
        (np.full(600, 0.5), "booleans"),
    ],
)
def test_masks_that_mark_nothing_sensible_are_refused(rounds, problem):
    with pytest.raises(ParameterError, match=problem):
        CATE(simple_log(simple_frame()), by="site", rounds=rounds)


def test_many_small_groups_share_their_notes_and_have_short_names():
    frame = simple_frame().assign(share=lambda f: np.arange(len(f)) % 60 / 6)
    frame.loc[frame["share"] < 5, "arm"] = "old"
    log = simple_log(frame, context=["share"])
    result = CATE(log, by="share", rounds=np.full(len(frame), True)).fit("difference-in-means")
    assert result.terms[:4] == ("share=0.0", "share=0.166667", "share=0.333333", "share=0.5")
    (gap,) = [note for note in result.notes if says(note, claims.ONE_ARM_MISSING)]
    shown = gap.values["terms"]
    assert shown.startswith("share=0.0; share=0.166667; share=0.333333; share=0.5; ")
    assert shown.endswith("; share=1.16667 and 22 more")
    assert says(result.notes, claims.SMALL_GROUPS)


@pytest.mark.parametrize(
    ("labels", "terms"),
    [
        ([1 / 3, 2 / 3], ("x=0.333333", "x=0.666667")),
        ([1 / 3, 1 / 3 + 1e-9], ("x=0.3333333333333333", f"x={1 / 3 + 1e-9}")),
        ([0.5, 1.0], ("x=0.5", "x=1.0")),
        ([1234567, 2], ("x=1234567", "x=2")),
        ([20240301.0, 2.0], ("x=20240301.0", "x=2.0")),
    ],
)
def test_names_of_groups_by_numbers(labels, terms):
    assert group_terms(("x",), [(label,) for label in labels]) == terms


def test_a_formula_after_the_log():
    log = simple_log(simple_frame())
    with pytest.raises(ParameterError, match=r"formula comes first.*CATE.from_formula\('age', log\)"):
        CATE.from_formula(log, "coin")


def test_fit_lists_every_wrong_argument():
    model = CATE(simple_log(simple_frame()), by="site", rounds="coin")
    with pytest.raises(ParameterError) as error:
        model.fit("ols", pooled=True, weights="two-point", null=float("nan"))
    for part in (
        "estimator must be",
        "weights must be",
        "weights apply",
        "pooled applies",
        "cannot be combined",
        "null must",
    ):
        assert part in str(error.value)


def test_moments_are_exact_for_equal_rewards():
    moments = arm_moments(np.zeros(9, dtype=int), np.arange(9) % 2, np.full(9, 0.1), 1)
    np.testing.assert_array_equal(moments.mean, [[0.1, 0.1]])
    np.testing.assert_array_equal(moments.variance, [[0.0, 0.0]])
