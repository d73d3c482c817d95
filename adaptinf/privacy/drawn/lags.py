"""Whether draws go with earlier draws, outcomes, or what was public before, at fixed distances.

Sums of products of two entries, of which the later one is centred given all that came before, are
sub-Gaussian: a uniform variable on an interval of length 1 has the proxy 1/12, a fair coin of values -1/2 and
1/2 the proxy 1/4, and the earlier one, at most 1/2 in size, multiplies the proxy by at most 1/4.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from adaptinf.privacy.drawn.draws import Draws, Intervals
from adaptinf.privacy.drawn.looks import Look
from adaptinf.typing import FloatArray, IntArray

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
