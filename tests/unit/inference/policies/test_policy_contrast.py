"""Contrasts of policies with one weight per round: limits, what may decide a weight, and what tables say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says
from scipy import stats

import adaptinf as ai
from adaptinf.claims import policies as claims
from adaptinf.claims.propensities import EVERY_ONE_NEEDED
from adaptinf.errors import InvalidForLog
from adaptinf.inference.policies.policy_methods import METHODS
from adaptinf.inference.policies.policy_question import PolicyQuestion, read_policies
from adaptinf.inference.policies.policy_weights import earlier_ratios
from adaptinf.inference.scores.moving_effects import moving_effects
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log import AdaptiveLog, LogArrays

ROUNDS = 600
ARMS = ("a", "b", "c")


def log_of(kind: str, **known: Any) -> AdaptiveLog:
    """Three arms by propensities that wander, stay in batches of 60, or follow a context x."""
    rng = np.random.default_rng(6)
    x = rng.integers(0, 2, ROUNDS).astype(float)
    wave = 0.25 * np.sin(np.arange(ROUNDS) / 60.0)
    if kind == "batches":
        wave = np.repeat(wave[::60], 60)
    if kind == "by context":
        wave = wave * (2.0 * x - 1.0)
    every = np.column_stack([1 / 3 + wave, np.full(ROUNDS, 1 / 3), 1 / 3 - wave])
    every /= every.sum(axis=1, keepdims=True)
    action = (rng.random(ROUNDS)[:, None] > np.cumsum(every, axis=1)[:, :-1]).sum(axis=1)
    arrays = LogArrays(
        action=action,
        reward=rng.normal(size=ROUNDS) + 0.2 * action + np.arange(ROUNDS) / ROUNDS,
        propensity=every[np.arange(ROUNDS), action],
        propensities=every,
        batch=np.arange(ROUNDS) // 60 if kind == "batches" or known.pop("batched", False) else None,
        context={"x": x} if kind == "by context" else {},
    )
    return AdaptiveLog.from_arrays(arrays, arms=ARMS, **known)


def where_x(log: AdaptiveLog) -> np.ndarray:
    """Arm b where x is 1, else a."""
    x = log.arrays.context["x"]
    return np.column_stack([1.0 - x, x, 0.0 * x])


def weights_of(log: AdaptiveLog, policy: Any, baseline: Any = "a", **options: Any) -> np.ndarray:
    result = ai.PolicyContrast(log, policy, baseline=baseline).fit(keep_scores=True, **options)
    assert result.weights == "combined"
    return result.scores["weights"]


class TestSingleArms:
    @pytest.mark.parametrize(("kind", "known"), [("wander", {"context_free": True}), ("batches", {})])
    @pytest.mark.parametrize("estimator", ["aipw", "ipw"])
    def test_are_the_contrast_of_the_arms(self, kind: str, known: dict[str, Any], estimator: str) -> None:
        """Where a round's own propensities make the weights."""
        log = log_of(kind, **known)
        policy = ai.PolicyContrast(log, ["b", "c"], baseline="a").fit(estimator=estimator)
        for j, arm in enumerate("bc"):
            arms = ai.Contrast(log, treatment=arm, control="a").fit(estimator)
            assert policy.estimate[j] == pytest.approx(arms.estimate[0], rel=1e-12)
            assert policy.std_error[j] == pytest.approx(arms.std_error[0], rel=1e-12)
            assert policy.reference.df[j] == pytest.approx(arms.reference.df[0], rel=1e-12)
            np.testing.assert_allclose(policy.conf_int().iloc[j], arms.conf_int().iloc[0], rtol=1e-10)

    def test_have_the_weights_of_the_arms_after_the_first_batch(self) -> None:
        """Where contexts may move propensities, both take those of the batch before."""
        log = log_of("by context", batched=True)
        arms = ai.Contrast(log, treatment="b", control="a").fit("aipw", keep_scores=True).scores["weights"]
        ratio = weights_of(log, "b")[60:, 0] / arms[60:, 0]
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-12)

    def test_with_constant_propensities_are_uniform(self) -> None:
        rng = np.random.default_rng(2)
        action = rng.integers(0, 3, ROUNDS)
        third = np.full((ROUNDS, 3), 1 / 3)
        arrays = LogArrays(action, rng.normal(size=ROUNDS), propensity=third[:, 0], propensities=third)
        log = AdaptiveLog.from_arrays(arrays, arms=ARMS)
        model = ai.PolicyContrast(log, ["b", "uniform"], baseline="a")
        combined, uniform = model.fit(), model.fit("uniform")
        np.testing.assert_allclose(combined.conf_int(), uniform.conf_int(), rtol=1e-12)
        assert combined.cautions == ()


