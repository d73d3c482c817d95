from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

from adaptinf.audit import coverage
from adaptinf.audit.simulation.simulated_power import kind_of_test, power
from adaptinf.designs import PrivateUCB, Uniform
from adaptinf.errors import ParameterError
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.inference.effects.cate import CATE
from adaptinf.simulation.environments import BernoulliArms, FiniteContext, NormalArms, UniformArms

NULL, BETTER = BernoulliArms([0.3, 0.3]), BernoulliArms([0.3, 0.6])


def contrast(log):
    return Contrast(log, treatment=1, control=0).fit()


def both(log):
    return {"means": ArmMeans(log).fit(null=0.3), "contrast": contrast(log)}


@pytest.mark.slow
def test_rows_are_those_of_coverage_with_the_same_seed():
    plan = power(Uniform(), {"null": NULL, "better": BETTER}, both, [60, 120], 130, rng=4)
    assert plan.frame["scenario"].unique().tolist() == ["null", "better"]
    for name, env in (("null", NULL), ("better", BETTER)):
        for horizon in (60, 120):
            place = (plan.frame["scenario"] == name) & (plan.frame["horizon"] == horizon)
            rows = plan.frame[place].reset_index(drop=True)
            known = coverage(Uniform(), env, both, horizon, 130, rng=4).frame
            columns = ["analysis", "term", "truth", "null", "runs", "coverage", "bias", "sd", "width"]
            pd.testing.assert_frame_equal(rows[columns], known[columns])
            np.testing.assert_allclose(rows["rejection"], known["rejected"], atol=1e-15)


def test_a_rejection_is_an_error_only_where_the_null_is_true():
    frame = power(Uniform(), BETTER, both, 80, 64, rng=0).frame.set_index(["analysis", "term"])
    assert frame.loc[("means", "0"), "kind"] == "type-I error"
    assert frame.loc[("means", "1"), "kind"] == "power"
    assert frame.loc[("contrast", "1 - 0"), "kind"] == "power"
    assert frame.loc[("means", "1"), "rejection"] > 0.9
    assert kind_of_test(0.1 + 0.2, 0.3) == "type-I error"
    assert kind_of_test(0.3 + 1e-9, 0.3) == "power"


def test_another_null_is_tested_by_the_same_intervals():
    given = power(Uniform(), BETTER, contrast, 80, 64, rng=1, null=0.3)
    direct = power(
        Uniform(), BETTER, lambda log: Contrast(log, treatment=1, control=0).fit(null=0.3), 80, 64, rng=1
    )
    pd.testing.assert_frame_equal(given.frame, direct.frame)
    assert given.frame["kind"].tolist() == ["type-I error"]


def test_terms_without_a_null_test_nothing():
    plan = power(Uniform(), BETTER, both, 80, 64, rng=1, null={"1 - 0": 0.0})
    means = plan.frame[plan.frame["analysis"] == "means"]
    assert means["kind"].tolist() == ["no test", "no test"]
    assert means[["null", "rejection", "rejection_se", "rejection_low"]].isna().all(axis=None)
    assert means["coverage"].notna().all()
    assert "There is no test" in str(plan)
    with pytest.raises(ParameterError, match="null: there is no term 'arm 9'; available: '0', '1', '1 - 0'"):
        power(Uniform(), BETTER, both, 80, 64, rng=1, null={"arm 9": 0.0})


def test_a_trial_without_an_interval_does_not_reject():
    def rarely(log):
        from dataclasses import replace

        result = contrast(log)
        if log.arrays.reward.sum() % 2:
            return replace(result, estimate=result.estimate * np.nan)
        return result

    whole = power(Uniform(), NormalArms([0.0, 5.0]), contrast, 60, 64, rng=2).frame.iloc[0]
    assert whole["rejection"] == 1.0
    row = power(Uniform(), BernoulliArms([0.05, 0.95]), rarely, 60, 64, rng=2).frame.iloc[0]
    assert row["runs"] + row["missing"] == 64
    assert 10 < row["missing"] < 54
    assert row["rejection"] == row["runs"] / 64


def test_simulation_error_is_binomial_with_exact_limits():
    row = power(Uniform(), BETTER, contrast, 40, 100, rng=3).frame.iloc[0]
    count = round(row["rejection"] * 100)
    assert 0 < count < 100
    assert row["rejection_se"] == pytest.approx(np.sqrt(count * (100 - count) / 1e6))
    assert row["rejection_low"] == pytest.approx(beta.ppf(0.025, count, 101 - count))
    assert row["rejection_high"] == pytest.approx(beta.ppf(0.975, count + 1, 100 - count))


def test_a_corrected_result_has_a_second_row():
    def one_arm(log):
        return ArmMeans(log, arms=[1]).fit("sample-mean", null=0.5)

    frame = power(PrivateUCB(epsilon=0.05), BETTER, one_arm, 200, 64, rng=0).frame
    assert frame["analysis"].tolist() == ["sample-mean", "sample-mean, corrected"]
    assert frame["rejection"].iloc[1] <= frame["rejection"].iloc[0]
    assert frame["width"].iloc[1] > frame["width"].iloc[0]


