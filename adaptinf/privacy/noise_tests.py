"""Tests of drawn noise against its distribution: shape, repeats and lattices, and their findings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from adaptinf.privacy.drawn_noise import (
    FALSE_ALARM,
    ODDS,
    Draws,
    Intervals,
    Look,
    counted,
    intervals,
    limits,
    log_mean,
    log_products,
    multiple_probability,
    probability,
    too_often,
)
from adaptinf.typing import BoolArray, FloatArray, IntArray

_TINY = 1e-300


def shape_looks(draws: Draws, found: Intervals) -> Iterator[Look]:
    """Tests of all draws together; for distribution and scale, also of each stated scale separately."""
    scales = np.unique(draws.scales)
    groups = [np.ones(len(draws), dtype=np.bool_)]
    groups += [draws.scales == scale for scale in scales] if scales.size > 1 else []
    about = ["the draws", *(f"the draws of scale {scale:,.6g}" for scale in scales)]
    laws = np.array([law_bound(found.low[mine], found.high[mine]) for mine in groups])
    yield Look("law", laws, lambda at: f"{about[at]} do not have the stated distribution")
    sums = np.array([scale_bounds(found.reached[mine], found.beyond[mine]) for mine in groups])

    def scaled(at: int) -> str:
        way = "larger" if at % 2 else "smaller"
        return f"the sizes of {about[at // 2]} are {way} than their stated scale implies"

    yield Look("scale", sums.ravel(), scaled)
    yield from _tails(draws, found)
    yield _holes(found)
    zeros = draws.units == 0
    few = f"{float(found.most.sum()):.2g}"
    words = f"{counted(int(zeros.sum()), 'draw')} of {len(draws):,} are 0: {few} are expected"
    yield Look("zeros", np.array([too_often(zeros, found.most)]), lambda _: words)


def law_bound(low: FloatArray, high: FloatArray) -> float:
    """Log of 2 exp(-2 n D^2), with D at most the distance of uniforms in these intervals from uniformity."""
    # The Dvoretzky-Kiefer-Wolfowitz inequality holds with this constant for every n.
    # Massart, P. (1990). The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality. Annals of
    # Probability 18.
    n = low.size
    if n == 0:
        return 0.0
    steps = np.arange(n + 1) / n
    above, below = steps[1:] - np.sort(high), np.sort(low) - steps[:-1]
    distance = max(float(above.max()), float(below.max()), 0.0)
    return math.log(2.0) - 2.0 * n * distance**2


def scale_bounds(reached: FloatArray, beyond: FloatArray) -> tuple[float, float]:
    """Log probabilities that a sum of -log size probabilities, a gamma variable, is as small, or as large."""
    n = reached.size
    if n == 0:
        return 0.0, 0.0
    low, high = float(beyond.sum()), float(reached.sum())
    return _log_gamma_tail(n, low, upper=False), _log_gamma_tail(n, high, upper=True)


def _log_gamma_tail(n: int, total: float, upper: bool) -> float:
    """Log probability that a gamma variable of shape n exceeds a value; Chernoff's bound in the far tail."""
    exact = float((special.gammaincc if upper else special.gammainc)(n, total))
    if exact > _TINY:
        return math.log(exact)
    if total <= 0.0:
        return -math.inf
    return n - total + n * math.log(total / n)


def _tails(draws: Draws, found: Intervals) -> Iterator[Look]:
    """Whether the largest size, draw and negative draw are too small, or the largest size is too large."""
    n = len(draws)
    sides = [found.beyond, found.beyond[draws.units > 0], found.beyond[draws.units < 0]]
    shares = (1.0, 0.5, 0.5)
    ends = [float(side.max(initial=0.0)) for side in sides]
    short = [n * math.log1p(-share * math.exp(-end)) for share, end in zip(shares, ends, strict=True)]
    long = math.log(n) - float(found.reached.max(initial=0.0))
    most = float((np.abs(draws.units) / draws.scales).max(initial=0.0))
    far = [float((side * draws.units / draws.scales).max(initial=0.0)) for side in (1, -1)]
    words = (
        f"no draw of {n:,} is beyond {most:.3g} scales: the tails are truncated",
        f"no draw of {n:,} is above {far[0]:.3g} scales: the upper tail is truncated",
        f"no draw of {n:,} is below -{far[1]:.3g} scales: the lower tail is truncated",
        f"one of {n:,} draws has an absolute value of {most:.3g} scales",
    )
    yield Look("tails", np.array(short[:1]), words.__getitem__)
    yield Look("one tail", np.array([*short[1:], long]), lambda at: words[at + 1])


