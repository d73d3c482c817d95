"""Audits of counters of many levels: streams that reach all of them, without adding every item one by one."""

from __future__ import annotations

import numpy as np
import pytest

from adaptinf.audit import epsilon_lower_bound, neighbouring_inputs
from adaptinf.audit.privacy.audited_mechanisms import CounterSource, counter_nodes, worst_streams
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.privacy import Counter


@pytest.mark.parametrize("horizon", [512, 1_000, 10**6])
def test_half_the_noise_is_caught_and_the_right_noise_is_not(horizon: int) -> None:
    promised = PrivacyGuarantee(epsilon=1.0)
    right, quiet = (Counter(epsilon=e, mechanism="binary", horizon=horizon) for e in (1.0, 2.0))
    assert not epsilon_lower_bound(right, view="releases", runs=200_000, rng=0).refuted
    runs = 200_000 if horizon < 10**6 else 1_000_000
    assert epsilon_lower_bound(quiet, view="releases", promised=promised, runs=runs, rng=0).refuted


@pytest.mark.parametrize("length", [1, 2, 7, 16, 45, 64])
def test_nodes_of_an_item_are_those_among_all_that_hold_it(length: int) -> None:
    counter = Counter(epsilon=1.0, mechanism="binary", horizon=64)
    for item in range(length):
        first = np.zeros((length, 1))
        second = first.copy()
        second[item] = 1.0
        source = CounterSource(counter, (first, second), "releases", np.random.SeedSequence(0))
        held = [node for node in counter_nodes(counter, length) if node.start <= item < node.end]
        assert source._telling() == held
    most = max(
        sum(node.start <= item < node.end for node in counter_nodes(counter, length))
        for item in range(length)
    )
    first, second = worst_streams(counter, length)
    changed = int(np.flatnonzero(first != second)[0])
    assert len(first) <= length
    assert sum(node.start <= changed < node.end for node in counter_nodes(counter, len(first))) == most


@pytest.mark.parametrize("backend", ["simulation", "release"])
@pytest.mark.parametrize("item", [0, 40, 130])
def test_items_that_are_passed_over_are_in_the_sums(backend: str, item: int) -> None:
    """Next to no noise: what is released is the sum."""
    if backend == "release":
        pytest.importorskip("opendp")
    counter = Counter(epsilon=1e9, mechanism="binary", horizon=300, dimension=2, backend=backend)
    first = np.random.default_rng(0).random((300, 2))
    second = first.copy()
    second[item] = 1.0 - first[item]
    source = CounterSource(counter, (first, second), "releases", np.random.SeedSequence(0))
    for count, sums in source._sums(0, 0, 3).items():
        np.testing.assert_allclose(sums, np.tile(first[:count].sum(axis=0), (3, 1)), rtol=0.0, atol=1e-3)


@pytest.mark.parametrize("item", [0, 40, 130])
def test_noise_is_that_of_a_counter_that_releases_every_sum(item: int) -> None:
    """Covariances of the noise at all counts that are looked at, against a counter with every item added."""
    counter = Counter(epsilon=1.0, mechanism="binary", horizon=255, rng=0)
    first, runs = np.zeros((255, 1)), 20_000
    second = first.copy()
    second[item] = 1.0
    passed = CounterSource(counter, (first, second), "releases", np.random.SeedSequence(3))._sums(0, 0, runs)
    wide, every = counter._abreast(runs, np.random.default_rng(4)), {}
    for count in range(1, 256):
        every[count] = wide.add(np.zeros(runs))
    counts = sorted(set(passed) - {0})
    found = np.corrcoef([passed[count][:, 0] for count in counts])
    expected = np.corrcoef([every[count] for count in counts])
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=0.06)
    for count in counts:
        assert passed[count].var() == pytest.approx(counter.noise_variance(count), rel=0.12)


def test_streams_that_cannot_show_all_of_epsilon_say_so() -> None:
    counter = Counter(epsilon=1.0, mechanism="binary", horizon=1_000)
    short = epsilon_lower_bound(
        counter, neighbouring_inputs(counter, rounds=31), view="releases", runs=2_000, rng=0
    )
    assert "5 nodes and reveals at most 0.5 of epsilon: neighbouring_inputs(target, rounds=)" in short.target
    assert "reveals at most 0.5 of epsilon" in " ".join(str(short).split())
    assert "at most" not in epsilon_lower_bound(counter, view="releases", runs=2_000, rng=0).target
