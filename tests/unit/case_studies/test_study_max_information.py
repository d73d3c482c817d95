"""The curves of the study of max-information, and the numbers that the errata take from it."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from adaptinf.inference.corrections.information import log_corrected_level
from case_studies.max_information import corollaries


def test_printed_levels_are_exceeded_and_valid_ones_never() -> None:
    table = corollaries.counterexample()
    ratios = corollaries.worst_ratios(table)
    assert ratios["printed, beta = 1"] == pytest.approx(3.43, abs=5e-3)
    assert ratios["printed, beta = 0.5"] > 2.0
    assert ratios["printed, beta = 0.05"] > 1.0
    valid = table[table["level"].str.startswith("valid")]["true over promised"]
    assert 0.1 < valid.min() < valid.max() < 1.0


def test_counterexample_has_the_numbers_of_the_errata() -> None:
    table = corollaries.counterexample()
    row = table[(table["level"] == "printed, beta = 1") & (table["matches"] == 62)].iloc[0]
    assert (row["p-value"], row["promised"], row["true"]) == pytest.approx(
        (0.01049, 0.0314, 0.0352), abs=5e-5
    )
    # 62 of 100 coins of probability e^.1 / (1 + e^.1)
    assert row["true"] == pytest.approx(stats.binom.sf(61, 100, math.exp(0.1) / (1 + math.exp(0.1))))


def test_fixed_beta_is_theorem_6_and_never_above_the_best() -> None:
    epsilon, rounds = 0.05, 1_000
    nats = epsilon**2 * rounds / 2 + epsilon * math.sqrt(rounds * math.log(200) / 2)
    fixed = corollaries.fixed_log_level(0.05, epsilon, rounds, 0.01)
    assert fixed == pytest.approx(math.log(0.04) - nats)
    assert corollaries.fixed_log_level(0.05, epsilon, rounds, 0.05) == -math.inf
    assert fixed < log_corrected_level(math.log(0.05), epsilon=epsilon, n=rounds)


def test_corollary_4_asks_for_more_than_a_constant() -> None:
    horizon = 10_000
    epsilon = corollaries.budget(horizon, 5)
    assert epsilon == pytest.approx(0.125, abs=5e-4)
    assert epsilon**2 * horizon / 2 == pytest.approx(math.log(horizon) ** 3 / 10)
    level = log_corrected_level(math.log(0.05), epsilon=epsilon, n=horizon) / math.log(10)
    assert level == pytest.approx(-43.48, abs=0.005)
    # by randomised response a private design reaches this p-value every second time
    q = 1.0 / (1.0 + math.exp(-epsilon))
    matches = int(stats.binom.median(horizon - 1, q))
    assert stats.binom.sf(matches - 1, horizon - 1, q) > 0.5
    assert stats.binom.sf(matches - 1, horizon - 1, 0.5) < 3e-10
