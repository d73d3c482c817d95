"""The grid of the release backend, and what happens without the library that draws its noise."""

from __future__ import annotations

import itertools
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

from adaptinf.errors import AdaptinfError, MissingDependencyError, ParameterError
from adaptinf.privacy.counter import Counter
from adaptinf.privacy.real_mechanisms import Gaussian, Laplace, discrete_scale
from adaptinf.privacy.release import (
    GRID_UNITS,
    discrete_gaussian,
    discrete_laplace,
    from_units,
    item_on_grid,
    scale_above,
    to_grid,
    to_units,
)


def test_items_land_on_whole_units_of_their_range() -> None:
    rng = np.random.default_rng(0)
    for width in (1.0, 0.3, 7.0):
        items = rng.random(10_000) * width
        units = to_grid(items, width)
        assert units.dtype == np.int64
        assert units.min() >= 0
        assert units.max() <= GRID_UNITS
        assert np.abs(units * width / GRID_UNITS - items).max() <= width * 2.0**-21 * (1 + 1e-9)
        assert to_grid([0.0, width], width).tolist() == [0, GRID_UNITS]
    assert to_grid([[0, 1], [1, 0]]).tolist() == [[0, GRID_UNITS], [GRID_UNITS, 0]]


def test_an_item_lands_where_it_lands_among_others() -> None:
    halves = (np.arange(1_000.0) + 0.5) / GRID_UNITS
    items = np.concatenate([np.random.default_rng(2).random(10_000), halves, [0.0, 1.0]])
    assert [item_on_grid(item) for item in items.tolist()] == (to_grid(items) / GRID_UNITS).tolist()


@pytest.mark.parametrize(("values", "width"), [([np.nan], 1.0), ([np.inf], 1.0), ([1e13], 1.0), ([1.0], 0.0)])
def test_what_does_not_fit_the_grid_is_refused(values: list[float], width: float) -> None:
    with pytest.raises(ParameterError, match=r"to_grid: (values|width) must be"):
        to_grid(values, width)


def test_units_are_the_nearest_ones_in_exact_arithmetic() -> None:
    rng = np.random.default_rng(1)
    for sensitivity in (1.0, 0.1, 3.7, 1e-9, 1e6):
        values = rng.normal(size=300) * sensitivity * 10.0 ** rng.integers(-6, 9, 300)
        for value, unit in zip(values, to_units(values, sensitivity), strict=True):
            exact = Fraction(float(value)) * GRID_UNITS / Fraction(sensitivity)
            assert -Fraction(1, 2) < exact - unit + Fraction(0) <= Fraction(1, 2) or exact - unit == Fraction(
                -1, 2
            )
    half = 0.5 / GRID_UNITS
    assert to_units([half, 3 * half, -half, -3 * half], 1.0) == [1, 2, 0, -1]


def test_a_scalar_pays_nothing_for_being_rounded_and_vectors_a_unit_a_coordinate() -> None:
    """Neighbours at the edge of the sensitivity, at ties and off the grid, of either sign."""
    rng = np.random.default_rng(2)
    sensitivity, worst = 0.75, {1: 0, 4: 0}
    unit = Fraction(sensitivity) / GRID_UNITS
    for dimension, _ in itertools.product(worst, range(3000)):
        first = rng.normal(size=dimension) * 100.0
        if rng.random() < 0.5:
            first = np.floor(first) + float(unit / 2)
        share = rng.dirichlet(np.ones(dimension)) * sensitivity * rng.choice([-1.0, 1.0], dimension)
        second = first + share
        moved = sum(abs(Fraction(float(b)) - Fraction(float(a))) for a, b in zip(first, second, strict=True))
        if moved > Fraction(sensitivity):
            continue
        apart = zip(to_units(first, sensitivity), to_units(second, sensitivity), strict=True)
        worst[dimension] = max(worst[dimension], sum(abs(b - a) for a, b in apart))
    assert worst[1] == GRID_UNITS
    assert GRID_UNITS < worst[4] <= GRID_UNITS + 3


def test_units_and_back() -> None:
    values = np.array([[0.5, -3.25], [7.0, 0.0]])
    assert np.array_equal(from_units(to_units(values, 0.5), 0.5, values.shape), values)


