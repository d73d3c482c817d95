"""The probability that each of several Beta variables is the largest, by quadrature.

On the scale of log-odds, a Beta variable has a smooth density that decays at least exponentially. Panels of
Gauss points begin at the lower end of the highest variable and widen with the distance from that end, so they
resolve every variable that can be the largest, however different the spreads. At these points, each
variable's density is evaluated; its distribution function is the integral of the polynomial through the
densities of a panel.

Only variables whose parameters have changed are recomputed. Stored values never affect a result: points
depend only on the current parameters, in discrete steps, and a variable's values only on the points and on
its parameters.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from adaptinf.compilation import kernel
from adaptinf.typing import FloatArray

_POINTS, _PANELS = 16, 96
_DROP, _FAR_DROP = 25.0, 70.0
"""Fall of the log density from its peak to the ends of the range; the second keeps small probabilities."""
_GROWTH, _CROWD, _POLE = 0.36, 0.015, 0.8
"""Widths of panels: relative to the distance, with a correction for the number of arms, and in units of pi,
the distance of the density's poles from the real line."""
_LEAST_POWER, _MOST_POWER, _WHOLE = -1000, 100, 1.5 * 2.0**52
"""Limits for powers of 2 in densities, and a number that, added and subtracted, rounds to whole numbers."""
_LOG_TWO, _PER_LOG_TWO = math.log(2.0), 1.0 / math.log(2.0)
_LOG_TWO_HIGH, _LOG_TWO_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
_TAIL = -23.0
"""Log density below which the distribution function is approximated by that of an exponential tail."""
_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)

_FIRST, _SECOND, _CENTRE, _LEFT, _RIGHT, _MADE, _USED, _NEXT, _COLUMNS = range(9)
"""Columns of a variable: its parameters, the likely range of its log-odds, its grid, and points needed."""
_ORIGIN, _UNIT, _LOW, _HIGH, _COUNT, _VERSION = range(6)
"""The grid: its start, its first scale, its outermost modes, its number of panels, and its identifier."""


class BetaSpace(NamedTuple):
    """Constants of the quadrature rule, and values kept between calls.

    Shapes: node, weight (points,), integral (points, points) from -1 to each node, grid (6,), arms (arms, 8),
    edge (panels,), log_x, log_rest, width, before (all points,), powers (1100,), density, below (arms, all
    points), after (arms + 1, all points), of which the last row is 1.
    """

    drop: float
    growth: float
    node: FloatArray
    weight: FloatArray
    integral: FloatArray
    grid: FloatArray
    arms: FloatArray
    edge: FloatArray
    log_x: FloatArray
    log_rest: FloatArray
    width: FloatArray
    before: FloatArray
    powers: FloatArray
    density: FloatArray
    below: FloatArray
    after: FloatArray


@functools.cache
def _rule() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Gauss nodes and weights, and the integral from -1 to each node of each node's polynomial."""
    node, weight = np.polynomial.legendre.leggauss(_POINTS)
    values = np.polynomial.legendre.legvander(node, _POINTS - 1)
    integrals = [np.polynomial.legendre.legint(row, lbnd=-1.0) for row in np.eye(_POINTS)]
    upto = np.stack([np.polynomial.legendre.legval(node, row) for row in integrals], axis=1)
    return node, weight, np.ascontiguousarray((upto @ np.linalg.inv(values)).T)


def beta_space(n_arms: int, *, small: bool) -> BetaSpace:
    """Space for `n_arms` variables; `small` preserves the ratios of very small probabilities."""
    points = _POINTS * _PANELS if n_arms else 0
    drop = _FAR_DROP if small else _DROP
    node, weight, integral = _rule()
    return BetaSpace(
        drop=drop,
        growth=_GROWTH * math.sqrt(_DROP / drop) / (1.0 + _CROWD * n_arms),
        node=node,
        weight=weight,
        integral=integral,
        grid=np.zeros(6),
        arms=np.zeros((n_arms, _COLUMNS)),
        edge=np.zeros(_PANELS),
        log_x=np.zeros(points),
        log_rest=np.zeros(points),
        width=np.zeros(points),
        before=np.zeros(points),
        powers=np.exp2(np.arange(_LEAST_POWER, _MOST_POWER, dtype=np.float64)),
        density=np.zeros((n_arms, points)),
        below=np.zeros((n_arms, points)),
        after=np.ones((n_arms + 1, points)),
    )


