"""Policy values: limits, forms of policies, refusals, notes, and what a fit costs."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from claims_said import says
from scipy import stats

from adaptinf import designs
from adaptinf.claims import policies as claims
from adaptinf.claims import rare_outcomes
from adaptinf.claims.data import outcome_models
from adaptinf.claims.propensities import FEW_EFFECTIVE
from adaptinf.designs import EpsilonGreedy
from adaptinf.errors import AdaptinfWarning, ParameterError
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.inference.policies.policy_models import PolicyContrast, PolicyValue
from adaptinf.inference.policies.policy_scores import policy_freedom
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.validity.policies import PolicySnapshots
from adaptinf.log import AdaptiveLog, DesignRecord, LogArrays
from adaptinf.simulation.environments import BernoulliArms

ARMS = ("a", "b", "c")
HORIZON = 300
HALF = HORIZON // 2
LATE = np.array([0.2, 0.5, 0.3])


def make_log(
    kind: str = "uniform", *, context: bool = True, chosen_only: bool = False, **metadata: Any
) -> AdaptiveLog:
    """A log whose propensities are uniform, or change once at its half, or lean on the context."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=HORIZON)
    propensities = np.full((HORIZON, 3), 1 / 3)
    if kind == "two batches":
        propensities[HALF:] = LATE
    if kind == "stationary":
        propensities = by_context(pd.DataFrame({"x": x}))
    if kind == "every round":
        propensities = 0.05 + 0.85 * rng.dirichlet(np.ones(3), size=HORIZON)
    if kind == "contextual":
        propensities[HALF:] = by_context(pd.DataFrame({"x": x[HALF:]}))
    action = np.array([rng.choice(3, p=p) for p in propensities])
    arrays = LogArrays(
        action=action,
        reward=rng.normal(1.0 + 0.5 * action),
        propensity=propensities[np.arange(HORIZON), action],
        propensities=None if chosen_only else propensities,
        batch=(np.arange(HORIZON) >= HALF).astype(np.int64),
        context={"x": x} if context else {},
    )
    return AdaptiveLog.from_arrays(arrays, arms=ARMS, **metadata)


def by_context(frame: pd.DataFrame) -> np.ndarray:
    first = np.where(frame["x"] > 0, 0.7, 0.1)
    return np.column_stack([first, 0.2 * np.ones(len(frame)), 0.8 - first])


def sign(frame: pd.DataFrame) -> np.ndarray:
    right = (frame["x"] > 0).to_numpy(float)
    return np.column_stack([1 - right, right, 0 * right])


SNAPSHOTS = PolicySnapshots([0, HALF], [np.full(3, 1 / 3), by_context])
ALL_WEIGHTS: list[dict[str, Any]] = [
    {"weights": "uniform"},
    {"weights": "stable-variance", "contextual": True},
    {"weights": "stable-variance", "contextual": False},
    {"weights": "min-variance", "contextual": True},
    {"weights": "min-variance", "contextual": False},
]


