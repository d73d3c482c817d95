"""What is fitted to logs with planted violations and to clean ones, and what the tables say of them."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from default_counts import Key, Tallies, Tally
from default_logs import Array, arm_name
from scipy.special import ndtri
from violation_kinds import CHOSEN, EVERY, NONE, ROWS, SUMS, Kind, arguments
from violation_logs import design_of, frames, names_of, summed, truth

import adaptinf as ai
from adaptinf import claims
from adaptinf.claims import Claim
from adaptinf.log.validation import nested_options

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from claims_said import says, within

ALPHA, LEVEL = 0.05, 0.003
"""Of intervals; of a check, as the share of clean logs in which it may caution."""
PLANTED, TWIN, CLEAN, LIT, ALL = "planted", "twin", "clean", "lit", "all fits"
FROM_BATCHES = "from batches"
LETTERS = 60
"""Of a caution that no claim says, by which it is counted."""
SEQUENCES = {"0/1": "stationary=True", "normal": "method=asymptotic; stationary=True"}
"""Options of sequences, by the rewards."""


@dataclass
class Named(Tally):
    """Also the logs in which the claim that has to name the violation is said, in cautions or a refusal."""

    named: int = 0
    caught: int = 0
    """Logs in which it is said, or that are refused."""
    possible: int = 0
    """Logs in which a test for the very violation rejects at the level of a check, if there is one."""


@dataclass(frozen=True)
class Fit:
    """A fit to clean logs: what the log is told, and what is fitted."""

    name: str
    model: str
    options: str = ""
    told: str = EVERY
    stated: str = ""
    door: str = ROWS


# Logs


def log_of(kind: Kind, frame: pd.DataFrame, told: str, stated: dict[str, Any], door: str) -> Any:
    """The log, or the sums, as a user would make them of the file."""
    ranged = {"reward_range": (0.0, 1.0)} if kind.binary else {}
    if door == SUMS:
        propensity = {} if told == NONE else {"propensity": "p"}
        columns = {"n": "n", "sum": "sum", "sum_squares": "squares", "sum_cubes": "cubes", "nonzero": "other"}
        return ai.Sums(frame, batch="day", arm="arm", **columns, **propensity, **ranged, **stated)
    known: dict[str, Any] = {}
    if told == EVERY and names_of(kind)[0] in frame:
        known = {"propensities": {arm_name(k): name for k, name in enumerate(names_of(kind))}}
    elif told in (EVERY, CHOSEN):
        known = {"propensity": "p"}
    elif told == FROM_BATCHES:
        known = {"propensity": "p", "propensities": FROM_BATCHES}
    return ai.AdaptiveLog(frame, action="arm", reward="reward", **known, **ranged, **nested_options(stated))


def stated_of(kind: Kind, planted: bool) -> dict[str, Any]:
    """What the log is told; the twin of a stop is not told of one."""
    found = arguments(kind.stated)
    return found if planted else {name: value for name, value in found.items() if name != "stopping"}


def fit(log: Any, kind: Kind, model: str, options: dict[str, Any]) -> Any:
    """What is asked of a log, by the default but for some options."""
    if model == "Contrast":
        pair = {"treatment": arm_name(kind.arms - 1), "control": arm_name(0)}
        return ai.Contrast(log, **pair).fit(**options)
    return getattr(ai, model)(log).fit(**options)


# Claims


@cache
def names_of_claims() -> dict[int, str]:
    """Names of all claims, by module and name, by the identity of the claim."""
    found = dict[int, str]()
    for name, claim in claims_by_name().items():
        found.setdefault(id(claim), name)
    return found


@cache
def claims_by_name() -> dict[str, Claim]:
    """All claims by module within the claims, and name."""
    prefix = f"{claims.__name__}."
    modules = [importlib.import_module(one.name) for one in pkgutil.walk_packages(claims.__path__, prefix)]
    return {
        f"{module.__name__.removeprefix(prefix)}.{name}": claim
        for module in modules
        for name, claim in vars(module).items()
        if isinstance(claim, Claim)
    }


def names_said(cautions: Iterable[str]) -> set[str]:
    """Claims that cautions say, with those that stand within; what no claim says by its first letters."""
    found = set[str]()
    for text in cautions:
        told = [names_of_claims().get(id(one.claim), one.claim.sentence) for one in within(text)]
        found |= set(told or [str(text)[:LETTERS]])
    return found


# Measuring


def could_be_seen(kind: Kind, frame: pd.DataFrame) -> bool:
    """Whether the last arm's rounds are off at 3 in 1,000: the score test of rows that it lost."""
    last = arm_name(kind.arms - 1)
    if kind.door == SUMS:
        own, rounds = frame[frame["arm"] == last], frame.groupby("day")["n"].sum()
        n, p = rounds.loc[own["day"]].to_numpy(), own["p"].to_numpy()
        off, variance = (own["n"].to_numpy() - n * p).sum(), (n * p * (1.0 - p)).sum()
    else:
        p = frame[names_of(kind)[-1]].to_numpy()
        off, variance = ((frame["arm"] == last).to_numpy() - p).sum(), (p * (1.0 - p)).sum()
    return bool(abs(off) > ndtri(1.0 - LEVEL / 2.0) * np.sqrt(variance))


