"""Simultaneous intervals, adjusted p-values, and tests of linear hypotheses."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from claims_said import says
from scipy import stats

from adaptinf import designs
from adaptinf.claims import tables
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.inference.corrections.information import Correction
from adaptinf.inference.distributions.references import NormalReference
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.fit_results import Results
from adaptinf.inference.results.hypotheses import linear_hypothesis, wald_statistic
from adaptinf.inference.results.log_facts import LogFacts
from adaptinf.inference.results.multiplicity import familywise_level, max_normal_tail
from adaptinf.inference.sequences.confidence_sequence import ConfidenceSequence
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.simulation.environments import BernoulliArms

TERMS = ("a", "b", "c")


def result(covariance: np.ndarray | None, estimate: np.ndarray | None = None, **options: object) -> Results:
    values = np.array([0.1, 0.5, 0.2]) if estimate is None else estimate
    size = np.full(3, 0.2) if covariance is None else np.sqrt(np.diag(covariance))
    return Results(
        model="ArmMeans",
        estimands=tuple(Estimand("arm-mean", arm=term) for term in TERMS),
        terms=TERMS,
        estimate=values,
        std_error=size,
        reference=NormalReference(values, size),
        estimator="aipw",
        facts=LogFacts(n_rounds=10),
        covariance=covariance,
        **options,  # type: ignore[arg-type]
    )


def correlated(rho: float) -> np.ndarray:
    return 0.04 * ((1.0 - rho) * np.eye(3) + rho)


def uniform_log(n_arms: int = 3, rounds: int = 600) -> AdaptiveLog:
    rng = np.random.default_rng(8)
    action = rng.integers(0, n_arms, size=rounds)
    arrays = LogArrays(
        action=action,
        reward=rng.normal(action * 0.1),
        propensity=np.full(rounds, 1 / n_arms),
        propensities=np.full((rounds, n_arms), 1 / n_arms),
    )
    return AdaptiveLog.from_arrays(arrays, arms=tuple("abcdefgh"[:n_arms]))


class TestRestrictions:
    TERMS = ("sex=M", "sex=F", "age")

    def test_tables_of_coefficients_are_read_by_their_labels(self) -> None:
        expected = linear_hypothesis("t_test", "b - 2 * a = 0.5", ["a", "b"])
        row = pd.Series({"b": 1.0, "a": -2.0})
        for given in (row, row.to_frame().T):
            found = linear_hypothesis("t_test", (given, 0.5), ["a", "b"])
            np.testing.assert_array_equal(found.matrix, expected.matrix)
            np.testing.assert_array_equal(found.values, [0.5])
        with pytest.raises(ParameterError, match="columns of the restriction are not the terms; "):
            linear_hypothesis("t_test", row.rename({"b": "c"}), ["a", "b"])

    @pytest.mark.parametrize("text", ["sex=M - sex=F", "sex=M = sex=F", "sex=M"])
    def test_names_with_signs(self, text: str) -> None:
        told = (
            r"put a name between backticks if it is a number or has spaces, '=' or other signs, "
            r"as in (`sex=M` - `sex=F` = 0)\)"
        )
        with pytest.raises(ParameterError, match=told) as caught:
            linear_hypothesis("t_test", text, self.TERMS)
        advice = str(caught.value).partition("as in ")[2].rstrip(")")
        np.testing.assert_array_equal(linear_hypothesis("t_test", advice, self.TERMS).matrix, [[1, -1, 0]])

    @pytest.mark.parametrize("call", ["{%s}", "%s", "a[%s]", "log(%s)", "`a` + {%s}", "Q(%s)", "C(a, %s)"])
    def test_a_restriction_is_never_evaluated(
        self, call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        calls: list[object] = []
        for module in ("stateful_transforms", "variables"):
            monkeypatch.setattr(f"formulaic.utils.{module}.eval", calls.append, raising=False)
        monkeypatch.chdir(tmp_path)
        text = call % "__import__('os').mkdir('CANARY')"
        with pytest.raises(ParameterError, match="cannot read the restriction"):
            linear_hypothesis("t_test", f"{text} = 0", ["a", "b"])
        assert (calls, list(tmp_path.iterdir())) == ([], [])
        found = linear_hypothesis("t_test", f"`{text}` = 0", ["a", text]) if "`" not in text else None
        assert found is None or found.matrix.tolist() == [[0.0, 1.0]]

    def test_names_with_backticks_go_into_a_dict(self) -> None:
        with pytest.raises(
            ParameterError, match=("a term that contains a backtick must be given in a dict of terms")
        ):
            linear_hypothesis("t_test", "`a`b` = 0", ["a`b", "c"])
        assert linear_hypothesis("t_test", {"a`b": 1.0}, ["a`b", "c"]).matrix.tolist() == [[1.0, 0.0]]


class TestSimultaneous:
    @pytest.mark.slow
    @pytest.mark.parametrize("rho", [0.0, 0.3, 0.9, -0.4])
    def test_against_simulation(self, rho: float) -> None:
        covariance = correlated(rho)
        level = familywise_level(lambda p: max_normal_tail(p, covariance / 0.04, 3), 0.05, 3)
        rng = np.random.default_rng(3)
        draws = rng.multivariate_normal(np.zeros(3), covariance / 0.04, size=400_000)
        outside = np.mean(np.abs(draws).max(axis=1) > stats.norm.isf(level / 2))
        assert outside == pytest.approx(0.05, abs=4.5 * math.sqrt(0.05 * 0.95 / 400_000))

    def test_equicorrelated_in_closed_form(self) -> None:
        """With one common factor the probability is a one-dimensional integral."""
        from scipy.integrate import quad

        rho, limit = 0.6, 2.2

        def integrand(u: float) -> float:
            low = (-limit - math.sqrt(rho) * u) / math.sqrt(1 - rho)
            high = (limit - math.sqrt(rho) * u) / math.sqrt(1 - rho)
            return float((stats.norm.cdf(high) - stats.norm.cdf(low)) ** 3 * stats.norm.pdf(u))

        inside = quad(integrand, -9, 9)[0]
        level = 2 * stats.norm.sf(limit)
        tail = max_normal_tail(level, correlated(rho) / 0.04, 3)
        assert tail == pytest.approx(1 - inside, abs=2e-5)

    def test_full_dependence_costs_nothing(self) -> None:
        single = result(correlated(1.0)).conf_int()
        joint = result(correlated(1.0)).conf_int_simultaneous()
        np.testing.assert_allclose(joint, single, rtol=1e-4)

    def test_order_of_the_methods(self) -> None:
        model = result(correlated(0.5))
        widths = [
            float((limits["high"] - limits["low"]).iloc[0])
            for limits in [
                model.conf_int(),
                *(model.conf_int_simultaneous(method=m) for m in ("max-t", "sidak", "bonferroni")),
            ]
        ]
        assert widths == sorted(widths)
        assert len(set(widths)) == 4

    def test_bonferroni_where_the_covariance_is_unknown(self) -> None:
        unknown = result(None)
        np.testing.assert_allclose(unknown.conf_int_simultaneous(), unknown.conf_int(0.05 / 3), rtol=1e-7)
        np.testing.assert_allclose(
            unknown.pvalues_simultaneous(), np.minimum(1.0, 3 * unknown.pvalues), rtol=1e-12
        )

    @pytest.mark.parametrize("method", ["max-t", "sidak", "bonferroni"])
    def test_p_values_and_intervals_agree(self, method: str) -> None:
        model = result(correlated(0.4), null=0.05)
        p = model.pvalues_simultaneous(method)
        assert (p >= model.pvalues).all()
        for alpha in (p["b"] * 0.999, p["b"] * 1.001):
            limits = model.conf_int_simultaneous(alpha, method).loc["b"]
            assert (limits["low"] > 0.05) == (p["b"] <= alpha)

    def test_terms_without_an_error_do_not_count(self) -> None:
        covariance = np.diag([0.04, 0.04, np.nan])
        model = result(covariance, np.array([0.1, 0.5, np.nan]))
        limits = model.conf_int_simultaneous()
        two = 1 - math.sqrt(0.95)
        np.testing.assert_allclose(limits.loc["b"], model.conf_int(two).loc["b"], rtol=1e-6)
        assert limits.loc["c"].isna().all()
        assert math.isnan(model.pvalues_simultaneous()["c"])

    def test_far_out(self) -> None:
        model = result(correlated(0.5), np.array([0.0, 6.0, 0.0]))
        p = model.pvalues_simultaneous()["b"]
        assert model.pvalues["b"] <= p <= 3 * model.pvalues["b"]

    def test_bootstrap(self) -> None:
        log = uniform_log()
        model = ArmMeans(log).fit("aipw", "uniform", keep_scores=True)
        boot = model.conf_int_simultaneous(method="bootstrap", draws=4000, rng=1)
        normal = model.conf_int_simultaneous()
        widths = (boot["high"] - boot["low"]) / (normal["high"] - normal["low"])
        np.testing.assert_allclose(widths, 1.0, atol=0.06)
        assert (model.conf_int_simultaneous(method="bootstrap", draws=4000, rng=1) == boot).all(axis=None)
        far = ArmMeans(log).fit("aipw", "uniform", keep_scores=True, null=-5.0)
        p = far.pvalues_simultaneous("bootstrap", draws=999)
        assert p.to_numpy() == pytest.approx(1 / 1000)
        for estimator in ("sample-mean", "alee"):
            kept = ArmMeans(log).fit(estimator, keep_scores=True)
            assert kept.scores is not None
            rows = kept.scores["influence"]
            np.testing.assert_allclose(np.sqrt((rows**2).sum(axis=0)), kept.std_error, rtol=1e-12)
        contrast = Contrast(log, treatment="b", control="a").fit("aipw", keep_scores=True)
        assert contrast.scores is not None
        influence = contrast.scores["influence"]
        assert math.sqrt(float((influence**2).sum())) == pytest.approx(contrast.std_error[0], rel=1e-10)

    @pytest.mark.parametrize("method", ["sidak", "bonferroni"])
    def test_corrected_like_the_chance_of_any_failure(self, method: str) -> None:
        """The family's p-value is corrected, and the intervals are at the corrected family's level."""
        due = Correction(0.02, 100, PrivacyGuarantee(epsilon=0.02))
        model = result(correlated(0.0), np.array([0.1, 1.2, 0.7]), correction=due)
        plain = model.pvalues_simultaneous(method, corrected=False)
        p = model.pvalues_simultaneous(method)
        np.testing.assert_allclose(p, np.exp(due.apply(np.log(plain.to_numpy()))), rtol=1e-9)
        assert (p >= model.pvalues_corrected).all()
        level = math.exp(due.level(math.log(0.05)))
        expected = model.conf_int_simultaneous(level, method, corrected=False)
        np.testing.assert_allclose(model.conf_int_simultaneous(0.05, method), expected, rtol=1e-8)
        for alpha in (p["b"] * 0.999, p["b"] * 1.001):
            assert (model.conf_int_simultaneous(alpha, method)["low"]["b"] > 0) == (p["b"] <= alpha)

    @pytest.mark.parametrize("method", ["sidak", "bonferroni"])
    def test_corrected_far_out(self, method: str) -> None:
        """Where single p-values and levels underflow, the corrected ones are as right as those of a term."""
        due = Correction(1.0, 2000, PrivacyGuarantee(epsilon=1.0))
        model = result(correlated(0.0), np.array([9.0, 14.0, math.nan]), correction=due)
        limits = model.conf_int_simultaneous(0.05, method)
        log_level = due.level(math.log(0.05)) - math.log(2.0)
        assert math.exp(log_level) == 0.0
        np.testing.assert_allclose(limits[:2], model.reference.interval(log_level)[:2], rtol=1e-12)
        p = model.pvalues_simultaneous(method)
        assert (p["a"] <= 0.05, p["b"] <= 0.05) == (limits["low"]["a"] > 0, limits["low"]["b"] > 0)
        assert (limits["low"]["a"] > 0, limits["low"]["b"] > 0) == (False, True)
        assert math.isnan(p["c"])

    @pytest.mark.parametrize("method", ["max-t", "bootstrap"])
    def test_methods_that_cannot_be_corrected(self, method: str) -> None:
        due = Correction(0.02, 100, PrivacyGuarantee(epsilon=0.02))
        scores = {"influence": np.full((10, 3), 0.05)}
        model = result(correlated(0.2), correction=due, scores=scores)
        for call in (
            lambda: model.conf_int_simultaneous(0.05, method),
            lambda: model.pvalues_simultaneous(method),
        ):
            with pytest.raises(InvalidForLog, match=r"corrected for adaptive collection.*method='sidak'"):
                call()
        assert model.pvalues_simultaneous(method, corrected=False).notna().all()

    def test_wrong_uses(self) -> None:
        model = result(correlated(0.2))
        with pytest.raises(InvalidForLog, match="keep_scores=True"):
            model.conf_int_simultaneous(method="bootstrap")
        with pytest.raises(
            ParameterError, match="method must be one of 'max-t', 'bootstrap', 'sidak', 'bonferroni'"
        ):
            model.conf_int_simultaneous(method="tukey")
        with pytest.raises(ParameterError, match="alpha must be between 0 and"):
            model.conf_int_simultaneous(0.95)
        with pytest.raises(ParameterError, match="draws must be"):
            model.conf_int_simultaneous(draws=0)


class TestHypotheses:
    def test_text(self) -> None:
        terms = ["a", "b", "b - a", "1", "0"]
        cases = {
            "b - a = 0.5": ([-1, 1, 0, 0, 0], 0.5),
            "`b - a` = 0.5": ([0, 0, 1, 0, 0], 0.5),
            "`1` - `0` = 0": ([0, 0, 0, 1, -1], 0.0),
            "2 * a + b / 2 = 1": ([2, 0.5, 0, 0, 0], 1.0),
        }
        for text, (row, value) in cases.items():
            read = linear_hypothesis("t", text, terms)
            assert read.matrix.tolist() == [row]
            assert read.values.tolist() == [value]
        both = linear_hypothesis("t", ["a = b", "a = 1"], terms)
        assert both.matrix.tolist() == [[1, -1, 0, 0, 0], [1, 0, 0, 0, 0]]
        assert linear_hypothesis("t", {"b - a": 2}, terms).matrix.tolist() == [[0, 0, 1, 0, 0]]
        assert both.labels == ("a - b = 0", "a = 1")

    @pytest.mark.parametrize(
        ("restriction", "problem"),
        [
            ("zebra = 0", "unknown term 'zebra'"),
            ("a * b = 0", "it is not a linear equation"),
            ("a +", "it is not a linear equation"),
            ("1 - 0 = 0", "restriction 1 involves no term"),
            ({"zebra": 1}, "cannot use 'zebra'"),
            ({}, "cannot use no term"),
            ([[1.0, 2.0]], r"shape \(q, 3\)"),
            (([[1.0, 0.0, 0.0]], [1.0, 2.0]), "restriction must be equations"),
            ([[math.nan, 0.0, 0.0]], "must be finite"),
            (7, r"shape \(q, 3\)"),
        ],
    )
    def test_wrong_restrictions(self, restriction: object, problem: str) -> None:
        with pytest.raises(ParameterError, match=problem):
            result(correlated(0.1)).wald_test(restriction)

    def test_against_statsmodels(self) -> None:
        """Least squares on arm dummies: the same numbers from the same covariance."""
        from statsmodels.regression.linear_model import OLS

        rng = np.random.default_rng(2)
        x = rng.normal(size=(80, 3))
        y = x @ np.array([0.2, 0.1, 0.4]) + rng.normal(size=80)
        other = OLS(y, x, hasconst=False).fit(use_t=False)
        mine = result(other.cov_params(), other.params)
        for restriction in ("a - b = 0", "a = b, b = c", "a + 2 * c = 1"):
            matrix = linear_hypothesis("t", restriction, TERMS)
            theirs = other.wald_test((matrix.matrix, matrix.values), use_f=False, scalar=True)
            ours = mine.wald_test(restriction)
            assert ours.statistic == pytest.approx(float(theirs.statistic), rel=1e-9)
            assert ours.pvalue == pytest.approx(float(theirs.pvalue), rel=1e-9)
            assert ours.df == len(matrix.values)
            single, other_single = mine.t_test(restriction), other.t_test((matrix.matrix, matrix.values))
            np.testing.assert_allclose(single.effect, other_single.effect, rtol=1e-9)
            np.testing.assert_allclose(single.std_error, np.atleast_1d(other_single.sd).ravel(), rtol=1e-9)
            np.testing.assert_allclose(single.pvalue, np.atleast_1d(other_single.pvalue), rtol=1e-9)
            np.testing.assert_allclose(
                single.conf_int(0.1), other_single.conf_int(0.1).reshape(-1, 2), rtol=1e-9
            )
        assert "a + 2 * c = 1" in str(mine.t_test("a + 2 * c = 1"))

    def test_one_restriction_is_the_square_of_z(self) -> None:
        model = result(correlated(0.3))
        assert model.wald_test("b = 0").statistic == pytest.approx(model.tvalues["b"] ** 2, rel=1e-12)
        assert model.wald_test("b = 0").pvalue == pytest.approx(model.pvalues["b"], rel=1e-12)

    def test_redundant_restrictions_count_once(self) -> None:
        model = result(correlated(0.3))
        twice = model.wald_test(["a = b", "2 * a = 2 * b", "b = c"])
        assert twice.df == 2
        assert twice.statistic == pytest.approx(model.wald_test("a = b, b = c").statistic, rel=1e-9)
        with pytest.raises(ParameterError, match="contradict each other: a = 0, a = 1"):
            model.wald_test(["a = 0", "a = 1"])

    def test_far_out(self) -> None:
        for df, statistic in ((1, 1400.0), (3, 2000.0), (4, 9000.0)):
            hypothesis = linear_hypothesis("t", np.eye(df), [f"x{j}" for j in range(df)])
            estimate = np.zeros(df)
            estimate[0] = math.sqrt(statistic)
            log_p = wald_statistic(estimate, np.eye(df), hypothesis)[2]
            import mpmath

            exact = mpmath.log(mpmath.gammainc(mpmath.mpf(df) / 2, statistic / 2, regularized=True))
            assert log_p == pytest.approx(float(exact), rel=1e-9)
        assert "e-" in str(result(correlated(0.0), np.array([99.0, 0.0, 0.0])).wald_test("a = 0"))

    def test_missing_terms_and_unknown_covariances(self) -> None:
        model = result(np.diag([0.04, 0.04, np.nan]), np.array([0.1, 0.5, np.nan]))
        assert math.isfinite(model.wald_test("a = b").statistic)
        with pytest.raises(InvalidForLog, match="no standard error for c"):
            model.wald_test("a = c")
        assert np.isnan(model.t_test("a = c").pvalue).all()
        with pytest.raises(InvalidForLog, match="covariance of the terms of aipw is unknown"):
            result(None).wald_test("a = b")
        assert result(None).wald_test("a = 0").df == 1

    def test_labels_can_be_read_again(self) -> None:
        terms = ["control", "green", "1", "b - a", "site[T.y]"]
        cases = {
            "green = control": "green - control = 0",
            "-2 * control + green = 0": "green - 2 * control = 0",
            "-1 * `1` + green = 0": "green - `1` = 0",
            "-2 * `b - a` + site[T.y] = 1": "site[T.y] - 2 * `b - a` = 1",
            "-1 * green = 2": "-green = 2",
        }
        for text, label in cases.items():
            read = linear_hypothesis("t", text, terms)
            assert read.labels == (label,)
            again = linear_hypothesis("t", label, terms)
            np.testing.assert_array_equal(again.matrix, read.matrix)
            np.testing.assert_array_equal(again.values, read.values)

    def test_naive_means_say_so(self) -> None:
        base = uniform_log()
        untold = LogArrays(action=base.arrays.action, reward=base.arrays.reward)
        naive = ArmMeans(AdaptiveLog.from_arrays(untold, arms=base.arms)).fit("sample-mean")
        for test in (naive.wald_test("a = b, b = c"), naive.t_test("a = b")):
            assert test.notes == (tables.NOT_VALID(), tables.FEWEST_FREEDOM())
            assert all(note in str(test) for note in test.notes)
        fixed = ArmMeans(designs.Uniform().run(BernoulliArms([0.4, 0.6]), 200, rng=0)).fit("sample-mean")
        for test in (fixed.wald_test("`0` = `1`"), fixed.t_test("`0` = `1`")):
            assert test.notes == (tables.FEWEST_FREEDOM(),)

    def test_corrections_and_sequences_say_so(self) -> None:
        log = designs.PrivateUCB(epsilon=0.05).run(BernoulliArms([0.4, 0.6]), 500, rng=0)
        means = ArmMeans(log).fit("sample-mean")
        assert says(means.t_test("`1` = `0`").notes, tables.CONTRASTS_CORRECTED)
        assert says(str(means.wald_test("`1` = `0`")), tables.CONTRASTS_CORRECTED)
        contrast = Contrast(log, treatment=1, control=0).fit("sample-mean")
        assert says(contrast.t_test("`1 - 0` = 0").notes, tables.SINGLES_CORRECTED)
        sequence = ConfidenceSequence(log).fit()
        for test in (sequence.t_test, sequence.wald_test):
            with pytest.raises(InvalidForLog, match="its standard errors are only descriptive"):
                test("`1` = 0")