class TestWeights:
    @pytest.mark.parametrize("batched", [False, True])
    def test_do_not_follow_the_rounds_own_context_or_later_ones(self, batched: bool) -> None:
        """Other contexts and propensities from a round on change later weights alone."""
        log = log_of("by context", batched=batched)
        policy = np.array([0.2, 0.5, 0.3])
        base = weights_of(log, [policy, where_x(log)])
        arrays, changed = log.arrays, log.arrays.propensities.copy()
        at = 330
        changed[at:] = changed[at:, ::-1]
        x = arrays.context["x"].copy()
        x[at:] = 1.0 - x[at:]
        moved = AdaptiveLog.from_arrays(
            LogArrays(
                arrays.action,
                arrays.reward,
                propensity=changed[np.arange(ROUNDS), arrays.action],
                propensities=changed,
                batch=arrays.batch,
                context={"x": x},
            ),
            arms=ARMS,
        )
        other = weights_of(moved, [policy, where_x(moved)])
        first = 360 if batched else at + 1
        np.testing.assert_array_equal(other[:first], base[:first])
        assert np.all(np.any(other[first:] != base[first:], axis=0))

    def test_of_policies_that_seldom_differ_stay_within_bounds(self) -> None:
        """In most windows of 50 rounds they do not differ at all: no weight explodes."""
        log = log_of("by context")
        rng, rare = np.random.default_rng(1), np.zeros((ROUNDS, 3))
        rare[:, 0] = 1.0
        rare[rng.random(ROUNDS) < 0.02] = [0.0, 1.0, 0.0]
        weights = weights_of(log, rare)[1:, 0]
        every = log.arrays.propensities
        assert weights.min() >= np.sqrt(every.min())
        assert weights.max() <= np.sqrt(every.max())

    def test_of_small_differences_follow_the_large_ones(self) -> None:
        """Differences of a thousandth in the other rounds leave weights near those without them."""
        log = log_of("by context")
        rare, small = np.tile([1.0, 0.0, 0.0], (ROUNDS, 1)), np.tile([0.999, 0.001, 0.0], (ROUNDS, 1))
        at = np.random.default_rng(1).random(ROUNDS) < 0.3
        rare[at] = small[at] = [0.0, 1.0, 0.0]
        gap = np.log(weights_of(log, small)[100:] / weights_of(log, rare)[100:])
        assert np.abs(gap).max() < 0.25

    def test_begin_with_those_of_a_fair_draw(self) -> None:
        log = log_of("by context", batched=True)
        np.testing.assert_allclose(weights_of(log, ["b", where_x(log)])[1:60], 3**-0.5)

    def test_fall_back_on_50_rounds_where_batches_are_small(self) -> None:
        value, size = np.arange(1.0, 201.0), np.ones(200)
        size[::2] = value[::2] = 0.0
        found = earlier_ratios(value, size, np.arange(200) // 4)
        assert np.isnan(found[:4]).all()
        assert found[8] == pytest.approx(np.mean([2, 4, 6, 8]))
        assert found[196] == pytest.approx(np.mean(np.arange(98, 198, 2)))
        large = earlier_ratios(value, size, np.arange(200) // 150)
        assert large[-1] == pytest.approx(np.mean(np.arange(2, 152, 2)))

    def test_turn_on_rounds_of_other_users(self) -> None:
        """Rounds that a unit has in a row share its context: none is the past of another."""
        log = log_of("by context")
        frame = log.frame.rename(columns={"propensity_a": "a", "propensity_b": "b", "propensity_c": "c"})
        frame["who"] = np.arange(ROUNDS) // 3
        by_user = AdaptiveLog(
            frame[["action", "reward", "a", "b", "c", "x", "who"]],
            action="action",
            reward="reward",
            propensities={arm: arm for arm in ARMS},
            context=["x"],
            unit="who",
        )
        weights = weights_of(by_user, "b", weights="combined")[:, 0]
        alone = weights_of(log, "b")[:, 0]
        np.testing.assert_allclose(weights[3:], np.repeat(alone[3::3], 3), rtol=1e-12)
        assert ai.PolicyContrast(by_user, "b", baseline="a").fit().weights == "uniform"

    def test_need_every_arms_propensity(self) -> None:
        log = log_of("wander")
        arrays = LogArrays(log.arrays.action, log.arrays.reward, propensity=log.arrays.propensity)
        chosen = AdaptiveLog.from_arrays(arrays, arms=ARMS)
        assert ai.PolicyContrast(chosen, "b", baseline="a").fit().weights == "uniform"
        with pytest.raises(InvalidForLog) as caught:
            ai.PolicyContrast(chosen, "b", baseline="a").fit("combined")
        assert says(caught.value.reason, EVERY_ONE_NEEDED)

    def test_policies_that_agree_everywhere_have_no_test(self) -> None:
        result = ai.PolicyContrast(log_of("wander"), {"b": 1.0}, baseline="b", names=["p", "q"]).fit()
        assert np.isnan(result.pvalues).all()
        assert says(result.notes, claims.CONSTANT, term="p - q")


class TestSupport:
    def test_counts_the_rounds_in_which_policies_differ(self) -> None:
        """Where they agree a reward counts for neither: the effective size is of the others."""
        log = log_of("by context")
        result = ai.PolicyContrast(log, where_x(log), baseline="a").fit()
        x, arrays = log.arrays.context["x"], log.arrays
        kept = ai.PolicyContrast(log, where_x(log), baseline="a").fit(keep_scores=True)
        h = kept.scores["weights"][:, 0] * x / arrays.propensity
        sizes = []
        for arm in (0, 1):
            g = h[arrays.action == arm]
            sizes.append(g.sum() ** 2 / (g**2).sum())
        assert result.details["ess"][0] == pytest.approx(min(sizes), rel=1e-12)
        assert sizes[0] < 0.6 * (arrays.action == 0).sum()

    def test_counts_the_units_with_such_rounds(self) -> None:
        """Rounds in which policies agree, of units that have many or few, count for no degree of freedom."""
        rng = np.random.default_rng(4)
        frame = pd.DataFrame({"who": np.tile(np.arange(40), 10), "p": 0.5, "q": 0.5})
        frame["x"] = (rng.random(len(frame)) < frame["who"] / 80.0).astype(float)
        frame.loc[0, "x"] = 1.0  # the first round has no prediction, and no weight
        frame["arm"] = rng.integers(0, 2, len(frame))
        frame["y"] = rng.normal(size=len(frame))
        log = AdaptiveLog(
            frame, action="arm", reward="y", propensities={0: "p", 1: "q"}, context=["x"], unit="who"
        )
        x = frame["x"].to_numpy()
        result = ai.PolicyContrast(log, np.column_stack([1.0 - x, x]), baseline=0).fit()
        alone = ai.PolicyContrast(log, 1, baseline=0, rounds=x == 1).fit()
        assert result.reference.df[0] == pytest.approx(alone.reference.df[0], rel=1e-12)
        assert result.reference.df[0] < 35.0


class TestWords:
    def test_say_what_decides_the_weights(self) -> None:
        made_of = (
            (claims.BY_OWN(), log_of("batches")),
            (claims.BY_ROUNDS_BEFORE(nearest=50), log_of("wander")),
            (claims.BY_BATCH_BEFORE(nearest=50), log_of("by context", batched=True)),
        )
        for by, log in made_of:
            assert says(ai.PolicyContrast(log, "b", baseline="a").fit().notes, claims.COMBINED, by=by)

    def test_an_effect_that_is_seen_to_move(self) -> None:
        log = log_of("wander")
        arrays = log.arrays
        turned = np.where(np.arange(ROUNDS) < ROUNDS // 2, 1.5, -1.5) * (arrays.action == 1)
        columns = {"propensity": arrays.propensity, "propensities": arrays.propensities}
        moving = AdaptiveLog.from_arrays(
            LogArrays(arrays.action, arrays.reward + turned, **columns), arms=ARMS
        )
        result = ai.PolicyContrast(moving, ["b", "c"], baseline="a").fit()
        (caution,) = result.cautions
        assert says(caution, claims.DIFFERENCE_MOVES, term="b - a")
        assert caution.values["p"] < 0.00025
        assert ai.PolicyContrast(moving, ["b", "c"], baseline="a").fit("uniform").cautions == ()
        assert ai.PolicyContrast(log, ["b", "c"], baseline="a").fit().cautions == ()

    def test_one_of_two_effects_moves_from_half_the_level_on(self) -> None:
        arrays, shares = log_of("wander").arrays, np.linspace(-1.0, 1.0, ROUNDS) * 1.7
        seen = []
        for size in np.linspace(0.0, 0.9, 46):
            reward = arrays.reward + size * shares * (arrays.action == 1)
            columns = {"propensity": arrays.propensity, "propensities": arrays.propensities}
            log = AdaptiveLog.from_arrays(LogArrays(arrays.action, reward, **columns), arms=ARMS)
            result = ai.PolicyContrast(log, ["b", "c"], baseline="a").fit(keep_scores=True)
            kept = result.scores
            p = moving_effects(kept["scores"], kept["weights"], result.reference.df)[0]
            seen.append((p, says(result.cautions, claims.DIFFERENCE_MOVES, term="b - a", p=p)))
        assert all((p < 0.00025) == told for p, told in seen)
        assert any(0.0001 < p < 0.00025 for p, _ in seen)
        assert any(0.00025 < p < 0.0005 for p, _ in seen)


class TestMovingEffects:
    def test_against_sums_written_out(self) -> None:
        rng = np.random.default_rng(3)
        scores, weights = rng.normal(size=(90, 2)), rng.uniform(0.5, 1.5, (90, 2))
        scores[:, 1] += np.arange(90) / 30.0
        found = moving_effects(scores, weights, np.array([20.0, 50.0]))
        for k, df in enumerate((20.0, 50.0)):
            h, s = weights[:, k].tolist(), scores[:, k].tolist()
            total = sum(h)
            mean = sum(a * b for a, b in zip(h, s, strict=True)) / total
            middle = sum(a * (t + 1) for t, a in enumerate(h)) / total
            terms = [a * (t + 1 - middle) * (b - mean) for t, (a, b) in enumerate(zip(h, s, strict=True))]
            ratio = sum(terms) / sum(one**2 for one in terms) ** 0.5
            assert found[k] == pytest.approx(2.0 * stats.t.sf(abs(ratio), df), rel=1e-10)
        assert found[1] < 1e-4 < 0.05 < found[0]

    def test_rounds_of_a_unit_may_depend_on_each_other(self) -> None:
        """Each row three times over: by unit the p-value is that of one copy."""
        rng = np.random.default_rng(5)
        scores, weights = rng.normal(size=(80, 1)), rng.uniform(0.5, 1.5, (80, 1))
        scores += np.arange(80)[:, None] / 200.0
        unit, df = np.repeat(np.arange(80), 3), np.array([60.0])
        copies = np.repeat(scores, 3, axis=0), np.repeat(weights, 3, axis=0)
        by_unit = moving_effects(*copies, df, unit)[0]
        assert by_unit == pytest.approx(moving_effects(scores, weights, df)[0], rel=0.02)
        assert moving_effects(*copies, df)[0] < 0.5 * by_unit

    def test_nothing_to_test(self) -> None:
        ones, df = np.ones((10, 1)), np.array([9.0])
        assert moving_effects(ones, ones, df)[0] == 1.0
        assert moving_effects(ones, 0.0 * ones, df)[0] == 1.0
        assert moving_effects(ones[:1], ones[:1], df)[0] == 1.0


@pytest.mark.parametrize("estimator", ["aipw", "ipw"])
def test_expected_lengths_are_by_the_weights_of_the_fit(estimator: str) -> None:
    """The sum of gain^2 / propensity over arms and rounds, the gain an arm's share of both policies."""
    log, policies = log_of("wander", context_free=True), [np.array([0.6, 0.2, 0.2]), "b", "a"]
    profile, every, names = profile_of(log), log.arrays.propensities, ["p", "b", "a"]
    read = read_policies("PolicyContrast", log, policies, names)
    question, method = PolicyQuestion(profile, read, contrast=True), METHODS[estimator]
    model, tables = ai.PolicyContrast(log, policies[:-1], baseline="a", names=names), dict[str, float]()
    pi = np.array([[0.6, 0.2, 0.2], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    mean = profile.pooled_mean if estimator == "ipw" else 0.0
    for verdict in method.assess(question):
        if verdict.arguments.get("contextual"):
            continue  # shares of their own total at each context, which these are not
        call = {**verdict.arguments, "estimator": "ipw", "keep_scores": True}
        h = model.fit(**call).scores["weights"]
        h = h / h.sum(axis=0)
        pairs = [(h[:, j], h[:, j]) if h.shape[1] == 2 else (h[:, j], h[:, 2]) for j in range(2)]
        lengths = []
        for j, (one, two) in enumerate(pairs):
            gain = one[:, None] * pi[j] - two[:, None] * pi[2]
            if verdict.arguments["weights"] == "uniform":
                own = gain[np.arange(ROUNDS), log.arrays.action] / log.arrays.propensity
                first = (own**2).sum()
            else:
                first = (gain**2 / every).sum()
            second = (gain.sum(axis=1) ** 2).sum()
            error = np.sqrt((profile.pooled_std**2 + mean**2) * first - mean**2 * second)
            lengths.append(2.0 * stats.norm.ppf(0.975) * error)
        tables[verdict.name] = method.length(question, verdict)
        assert tables[verdict.name] == pytest.approx(np.mean(lengths), rel=1e-9)
    assert next(iter(tables)) == f"{estimator} with combined weights"
    assert len(tables) == 4
