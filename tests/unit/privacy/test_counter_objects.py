"""Counter objects: literal trees, what a single item moves, exact privacy losses and the noise's law."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from adaptinf import PrivacyGuarantee
from adaptinf.errors import ParameterError
from adaptinf.privacy import Counter, gaussian_delta, laplace_norm_bound
from adaptinf.privacy.real_mechanisms import discrete_scale
from adaptinf.privacy.release import GRID_UNITS, to_units
from adaptinf.privacy.tree_sums import noise_variance

HORIZONS = [1, 2, 3, 4, 7, 8, 13, 32]
MECHANISMS = ["binary", "hybrid", "logarithmic"]


class LiteralCounter:
    """A tree of nodes that are intervals of items, each with a noise vector of its own."""

    def __init__(self, mechanism: str, horizon: int) -> None:
        self.mechanism, self.horizon = mechanism, horizon
        self.items: list[np.ndarray] = []
        self.noise: dict[tuple[int, int], np.ndarray] = {}

    def dyadic(self, start: int, count: int) -> list[tuple[int, int]]:
        nodes, done = [], start
        for level in reversed(range(count.bit_length())):
            if count >> level & 1:
                nodes.append((done + 1, done + (1 << level)))
                done += 1 << level
        return nodes

    def nodes(self, count: int) -> list[tuple[int, int]]:
        if self.mechanism == "binary":
            return self.dyadic(0, count)
        top = count.bit_length() - 1
        trunk = [(1, 1)] + [(2**k // 2 + 1, 2**k) for k in range(1, top + 1)]
        return trunk if self.mechanism == "logarithmic" else trunk + self.dyadic(2**top, count - 2**top)

    def times(self, node: tuple[int, int]) -> int:
        """Laplace scale of a node, in sensitivities over epsilon."""
        if self.mechanism == "binary":
            return math.floor(math.log2(self.horizon)) + 1
        first, last = node
        in_trunk = last == 1 or (math.log2(last).is_integer() and first == last // 2 + 1)
        if self.mechanism == "logarithmic":
            assert in_trunk
            return 1
        return 2 if in_trunk else 2 * math.floor(math.log2(last))

    def add(self, item: np.ndarray, draw: Any) -> np.ndarray:
        self.items.append(item)
        nodes = self.nodes(len(self.items))
        for node in nodes:
            if node not in self.noise:
                self.noise[node] = draw(self.times(node))
        sums = [
            np.sum(self.items[first - 1 : last], axis=0) + self.noise[first, last] for first, last in nodes
        ]
        return np.asarray(np.sum(sums, axis=0))


def options(mechanism: str, horizon: int) -> dict[str, Any]:
    return {"mechanism": mechanism, "horizon": horizon if mechanism == "binary" else None}


@pytest.mark.parametrize("dimension", [1, 3])
@pytest.mark.parametrize("horizon", [*HORIZONS, 100])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_sums_are_those_of_a_literal_tree(mechanism: str, horizon: int, dimension: int) -> None:
    rng = np.random.default_rng(horizon)
    counter = Counter(
        epsilon=0.7, dimension=dimension, low=-1.0, high=3.0, rng=5, **options(mechanism, horizon)
    )
    literal, source = LiteralCounter(mechanism, horizon), np.random.default_rng(5)

    def draw(times: int) -> np.ndarray:
        return source.laplace(scale=times * 4.0 * dimension / 0.7, size=dimension)

    assert np.all(counter.value == 0.0)
    for count in range(1, horizon + 1):
        item = rng.uniform(-1.0, 3.0, dimension)
        got = counter.add(item if dimension > 1 else float(item[0]))
        assert isinstance(got, float) == (dimension == 1)
        np.testing.assert_allclose(
            got, literal.add(item, draw) if dimension > 1 else literal.add(item, draw)[0]
        )
        assert np.array_equal(counter.value, got)
        assert counter.count == count


class Probe(Counter):
    """Notes the scale of every draw and returns chosen noise, so that its sums can be taken apart."""

    def prepare(self, noise: np.ndarray) -> Probe:
        self.noise_to_come, self.asked = iter(noise), list[int]()
        return self

    def _draw(self, times: int) -> Any:
        self.asked.append(times)
        return np.full(self.dimension, next(self.noise_to_come))


class Shallow(Probe):
    """The planted fault of many a tree: the number of levels is left out of the scale."""

    def _draw(self, times: int) -> Any:
        return super()._draw(min(times, 2))


def noise_matrix(
    mechanism: str, horizon: int, kind: type[Probe] = Probe
) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Releases as functions of node noises, the counts of the releases, and the scales asked for."""
    releases = [n for n in range(1, horizon + 1) if mechanism != "logarithmic" or n & (n - 1) == 0]
    columns = []
    for unit in np.eye(len(releases)):
        probe = kind(epsilon=1.0, rng=0, **options(mechanism, horizon)).prepare(unit)
        outputs = [probe.add(0.0) for _ in range(horizon)]
        columns.append([outputs[n - 1] for n in releases])
    return np.array(columns).T, np.array(releases), probe.asked


