"""How long a fit takes with a check and without it, by turns, on clean logs.

Checks are properties of facts: those that assumptions name, and those of cautions that the list names.
Without a check means that its property finds nothing, and does not look.
"""

from __future__ import annotations

import inspect
import statistics
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from violation_fits import claims_by_name
from violation_kinds import Kind

import adaptinf as ai
from adaptinf.log import AdaptiveLog, LogArrays

SEED, PAIRS, SECONDS = 20261128, 16, 20.0
"""Pairs of fits, with and without a check, and how long to go on with them at most, after the fourth."""
ALL_CHECKS, NO_CHECK = "all together", "none: the same fit twice"
"""The second says how much of a difference is noise."""


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


def checks(kinds: Collection[Kind]) -> list[str]:
    """Names of the properties that look at a log."""
    every = claims_by_name()
    named = {every[name].fact for kind in kinds for name in kind.names}
    found = {path.rpartition(".")[2] for path in {claim.check for claim in every.values()} | named if path}
    return sorted(name for name in found if homes(name))


def homes(name: str) -> list[type]:
    """Classes of the library that define a property of this name."""
    modules = [module for place, module in sys.modules.items() if place.startswith("adaptinf.")]
    classes = {one for module in modules for one in vars(module).values() if inspect.isclass(one)}
    return [one for one in classes if isinstance(vars(one).get(name), property | cached_property)]


@contextmanager
def silent(names: Collection[str]) -> Iterator[None]:
    """Properties of these names find nothing."""
    kept: list[tuple[type, str, Any]] = [
        (one, name, vars(one)[name]) for name in names for one in homes(name)
    ]
    for one, name, _ in kept:
        setattr(one, name, property(lambda facts: None))
    try:
        yield
    finally:
        for one, name, own in kept:
            setattr(one, name, own)


def timed(kinds: Collection[Kind], rounds: int) -> list[Timed]:
    """Each check, and all together; means and a contrast."""
    data, found = arrays(rounds), list[Timed]()
    for model in ("ArmMeans", "Contrast"):
        seconds(data, model)  # the first fit loads what is used
        names = checks(kinds)
        silenced = {name: [name] for name in names} | {ALL_CHECKS: names, NO_CHECK: []}
        found += [by_turns(data, model, check, asked, rounds) for check, asked in silenced.items()]
    return found


def by_turns(data: LogArrays, model: str, check: str, names: Collection[str], rounds: int) -> Timed:
    """Fits with and without checks, one after the other.

    Memory that one fit frees may serve the next, so large fits are slow and quick by turns: each comes first
    in every other pair, and the number of pairs is even.
    """
    taken: dict[bool, list[float]] = {True: [], False: []}
    began = time.monotonic()
    pair = 0
    while pair < PAIRS and (pair < 4 or pair % 2 or time.monotonic() - began < SECONDS):
        for with_it in (True, False) if pair % 2 else (False, True):
            with silent([] if with_it else names):
                taken[with_it].append(seconds(data, model))
        pair += 1
    return Timed(check, rounds, model, pair, statistics.median(taken[True]), statistics.median(taken[False]))
