"""Whether draws have their stated law, and go with nothing that came before.

Sums of products of two entries, of which the later one is centred given all that came before, are
sub-Gaussian: a uniform variable on an interval of length 1 has the proxy 1/12, a fair coin of values -1/2 and
1/2 the proxy 1/4, and the earlier one, at most 1/2 in size, multiplies the proxy by at most 1/4.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from adaptinf.privacy.drawn.draws import Draws, Intervals, Look, counted, too_often
from adaptinf.typing import FloatArray, IntArray

_TINY = 1e-300


def shape_looks(draws: Draws, found: Intervals) -> Iterator[Look]:
    """All draws together; law and scale by each stated scale as well."""
    scales = np.unique(draws.scales)
    groups = [np.ones(len(draws), dtype=np.bool_)]
    groups += [draws.scales == scale for scale in scales] if scales.size > 1 else []
    about = ["the draws", *(f"the draws of scale {scale:,.6g}" for scale in scales)]
    laws = np.array([law_bound(found.low[mine], found.high[mine]) for mine in groups])
    yield Look("law", laws, lambda at: f"{about[at]} have not the law that is stated")
    sums = np.array([scale_bounds(found.reached[mine], found.beyond[mine]) for mine in groups])

    def scaled(at: int) -> str:
        way = "larger" if at % 2 else "smaller"
        return f"the sizes of {about[at // 2]} are {way} than their stated scale makes them"

    yield Look("scale", sums.ravel(), scaled)
    yield from _tails(draws, found)
    yield _holes(found)
    zeros = draws.units == 0
    few = f"{float(found.most.sum()):.2g}"
    words = f"{counted(int(zeros.sum()), 'draw')} of {len(draws):,} are 0: {few} are to be"
    yield Look("zeros", np.array([too_often(zeros, found.most)]), lambda _: words)


def law_bound(low: FloatArray, high: FloatArray) -> float:
    """Log of 2 exp(-2 n D^2), D at most the distance of uniform numbers in these intervals from their law.

    Massart, P. (1990). The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality. Annals of Probability
    18.
    """
    n = low.size
    if n == 0:
        return 0.0
    steps = np.arange(n + 1) / n
    above, below = steps[1:] - np.sort(high), np.sort(low) - steps[:-1]
    distance = max(float(above.max()), float(below.max()), 0.0)
    return math.log(2.0) - 2.0 * n * distance**2


def scale_bounds(reached: FloatArray, beyond: FloatArray) -> tuple[float, float]:
    """Logs of the chances of a sum of -log of the chances of sizes so small, and so large: a gamma law."""
    n = reached.size
    if n == 0:
        return 0.0, 0.0
    low, high = float(beyond.sum()), float(reached.sum())
    return _log_gamma_tail(n, low, upper=False), _log_gamma_tail(n, high, upper=True)


def _log_gamma_tail(n: int, total: float, upper: bool) -> float:
    """Log of the chance that a gamma variable of shape n lies beyond; Chernoff's bound in the far tail."""
    exact = float((special.gammaincc if upper else special.gammainc)(n, total))
    if exact > _TINY:
        return math.log(exact)
    if total <= 0.0:
        return -math.inf
    return n - total + n * math.log(total / n)


def _tails(draws: Draws, found: Intervals) -> Iterator[Look]:
    """The largest size, draw and negative draw, each too small; and the largest size too large."""
    n = len(draws)
    sides = [found.beyond, found.beyond[draws.units > 0], found.beyond[draws.units < 0]]
    shares = (1.0, 0.5, 0.5)
    ends = [float(side.max(initial=0.0)) for side in sides]
    short = [n * math.log1p(-share * math.exp(-end)) for share, end in zip(shares, ends, strict=True)]
    long = math.log(n) - float(found.reached.max(initial=0.0))
    most = float((np.abs(draws.units) / draws.scales).max(initial=0.0))
    far = [float((side * draws.units / draws.scales).max(initial=0.0)) for side in (1, -1)]
    words = (
        f"no draw of {n:,} is beyond {most:.3g} scales: the tails are cut",
        f"no draw of {n:,} is above {far[0]:.3g} scales: the upper tail is cut",
        f"no draw of {n:,} is below -{far[1]:.3g} scales: the lower tail is cut",
        f"a draw of {n:,} is {most:.3g} scales large",
    )
    yield Look("tails", np.array(short[:1]), words.__getitem__)
    yield Look("one tail", np.array([*short[1:], long]), lambda at: words[at + 1])