class TestLimits:
    @pytest.mark.parametrize("options", ALL_WEIGHTS)
    def test_of_a_uniform_design_is_the_mean_of_the_scores(self, options: dict[str, Any]) -> None:
        log = make_log(design=designs.Uniform().record())
        result = PolicyValue(log, ["b", "uniform"]).fit(estimator="ipw", **options)
        score = 3 * log.arrays.reward * (log.arrays.action == 1)
        n = HORIZON
        for j, values in enumerate((score, log.arrays.reward)):
            assert result.estimate[j] == pytest.approx(values.mean(), rel=1e-12)
            expected = stats.sem(values) * np.sqrt((n - 1) / n)
            assert result.std_error[j] == pytest.approx(expected, rel=1e-12)

    def test_of_a_uniform_design_agrees_with_scipy(self) -> None:
        log = make_log(design=designs.Uniform().record())
        result = PolicyValue(log, "b").fit(estimator="ipw", null=1.2)
        score = 3 * log.arrays.reward * (log.arrays.action == 1)
        z = (score.mean() - 1.2) / (score.std() / np.sqrt(HORIZON))
        df = (log.arrays.action == 1).sum() - 1
        assert result.pvalues.iloc[0] == pytest.approx(2 * stats.t.sf(abs(z), df), rel=1e-10)
        half = stats.t.ppf(0.975, df) * score.std() / np.sqrt(HORIZON)
        expected = [score.mean() - half, score.mean() + half]
        np.testing.assert_allclose(result.conf_int().iloc[0], expected, rtol=1e-10)

    @pytest.mark.parametrize("options", ALL_WEIGHTS)
    def test_of_the_policy_that_was_followed_is_the_mean_reward(self, options: dict[str, Any]) -> None:
        log = make_log("stationary")
        snapshots = PolicySnapshots([0, HALF], [by_context, by_context])
        result = PolicyValue(log, by_context).fit(estimator="ipw", snapshots=snapshots, **options)
        # Without earlier contexts the first round has no non-contextual weight.
        used = log.arrays.reward[1 if options.get("contextual") is False else 0 :]
        assert result.estimate[0] == pytest.approx(used.mean(), rel=1e-12)
        expected = used.std() / np.sqrt(len(used))
        assert result.std_error[0] == pytest.approx(expected, rel=1e-12)
        assert result.ess.iloc[0] == pytest.approx(len(used), rel=1e-12)

    @pytest.mark.parametrize("estimator", ["ipw", "aipw"])
    def test_one_arm_with_stable_variance_is_its_mean_with_sqrt_weights(self, estimator: str) -> None:
        log = make_log("every round", context=False)
        arm = ArmMeans(log).fit(estimator, "sqrt")
        for contextual in (True, False):
            result = PolicyValue(log, list(log.arms)).fit("stable-variance", contextual, estimator)
            np.testing.assert_allclose(result.estimate, arm.estimate, rtol=1e-10)
            np.testing.assert_allclose(result.cov_params(), arm.cov_params(), rtol=1e-9, atol=1e-15)
            np.testing.assert_allclose(result.ess, arm.ess, rtol=1e-10)
            contrast = PolicyContrast(log, "b", baseline="a").fit("stable-variance", contextual, estimator)
            expected = Contrast(log, treatment="b", control="a").fit(estimator, "sqrt")
            np.testing.assert_allclose(contrast.estimate, expected.estimate, rtol=1e-9)
            np.testing.assert_allclose(contrast.std_error, expected.std_error, rtol=1e-9)

    def test_contextual_weights_of_a_constant_policy_and_a_design_without_contexts_are_not_contextual(
        self,
    ) -> None:
        log = make_log("two batches")
        for kind in ("stable-variance", "min-variance"):
            first, second = (
                PolicyValue(log, LATE).fit(kind, contextual, snapshots="context-free")
                for contextual in (True, False)
            )
            np.testing.assert_allclose(first.estimate, second.estimate, rtol=1e-12)
            np.testing.assert_allclose(first.std_error, second.std_error, rtol=1e-12)

    @pytest.mark.parametrize(
        "options", [*ALL_WEIGHTS[1:], {"estimator": "cadr"}, {"estimator": "cadr", "burn_in": 1}]
    )
    @pytest.mark.parametrize("policy", ["a", sign, by_context])
    def test_snapshots_as_vectors_matrices_callables_and_columns_agree(
        self, options: dict[str, Any], policy: Any
    ) -> None:
        log = make_log("two batches")
        vectors = [np.full(3, 1 / 3), LATE]
        forms = [
            "context-free",
            PolicySnapshots([0, HALF], vectors),
            PolicySnapshots(None, [vectors[0], lambda f: np.tile(LATE, (len(f), 1))]),
            PolicySnapshots([0, HALF, 200], [vectors[0], np.tile(LATE, (HORIZON, 1)), LATE]),
        ]
        fits = [PolicyValue(log, policy).fit(snapshots=form, **options) for form in forms]
        for fit in fits[1:]:
            np.testing.assert_allclose(fit.estimate, fits[0].estimate, rtol=1e-9)
            np.testing.assert_allclose(fit.std_error, fits[0].std_error, rtol=1e-9)


