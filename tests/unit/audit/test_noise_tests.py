"""Tests of noise: what they find and name, how seldom they find what is not there; and replays in words."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from adaptinf.audit.privacy.audited_mechanisms import counter_nodes, node_noise
from adaptinf.audit.privacy.designs import neighbouring_trials
from adaptinf.audit.privacy.designs.audited_trial import (
    NodeNoise,
    Replayed,
    audit_trials,
    laplace_uniforms,
    replays,
)
from adaptinf.audit.privacy.designs.local_audits import ReportNoise, TwoReports, laplace_sum_uniforms
from adaptinf.audit.privacy.designs.stopping_audits import look_times, stopping_noise
from adaptinf.audit.privacy.release_checks import difference, noise_findings
from adaptinf.audit.privacy.trial_checks import ROUNDS, counter_checks
from adaptinf.designs import (
    DPNAS,
    DPConSE,
    LDPBandit,
    LDPLinear,
    LinPriv,
    Mixture,
    PrivateSuccessiveElimination,
    PrivateUCB,
    Uniform,
)
from adaptinf.privacy import Counter
from adaptinf.privacy.drawn_noise import FALSE_ALARM
from adaptinf.privacy.noise_tests import COIN_RATE, PAIR_RATE
from adaptinf.simulation.environments import Tableau
from adaptinf.simulation.transcripts import Transcripts

RUNS, NODES = 512, 40


def noise(uniforms: Any, fair: Any = None, **settings: Any) -> NodeNoise:
    nodes = uniforms.shape[1]
    fair = np.zeros((0, 0)) if fair is None else fair
    return NodeNoise(
        uniforms,
        [f"node {k}" for k in range(nodes)],
        np.arange(nodes) % 2,
        ["even nodes", "odd nodes"],
        fair,
        [f"reward {k}" for k in range(fair.shape[1])],
        **settings,
    )


def drawn(seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.random((RUNS, NODES)), rng.integers(0, 2, (RUNS, NODES)) - 0.5


def only_finding(case: NodeNoise) -> str:
    (found,) = noise_findings([("a trial", case)])
    return found


def test_independent_uniform_noise_passes() -> None:
    for seed in range(20):
        uniforms, fair = drawn(seed)
        uniforms[seed::7, seed] = np.nan
        assert noise_findings([("a trial", noise(uniforms, fair))]) == []
    assert FALSE_ALARM == 1e-6


def test_a_node_of_another_law_is_named_once() -> None:
    uniforms, fair = drawn()
    uniforms[:, 3] = 0.5  # no noise at all
    told = noise_findings([("a trial", noise(uniforms, fair))])
    assert told[0] == "the noise of node 3 does not have the specified distribution [a trial]"
    # a constant goes with nothing: nodes of another law are left out of the tests of independence
    assert len(told) == 1


def test_a_small_change_of_many_nodes_is_found_in_their_group() -> None:
    uniforms, _ = drawn()
    uniforms[:, ::2] = uniforms[:, ::2] ** 1.2
    told = only_finding(noise(uniforms))
    assert told == "the noise of even nodes does not have the specified distribution [a trial]"


def test_shared_noise_is_found_in_values_and_in_sizes() -> None:
    uniforms, _ = drawn()
    shared = uniforms.copy()
    shared[:, 5] = shared[:, 2]
    told = noise_findings([("a trial", noise(shared))])
    assert told[0] == "the noise of node 2 is associated with that of node 5 [a trial]"
    assert told[1] == "the size of the noise of node 2 is associated with that of node 5 [a trial]"
    # the same size, with a sign of its own
    sizes = uniforms.copy()
    flipped = np.random.default_rng(1).random(RUNS) < 0.5
    sizes[:, 5] = np.where(flipped, 1.0 - sizes[:, 2], sizes[:, 2])
    assert only_finding(noise(sizes)) == (
        "the size of the noise of node 2 is associated with that of node 5 [a trial]"
    )
    assert noise_findings([("a trial", noise(shared, independent=False))]) == []


def test_noise_tied_to_a_reward_is_found() -> None:
    uniforms, fair = drawn()
    uniforms[:, 7] = np.where(fair[:, 4] > 0.0, 0.5 + 0.5 * uniforms[:, 7], 0.5 * uniforms[:, 7])
    assert only_finding(noise(uniforms, fair)) == (
        "the noise of node 7 is associated with reward 4 [a trial]"
    )


@pytest.mark.parametrize(("rate", "fair"), [(PAIR_RATE, False), (COIN_RATE, True)])
def test_bounds_of_sums_of_products_hold(rate: float, fair: bool) -> None:
    """Of 100,000 sums over eight runs, at every height; the earlier entry is as large as it may be."""
    rng, runs = np.random.default_rng(2), 8
    later = rng.integers(0, 2, (100_000, runs)) - 0.5 if fair else rng.random((100_000, runs)) - 0.5
    sums = np.abs((0.5 * later).sum(axis=1))
    for height in np.linspace(0.2, 1.5, 14):
        share = float((sums > height).mean())
        assert share <= 2.0 * math.exp(-rate * height**2 / runs) + 1e-3


def test_rewards_are_fair_coins_only_where_it_is_said() -> None:
    assert (ReportNoise(1.0).fair, ReportNoise(1.0, True).fair) == (False, True)


def test_distribution_functions() -> None:
    at = np.linspace(-9.0, 9.0, 37)
    assert np.allclose(laplace_uniforms(at, 2.0), stats.laplace(scale=2.0).cdf(at), rtol=0.0, atol=1e-15)
    assert np.allclose(laplace_sum_uniforms(at, 1), laplace_uniforms(at, 1.0), rtol=0.0, atol=1e-14)
    # two of them: the density (1 + |x|) e^-|x| / 4
    two = 0.5 * np.exp(-np.abs(at)) * (1.0 + 0.5 * np.abs(at))
    assert np.allclose(laplace_sum_uniforms(at, 2), np.where(at < 0.0, two, 1.0 - two), rtol=0.0, atol=1e-14)
    rng = np.random.default_rng(3)
    gammas = rng.standard_gamma(64, size=(2, 20_000))
    assert stats.kstest(laplace_sum_uniforms(gammas[0] - gammas[1], 64), "uniform").pvalue > 1e-4


def gammas_of_reports(parameters: int, runs: int, rng: np.random.Generator) -> Any:
    """Noise vectors of two participants, shape (2, runs, parameters)."""
    size = rng.standard_gamma(parameters + 1, size=(2, runs, 1))
    return size * rng.uniform(-1.0, 1.0, size=(2, runs, parameters))


@pytest.mark.parametrize("places", [1, 2, 3])
def test_noise_that_two_participants_share_is_found(places: int) -> None:
    """The second vector is the first one, with its coordinates moved by so many places."""
    rng, weight = np.random.default_rng(4), 0.5

    def findings(moved: bool) -> list[str]:
        coefficients = []
        for _ in range(2):  # arms
            first, second = gammas_of_reports(9, RUNS, rng)
            second = np.roll(first, -places, axis=1) if moved else second
            coefficients.append(first + weight * second)
        releases = np.zeros((RUNS, 2 * 9, 5))
        releases[..., 3] = np.concatenate(coefficients, axis=1)
        seen = Transcripts(np.zeros((RUNS, 2), dtype=np.int64), releases, np.zeros((RUNS, 0)))
        return noise_findings([("", part) for part in TwoReports(8)(seen)])

    assert any("two reports" in one for one in findings(True))
    assert findings(False) == []


class TestCounters:
    @pytest.mark.parametrize(
        "settings",
        [
            {},
            {"mechanism": "logarithmic"},
            {"mechanism": "binary", "horizon": 60, "dimension": 2, "noise": "gaussian", "delta": 0.01},
            {"low": -2.0, "high": 3.0},
        ],
    )
    def test_nodes_have_their_law(self, settings: dict[str, Any]) -> None:
        counter = Counter(epsilon=1.0, **settings)
        told = node_noise(counter, 60, RUNS, np.random.default_rng(4))
        assert len(told.names) == counter.dimension * len(counter_nodes(counter, 60))
        assert noise_findings([("60 items", told)]) == []

    @pytest.mark.slow
    def test_long_streams_are_short_where_there_are_many_coordinates(self) -> None:
        assert counter_checks(Counter(epsilon=1.0), np.random.SeedSequence(0)).looked == (
            f"The noise of all nodes was tested in 512 runs: {ROUNDS:,} items.",
        )
        wide = counter_checks(Counter(epsilon=1.0, dimension=20), np.random.SeedSequence(0))
        assert wide.looked == ("The noise of all nodes was tested in 512 runs: 440 items.",)
        assert wide.findings == ()

    def test_exact_noise_is_not_drawn_for_it(self) -> None:
        exact = Counter(epsilon=1.0, backend="release")
        assert "exact noise is slow" in counter_checks(exact, np.random.SeedSequence(0)).looked[0]


class TestReplays:
    def test_what_is_the_same_is_no_difference(self) -> None:
        seen = np.array([[1.0, np.nan], [0.0, 2.0]])
        assert difference(Replayed("the arm", seen, seen.copy())) == ""

    def test_the_first_difference_in_words(self) -> None:
        seen, recomputed = np.zeros((3, 4)), np.zeros((3, 4))
        recomputed[1, 2], recomputed[2, 3] = 1.0, np.nan
        assert difference(Replayed("the arm", seen, recomputed)) == (
            "the arm does not follow from the releases and earlier actions in 2 of 3 runs: in round 3 "
            "of run 2 it is 0 instead of 1, so a decision depended on data that were not released"
        )

    def test_one_bit_is_a_difference(self) -> None:
        seen = np.array([[1.0]])
        assert "it is 1 instead of 1.0000000000000002" in difference(
            Replayed("T_min", seen, np.nextafter(seen, 2.0))
        )


DESIGNS: dict[str, Any] = {
    "PrivateUCB": PrivateUCB(epsilon=1.0),
    "LinPriv": LinPriv(epsilon=1.0),
    "PrivateSuccessiveElimination": PrivateSuccessiveElimination(epsilon=1.0, beta=1.0),
    "DPConSE": DPConSE(epsilon=1.0),
    "LDPBandit": LDPBandit(epsilon=1.0),
    "Mixture": Mixture(PrivateUCB(epsilon=1.0), exploration=0.2),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_trials_of_a_design(name: str) -> None:
    """Rewards beyond [0, 1] and rewards by coins in each; long ones where counters grow."""
    trials = audit_trials(DESIGNS[name])
    ranges = [trial.environment.reward_range for trial in trials if isinstance(trial.environment, Tableau)]
    assert any(low < 0.0 or high > 1.0 for low, high in ranges)
    assert any(not isinstance(trial.environment, Tableau) for trial in trials)
    assert all(trial.noise is not None for trial in trials)
    assert any(replays(trial, DESIGNS[name]) for trial in trials)
    if name in ("PrivateUCB", "LinPriv", "Mixture"):
        assert max(trial.horizon for trial in trials) > 2**10


def test_what_does_not_say_how_it_is_replayed_has_no_trials() -> None:
    assert audit_trials(Uniform()) == ()
    assert audit_trials(Mixture(Uniform(), exploration=0.2)) == ()
    assert audit_trials(DPConSE(epsilon=1.0, calibration="published")) == ()


@pytest.mark.slow
def test_parameters_between_reports_are_not_recomputed() -> None:
    design = LDPLinear(epsilon=1.0)
    trials = audit_trials(design)
    assert len(trials) == 3
    assert not any(replays(trial, design) for trial in trials)


def test_the_law_of_a_stopping_time_is_a_law() -> None:
    rule = DPNAS(epsilon=1.0, alpha=0.5, beta=0.2, steps="exponential")
    law = stopping_noise(rule, neighbouring_trials(rule)[0], 1.0).law
    assert law.sum() == pytest.approx(1.0, abs=1e-8)
    assert law.min() >= 0.0
    assert special.entr(law).sum() > 0.5  # it is no certainty


def test_some_looks_follow_a_sample_of_0() -> None:
    """There a run that halts is likely, so that a rule that did not look would be noticed."""
    rule = DPNAS(epsilon=1.0, alpha=0.5, beta=0.2, steps="exponential")
    pair = neighbouring_trials(rule)[0]
    samples = pair.first.tables(pair.horizon).tableau[: pair.horizon, 0]
    times = look_times("exponential", pair.horizon).astype(np.int64)
    law = stopping_noise(rule, pair, 1.0).law
    assert law[:-1][samples[times - 1] == 0.0].max() > 0.1
    assert np.abs(samples).max() <= rule.bound