def test_no_rounding_of_a_scale_weakens_the_guarantee() -> None:
    rng = np.random.default_rng(3)
    for epsilon in [0.1, 0.3, 1.0, 2.0 / 3.0, *np.exp(rng.normal(size=200) * 3).tolist()]:
        for moved in (GRID_UNITS, GRID_UNITS + 7, 21 * GRID_UNITS):
            scale = scale_above(moved, epsilon)
            assert moved / Fraction(scale) <= Fraction(epsilon)
            assert scale <= moved / epsilon * (1 + 1e-15)


def test_draws_have_the_scale_asked_for_and_all_of_64_bits() -> None:
    """Far outside of 32 bits; the false alarm of six standard errors is 2e-9."""
    for scale in (2.0**20, 2.0**45):
        sample = discrete_laplace(scale, 4000) / scale
        assert abs(np.abs(sample).mean() - 1.0) < 6.0 / np.sqrt(4000)
        normal = discrete_gaussian(scale, 4000) / scale
        assert abs((normal**2).mean() - 1.0) < 6.0 * np.sqrt(2.0 / 4000)
    assert np.abs(discrete_laplace(2.0**45, 100)).max() > 2**33
    assert discrete_laplace(3.0, 0).shape == discrete_gaussian(3.0, 0).shape == (0,)


@pytest.mark.parametrize("draw", [discrete_laplace, discrete_gaussian])
@pytest.mark.parametrize(("scale", "size"), [(0.0, 1), (-1.0, 1), (np.nan, 1), (2.0**56, 1), (1.0, -1)])
def test_bad_scales_and_sizes_are_refused(draw: object, scale: float, size: int) -> None:
    with pytest.raises(ParameterError, match="must be"):
        draw(scale, size)  # type: ignore[operator]


def test_threads_draw_at_the_same_time_and_differently() -> None:
    with ThreadPoolExecutor(8) as pool:
        draws = list(pool.map(lambda _: discrete_laplace(2.0**30, 200), range(16)))
    values = np.concatenate(draws)
    assert values.size == 3200
    assert np.unique(values).size > 3190


def test_a_global_seed_changes_nothing() -> None:
    first, second = (Laplace(epsilon=1.0).release(np.zeros(20), backend="release") for _ in range(2))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize(
    "use",
    [
        lambda: Laplace(epsilon=1.0).release([1.0], backend="release"),
        lambda: Gaussian(epsilon=1.0, delta=1e-5).release([1.0], backend="release"),
        lambda: Counter(epsilon=1.0, backend="release"),
    ],
)
def test_without_opendp_the_error_says_what_to_install(use: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(
        MissingDependencyError, match=r"requires opendp.*pip install '\.\[release\]' in the source tree"
    ) as info:
        use()  # type: ignore[operator]
    assert isinstance(info.value, ImportError)
    assert isinstance(info.value, AdaptinfError)


def test_releases_stay_on_the_grid() -> None:
    sensitivity = 0.5
    noisy = Laplace(epsilon=0.1, sensitivity=sensitivity).release(np.array([[1.3, 2.7]]), backend="release")
    assert noisy.shape == (1, 2)
    units = noisy / sensitivity * GRID_UNITS
    assert np.array_equal(units, np.rint(units))


def test_scales_of_a_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the sampler is asked for: the sensitivity with its units for rounding, over epsilon."""
    asked: list[float] = []

    def note(scale: float, size: int) -> np.ndarray:
        asked.append(scale)
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr("adaptinf.privacy.real_mechanisms.discrete_laplace", note)
    monkeypatch.setattr("adaptinf.privacy.real_mechanisms.discrete_gaussian", note)
    laplace = Laplace(epsilon=0.5, sensitivity=3.0)
    assert laplace.release([1.5], backend="release") == [1.5]
    laplace.release([1.0] * 9, backend="release")
    laplace.release([3.0] * 9, backend="release", on_grid=True)
    assert asked == [2.0 * GRID_UNITS, 2.0 * (GRID_UNITS + 8), 2.0 * GRID_UNITS]
    asked.clear()
    gaussian = Gaussian(epsilon=0.5, delta=1e-5, sensitivity=3.0)
    gaussian.release(1.5, backend="release")
    gaussian.release([1.0] * 9, backend="release")
    gaussian.release([3.0] * 9, backend="release", on_grid=True)
    ratio = gaussian.scale / 3.0
    exact = [discrete_scale(ratio * moved) for moved in (GRID_UNITS, GRID_UNITS + 3, GRID_UNITS)]
    assert asked == pytest.approx(exact, rel=1e-15)
    with pytest.raises(ParameterError, match="multiples of sensitivity"):
        laplace.release([1.0, 0.1], backend="release", on_grid=True)
