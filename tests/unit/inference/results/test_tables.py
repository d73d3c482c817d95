"""Adjusted p-values, comparisons, Markdown, and the efficiency line."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says
from statsmodels.stats.multitest import multipletests

from adaptinf import designs
from adaptinf.claims import Claim, tables
from adaptinf.claims.arms import arm_fits
from adaptinf.errors import ParameterError
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.inference.arms.fit import arm_bounds
from adaptinf.inference.policies.policy_models import PolicyValue
from adaptinf.inference.recommend.recommendation import recommend
from adaptinf.inference.regression.adaptive_ols import AdaptiveOLS
from adaptinf.inference.results.comparison import Comparison, compare
from adaptinf.inference.results.fit_results import Results
from adaptinf.inference.results.multiplicity import adjusted_logs
from adaptinf.inference.results.tables import format_pvalue
from adaptinf.inference.sequences.confidence_sequence import ConfidenceSequence
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.simulation.environments import BernoulliArms, NormalArms

ARMS = BernoulliArms([0.4, 0.6, 0.5])


def private() -> AdaptiveLog:
    return designs.PrivateUCB(epsilon=0.05).run(ARMS, 2000, rng=0)


def theirs(p: Any, method: str) -> np.ndarray:
    return multipletests(p, method={"holm": "holm", "bh": "fdr_bh"}[method])[1]


@pytest.mark.parametrize("method", ["holm", "bh"])
def test_adjustments_against_statsmodels(method: str) -> None:
    rng = np.random.default_rng(3)
    for size in (1, 2, 7, 30):
        p = rng.random(size) ** 4
        np.testing.assert_allclose(np.exp(adjusted_logs(np.log(p), method)), theirs(p, method), rtol=1e-12)
    first, second = theirs([0.01, 0.02], method)
    with_gap = np.exp(adjusted_logs(np.log([0.01, np.nan, 0.02]), method))
    np.testing.assert_allclose(with_gap, [first, np.nan, second], rtol=1e-12)
    assert np.isnan(adjusted_logs(np.array([np.nan]), method)).all()


@pytest.mark.parametrize("method", ["holm", "bh"])
def test_adjustments_in_logs(method: str) -> None:
    """A shift of all logs is a shift of what is adjusted, wherever the cap of 1 plays no part."""
    logs = np.array([-20.0, np.nan, -25.0, -20.5, -30.0])
    near, far = adjusted_logs(logs, method), adjusted_logs(logs - 5000.0, method)
    np.testing.assert_allclose(far, near - 5000.0, rtol=1e-12)
    assert np.exp(far[0]) == 0.0
    assert adjusted_logs(np.array([-math.inf, -1.0]), method)[0] == -math.inf
    log = designs.Uniform().run(NormalArms([0.0, 1.0], 0.01), 2000, rng=0)
    text = ArmMeans(log).fit("aipw", "uniform", null=-1.0).summary(adjust=method).as_text()
    assert text.count("<1e-300") == 4


def test_adjustment_comes_after_the_correction() -> None:
    result = ArmMeans(private()).fit("sample-mean", null=0.5)
    expected = theirs(result.pvalues_corrected.to_numpy(), "holm")
    np.testing.assert_allclose(result.adjust("holm"), expected, rtol=1e-9)
    np.testing.assert_allclose(
        result.adjust("holm", corrected=False), theirs(result.pvalues.to_numpy(), "holm"), rtol=1e-9
    )
    assert result.adjust("bh").name == "p_value_bh"
    valid = ArmMeans(private()).fit("alee", null=0.5)
    np.testing.assert_allclose(valid.adjust("bh"), theirs(valid.pvalues.to_numpy(), "bh"), rtol=1e-9)


@pytest.mark.parametrize(
    ("method", "word", "claim"), [("holm", "Holm", tables.HOLM), ("bh", "BH", tables.BH)]
)
def test_the_summary_shows_it(method: str, word: str, claim: Claim) -> None:
    result = ArmMeans(private()).fit("sample-mean", null=0.5)
    assert says(result.explain(adjust=method).texts, claim, pvalues="the corrected p-values", count=3)
    tabular = result.summary(adjust=method).tables[-1].as_text()
    assert tabular.count(word) == 1  # the heading of its column
    assert "Holm" not in result.summary().as_text()


def test_sequences_are_adjusted_too() -> None:
    result = ConfidenceSequence(private()).fit("betting", null=0.5)
    np.testing.assert_allclose(result.adjust("holm"), theirs(result.pvalues.to_numpy(), "holm"), rtol=1e-9)
    assert says(result.explain(adjust="holm").texts, tables.HOLM, pvalues="the p-values", count=3)


def test_unknown_adjustments() -> None:
    result = ArmMeans(private()).fit("alee")
    for call in (lambda: result.adjust("sidak"), lambda: result.summary(adjust="fdr")):
        with pytest.raises(ParameterError, match="'holm' or 'bh'"):
            call()


def told(table: Comparison) -> list[str]:
    """What stands under a comparison."""
    return [text for _, text in table.summary().lines]


class TestCompare:
    def table(self) -> Any:
        log = private()
        means = ArmMeans(log)
        fixed = ArmMeans(designs.Uniform().run(ARMS, 200, rng=0)).fit("sample-mean", test="exact")
        sequence = ConfidenceSequence(log).fit("betting")
        results = {"naive": means.fit("sample-mean"), "alee": means.fit("alee"), "betting": sequence}
        return compare({**results, "fixed": fixed}, alpha=0.1)

    def test_the_frame(self) -> None:
        table = self.table()
        frame = table.to_frame()
        assert frame["term"].tolist() == [term for term in "012" for _ in range(4)]
        labels = ["not valid", "asymptotic", "anytime", "exact"]
        assert frame["label"].tolist() == labels * 3
        assert frame["label_corrected"].tolist() == ["exact", "", "", ""] * 3
        naive = frame[frame["method"] == "naive"].reset_index(drop=True)
        expected = table.results["naive"].to_frame(0.1)
        pd.testing.assert_frame_equal(naive[list(expected)], expected)
        assert frame.loc[frame["method"] == "alee", "p_value_corrected"].isna().all()

    def test_every_form(self) -> None:
        table = self.table()
        summary = table.summary()
        for text in (str(table), summary.as_markdown(), summary.as_latex(), table._repr_html_()):
            assert "not valid" in text
            assert "betting" in text
        assert "nan" not in str(table)
        valid = {"results": "naive", "label": "exact", "what": tables.INTERVALS(level=90.0)}
        assert says(told(table), tables.CORRECTED_ROWS_VALID, **valid)

    def test_one_column_a_result(self) -> None:
        three = {name: one for name, one in self.table().results.items() if name != "fixed"}
        table = compare(three, alpha=0.1)
        lines = str(table).splitlines()
        heads = [line.split() for line in lines[2:4]]
        assert heads[0] == ["naive", "alee", "betting"]
        assert " ".join(heads[1]) == "(not valid) (asymptotic) (anytime)"
        assert max(map(len, lines)) <= 80
        frame = table.to_frame().set_index(["term", "method"])
        for term in "012":
            place = next(place for place, line in enumerate(lines) if line.startswith(f"{term} "))
            own = frame.loc[term]
            assert lines[place].split()[1:] == [f"{x:.4f}" for x in own["estimate"]]
            limits = zip(own["conf_low"], own["conf_high"], strict=True)
            assert lines[place + 1].split() == [
                part for low, high in limits for part in (f"[{low:.4f},", f"{high:.4f}]")
            ]
            low, high = own.loc["naive", ["conf_low_corrected", "conf_high_corrected"]]
            assert lines[place + 2].split() == [f"{term},", "corrected", f"[{low:.4f},", f"{high:.4f}]"]

    def test_lines_below_say_what_a_result_is_made_of(self) -> None:
        every = self.table().results
        table = compare({name: every[name] for name in ("naive", "betting", "fixed")})
        foot = [" ".join(line.split()) for line in str(table).splitlines()]
        assert "Rounds 2,000 2,000 200" in foot
        assert "Model ArmMeans ConfidenceSequence ArmMeans" in foot
        assert "Design PrivateUCB PrivateUCB Uniform" in foot
        assert "Estimator sample-mean sample-mean sample-mean" in foot
        assert "Corrected rows exact" in foot
        assert not any(line.startswith("Weights") for line in foot)
        log = designs.Uniform().run(ARMS, 200, rng=0)
        alike = compare({"a": ArmMeans(log).fit("aipw"), "b": ArmMeans(log).fit("alee", null=0.5)})
        foot = [" ".join(line.split()) for line in str(alike).splitlines()]
        assert "Weights joint" in foot
        assert "Null 0.5" in foot
        assert not any(line.startswith(("Model", "Design", "Corrected")) for line in foot)

    def test_what_stands_below_an_estimate(self) -> None:
        means = ArmMeans(private())
        given = {"naive": means.fit("sample-mean"), "alee": means.fit("alee")}
        frame = compare(given).to_frame().set_index(["term", "method"]).loc["1"]
        rows = str(compare(given, below="std_error")).splitlines()
        place = next(place for place, line in enumerate(rows) if line.startswith("1 "))
        assert rows[place + 1].split() == [f"({x:.4f})" for x in frame["std_error"]]
        assert rows[place + 2].split()[:2] == ["1,", "corrected"]
        assert float(rows[place + 2].split()[2][1:-1]) == pytest.approx(
            frame.loc["naive", "conf_low_corrected"], abs=5e-5
        )
        rows = str(compare(given, below="p_value")).splitlines()
        logs = [given[name].log_pvalues.loc["1"] for name in given]
        assert rows[place + 1].split() == [f"({format_pvalue(log_p)})" for log_p in logs]
        corrected = format_pvalue(given["naive"].log_pvalues_corrected.loc["1"])
        assert rows[place + 2].split() == ["1,", "corrected", f"({corrected})"]

    def test_stars_are_off_unless_asked_for_and_go_by_valid_p_values(self) -> None:
        log = designs.EpsilonGreedy().run(ARMS, 300, rng=0)
        given = {
            "naive": ArmMeans(log).fit("sample-mean", null=0.5),
            "alee": ArmMeans(log).fit("alee", null=0.5),
        }
        assert "*" not in str(compare(given))
        starred = compare(given, stars=True)
        rows = [line.split() for line in str(starred).splitlines() if line[:1] in "012" and line.strip()]
        for (term, naive, alee), log_p in zip(rows, given["alee"].log_pvalues, strict=True):
            p = math.exp(log_p)
            assert alee.lstrip("0123456789.") == "*" * sum(p <= level for level in (0.05, 0.01, 0.001)), term
            assert "*" not in naive
        assert {len(row[2].lstrip("0123456789.")) for row in rows} >= {0}
        assert says(told(starred), tables.STARRED, nulls="0.5")

    def test_corrected_p_values_decide_on_stars(self) -> None:
        means = ArmMeans(private())
        result = means.fit("sample-mean", null=0.47)
        own, corrected = result.pvalues.loc["0"], result.pvalues_corrected.loc["0"]
        assert own <= 0.01 < corrected
        row = next(line for line in str(compare({"a": result}, stars=True)).splitlines() if line[:2] == "0 ")
        assert row.count("*") == sum(corrected <= level for level in (0.05, 0.01, 0.001))

    def test_many_results_fold_into_blocks(self) -> None:
        means = ArmMeans(designs.Uniform().run(ARMS, 200, rng=0))
        fit = means.fit("alee")
        lines = str(compare({f"model {place}": fit for place in range(9)})).splitlines()
        assert max(map(len, lines)) <= 80
        heads = [line.split() for line in lines if "model" in line]
        assert [place for line in heads for place in line if place != "model"] == list("012345678")
        assert sum(line.startswith("Estimator") for line in lines) == len(heads) == 3

    def test_terms_without_an_estimate_in_a_block_are_left_out_of_it(self) -> None:
        log = designs.Uniform().run(ARMS, 200, rng=0)
        contrast = Contrast(log, treatment=1, control=0).fit()
        means = {f"means {place}": ArmMeans(log).fit("alee") for place in range(3)}
        blocks = str(compare({**means, "difference": contrast})).split("Estimator")
        assert [block.count("\n1 - 0") for block in blocks] == [0, 1, 0]
        assert [block.count("\n2") for block in blocks] == [1, 0, 0]

    def test_fixed_effects_are_one_line(self) -> None:
        rng = np.random.default_rng(4)
        day, action = rng.integers(0, 4, 400), rng.integers(0, 2, 400)
        arrays = LogArrays(action=action, reward=rng.normal(size=400), context={"day": day.astype(float)})
        log = AdaptiveLog.from_arrays(arrays, arms=("a", "b"), design=designs.Uniform().record())
        plain = AdaptiveOLS.from_formula("reward ~ C(action)", log).fit("none")
        days = AdaptiveOLS.from_formula("reward ~ C(action) + C(day)", log).fit("none")
        given = {"plain": plain, "by day": days}
        text = str(compare(given, fixed_effects="C(day)"))
        assert "C(day)[" not in text
        rows = [" ".join(line.split()) for line in text.splitlines()]
        assert "C(day) no yes" in rows
        assert "Std. errors HC2 HC2" in rows
        assert "C(day)[" in str(compare(given))
        assert len(compare(given, fixed_effects=["C(day)"]).to_frame()) == 2 + 5
        with pytest.raises(ParameterError, match=r"no result has coefficients of 'C\(week\)'"):
            compare(given, fixed_effects="C(week)")

    def test_covariates_and_units_have_lines(self) -> None:
        rng = np.random.default_rng(5)
        frame = pd.DataFrame({"arm": rng.integers(0, 2, 600), "spent": rng.normal(size=600)})
        frame["y"] = frame["arm"] + 2 * frame["spent"] + rng.normal(size=600)
        frame["who"], frame["p"] = np.arange(600) % 150, 0.5
        columns = {"action": "arm", "reward": "y", "propensity": "p", "context": ["spent"]}
        log = AdaptiveLog(frame, **columns, about={"context_free": True})
        pair = {"treatment": 1, "control": 0}
        by_round = Contrast(log, **pair)
        by_unit = Contrast(AdaptiveLog(frame, **columns, unit="who", about={"context_free": True}), **pair)
        given = {
            "plain": by_round.fit("aipw"),
            "adjusted": by_round.fit("aipw", covariate="spent"),
            "by unit": by_unit.fit("aipw", "uniform"),
        }
        rows = [" ".join(line.split()) for line in str(compare(given)).splitlines()]
        assert "Covariates spent" in rows
        assert "Units 150" in rows
        assert "Std. errors by unit" in rows

    def test_cautions_of_results_are_told_with_whose_they_are(self) -> None:
        log = designs.Uniform().run(ARMS, 200, rng=0)
        plain = ArmMeans(log).fit("alee")
        warned = replace(plain, cautions=("only 3 events",))
        lines = compare({"a": plain, "b": warned}).summary().lines
        assert lines[0] == ("Caution", "b: Only 3 events.")
        assert [label for label, _ in lines] == ["Caution", "Note", "More"]

    def test_one_tabular_a_table_in_latex(self) -> None:
        log = private()
        for summary in (
            self.table().summary(),
            recommend(log).summary(),
            ArmMeans(log).fit("alee").summary(),
        ):
            text = summary.as_latex()
            assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == len(summary.tables)
            assert text.count(r"\bottomrule") == len(summary.tables)

    def test_nulls(self) -> None:
        means = ArmMeans(private())
        half, zero = means.fit("alee", null=0.5), means.fit("alee")
        same = compare({"a": half, "b": half}, below="p_value")
        assert says(told(same)[0], tables.COMPARED, below=tables.P_VALUES(nulls="0.5"))
        other = compare({"a": half, "b": zero}, stars=True)
        assert says(told(other)[1], tables.NULLS_DIFFER, nulls="0.5 (a) and 0 (b)")

    def test_other_logs_and_other_targets_are_told(self) -> None:
        log = designs.Uniform().run(ARMS, 200, rng=0)
        longer = designs.Uniform().run(ARMS, 300, rng=1)
        same = told(compare({"a": ArmMeans(log).fit("alee"), "b": ArmMeans(log).fit("aipw")}))
        assert not says(same, tables.LOGS_DIFFER)
        assert not says(same, tables.TARGETS_DIFFER)
        means = {"short": ArmMeans(log).fit("alee"), "long": ArmMeans(longer).fit("alee")}
        assert says(
            told(compare(means))[0],
            tables.LOGS_DIFFER,
            results="short (200 rounds, design Uniform); long (300 rounds, design Uniform)",
        )
        values = PolicyValue(log, log.arms[0]).fit()
        notes = told(compare({"means": ArmMeans(log).fit("alee"), "value": values}))
        targets = "arm-mean in means; policy-value in value"
        assert says(notes, tables.TARGETS_DIFFER, term="0", targets=targets)

    def test_baselines_without_corrections(self) -> None:
        log = designs.EpsilonGreedy().run(ARMS, 300, rng=0)
        notes = told(compare({"naive": ArmMeans(log).fit("sample-mean")}))
        assert says(notes, tables.BASELINES, results="naive")

    def test_p_values_that_underflow(self) -> None:
        log = designs.Uniform().run(NormalArms([0.0, 1.0], 0.01), 2000, rng=0)
        result = ArmMeans(log).fit("aipw", "uniform", null=-1.0)
        frame = compare({"far": result}).to_frame()
        assert (frame["p_value"] == 0.0).all()
        assert not any(name.startswith("log_") for name in frame)
        for log_p in result.log_pvalues:
            assert f"({format_pvalue(log_p)})" in str(compare({"far": result}, below="p_value"))

    def test_without_corrections(self) -> None:
        log = designs.Uniform().run(ARMS, 200, rng=0)
        frame = compare(
            {"aipw": ArmMeans(log).fit(), "contrast": Contrast(log, treatment=1, control=0).fit()}
        )
        assert "label_corrected" not in frame.to_frame()
        assert len(frame.to_frame()) == 4
        assert "corrected" not in str(frame)

    def test_labels(self) -> None:
        log = private()
        assert ArmMeans(log).fit("alee").validity == "asymptotic"
        assert ConfidenceSequence(log).fit("asymptotic").validity == "asymptotic"
        assert ConfidenceSequence(log).fit("betting").validity == "anytime"

    @pytest.mark.parametrize(
        ("given", "message"),
        [({}, "pass results by name"), ({"a": 1}, "'a' must be a result"), (["x"], "pass results by name")],
    )
    def test_wrong_uses(self, given: Any, message: str) -> None:
        with pytest.raises(ParameterError, match=message):
            compare(given)

    def test_wrong_options(self) -> None:
        result = ArmMeans(designs.Uniform().run(ARMS, 200, rng=0)).fit("alee")
        with pytest.raises(ParameterError) as caught:
            compare({"a": result}, below="t", stars=1)  # type: ignore[arg-type]
        assert "below must be one of 'interval', 'std_error', 'p_value', got 't'" in str(caught.value)
        assert "stars" in str(caught.value)


def test_markdown_is_literal_and_complete() -> None:
    log = AdaptiveLog.from_arrays(
        LogArrays(action=np.arange(40) % 2, reward=np.arange(40) % 3 / 2.0), arms=("a|b", "c_1")
    )
    text = ArmMeans(log).fit("sample-mean").summary().as_markdown()
    lines = [line for line in text.split("\n") if line.startswith("|")]
    assert "a\\|b" in text
    assert "c\\_1" in text
    assert len(lines) == 2 + 3 + 2 + 2
    assert {line.replace("\\|", "").count("|") for line in lines[5:]} == {8}
    assert "\n- **Method:** " in text


class TestEfficiency:
    def log(self, mean: float, share: float, rounds: int = 200_000) -> AdaptiveLog:
        rng = np.random.default_rng(8)
        action = (rng.random(rounds) < share).astype(np.int64)
        both = np.broadcast_to([1 - share, share], (rounds, 2))
        arrays = LogArrays(
            action=action,
            reward=rng.normal(mean, 1.0, rounds),
            propensity=both[np.arange(rounds), action],
            propensities=both.copy(),
        )
        return AdaptiveLog.from_arrays(arrays, arms=("a", "b"), feedback_rounds=0)

    def ratios(self, result: Results) -> np.ndarray:
        return np.asarray(result.details["efficiency"])

    def test_aipw_attains_the_bound_where_nothing_adapts(self) -> None:
        log = self.log(2.0, 0.2)
        assert self.ratios(ArmMeans(log).fit("aipw", "uniform")) == pytest.approx([1, 1], abs=0.02)
        contrast = Contrast(log, treatment="b", control="a").fit("aipw", "uniform")
        assert self.ratios(contrast) == pytest.approx([1], abs=0.02)

    def test_ipw_loses_the_square_of_the_mean(self) -> None:
        """Variance (s^2 + m^2)/e - m^2 against s^2/e: 1 + m^2 (1 - e) / s^2."""
        found = self.ratios(ArmMeans(self.log(2.0, 0.2)).fit("ipw", "uniform"))
        assert found == pytest.approx([1 + 4 * 0.2, 1 + 4 * 0.8], rel=0.02)

    def test_the_bound(self) -> None:
        log = self.log(0.0, 0.2)
        variance = [log.arrays.reward[log.arrays.action == arm].var(ddof=1) for arm in (0, 1)]
        expected = np.array(variance) / (200_000 * np.array([0.8, 0.2]))
        np.testing.assert_allclose(arm_bounds(profile_of(log), np.array([0, 1])), expected, rtol=1e-10)

    def test_the_footer(self) -> None:
        log = designs.Thompson(floor=(0.5, 0.7)).run(NormalArms([0.0, 1.0]), 500, rng=0)
        result = ArmMeans(log).fit()
        low, high = self.ratios(result).min(), self.ratios(result).max()
        many = f"variances range from {low:.2f} to {high:.2f}"
        assert says(result.explain().texts, arm_fits.EFFICIENCY, variances=many)
        assert "efficiency" in result.diagnostics()
        naive = ArmMeans(log).fit("sample-mean")
        assert "efficiency" not in naive.details
        assert "Efficiency" not in str(naive.explain())

    def test_alee_is_compared_at_the_arms_shares(self) -> None:
        log = designs.Thompson(floor=(0.5, 0.7)).run(NormalArms([0.0, 1.0]), 500, rng=0)
        result = ArmMeans(log).fit("alee")
        counts = np.bincount(log.arrays.action)
        variance = [log.arrays.reward[log.arrays.action == arm].var(ddof=1) for arm in (0, 1)]
        np.testing.assert_allclose(self.ratios(result), result.std_error**2 / (variance / counts), rtol=1e-10)
        assert says(result.efficiency_note, arm_fits.EFFICIENCY, where=arm_fits.AT_SHARES())
        told = ArmMeans(log).fit("aipw").explain().texts
        assert "at the average propensities" in " ".join(told)

    def test_one_round(self) -> None:
        arrays = LogArrays(action=np.array([0]), reward=np.array([1.0]))
        result = ArmMeans(AdaptiveLog.from_arrays(arrays, arms=("a", "b"))).fit("alee")
        assert np.isnan(self.ratios(result)).all()
        assert "Efficiency" not in str(result.explain())
