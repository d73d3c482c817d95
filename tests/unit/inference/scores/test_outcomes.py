"""Outcome models of AIPW: against literal loops, refusals of models that look ahead, numerical care."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from claims_said import says, wording

from adaptinf.claims.arms import arm_fits
from adaptinf.claims.data import outcome_models as claims
from adaptinf.claims.propensities import TINY
from adaptinf.claims.rare_outcomes import UNVARYING
from adaptinf.errors import AdaptinfWarning, InvalidForLog, ParameterError
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.inference.effects.cate import CATE
from adaptinf.inference.policies.policy_models import PolicyValue
from adaptinf.inference.scores.inverse import (
    aipw_scores,
    indicators,
    ipw_scores,
    predictions,
    running_means,
    sqrt_weights,
    two_point_weights,
    uniform_weights,
)
from adaptinf.inference.scores.means import arm_score_means, effective_size, weighted_means
from adaptinf.inference.scores.outcome_predictions import context_matrix, running_ridge
from adaptinf.inference.scores.score_stream import streamed_means
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log import AdaptiveLog, LogArrays

ROUNDS = 400


def make_log(*, seed: int = 0, context: bool = True, floor: float = 0.1) -> AdaptiveLog:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=ROUNDS)
    site = rng.choice(np.array(["north", "south", "west"]), size=ROUNDS)
    p = floor + (1 - 3 * floor) * rng.dirichlet([1.0, 1.0, 1.0], size=ROUNDS)
    p /= p.sum(axis=1, keepdims=True)
    action = (p.cumsum(axis=1) > rng.random((ROUNDS, 1))).argmax(axis=1)
    reward = 3.0 + x * (1 + action) + (site == "west") + rng.normal(size=ROUNDS)
    arrays = LogArrays(
        action=action,
        reward=reward,
        propensity=p[np.arange(ROUNDS), action],
        propensities=p,
        context={"x": x, "site": site} if context else {},
    )
    return AdaptiveLog.from_arrays(arrays, arms=("a", "b", "c"))


class TestStreams:
    """The two passes against the array formulas, which have tests of their own."""

    @pytest.mark.parametrize("codes", [[0, 1, 2], [2, 0], [1]])
    @pytest.mark.parametrize("weights", ["uniform", "sqrt", "two-point"])
    @pytest.mark.parametrize("outcome", [None, "running-mean", "given"])
    def test_every_combination(self, codes: list[int], weights: str, outcome: str | None) -> None:
        arrays = make_log(seed=3).arrays
        assert arrays.propensity is not None
        assert arrays.propensities is not None
        arms = np.array(codes)
        chosen = indicators(arrays.action, arms)
        given = np.random.default_rng(1).normal(size=chosen.shape)
        if outcome is None:
            scores = ipw_scores(chosen, arrays.reward, arrays.propensity)
        else:
            predicted = given if outcome == "given" else predictions(chosen, arrays.reward)
            scores = aipw_scores(chosen, arrays.reward, arrays.propensity, predicted)
        h = {
            "uniform": lambda e: uniform_weights(*e.shape),
            "sqrt": sqrt_weights,
            "two-point": lambda e: two_point_weights(e, 0.6),
        }[weights](arrays.propensities[:, arms])
        first = int(outcome == "running-mean")
        h[:first] = 0.0
        expected = weighted_means(scores, h)
        found = streamed_means(
            arrays.action, arrays.reward, arrays.propensity, arrays.propensities, arms,
            weights=weights, decay=0.6, outcome=given if outcome == "given" else outcome,
        )  # fmt: skip
        np.testing.assert_allclose(found.estimate, expected.estimate, rtol=1e-12)
        np.testing.assert_allclose(found.covariance, expected.covariance, rtol=1e-10, atol=1e-16)
        np.testing.assert_array_equal(found.pulls, chosen.sum(axis=0))
        np.testing.assert_allclose(found.successes, arrays.reward @ chosen, rtol=1e-13)
        np.testing.assert_allclose(
            found.ess, effective_size(h * chosen / arrays.propensity[:, None]), rtol=1e-12
        )
        np.testing.assert_array_equal(found.min_propensity, arrays.propensities[first:, arms].min(axis=0))

    @pytest.mark.parametrize("weights", ["uniform", "sqrt", "lagged", "two-point", "shared"])
    @pytest.mark.parametrize("jointly", [False, True])
    @pytest.mark.parametrize("known", ["all", "chosen"])
    def test_arms_that_come_and_go_as_in_arrays(self, weights: str, jointly: bool, known: str) -> None:
        arrays = make_log(seed=6).arrays
        rng = np.random.default_rng(8)
        p = np.array(arrays.propensities)
        p[:60, 2] = 0.0
        p[200:230, 0] = 0.0
        p[310:315] = [0.0, 1.0, 0.0]
        p /= p.sum(axis=1, keepdims=True)
        action = np.array([rng.choice(3, p=row) for row in p])
        rounds = (action, arrays.reward, p[np.arange(ROUNDS), action], p if known == "all" else None)
        if known == "chosen" and weights in ("sqrt", "lagged", "two-point"):
            return
        own = {"two-point": {"decay": 0.6}}.get(weights, {})
        given = rng.uniform(0.5, 1.0, ROUNDS) if weights == "shared" else weights
        found, expected = (
            path(*rounds, np.array([2, 0]), weights=given, jointly=jointly, **own)
            for path in (streamed_means, arm_score_means)
        )
        for name in ("estimate", "above", "covariance", "pulls", "successes", "ess", "freedom"):
            np.testing.assert_allclose(
                getattr(found, name), getattr(expected, name), rtol=1e-11, atol=1e-15, err_msg=name
            )
        np.testing.assert_array_equal(found.min_propensity, expected.min_propensity)
        np.testing.assert_array_equal(found.used, expected.used)
        left = {("all", False): [60, 34], ("all", True): [94, 94]}.get((known, jointly), [5, 5])
        assert (ROUNDS - found.used >= left).all()

    def test_a_large_level_of_rewards_costs_no_digits(self) -> None:
        arrays = make_log(seed=5).arrays
        rounds = (arrays.propensity, arrays.propensities, np.arange(3))
        for path in (streamed_means, arm_score_means):
            plain = path(arrays.action, arrays.reward, *rounds, weights="sqrt")
            shifted = path(arrays.action, arrays.reward + 1e6, *rounds, weights="sqrt")
            np.testing.assert_allclose(shifted.covariance, plain.covariance, rtol=1e-9)
            error = np.sqrt(np.diag(plain.covariance))
            np.testing.assert_allclose(shifted.above + shifted.origin - 1e6, plain.estimate, atol=1e-9)
            assert np.abs(np.diff(shifted.above) - np.diff(plain.estimate)).max() < 1e-9 * error.min()

    def test_wrong_uses(self) -> None:
        arrays = make_log().arrays
        assert arrays.propensity is not None
        rounds = (arrays.action, arrays.reward, arrays.propensity)
        with pytest.raises(ParameterError, match="sqrt weights require the propensities of all arms"):
            streamed_means(*rounds, None, np.array([0]), weights="sqrt")
        with pytest.raises(ParameterError, match="two-point weights require decay="):
            streamed_means(*rounds, arrays.propensities, np.array([0]), weights="two-point")
        with pytest.raises(ParameterError, match=r"outcome must have shape \(400, 1\)"):
            streamed_means(*rounds, None, np.array([0]), outcome=np.zeros((400, 2)))
        with pytest.raises(ParameterError, match="weights must be one of"):
            streamed_means(*rounds, None, np.array([0]), weights="best")
        with pytest.raises(ParameterError, match="outcome must be 'running-mean'"):
            streamed_means(*rounds, None, np.array([0]), outcome="mean")

    def test_impossible_rounds_of_other_layouts(self) -> None:
        p = np.asfortranarray([[0.0, 1.0], [0.5, 0.5], [0.0, 1.0]])
        arrays = LogArrays(
            action=np.array([1, 0, 1]),
            reward=np.zeros(3),
            propensity=np.array([1.0, 0.5, 1.0]),
            propensities=p,
        )
        log = AdaptiveLog.from_arrays(arrays, arms=(0, 1))
        assert profile_of(log).impossible.tolist() == [2, 0]


class TestRunningRidge:
    def test_against_a_fresh_regression_before_every_round(self) -> None:
        log = make_log(seed=1)
        x = context_matrix("test", log)
        assert x.shape == (ROUNDS, 4)
        np.testing.assert_array_equal(x[:, 3], log.arrays.context["site"] == "west")
        codes = np.array([2, 0])
        found = running_ridge(log.arrays.action, log.arrays.reward, x, codes, 0.7)
        for column, code in enumerate(codes):
            for t in (0, 1, 7, 50, 399):
                past = np.flatnonzero(log.arrays.action[:t] == code)
                gram = x[past].T @ x[past] + 0.7 * np.eye(4)
                beta = np.linalg.solve(gram, x[past].T @ log.arrays.reward[past])
                assert found[t, column] == pytest.approx(float(x[t] @ beta), rel=1e-9, abs=1e-9)

    def test_it_narrows_the_interval_and_looks_only_back(self) -> None:
        log = make_log(seed=2)
        plain = ArmMeans(log).fit("aipw", "sqrt")
        fitted = ArmMeans(log).fit(weights="sqrt", outcome="running-ridge", keep_scores=True)
        assert (fitted.estimator, fitted.weights) == ("aipw", "sqrt")
        assert (
            ArmMeans(log).fit(outcome="running-ridge").weights == "uniform"
        )  # contexts may move propensities
        assert (fitted.bse < 0.8 * plain.bse).all()
        assert says(fitted.notes, claims.RIDGE, known="", names="x, site", scaled="", penalty=1.0)
        assert fitted.scores is not None
        total = fitted.scores["weights"] * (fitted.scores["scores"] - fitted.estimate)
        np.testing.assert_allclose(
            (total**2).sum(axis=0) ** 0.5 / fitted.scores["weights"].sum(axis=0), fitted.bse, rtol=1e-10
        )
        arrays = log.arrays
        late = np.where(np.arange(ROUNDS) >= 300, 99.0, arrays.reward)
        x = context_matrix("test", log)
        before = running_ridge(arrays.action, arrays.reward, x, np.arange(3), 1.0)
        after = running_ridge(arrays.action, late, x, np.arange(3), 1.0)
        np.testing.assert_array_equal(before[:301], after[:301])
        assert not np.allclose(before[301:], after[301:])

    def test_wrong_uses(self) -> None:
        log = make_log()
        with pytest.raises(ParameterError, match="requires contexts, but the log has none"):
            ArmMeans(make_log(context=False)).fit(outcome="running-ridge")
        for ridge in (0.0, -1.0, np.inf, True, "big"):
            with pytest.raises(ParameterError, match="ridge must be positive"):
                ArmMeans(log).fit(outcome="running-ridge", ridge=ridge)
        with pytest.raises(ParameterError, match="ridge= applies to outcome='running-ridge'"):
            ArmMeans(log).fit(ridge=1.0)
        with pytest.raises(ParameterError, match="outcome and ridge apply to aipw, not to ipw"):
            ArmMeans(log).fit("ipw", outcome="running-ridge")
        with pytest.raises(ParameterError, match="'running-ridge', 'batch-mean'"):
            ArmMeans(log).fit(outcome="forest")


class TestOwnPredictions:
    def test_columns_and_arrays_give_the_same(self) -> None:
        base = make_log()
        guess = np.column_stack([base.arrays.context["x"] * s + 3.0 for s in (1.0, 2.0, 3.0)])
        frame = pd.DataFrame({"arm": base.frame["action"], "y": base.arrays.reward})
        for column, arm in enumerate("abc"):
            frame[f"propensity_{arm}"] = base.arrays.propensities[:, column]
            frame[f"guess_{arm}"] = guess[:, column]
        log = AdaptiveLog(frame, action="arm", reward="y", context=["guess_a", "guess_b", "guess_c"])
        named = {arm: f"guess_{arm}" for arm in "abc"}
        by_name = ArmMeans(log).fit(outcome=named)
        np.testing.assert_allclose(by_name.estimate, ArmMeans(base).fit(outcome=guess).estimate, rtol=1e-12)
        assert says(by_name.notes, claims.OWN)
        pair = Contrast(log, treatment="c", control="a").fit(outcome={"a": "guess_a", "c": "guess_c"})
        assert pair.estimate[0] == pytest.approx(by_name.params["c"] - by_name.params["a"], rel=1e-10)
        with pytest.raises(ParameterError, match="outcome has no column for arm 'b', 'c'"):
            ArmMeans(log).fit(outcome={"a": "guess_a"})
        with pytest.raises(ParameterError, match="the log has no column 'nope'"):
            ArmMeans(log).fit(outcome={**named, "b": "nope"})

    def test_models_that_looked_ahead_are_refused(self) -> None:
        log = make_log(seed=9)
        action, reward = log.arrays.action, log.arrays.reward
        good = np.tile(log.arrays.context["x"][:, None], 3)
        whole = good.copy()
        whole[:, 1] = reward[action == 1].mean()
        with pytest.raises(InvalidForLog, match="arm 'b': every prediction is the arm's mean") as caught:
            ArmMeans(log).fit(outcome=whole)
        assert "outcome='running-mean'" in caught.value.alternatives
        same = good.copy()
        same[:, 2] = 0.5 * reward - 1.0
        with pytest.raises(InvalidForLog, match="arm 'c': in rounds in which the arm was chosen"):
            ArmMeans(log).fit(outcome=same)
        others = good.copy()
        mine = action == 0
        others[mine, 0] = (reward[mine].sum() - reward[mine]) / (mine.sum() - 1)
        with pytest.raises(InvalidForLog, match="arm 'a': "):
            ArmMeans(log).fit(outcome=others)
        for honest in (
            good,
            np.full((ROUNDS, 3), 3.0),
            running_means(indicators(action, np.arange(3)), reward),
        ):
            assert np.isfinite(ArmMeans(log).fit(outcome=honest).estimate).all()

    def test_frames_are_read_by_their_labels(self) -> None:
        log = make_log()
        guess = np.column_stack([log.arrays.context["x"] * s + 3.0 for s in (1.0, 2.0, 3.0)])
        expected = ArmMeans(log).fit(outcome=guess).estimate
        frame = pd.DataFrame(guess, columns=list("abc"))[list("cab")]
        for given in (frame, pl.from_pandas(frame)):
            np.testing.assert_array_equal(ArmMeans(log).fit(outcome=given).estimate, expected)
        for wrong in (frame[["a", "b"]], frame.rename(columns={"c": "d"}), pl.from_pandas(frame[["a", "b"]])):
            with pytest.raises(ParameterError, match="are not the arms"):
                ArmMeans(log).fit(outcome=wrong)
        with pytest.raises(ParameterError, match="its index is not 0"):
            ArmMeans(log).fit(outcome=frame[::-1])
        with pytest.raises(ParameterError, match="to the name of a column"):
            ArmMeans(log).fit(outcome=dict.fromkeys("abc", guess[:, 0]))

    def test_wrong_shapes(self) -> None:
        log = make_log()
        with pytest.raises(ParameterError, match=r"outcome must have shape \(400, 3\)"):
            ArmMeans(log).fit(outcome=np.zeros(ROUNDS))
        with pytest.raises(ParameterError, match="outcome must be finite"):
            ArmMeans(log).fit(outcome=np.full((ROUNDS, 3), np.nan))
        with pytest.raises(ParameterError, match="an array of predictions"):
            ArmMeans(log).fit(outcome=["x"] * ROUNDS)


class TestTheOrderOfPredictions:
    """A bare array has the columns of ``log.arms``, whatever arms a model is asked for and in which order."""

    @staticmethod
    def given() -> tuple[AdaptiveLog, np.ndarray, np.ndarray]:
        """A log, predictions of very different columns, and the literal AIPW scores; all by arm."""
        log = make_log(seed=21)
        x = log.arrays.context["x"]
        guess = np.column_stack([x + 1.0, 4.0 - 2.0 * x, 10.0 + x])
        scores = guess.copy()
        for t, arm in enumerate(log.arrays.action):
            scores[t, arm] += (log.arrays.reward[t] - guess[t, arm]) / log.arrays.propensities[t, arm]
        return log, guess, scores

    def test_arm_means_of_some_arms_in_another_order(self) -> None:
        log, guess, scores = self.given()
        result = ArmMeans(log, arms=["c", "a"]).fit("aipw", "uniform", outcome=guess)
        np.testing.assert_allclose(result.estimate, scores.mean(axis=0)[[2, 0]], rtol=1e-11)

    @pytest.mark.parametrize(("treatment", "control"), [("c", "a"), ("a", "c"), ("b", "a"), ("a", "b")])
    def test_contrasts_both_ways(self, treatment: str, control: str) -> None:
        log, guess, scores = self.given()
        one, two = log.arms.index(treatment), log.arms.index(control)
        model = Contrast(log, treatment=treatment, control=control)
        expected = scores[:, one].mean() - scores[:, two].mean()
        frame = pd.DataFrame(guess, columns=list("abc"))
        for outcome in (
            guess,
            guess.tolist(),
            frame,
            frame[[control, treatment]],
            frame[[treatment, control]],
        ):
            assert model.fit("aipw", "uniform", outcome=outcome).estimate[0] == pytest.approx(
                expected, rel=1e-10
            )

    @pytest.mark.parametrize(("treatment", "control"), [("c", "a"), ("a", "c")])
    def test_effects_projected_on_contexts(self, treatment: str, control: str) -> None:
        log, guess, scores = self.given()
        one, two = log.arms.index(treatment), log.arms.index(control)
        model = CATE.from_formula("~ 1", log, treatment=treatment, control=control)
        found = model.fit(outcome=guess, weights="uniform").estimate[0]
        assert found == pytest.approx((scores[:, one] - scores[:, two]).mean(), rel=1e-9)

    def test_policies(self) -> None:
        log, guess, scores = self.given()
        share = np.array([0.5, 0.1, 0.4])
        found = PolicyValue(log, share).fit(weights="uniform", outcome=guess).estimate[0]
        assert found == pytest.approx(float((scores @ share).mean()), rel=1e-9)

    def test_an_array_of_the_arms_asked_for_alone_is_refused(self) -> None:
        log, guess, _ = self.given()
        with pytest.raises(
            ParameterError, match=r"shape \(400, 3\), with a column for each of the log's arms"
        ) as error:
            Contrast(log, treatment="c", control="a").fit(outcome=guess[:, [2, 0]])
        assert "['a', 'b', 'c'], got (400, 2)" in str(error.value)
        with pytest.raises(ParameterError, match="outcome: there is no arm 'd'; the log has 'a', 'b', 'c'"):
            Contrast(log, treatment="c", control="a").fit(outcome={"a": "x", "c": "x", "d": "x"})


class TestNumericalCare:
    @pytest.mark.parametrize("tiny", [1e-6, 5e-5])
    def test_tiny_propensities_warn_with_the_effective_sample_size(self, tiny: float) -> None:
        arrays = make_log(seed=4, context=False).arrays
        p = np.array(arrays.propensities)
        first = int(np.flatnonzero(arrays.action == 1)[3])
        p[first] = [(1 - tiny) / 2, tiny, (1 - tiny) / 2]
        changed = LogArrays(
            action=arrays.action,
            reward=arrays.reward,
            propensity=p[np.arange(ROUNDS), arrays.action],
            propensities=p,
        )
        log = AdaptiveLog.from_arrays(changed, arms=("a", "b", "c"))
        with pytest.warns(AdaptinfWarning, match=wording(arm_fits.TINY, arm="b", least=tiny)) as caught:
            result = ArmMeans(log).fit("aipw", "uniform")
        assert len(caught) == 1
        assert caught[0].filename == __file__
        assert says(str(caught[0].message), arm_fits.TINY, ess=result.ess["b"])
        assert result.ess["b"] < 1.1
        assert says(result.cautions, TINY)
        with pytest.warns(AdaptinfWarning):
            Contrast(log, treatment="b", control="a").fit("aipw", "sqrt")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Contrast(log, treatment="c", control="a").fit("aipw", "sqrt")
            ArmMeans(log).fit("sample-mean")

    @pytest.mark.parametrize("estimator", ["sample-mean", "ipw", "aipw", "alee"])
    def test_one_round_one_arm_and_constant_rewards(self, estimator: str) -> None:
        for rounds in (1, 2, 30):
            arrays = LogArrays(
                action=np.zeros(rounds, dtype=np.int64),
                reward=np.full(rounds, 0.1),
                propensity=np.ones(rounds),
                propensities=np.ones((rounds, 1)),
            )
            result = ArmMeans(AdaptiveLog.from_arrays(arrays, arms=("only",))).fit(estimator)
            if (estimator, rounds) == ("aipw", 1):  # nothing predicts the first round
                assert np.isnan(result.params["only"])
                assert says(result.notes, arm_fits.UNWEIGHTED, arm="only")
                continue
            assert result.params["only"] == pytest.approx(0.1, rel=1e-12)
            once = any(
                says(result.notes, claim, arm="only")
                for claim in (arm_fits.CHOSEN_ONCE, arm_fits.WEIGHTED_ONCE)
            )
            alike = says(result.cautions, UNVARYING, arm="only")
            assert np.isfinite(result.pvalues["only"]) or once or alike
            joint = result.conf_int_simultaneous()
            assert joint.shape == (1, 2)
