"""Persons of several rounds: `PrivacyGuarantee.group` against chains of mechanisms, built literally."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from adaptinf.errors import ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.privacy.real_mechanisms import analytic_scale, gaussian_delta

SIZES = [2, 5, 10]


def attaining_chain(epsilon: float, delta: float, m: int) -> np.ndarray:
    """Laws P_0, ..., P_m on two outcomes, shape (m + 1, 2): the first outcome is impossible under P_m."""
    first = [0.0]
    for _ in range(m):
        first.insert(0, min(1.0, math.exp(epsilon) * first[0] + delta))
    return np.stack([first, 1.0 - np.array(first)], axis=1)


def hockey_stick(first: np.ndarray, second: np.ndarray, epsilon: float) -> float:
    """The smallest delta at which one law on outcomes is (epsilon, delta)-close to another."""
    return float(np.maximum(first - math.exp(epsilon) * second, 0.0).sum())


@pytest.mark.parametrize("m", SIZES)
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-5), (0.5, 1e-4), (1e-3, 0.01)])
def test_the_two_outcome_chain_attains_it(epsilon: float, delta: float, m: int) -> None:
    laws = attaining_chain(epsilon, delta, m)
    for one, other in itertools.pairwise(laws):
        # neighbours are exactly (epsilon, delta)-close, whichever comes first
        assert hockey_stick(one, other, epsilon) == pytest.approx(delta, abs=1e-15)
        assert hockey_stick(other, one, epsilon) <= delta
    found = PrivacyGuarantee(epsilon, delta).group(m)
    assert found.epsilon == m * epsilon
    assert found.delta == pytest.approx(hockey_stick(laws[0], laws[m], m * epsilon), rel=1e-12, abs=1e-12)
    assert found.rounds == m


@pytest.mark.parametrize("m", SIZES)
@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.1, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-5, 1e-2])
def test_it_is_never_below_what_normal_noise_gives(epsilon: float, delta: float, m: int) -> None:
    scale = analytic_scale(epsilon, delta)
    own = gaussian_delta(m * epsilon, scale, float(m))
    assert own <= PrivacyGuarantee(epsilon, delta).group(m).delta * (1.0 + 1e-9)


def test_the_figures_of_ten_rounds() -> None:
    assert PrivacyGuarantee(1.0, 1e-5).group(10).delta == pytest.approx(0.128, abs=5e-4)
    own = gaussian_delta(10.0, analytic_scale(1.0, 1e-5), 10.0)
    assert own == pytest.approx(4.1e-3, rel=0.02)


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e-16, 1e-8, 1e-3, 0.7, 50.0, 300.0, 699.9, 701.0])
@pytest.mark.parametrize("delta", [1e-320, 1e-300, 1e-12, 1e-3])
@pytest.mark.parametrize("m", [1, 2, 5, 10, 10**6])
def test_it_is_right_where_floats_are_hard(epsilon: float, delta: float, m: int) -> None:
    """Against a geometric sum in logarithms of 60 digits."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        e = mpmath.mpf(epsilon)
        exact = mpmath.mpf(delta) * mpmath.expm1(m * e) / mpmath.expm1(e)
        expected = float(min(mpmath.mpf(1), exact))
    assert PrivacyGuarantee(epsilon, delta).group(m).delta == pytest.approx(expected, rel=1e-10, abs=1e-323)


def test_at_epsilon_zero_deltas_add_up_and_stop_at_one() -> None:
    assert PrivacyGuarantee(0.0, 0.01).group(10).delta == float(10 * Fraction(0.01))
    assert PrivacyGuarantee(0.0, 0.3).group(10).delta == 1.0


def test_without_delta_it_is_m_epsilon_and_pure() -> None:
    for m in SIZES:
        found = PrivacyGuarantee(0.3).group(m)
        assert (found.epsilon, found.delta, found.is_pure) == (m * 0.3, 0.0, True)


def test_an_infinite_epsilon_stays_one() -> None:
    assert PrivacyGuarantee(math.inf).group(3).epsilon == math.inf
    assert PrivacyGuarantee(math.inf, 0.1).group(3).delta == 1.0


def test_groups_of_groups_are_groups() -> None:
    once, twice = PrivacyGuarantee(0.2, 1e-6).group(6), PrivacyGuarantee(0.2, 1e-6).group(2).group(3)
    assert (twice.epsilon, twice.rounds) == (pytest.approx(once.epsilon), once.rounds)
    assert twice.delta == pytest.approx(once.delta, rel=1e-12)


def test_a_group_of_one_is_the_guarantee_itself() -> None:
    guarantee = PrivacyGuarantee(0.5, 0.1, "record", "local", "anticipating", ("why",))
    assert guarantee.group(1) == guarantee


@pytest.mark.parametrize("m", [0, -1, 1.5, True, "3", None])
def test_other_numbers_of_rounds_are_refused(m: object) -> None:
    with pytest.raises(ParameterError, match="m must be"):
        PrivacyGuarantee(1.0).group(m)  # type: ignore[arg-type]


def test_groups_compose_with_groups_of_the_same_size_only() -> None:
    both = PrivacyGuarantee(0.5).group(3).compose(PrivacyGuarantee(0.2).group(3))
    assert (both.epsilon, both.rounds) == (pytest.approx(2.1), 3)
    assert both == both.compose()
    assert hash(both) == hash(PrivacyGuarantee(both.epsilon, rounds=3))
    assert both != PrivacyGuarantee(both.epsilon)


def test_the_anticipating_notion_leaves_out_all_own_actions() -> None:
    """Exact: a person of two rounds gives fair coins away through their own actions alone.

    Round 1's action is the context xor a coin, and round 2's is the same coin: others' outputs are free of
    the context, each own action is, and both own actions together are not. The notion leaves both out.
    """
    laws = {}
    for context in (0, 1):
        counts: dict[tuple[int, int], float] = {}
        for coin in (0, 1):
            pair = (context ^ coin, coin)
            counts[pair] = counts.get(pair, 0.0) + 0.5
        laws[context] = counts
    assert not set(laws[0]) & set(laws[1])
    for own in (0, 1):  # one own action left out: the other is a fair coin under both contexts
        seen = [sum(p for pair, p in laws[context].items() if pair[1 - own] == 1) for context in (0, 1)]
        assert seen == [0.5, 0.5]
