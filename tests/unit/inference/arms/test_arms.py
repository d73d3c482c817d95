"""Arm means and contrasts: defaults, refusals, corrected columns, and reasons for what is missing."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pytest
from claims_said import says

from adaptinf import designs
from adaptinf.claims import contexts, policies, propensities, rare_outcomes
from adaptinf.claims.arms import arm_fits, sample_means, weighted_arms
from adaptinf.claims.data import availability
from adaptinf.designs import UCB, ConSE, DPConSE
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.inference.arms.choice import default_estimator
from adaptinf.inference.arms.question import Choice
from adaptinf.inference.corrections.information_of_log import correction_for
from adaptinf.inference.distributions.bounded import BoundedDifferenceReference
from adaptinf.inference.distributions.references import (
    BinomialReference,
    NormalReference,
    StudentReference,
)
from adaptinf.inference.policies.policy_models import PolicyValue
from adaptinf.inference.recommend.recommendation import recommend
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.validity.methods import Verdict
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.simulation.environments import FiniteContext

ARMS = ("a", "b", "c")
HORIZON = 300
FLOOR = designs.Thompson(floor=(1 / 3, 0.7)).record()

NAIVE = arm_fits.BASELINE(name="sample-mean", where="under adaptivity")


def make_log(
    propensities: str = "all",
    *,
    binary: bool = True,
    arms: tuple[Any, ...] = ARMS,
    zero: int | None = None,
    **metadata: Any,
) -> AdaptiveLog:
    """A log with the propensities of all arms, of the chosen one, or of none."""
    rng = np.random.default_rng(12)
    probabilities = rng.dirichlet([3.0, 3.0, 3.0], size=HORIZON)
    if zero is not None:
        probabilities[:5, zero] = 0.0
        probabilities /= probabilities.sum(axis=1, keepdims=True)
    action = np.array([rng.choice(3, p=p) for p in probabilities])
    rate = np.array([0.3, 0.5, 0.7])[action]
    reward = rng.binomial(1, rate).astype(float) if binary else rng.normal(rate)
    full = np.column_stack([probabilities, np.zeros((HORIZON, len(arms) - 3))])
    arrays = LogArrays(
        action=action,
        reward=reward,
        propensity=None if propensities == "none" else full[np.arange(HORIZON), action],
        propensities=full if propensities == "all" else None,
    )
    return AdaptiveLog.from_arrays(arrays, arms=arms, **metadata)


def notes(result: Any) -> str:
    return " ".join(result.notes)


class TestRareArms:
    """Arms of which too little was seen for a standard error."""

    @staticmethod
    def log(reward: list[float], action: list[int]) -> AdaptiveLog:
        n = len(action)
        p = np.full((n, 2), 0.5)
        p[1:] = [0.99, 0.01]
        codes = np.array(action)
        own = p[np.arange(n), codes]
        arrays = LogArrays(action=codes, reward=np.array(reward), propensity=own, propensities=p)
        return AdaptiveLog.from_arrays(arrays, arms=("a", "b"), context_free=True)

    def test_one_reward_has_no_spread(self) -> None:
        rng = np.random.default_rng(5)
        log = self.log(rng.normal(size=500).tolist(), [1] + [0] * 499)
        means = ArmMeans(log).fit("aipw", "sqrt")
        assert np.isfinite(means.estimate).all()
        assert np.isfinite(means.std_error[0])
        assert np.isnan(means.std_error[1])
        assert says(means.notes, arm_fits.CHOSEN_ONCE, arm="b")
        contrast = Contrast(log, treatment="b", control="a").fit("aipw", "sqrt")
        assert np.isfinite(contrast.estimate[0])
        assert np.isnan(contrast.conf_int().to_numpy()).all()
        value = PolicyValue(log, ["b", "a"]).fit()
        assert np.isfinite(value.estimate).all()
        np.testing.assert_array_equal(np.isnan(value.std_error), [True, False])
        assert says(value.notes, policies.CHOSEN_ONCE, policy="b")

    def test_few_rewards_are_said_to_be_few(self) -> None:
        rng = np.random.default_rng(6)
        log = self.log(rng.normal(size=500).tolist(), [1, 1, 1] + [0] * 497)
        result = ArmMeans(log).fit("aipw", "sqrt", stationary=True)
        assert says(result.cautions[0], propensities.FEW_EFFECTIVE, term="b", enough=20)
        assert result.cautions[0].values["worth"] == pytest.approx(2.0)
        assert not ArmMeans(log, ["a"]).fit("aipw", "sqrt", stationary=True).cautions
        assert result.reference.df[1] == pytest.approx(1.0, abs=1e-9)  # the first round has no weight

    def test_a_difference_from_an_arm_without_spread_has_an_interval_by_counts(self) -> None:
        rng = np.random.default_rng(7)
        reward = np.concatenate([np.zeros(40), rng.binomial(1, 0.1, 460)]).astype(float)
        log = self.log(reward.tolist(), [1] * 40 + [0] * 460)
        contrast = Contrast(log, treatment="a", control="b").fit("aipw", "uniform")
        assert np.isfinite(contrast.estimate[0])
        assert np.isnan(contrast.std_error[0])
        assert np.isfinite(contrast.conf_int().to_numpy()).all()
        assert says(contrast.notes, rare_outcomes.COUNTED)
        plain = Contrast(log, treatment="a", control="b").fit("aipw", "uniform", test="t")
        assert np.isnan(plain.pvalues.iloc[0])
        assert says(plain.cautions, rare_outcomes.UNVARYING)


class TestDefault:
    def test_every_propensity(self) -> None:
        assert default_estimator(make_log()) == Choice("aipw", "joint", None)
        assert ArmMeans(make_log()).fit(stationary=True).weights == "sqrt"

    @staticmethod
    def reason(verdict: Verdict) -> str:
        return f"{verdict.reason}. Caution: {verdict.warning}" if verdict.warning else verdict.reason

    def test_the_table_says_why(self) -> None:
        log = make_log()
        reason = self.reason(recommend(log).best.verdict)
        assert says(ArmMeans(log).fit().notes, arm_fits.CHOSEN, data="log", reason=reason)
        pair = {"treatment": "b", "control": "a"}
        reason = self.reason(recommend(log, "contrast", **pair).best.verdict)
        assert says(Contrast(log, **pair).fit().notes, arm_fits.CHOSEN, data="log", reason=reason)
        assert not says(ArmMeans(log).fit("aipw", "sqrt").notes, arm_fits.CHOSEN)

    def test_a_floor_of_known_decay(self) -> None:
        log = make_log(design=designs.Thompson(floor=(1 / 3, 0.7)).record())
        assert default_estimator(log) == Choice("aipw", "joint", None)
        assert ArmMeans(log).fit(stationary=True).weights == "two-point"

    @pytest.mark.parametrize("floor", [None, 0.05, (0.3, 1.0)])
    def test_a_floor_without_a_usable_decay(self, floor: Any) -> None:
        log = make_log(design=designs.Thompson(floor=floor).record())
        assert default_estimator(log) == Choice("aipw", "joint", None)
        assert ArmMeans(log).fit(stationary=True).weights == "sqrt"

    def test_the_chosen_arms_propensity(self) -> None:
        assert default_estimator(make_log("chosen", design=FLOOR)) == Choice("aipw", "uniform", None)
        fixed = make_log("chosen", feedback_rounds=0)
        assert default_estimator(fixed) == Choice("aipw", "uniform", None)

    def test_no_propensity(self) -> None:
        assert default_estimator(make_log("none")) == Choice("alee", None, None)
        assert default_estimator(make_log("none", feedback_rounds=0)) == Choice("sample-mean", None, None)

    def test_a_zero_propensity_counts_for_its_own_arm_only(self) -> None:
        log = make_log(zero=1)
        assert default_estimator(log).estimator == "aipw"
        learned = make_log(zero=1, design=designs.Thompson(floor=None).record())
        assert default_estimator(learned).estimator == "alee"
        assert default_estimator(learned, ["a", "c"]).estimator == "aipw"

    def test_fit_takes_it(self) -> None:
        for log in (make_log(), make_log("chosen"), make_log("none"), make_log(design=FLOOR)):
            choice = default_estimator(log)
            contrast = Contrast(log, treatment="b", control="a")
            own = [ArmMeans(log).fit(stationary=True), contrast.fit(stationary=True)]
            assert own[0].weights == own[1].weights
            for result in (ArmMeans(log).fit(), *own):
                assert result.estimator == choice.estimator
            assert ArmMeans(log).fit().weights == choice.weights
            shared = choice.weights == "joint"
            assert contrast.fit().weights == ("combined" if shared else choice.weights)
            assert own[0].weights in (("sqrt", "two-point") if shared else (choice.weights,))

    def test_a_contrast_has_a_default_of_its_own(self) -> None:
        rng = np.random.default_rng(3)
        batch = np.repeat([0, 1], 500)
        action = rng.binomial(1, np.where(batch == 0, 0.2, 0.8))
        reward = rng.normal(0.3 * action)
        arrays = LogArrays(action=action, reward=reward, batch=batch)
        log = AdaptiveLog.from_arrays(arrays, arms=("a", "b"), adaptive=False)
        pair = {"treatment": "b", "control": "a"}
        assert ArmMeans(log).fit().estimator == default_estimator(log).estimator == "sample-mean"
        assert recommend(log).best.verdict.arguments == {"estimator": "sample-mean"}
        assert Contrast(log, **pair).fit().estimator == "batched"
        assert recommend(log, "contrast", **pair).best.verdict.arguments == {"estimator": "batched"}

    def test_weights_or_decay_alone_mean_aipw(self) -> None:
        result = ArmMeans(make_log()).fit(decay=0.5)
        assert (result.estimator, result.weights) == ("aipw", "two-point")
        asked = ArmMeans(make_log()).fit("aipw", "two-point", decay=0.5)
        np.testing.assert_array_equal(result.estimate, asked.estimate)
        assert ArmMeans(make_log()).fit(weights="uniform").weights == "uniform"


class TestRefusals:
    @pytest.mark.parametrize("estimator", ["ipw", "aipw"])
    def test_no_propensities(self, estimator: str) -> None:
        with pytest.raises(InvalidForLog, match=re.escape(propensities.NEEDED())) as caught:
            ArmMeans(make_log("none")).fit(estimator)
        assert caught.value.alternatives == ("alee", NAIVE)

    @pytest.mark.parametrize("weights", ["sqrt", "two-point"])
    def test_stabilised_weights_need_every_propensity(self, weights: str) -> None:
        with pytest.raises(InvalidForLog, match=re.escape(propensities.EVERY_ONE_NEEDED())) as caught:
            ArmMeans(make_log("chosen", design=FLOOR)).fit("aipw", weights)
        assert caught.value.alternatives == (
            "aipw with uniform weights",
            "alee",
            "ipw with uniform weights",
            NAIVE,
        )

    @pytest.mark.parametrize("design", [ConSE(), DPConSE(epsilon=1.0)])
    @pytest.mark.parametrize("estimator", [None, "sample-mean"])
    def test_sample_means_of_a_design_that_looks_at_the_context(self, design, estimator) -> None:
        environment = FiniteContext([0.5, 0.5], [[0.1, 0.9], [0.9, 0.1]])
        log = design.run(environment, horizon=8_000, rng=0)
        for model in (ArmMeans(log), Contrast(log, treatment=1, control=0)):
            with pytest.raises(InvalidForLog) as caught:
                model.fit(estimator)
            assert says(caught.value.reason, contexts.BY_DESIGN, design=type(design).__name__)
            assert caught.value.alternatives == (contexts.WITHIN_GROUPS(contexts="feature"),)

    def test_contexts_are_a_reservation_of_sample_means(self) -> None:
        environment = FiniteContext([0.5, 0.5], [[0.1, 0.2], [0.9, 0.8]])
        log = UCB().run(environment, horizon=400, rng=0)
        assert says(ArmMeans(log).fit("sample-mean").notes, sample_means.MIXED)
        assert not says(ArmMeans(make_log()).fit("sample-mean").notes, sample_means.MIXED)

    def test_zero_propensities(self) -> None:
        log = make_log(zero=1, design=designs.Thompson(floor=None).record())
        with pytest.raises(InvalidForLog) as caught:
            ArmMeans(log).fit("aipw", "uniform")
        assert says(caught.value.reason, availability.TAKEN_AWAY, arm="b", n=5, rounds=300)
        assert NAIVE in caught.value.alternatives
        with pytest.raises(InvalidForLog) as caught:
            Contrast(log, treatment="a", control="b").fit("ipw")
        assert says(caught.value.reason, availability.TAKEN_AWAY, arm="b")
        assert np.isfinite(Contrast(log, treatment="a", control="c").fit("aipw").estimate).all()

    def test_a_sure_choice_leaves_nothing_for_the_others(self) -> None:
        arrays = LogArrays(
            action=np.array([0, 1, 0, 1]), reward=np.ones(4), propensity=np.array([0.5, 0.5, 1.0, 1.0])
        )
        log = AdaptiveLog.from_arrays(arrays, arms=("a", "b"))
        result = ArmMeans(log).fit("ipw")
        np.testing.assert_allclose(result.estimate, [(2.0 + 1.0) / 3, (2.0 + 1.0) / 3])
        assert says(result.notes, availability.LEFT_OUT, rounds=4, left="1 for a, 1 for b")
        assert Contrast(log, treatment="b", control="a").fit("ipw").estimate[0] == 0.0

    def test_two_point_needs_a_decay(self) -> None:
        with pytest.raises(ParameterError, match="two-point weights require decay="):
            ArmMeans(make_log()).fit("aipw", "two-point")

    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            (
                {"estimator": "ols"},
                "estimator must be one of 'sample-mean', 'ipw', 'aipw', 'alee', got 'ols'",
            ),
            (
                {"weights": "best"},
                "weights must be one of 'joint', 'uniform', 'sqrt', 'two-point', 'combined', got 'best'",
            ),
            ({"estimator": "sample-mean", "weights": "sqrt"}, "weights do not apply to sample means"),
            ({"estimator": "sample-mean", "decay": 0.5}, "weights do not apply to sample means"),
            ({"weights": "sqrt", "decay": 0.5}, "decay applies to two-point weights, not to sqrt"),
            ({"weights": "two-point", "decay": 1.0}, r"decay must be in \[0, 1\), got 1.0"),
            ({"weights": "two-point", "decay": -0.1}, r"decay must be in \[0, 1\), got -0.1"),
            ({"test": "welch"}, "test must be one of 'auto', 'normal', 't', 'hall', 'exact', got 'welch'"),
            ({"null": float("nan")}, "null must be a finite number, got nan"),
        ],
    )
    def test_arguments(self, arguments: dict[str, Any], problem: str) -> None:
        for model in (ArmMeans(make_log()), Contrast(make_log(), treatment="a", control="b")):
            with pytest.raises(ParameterError, match=problem):
                model.fit(**arguments)

    def test_all_problems_at_once(self) -> None:
        with pytest.raises(ParameterError) as caught:
            ArmMeans(make_log()).fit("ols", "best", decay=2.0)
        assert len(caught.value.problems) == 3

    def test_arms(self) -> None:
        log = make_log()
        with pytest.raises(ParameterError, match="there is no arm 'z'; the log has 'a', 'b', 'c'"):
            ArmMeans(log, arms=["a", "z"])
        with pytest.raises(ParameterError, match="named more than once"):
            Contrast(log, treatment="a", control="a")
        with pytest.raises(ParameterError, match="name at least one arm"):
            ArmMeans(log, arms=[])

    def test_exact_tests_need_sample_means_of_binary_rewards(self) -> None:
        with pytest.raises(InvalidForLog, match="they apply to sample means"):
            ArmMeans(make_log()).fit("aipw", test="exact")
        with pytest.raises(InvalidForLog, match="two values"):
            ArmMeans(make_log(binary=False)).fit("sample-mean", test="exact")


class TestCorrection:
    guarantee = PrivacyGuarantee(epsilon=0.1)

    def test_sample_means_of_a_private_adaptive_log(self) -> None:
        for design in (None, FLOOR):
            log = make_log(guarantee=self.guarantee, design=design)
            result = ArmMeans(log).fit("sample-mean", null=0.5)
            correction = correction_for(log)
            assert result.correction == correction is not None
            expected = correction.apply(result.reference.log_pvalues(0.5))
            np.testing.assert_allclose(result.log_pvalues_corrected, expected, rtol=1e-15)
            assert isinstance(result.reference, BinomialReference)
            worth = sample_means.ACCOUNTED()
            assert says(result.notes, sample_means.OPENING, worth=worth)

    def test_feedback_rounds_are_what_counts(self) -> None:
        log = make_log(guarantee=self.guarantee, feedback_rounds=40)
        result = ArmMeans(log).fit("sample-mean")
        assert result.correction is not None
        assert result.correction.n == 40

    @pytest.mark.parametrize("estimator", ["ipw", "aipw"])
    def test_inverse_weighting_needs_none(self, estimator: str) -> None:
        assert ArmMeans(make_log(guarantee=self.guarantee)).fit(estimator).correction is None

    @pytest.mark.parametrize("metadata", [{"design": designs.Uniform().record()}, {"feedback_rounds": 0}])
    def test_a_design_that_does_not_adapt_needs_none(self, metadata: dict[str, Any]) -> None:
        log = make_log("none", guarantee=self.guarantee, **metadata)
        result = ArmMeans(log).fit("sample-mean")
        assert result.correction is None
        assert isinstance(result.reference, StudentReference)
        worth = sample_means.NOT_DUE(why=profile_of(log).why_not_adaptive)
        assert says(result.notes, sample_means.OPENING, worth=worth)

    def test_a_refused_correction_has_its_reason(self) -> None:
        log = make_log(guarantee=PrivacyGuarantee(epsilon=0.1, delta=1e-6))
        result = ArmMeans(log).fit("sample-mean")
        assert result.correction is None
        reason = profile_of(log).no_correction
        assert "delta = 1e-06 is positive" in reason
        assert says(result.notes, sample_means.UNCORRECTED, reason=reason)

    def test_without_a_guarantee_sample_means_are_naive(self) -> None:
        result = Contrast(make_log("none"), treatment="b", control="a").fit("sample-mean")
        assert result.correction is None
        assert says(result.notes, sample_means.OPENING, worth=sample_means.NAIVE())
        assert says(result.notes, sample_means.TAKEN_AS_ADAPTIVE)
        named = ArmMeans(make_log(design=FLOOR)).fit("sample-mean")
        assert not says(named.notes, sample_means.TAKEN_AS_ADAPTIVE)


class TestReferences:
    guarantee = PrivacyGuarantee(epsilon=0.1)

    def test_auto(self) -> None:
        private = make_log(guarantee=self.guarantee)
        contrast = Contrast(private, treatment="b", control="a")
        assert isinstance(contrast.fit("sample-mean").reference, BoundedDifferenceReference)
        assert isinstance(contrast.fit("aipw").reference, StudentReference)
        assert isinstance(contrast.fit("alee").reference, NormalReference)
        continuous = make_log(guarantee=self.guarantee, binary=False)
        assert isinstance(ArmMeans(continuous).fit("sample-mean").reference, StudentReference)
        public = Contrast(make_log(), treatment="b", control="a").fit("sample-mean").reference
        assert isinstance(public, StudentReference)

    def test_few_events_of_a_design_that_does_not_adapt(self) -> None:
        """One arm 0 of 20, the other 6 of 20: Clopper-Pearson for means, Agresti-Caffo for the difference."""
        reward = np.concatenate([np.zeros(20), np.ones(6), np.zeros(14)])
        arrays = LogArrays(action=np.repeat([0, 1], 20), reward=reward)
        fixed = AdaptiveLog.from_arrays(arrays, arms=("a", "b"), design=designs.Uniform().record())
        means = ArmMeans(fixed).fit()
        assert means.reference.name == "binomial (exact)"
        assert means.conf_int().loc["a"].tolist() == pytest.approx([0.0, 1 - 0.025 ** (1 / 20)])
        contrast = Contrast(fixed, treatment="b", control="a").fit()
        assert contrast.reference.name == "Agresti-Caffo"
        p, q = 7 / 22, 1 / 22
        half = 1.959964 * np.sqrt((p * (1 - p) + q * (1 - q)) / 22)
        assert contrast.conf_int().to_numpy()[0] == pytest.approx([p - q - half, p - q + half], rel=1e-6)
        assert says(contrast.notes, sample_means.FEW_EVENTS, fewest=10)
        adaptive = AdaptiveLog.from_arrays(arrays, arms=("a", "b"))
        assert Contrast(adaptive, treatment="b", control="a").fit("sample-mean").reference.name == "t"
        many = LogArrays(action=np.tile([0, 1], 40), reward=np.tile([0.0, 0.0, 1.0, 1.0], 20))
        plenty = AdaptiveLog.from_arrays(many, arms=("a", "b"), design=designs.Uniform().record())
        assert ArmMeans(plenty).fit().reference.name == "t"

    def test_on_request(self) -> None:
        model = ArmMeans(make_log(guarantee=self.guarantee))
        assert isinstance(model.fit("sample-mean", test="normal").reference, NormalReference)
        assert isinstance(model.fit("sample-mean", test="t").reference, StudentReference)
        assert isinstance(ArmMeans(make_log()).fit("sample-mean", test="exact").reference, BinomialReference)

    def test_exact_counts(self) -> None:
        log = make_log()
        action, reward = log.arrays.action, log.arrays.reward
        result = ArmMeans(log, arms=["c", "a"]).fit("sample-mean", test="exact")
        assert isinstance(result.reference, BinomialReference)
        assert result.reference.trials.tolist() == [np.sum(action == 2), np.sum(action == 0)]
        assert result.reference.successes.tolist() == [reward[action == 2].sum(), reward[action == 0].sum()]
        contrast = Contrast(log, treatment="c", control="a").fit("sample-mean", test="exact").reference
        assert isinstance(contrast, BoundedDifferenceReference)
        assert [contrast.counts[0], contrast.control_counts[0]] == result.reference.trials.tolist()
        means = result.reference.successes / result.reference.trials
        assert [contrast.means[0], contrast.control_means[0]] == means.tolist()

    def test_t_for_inverse_weighting_counts_the_smaller_arm(self) -> None:
        log = make_log()
        for test in ("auto", "t"):
            means = ArmMeans(log).fit("aipw", "uniform", test=test).reference
            assert isinstance(means, StudentReference)
            w = np.where(np.arange(HORIZON) > 0, log.arrays.propensity, np.inf) ** -2.0
            sums = [np.bincount(log.arrays.action, weights=w**power) for power in (1, 2)]
            np.testing.assert_allclose(means.df, sums[0] ** 2 / sums[1] - 1.0, rtol=1e-12)
            contrast = Contrast(log, treatment="a", control="b").fit("aipw", "uniform", test=test).reference
            assert isinstance(contrast, StudentReference)
            assert contrast.df.tolist() == [means.df[:2].min()]
        assert isinstance(ArmMeans(log).fit("aipw", test="normal").reference, NormalReference)


class TestResults:
    def test_order_and_labels(self) -> None:
        log = make_log()
        every, some = (
            ArmMeans(log, arms=arms).fit(stationary=True)  # weights of each arm's own know no other arm
            for arms in (None, ["c", "a"])
        )
        assert some.terms == ("c", "a")
        assert some.estimands == (Estimand("arm-mean", arm="c"), Estimand("arm-mean", arm="a"))
        np.testing.assert_array_equal(some.params, every.params[["c", "a"]])
        np.testing.assert_allclose(
            some.cov_params().loc["c", "a"], every.cov_params().loc["c", "a"], rtol=1e-13
        )

    def test_contrast_is_a_difference_of_means(self) -> None:
        log = make_log()
        for estimator in ("sample-mean", "ipw", "aipw"):
            means = ArmMeans(log).fit(estimator, stationary=True)
            result = Contrast(log, treatment="c", control="a").fit(estimator, stationary=True)
            assert result.terms == ("c - a",)
            assert result.estimands == (Estimand("contrast", treatment="c", control="a"),)
            assert result.params.iloc[0] == pytest.approx(means.params["c"] - means.params["a"], rel=1e-12)
            covariance = means.cov_params()
            variance = covariance.loc["c", "c"] + covariance.loc["a", "a"] - 2 * covariance.loc["c", "a"]
            assert result.bse.iloc[0] ** 2 == pytest.approx(variance, rel=1e-10)

    def test_diagnostics(self) -> None:
        log = make_log()
        pulls = np.bincount(log.arrays.action)
        naive = ArmMeans(log).fit("sample-mean")
        np.testing.assert_array_equal(naive.ess, pulls)
        assert np.isnan(naive.min_propensity)
        weighted = ArmMeans(log).fit("aipw", stationary=True)
        assert log.arrays.propensities is not None
        assert weighted.min_propensity == log.arrays.propensities[1:].min()
        assert (weighted.ess < pulls).all()
        np.testing.assert_array_equal(weighted.diagnostics()["pulls"], pulls)
        assert log.arrays.propensity is not None
        chosen = ArmMeans(make_log("chosen")).fit("aipw")
        assert chosen.min_propensity == pytest.approx(log.arrays.propensity.min(), rel=1e-15)
        contrast = Contrast(log, treatment="b", control="a").fit("aipw", stationary=True)
        assert contrast.ess.iloc[0] == weighted.ess[["a", "b"]].min()
        assert contrast.diagnostics().iloc[0][["pulls_treatment", "pulls_control"]].tolist() == [
            pulls[1],
            pulls[0],
        ]

    def test_constant_propensities_give_every_reward_the_same_weight(self) -> None:
        arrays = make_log().arrays
        constant = LogArrays(
            action=arrays.action,
            reward=arrays.reward,
            propensity=np.full(HORIZON, 1 / 3),
            propensities=np.full((HORIZON, 3), 1 / 3),
        )
        log = AdaptiveLog.from_arrays(constant, arms=ARMS)
        np.testing.assert_allclose(
            ArmMeans(log).fit("aipw", "sqrt").ess, np.bincount(arrays.action[1:]), rtol=1e-12
        )

    def test_rows_are_kept_on_request_only(self) -> None:
        model = ArmMeans(make_log())
        assert model.fit("aipw").scores is None
        kept = model.fit("aipw", "uniform", keep_scores=True)
        assert kept.scores is not None
        assert kept.scores["scores"].shape == kept.scores["weights"].shape == (HORIZON, 3)
        np.testing.assert_allclose(kept.scores["scores"][1:].mean(axis=0), kept.estimate, rtol=1e-12)

    def test_facts_of_the_log(self) -> None:
        guarantee = PrivacyGuarantee(epsilon=0.1)
        log = make_log(guarantee=guarantee, design=FLOOR, noise="simulation")
        facts = ArmMeans(log).fit().facts
        assert (facts.n_rounds, facts.design) == (HORIZON, "Thompson")
        assert (facts.guarantee, facts.noise) == (guarantee, "simulation")

    def test_estimated_propensities_are_an_assumption(self) -> None:
        estimated = ArmMeans(make_log(propensity_status="estimated"))
        assert propensities.ESTIMATED() in notes(estimated.fit("aipw"))
        assert estimated.fit().estimator == "alee"
        assert propensities.ESTIMATED() not in notes(ArmMeans(make_log()).fit())

    def test_uniform_weights_carry_a_warning_unless_nothing_adapts(self) -> None:
        moving = ArmMeans(make_log()).fit("aipw", "uniform")
        assert says(moving.notes, weighted_arms.UNIFORM_OF_ADAPTIVE)
        fixed = make_log(feedback_rounds=0)
        settled = ArmMeans(fixed).fit("aipw", "uniform")
        assert not says(settled.notes, weighted_arms.UNIFORM_OF_ADAPTIVE)

    def test_uniform_weights_because_contexts_may_move_the_propensities(self) -> None:
        plain = make_log()
        rng = np.random.default_rng(4)
        context = {"age": rng.normal(size=HORIZON), "segment": rng.integers(0, 2, HORIZON)}
        log = AdaptiveLog.from_arrays(dataclasses.replace(plain.arrays, context=context), arms=ARMS)
        for result in (ArmMeans(log).fit(), Contrast(log, treatment="b", control="a").fit()):
            assert result.weights == "uniform"
            assert says(result.notes, propensities.UNIFORM_FOR_CONTEXTS, contexts="age, segment")
            assert not says(result.notes, weighted_arms.UNIFORM_OF_ADAPTIVE)
        first = recommend(log).methods[0].verdict
        assert first.name == "aipw with uniform weights"
        assert weighted_arms.FOR_CONTEXTS(contexts="age, segment") in first.reason
        assert "age, segment" not in str(recommend(plain).frame["reason"].tolist())

    def test_other_notes_of_scores(self) -> None:
        alone = ArmMeans(make_log("chosen")).fit("aipw")
        assert says(alone.notes, weighted_arms.CHOSEN_ALONE)
        stated = ArmMeans(make_log(design=FLOOR)).fit(stationary=True)
        assert says(stated.notes, weighted_arms.TWO_POINT_DECAY, decay=0.7)


class TestMissing:
    @pytest.mark.parametrize(
        ("propensities", "estimator"), [("none", "sample-mean"), ("chosen", "ipw"), ("chosen", "aipw")]
    )
    def test_an_arm_that_was_never_chosen(self, propensities: str, estimator: str) -> None:
        log = make_log(propensities, arms=(*ARMS, "d"))
        result = ArmMeans(log).fit(estimator)
        assert result.params.isna().tolist() == [False, False, False, True]
        assert result.bse.isna().tolist() == [False, False, False, True]
        assert result.pvalues.isna().tolist() == [False, False, False, True]
        assert result.conf_int().isna().all(axis=1).tolist() == [False, False, False, True]
        assert result.ess["d"] == 0.0
        assert says(result.notes, arm_fits.NEVER_CHOSEN, arm="d")
        contrast = Contrast(log, treatment="d", control="a").fit(estimator)
        assert contrast.to_frame()[["estimate", "std_error", "p_value", "conf_low"]].isna().all(axis=None)
        assert np.isfinite(result.cov_params().iloc[:3, :3]).all(axis=None)

    def test_exact_tests_of_an_arm_that_was_never_chosen(self) -> None:
        log = make_log("none", arms=(*ARMS, "d"))
        result = ArmMeans(log).fit(test="exact", null=0.5)
        assert result.pvalues.isna().tolist() == [False, False, False, True]
        assert Contrast(log, treatment="d", control="a").fit(test="exact").pvalues.isna().all()

    def test_one_reward_has_no_standard_error(self) -> None:
        arrays = LogArrays(action=np.array([0, 0, 0, 1]), reward=np.array([1.0, 0.0, 1.0, 1.0]))
        log = AdaptiveLog.from_arrays(arrays, arms=("a", "b"))
        result = ArmMeans(log).fit()
        assert result.params["b"] == 1.0
        assert np.isnan(result.bse["b"])
        assert np.isnan(result.pvalues["b"])
        assert says(result.notes, arm_fits.CHOSEN_ONCE, arm="b")
        assert Contrast(log, treatment="b", control="a").fit().pvalues.isna().all()
        exact = ArmMeans(log).fit(test="exact", null=0.5)
        assert exact.pvalues["b"] == pytest.approx(1.0)

    def test_rewards_that_do_not_vary_are_no_certainty(self) -> None:
        arrays = LogArrays(action=np.array([0, 0, 0, 1, 1]), reward=np.array([1.0, 1.0, 1.0, 0.0, 1.0]))
        log = AdaptiveLog.from_arrays(arrays, arms=("a", "b"))
        result = ArmMeans(log).fit()
        assert result.bse["a"] == 0.0
        assert np.isnan(result.pvalues["a"])
        assert result.conf_int().loc["a"].isna().all()
        assert says(result.cautions, rare_outcomes.UNVARYING, arm="a")
        exact = ArmMeans(log).fit(test="exact", null=0.5)
        assert exact.pvalues["a"] == pytest.approx(0.25, rel=1e-12)
        assert not says(exact.cautions, rare_outcomes.UNVARYING)
        assert not says(exact.cautions, rare_outcomes.UNVARYING_COUNTS)