def _holes(found: Intervals) -> Look:
    """Test of the longest gaps without a draw and without the size of a draw, on the scale of probability."""
    # Each of the n + 1 spacings between n uniform numbers exceeds g with probability (1 - g)^n, so their
    # number times this bounds the probability of a gap.
    n = found.low.size
    ends = [(found.low, found.high), (-np.expm1(-found.reached), -np.expm1(-found.beyond))]
    bounds, words = [], []
    for (low, high), what in zip(ends, ("draw", "size of a draw"), strict=True):
        order = np.argsort(low, kind="stable")
        starts, stops = np.append(low[order], 1.0), np.append(0.0, np.maximum.accumulate(high[order]))
        gaps = np.clip(starts - stops, 0.0, 1.0)
        at = int(np.argmax(gaps))
        bounds.append(math.log(n + 1.0) + (n * math.log1p(-gaps[at]) if gaps[at] < 1.0 else -math.inf))
        words.append(
            f"no {what} of {n:,} lies between the quantiles {stops[at]:.4f} and {starts[at]:.4f} of its "
            "distribution"
        )
    return Look("holes", np.array(bounds), words.__getitem__)


PAIR_RATE, COIN_RATE = 24.0, 8.0
"""Constant in exp(-rate s^2 / n), which bounds the probability that a sum of n products exceeds s."""
_STEPS, _RUNS = 16, 8
"""Distances within a run, and between runs at the same position."""


class Pairs(NamedTuple):
    """Draws and the earlier ones with which they are compared; both have shape (pairs,)."""

    words: str
    later: IntArray
    earlier: IntArray


def pairs_of(draws: Draws) -> list[Pairs]:
    """Pairs of draws at every distance that occurs."""
    n, every = len(draws), np.arange(len(draws))
    found = []
    for step in range(1, min(_STEPS, n - 1) + 1):
        later = every[step:][draws.runs[step:] == draws.runs[:-step]]
        found.append(Pairs(_before("the draw", step), later, later - step))
    table = np.full((int(draws.runs.max(initial=0)) + 1, len(draws.names)), -1)
    table[draws.runs, draws.places] = every
    for step in range(1, min(_RUNS, len(table) - 1) + 1):
        both = (table[step:] >= 0) & (table[:-step] >= 0)
        words = f"the draw in the same place of {_before('the run', step)}"
        found.append(Pairs(words, table[step:][both], table[:-step][both]))
    return [pair for pair in found if pair.later.size]


def _before(what: str, step: int) -> str:
    return f"{what} before" if step == 1 else f"{what} {step} before"


def lag_looks(draws: Draws, found: Intervals, pairs: list[Pairs]) -> Iterator[Look]:
    """Tests of draws and sizes against earlier draws, fixed values, coins, and outcomes that they mask."""
    entries = {"the draws": found.middle, "the sizes of the draws": found.size}
    if pairs:
        bounds = [_bound(one[p.later] * one[p.earlier], PAIR_RATE) for one in entries.values() for p in pairs]

        def words(at: int) -> str:
            kind, place = divmod(at, len(pairs))
            return f"{list(entries)[kind]} are associated with {pairs[place].words}"

        yield Look("lags", np.array(bounds), words)
    if draws.coins is not None:
        yield _coins(entries, draws.coins, draws.before)
    if draws.facts is not None and draws.facts.size:
        yield _facts(entries, draws.facts, draws.fact_names)
    if draws.own is not None:
        own = [_bound(one * draws.own, PAIR_RATE) for one in entries.values()]
        yield Look(
            "hidden outcomes",
            np.array(own),
            lambda at: f"{list(entries)[at]} are associated with the outcomes that they should hide",
        )


