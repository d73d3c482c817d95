"""How long a fit takes with a check and without it, by turns, on clean logs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from violation_fits import claims_by_name
from violation_kinds import Kind

import adaptinf as ai
from adaptinf.claims import Claim
from adaptinf.log import AdaptiveLog, LogArrays

SEED, PAIRS, SECONDS = 20261128, 15, 20.0
"""Pairs of fits, with and without a check, and how long to go on with them at most, after the third."""
ALL_CHECKS = "all together"


@dataclass(frozen=True)
class Timed:
    """Median processor seconds of a fit with a check and without it."""

    check: str
    rounds: int
    model: str
    pairs: int
    with_it: float
    without: float

    @property
    def added(self) -> float:
        return self.with_it / self.without - 1.0


def arrays(rounds: int) -> LogArrays:
    """Two arms whose propensities move from round to round, and normal rewards."""
    rng = np.random.default_rng([SEED, rounds])
    share = rng.uniform(0.2, 0.8, rounds)
    every = np.stack([1.0 - share, share], axis=1)
    action = (rng.random(rounds) < share).astype(np.int64)
    reward = rng.standard_normal(rounds)
    return LogArrays(
        action=action, reward=reward, propensity=every[np.arange(rounds), action], propensities=every
    )


def seconds(data: LogArrays, model: str) -> float:
    """Of one fit to a log that nothing has been asked of."""
    log = AdaptiveLog.from_arrays(data, arms=("A", "B"))
    asked = {"treatment": "B", "control": "A"} if model == "Contrast" else {}
    began = time.process_time()
    getattr(ai, model)(log, **asked).fit()
    return time.process_time() - began


@contextmanager
def silent(claims: list[Claim]) -> Iterator[None]:
    """Nobody asks whether these claims are so."""
    asks = [claim.ask for claim in claims]
    for claim in claims:
        object.__setattr__(claim, "ask", lambda facts: None)
    try:
        yield
    finally:
        for claim, ask in zip(claims, asks, strict=True):
            object.__setattr__(claim, "ask", ask)


def timed(kinds: list[Kind], rounds: int) -> list[Timed]:
    """Each check that the list names, and all together; means and a contrast."""
    data, every = arrays(rounds), claims_by_name()
    names = sorted({name for kind in kinds for name in kind.names})
    found = list[Timed]()
    for model in ("ArmMeans", "Contrast"):
        seconds(data, model)  # the first fit loads what is used
        for check in (*names, ALL_CHECKS):
            claims = [every[name] for name in (names if check == ALL_CHECKS else [check])]
            found.append(by_turns(data, model, check, claims, rounds))
    return found


def by_turns(data: LogArrays, model: str, check: str, claims: list[Claim], rounds: int) -> Timed:
    """Fits with and without claims, one after the other."""
    with_it, without = list[float](), list[float]()
    began = time.monotonic()
    while len(with_it) < PAIRS and (len(with_it) < 3 or time.monotonic() - began < SECONDS):
        with_it.append(seconds(data, model))
        with silent(claims):
            without.append(seconds(data, model))
    medians = statistics.median(with_it), statistics.median(without)
    return Timed(check, rounds, model, len(with_it), *medians)