def _holes(found: Intervals) -> Look:
    """The longest stretch without a draw, of the distribution function and of that of sizes.

    Each of the n + 1 spacings of n uniform numbers exceeds g with probability (1 - g)^n.
    """
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
            f"no {what} of {n:,} lies between the quantiles {stops[at]:.4f} and {starts[at]:.4f} of its law"
        )
    return Look("holes", np.array(bounds), words.__getitem__)


PAIR_RATE, COIN_RATE = 24.0, 8.0
"""Of exp(-rate s^2 / n), the bound of the chance that a sum of n products exceeds s, one-sided."""
_STEPS, _RUNS = 16, 8
"""Distances within a run, and between runs at one place."""


class Pairs(NamedTuple):
    """Draws and earlier ones that they are held against; later, earlier (pairs,)."""

    words: str
    later: IntArray
    earlier: IntArray


def pairs_of(draws: Draws) -> list[Pairs]:
    """All distances at which there are any pairs."""
    n, every = len(draws), np.arange(len(draws))
    found = []
    for step in range(1, min(_STEPS, n - 1) + 1):
        later = every[step:][draws.runs[step:] == draws.runs[:-step]]
        found.append(Pairs(_before("the draw", step), later, later - step))
    table = np.full((int(draws.runs.max(initial=0)) + 1, len(draws.names)), -1)
    table[draws.runs, draws.places] = every
    for step in range(1, min(_RUNS, len(table) - 1) + 1):
        both = (table[step:] >= 0) & (table[:-step] >= 0)
        words = f"the draw at their place of {_before('the run', step)}"
        found.append(Pairs(words, table[step:][both], table[:-step][both]))
    return [pair for pair in found if pair.later.size]


def _before(what: str, step: int) -> str:
    return f"{what} before" if step == 1 else f"{what} {step} before"


def lag_looks(draws: Draws, found: Intervals, pairs: list[Pairs]) -> Iterator[Look]:
    """Draws and sizes against earlier ones, what was settled, outcomes of coins, and those that they hide."""
    entries = {"the draws": found.middle, "the sizes of the draws": found.size}
    if pairs:
        bounds = [_bound(one[p.later] * one[p.earlier], PAIR_RATE) for one in entries.values() for p in pairs]

        def words(at: int) -> str:
            kind, place = divmod(at, len(pairs))
            return f"{list(entries)[kind]} go with {pairs[place].words}"

        yield Look("lags", np.array(bounds), words)
    if draws.coins is not None:
        yield _coins(entries, draws.coins, draws.before)
    if draws.facts is not None and draws.facts.size:
        yield _facts(entries, draws.facts, draws.fact_names)
    if draws.own is not None:
        own = [_bound(one * draws.own, PAIR_RATE) for one in entries.values()]
        yield Look(
            "hidden outcomes", np.array(own), lambda at: f"{list(entries)[at]} go with the outcomes they hide"
        )


def _coins(entries: dict[str, FloatArray], coins: FloatArray, before: int) -> Look:
    """Outcomes of the round itself and of others about it."""
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
        return f"{what} go with the outcomes of {when}"

    return Look("outcomes", np.array(bounds), words)


def _facts(entries: dict[str, FloatArray], facts: FloatArray, names: Sequence[str]) -> Look:
    """What was settled before: it need not be centred, as the draws are."""
    columns = [(what, one, place) for what, one in entries.items() for place in range(facts.shape[1])]
    bounds = []
    for _, one, place in columns:
        known = ~np.isnan(facts[:, place])
        bounds.append(_bound(one[known] * facts[known, place], PAIR_RATE))
    return Look("facts", np.array(bounds), lambda at: f"{columns[at][0]} go with {names[columns[at][2]]}")


def _bound(products: FloatArray, rate: float) -> float:
    """Log of 2 exp(-rate S^2 / n)."""
    if not products.size:
        return 0.0
    return math.log(2.0) - rate * float(products.sum()) ** 2 / products.size