def _coins(entries: dict[str, FloatArray], coins: FloatArray, before: int) -> Look:
    """Tests against outcomes of the round itself and of neighbouring rounds."""
    rates = np.where(np.arange(coins.shape[1]) < before, PAIR_RATE, COIN_RATE)
    columns = [(what, one, place) for what, one in entries.items() for place in range(coins.shape[1])]
    bounds = []
    for _, one, place in columns:
        known = ~np.isnan(coins[:, place])
        bounds.append(_bound(one[known] * coins[known, place], float(rates[place])))

    def words(at: int) -> str:
        what, _, place = columns[at]
        distance = place - before + 1
        when = (
            "their own round"
            if distance == 0
            else f"{abs(distance)} rounds {'after' if distance > 0 else 'before'}"
        )
        return f"{what} are associated with the outcomes of {when}"

    return Look("outcomes", np.array(bounds), words)


def _facts(entries: dict[str, FloatArray], facts: FloatArray, names: Sequence[str]) -> Look:
    """Tests against values determined before the draws, which, unlike the draws, need not be centred."""
    columns = [(what, one, place) for what, one in entries.items() for place in range(facts.shape[1])]
    bounds = []
    for _, one, place in columns:
        known = ~np.isnan(facts[:, place])
        bounds.append(_bound(one[known] * facts[known, place], PAIR_RATE))
    return Look(
        "facts", np.array(bounds), lambda at: f"{columns[at][0]} are associated with {names[columns[at][2]]}"
    )


def _bound(products: FloatArray, rate: float) -> float:
    """Log of 2 exp(-rate S^2 / n)."""
    if not products.size:
        return 0.0
    return math.log(2.0) - rate * float(products.sum()) ** 2 / products.size


_SIGNS = {1: "", -1: " with the other sign"}


def repeat_looks(draws: Draws, found: Intervals, pairs: list[Pairs]) -> Iterator[Look]:
    """Tests for repeats of any earlier draw, of draws in the same or previous run, and of a certain draw."""
    scopes = {
        "": (_all_earlier, 0),
        " in its run": (_all_earlier, 1),
        " in the previous run": (_run_before, 1),
    }
    cases = [
        (words, sign, *scope(draws, sign, by_run))
        for words, (scope, by_run) in scopes.items()
        for sign in _SIGNS
    ]
    bounds = np.array([too_often(earlier >= 0, chances) for _, _, earlier, chances in cases])

    def words(at: int) -> str:
        scope, sign, earlier, chances = cases[at]
        hits = np.flatnonzero(earlier >= 0)
        return (
            f"{counted(hits.size, 'draw')} of {len(draws):,} occurred before{scope}{_SIGNS[sign]}, but "
            f"{float(chances.sum()):.2g} are expected: the first is {draws.name(int(hits[0]))}, as "
            f"{draws.name(int(earlier[hits[0]]))}"
        )

    yield Look("repeats", bounds, words)
    if pairs:
        yield _matched(draws, found, pairs)


def _all_earlier(draws: Draws, sign: int, by_run: int) -> tuple[IntArray, FloatArray]:
    """An earlier draw with this value, -1 if there is none, and its probability; shape (n,) each."""
    # Conditional on all earlier draws, the probability of a repetition is the sum of the probabilities of
    # their distinct values.
    runs = draws.runs * by_run
    order, starts = _keys(runs, draws.units)
    fresh = starts == np.arange(len(draws))
    own = starts if sign > 0 else _found(order, runs, draws.units, sign)
    begins = np.searchsorted(runs, runs)
    chances = np.zeros(len(draws))
    for scale, mine in _by_scale(draws):
        seen = np.append(0.0, np.cumsum(_probabilities(draws, scale) * fresh))
        chances[mine] = (seen[:-1] - seen[begins])[mine]
    earlier = np.where((own >= 0) & (own < np.arange(len(draws))), own, -1)
    return earlier, np.clip(chances, 0.0, 1.0)


def _run_before(draws: Draws, sign: int, by_run: int) -> tuple[IntArray, FloatArray]:
    """An equal draw in the previous run, -1 if there is none, and its probability; shape (n,) each."""
    order, starts = _keys(draws.runs, draws.units)
    fresh = starts == np.arange(len(draws))
    earlier = _found(order, draws.runs - 1, draws.units, sign)
    chances = np.zeros(len(draws))
    for scale, mine in _by_scale(draws):
        sums = np.append(0.0, np.bincount(draws.runs, _probabilities(draws, scale) * fresh))
        # The leading 0 shifts the sums by one, so each run gets those of the run before.
        chances[mine] = sums[draws.runs][mine]
    return earlier, np.clip(chances, 0.0, 1.0)


