"""Pictures draw the numbers that they are given, say what is missing, and are saved byte for byte."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

import adaptinf as ai
from adaptinf import plots
from adaptinf.audit.privacy.lower_bound import EpsilonLowerBound
from adaptinf.audit.rerun.simulated_bias import SimulatedBias
from adaptinf.audit.simulation.simulated_coverage import Coverage
from adaptinf.audit.simulation.study_tables import Study
from adaptinf.claims.reports import pictures as claims
from adaptinf.designs.run_results import Replications
from adaptinf.errors import InvalidForLog, MissingDependencyError, ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.inference.corrections.information import Correction
from adaptinf.inference.distributions.references import NormalReference
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.fit_results import Results
from adaptinf.inference.results.log_facts import LogFacts
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.plots.privacy_plots import final_bins
from adaptinf.plots.style import label_text, look
from adaptinf.theory.tradeoff import Frontier

ESTIMATE, ERROR = np.array([0.3, 0.5, 0.7]), np.array([0.02, 0.05, 0.03])


@dataclass(frozen=True)
class Given:
    """A reference whose intervals are given."""

    limits: Any
    name: str = "given"
    exact: bool = True

    def log_pvalues(self, null: float) -> Any:
        return np.zeros(len(self.limits))

    def interval(self, log_alpha: float) -> Any:
        return np.array(self.limits, dtype=float)


def results(
    estimate: Any = ESTIMATE,
    std_error: Any = ERROR,
    *,
    arms: tuple[Any, ...] = ("a", "b", "c"),
    kind: str = "arm-mean",
    limits: Any = None,
    **others: Any,
) -> Results:
    estimate, std_error = np.asarray(estimate, dtype=float), np.asarray(std_error, dtype=float)
    reference = NormalReference(estimate, std_error) if limits is None else Given(limits)
    return Results(
        model="ArmMeans",
        estimands=tuple(Estimand(kind, arm=arm) for arm in arms),
        terms=tuple(str(arm) for arm in arms),
        estimate=estimate,
        std_error=std_error,
        reference=reference,
        estimator="aipw",
        facts=LogFacts(n_rounds=100),
        **others,
    )


def corrected_results() -> Results:
    correction = Correction(0.01, 100, PrivacyGuarantee(epsilon=0.01))
    return results(correction=correction, validity="not valid")


def log_of(action: Any, n_arms: int = 2, **others: Any) -> AdaptiveLog:
    action = np.asarray(action, dtype=np.int64)
    arrays = LogArrays(action=action, reward=np.zeros(action.size), **others)
    return AdaptiveLog.from_arrays(arrays, arms=tuple("abcdef"[:n_arms]))


def runs_of(means: Any, truth: Any, pulls: Any = 10.0, regret: Any = None) -> Replications:
    """Replications with these sample means, shape (runs, arms); NaN for an arm that was never pulled."""
    means = np.asarray(means, dtype=float)
    counts = np.where(np.isnan(means), 0.0, pulls)
    sums = np.where(np.isnan(means), 0.0, means * counts)
    tallies = np.stack([counts, sums, sums], axis=-1)[:, None, None]
    spent = np.zeros(len(means)) if regret is None else np.asarray(regret, dtype=float)
    return Replications(tallies, np.zeros((len(means), 0)), (), (), spent, False, np.array([truth]))


def bound_of(epsilon: float, promised: float | None, target: str = "a design") -> EpsilonLowerBound:
    guarantee = None if promised is None else PrivacyGuarantee(epsilon=promised)
    return EpsilonLowerBound(epsilon, 0.95, 0.0, 200, 100, (50, 20), "an event", target, guarantee)


def segments(ax: Any, label: str) -> Any:
    """Ends of the horizontal lines of a series, and their heights."""
    [lines] = [
        c
        for c in ax.collections
        if isinstance(c, LineCollection) and c.get_label() == label and c.get_segments()
    ]
    drawn = np.array(lines.get_segments())
    return drawn[:, :, 0], drawn[:, 0, 1]


def markers(ax: Any, marker: str) -> Any:
    """Points drawn with a marker, shape (points, 2)."""
    lines = [line for line in ax.get_lines() if line.get_marker() == marker]
    found = [np.column_stack([line.get_xdata(), line.get_ydata()]) for line in lines]
    return np.concatenate(found) if found else np.empty((0, 2))


def legend(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def written(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.texts]


def refusal(call: Callable[[], Any]) -> str:
    with pytest.raises(ParameterError) as caught:
        call()
    return str(caught.value)


# forests


def test_intervals_that_hold_at_once_are_drawn_beside_single_ones() -> None:
    log = ai.designs.EpsilonGreedy(exploration=0.5).run(
        ai.environments.BernoulliArms([0.3, 0.4, 0.5]), horizon=600, rng=1
    )
    result = ai.Contrasts(log, control=0).fit(lift=True)
    ax = ai.plots.forest(result, alpha=0.1, simultaneous=True)
    single, _ = segments(ax, "90% interval")
    together, _ = segments(ax, "90% interval, simultaneous")
    np.testing.assert_array_equal(single, result.conf_int(0.1).to_numpy())
    np.testing.assert_array_equal(together, result.conf_int_simultaneous(0.1).to_numpy())
    assert ax.get_xlabel() == "relative lift"


def test_forest_draws_both_intervals_where_they_are() -> None:
    result = corrected_results()
    ax = plots.forest(result, alpha=0.1, truth={"a": 0.31, "c": 0.7})
    naive, heights = segments(ax, "naive 90% interval")
    np.testing.assert_array_equal(naive, result.conf_int(0.1).to_numpy())
    corrected, lower = segments(ax, "corrected 90% interval")
    np.testing.assert_array_equal(corrected, result.conf_int_corrected(0.1).to_numpy())
    assert (np.abs(corrected[:, 0] - corrected[:, 1]) > naive[:, 1] - naive[:, 0]).all()
    np.testing.assert_array_equal(markers(ax, "o"), np.column_stack([ESTIMATE, heights]))
    np.testing.assert_array_equal(markers(ax, "s"), np.column_stack([ESTIMATE, lower]))
    assert (np.round(heights) == [0, 1, 2]).all()
    assert (lower > heights).all()
    assert ax.yaxis_inverted()
    np.testing.assert_array_equal(markers(ax, "D"), [[0.31, 0], [np.nan, 1], [0.7, 2]])
    assert legend(ax) == ["naive 90% interval", "corrected 90% interval", "true value"]
    assert ax.get_xlabel() == "mean reward"
    low, high = ax.get_xlim()
    assert low < corrected.min()
    assert high > corrected.max()


def test_forest_can_leave_the_corrected_intervals_out() -> None:
    ax = plots.forest(corrected_results(), corrected=False)
    assert legend(ax) == ["naive 95% interval"]


def test_forest_overlays_results_by_name_and_keeps_terms_apart() -> None:
    second = results([0.52, 0.2], [0.01, 0.02], arms=("b", "d"))
    ax = plots.forest({"first": corrected_results(), "second": second}, unit="visits")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b", "c", "d"]
    assert legend(ax) == ["first (naive)", "first, corrected", "second"]
    ends, heights = segments(ax, "second")
    np.testing.assert_array_equal(ends, second.conf_int().to_numpy())
    assert np.round(heights).tolist() == [1.0, 3.0]
    assert ax.get_xlabel() == "mean reward (visits)"
    colours = [to_hex(handle.get_color()) for handle in ax.get_legend().legend_handles]
    assert colours == [look(0).colour.lower(), look(0).colour.lower(), look(1).colour.lower()]


def test_forest_draws_arrows_where_limits_are_infinite_or_beyond_the_axis() -> None:
    limits = [[0.2, np.inf], [-np.inf, np.inf], [0.6, 0.8]]
    ax = plots.forest(results(limits=limits))
    low, high = ax.get_xlim()
    np.testing.assert_allclose(segments(ax, "95% interval")[0], [[0.2, high], [low, high], [0.6, 0.8]])
    assert markers(ax, ">").tolist() == [[high, 0.0], [high, 1.0]]
    assert markers(ax, "<").tolist() == [[low, 1.0]]
    assert np.isfinite([low, high]).all()
    ax = plots.forest(results(limits=limits), limits=(0.25, 0.65))
    assert ax.get_xlim() == (0.25, 0.65)
    np.testing.assert_allclose(segments(ax, "95% interval")[0], [[0.25, 0.65], [0.25, 0.65], [0.6, 0.65]])
    assert markers(ax, "<").tolist() == [[0.25, 0.0], [0.25, 1.0]]
    assert markers(ax, ">").tolist() == [[0.65, 0.0], [0.65, 1.0], [0.65, 2.0]]
    assert markers(ax, "o")[:, 0].tolist() == [0.3, 0.5]


def test_forest_draws_an_interval_that_is_wholly_beyond_the_axis_as_an_arrow() -> None:
    ax = plots.forest(results(), limits=(0.6, 0.8))
    assert segments(ax, "95% interval")[1].tolist() == [2.0]
    assert markers(ax, "<")[:, 1].tolist() == [0.0, 1.0]


def test_forest_keeps_rows_without_an_interval_and_says_why() -> None:
    result = results(
        [0.3, np.nan, 0.7],
        [0.02, np.nan, np.nan],
        notes=(
            "a, b: effective sample size below 10: normal intervals may be far too short.",
            "b: never chosen, so nothing is estimated.",
        ),
    )
    ax = plots.forest(result)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b", "c"]
    said = [" ".join(text.split()) for text in written(ax)]
    assert said == ["no interval: never chosen, so nothing is estimated", "no interval: see its notes"]
    assert [text.get_position()[1] for text in ax.texts] == [1.0, 2.0]
    assert markers(ax, "o").tolist() == [[0.3, 0.0], [0.7, 2.0]]
    bins = results([np.nan], [np.nan], arms=("a",), limits=[[0.1, 0.9]])
    assert written(plots.forest(bins)) == ["no estimate"]


def test_forest_marks_the_null_of_differences_alone() -> None:
    def vertical(ax: Any) -> list[float]:
        return [float(line.get_xdata()[0]) for line in ax.get_lines() if list(line.get_ydata()) == [0, 1]]

    assert vertical(plots.forest(results(kind="contrast", null=0.1))) == [0.1]
    assert vertical(plots.forest(results(null=0.1))) == []


def test_forest_takes_the_rows_that_are_asked_for() -> None:
    ax = plots.forest(results(), terms=["c", "a"], truth=[0.71, 0.29])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["c", "a"]
    assert markers(ax, "o")[:, 0].tolist() == [0.7, 0.3]
    assert markers(ax, "D")[:, 0].tolist() == [0.71, 0.29]


def test_forest_lists_everything_that_is_wrong() -> None:
    text = refusal(
        lambda: plots.forest(
            results(), ax="here", alpha=0.7, truth={"z": 1.0}, terms=["q"], limits=(1, 0), legend="left"
        )
    )
    assert text.startswith("plots.forest: 6 problems")
    for part in ("ax must be", "alpha must be", "'z'", "no term 'q'", "limits must be", "legend must be"):
        assert part in text
    assert "results must be" in refusal(lambda: plots.forest([1.0]))
    assert "results must be" in refusal(lambda: plots.forest({}))
    assert "results['x'] must be" in refusal(lambda: plots.forest({"x": 3}))
    assert "a sequence of 3 finite numbers (one per row)" in refusal(
        lambda: plots.forest(results(), truth=[0.1, 0.2])
    )


# collection


def test_allocation_draws_the_share_of_each_step() -> None:
    action = [0, 1, 1, 0, 1, 1]
    ax = plots.allocation(log_of(action), every=2)
    first, second = (line.get_ydata() for line in ax.get_lines())
    np.testing.assert_array_equal(second, np.repeat([0.5, 0.5, 1.0], 3))
    np.testing.assert_array_equal(first, np.repeat([0.5, 0.5, 0.0], 3))
    np.testing.assert_array_equal(ax.get_lines()[0].get_xdata(), [0, 1, 2, 2, 3, 4, 4, 5, 6])
    assert written(ax) == ["a", "b"]
    assert ax.get_ylabel() == "share of every 2 rounds"
    assert legend(plots.allocation(log_of(action), legend="above")) == ["a", "b"]


def test_allocation_of_several_logs_has_a_band() -> None:
    table = np.random.default_rng(2).integers(0, 2, (40, 30))
    ax = plots.allocation((log_of(row) for row in table), band=0.5, every=10)
    shares = table.reshape(40, 3, 10).mean(axis=2)
    np.testing.assert_allclose(ax.get_lines()[1].get_ydata()[1::3], shares.mean(axis=0))
    corners = ax.collections[1].get_paths()[0].vertices
    for at, quantile in ((0.25, np.min), (0.75, np.max)):
        found = [quantile(corners[corners[:, 0] == middle, 1]) for middle in (5, 15, 25)]
        np.testing.assert_allclose(found, np.quantile(shares, at, axis=0))


@pytest.mark.parametrize(("rounds", "step"), [(6, 1), (300, 10), (2_000, 100), (100_000, 5_000)])
def test_allocation_of_a_long_log_has_some_thirty_steps(rounds: int, step: int) -> None:
    action = np.random.default_rng(3).integers(0, 2, rounds)
    frame = plots.allocation.frame(log_of(action))
    own = frame[frame["arm"] == "b"]
    assert own["end"].tolist() == list(range(step, rounds + 1, step))
    np.testing.assert_allclose(own["share"], action.reshape(-1, step).mean(axis=1))


def test_allocation_refuses_what_does_not_fit_together() -> None:
    one, longer, other = log_of([0, 1]), log_of([0, 1, 1]), log_of([0, 1], 3)
    text = refusal(lambda: plots.allocation([one, longer, other], ax=3, band=2.0))
    assert "4 problems" in text
    assert "the same arms" in text
    assert "2 to 3" in text
    assert "at most 2" in refusal(lambda: plots.allocation(one, every=3))
    assert "requires a log with batches" in refusal(lambda: plots.allocation(one, every="batch"))
    assert "a column of dates" in refusal(lambda: plots.allocation(one, every="day"))
    assert "every must be" in refusal(lambda: plots.allocation(one, every="year"))
    assert "a number of rounds for several logs" in refusal(lambda: plots.allocation([one, one], every="day"))
    assert "no arm 'z'" in refusal(lambda: plots.allocation(one, arms=["z"]))
    assert "logs must contain at least one log" in refusal(lambda: plots.allocation([]))
    assert "must be an AdaptiveLog, Sums, a public part, or a list" in refusal(
        lambda: plots.allocation("log")
    )


def test_propensities_are_means_and_ranges_of_stretches() -> None:
    chance = np.random.default_rng(4).uniform(0.1, 0.9, 1000)
    log = log_of(np.zeros(1000), propensity=chance, propensities=np.column_stack([chance, 1.0 - chance]))
    ax = plots.propensities(log, log_scale=False)
    drawn = ax.get_lines()[0]
    edges = np.unique(np.round(np.linspace(1, 1000, 40)).astype(int)) - 1
    pieces = np.split(chance, edges[1:])
    np.testing.assert_allclose(drawn.get_ydata(), [piece.mean() for piece in pieces])
    corners = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert corners.min() == min(piece.min() for piece in pieces)
    assert corners.max() == max(piece.max() for piece in pieces)


def test_propensities_of_zero_are_counted_on_a_log_scale() -> None:
    chance = np.array([0.5, 0.0, 0.25, 0.0])
    log = log_of([1, 1, 1, 1], propensity=1 - chance, propensities=np.column_stack([chance, 1 - chance]))
    ax = plots.propensities(log, floor=lambda t: 0.1 / t)
    assert sorted(written(ax)) == ["a (0 in 50.0% of rounds)", "b", "floor"]
    floor = ax.get_lines()[-1]
    np.testing.assert_allclose(floor.get_ydata(), 0.1 / np.arange(1, 5))
    assert ax.get_ylim()[0] == pytest.approx(0.025 / 1.5)
    assert ax.get_xscale() == ax.get_yscale() == "log"
    assert legend(plots.propensities(log, log_scale=False, legend="above")) == ["a", "b"]
    [name] = [text for text in ax.texts if text.get_text().startswith("a")]
    assert name.xy == (1.0, 0.0)  # the line ends at 0, below the axis
    ax.figure.canvas.draw()


def test_propensities_of_the_chosen_arm_alone() -> None:
    log = log_of([0, 1, 1, 0], propensity=np.array([0.5, 0.6, 0.7, 0.2]))
    ax = plots.propensities(log, log_scale=False)
    assert ax.get_ylabel() == "propensity of the chosen arm"
    assert ax.get_lines()[0].get_ydata().tolist() == [0.5, 0.2]
    assert ax.get_lines()[1].get_xdata().tolist() == [2.0, 3.0]


def test_propensities_refuse_a_log_without_them_and_a_bad_floor() -> None:
    with pytest.raises(InvalidForLog, match="no propensities"):
        plots.propensities(log_of([0, 1]))
    text = refusal(lambda: plots.propensities(log_of([0, 1]), floor=[0.1, 2.0], log_scale=1))
    assert "floor must be between 0 and 1" in text
    assert "log_scale must be" in text
    assert "must be an AdaptiveLog" in refusal(lambda: plots.propensities(None))


# confidence sequences


@pytest.fixture(scope="module")
def sequence() -> Any:
    rng = np.random.default_rng(5)
    chance = np.full((400, 2), 0.5)
    arrays = LogArrays(
        action=rng.integers(0, 2, 400),
        reward=rng.integers(0, 2, 400).astype(float),
        propensity=np.full(400, 0.5),
        propensities=chance,
    )
    log = AdaptiveLog.from_arrays(arrays, arms=("a", "b"), reward_range=(0.0, 1.0))
    return ai.ConfidenceSequence(log).fit(method="empirical-bernstein")


def test_confidence_sequences_are_those_of_the_table(sequence: Any) -> None:
    ax = plots.confidence_sequence(sequence, terms=["b"], alpha=0.1, rounds=[10, 100, 400], truth={"b": 0.5})
    table = sequence.table(0.1, [10, 100, 400])
    table = table[table["term"] == "b"]
    low, high, estimate, truth = ax.get_lines()
    for line, name in ((low, "low"), (high, "high"), (estimate, "estimate")):
        assert line.get_xdata().tolist() == [10, 100, 400]
        np.testing.assert_array_equal(line.get_ydata(), table[name])
    assert list(truth.get_ydata()) == [0.5, 0.5]
    assert legend(ax) == ["b", "true value"]
    assert ax.get_xscale() == "log"


def test_confidence_sequences_that_are_infinite_or_empty_do_not_vanish_in_silence(
    sequence: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pd.DataFrame(
        {
            "t": [1, 10, 100],
            "term": "a",
            "estimate": [0.0, 0.5, 0.5],
            "low": [-np.inf, 0.4, np.nan],
            "high": [np.inf, 0.6, np.nan],
        }
    )
    monkeypatch.setattr(type(sequence), "table", lambda *arguments: table)
    ax = plots.confidence_sequence(sequence, terms=["a"], log=False)
    assert legend(ax) == ["a (all excluded from round 100)"]
    low, high = ax.get_ylim()
    first = [line.get_ydata()[0] for line in ax.get_lines()[:2]]
    assert first[0] < low < 0.4 < 0.6 < high < first[1]
    assert np.isfinite(first).all()


def test_confidence_sequences_refuse_other_results(sequence: Any) -> None:
    text = refusal(lambda: plots.confidence_sequence(results(), ax=1))
    assert "ConfidenceSequence" in text
    assert "ax must be" in text
    text = refusal(lambda: plots.confidence_sequence(sequence, terms=["z"], alpha=0, limits=3, log="yes"))
    assert "4 problems" in text


# p-values


def test_pvalues_draw_shares_the_uniform_band_and_what_is_below() -> None:
    values = np.random.default_rng(6).uniform(size=500) ** 2
    values[:20] = np.nan
    known = values[20:]
    ax = plots.pvalues(values, bins=10)
    shares = np.bincount(np.minimum((known * 10).astype(int), 9), minlength=10) / 480
    for patch in ax.patches[:2]:
        np.testing.assert_allclose(patch.get_data().values, shares)
    share = np.mean(known <= 0.05)
    error = np.sqrt(share * (1 - share) / 480)
    assert legend(ax)[0] == f"{share:.1%} ± {error:.1%} at most 0.05 (20 have none)"
    band = next(patch for patch in ax.patches if isinstance(patch, Rectangle))
    low, high = stats.binom.ppf([0.025, 0.975], 480, 0.1) / 480
    assert band.get_y() == pytest.approx(low)
    assert band.get_y() + band.get_height() == pytest.approx(high)
    assert list(ax.get_lines()[-1].get_ydata()) == [0.1, 0.1]


def test_pvalues_that_pile_up_at_one_are_cut_and_told() -> None:
    rng = np.random.default_rng(7)
    ax = plots.pvalues({"a": rng.uniform(size=400), "b": np.append(rng.uniform(size=200), np.ones(200))})
    assert written(ax)[0].startswith("last bin\nb: 5")
    assert ax.get_ylim()[1] < 0.2
    ax = plots.pvalues(np.append(np.full(300, 0.001), rng.uniform(size=100)))
    assert written(ax) == []
    assert ax.get_ylim()[1] > 0.75


def test_pvalues_refuse_what_are_none() -> None:
    text = refusal(lambda: plots.pvalues({"a": [0.5, 1.2], "b": [np.nan], "c": "x"}, bins=1, alpha=0.9))
    assert "5 problems" in text
    assert "got 1.2" in text
    assert "all are NaN" in text
    assert "no p-value" in refusal(lambda: plots.pvalues([]))
    assert "no p-values" in refusal(lambda: plots.pvalues({}))


# calibration


def test_bias_is_the_mean_error_with_its_interval() -> None:
    means = np.random.default_rng(8).normal([0.28, 0.6], 0.02, (200, 2))
    means[:50, 1] = np.nan
    ax = plots.bias(runs_of(means, [0.3, 0.6]), bound=[0.05, 0.02], alpha=0.1)
    label = claims.UNPULLED(name="mean error, with Monte Carlo interval", share=0.25)
    ends, heights = segments(ax, label_text(label))
    error = np.nanmean(means, axis=0) - [0.3, 0.6]
    half = stats.norm.ppf(0.95) * np.nanstd(means, axis=0, ddof=1) / np.sqrt([200, 150])
    np.testing.assert_allclose(ends, np.column_stack([error - half, error + half]), atol=1e-12)
    np.testing.assert_allclose(markers(ax, "o"), np.column_stack([error, heights]), atol=1e-12)
    bars = [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in ax.patches]
    np.testing.assert_allclose(bars, [[-0.05, 0.05], [-0.02, 0.02]])


def test_a_bound_that_would_leave_the_axes_is_written() -> None:
    means = np.random.default_rng(9).normal(0.3, 0.01, (100, 1))
    ax = plots.bias({"x": runs_of(means, [0.3])}, bound={"arm 0": 0.75})
    assert [label.get_text() for label in ax.get_yticklabels()] == ["arm 0 (bound 0.75)"]
    assert len(ax.patches) == 0
    wide = plots.bias({"x": runs_of(means, [0.3])}, bound=0.75, limits=(-1, 1))
    assert wide.patches[0].get_width() == pytest.approx(1.5)


def test_bias_takes_simulated_bias_with_its_own_bound() -> None:
    frame = pd.DataFrame(
        {"term": ["a", "b"], "bias": [-0.01, 0.0], "bias_se": [0.002, 0.001], "bound": [0.02, np.nan]}
    ).assign(pulled=1.0)
    found = SimulatedBias(frame, "design", "bernoulli", "given", None, 100, 500, ())
    ax = plots.bias(found)
    assert [(patch.get_x(), patch.get_width()) for patch in ax.patches] == [(-0.02, 0.04)]
    assert markers(ax, "o")[:, 0].tolist() == [-0.01, 0.0]


def test_bias_says_which_arm_was_never_pulled() -> None:
    ax = plots.bias(runs_of([[0.3, np.nan], [0.31, np.nan]], [0.3, 0.6]))
    assert written(ax) == [claims.NEVER_PULLED()]
    contextual = Replications(
        np.ones((2, 1, 2, 2, 3)), np.zeros((2, 0)), (), (), np.zeros(2), True, np.full((2, 2), 0.5)
    )
    labels = [label.get_text().replace("\n", " ") for label in plots.bias(contextual).get_yticklabels()]
    assert labels == ["context 0, arm 0", "context 0, arm 1", "context 1, arm 0", "context 1, arm 1"]


def test_bias_refuses_what_does_not_fit() -> None:
    one, other = runs_of([[0.3], [0.2]], [0.3]), runs_of([[0.3, 0.1], [0.2, 0.1]], [0.3, 0.1])
    text = refusal(lambda: plots.bias({"a": one, "b": other}, bound=-1.0, alpha=1))
    assert "3 problems" in text
    assert "the same rows" in text
    assert "no row" in refusal(lambda: plots.bias(one, bound={"arm 7": 0.1}))
    assert "runs must be Replications or SimulatedBias" in refusal(lambda: plots.bias([1]))


def calibration_frame() -> pd.DataFrame:
    rows = {"analysis": ["x", "y", "z"], "term": ["a", "a", ""], "coverage": [0.95, 0.8, np.nan]}
    rows |= {"rejected": [0.05, 0.4, np.nan], "runs": [200, 100, 0], "missing": [0, 25, 0]}
    return pd.DataFrame({**rows, "missing_share": [0.0, 0.2, np.nan], "note": ["", "", "not valid: no arms"]})


@pytest.mark.parametrize(("measure", "nominal"), [("coverage", 0.9), ("rejected", 0.1)])
def test_coverage_has_wilson_intervals(measure: str, nominal: float) -> None:
    frame = calibration_frame()
    ax = plots.coverage(Coverage(frame, 0.1, "design", "environment", 100, 200), measure=measure)
    ends, _ = segments(ax, "measured, 95% interval")
    for row, (share, runs) in enumerate(zip(frame[measure][:2], (200, 100), strict=True)):
        np.testing.assert_allclose(ends[row], proportion_confint(share * runs, runs, 0.05, "wilson"))
    assert legend(ax)[1] == f"nominal {nominal:g}"
    assert written(ax) == [claims.SOME_WITHOUT(share=0.2), "not valid: no arms"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["x, a", "y, a", "z"]


def test_coverage_of_a_study_names_the_cells_that_differ() -> None:
    frame = calibration_frame().assign(design=["u", "v", "v"], environment="e", horizon=100)
    ax = plots.coverage(Study(frame, pd.DataFrame(), {"alpha": 0.05}))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["u, x, a", "v, y, a", "v, z"]
    assert legend(ax)[1] == "nominal 0.95"
    text = refusal(lambda: plots.coverage(frame, measure="width"))
    assert "2 problems" in text


def test_privacy_draws_bounds_and_promises_and_marks_what_is_refuted() -> None:
    bounds = {"fine": bound_of(0.8, 1.0), "broken": bound_of(2.5, 2.0), "none": bound_of(0.4, None)}
    ax = plots.privacy(bounds | {"infinite": bound_of(0.1, np.inf)})
    assert markers(ax, "o").tolist() == [[0.8, 0.0], [0.4, 2.0], [0.1, 3.0]]
    assert markers(ax, "s").tolist() == [[2.5, 1.0]]
    assert markers(ax, "|").tolist() == [[1.0, 0.0], [2.0, 1.0]]
    assert written(ax) == ["nothing promised", "promised: infinite"]
    assert legend(ax) == ["measured: at least, 95% confidence", "measured: promise refuted", "promised"]
    [lines] = [c for c in ax.collections if isinstance(c, LineCollection)]
    ends = np.array(lines.get_segments())[:, :, 0]
    np.testing.assert_allclose(ends, [[0.8, 1.0], [2.5, 2.0], [0.1, ax.get_xlim()[1]]])


def test_privacy_on_a_log_scale_shows_a_bound_of_zero_as_an_arrow() -> None:
    ax = plots.privacy([bound_of(0.0, 1.0, "x"), bound_of(0.5, 1.0, "x")], log_scale=True)
    assert markers(ax, "<").tolist() == [[ax.get_xlim()[0], 0.0]]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["1: x", "2: x"]
    assert "bounds must be EpsilonLowerBound" in refusal(lambda: plots.privacy([]))
    assert "bounds['a'] must be" in refusal(lambda: plots.privacy({"a": 0.5}))


# regret


def test_regret_of_replications_by_horizon() -> None:
    rng = np.random.default_rng(10)
    spent = {100: rng.gamma(2.0, 5.0, 50), 10: rng.gamma(2.0, 1.0, 60)}
    curve = {T: runs_of(np.full((values.size, 1), 0.5), [0.5], regret=values) for T, values in spent.items()}
    ax = plots.regret(
        {"design": curve, "other": spent}, bounds={"theory": ([10, 100], [5.0, 9.0])}, unit="visits"
    )
    line, same, theory = ax.get_lines()
    assert line.get_xdata().tolist() == [10.0, 100.0]
    np.testing.assert_allclose(line.get_ydata(), [spent[10].mean(), spent[100].mean()])
    np.testing.assert_array_equal(line.get_ydata(), same.get_ydata())
    assert list(theory.get_ydata()) == [5.0, 9.0]
    corners = ax.collections[0].get_paths()[0].vertices
    at_end = corners[corners[:, 0] == 100.0, 1]
    np.testing.assert_allclose([at_end.min(), at_end.max()], np.quantile(spent[100], [0.05, 0.95]))
    assert sorted(written(ax)) == ["design", "other", "theory"]
    assert ax.get_ylabel() == "regret (visits)"
    mean = plots.regret(spent, band="mean")
    corners = mean.collections[0].get_paths()[0].vertices
    at_end = corners[corners[:, 0] == 100.0, 1]
    half = stats.norm.ppf(0.975) * stats.sem(spent[100])
    np.testing.assert_allclose([at_end.min(), at_end.max()], spent[100].mean() + np.array([-half, half]))


def test_regret_of_a_curve_with_its_band() -> None:
    ax = plots.regret(([1, 2, 3], [1.0, 2.0, 2.5], [0.5, 1.0, 2.0], [2.0, 3.0, 3.0]), log_scale=True)
    assert ax.get_lines()[0].get_ydata().tolist() == [1.0, 2.0, 2.5]
    assert ax.get_legend() is None
    assert ax.get_yscale() == "log"


def test_regret_refuses_what_is_no_curve() -> None:
    good, bad = [1, 2], [2, 1]
    text = refusal(
        lambda: plots.regret(
            {"a": (good, good), "b": (bad, good, good, good), "c": {0: [1.0, 2.0], 5: [1.0]}, "d": {}},
            band="all",
            bounds={"x": [1.0]},
        )
    )
    assert "7 problems" in text
    for part in (
        "the curve 'a'",
        "increasing rounds",
        "horizons of at least 1",
        "at least two runs",
        "no horizons",
    ):
        assert part in text
    zero = ([1, 2], [0.0, 1.0], [0.0, 0.5], [0.0, 2.0])
    assert "above 0 on a log scale" in refusal(lambda: plots.regret(zero, log_scale=True))
    assert "curves must contain at least one curve" in refusal(lambda: plots.regret({}))


def frontier_point(error: float, regret: float) -> Frontier:
    one = np.array([error])
    return Frontier(
        one, 0.1 * one, 0, error, 0.1 * error, regret, 1.0, error * regret, 0.1, np.zeros(1, int), 9
    )


def test_frontier_draws_points_bars_and_the_line_of_equal_products() -> None:
    points = {0.1: frontier_point(0.01, 50.0), 0.3: frontier_point(0.04, 20.0)}
    table = pd.DataFrame({"regret": [30.0], "error": [0.02]})
    ax = plots.frontier({"ConSE": points, "other": table}, product=0.6, unit="visits")
    [first, second] = ax.containers
    np.testing.assert_array_equal(first[0].get_xydata(), [[50.0, 0.01], [20.0, 0.04]])
    np.testing.assert_array_equal(second[0].get_xydata(), [[30.0, 0.02]])
    across, up = (np.array(bars.get_segments()) for bars in first[2])
    np.testing.assert_allclose(across[0, :, 0], 50.0 + stats.norm.ppf([0.025, 0.975]))
    np.testing.assert_allclose(up[1, :, 1], 0.04 + 0.004 * stats.norm.ppf([0.025, 0.975]))
    line = ax.get_lines()[-1]
    np.testing.assert_allclose(line.get_xydata(), [[20.0, 0.03], [50.0, 0.012]])
    assert [re.sub(r"\D*", "", text, count=1) for text in written(ax)] == ["0.1", "0.3"]
    assert legend(ax) == ["ConSE", "other", "error times regret = 0.6"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("regret (visits)", "mean squared error (visits²)")


def test_frontier_refuses_what_has_no_logarithm() -> None:
    bad = {"a": pd.DataFrame({"regret": [0.0], "error": [1.0]}), "b": pd.DataFrame({"regret": [1.0]})}
    text = refusal(lambda: plots.frontier(bad, product=0.0))
    assert "3 problems" in text
    assert "above 0" in text
    assert "columns regret and error" in text
    assert "points must be" in refusal(lambda: plots.frontier([]))


# partition


def ldp_log(boxes: Any, dimension: int = 2) -> AdaptiveLog:
    """A log with bins (low corner, high corner, participants by arm)."""
    rows = []
    for group, (low, high, participants) in enumerate(boxes):
        for axis in range(dimension):
            rows += [(group, f"low_x{axis + 1}", low[axis]), (group, f"high_x{axis + 1}", high[axis])]
        for arm, seen in participants.items():
            rows += [
                (group, f"participants_{arm}", seen),
                (group, f"count_{arm}", 1.0),
                (group, f"sum_{arm}", 0.5),
            ]
    group, name, value = zip(*rows, strict=True)
    releases = {"round": 10, "name": name, "group": group, "value": value, "mechanism": "m", "scale": 1.0}
    arrays = LogArrays(action=np.zeros(10, np.int64), reward=np.zeros(10))
    return AdaptiveLog.from_arrays(arrays, arms=("a", "b", "c"), releases=pd.DataFrame(releases))


SPLIT = [
    ((0.0, 0.0), (1.0, 1.0), {"a": 4.0, "b": 4.0, "c": 2.0}),
    ((0.0, 0.0), (0.5, 1.0), {"a": 6.0, "b": 3.0}),
    ((0.5, 0.0), (1.0, 1.0), {"a": 6.0, "b": 6.0}),
]


def test_partition_draws_the_last_bins_and_the_arms_left() -> None:
    ax = plots.partition(ldp_log(SPLIT))
    drawn = [(*patch.get_xy(), patch.get_width(), patch.get_height()) for patch in ax.patches]
    assert drawn == [(0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 0.5, 1.0)]
    assert to_hex(ax.patches[0].get_facecolor()) == look(0).colour.lower()
    assert legend(ax) == ["a alone", "2 arms left"]
    assert written(ax) == ["a, b"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x1", "x2")
    assert final_bins(ldp_log(SPLIT)).left == (("a",), ("a", "b"))


def test_partition_from_results_and_in_other_dimensions() -> None:
    bins, arms = [SPLIT[1], SPLIT[1], SPLIT[2]], ("a", "b", "a")
    found = Results(
        model="BinMeans",
        estimands=tuple(
            Estimand("bin-mean", arm=arm, group=tuple(zip(low, high, strict=True)))
            for arm, (low, high, _) in zip(arms, bins, strict=True)
        ),
        terms=("1", "2", "3"),
        estimate=np.full(3, 0.5),
        std_error=np.full(3, 0.1),
        reference=NormalReference(np.full(3, 0.5), np.full(3, 0.1)),
        estimator="budget",
        facts=LogFacts(n_rounds=10),
        details={"participants": np.array([6.0, 3.0, 6.0])},
    )
    assert final_bins(found).left == (("a",), ("a",))
    assert len(plots.partition(found).patches) == 2
    line = plots.partition(ldp_log([((0.0,), (0.25,), {"a": 1.0}), ((0.25,), (1.0,), {"b": 1.0})], 1))
    assert [patch.get_width() for patch in line.patches] == [0.25, 0.75]
    cube = [
        ((0.0, 0.0, 0.0), (1.0, 1.0, 0.5), {"a": 1.0}),
        ((0.0, 0.0, 0.5), (1.0, 1.0, 1.0), {"b": 1.0}),
    ]
    for at, label in ((0.49, "a alone"), (0.5, "b alone"), (1.0, "b alone")):
        assert legend(plots.partition(ldp_log(cube, 3), at=at)) == [label]


def test_partition_refuses_other_logs() -> None:
    with pytest.raises(InvalidForLog, match="no sums of reports"):
        plots.partition(log_of([0, 1]))
    text = refusal(lambda: plots.partition(results(), at=2.0))
    assert "2 problems" in text
    assert "BinMeans" in text


# all of them


PICTURES: dict[str, Callable[[Any], Any]] = {
    "forest": lambda ax: plots.forest(corrected_results(), ax),
    "allocation": lambda ax: plots.allocation(log_of([0, 1, 1]), ax),
    "propensities": lambda ax: plots.propensities(log_of([0, 1], propensity=np.full(2, 0.5)), ax),
    "pvalues": lambda ax: plots.pvalues([0.1, 0.2, 0.9], ax),
    "bias": lambda ax: plots.bias(runs_of([[0.3], [0.2]], [0.3]), ax),
    "coverage": lambda ax: plots.coverage(Coverage(calibration_frame(), 0.1, "d", "e", 9, 9), ax),
    "privacy": lambda ax: plots.privacy([bound_of(0.5, 1.0)], ax),
    "regret": lambda ax: plots.regret({10: [1.0, 2.0], 20: [2.0, 3.0]}, ax),
    "frontier": lambda ax: plots.frontier({0.1: frontier_point(0.01, 50.0)}, ax),
    "partition": lambda ax: plots.partition(ldp_log(SPLIT), ax),
}
EACH = pytest.mark.parametrize("picture", PICTURES.values(), ids=PICTURES)


@EACH
def test_a_picture_is_drawn_on_the_axes_given_and_else_on_its_own(picture: Callable[[Any], Any]) -> None:
    page, panels = plots.figure(1, 2, width=7.0)
    assert picture(panels[0]) is panels[0]
    assert plt.get_fignums() == [page.number]
    assert not panels[1].has_data()
    own = picture(None)
    assert own.figure is not page
    assert own.figure.get_figwidth() == 3.4
    assert own.get_xlabel()
    page.canvas.draw()
    own.figure.canvas.draw()


@pytest.mark.slow
@EACH
def test_what_is_saved_is_the_same_every_time(picture: Callable[[Any], Any], tmp_path: Path) -> None:
    first = plots.save(picture(None), tmp_path / "one.png", dpi=60)
    second = plots.save(picture(None), str(tmp_path / "two"), dpi=60)
    assert [path.name for path in (*first, *second)] == ["one.png", "one.svg", "two.png", "two.svg"]
    for one, two in zip(first, second, strict=True):
        assert one.read_bytes() == two.read_bytes()
    assert first[0].read_bytes()[:4] == b"\x89PNG"
    assert "dc:date" not in first[1].read_text()


@EACH
def test_global_settings_stay_as_they_are(picture: Callable[[Any], Any]) -> None:
    with matplotlib.rc_context({"font.size": 11.0, "xtick.labelsize": 9.0, "svg.hashsalt": "own"}):
        before = dict(matplotlib.rcParams)
        picture(None)
        assert dict(matplotlib.rcParams) == before


@EACH
def test_without_matplotlib_the_extra_is_named(
    picture: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=re.escape("pip install '.[plots]' in the source tree")):
        picture(None)


@pytest.mark.slow
def test_matplotlib_is_imported_when_a_picture_is_drawn() -> None:
    code = "import sys, adaptinf.plots; print('matplotlib' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "False"


def test_eight_series_have_a_colour_and_a_marker_of_their_own() -> None:
    looks = [look(place) for place in range(8)]
    assert len({one.colour for one in looks}) == len({one.marker for one in looks}) == 8
    assert len({one.hatch for one in looks}) == 8
    assert {look(place).colour for place in range(8, 60)} == {"#6e6e6e"}


def test_labels_are_drawn_as_they_are(tmp_path: Path) -> None:
    odd = results(arms=("$x$", "_y", "<b>&"), kind="arm-mean")
    ax = plots.forest({"_naive $1 $2": odd, "b": odd})
    assert legend(ax) == [r" _naive \$1 \$2", "b"]
    ax.figure.canvas.draw()
    svg = plots.save(ax, tmp_path / "odd")[1].read_text()
    assert "<!-- $x$ -->" in svg


def test_save_and_figure_refuse_what_does_not_fit(tmp_path: Path) -> None:
    text = refusal(lambda: plots.save("picture", tmp_path / "no" / "where", dpi=1))
    assert "3 problems" in text
    assert "does not exist: create it first" in text
    assert "path must name a file" in refusal(lambda: plots.save(plots.figure()[0], ""))
    assert "path must name a file" in refusal(lambda: plots.save(plots.figure()[0], "a\0b"))
    assert "2 problems" in refusal(lambda: plots.figure(0, 1, width=0.0))


def test_tables_are_saved_as_csv_and_markdown(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "arm|": ["a_1", None],
            "x": [1 / 3, np.nan],
            "n": [12_345, 1],
            "y": [1e-7, 123456.789],
            "b": [True, False],
        }
    )
    csv, markdown = plots.save_table(frame, tmp_path / "table.csv", digits=3)
    assert csv.read_bytes() == (b"arm|,x,n,y,b\na_1,0.3333333333,12345,1e-07,True\n,,1,123456.789,False\n")
    assert markdown.read_text() == (
        "| arm\\| | x | n | y | b |\n| --- | ---: | ---: | ---: | ---: |\n"
        "| a\\_1 | 0.333 | 12,345 | 1e-07 | True |\n|  |  | 1 | 123,457 | False |\n"
    )


def test_tables_of_results_and_of_frames_with_an_index(tmp_path: Path) -> None:
    result = results()
    csv, markdown = plots.save_table(result, tmp_path / "result")
    back = pd.read_csv(csv)
    np.testing.assert_allclose(back["conf_low"], result.conf_int()["low"], rtol=1e-9)
    assert markdown.read_text().startswith("| term | estimate | std\\_error |")
    csv, _ = plots.save_table(result.conf_int(), tmp_path / "limits.v2")
    assert csv.name == "limits.v2.csv"
    assert pd.read_csv(csv)["index"].tolist() == ["a", "b", "c"]
    csv, _ = plots.save_table(Coverage(calibration_frame(), 0.1, "d", "e", 9, 9), tmp_path / "coverage")
    assert len(pd.read_csv(csv)) == 3
    text = refusal(lambda: plots.save_table(3, tmp_path, digits=0))
    assert "table must be" in text
    assert "digits must be" in text
    assert "no columns" in refusal(lambda: plots.save_table(pd.DataFrame(), tmp_path / "x"))


def test_arms_with_numbers_for_labels_are_called_arms() -> None:
    ax = plots.forest(
        {"x": results(arms=(0, 1, "2 b")), "y": results([0.1], [0.1], arms=("1",), kind="contrast")}
    )
    assert [label.get_text() for label in ax.get_yticklabels()] == ["arm 0", "arm 1", "2 b"]
    assert sorted(written(plots.allocation(log_of([0, 1])))) == ["a", "b"]


def test_logs_and_results_draw_themselves() -> None:
    log = ai.designs.Thompson(floor=0.1).run(ai.environments.BernoulliArms([0.3, 0.6]), horizon=300, rng=2)
    sequence = ai.ConfidenceSequence(log).fit(method="empirical-bernstein")
    best = ai.Winner(log).fit()
    pairs = [
        (log.plot(every=50), plots.allocation(log, every=50)),
        (ai.ArmMeans(log).fit().plot(alpha=0.1), plots.forest(ai.ArmMeans(log).fit(), alpha=0.1)),
        (sequence.plot(terms=["1"]), plots.confidence_sequence(sequence, terms=["1"])),
        (best.plot(), plots.winner(best)),
    ]
    for own, expected in pairs:
        assert own.get_ylabel() == expected.get_ylabel()
        assert own.get_xlabel() == expected.get_xlabel()
        drawn = [str(np.asarray(line.get_xydata()).tolist()) for line in own.get_lines()]
        assert drawn == [str(np.asarray(line.get_xydata()).tolist()) for line in expected.get_lines()]
        assert drawn
    _, ax = plots.figure()
    assert log.plot(ax) is ax
    with pytest.raises(ParameterError, match="every must be at most 300"):
        log.plot(every=301)


def test_differences_and_lifts_do_not_share_an_axis() -> None:
    arms = ai.environments.BernoulliArms([0.4, 0.6])
    log = ai.designs.EpsilonGreedy(exploration=0.4).run(arms, horizon=2_000, rng=0)
    difference = ai.Contrast(log, treatment=1, control=0).fit()
    lift = ai.Contrasts(log, control=0).fit(lift=True)
    with pytest.raises(ai.errors.ParameterError) as caught:
        ai.plots.forest({"difference": difference, "lift": lift}, unit="clicks")
    assert caught.value.problems == (
        "relative lifts have no unit: omit unit=",
        "one axis cannot show difference in mean reward (rewards) and relative lift (shares of the control): "
        "draw each in a separate picture or panel (ax=)",
    )
    assert ai.plots.forest(lift).get_xlabel() == "relative lift"
    with_means = {"means": ai.ArmMeans(log).fit(), "difference": difference}
    assert ai.plots.forest(with_means, unit="clicks").get_xlabel() == "estimate (clicks)"