class TestPolicies:
    def test_every_form_of_one_policy(self) -> None:
        log = make_log()
        x = log.arrays.context["x"]
        matrix = sign(pd.DataFrame({"x": x}))
        forms = [
            sign,
            matrix,
            pd.DataFrame(matrix[:, [2, 0, 1]], columns=["c", "a", "b"]),
            {"a": matrix[:, 0], "b": matrix[:, 1]},
            Model(["b", "a", "c"]),
        ]
        names = [str(k) for k in range(len(forms))]
        values = PolicyValue(log, forms, names=names).fit(weights="uniform").estimate
        np.testing.assert_allclose(values, values[0], rtol=1e-14)
        constant = PolicyValue(log, ["b", {"b": 1.0}, np.eye(3)[1]]).fit(weights="uniform").estimate
        np.testing.assert_allclose(constant, constant[0], rtol=1e-14)

    def test_labels_count_wherever_there_are_any(self) -> None:
        log = make_log()
        matrix = sign(log.frame)
        turned, order = matrix[:, [2, 0, 1]], ["c", "a", "b"]
        forms = [
            matrix,
            pl.DataFrame(turned, schema=order),
            lambda _: pd.DataFrame(turned, columns=order),
            lambda _: pl.DataFrame(turned, schema=order),
            lambda _: {"b": matrix[:, 1], "a": pd.Series(matrix[:, 0])},
            Labelled(),
        ]
        values = PolicyValue(log, forms, names=[str(k) for k in range(len(forms))]).fit(weights="uniform")
        np.testing.assert_allclose(values.estimate, values.estimate[0], rtol=1e-14)
        shares = pd.Series({"c": 0.1, "b": 0.2, "a": 0.7})
        constant = [shares, lambda _: shares, np.array([0.7, 0.2, 0.1]), {"a": 0.7, "b": 0.2, "c": 0.1}]
        values = PolicyValue(log, constant, names=list("1234")).fit(weights="uniform")
        np.testing.assert_allclose(values.estimate, values.estimate[-1], rtol=1e-14)

    def test_numbers_as_labels_of_polars_columns(self) -> None:
        log = AdaptiveLog.from_arrays(make_log().arrays, arms=(3, 1, 2))
        table = pl.DataFrame({"1": [0.2] * HORIZON, "2": [0.1] * HORIZON, "3": [0.7] * HORIZON})
        (policy,) = PolicyValue(log, table).policies
        np.testing.assert_allclose(policy.probabilities[0], [0.7, 0.2, 0.1])

    def test_labelled_snapshots(self) -> None:
        log = make_log("contextual")
        arms, other = list("abc"), list("cab")

        def late(frame: pd.DataFrame) -> pd.DataFrame:
            return pd.DataFrame(by_context(frame), frame.index, arms)[other]

        turned = [pd.Series(np.full(3, 1 / 3), index=other), late]
        by_label = PolicyValue(log, sign).fit("stable-variance", snapshots=PolicySnapshots([0, HALF], turned))
        by_place = PolicyValue(log, sign).fit("stable-variance", snapshots=SNAPSHOTS)
        np.testing.assert_array_equal(by_label.estimate, by_place.estimate)
        wrong = [pd.Series(np.full(3, 1 / 3), index=list("abd")), *turned[1:]]
        with pytest.raises(ParameterError, match="are not the arms"):
            PolicyValue(log, sign).fit(snapshots=PolicySnapshots([0, HALF], wrong))

    def test_names_of_mappings(self) -> None:
        given = ["a", {"b": 1.0}, {"a": 0.25, "c": 0.75}, {"a": np.ones(HORIZON)}]
        names = [policy.name for policy in PolicyValue(make_log(), given).policies]
        assert names == ["a", "{b: 1}", "{a: 0.25, c: 0.75}", "policy 4"]

    def test_columns_of_the_log(self) -> None:
        rng = np.random.default_rng(0)
        share = rng.uniform(size=50)
        frame = pd.DataFrame(
            {
                "arm": rng.choice(["a", "b"], size=50),
                "y": rng.normal(size=50),
                "p": 0.5,
                "wa": share,
                "wb": 1 - share,
            }
        )
        log = AdaptiveLog(frame, action="arm", reward="y", propensity="p", context=["wa", "wb"])
        result = PolicyValue(log, {"a": "wa", "b": "wb"}).fit(estimator="ipw")
        taken = np.where(frame["arm"] == "a", share, 1 - share)
        assert result.estimate[0] == pytest.approx(np.mean(taken * frame["y"] / 0.5), rel=1e-12)

    def test_terms_and_estimands(self) -> None:
        log = make_log()
        result = PolicyValue(log, ["a", sign, LATE]).fit(weights="uniform")
        assert result.terms == ("a", "sign", "policy 3")
        assert result.model == "PolicyValue"
        assert result.estimands[1] == Estimand("policy-value", arm="sign")
        contrast = PolicyContrast(log, sign, baseline="uniform").fit(weights="uniform")
        assert contrast.terms == ("sign - uniform",)
        assert contrast.estimands == (Estimand("policy-contrast", treatment="sign", control="uniform"),)
        joint = PolicyValue(log, [sign, "uniform"]).fit(weights="uniform")
        cov = joint.cov_params().to_numpy()
        assert contrast.std_error[0] == pytest.approx(
            np.sqrt(cov[0, 0] + cov[1, 1] - 2 * cov[0, 1]), rel=1e-12
        )

    def test_outcome_models(self) -> None:
        log = make_log("contextual")
        given = np.zeros((HORIZON, 3))
        options = {"weights": "stable-variance", "snapshots": SNAPSHOTS}
        zero = PolicyValue(log, sign).fit(outcome=given, **options)
        ipw = PolicyValue(log, sign).fit(estimator="ipw", **options)
        np.testing.assert_allclose(zero.estimate, ipw.estimate, rtol=1e-12)
        assert says(zero.notes, outcome_models.OWN)
        ridge = PolicyValue(log, sign).fit(outcome="running-ridge", ridge=2.0, **options)
        assert says(ridge.notes, outcome_models.RIDGE, penalty=2.0)
        assert ridge.std_error[0] < ipw.std_error[0]
        shifted = np.full((HORIZON, 3), 0.5)
        by_hand = 0.5 + sign(log.frame)[np.arange(HORIZON), log.arrays.action] / log.arrays.propensity * (
            log.arrays.reward - 0.5
        )
        kept = PolicyValue(log, sign).fit(outcome=shifted, keep_scores=True, **options)
        np.testing.assert_allclose(kept.scores["scores"][:, 0], by_hand, rtol=1e-12)


