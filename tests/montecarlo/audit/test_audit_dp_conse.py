"""Corrected DP-ConSE: no audit exceeds what is promised, and audits come as close as counting allows."""

from __future__ import annotations

import math

import pytest

from adaptinf.audit.privacy.designs import neighbouring_trials
from adaptinf.audit.privacy.epsilon_audit import epsilon_lower_bound
from adaptinf.designs import DPConSE

RUNS = 20_000
FIRST_WINDOW, SECOND_HALF, IN_COMPANY, LATER_ACTIONS = range(4)


def least_bound(epsilon: float, share: float) -> float:
    """What an audit finds at least, where an event of this probability has the full ratio.

    3.5 standard deviations for each Clopper-Pearson limit, and 4 for the luck of the counts.
    """
    likelier = share * RUNS / 2
    return epsilon - 7.5 * (1.0 / math.sqrt(likelier) + 1.0 / math.sqrt(likelier * math.exp(-epsilon)))


@pytest.mark.parametrize("unit", ["record", "reward"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_releases_reveal_no_more_than_promised_and_hardly_less(epsilon: float, unit: str) -> None:
    design = DPConSE(epsilon=epsilon)
    share = 0.5**4 if unit == "record" else 0.5
    for pair in neighbouring_trials(design, unit)[:LATER_ACTIONS]:
        result = epsilon_lower_bound(design, pair, view="releases", runs=RUNS, rng=1)
        assert result.promised is not None
        assert result.promised.unit == unit
        assert result.promised.epsilon == pytest.approx(epsilon if unit == "record" else 0.6 * epsilon)
        assert result.epsilon <= result.promised.epsilon
        assert result.epsilon >= least_bound(result.promised.epsilon, 0.9 * share)


@pytest.mark.parametrize("unit", ["record", "reward"])
def test_actions_reveal_something_and_less_than_promised(unit: str) -> None:
    design = DPConSE(epsilon=4.0)
    pair = neighbouring_trials(design, unit)[LATER_ACTIONS]
    assert 0 in pair.hidden
    result = epsilon_lower_bound(design, pair, view="actions", runs=RUNS, rng=2)
    assert result.promised is not None
    assert 0.8 < result.epsilon <= result.promised.epsilon


def test_the_worst_case_is_the_default() -> None:
    result = epsilon_lower_bound(DPConSE(epsilon=1.0), view="releases", runs=2_000, rng=3)
    assert "context 0 and rewards 0 and 1 of the two arms, or context 1 and rewards 1 and 0" in result.target
    assert str(result.promised) == "epsilon = 1, pure, per record, central, anticipating"
