from __future__ import annotations

import numpy as np
import pytest

from adaptinf.audit import coverage, coverage_from_tallies, true_value
from adaptinf.designs import EpsilonGreedy, PrivateUCB, Uniform
from adaptinf.errors import ParameterError
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.sequences.confidence_sequence import ConfidenceSequence
from adaptinf.simulation.environments import BernoulliArms, FiniteContext, FunctionEnvironment, NormalArms

ENV = BernoulliArms([0.3, 0.6])


def fit_both(log):
    return {"means": ArmMeans(log).fit(), "contrast": Contrast(log, treatment=1, control=0).fit()}


def normal_intervals(sims):
    size = 1.96 * np.sqrt(sims.means * (1 - sims.means) / sims.pulls)
    return {"wald": (sims.means, sims.means - size, sims.means + size)}


def test_numbers_equal_a_literal_loop_over_logs():
    design = Uniform()
    result = coverage(design, ENV, fit_both, 200, 70, rng=3).frame.set_index(["analysis", "term"])
    covered, errors, widths = [], [], []
    for log in design.logs(ENV, 200, 70, rng=3):
        contrast = Contrast(log, treatment=1, control=0).fit()
        low, high = contrast.conf_int().to_numpy()[0]
        covered.append(low <= 0.3 <= high)
        errors.append(contrast.params.iloc[0] - 0.3)
        widths.append(high - low)
    row = result.loc[("contrast", "1 - 0")]
    assert row["runs"] == 70
    assert row["coverage"] == pytest.approx(np.mean(covered), abs=1e-12)
    assert row["bias"] == pytest.approx(np.mean(errors), abs=1e-12)
    assert row["sd"] == pytest.approx(np.std(errors), rel=1e-9)
    assert row["width"] == pytest.approx(np.mean(widths), rel=1e-12)
    assert row["below"] + row["above"] + row["coverage"] == pytest.approx(1.0)


@pytest.mark.slow
def test_a_corrected_interval_has_its_own_row_and_covers_more():
    frame = coverage(PrivateUCB(epsilon=0.05), ENV, fit_both, 200, 64, rng=0).frame.set_index("analysis")
    assert frame.loc["contrast, corrected", "width"] > frame.loc["contrast", "width"]
    assert frame.loc["contrast, corrected", "coverage"] >= frame.loc["contrast", "coverage"]


@pytest.mark.slow
def test_the_same_numbers_for_any_number_of_workers():
    one = coverage(Uniform(), ENV, fit_both, 60, 2_100, rng=1, n_jobs=1).frame
    two = coverage(Uniform(), ENV, fit_both, 60, 2_100, rng=1, n_jobs=2).frame
    assert one.equals(two)


def test_tallies_give_the_numbers_of_logs():
    def wald(log):
        return ArmMeans(log).fit(estimator="sample-mean", test="normal")

    logs = coverage(Uniform(), ENV, wald, 300, 128, rng=2).frame
    tallies = coverage_from_tallies(Uniform(), ENV, normal_intervals, [0.3, 0.6], 300, 128, rng=2).frame
    np.testing.assert_allclose(tallies["bias"], logs["bias"], atol=1e-12)
    assert tallies["term"].tolist() == ["0", "1"]


def test_a_run_without_an_interval_is_counted():
    def holes(sims):
        estimate, low, high = normal_intervals(sims)["wald"]
        low[::4] = np.nan
        return {"holes": (estimate, low, high)}

    frame = coverage_from_tallies(Uniform(), ENV, holes, [0.3, 0.6], 100, 64, rng=0).frame
    assert frame["missing"].tolist() == [16, 16]
    assert frame["runs"].tolist() == [48, 48]


def test_an_empty_sequence_is_a_miss_and_no_gap():
    """A noise scale that is far too small makes a sequence exclude every value."""
    table = coverage(
        Uniform(),
        NormalArms([0.0, 0.0], scale=1.0),
        lambda log: ConfidenceSequence(log).fit("normal-mixture", sigma=0.2),
        horizon=300,
        replications=64,
        rng=3,
    ).frame
    assert (table["missing"] == 0).all()
    assert (table["coverage"] < 0.2).all()
    literal = []
    for log in Uniform().logs(NormalArms([0.0, 0.0], scale=1.0), 300, 64, np.random.SeedSequence(3)):
        limits = ConfidenceSequence(log).fit("normal-mixture", sigma=0.2).conf_int().to_numpy()
        literal.append((limits[:, 0] <= 0.0) & (limits[:, 1] >= 0.0))
    np.testing.assert_allclose(table["coverage"], np.mean(literal, axis=0))
    assert np.isfinite(table["width"]).all()