class Labelled:
    """A model that labels its own columns, in another order than its classes."""

    classes_ = np.array(["a", "b", "c"])

    def predict_proba(self, frame: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame(sign(frame)[:, [1, 2, 0]], columns=["b", "c", "a"])


class Model:
    """Looks like a fitted classifier whose classes are in another order than the arms."""

    def __init__(self, classes: list[str]) -> None:
        self.classes_ = np.array(classes)

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        return sign(frame)[:, [ARMS.index(arm) for arm in self.classes_ if arm in ARMS]]


class TestDefaults:
    def test_uniform_values_and_combined_contrasts(self) -> None:
        for log in (make_log("contextual"), make_log("two batches", context=False)):
            policy = sign if log.context else "a"
            for given in ({}, {"snapshots": SNAPSHOTS}) if log.context else ({},):
                assert PolicyValue(log, policy).fit(**given).weights == "uniform"
                assert PolicyContrast(log, policy, baseline="b").fit(**given).weights == "combined"
            shown = PolicyValue(log, policy).fit(
                snapshots=SNAPSHOTS if log.context else None, contextual=True
            )
            assert shown.weights == "stable-variance, contextual"

    def test_stationary_stable_variance_where_the_design_is_known_at_all_contexts(self) -> None:
        contextual = make_log("contextual")
        assert PolicyValue(contextual, sign).fit(stationary=True).weights == "uniform"
        given = PolicyValue(contextual, sign).fit(snapshots=SNAPSHOTS, stationary=True)
        assert given.weights == "stable-variance, non-contextual"
        asked = PolicyValue(contextual, sign).fit("stable-variance", True, snapshots=SNAPSHOTS)
        assert asked.weights == "stable-variance, contextual"
        assert says(PolicyValue(contextual, sign).fit().notes, claims.POLICIES_FIRST)
        for claim in (claims.SETTLING, claims.UNSETTLED_TOO):
            assert says(asked.notes, claim)
            assert not says(given.notes, claim)
        without = make_log("two batches", context=False)
        assert PolicyValue(without, "a").fit(stationary=True).weights == "stable-variance, non-contextual"
        ours = make_log("two batches", design=designs.Thompson(batch_size=10).record())
        assert PolicyValue(ours, sign).fit(stationary=True).weights == "stable-variance, non-contextual"
        only_named = make_log("two batches", design=DesignRecord("Thompson", {}))
        assert PolicyValue(only_named, sign).fit(stationary=True).weights == "uniform"
        wrapped = make_log("two batches", design=designs.Mixture(designs.LinUCB(), 0.2).record())
        assert PolicyValue(wrapped, sign).fit(stationary=True).weights == "uniform"

    def test_the_chosen_arms_propensity_allows_uniform_weights(self) -> None:
        log, every = make_log("contextual", chosen_only=True), make_log("contextual")
        few, all_of_them = (PolicyValue(one, sign).fit() for one in (log, every))
        assert few.estimate[0] == all_of_them.estimate[0]
        assert says(few.notes, claims.CHOSEN_ALONE)
        assert not says(all_of_them.notes, claims.CHOSEN_ALONE)
        assert PolicyContrast(log, sign, baseline="c").fit().weights == "uniform"
        known = PolicyContrast(log, sign, baseline="c").fit(snapshots=SNAPSHOTS)
        told = PolicyContrast(every, sign, baseline="c").fit(snapshots=SNAPSHOTS)
        assert known.weights == "combined"
        np.testing.assert_array_equal(known.estimate, told.estimate)

    def test_a_design_of_ours(self) -> None:
        log = EpsilonGreedy(exploration=0.3, decay=0.0, batch_size=50).run(
            BernoulliArms([0.3, 0.6]), horizon=400, rng=2
        )
        result = PolicyValue(log, [1, "uniform"]).fit(stationary=True)
        text = str(result.summary())
        assert "PolicyValue Results" in text
        assert "stable-variance, non-contextual" in text
        assert np.all(np.isfinite(result.conf_int()))


class TestNumericalCare:
    def test_small_propensities_warn_with_the_effective_sample_size(self) -> None:
        log = make_log("two batches")
        tiny = log.arrays.propensities.copy()
        tiny[10] = [1e-6, 0.5, 0.5 - 1e-6]
        action = log.arrays.action.copy()
        action[10] = 0
        arrays = LogArrays(
            action=action,
            reward=log.arrays.reward,
            propensity=tiny[np.arange(HORIZON), action],
            propensities=tiny,
        )
        rare = AdaptiveLog.from_arrays(arrays, arms=ARMS, context_free=True)
        with pytest.warns(AdaptinfWarning) as caught:
            uniform = PolicyValue(rare, "a").fit(weights="uniform")
        assert uniform.min_propensity == 1e-6
        assert uniform.ess.iloc[0] == pytest.approx(1.0, abs=0.05)
        assert says(uniform.cautions, claims.TINY_PROPENSITY, least=1e-6, size=uniform.ess.iloc[0])
        assert {str(one.message) for one in caught} <= {f"{caution}." for caution in uniform.cautions}
        with pytest.warns(AdaptinfWarning):
            stable = PolicyValue(rare, "a").fit(weights="min-variance")
        assert says(stable.cautions, claims.TINY_PROPENSITY, least=1e-6)
        assert stable.ess.iloc[0] > 50
        PolicyValue(rare, "b").fit()

    def test_an_effective_sample_that_holds_few_events(self) -> None:
        rng = np.random.default_rng(11)
        rounds, share = 4_000, 0.02
        action = (rng.random(rounds) < share).astype(np.int64)
        arrays = LogArrays(
            action=action,
            reward=(rng.random(rounds) < 0.05).astype(float),
            propensity=np.where(action == 1, share, 1.0 - share),
            propensities=np.tile([1.0 - share, share], (rounds, 1)),
        )
        log = AdaptiveLog.from_arrays(arrays, arms=("common", "rare"))
        size, rate = action.sum(), arrays.reward.mean()
        result = PolicyValue(log, "rare").fit(weights="uniform")
        assert result.ess.iloc[0] == pytest.approx(size)
        assert result.cautions == ()
        assert arrays.reward[action == 1].sum() == 3
        assert says(result.notes, rare_outcomes.COUNTED, terms="rare (3.0)", enough=10)
        with pytest.warns(AdaptinfWarning) as caught:
            result = PolicyValue(log, "rare").fit(weights="uniform", outcome=np.full((rounds, 2), 0.9))
        told = {"size": size, "rate": rate, "worth": size * rate}
        told = {name: pytest.approx(value) for name, value in told.items()}
        assert says(result.cautions[0], claims.FEW_EVENTS, enough=10, **told)
        assert str(caught[0].message) == f"{result.cautions[0]}."
        means = ArmMeans(log).fit("aipw", "uniform")
        arms = " ".join((*means.notes, *means.cautions))
        assert "rare (" in arms
        assert "common (" not in arms
        PolicyValue(log, "common").fit(weights="uniform")

    def test_an_arm_that_was_never_chosen(self) -> None:
        log = make_log()
        keep = log.arrays.action != 2
        arrays = LogArrays(
            action=log.arrays.action[keep],
            reward=log.arrays.reward[keep],
            propensity=np.full(keep.sum(), 1 / 3),
            propensities=np.full((keep.sum(), 3), 1 / 3),
        )
        short = AdaptiveLog.from_arrays(arrays, arms=ARMS)
        result = PolicyValue(short, ["a", "c", "uniform", np.array([0.5, 0.499, 0.001])]).fit()
        np.testing.assert_array_equal(np.isnan(result.estimate), [False, True, True, False])
        np.testing.assert_array_equal(np.isnan(result.std_error), [False, True, True, False])
        assert says(result.notes, claims.NEVER_CHOSEN, policy="c", share=1.0, arms="c")
        (left,) = [note for note in result.notes if says(note, claims.LEFT_OUT)]
        assert (left.values["policy"], left.values["share"]) == ("policy 4", pytest.approx(0.001))
        contrast = PolicyContrast(short, ["a", "b"], baseline="c").fit()
        assert np.isnan(contrast.estimate).all()

    @pytest.mark.parametrize("options", [*ALL_WEIGHTS, {"estimator": "cadr"}])
    def test_one_round_gives_an_answer_or_a_reason(self, options: dict[str, Any]) -> None:
        arrays = LogArrays(
            action=np.array([0]),
            reward=np.array([2.0]),
            propensity=np.array([0.5]),
            propensities=np.array([[0.5, 0.5]]),
        )
        log = AdaptiveLog.from_arrays(arrays, arms=("a", "b"))
        result = PolicyValue(log, {"a": np.array([0.7]), "b": np.array([0.3])}).fit(**options)
        assert np.isnan(result.pvalues).all()
        assert says(result.notes, claims.NEVER_CHOSEN, arms="b")
        result = PolicyValue(log, "a").fit(**options)
        assert np.isnan(result.pvalues).all()
        assert says(result.notes, claims.CHOSEN_ONCE) or says(result.notes, claims.UNWEIGHTED)

    @pytest.mark.parametrize("options", [*ALL_WEIGHTS, {"estimator": "cadr"}])
    def test_constant_rewards(self, options: dict[str, Any]) -> None:
        log = make_log("two batches")
        arrays = LogArrays(
            action=log.arrays.action,
            reward=np.zeros(HORIZON),
            propensity=log.arrays.propensity,
            propensities=log.arrays.propensities,
        )
        result = PolicyValue(AdaptiveLog.from_arrays(arrays, arms=ARMS), "a").fit(**options)
        assert np.isnan(result.pvalues).all()
        assert says(result.notes, claims.CONSTANT) or says(result.notes, claims.UNWEIGHTED)

    def test_a_batch_that_cannot_serve_other_contexts_gets_no_weight_there(self) -> None:
        log = make_log("contextual")
        x = log.arrays.context["x"]
        rows = by_context(pd.DataFrame({"x": x}))
        rows[:HALF] = [0.0, 0.4, 0.6]
        options = {"snapshots": PolicySnapshots([0, HALF], [np.full(3, 1 / 3), rows]), "keep_scores": True}
        shares = PolicyValue(log, "a").fit(contextual=True, **options).scores["weights"][:, 0]
        # The first round has no weight; the shares are divided by their sum.
        first, second = 3**-0.5, np.sqrt(rows[HALF:, 0])
        expected = np.append(np.full(HALF, 1 / (HALF - 1)), second / ((HALF - 1) * first + HALF * second))
        expected[0] = 0.0
        assert np.all(rows[HALF:, 0] > 0)
        np.testing.assert_allclose(shares, expected / expected.sum(), rtol=1e-12)
        weights = PolicyValue(log, "a").fit(contextual=False, **options).scores["weights"][:, 0]
        early = (np.arange(HORIZON) > 0) & (np.arange(HORIZON) < HALF)
        np.testing.assert_allclose(weights, np.where(early, 3**-0.5, 0.0), rtol=1e-12)
        weights = PolicyValue(log, "a").fit(estimator="cadr", burn_in=10, **options).scores["weights"][:, 0]
        assert np.all(weights[10:HALF] > 0)
        assert np.all(weights[HALF:] == 0)

    @pytest.mark.parametrize("options", [*ALL_WEIGHTS[1:], {"estimator": "cadr"}])
    def test_arms_closed_in_one_batch_that_the_policy_takes_in_another(self, options: dict[str, Any]) -> None:
        rng = np.random.default_rng(5)
        x = rng.normal(size=HORIZON) + np.where(np.arange(HORIZON) < HALF, -9.0, 9.0)
        rows = np.array([[0.4, 0.6, 0.0], [0.2, 0.3, 0.5]])
        propensities = np.repeat(rows, HALF, axis=0)
        action = np.array([rng.choice(3, p=p) for p in propensities])
        arrays = LogArrays(
            action=action,
            reward=rng.normal(size=HORIZON),
            propensity=propensities[np.arange(HORIZON), action],
            propensities=propensities,
            context={"x": x},
        )
        log = AdaptiveLog.from_arrays(arrays, arms=ARMS)

        def late_third(frame: pd.DataFrame) -> np.ndarray:
            third = (frame["x"] > 0).to_numpy(float)
            return np.column_stack([1 - third, 0 * third, third])

        policies = [lambda f, row=row: np.tile(row, (len(f), 1)) for row in rows]
        forms = ["context-free", PolicySnapshots([0, HALF], policies)]
        fits = [
            PolicyValue(log, late_third).fit(snapshots=form, keep_scores=True, **options) for form in forms
        ]
        np.testing.assert_allclose(fits[0].estimate, fits[1].estimate, rtol=1e-9)
        np.testing.assert_allclose(fits[0].std_error, fits[1].std_error, rtol=1e-9)
        weights = fits[1].scores["weights"][:, 0]
        if options.get("contextual"):
            first, second = np.array([0.4, 0.2]) ** (0.5 if options["weights"] == "stable-variance" else 1)
            # The first round has no weight; the shares are divided by their sum.
            expected = np.full(HORIZON, 1 / HALF)
            expected[:HALF] = first / ((HALF - 1) * first + HALF * second)
            expected[0] = 0.0
            np.testing.assert_allclose(weights, expected / expected.sum(), rtol=1e-12)
        else:
            assert np.count_nonzero(weights) >= HORIZON - 30


class TestScale:
    @pytest.mark.slow
    def test_memory_does_not_grow_with_the_number_of_batches(self) -> None:
        horizon, batches = 100_000, 50
        rng = np.random.default_rng(0)
        x = rng.normal(size=horizon)
        slopes = np.repeat(rng.normal(size=batches), horizon // batches)
        first = 0.1 + 0.8 / (1 + np.exp(-slopes * x))
        propensities = np.column_stack([first, 1 - first])
        action = (rng.random(horizon) > first).astype(np.int64)
        arrays = LogArrays(
            action=action,
            reward=rng.normal(size=horizon),
            propensity=propensities[np.arange(horizon), action],
            propensities=propensities,
            context={"x": x},
        )
        log = AdaptiveLog.from_arrays(arrays, arms=("a", "b"))

        def snapshot(slope: float) -> Callable[[pd.DataFrame], np.ndarray]:
            def policy(frame: pd.DataFrame) -> np.ndarray:
                one = 0.1 + 0.8 / (1 + np.exp(-slope * frame["x"].to_numpy()))
                return np.column_stack([one, 1 - one])

            return policy

        starts = np.arange(0, horizon, horizon // batches)
        snapshots = PolicySnapshots(starts, [snapshot(slopes[s]) for s in starts])
        model = PolicyValue(log, lambda f: sign(f)[:, :2])
        tracemalloc.start()
        for options in (ALL_WEIGHTS[3], ALL_WEIGHTS[4], {"estimator": "cadr"}):
            model.fit(snapshots=snapshots, **options)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 0.6 * 8 * horizon * batches


class TestLaws:
    @pytest.mark.parametrize("options", [{}, *ALL_WEIGHTS, {"estimator": "cadr"}])
    @pytest.mark.parametrize(("shift", "scale"), [(1e6, 1.0), (0.0, 1e9), (0.0, 1e-9)])
    def test_values_do_not_depend_on_where_rewards_start(
        self, options: dict[str, Any], shift: float, scale: float
    ) -> None:
        log = make_log("contextual")
        arrays = log.arrays
        moved = LogArrays(
            arrays.action,
            arrays.reward * scale + shift,
            propensity=arrays.propensity,
            propensities=arrays.propensities,
            context=arrays.context,
        )
        logs = log, AdaptiveLog.from_arrays(moved, arms=ARMS)
        for added, fit in (
            (shift, lambda one: PolicyValue(one, [sign, "a"]).fit(snapshots=SNAPSHOTS, **options)),
            (0.0, lambda one: PolicyContrast(one, sign, baseline="a").fit(snapshots=SNAPSHOTS, **options)),
        ):
            plain, other = (fit(one) for one in logs)
            gap = np.abs((other.estimate - added) / scale - plain.estimate) / plain.std_error
            assert gap.max() < (1e-8 if shift else 1e-9)
            np.testing.assert_allclose(other.std_error / scale, plain.std_error, rtol=1e-9)
            np.testing.assert_allclose(other.reference.df, plain.reference.df, rtol=1e-9)

    def test_one_arm_has_the_degrees_of_freedom_of_its_mean(self) -> None:
        log = make_log("every round", context=False)
        policy = PolicyValue(log, list(log.arms)).fit("stable-variance", contextual=False)
        arm = ArmMeans(log).fit("aipw", "sqrt")
        np.testing.assert_allclose(policy.reference.df, arm.reference.df, rtol=1e-12)
        pair = PolicyContrast(log, "b", baseline="a").fit("stable-variance", contextual=False)
        assert pair.reference.df[0] == pytest.approx(arm.reference.df[:2].min(), rel=1e-12)

    def test_a_mixture_that_differs_by_a_rare_arm_rests_on_its_rewards(self) -> None:
        share = np.zeros((1000, 1))
        share[:10], share[10:] = -5.0, 0.95 / 0.99
        assert policy_freedom(share)[0] == pytest.approx(9.0)
        share[:10] = -1e-3
        assert policy_freedom(share)[0] == pytest.approx(989.0)
        np.testing.assert_array_equal(policy_freedom(np.zeros((5, 2))), [0.0, 0.0])

    def test_few_effective_rewards_are_cautioned(self) -> None:
        log = make_log("two batches")
        assert PolicyValue(log, "uniform").fit().cautions == ()
        few = PolicyValue(log, "uniform", rounds=np.arange(HORIZON) < 15).fit()
        assert says(few.cautions[0], FEW_EFFECTIVE, term="uniform", enough=20)
        assert few.cautions[0].values["worth"] < 20.0
