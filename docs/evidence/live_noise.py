"""Audits of the live path, of right designs and of planted faults: makes docs/evidence/live_noise.md.

Right designs: 200 audits with 20,000 simulated runs, which leaves the live path 2% of what it has by default,
and one audit of each design with all defaults, whose processor time is told. Faults are planted where
sessions or trials in files draw, or in what becomes of a draw, and each is audited by one call of
`epsilon_lower_bound` that is told nothing of it: with all defaults where the fault shows in thousands of
draws only, else with 20,000 runs. Limits: the fewest draws, of powers of the square root of 2, with which
every one of 20 samples of faulty noise is found. With --quick three designs, four faults and small samples.
Parts are kept in --folder, and a stopped run goes on. Ends with 1 if a right design is refuted or a fault is
not found.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import evidence
import numpy as np
from joblib import Parallel, delayed

from adaptinf.audit import EpsilonLowerBound, epsilon_lower_bound
from adaptinf.designs import DPBAI, DPNAS, DPConSE, LinPriv, Mixture, PrivateSuccessiveElimination, PrivateUCB
from adaptinf.privacy.drawn_noise import Draws
from adaptinf.privacy.noise_tests import noise_tests
from adaptinf.sessions import session_setup as opening
from adaptinf.sessions.session import Session
from adaptinf.sessions.steppers import ReleaseStepper, draw_node
from adaptinf.trial import trial_noise as nodes

SEED = 20_261_126
AUDITS, RUNS, TRIES = 200, 20_000, 20
FEATURES = ((1.0, 0.0), (0.0, 1.0), (0.6, 0.7), (0.3, 0.9), (0.8, 0.2))
DESIGNS: dict[str, Any] = {
    "PrivateUCB": PrivateUCB(epsilon=1.0),
    "PrivateUCB, binary, epsilon .1": PrivateUCB(epsilon=0.1, counter="binary"),
    "LinPriv": LinPriv(epsilon=1.0),
    "PrivateSuccessiveElimination": PrivateSuccessiveElimination(epsilon=1.0, beta=1.0),
    "DPBAI": DPBAI(epsilon=1.0, features=FEATURES),
    "DPConSE": DPConSE(epsilon=1.0),
    "DPConSE, epsilon 4": DPConSE(epsilon=4.0),
    "Mixture of PrivateUCB, epsilon 4": Mixture(PrivateUCB(epsilon=4.0), exploration=0.2),
    "Mixture of DPConSE": Mixture(DPConSE(epsilon=1.0), exploration=0.2),
    "DPNAS": DPNAS(epsilon=1.0, alpha=0.5, beta=0.2, steps="exponential"),
}
SCALE = 2.0**21
Draw = Callable[[str, float], int]


@contextmanager
def planted(**changed: Any) -> Iterator[None]:
    """What sessions draw with, what files draw with, and how a design or a session learns."""
    places = {
        "sessions": (opening, "draw_node"),
        "files": (nodes, "draw_node"),
        "learns": (ReleaseStepper, "_learn"),
        "enters": (Session, "_learn"),
        "node": (nodes.Nodes, "__call__"),
    }
    before = {name: getattr(*places[name]) for name in changed}
    try:
        for name, value in changed.items():
            setattr(*places[name], value)
        yield
    finally:
        for name, value in before.items():
            setattr(*places[name], value)


def nothing(name: str, scale: float) -> int:
    """No noise."""
    return 0


def seeded(name: str, scale: float) -> int:
    """Noise of the name of its node."""
    return round(np.random.default_rng([ord(letter) for letter in name]).laplace(scale=scale))


def antithetic() -> Draw:
    """Every second draw is the one before with the other sign."""
    last: list[int] = []

    def draw(name: str, scale: float) -> int:
        if last:
            return -last.pop()
        last.append(draw_node(name, scale))
        return last[0]

    return draw


def carried(share: int) -> Draw:
    """One draw of so many is the same in every run."""
    kept: dict[str, int] = {}

    def draw(name: str, scale: float) -> int:
        fresh = draw_node(name, scale)
        return kept.setdefault(name, fresh) if sum(map(ord, name)) % share == 0 else fresh

    return draw


def redrawn(name: str, scale: float) -> int:
    """Never beyond 6 scales."""
    while abs(drawn := draw_node(name, scale)) > 6.0 * scale:
        pass
    return drawn


def failed(name: str, scale: float) -> int:
    """0 if it would be beyond 6 scales."""
    drawn = draw_node(name, scale)
    return drawn if abs(drawn) <= 6.0 * scale else 0


def learning(change: Callable[[Any, Any], Callable[[int, float], float]]) -> Any:
    """A step of the design whose draws are changed by what it learns."""
    right: Any = ReleaseStepper._learn

    def learn(self: Any, step: Any) -> None:
        draw, changed = self._draw, change(self, step)
        self._draw = lambda name, scale: changed(draw(name, scale), scale)
        try:
            right(self, step)
        finally:
            self._draw = draw

    return learn


def by_reward(one: Callable[[int, float], float]) -> Any:
    """Draws are changed where the reward is above 1/2."""
    return learning(lambda _, step: one if step.reward > 0.5 else lambda units, _: units)


def nothing_enters(self: Any, step: int, reward: float, right: Any = Session._learn) -> None:
    """An outcome that never came enters no sum, and releases nothing."""
    if not np.isnan(reward):
        right(self, step, reward)


def again(self: Any, name: str, scale: float, right: Any = nodes.Nodes.__call__) -> int:
    """Drawn once more, and kept, when the trial is opened again."""
    units = right(self, name, scale)
    return draw_node(name, scale) if self._following else int(units)


@dataclass(frozen=True)
class Fault:
    """A fault: its class, what it is, where it is planted, the design, and the runs of its audit."""

    kind: str
    words: str
    plant: Callable[[], dict[str, Any]]
    design: str = "PrivateUCB"
    runs: int | None = RUNS


def everywhere(draw: Any) -> Callable[[], dict[str, Any]]:
    """In sessions and in files."""
    return lambda: {"sessions": draw, "files": draw}


def faults() -> list[Fault]:
    """What is planted."""
    return [
        *(
            Fault("no noise", f"none in sessions of {name}", lambda: {"sessions": nothing}, name)
            for name in LIVE
        ),
        *(
            Fault("no noise", f"none in trials in files of {name}", lambda: {"files": nothing}, name)
            for name in LIVE
            if name != "DPBAI"
        ),
        Fault("dependent", "antithetic, in sessions", lambda: {"sessions": antithetic()}),
        Fault("dependent", "antithetic, in files", lambda: {"files": antithetic()}),
        Fault(
            "dependent", "one node of 7 carried to the next run, sessions", lambda: {"sessions": carried(7)}
        ),
        Fault("dependent", "one node of 7 carried to the next trial", lambda: {"files": carried(7)}),
        Fault("dependent", "seeded by the node's name", everywhere(seeded)),
        Fault("dependent", "signs go with the outcome", lambda: {"learns": by_reward(lambda k, s: abs(k))}),
        Fault("tails", "redrawn beyond 6 scales, in sessions", lambda: {"sessions": redrawn}, runs=None),
        Fault("tails", "redrawn beyond 6 scales, in files", lambda: {"files": redrawn}, runs=None),
        Fault("tails", "0 beyond 6 scales, in sessions", lambda: {"sessions": failed}, runs=None),
        Fault(
            "tails",
            "redrawn beyond 6 scales, the sampler of elimination's trials",
            lambda: {"files": redrawn},
            "PrivateSuccessiveElimination",
            runs=None,
        ),
        Fault("scale", "half of it", everywhere(lambda name, scale: draw_node(name, 0.5 * scale))),
        Fault("scale", "half of it, for outcomes of 1", lambda: {"learns": by_reward(lambda k, s: k // 2)}),
        Fault(
            "lattice",
            "multiples of 2^10",
            everywhere(lambda name, scale: draw_node(name, scale) // 1_024 * 1_024),
        ),
        Fault("lattice", "even, for outcomes of 1", lambda: {"learns": by_reward(lambda k, s: k // 2 * 2)}),
        Fault(
            "lattice",
            "3 decimals, for outcomes of 1",
            lambda: {"learns": by_reward(lambda k, s: round(round(k / 2**20, 3) * 2**20))},
        ),
        Fault("lattice", "0 for one outcome of 1", lambda: {"learns": by_reward(lambda k, s: 0)}),
        Fault("how much", "an outcome that never came enters nothing", lambda: {"enters": nothing_enters}),
        Fault("how much", "the same in DPConSE", lambda: {"enters": nothing_enters}, "DPConSE"),
        Fault("live path", "nodes are drawn again when a trial is opened", lambda: {"node": again}),
    ]


LIVE = [name for name in DESIGNS if name != "DPNAS"]


def audited(design: Any, runs: int | None, seed: int) -> tuple[EpsilonLowerBound, float]:
    """An audit by one call, and its processor time."""
    begun = time.process_time()
    found = epsilon_lower_bound(design, runs=runs, rng=np.random.SeedSequence(SEED, spawn_key=(seed,)))
    return found, time.process_time() - begun


def right_audit(name: str, runs: int | None, seed: int) -> dict[str, Any]:
    """Whether an audit of a right design refutes it, and its time."""
    found, spent = audited(DESIGNS[name], runs, seed)
    return {"refuted": bool(found.refuted), "spent": spent}


def fault_row(number: int) -> dict[str, Any]:
    """A row of the table of faults, and whether it was found."""
    fault = faults()[number]
    with planted(**fault.plant()):
        found, spent = audited(DESIGNS[fault.design], fault.runs, 1_000 + number)
    told = next((f"{one.check}: {one.text}" for one in found.findings), "NOT FOUND").replace("|", "/")
    runs = "default" if fault.runs is None else f"{fault.runs:,}"
    row = f"| {fault.kind} | {fault.words} | {runs} | {spent:.0f} s | {told} |"
    return {"row": row, "refuted": bool(found.refuted)}


def kept(folder: Path, label: str, made: Callable[[], Any]) -> Any:
    """A part from its file, or made and kept."""
    path = folder / f"{label}.json"
    if not path.exists():
        part = path.with_suffix(".part")
        part.write_text(json.dumps(made()), encoding="utf-8")
        part.replace(path)
    return json.loads(path.read_text(encoding="utf-8"))


def laplace(n: int, rng: np.random.Generator, scale: float = SCALE) -> Any:
    """Seeded draws of the exact law."""
    chance = -np.expm1(-1.0 / scale)
    return rng.geometric(chance, n) - rng.geometric(chance, n)


def cut(n: int, rng: np.random.Generator, scales: float) -> Any:
    """Redrawn beyond so many scales."""
    units = laplace(n, rng)
    while (far := np.abs(units) > scales * SCALE).any():
        units[far] = laplace(int(far.sum()), rng)
    return units


def mixed(n: int, rng: np.random.Generator, share: float, change: Callable[[Any], Any]) -> Any:
    """A share of the draws is changed."""
    units = laplace(n, rng)
    return np.where(rng.random(n) < share, change(units), units)


def copied(n: int, rng: np.random.Generator, share: float) -> Any:
    """A share of the draws is the one before."""
    units = laplace(n, rng)
    later = np.flatnonzero(rng.random(n - 1) < share) + 1
    units[later] = units[later - 1]
    return units


LIMITS: dict[str, Callable[[int, np.random.Generator], Any]] = {
    "tails cut at 4 scales": lambda n, rng: cut(n, rng, 4.0),
    "tails cut at 5 scales": lambda n, rng: cut(n, rng, 5.0),
    "tails cut at 6 scales": lambda n, rng: cut(n, rng, 6.0),
    "tails cut at 7 scales": lambda n, rng: cut(n, rng, 7.0),
    "half of the scale": lambda n, rng: laplace(n, rng, 0.5 * SCALE),
    "nine tenths of the scale": lambda n, rng: laplace(n, rng, 0.9 * SCALE),
    "no noise in 1%": lambda n, rng: mixed(n, rng, 0.01, lambda units: 0 * units),
    "no noise in .1%": lambda n, rng: mixed(n, rng, 0.001, lambda units: 0 * units),
    "multiples of 2": lambda n, rng: laplace(n, rng) // 2 * 2,
    "multiples of 2 in 30%": lambda n, rng: mixed(n, rng, 0.3, lambda units: units // 2 * 2),
    "multiples of 1,024 in 1%": lambda n, rng: mixed(n, rng, 0.01, lambda units: units // 1_024 * 1_024),
    "3 decimals in 10%": lambda n, rng: mixed(
        n, rng, 0.1, lambda units: np.rint(np.round(units / 2**20, 3) * 2**20).astype(np.int64)
    ),
    "the draw before in 1%": lambda n, rng: copied(n, rng, 0.01),
    "sign of the draw before in 20%": lambda n, rng: signs(n, rng, 0.2),
    "the right law": lambda n, rng: laplace(n, rng),
}


def signs(n: int, rng: np.random.Generator, share: float) -> Any:
    """A share of the draws has the sign of the one before."""
    units = laplace(n, rng)
    later = np.flatnonzero(rng.random(n - 1) < share) + 1
    units[later] = np.abs(units[later]) * np.sign(units[later - 1])
    return units


def limit_row(name: str, tries: int, largest: int) -> str:
    """The fewest draws with which a fault is found in every try, by powers of the square root of 2."""
    for power in range(4, 2 * largest + 1):
        n = round(2.0 ** (0.5 * power))
        if all(is_found(name, n, seed) for seed in range(tries)):
            return f"| {name} | {n:,} |"
    return f"| {name} | more than {2**largest:,} |"


def is_found(name: str, n: int, seed: int) -> bool:
    """Whether tests of so many draws of a run find anything."""
    units = LIMITS[name](n, np.random.default_rng([SEED, seed, n]))
    every = np.arange(n)
    names = [f"node {place}" for place in range(n)]
    draws = Draws(units, np.full(n, SCALE), np.zeros(n, dtype=np.int64), every, names)
    return any(test.finding for test in noise_tests(draws))


def main() -> None:
    """Audit, plant, and write the page."""
    asked = evidence.parser(__doc__)
    asked.add_argument("--jobs", type=int, default=2)
    asked.add_argument("--folder", type=Path, help="for parts, build/live_noise by default")
    options = asked.parse_args()
    with evidence.folder(options.folder, __file__, options.quick) as folder:
        folder.mkdir(parents=True, exist_ok=True)
        write(options, folder)


def write(options: Any, folder: Path) -> None:
    """Make the parts that are not there, and the page."""
    quick = options.quick
    work = Parallel(n_jobs=1 if quick else options.jobs, batch_size=1)
    names = ["PrivateUCB", "DPConSE", "DPNAS"] if quick else list(DESIGNS)
    each = 1 if quick else AUDITS // len(DESIGNS)
    numbers = [number for number, fault in enumerate(faults()) if not quick or fault.runs is not None]
    numbers = numbers[:: 9 if quick else 1]
    asked = {
        f"limit_{name}": partial(limit_row, name, 3 if quick else TRIES, 10 if quick else 16)
        for name in LIMITS
    }
    asked |= {f"fault_{number}": partial(fault_row, number) for number in numbers}
    for seed in range(each):
        asked |= {f"right_{name}_{seed}": partial(right_audit, name, RUNS, seed) for name in names}
    whole = RUNS if quick else None
    asked |= {f"whole_{name}": partial(right_audit, name, whole, each) for name in names}
    made = dict(zip(asked, work(delayed(kept)(folder, *part) for part in asked.items()), strict=True))
    small = {name: [made[f"right_{name}_{seed}"] for seed in range(each)] for name in names}
    full = {name: made[f"whole_{name}"] for name in names}
    planted_rows = [made[f"fault_{number}"] for number in numbers]
    wrong = {name: sum(one["refuted"] for one in (*small[name], full[name])) for name in names}
    found = sum(one["refuted"] for one in planted_rows)
    page = PAGE.format(
        seed=SEED,
        stamp=evidence.stamp(),
        audits=len(names) * each,
        refuted=sum(wrong.values()),
        found=f"{found} of {len(planted_rows)}",
        runs=RUNS,
        times="\n".join(
            f"| {name} | {each} | {np.mean([one['spent'] for one in small[name]]):.1f} s | {wrong[name]} | "
            f"{full[name]['spent']:.0f} s |"
            for name in names
        ),
        faults="\n".join(one["row"] for one in planted_rows),
        limits="\n".join(made[f"limit_{name}"] for name in LIMITS),
    )
    evidence.publish(page, __file__, options)
    if sum(wrong.values()) or found < len(planted_rows):
        raise SystemExit(1)


PAGE = """# Noise of the live path

Command: `python docs/evidence/live_noise.py`. Seed: {seed}; exact noise has none. Date: {stamp}.

Of {audits} audits of correct designs, and one more audit of each design with all defaults, {refuted} refuted
a design. Of the planted faults, {found} were found by one call of `epsilon_lower_bound`.

## Right designs

Each audit runs simulations, and sessions and trials in files with exact noise, recomputes decisions, and
tests the noise. With {runs:,} simulated runs, the number of live runs is 2% of the default.
Processor times are from a machine with other work.

| design | audits | time of each | refuted | time with all defaults |
| --- | ---: | ---: | ---: | ---: |
{times}

## Planted faults

The faults concern how sessions or trials in files draw their noise, or how a draw is used. "Runs" is the
argument of the call; the finding shown is the first one.

| class | fault | runs | time | found |
| --- | --- | ---: | ---: | --- |
{faults}

## How many draws are needed to detect a fault

The draws have scale 2^21 and are made in one run. The table shows the smallest number, among powers of the
square root of 2, of draws with which each of 20 samples is detected by the tests of draws alone, which
together raise a false alarm with probability 1e-6.

| noise | draws |
| --- | ---: |
{limits}
"""


if __name__ == "__main__":
    main()