def test_truth_of_each_kind_of_estimand():
    context = FiniteContext([0.5, 0.5], [[0.4, 0.7], [0.6, 0.3]])
    assert true_value(Estimand("arm-mean", arm=1), context) == pytest.approx(0.5)
    assert true_value(Estimand("contrast", treatment=0, control=1), ENV) == pytest.approx(-0.3)
    assert true_value(Estimand("lift", treatment=1, control=0), context) == pytest.approx(0.5 / 0.5 - 1.0)
    assert true_value(Estimand("lift", treatment=0, control=1), ENV) < 0.0
    assert true_value(Estimand("cate", treatment=1, control=0, group=1), context) == pytest.approx(-0.3)
    with pytest.raises(ParameterError, match=r"no arm 7(.|\n)*no context 9"):
        true_value(Estimand("cate", treatment=7, control=0, group=9), context)


def test_truth_of_ratio_metrics():
    """Means of the reward over means of a further outcome, by arm, both over contexts as they arrive."""
    weights, top, bottom = (
        np.array([0.25, 0.75]),
        np.array([[1.0, 2.0], [3.0, 4.0]]),
        [[0.5, 1.0], [1.5, 1.0]],
    )

    def draw(rng, horizon):
        feature = rng.integers(0, 2, horizon)
        return {"rewards": top[feature], "contexts": feature, "outcomes": {"z": np.ones((horizon, 2))}}

    env = FunctionEnvironment(draw, top, features=[0, 1], probabilities=weights, outcome_means={"z": bottom})
    ratios = (weights @ top) / (weights @ np.array(bottom))
    pair = {"treatment": 1, "control": 0, "denominator": "z"}
    assert true_value(Estimand("ratio", arm=0, denominator="z"), env) == pytest.approx(ratios[0])
    assert true_value(Estimand("ratio-contrast", **pair), env) == pytest.approx(ratios[1] - ratios[0])
    assert true_value(Estimand("ratio-lift", **pair), env) == pytest.approx(ratios[1] / ratios[0] - 1.0)
    with pytest.raises(ParameterError, match="no true mean of the denominator, orders, but only of 'z'"):
        true_value(Estimand("ratio", arm=0, denominator="orders"), env)


def test_coverage_of_a_ratio_metric():
    """The rows of `coverage` are judged by the environment's own means: one log literally."""

    def draw(rng, horizon):
        orders = rng.poisson([0.8, 1.2], (horizon, 2)) + 1.0
        return {
            "rewards": orders * [2.0, 2.5] + rng.normal(size=(horizon, 2)),
            "outcomes": {"orders": orders},
        }

    env = FunctionEnvironment(draw, [3.6, 5.5], outcome_means={"orders": [1.8, 2.2]})
    frame = coverage(
        EpsilonGreedy(exploration=0.3),
        env,
        lambda log: ArmMeans(log, denominator="orders").fit(),
        200,
        64,
        rng=1,
    ).frame
    np.testing.assert_allclose(frame["truth"], [2.0, 2.5])
    assert (frame["coverage"] > 0.8).all()
    assert (frame["bias"].abs() < 0.1).all()


def test_bad_parameters_are_refused():
    with pytest.raises(ParameterError, match="replications must be a whole number"):
        coverage(Uniform(), ENV, fit_both, 10, 0, rng=0)
    with pytest.raises(ParameterError, match="alpha"):
        coverage(Uniform(), ENV, fit_both, 10, 64, rng=0, alpha=0.7)


def test_it_prints_as_a_table():
    text = str(coverage(Uniform(), ENV, fit_both, 60, 64, rng=1))
    assert text.splitlines()[0] == "Uniform() in BernoulliArms(arms=[0, 1])"
    assert "60 rounds, 64 replications, nominal coverage 0.95" in text