@pytest.mark.slow
def test_the_same_numbers_for_any_number_of_workers():
    arguments = (Uniform(), {"null": NULL, "better": BETTER}, both, 40, 200)
    one, two = (power(*arguments, rng=1, n_jobs=jobs).frame for jobs in (1, 2))
    pd.testing.assert_frame_equal(one, two, check_exact=True)


def test_everything_wrong_is_said_at_once():
    with pytest.raises(ParameterError) as error:
        power(
            "Uniform",
            {"null": NULL, " ": 3},
            "contrast",
            [100, 100],
            0,
            rng=-1,
            null={"1 - 0": "zero"},
            alpha=0.7,
            n_jobs=0,
        )
    text = str(error.value)
    for part in (
        "design must be a design",
        "scenario names that are not empty",
        "env[' '] must be an environment",
        "horizons must differ",
        "replications must be a whole number",
        "rng must be",
        "alpha",
        "n_jobs",
        "fit must be a function",
        "null['1 - 0'] must be a number",
    ):
        assert part in text, part
    with pytest.raises(ParameterError, match="environment 'wide' over 50 rounds: rewards must lie in"):
        power(PrivateUCB(epsilon=1.0), {"wide": UniformArms([0, 0], [2, 2])}, contrast, [50], 64, rng=0)
    with pytest.raises(ParameterError, match="env must be an environment"):
        power(Uniform(), {}, contrast, 50, 64, rng=0)


def test_it_prints_and_writes(tmp_path):
    plan = power(Uniform(), {"equal": NULL, "better": BETTER}, contrast, 60, 64, rng=1)
    text = str(plan).splitlines()
    assert text[0] == "Uniform()"
    assert text[1] == "64 simulated trials per scenario and horizon, alpha 0.05"
    # What is the same in all rows.
    assert text[2].startswith("analysis sample-mean, term 1 - 0, null 0.0000, missing ")
    assert ["scenario", "horizon", "truth", "kind"] in [line.split()[:4] for line in text]
    assert max(map(len, text)) <= 80
    assert plan.to_markdown(["scenario", "rejection"], digits=2).splitlines()[0] == "| scenario | rejection |"
    with pytest.raises(ParameterError, match="no column 'powr'"):
        plan.to_markdown(["powr"])
    plan.to_csv(tmp_path / "power.csv")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "power.csv"), plan.frame, check_dtype=False)


def test_rows_that_differ_in_much_fold_beside_what_tells_them_apart():
    def two(log):
        return {"the usual sample means": contrast(log), "the same under a long name": contrast(log)}

    plan = power(
        Uniform(), {"no difference at all": NULL, "better by a fifth": BETTER}, two, [50, 60], 64, rng=1
    )
    lines = str(plan).splitlines()
    assert max(map(len, lines)) <= 80
    heads = [line.split() for line in lines if line.startswith("scenario ")]
    assert [head[:3] for head in heads] == [["scenario", "horizon", "analysis"]] * len(heads)
    shown = [word for head in heads for word in head[3:]]
    assert shown[-4:] == ["se", "coverage", "bias", "width"]
    assert "null 0.0000" in lines[2]


def test_trials_without_the_result_are_missing():
    def sometimes(log):
        return {} if log.arrays.reward.sum() % 2 else {"a": contrast(log)}

    there = sum(float(log.arrays.reward.sum()) % 2 == 0 for log in Uniform().logs(NULL, 50, 128, 0))
    plan = power(Uniform(), NULL, sometimes, 50, 128, rng=0)
    [row] = plan.frame.to_dict("records")
    assert (row["runs"], row["missing"], row["absent"]) == (there, 128 - there, 128 - there)
    assert f"In up to {128 - there} trials, the analysis returned no such result or term" in str(plan)


def test_one_trial_has_no_standard_error():
    row = power(Uniform(), BETTER, contrast, 60, 1, rng=0).frame.iloc[0]
    assert row[["rejection_se", "coverage_se", "bias_se"]].isna().all()
    assert row["rejection_high"] - row["rejection_low"] == pytest.approx(0.975)


def test_a_null_may_name_a_term_that_the_first_trial_lacks():
    def by_context(log):
        return CATE(log, by="feature", treatment=1, control=0).fit("difference-in-means")

    env = FiniteContext([0.97, 0.03], [[0.3, 0.6], [0.3, 0.6]])
    frame = power(Uniform(), env, by_context, 60, 64, rng=0, null={"feature=1": 0.3}).frame
    kinds = frame.set_index("term")["kind"]
    assert kinds.to_dict() == {"feature=0": "no test", "feature=1": "type-I error"}
    assert frame["runs"].add(frame["missing"]).tolist() == [64, 64]
    assert frame.set_index("term")["absent"]["feature=1"] > 0
