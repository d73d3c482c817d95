"""Locally private designs: no audit of a report exceeds epsilon, and audits come close to it."""

from __future__ import annotations

import math

import pytest

from adaptinf.audit.privacy.designs import neighbouring_trials
from adaptinf.audit.privacy.epsilon_audit import epsilon_lower_bound
from adaptinf.designs.local.bins import LDPBandit
from adaptinf.designs.local.local_linear import LDPLinear

RUNS = 20_000


def least_bound(epsilon: float, share: float) -> float:
    """What an audit finds at least, where an event of this probability has the full ratio.

    3.5 standard deviations for each Clopper-Pearson limit, and 4 for the luck of the counts.
    """
    likelier = share * RUNS / 2
    return epsilon - 7.5 * (1.0 / math.sqrt(likelier) + 1.0 / math.sqrt(likelier * math.exp(-epsilon)))


def check(design: LDPBandit | LDPLinear, unit: str, promised: float, share: float) -> None:
    for pair in neighbouring_trials(design, unit):
        assert pair.design is not None
        result = epsilon_lower_bound(pair.design, pair, view="releases", runs=RUNS, rng=4)
        assert result.promised is not None
        assert result.promised.model == "local"
        assert result.promised.epsilon == promised
        assert result.epsilon <= promised
        assert result.epsilon >= least_bound(promised, 0.9 * share)


@pytest.mark.parametrize("calibration", ["corrected", "published"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_reports_to_the_bandit(epsilon: float, calibration: str) -> None:
    design = LDPBandit(epsilon=epsilon, calibration=calibration)
    check(design, "record", epsilon, 0.5**4)
    check(design, "reward", epsilon / 4.0, 0.5)


def test_reports_to_a_bandit_whose_bins_are_never_halved() -> None:
    check(LDPBandit(epsilon=4.0, refinement=0.0), "reward", 1.0, 0.5)
    (pair,) = neighbouring_trials(LDPBandit(epsilon=4.0, refinement=0.0), "record")
    result = epsilon_lower_bound(pair.design, pair, view="releases", runs=RUNS, rng=4)
    assert least_bound(1.0, 0.45) < result.epsilon <= 1.0


@pytest.mark.parametrize(
    ("epsilon", "link", "intercept"),
    [
        (0.1, "logistic", True),
        (1.0, "logistic", True),
        (4.0, "logistic", True),
        (4.0, "identity", True),
        (4.0, "logistic", False),
        (4.0, "identity", False),
    ],
)
def test_reports_to_the_linear_bandit(epsilon: float, link: str, intercept: bool) -> None:
    design = LDPLinear(epsilon=epsilon, link=link, intercept=intercept)
    check(design, "record", epsilon, 0.15)
    check(design, "reward", epsilon / 2.0, 0.5)
