"""A private stopping rule on data, with noise that may be released."""

from __future__ import annotations

import numpy as np

from adaptinf.audit.privacy.designs import Neighbours
from adaptinf.audit.privacy.designs.stopping_audits import stopping_noise, stopping_outputs
from adaptinf.audit.privacy.nodes import noise_findings
from adaptinf.designs.stopping import kernel
from adaptinf.designs.stopping.rules import DPNAS
from adaptinf.privacy.drawn.draws import Draws
from adaptinf.privacy.drawn.findings import draw_findings
from adaptinf.privacy.release import GRID_UNITS, to_grid
from adaptinf.simulation.transcripts import Transcripts


def live_stop_findings(rule: DPNAS, pair: Neighbours, runs: int, alarm: float) -> list[str]:
    """What is wrong with the stopping time and the estimate, in words, at `alarm` for all tests together."""
    outputs = stopping_outputs(rule, pair, live=True)
    seen = outputs.transcripts(0, runs, np.random.default_rng(0))
    words = f"{runs:,} runs by the release backend"
    told = noise_findings([(words, stopping_noise(rule, pair, float(rule.epsilon))(seen))], 0.5 * alarm)
    draws = _estimates(rule, pair, seen)
    return told + (draw_findings([(words, draws)], 0.5 * alarm) if len(draws) else [])


def _estimates(rule: DPNAS, pair: Neighbours, seen: Transcripts) -> Draws:
    """The noise of the estimates that came, in whole units."""
    bound, scale = float(rule.bound), 4.0 * GRID_UNITS / float(rule.epsilon)
    samples = pair.first.tables(pair.horizon).tableau[: pair.horizon, 0]
    sums = np.cumsum(to_grid(np.clip(samples, -bound, bound), bound))
    stopped = seen.outcomes[:, kernel.STOPPED] > 0.0
    estimate, read = seen.outcomes[stopped, kernel.ESTIMATE], seen.outcomes[stopped, kernel.READ]
    units = np.rint(estimate * read / bound * GRID_UNITS).astype(np.int64) - sums[read.astype(np.int64) - 1]
    every = np.arange(units.size)
    return Draws(units, np.full(units.size, scale), every, np.zeros_like(every), ["the estimate"])
