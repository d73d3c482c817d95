"""Faults in designs for records: the published ones of DP-ConSE, and noise that is too little or too rare."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from adaptinf.audit.privacy.designs import neighbouring_trials
from adaptinf.audit.privacy.epsilon_audit import epsilon_lower_bound
from adaptinf.audit.privacy.lower_bound import EpsilonLowerBound
from adaptinf.designs import DPConSE
from adaptinf.designs.local.bins import LDPBandit
from adaptinf.designs.local.local_linear import LDPLinear
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.simulation.transcripts import sample_transcripts
from adaptinf.typing import FloatArray

CLOSING, CAME, ACTIONS, SHARED = range(4)


def published(epsilon: float, which: int, runs: int) -> EpsilonLowerBound:
    """The published design against (epsilon, 1/n), its paper's claim."""
    design = DPConSE(epsilon=epsilon, calibration="published")
    pair = neighbouring_trials(design)[which]
    claim = PrivacyGuarantee(epsilon, delta=1.0 / pair.horizon, unit="record", notion="anticipating")
    return epsilon_lower_bound(design, pair, view="releases", promised=claim, runs=runs, rng=5)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_time_at_which_a_batch_closes_names_the_context(epsilon: float) -> None:
    result = published(epsilon, CLOSING, 20_000)
    assert result.refuted
    assert 0 in result.hits


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_whether_an_estimate_comes_is_an_output(epsilon: float) -> None:
    result = published(epsilon, CAME, 20_000)
    assert result.refuted
    assert result.hits[1] == 0


@pytest.mark.parametrize(("epsilon", "runs"), [(0.1, 100_000), (0.3, 120_000)])
def test_random_batch_lengths_do_not_hide_a_context_in_the_actions(epsilon: float, runs: int) -> None:
    assert published(epsilon, ACTIONS, runs).refuted


@pytest.mark.parametrize(("epsilon", "runs"), [(0.1, 100_000), (1.0, 20_000)])
def test_lengths_that_share_one_center_cost_once_for_each_context(epsilon: float, runs: int) -> None:
    assert published(epsilon, SHARED, runs).refuted


@pytest.mark.parametrize("unit", ["record", "reward"])
def test_half_the_noise_in_dp_conse(unit: str) -> None:
    careful, careless = DPConSE(epsilon=1.0), DPConSE(epsilon=2.0)
    pair = neighbouring_trials(careful, unit)[0]
    promised = careful.guarantee(3, 2) if unit == "record" else careful.reward_guarantee(3, 2)
    assert epsilon_lower_bound(careless, pair, view="releases", promised=promised, runs=20_000, rng=6).refuted


@pytest.mark.parametrize("unit", ["record", "reward"])
@pytest.mark.parametrize("kind", [LDPBandit, LDPLinear])
def test_half_the_noise_in_a_report(kind: type[LDPBandit | LDPLinear], unit: str) -> None:
    careful, careless = kind(epsilon=1.0), kind(epsilon=2.0)
    promised = careful.guarantee(1, 2) if unit == "record" else careful.reward_guarantee(1, 2)
    for pair in neighbouring_trials(careless, unit):
        assert pair.design is not None
        assert epsilon_lower_bound(
            pair.design, pair, view="releases", promised=promised, runs=20_000, rng=7
        ).refuted


class Reports:
    """One participant's U and V for two bins with one arm each: the context is in one or in the other."""

    def __init__(self, epsilon: float, only_visited: bool) -> None:
        self.scale = 4.0 / epsilon
        self.only_visited = only_visited

    def numbers(self, side: int, runs: int, rng: np.random.Generator) -> FloatArray:
        """Reports, shape (runs, bins, 2)."""
        visited = np.zeros((2, 2))
        visited[side] = 1.0
        noise = rng.laplace(0.0, self.scale, (runs, 2, 2))
        return visited + (noise * visited if self.only_visited else noise)

    def __call__(self, side: int, runs: int, rng: np.random.Generator) -> FloatArray:
        """The log-likelihood ratio of reports whose noise is everywhere, and 100 where only bin 1 has any."""
        numbers = self.numbers(side, runs, rng)
        ratio = (np.abs(numbers[:, 0] - 1.0) - np.abs(numbers[:, 0])).sum(axis=1)
        ratio += (np.abs(numbers[:, 1]) - np.abs(numbers[:, 1] - 1.0)).sum(axis=1)
        silent = (numbers == 0.0).all(axis=2)
        return np.where(silent[:, 0], 100.0, np.where(silent[:, 1], -100.0, ratio / self.scale))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_noise_in_the_visited_bin_alone_reveals_the_bin(epsilon: float) -> None:
    promised = LDPBandit(epsilon=epsilon).guarantee(1, 2)
    right = epsilon_lower_bound(Reports(epsilon, only_visited=False), promised=promised, runs=20_000, rng=8)
    wrong = epsilon_lower_bound(Reports(epsilon, only_visited=True), promised=promised, runs=20_000, rng=8)
    assert not right.refuted
    assert wrong.refuted
    assert wrong.hits in ((0, 10_000), (10_000, 0))


def test_the_right_sampler_has_the_law_of_the_designs_reports() -> None:
    epsilon = 2.0
    (pair,) = neighbouring_trials(LDPBandit(epsilon=epsilon))
    seen = next(sample_transcripts(pair.design, pair.first, 1, 0, 4_096, np.random.SeedSequence(9)))
    rows = seen.releases
    ours = Reports(epsilon, only_visited=False).numbers(0, 4_096, np.random.default_rng(9))
    for place, group in enumerate((1, 2)):
        for part, code in enumerate((3, 4)):
            theirs = rows[..., 3][(rows[..., 1] == code) & (rows[..., 2] == group)]
            assert stats.ks_2samp(theirs, ours[:, place, part]).pvalue > 1e-4