def _keys(runs: IntArray, units: IntArray) -> tuple[dict[str, IntArray], IntArray]:
    """Pairs of run and value in order, and the first occurrence of each draw's own pair, shape (n,)."""
    order = np.lexsort((np.arange(units.size), units, runs))
    run, unit = runs[order], units[order]
    new = np.r_[True, (run[1:] != run[:-1]) | (unit[1:] != unit[:-1])]
    first = order[np.flatnonzero(new)]
    own = np.empty(units.size, dtype=np.int64)
    own[order] = first[np.cumsum(new) - 1]
    return {"run": runs[first], "unit": units[first], "first": first}, own


def _found(keys: dict[str, IntArray], runs: IntArray, units: IntArray, sign: int) -> IntArray:
    """First occurrence of pairs of a run and a value or its negative, -1 if none; 0 has no negative."""
    _, values = np.unique(np.concatenate([keys["unit"], sign * units]), return_inverse=True)
    known, asked = values[: keys["unit"].size], values[keys["unit"].size :]
    width = int(values.max()) + 1
    codes, wanted = keys["run"] * width + known, runs * width + asked
    place = np.minimum(np.searchsorted(codes, wanted), codes.size - 1)
    there = (codes[place] == wanted) & ((sign > 0) | (units != 0))
    return np.asarray(np.where(there, keys["first"][place], -1))


def _by_scale(draws: Draws) -> Iterator[tuple[float, BoolArray]]:
    for scale in np.unique(draws.scales).tolist():
        yield scale, draws.scales == scale


def _probabilities(draws: Draws, scale: float) -> FloatArray:
    """The probability of each value given its scale, shape (n,)."""
    alike = Draws(draws.units, np.full(len(draws), scale), draws.runs, draws.places, (), draws.law)
    return probability(alike, draws.units.astype(np.float64))


def _matched(draws: Draws, found: Intervals, pairs: list[Pairs]) -> Look:
    """Test for draws as close to a certain earlier draw, by their distributions, as equal draws would be."""
    cases = [(pair, sign) for pair in pairs for sign in _SIGNS]
    bounds = np.array([too_often(*_close(found, pair, sign)) for pair, sign in cases])

    def words(at: int) -> str:
        pair, sign = cases[at]
        hits, _ = _close(found, pair, sign)
        place = int(pair.later[np.flatnonzero(hits)[0]])
        return (
            f"{counted(int(hits.sum()), 'draw')} of {hits.size:,} repeat {pair.words}{_SIGNS[sign]}, in "
            f"units of their scales: the first is {draws.name(place)}"
        )

    return Look("repeats at a distance", bounds, words)


def _close(found: Intervals, pair: Pairs, sign: int) -> tuple[BoolArray, FloatArray]:
    """Whether, and with what probability, a later draw is close to the earlier one."""
    reach = found.most[pair.later] + found.most[pair.earlier]
    apart = np.abs(found.middle[pair.later] - sign * found.middle[pair.earlier])
    return apart <= reach, np.minimum(3.0 * reach, 1.0)


_PRIMES = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61)
_GRIDS = (20, 40)
"""Exponents in 2^-20 and 2^-40, the units of rewards and of products."""
_LEAST = 2.5
"""The smallest non-integer step of a lattice."""


def lattice_looks(draws: Draws, found: Intervals) -> Iterator[Look]:
    """Tests of integer steps with any remainder, decimal steps, shares of the scale, and common divisors."""
    largest = 4.0 * float(draws.scales.max(initial=1.0))
    steps = [2**power for power in range(1, 54)] + [*_PRIMES] + [10**power for power in range(1, 16)]
    whole = [step for step in steps if step <= largest]
    if whole:
        bounds = np.array([_remainder_bound(draws, step) for step in whole])
        yield Look(
            "lattices", bounds, lambda at: f"the draws are all multiples of {whole[at]:,}, up to a remainder"
        )
    decimals = {
        f"10^-{place} of 2^{grid} units": 2.0**grid / 10.0**place for grid in _GRIDS for place in range(1, 13)
    }
    shares = {f"10^-{place} of their scale": 10.0**-place for place in range(1, 13)}
    shares |= {f"2^-{place} of their scale": 2.0**-place for place in range(1, 41)}
    parts = {words: np.full(len(draws), step) for words, step in decimals.items()}
    parts |= {words: draws.scales * share for words, share in shares.items()}
    kept = {
        words: step for words, step in parts.items() if (step >= _LEAST).all() and (step <= largest).all()
    }
    if kept:
        bounds = np.array([_multiple_bound(draws, found, step) for step in kept.values()])
        yield Look("decimals", bounds, lambda at: f"the draws are all multiples of {list(kept)[at]}")
    yield _divisor(draws)


