"""All tests of draws, and what they find."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from adaptinf.privacy.drawn.draws import Draws, intervals
from adaptinf.privacy.drawn.lags import lag_looks, pairs_of
from adaptinf.privacy.drawn.lattices import lattice_looks
from adaptinf.privacy.drawn.looks import FALSE_ALARM, Look, limits
from adaptinf.privacy.drawn.repeats import repeat_looks
from adaptinf.privacy.drawn.shape import shape_looks


class NoiseTest(NamedTuple):
    """One kind of test of some draws: how many single tests, the log of their smallest bound, and a finding.

    The bound is that of all single tests of the kind together, at most 0.
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
    """Every kind of test, which all together raise a false alarm with probability `alarm` at most."""
    looks = list(draw_looks(draws))
    return [
        NoiseTest(look.kind, look.log_bounds.size, _joint(look), look.finding(limit))
        for look, limit in zip(looks, limits(looks, alarm), strict=True)
    ]


def _joint(look: Look) -> float:
    """Log of the bound of any of the single tests."""
    return min(0.0, float(look.log_bounds.min(initial=0.0)) + float(np.log(max(look.log_bounds.size, 1))))


def draw_findings(parts: Sequence[tuple[str, Draws]], alarm: float = FALSE_ALARM) -> list[str]:
    """What is wrong with draws of several kinds, in words, at `alarm` for all together."""
    findings: dict[str, str] = {}
    for words, draws in parts:
        for test in noise_tests(draws, alarm / len(parts)):
            if test.finding and test.kind not in findings:
                findings[test.kind] = f"{test.finding} [{words}]"
    return list(findings.values())