@kernel
def _split_exponential(x: float) -> tuple[float, float]:
    """exp(x) as a factor and a power of 2, without a function call, so that the compiler can vectorise it."""
    x = max(x, _LEAST_POWER * _LOG_TWO)
    power = (x * _PER_LOG_TWO + _WHOLE) - _WHOLE
    r = (x - power * _LOG_TWO_HIGH) - power * _LOG_TWO_LOW
    near = 1.0 / 40320.0 + r * (
        1.0 / 362880.0 + r * (1.0 / 3628800.0 + r * (1.0 / 39916800.0 + r * (1.0 / 479001600.0)))
    )
    near = 1.0 / 24.0 + r * (1.0 / 120.0 + r * (1.0 / 720.0 + r * (1.0 / 5040.0 + r * near)))
    return 1.0 + r * (1.0 + r * (0.5 + r * (1.0 / 6.0 + r * near))), power


@kernel
def _log_mixed(first: float, second: float, distance: float) -> float:
    """log(first + second e^distance) with first + second = 1, without loss of precision near 0."""
    excess = second * math.expm1(distance)
    if excess > 1.0:
        return distance + math.log(second + first * math.exp(-distance))
    if excess > -0.5:
        return math.log1p(excess)
    return math.log(first + second * math.exp(distance))


@kernel
def _stirling(x: float) -> float:
    """The remainder of Stirling's formula for log Gamma(x)."""
    if x < 10.0:
        return math.lgamma(x) - ((x - 0.5) * math.log(x) - x + _HALF_LOG_TWO_PI)
    r = 1.0 / (x * x)
    rest = 1.0 / 1188.0 - r * (691.0 / 360360.0 - r / 156.0)
    return (1.0 / 12.0 - r * (1.0 / 360.0 - r * (1.0 / 1260.0 - r * (1.0 / 1680.0 - r * rest)))) / x


@kernel
def _log_peak(first: float, second: float) -> float:
    """Logarithm of the largest value of the density of the log-odds."""
    total = first + second
    peak = 0.5 * math.log(first / total * second) - _HALF_LOG_TWO_PI
    return peak + _stirling(total) - _stirling(first) - _stirling(second)


@kernel
def _reach(first: float, second: float, sign: float, drop: float) -> float:
    """Distance from the mode, to one side, at which the log density of the log-odds has fallen by `drop`."""
    total = first + second
    share, rest = first / total, second / total
    distance = math.sqrt(2.0 * (drop + 3.0) * (1.0 / first + 1.0 / second))
    for _ in range(60):
        mixed = _log_mixed(rest, share, sign * distance)
        fallen = total * mixed - first * sign * distance
        if drop <= fallen <= drop + 8.0:
            break
        slope = sign * (total * share * math.exp(sign * distance - mixed) - first)
        distance -= (fallen - drop - 4.0) / slope
    return distance


@kernel
def _place(space: BetaSpace, arm: int, first: float, second: float) -> None:
    """Store a variable's parameters, and the range in which its log-odds are likely to lie."""
    row = space.arms[arm]
    row[_FIRST], row[_SECOND] = first, second
    row[_CENTRE] = math.log(first / second)
    row[_LEFT] = row[_CENTRE] - _reach(first, second, -1.0, space.drop)
    row[_RIGHT] = row[_CENTRE] + _reach(first, second, 1.0, space.drop)
    row[_MADE] = -1.0


@kernel
def _panel(space: BetaSpace, unit: float, gap: float, low: float, high: float) -> float:
    """Width of the panel at distance `gap` from the start, `low` below the modes and `high` above them."""
    width = _POLE * math.pi
    width = max(width, 0.5 * low) if high < 0.0 else _POLE * math.sqrt(math.pi * math.pi + high * high)
    return min(space.growth * (unit + gap), width)


@kernel
def _log_shares(space: BetaSpace, at: int, origin: float, distance: float) -> None:
    """Write log x and log (1 - x) of a point, minus their values at the start."""
    share, rest = 1.0 / (1.0 + math.exp(-origin)), 1.0 / (1.0 + math.exp(origin))
    if origin + distance < 0.0:
        change = math.log1p(share * math.expm1(distance))
        space.log_x[at], space.log_rest[at] = distance - change, -change
        return
    change = rest * math.expm1(-distance)
    change = math.log1p(change) if change > -0.5 else math.log(share + rest * math.exp(-distance))
    space.log_x[at], space.log_rest[at] = -change, -distance - change