def _near_chances(found: Intervals, steps: FloatArray) -> FloatArray:
    """Upper bound on the probability of an integer less than 1/2 from a multiple of a step, shape (n,)."""
    # Such numbers are at least `steps` - 1 apart. For a distribution that decreases on both sides of 0, the
    # sum over them, except 0 and the first on each side, is at most 1 over that distance.
    return np.asarray(np.minimum(3.0 * found.most + 1.0 / (steps - 1.0), 1.0))


def _remainder_bound(draws: Draws, step: int) -> float:
    """Log of a bound on the probability of remainders this unequal; half of it is for remainder 0."""
    chances = multiple_probability(draws, step)
    remainders, counts = np.unique(draws.units % step, return_counts=True)
    at_zero = np.array([float(counts[remainders == 0].sum())])
    others = counts[remainders != 0].astype(np.float64)
    logs = []
    for one in ODDS:
        logs.append(math.log(0.5) + float(log_products(one, at_zero, chances)[0]))
        if others.size:
            each = log_mean(log_products(one, others, chances))
            logs.append(math.log(0.5 * others.size / (step - 1)) + each)
    return -(log_mean(np.array(logs)) + math.log(len(logs) / ODDS.size))


def _multiple_bound(draws: Draws, found: Intervals, steps: FloatArray) -> float:
    """Log of a bound on the probability of this many draws near multiples of steps."""
    apart = np.abs(draws.units - steps * np.rint(draws.units / steps))
    return too_often(apart < 0.5, _near_chances(found, steps))


def _divisor(draws: Draws) -> Look:
    """A common divisor d of all draws."""
    # The values 1 / (d (d - 1)) add up to 1 over all d > 1, so the sum of 1 / (d (d - 1)) over common
    # divisors d, each divided by its probability, has mean at most 1: Markov's inequality gives the bound.
    divisor = int(np.gcd.reduce(draws.units)) if len(draws) else 1
    bound = 0.0
    if divisor > 1:
        chances = np.log(multiple_probability(draws, divisor)).sum()
        bound = min(0.0, math.log(divisor) + math.log(divisor - 1.0) + float(chances))
    return Look(
        "divisor", np.array([bound]), lambda _: f"all {len(draws):,} draws are multiples of {divisor:,}"
    )


class NoiseTest(NamedTuple):
    """One kind of test for some draws: number of single tests, log of their smallest bound, and a finding.

    The log bound applies to all single tests of the kind together, and is at most 0.
    """

    kind: str
    tests: int
    log_bound: float
    finding: str


def draw_looks(draws: Draws) -> Iterator[Look]:
    """Every kind of test."""
    if len(draws):
        found, pairs = intervals(draws), pairs_of(draws)
        yield from shape_looks(draws, found)
        yield from lattice_looks(draws, found)
        yield from repeat_looks(draws, found, pairs)
        yield from lag_looks(draws, found, pairs)


def noise_tests(draws: Draws, alarm: float = FALSE_ALARM) -> list[NoiseTest]:
    """Every kind of test, with a joint false-alarm probability of at most `alarm`."""
    looks = list(draw_looks(draws))
    return [
        NoiseTest(look.kind, look.log_bounds.size, _joint(look), look.finding(limit))
        for look, limit in zip(looks, limits(looks, alarm), strict=True)
    ]


def _joint(look: Look) -> float:
    """Log of the bound for any of the single tests."""
    return min(0.0, float(look.log_bounds.min(initial=0.0)) + float(np.log(max(look.log_bounds.size, 1))))


def draw_findings(parts: Sequence[tuple[str, Draws]], alarm: float = FALSE_ALARM) -> list[str]:
    """Problems with draws of several kinds, in words, at a joint level of `alarm`."""
    findings: dict[str, str] = {}
    for words, draws in parts:
        for test in noise_tests(draws, alarm / len(parts)):
            if test.finding and test.kind not in findings:
                findings[test.kind] = f"{test.finding} [{words}]"
    return list(findings.values())
