"""Whether draws come again, or come again with the other sign, more often than chance lets them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from adaptinf.privacy.drawn.draws import Draws, Intervals, probability
from adaptinf.privacy.drawn.lags import Pairs
from adaptinf.privacy.drawn.looks import Look, counted, too_often
from adaptinf.typing import BoolArray, FloatArray, IntArray

_SIGNS = {1: "", -1: " with the other sign"}


def repeat_looks(draws: Draws, found: Intervals, pairs: list[Pairs]) -> Iterator[Look]:
    """Draws against all earlier ones, against those of their run and of the run before, and against one."""
    scopes = {"": (_all_earlier, 0), " in its run": (_all_earlier, 1), " in the run before": (_run_before, 1)}
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
            f"{counted(hits.size, 'draw')} of {len(draws):,} came before{scope}{_SIGNS[sign]}, "
            f"{float(chances.sum()):.2g} are to be: the first is {draws.name(int(hits[0]))}, as "
            f"{draws.name(int(earlier[hits[0]]))}"
        )

    yield Look("repeats", bounds, words)
    if pairs:
        yield _matched(draws, found, pairs)


def _all_earlier(draws: Draws, sign: int, by_run: int) -> tuple[IntArray, FloatArray]:
    """An earlier draw of this value, -1 where there is none, and the chance of one; shape (n,) each.

    A chance is given all earlier draws: it is the sum of the probabilities of their values, each once.
    """
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
    """The same with the draws of the run before alone."""
    order, starts = _keys(draws.runs, draws.units)
    fresh = starts == np.arange(len(draws))
    earlier = _found(order, draws.runs - 1, draws.units, sign)
    chances = np.zeros(len(draws))
    for scale, mine in _by_scale(draws):
        sums = np.append(0.0, np.bincount(draws.runs, _probabilities(draws, scale) * fresh))
        chances[mine] = sums[draws.runs][mine]  # of the run before, as there is a 0 in front
    return earlier, np.clip(chances, 0.0, 1.0)


def _keys(runs: IntArray, units: IntArray) -> tuple[dict[str, IntArray], IntArray]:
    """Pairs of run and value in their order, and where each draw's own pair comes first, shape (n,)."""
    order = np.lexsort((np.arange(units.size), units, runs))
    run, unit = runs[order], units[order]
    new = np.r_[True, (run[1:] != run[:-1]) | (unit[1:] != unit[:-1])]
    first = order[np.flatnonzero(new)]
    own = np.empty(units.size, dtype=np.int64)
    own[order] = first[np.cumsum(new) - 1]
    return {"run": runs[first], "unit": units[first], "first": first}, own


def _found(keys: dict[str, IntArray], runs: IntArray, units: IntArray, sign: int) -> IntArray:
    """Where pairs of run and value, or its negative, were drawn first, -1 where never; 0 has no negative."""
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
    """The probability of each value at one scale, shape (n,)."""
    alike = Draws(draws.units, np.full(len(draws), scale), draws.runs, draws.places, (), draws.law)
    return probability(alike, draws.units.astype(np.float64))


def _matched(draws: Draws, found: Intervals, pairs: list[Pairs]) -> Look:
    """Draws that lie as close to a certain earlier one, by their laws, as equal ones of these scales do."""
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
    """Whether, and with which chance, a later draw is close to the earlier one."""
    reach = found.most[pair.later] + found.most[pair.earlier]
    apart = np.abs(found.middle[pair.later] - sign * found.middle[pair.earlier])
    return apart <= reach, np.minimum(3.0 * reach, 1.0)