@kernel
def _outline(space: BetaSpace, n_arms: int) -> tuple[float, float, float, float, float]:
    """Start and end of the points, their first scale, and the outermost modes; all but the end in steps."""
    arms = space.arms
    origin, end, narrow, low, high = -np.inf, -np.inf, np.inf, 0.0, 0.0
    for arm in range(n_arms):
        origin = max(origin, arms[arm, _LEFT])
    for arm in range(n_arms):
        if arms[arm, _RIGHT] > origin:
            narrow = min(narrow, 1.0 / arms[arm, _FIRST] + 1.0 / arms[arm, _SECOND])
            end = max(end, arms[arm, _RIGHT])
            low, high = min(low, arms[arm, _CENTRE]), max(high, arms[arm, _CENTRE])
    unit = math.pow(2.0, 0.5 * math.floor(4.0 + math.log2(narrow)))
    origin = math.floor(2.0 * origin / unit) * 0.5 * unit
    return origin, end, unit, math.floor(low), math.ceil(high)


@kernel
def _lay_points(space: BetaSpace, n_arms: int) -> int:
    """Place the points from the start of the highest variable to the end of the last; return their number."""
    grid = space.grid
    origin, end, unit, low, high = _outline(space, n_arms)
    count, edge = 0, origin
    while edge < end and count < _PANELS:
        space.edge[count] = edge
        edge += _panel(space, unit, edge - origin, low - edge, edge - high)
        count += 1
    same = origin == grid[_ORIGIN] and unit == grid[_UNIT] and count == grid[_COUNT]
    if same and low == grid[_LOW] and high == grid[_HIGH]:
        return count * _POINTS
    grid[_ORIGIN], grid[_UNIT], grid[_LOW], grid[_HIGH], grid[_COUNT] = origin, unit, low, high, count
    grid[_VERSION] += 1.0
    for panel in range(count):
        start = space.edge[panel]
        after = space.edge[panel + 1] if panel + 1 < count else edge
        for point in range(_POINTS):
            at = panel * _POINTS + point
            half = 0.5 * (after - start)
            space.width[at] = half * space.weight[point]
            _log_shares(space, at, origin, start - origin + half * (1.0 + space.node[point]))
    return count * _POINTS


@kernel
def _integrate(space: BetaSpace, arm: int, below: float, count: int) -> None:
    """Write the distribution function, given its value at the start, as integrals of polynomials."""
    integral, density, function = space.integral, space.density[arm], space.below[arm]
    for start in range(0, count, _POINTS):
        half = space.width[start] / space.weight[0]
        for point in range(0, _POINTS, 4):  # four at once, which the compiler turns into one
            first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
            for node in range(_POINTS):
                value = density[start + node]
                first += value * integral[node, point]
                second += value * integral[node, point + 1]
                third += value * integral[node, point + 2]
                fourth += value * integral[node, point + 3]
            function[start + point] = below + half * first
            function[start + point + 1] = below + half * second
            function[start + point + 2] = below + half * third
            function[start + point + 3] = below + half * fourth
        for node in range(_POINTS):
            below += density[start + node] * space.width[start + node]


