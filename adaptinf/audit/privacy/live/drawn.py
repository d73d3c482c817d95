"""The whole numbers of noise that live runs released, in the order in which they were drawn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from adaptinf.audit.privacy.designs import NodeNoise
from adaptinf.audit.privacy.designs.audited_trial import FAIR, NodeUnits
from adaptinf.privacy.drawn.draws import Draws
from adaptinf.simulation.transcripts import Transcripts
from adaptinf.typing import FloatArray, IntArray

_ABOUT = 8
"""Outcomes before and after a release that its noise is held against."""
_RECENT = 3
"""Rounds up to that of a release whose arms and kinds its noise is held against."""
_EXACT, _ULPS = 2.0**52, 8.0
_OFF = 2.0**-6
"""Of a unit: a mean is rounded, and its noise is found to far less than this."""


def drawn_noise(
    noise: NodeNoise, peak: float, outcomes: FloatArray | None, seen: Transcripts
) -> tuple[Draws, list[str]]:
    """Noise in units, run after run, and what is wrong with these being whole numbers.

    Shapes: outcomes (runs, rounds) by fair coins, NaN where there is none.

    Sums whose largest, `peak`, has more bits than a float are known to fewer places: their units are larger.
    """
    assert noise.units is not None
    grid, problems = noise.units.grid, []
    while peak * grid >= _EXACT:
        grid *= 0.5
    run, node, step = _in_order(noise.units)
    exact = noise.units.noise[run, node] * grid
    whole = np.rint(exact)
    off = int((np.abs(exact - whole) > _OFF).sum())
    if off and grid == noise.units.grid:
        problems.append(f"{off:,} of {exact.size:,} noisy numbers are not on the grid of 1/{grid:,.0f}")
    coins = None if outcomes is None else _coins(outcomes, run, step)
    facts, fact_names = _facts(seen, run, step)
    draws = Draws(
        whole.astype(np.int64),
        noise.units.scales[node] * grid,
        np.unique(run, return_inverse=True)[1],
        node,
        noise.names,
        coins=coins,
        before=_ABOUT + 1,
        facts=facts,
        fact_names=fact_names,
        own=None if outcomes is None else 0.5 * np.sign(noise.units.own[run, node]),
    )
    return draws, problems


def other_noise(parts: Sequence[NodeUnits], place: int, drawn: IntArray, peak: float) -> bool:
    """Whether any noise in a run's releases is not in its journal, shape (draws,), up to rounding."""
    if not drawn.size:
        return any(np.isfinite(part.noise[place]).any() for part in parts)
    known = np.sort(drawn)
    for part in parts:
        found = part.noise[place][np.isfinite(part.noise[place])] * part.grid
        above = np.searchsorted(known, found)
        near = [known[np.clip(above - back, 0, known.size - 1)] for back in (0, 1)]
        rounding = max(0.5, _ULPS * peak * part.grid / _EXACT)
        if (np.minimum(*(np.abs(found - one) for one in near)) > rounding).any():
            return True
    return False


def _in_order(units: NodeUnits) -> tuple[IntArray, IntArray, IntArray]:
    """Runs, nodes and rounds of all numbers that there are, by run and then by round."""
    run, node = np.nonzero(np.isfinite(units.noise))
    step = units.steps[run, node]
    order = np.lexsort((node, step, run))
    return run[order], node[order], step[order]


def _coins(outcomes: FloatArray, run: IntArray, step: IntArray) -> FloatArray:
    """Outcomes less 1/2 of the rounds about each number, NaN where there is none."""
    rounds = step[:, None] + np.arange(-_ABOUT, _ABOUT + 1)
    inside = (rounds >= 0) & (rounds < outcomes.shape[1])
    found = outcomes[run[:, None], np.clip(rounds, 0, outcomes.shape[1] - 1)]
    return np.where(inside, found - FAIR, np.nan)


def _facts(seen: Transcripts, run: IntArray, step: IntArray) -> tuple[FloatArray, list[str]]:
    """Arms and kinds of the latest rounds before each number, which were settled before it was drawn."""
    columns, names = [], []
    for word, table in (("arm", seen.actions), ("kind", seen.statuses)):
        codes = np.unique(table)[1:].tolist()  # the first code is what the others leave
        for back in range(_RECENT):
            rounds = step - back
            found = table[run, np.maximum(rounds, 0)]
            when = "their own round" if back == 0 else f"{back} round{'s' * (back > 1)} before"
            for code in codes:
                columns.append(np.where(rounds >= 0, (found == code) - FAIR, np.nan))
                names.append(f"the {word} of {when}, number {code}")
    return np.stack(columns, axis=1) if columns else np.zeros((run.size, 0)), names