def holds(found: Any, kind: Kind, model: str, means: Array) -> tuple[int, int]:
    """How many intervals there are, and how many hold the truth."""
    limits = np.asarray(found.conf_int(ALPHA), dtype=np.float64).reshape(-1, 2)
    value = means
    if model == "Contrast":
        value = means[-1:] - means[0]
    elif model == "Winner":
        value = means[[[arm_name(k) for k in range(kind.arms)].index(found.winner)]]
    elif kind.violation == "best of all":
        best = [int(np.argmax(np.asarray(found.params)))]
        limits, value = limits[best], value[best]
    there = np.isfinite(limits).all(axis=1)
    inside = (limits[:, 0] <= value) & (value <= limits[:, 1])
    return int(there.sum()), int((there & inside).sum())


def tally(
    kind: Kind, frame: pd.DataFrame, one: Fit, stated: dict[str, Any], means: Array
) -> tuple[Named, set[str]]:
    """Counts of one fit to one file, and the claims of its cautions; a refusal has no cautions."""
    expected = [claims_by_name()[name] for name in kind.names]
    try:
        log = log_of(kind, frame, one.told, stated, one.door)
        found = fit(log, kind, one.model, arguments(one.options))
    except (ai.errors.InvalidForLog, ai.errors.LogValidationError) as refusal:
        told = any(says(str(refusal), claim) for claim in expected)
        return Named(logs=1, refused=1, named=int(told), caught=1), set()
    intervals, covered = holds(found, kind, one.model, means)
    cautions = list(found.cautions)
    told = any(says(cautions, claim) for claim in expected)
    counts = Named(
        logs=1,
        cautioned=int(bool(cautions)),
        intervals=intervals,
        covered=covered,
        named=int(told),
        caught=int(told),
    )
    return counts, names_said(cautions)


def of_pair(kind: Kind, runs: int, rng: np.random.Generator) -> Tallies:
    """As many logs with what is planted, and of its twin."""
    found: Tallies = {}
    own = Fit("", kind.model, kind.options, kind.told, "", kind.door)
    for name, planted in ((PLANTED, True), (TWIN, False)):
        # The best of all is picked in planted logs alone; the twin is the table of all.
        seen = kind if planted or kind.violation != "best of all" else replace(kind, violation="none")
        stated, means = stated_of(kind, planted), truth(kind, planted)
        for frame in frames(seen, runs, rng, planted):
            counts, said = tally(seen, frame, own, stated, means)
            if kind.violation == "lost rows":
                counts.possible = int(could_be_seen(kind, frame))
            count(found, Key(name, kind.fitted, ""), counts)
            for claim in said:
                count(found, Key(f"{LIT}, {name}", kind.fitted, claim), Named(logs=1))
    return found


def of_clean(kind: Kind, runs: int, rng: np.random.Generator) -> Tallies:
    """Logs without a violation, and what all fits say of them."""
    found: Tallies = {}
    means = truth(kind, planted=False)
    for frame in frames(kind, runs, rng, planted=False):
        lit = set[str]()
        for one in fits_to(kind):
            table = summed(frame, kind) if one.door == SUMS else frame
            counts, said = tally(kind, table, one, arguments(one.stated), means)
            count(found, Key(CLEAN, one.name, ""), counts)
            for claim in said:
                count(found, Key(LIT, one.name, claim), Named(logs=1))
            lit |= said
        count(found, Key(CLEAN, ALL, ""), Named(logs=1, cautioned=int(bool(lit))))
        for claim in lit:
            count(found, Key(LIT, ALL, claim), Named(logs=1))
    return found


def fits_to(kind: Kind) -> Sequence[Fit]:
    """Fits to clean logs of a design: what is stated is so."""
    own: dict[str, str] = {"told": kind.told, "stated": kind.stated}
    found = [
        Fit("ArmMeans", "ArmMeans", **own),
        Fit("Contrast", "Contrast", **own),
        Fit("Winner", "Winner", **own),
        Fit("ALEE, means", "ArmMeans", "stationary=True", NONE),
        Fit("ALEE, contrast", "Contrast", "stationary=True", NONE),
        Fit("sequence", "ConfidenceSequence", SEQUENCES[kind.rewards], NONE),
    ]
    if design_of(kind, planted=True) == "coin":
        found += [
            Fit(f"sample means, {one}", one, "", NONE, "adaptive=False") for one in ("ArmMeans", "Contrast")
        ]
    if kind.batched:
        found += [Fit(f"{one}, sums", one, "", EVERY, "", SUMS) for one in ("ArmMeans", "Contrast")]
    return found


def count(total: Tallies, key: Key, found: Named) -> None:
    total.setdefault(key, Named()).add(found)