@kernel
def _tabulate(space: BetaSpace, arm: int, count: int) -> None:
    """Write a variable's density and distribution function at the points, up to the end of the variable."""
    row, density, log_x, log_rest = space.arms[arm], space.density[arm], space.log_x, space.log_rest
    first, second = row[_FIRST], row[_SECOND]
    total = first + second
    distance = space.grid[_ORIGIN] - row[_CENTRE]
    mixed = _log_mixed(second / total, first / total, distance)
    log_share = -_log_mixed(first / total, second / total, -distance)
    fallen = first * log_share - second * mixed
    start = fallen + _log_peak(first, second)
    used = 0
    while used < count and space.edge[used // _POINTS] < row[_RIGHT]:
        used += _POINTS
    row[_USED], row[_MADE] = used, space.grid[_VERSION]
    power = space.below[arm]
    for at in range(used):
        density[at], power[at] = _split_exponential(start + first * log_x[at] + second * log_rest[at])
    for at in range(used):
        density[at] *= space.powers[int(power[at]) - _LEAST_POWER]
    slope = first - first * math.exp(log_share)
    if fallen < _TAIL and slope > 0.0:
        below = math.exp(start) / slope
    else:
        whole = 0.0
        for at in range(used):
            whole += density[at] * space.width[at]
        below = max(1.0 - whole, 0.0)
    _integrate(space, arm, below, used)


@kernel
def _products_after(space: BetaSpace, n_arms: int, count: int) -> None:
    """For every variable, write the product of its distribution function and those of later variables."""
    last = n_arms
    for arm in range(n_arms - 1, -1, -1):
        row = space.arms[arm]
        if row[_RIGHT] <= space.grid[_ORIGIN]:
            continue
        if row[_MADE] != space.grid[_VERSION]:
            _tabulate(space, arm, count)
        used = int(row[_USED])
        below, after, product = space.below[arm], space.after[last], space.after[arm]
        for at in range(used):
            product[at] = after[at] * below[at]
        for at in range(used, count):
            product[at] = after[at]
        row[_NEXT] = last
        last = arm


@kernel
def _integral(space: BetaSpace, arm: int) -> float:
    """Integral of a variable's density times all others' distribution functions."""
    row = space.arms[arm]
    before, density, after = space.before, space.density[arm], space.after[int(row[_NEXT])]
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    for at in range(0, int(row[_USED]), 4):
        first += before[at] * density[at] * after[at]
        second += before[at + 1] * density[at + 1] * after[at + 1]
        third += before[at + 2] * density[at + 2] * after[at + 2]
        fourth += before[at + 3] * density[at + 3] * after[at + 3]
    return (first + second) + (third + fourth)


@kernel
def log_beta_ratio(a: float, b: float, c: float, d: float) -> float:
    """Logarithm of B(a + c, b + d) / (B(a, b) B(c, d)), without loss of precision for large arguments."""
    first, second, total = a + b, c + d, a + b + c + d
    share, rest = (a + c) / total, (b + d) / total
    # By the peaks of the densities of log-odds, and how far these have fallen at the pooled odds.
    fallen = a * math.log(share * first / a) + b * math.log(rest * first / b)
    fallen += c * math.log(share * second / c) + d * math.log(rest * second / d)
    return fallen + _log_peak(a, b) + _log_peak(c, d) - _log_peak(a + c, b + d)


@kernel
def _beats(space: BetaSpace, arm: int, other: int) -> float:
    """Probability that a variable exceeds another one that is far above it."""
    # The first term of a series of positive ones, over 1 less the ratio of the second to the first.
    a, b = space.arms[arm, _FIRST], space.arms[arm, _SECOND]
    c, d = space.arms[other, _FIRST], space.arms[other, _SECOND]
    total = a + b + c + d
    chance = math.exp(log_beta_ratio(a, b, c, d)) / b
    return float(chance * total * (b + 1.0) / (b * c - a * d + total))


@kernel
def best_of_betas(
    space: BetaSpace, first: FloatArray, second: FloatArray, n_arms: int, best: FloatArray
) -> None:
    """Write into `best` the probabilities that each Beta variable is the largest; they sum to 1.

    Shapes: first, second, best (at least n_arms,).
    """
    leader, total = 0, 0.0
    for arm in range(n_arms):
        if first[arm] != space.arms[arm, _FIRST] or second[arm] != space.arms[arm, _SECOND]:
            _place(space, arm, first[arm], second[arm])
        if space.arms[arm, _LEFT] > space.arms[leader, _LEFT]:
            leader = arm
    count = _lay_points(space, n_arms)
    _products_after(space, n_arms, count)
    before = space.before
    for at in range(count):
        before[at] = space.width[at]
    for arm in range(n_arms):
        if space.arms[arm, _RIGHT] <= space.grid[_ORIGIN]:
            best[arm] = _beats(space, arm, leader)
        else:
            best[arm] = _integral(space, arm)
            below = space.below[arm]
            for at in range(int(space.arms[arm, _USED])):
                before[at] *= below[at]
        total += best[arm]
    for arm in range(n_arms):
        best[arm] /= total