def exact_loss(mechanism: str, horizon: int, kind: type[Probe] = Probe) -> float:
    """Exact epsilon of all released sums at a nominal epsilon of 1: a density ratio of Laplace variables.

    Releases are an invertible function of the node noises, so that changing item i by 1 must be made up for
    by moving the noises by the solution of a linear system; the density ratio at its worst is the exponential
    of the moves over the scales.
    """
    matrix, releases, asked = noise_matrix(mechanism, horizon, kind)
    assert abs(round(float(np.linalg.det(matrix)))) == 1
    losses = []
    for item in range(1, horizon + 1):
        moves = np.linalg.solve(matrix, (releases >= item).astype(float))
        losses.append(np.sum(np.abs(moves) / np.array(asked)))
    return float(max(losses))


@pytest.mark.parametrize("horizon", HORIZONS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_exact_privacy_loss_of_all_sums_is_at_most_epsilon(mechanism: str, horizon: int) -> None:
    loss = exact_loss(mechanism, horizon)
    assert loss <= 1.0 + 1e-12
    # attained, in the hybrid mechanism as soon as there is a block with its segment
    if mechanism != "hybrid" or horizon >= 4:
        assert loss >= 1.0 - 1e-12
    # one draw for each release, and no noise is used twice
    assert len(noise_matrix(mechanism, horizon)[2]) == len(noise_matrix(mechanism, horizon)[1])


@pytest.mark.parametrize("mechanism", ["binary", "hybrid"])
def test_left_out_levels_are_noticed(mechanism: str) -> None:
    assert exact_loss(mechanism, 32, Shallow) >= 1.5


@pytest.mark.parametrize("horizon", HORIZONS)
def test_an_item_moves_the_nodes_by_the_root_of_the_levels(horizon: int) -> None:
    matrix, releases, _ = noise_matrix("binary", horizon)
    lengths = [
        np.linalg.norm(np.linalg.solve(matrix, (releases >= item).astype(float)))
        for item in range(1, horizon + 1)
    ]
    levels = math.floor(math.log2(horizon)) + 1
    assert max(lengths) == pytest.approx(math.sqrt(levels))
    counter = Counter(epsilon=0.5, delta=1e-6, noise="gaussian", mechanism="binary", horizon=horizon)
    sigma = counter.scales[1]
    assert gaussian_delta(0.5, sigma, max(lengths)) == pytest.approx(1e-6, rel=1e-9)
    assert gaussian_delta(0.5, sigma / 2.0, max(lengths)) > 1e-5  # half the noise
    assert counter.guarantee() == PrivacyGuarantee(0.5, delta=1e-6)


@pytest.mark.parametrize(("dimension", "stated"), [(1, None), (1, 0.4), (3, None), (3, 0.6), (5, 0.7)])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_items_on_the_grid_move_by_no_more_than_the_counter_allows(
    noise: str, dimension: int, stated: float | None
) -> None:
    normal = (
        {"noise": "gaussian", "delta": 1e-5, "mechanism": "binary", "horizon": 4}
        if noise == "gaussian"
        else {}
    )
    low, high = -0.3, 0.4
    counter = Counter(
        epsilon=1.0, dimension=dimension, low=low, high=high, sensitivity=stated, backend="release", **normal
    )
    power = 1 if noise == "laplace" else 2
    allowed = counter.sensitivity / (high - low) * GRID_UNITS
    rng, width = np.random.default_rng(1), high - low
    largest = 0.0
    for _ in range(4000):
        first, second = np.full(dimension, low), np.full(dimension, high)
        if stated is not None:
            step = rng.dirichlet(np.ones(dimension)) ** (1 / power) * stated * (1 - 1e-12)
            first = low + rng.random(dimension) * (width - step)
            second = first + step
        units = zip(to_units(first, width), to_units(second, width), strict=True)
        largest = max(largest, float(np.linalg.norm([float(b - a) for a, b in units], ord=power)))
    assert 0.97 * allowed - 3 < largest <= allowed * (1 + 1e-15) + 1e-6
    whole = (dimension if noise == "laplace" else math.sqrt(dimension)) * width
    nominal = whole if stated is None else min(stated, whole)
    assert counter.sensitivity == pytest.approx(nominal, rel=1e-5)
    assert counter.sensitivity >= nominal * (1 - 1e-12)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_release_scales_are_those_of_the_nodes(mechanism: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def note(scale: float, size: int) -> np.ndarray:
        asked.append(scale)
        return np.full(size, len(asked), dtype=np.int64)

    monkeypatch.setattr("adaptinf.privacy.counter.discrete_laplace", note)
    counter = Counter(epsilon=0.3, dimension=2, backend="release", **options(mechanism, 13))
    asked.clear()
    literal, expected = LiteralCounter(mechanism, 13), list[float]()

    def draw(times: int) -> np.ndarray:
        expected.append(float(Fraction(2 * GRID_UNITS * times) / Fraction(0.3)))
        return np.full(2, len(expected) / GRID_UNITS)

    for count in range(1, 14):
        got = counter.add([0.5, 0.25])
        exact = literal.add(np.array([0.5, 0.25]), draw)
        if mechanism != "logarithmic" or count & (count - 1) == 0:
            assert np.array_equal(got, exact)  # integers: no rounding at all
    assert asked == pytest.approx(expected, rel=1e-15)
    assert all(got >= nominal for got, nominal in zip(asked, expected, strict=True))


def test_normal_release_noise_has_the_discrete_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def note(scale: float, size: int) -> np.ndarray:
        asked.append(scale)
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr("adaptinf.privacy.counter.discrete_gaussian", note)
    counter = Counter(
        epsilon=1.0,
        delta=1e-5,
        noise="gaussian",
        mechanism="binary",
        horizon=7,
        dimension=4,
        backend="release",
    )
    assert np.array_equal(counter.add([1.0, 0.5, 0.0, 0.25]), [1.0, 0.5, 0.0, 0.25])
    assert asked == [discrete_scale(counter.scales[1] * GRID_UNITS)]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_noise_law_at_every_count(mechanism: str) -> None:
    counter = Counter(epsilon=0.6, high=2.0, dimension=3, **options(mechanism, 40))
    literal, scale = LiteralCounter(mechanism, 40), 6.0 / 0.6
    for count in range(1, 41):
        terms = [scale * literal.times(node) for node in literal.nodes(count)]
        assert counter.noise_variance(count) == pytest.approx(
            2.0 * math.fsum(b * b for b in terms), rel=1e-12
        )
        exact = 36.0 * noise_variance(mechanism, 0.6, 40, np.array([count]))[0]
        assert counter.noise_variance(count) == pytest.approx(exact, rel=1e-12)
        if len(terms) == 1:
            assert counter.noise_quantile(0.99, count) == pytest.approx(-terms[0] * math.log(0.02), rel=1e-9)
        widest = max(terms)
        groups = terms.count(widest), len(terms) - terms.count(widest)
        other = min(terms)
        bound = laplace_norm_bound(widest, groups[0], other, groups[1], 3, math.log(0.1))
        assert counter.norm_bound(count, 0.9) == pytest.approx(bound, rel=1e-9)
    counter.add([0.0, 1.0, 2.0])
    assert counter.noise_variance() == counter.noise_variance(1)
    assert counter.norm_bound() == counter.norm_bound(1, 0.95)


def test_normal_noise_law() -> None:
    counter = Counter(epsilon=1.0, delta=1e-6, noise="gaussian", mechanism="binary", horizon=100, dimension=5)
    sigma = counter.scales[1]
    assert counter.sensitivity == pytest.approx(math.sqrt(5.0))
    assert gaussian_delta(1.0, sigma, math.sqrt(5.0 * 7.0)) == pytest.approx(1e-6, rel=1e-9)
    for count in (1, 3, 63, 64, 100):
        ones = count.bit_count()
        assert counter.noise_variance(count) == pytest.approx(ones * sigma**2, rel=1e-14)
        assert counter.noise_quantile(0.975, count) == pytest.approx(1.959963985 * sigma * math.sqrt(ones))
        exact = sigma * math.sqrt(ones) * stats.chi(5).ppf(0.99)
        assert counter.norm_bound(count, 0.99) == pytest.approx(exact, rel=1e-10)


def test_quantiles_take_arrays_and_are_symmetric() -> None:
    counter = Counter(epsilon=1.0)
    p = np.array([[0.01, 0.3], [0.7, 0.99]])
    q = counter.noise_quantile(p, 13)
    np.testing.assert_allclose(q, -q[::-1, ::-1], rtol=1e-12)
    assert (np.diff(q.ravel()) > 0).all()


def test_logarithmic_sums_wait_for_the_next_power_of_two() -> None:
    counter = Counter(epsilon=1.0, mechanism="logarithmic", rng=2)
    sums = [counter.add(1.0) for _ in range(33)]
    changes = [n for n, (before, after) in enumerate(itertools.pairwise(sums), start=2) if before != after]
    assert changes == [2, 4, 8, 16, 32]
    assert counter.noise_variance() == 2.0 * 6


def test_simulations_repeat_and_releases_do_not() -> None:
    first, second = (Counter(epsilon=1.0, rng=3) for _ in range(2))
    assert [first.add(0.5) for _ in range(9)] == [second.add(0.5) for _ in range(9)]
    first, second = (Counter(epsilon=1.0, backend="release") for _ in range(2))
    assert [first.add(0.5) for _ in range(9)] != [second.add(0.5) for _ in range(9)]
    assert (first.backend, Counter(epsilon=1.0).backend) == ("release", "simulation")


def test_the_state_grows_with_the_levels_only() -> None:
    counter = Probe(epsilon=1.0, rng=0).prepare(np.zeros(5000))
    for _ in range(5000):
        counter.add(0.5)
    assert len(counter.asked) == 5000
    assert len(counter._nodes) <= math.log2(5000)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epsilon": -1.0, "mechanism": "tree", "dimension": 0}, ["3 problems"]),
        ({"mechanism": "binary"}, ["requires horizon"]),
        ({"mechanism": "binary", "horizon": 0}, ["horizon must be a whole number"]),
        ({"low": 1.0, "high": 1.0}, ["low must be below high"]),
        ({"low": math.nan, "sensitivity": 0.0}, ["2 problems", "sensitivity"]),
        ({"noise": "gaussian", "delta": 1e-5}, ["requires the binary mechanism"]),
        ({"noise": "gaussian", "mechanism": "binary", "horizon": 5}, ["delta"]),
        ({"noise": "gaussian", "mechanism": "binary", "horizon": 5, "delta": 1.0}, ["below 1"]),
        ({"noise": "normal"}, ["noise must be one of"]),
        ({"delta": 1e-5}, ["delta must be 0 with Laplace noise"]),
        ({"backend": "release", "rng": 1}, ["never seeded"]),
    ],
)
def test_bad_parameters_are_all_listed(options: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ParameterError) as info:
        Counter(**{"epsilon": 1.0, **options})
    for word in words:
        assert word in str(info.value)


@pytest.mark.parametrize("backend", ["simulation", "release"])
def test_bad_items_are_refused_and_not_counted(backend: str) -> None:
    counter = Counter(epsilon=1.0, mechanism="binary", horizon=2, dimension=2, backend=backend)
    for item, words in [
        ([0.5, 1.01], "clip items first"),
        ([-0.01, 1.0], "clip items first"),
        ([np.nan, 0.0], "finite"),
        ([0.5], "2 coordinates"),
        (0.5, "2 coordinates"),
        ([[0.5, 0.5]], "2 coordinates"),
    ]:
        with pytest.raises(ParameterError, match=words):
            counter.add(item)
    assert counter.count == 0
    counter.add([0.0, 1.0])
    counter.add([0.0, 1.0])
    with pytest.raises(ParameterError, match="horizon of 2 items has been reached"):
        counter.add([0.0, 1.0])
    with pytest.raises(ParameterError, match="at most the horizon"):
        counter.noise_variance(3)
    with pytest.raises(ParameterError, match="count must be"):
        Counter(epsilon=1.0).noise_variance()
