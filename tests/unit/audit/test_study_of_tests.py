"""Tests as analyses of a study: p-values in place of intervals, streams of their own, counted gaps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats

import adaptinf as ai
from adaptinf.audit.simulation.engine import seed_of_trial
from adaptinf.errors import ParameterError

EQUAL = {"equal": ai.environments.BernoulliArms([0.5, 0.5])}
DESIGN = ai.designs.EpsilonGreedy(exploration=0.3)
RUNS, ROUNDS = 128, 40


@dataclass
class Answer:
    """A test of one's own."""

    pvalue: float


def fisher(log: Any) -> Any:
    action, reward = log.arrays.action, log.arrays.reward
    table = [[int(((action == arm) & (reward == value)).sum()) for value in (0, 1)] for arm in (0, 1)]
    return stats.fisher_exact(table)


def rerun(log: Any, rng: Any) -> Any:
    return ai.audit.randomization_test(log, replications=39, rng=rng)


def studied(n_jobs: int = 1, **options: Any) -> Any:
    given: dict[str, Any] = {"analyses": {"Fisher": fisher, "re-run": rerun}, "progress": False} | options
    return ai.audit.study(
        {"greedy": DESIGN}, EQUAL, given.pop("analyses"), [ROUNDS], RUNS, 3, n_jobs=n_jobs, **given
    )


@pytest.mark.slow
def test_rejections_are_those_of_a_loop_over_logs() -> None:
    found = studied(alpha=0.1).frame.set_index("analysis")
    root = np.random.SeedSequence(3)
    counts = {"Fisher": 0, "re-run": 0}
    for run, log in enumerate(DESIGN.logs(EQUAL["equal"], ROUNDS, RUNS, root)):
        counts["Fisher"] += fisher(log).pvalue <= 0.1
        counts["re-run"] += rerun(log, seed_of_trial(root, run)).pvalue <= 0.1
    for name, count in counts.items():
        assert found.loc[name, "rejected"] == pytest.approx(count / RUNS)
        assert found.loc[name, "term"] == "test"
        assert found.loc[name, "runs"] == RUNS
        assert math.isnan(found.loc[name, "coverage"])
    assert abs(found.loc["re-run", "rejected"] - 0.1) < 4.5 * math.sqrt(0.09 / RUNS)


@pytest.mark.slow
def test_the_same_for_any_number_of_workers() -> None:
    assert studied().frame.equals(studied(n_jobs=2).frame)


def test_trials_draw_streams_of_their_own() -> None:
    drawn: list[float] = []

    def coin(log: Any, rng: Any) -> Answer:
        drawn.append(float(np.random.default_rng(rng).random()))
        return Answer(drawn[-1])

    found = studied(analyses={"coin": coin}, alpha=0.2).frame
    assert len(set(drawn)) == RUNS
    assert abs(found["rejected"].iloc[0] - 0.2) < 4.5 * math.sqrt(0.16 / RUNS)


def test_p_values_that_are_none_are_counted_with_their_reason() -> None:
    def sometimes(log: Any) -> Answer:
        return Answer(math.nan if log.arrays.action[0] == 0 else 0.5)

    row = studied(analyses={"mine": sometimes}).frame.iloc[0]
    assert row["runs"] + row["missing"] == RUNS
    assert row["missing"] > 0
    assert "the p-value is not a number" in row["note"]


def test_a_p_value_outside_its_range_is_an_error() -> None:
    with pytest.raises(Exception, match=r"within \[0, 1\], got 1.5") as caught:
        studied(analyses={"mine": lambda log: Answer(1.5)})
    assert isinstance(caught.value.__cause__, ParameterError)


def test_a_study_goes_on_where_an_analysis_failed(tmp_path: Any) -> None:
    def fails(log: Any) -> Answer:
        if log.arrays.reward[0] == 0.0:
            raise ValueError("no luck")
        return Answer(0.5)

    path = tmp_path / "study"
    with pytest.raises(ai.audit.AnalysisError, match="no luck"):
        studied(analyses={"mine": fails}, path=path)
    row = studied(analyses={"mine": fails}, path=path, on_error="count").frame.iloc[0]
    assert row["failed"] + row["runs"] == RUNS
    assert row["failed"] > 0
    assert f"failed in {row['failed']} runs: ValueError: no luck" in row["note"]
