"""Sessions against runs, and analyses of sessions whose outcomes come late: makes docs/evidence/sessions.md.

Every design runs once on rewards and contexts that are fixed in advance, and once in a session that is told
the same rewards, with the same seed. Then outcomes come late: by a law of delays that depends on the outcome,
with some lost, private designs must release the same numbers; and the default analysis of logs is compared
with the truth where outcomes come some rounds late.
"""

from __future__ import annotations

import math
import time
import warnings
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import evidence
import numpy as np
from numpy.typing import NDArray

import adaptinf as ai

Array = NDArray[np.float64]

SEED, FULL, QUICK, BLOCK = 20261124, 2_000, 20, 20
ALPHA, ROUNDS = 0.05, 1_000
COMMAND = "python docs/evidence/sessions.py"
D = ai.designs
MEANS = np.array([0.4, 0.5])
DELAYED = {
    "Thompson(floor=0.05)": D.Thompson(floor=0.05),
    "EpsilonGreedy(exploration=0.2)": D.EpsilonGreedy(exploration=0.2),
}
LATE = (0, 10, 200)
PRIVATE = {
    "PrivateUCB": (D.PrivateUCB(epsilon=1.0), False),
    "LinPriv": (D.LinPriv(epsilon=1.0), True),
    "LinPriv, normal noise": (D.LinPriv(epsilon=1.0, delta=1e-5), True),
    "Mixture of PrivateUCB": (D.Mixture(D.PrivateUCB(epsilon=1.0), exploration=0.2), False),
}
WINDOW = 25


def compared() -> list[tuple[str, Any, int, str]]:
    """Designs, rounds, and the kind of contexts that each is compared on."""
    features = np.random.default_rng(SEED).normal(size=(8, 3))
    arms = [D.Uniform(), D.EpsilonGreedy(), D.Thompson(), D.TopTwoThompson(), D.ExplorationSampling()]
    arms += [D.UCB(), D.KLUCB(), D.PlayTheWinner(), D.PrivateUCB(epsilon=1.0)]
    arms += [D.SuccessiveElimination(), D.PrivateSuccessiveElimination(epsilon=4.0), D.SequentialHalving()]
    arms += [D.Mixture(D.Thompson()), D.Mixture(D.PrivateSuccessiveElimination(epsilon=4.0))]
    several = [D.DPBAI(epsilon=1.0, features=features), D.DPOD(epsilon=1.0, features=features)]
    several += [D.DPBAIGauss(epsilon=1.0, delta=1e-5, features=features), D.ODLinBAI(features=features)]
    groups = [D.ConSE(), D.DPConSE(epsilon=1.0), D.DPConSE(epsilon=1.0, calibration="published")]
    vectors = [
        D.LinUCB(),
        D.LinPriv(epsilon=1.0),
        D.ABSE(),
        D.LDPBandit(epsilon=8.0),
        D.LDPLinear(epsilon=4.0),
    ]
    kinds = {"none": arms, "eight arms": several, "groups": groups, "vectors": vectors}
    return [(_told(design), design, 20_000, kind) for kind, designs in kinds.items() for design in designs]


def _told(design: Any) -> str:
    published = ", published" if getattr(design, "calibration", "") == "published" else ""
    inner = f" of {type(design.design).__name__}" if isinstance(design, D.Mixture) else ""
    return f"{type(design).__name__}{inner}{published}"


def compare(design: Any, rounds: int, kind: str) -> tuple[int, int, float]:
    """Entries of log and releases that are compared, those that differ, and microseconds a participant."""
    rng = np.random.default_rng(SEED)
    n_arms = {"eight arms": 8, "groups": 2}.get(kind, 3)
    rewards = (rng.random((rounds, n_arms)) < np.linspace(0.3, 0.7, n_arms)).astype(float)
    contexts: Any = None
    options: dict[str, Any] = {}
    if kind == "groups":
        contexts, options = rng.integers(0, 3, rounds), {"features": 3}
    elif kind == "vectors":
        contexts, options = rng.random((rounds, 2)) / 2.0, {"dimension": 2}
    drawn = rewards if contexts is None else (rewards, contexts)
    labels = [0, 1, 2] if kind == "groups" else None
    if kind == "vectors":
        env: Any = ai.environments.Tableau(rewards, vectors=contexts, reward_range=(0, 1))
    else:
        env = ai.environments.FunctionEnvironment(
            lambda rng, n: tuple(part[:n] for part in drawn) if isinstance(drawn, tuple) else drawn[:n],
            features=labels,
            reward_range=(0, 1),
        )
    log = design.run(env, rounds, rng=SEED)
    session = design.session(n_arms, rounds, rng=SEED, **options)
    begun = time.perf_counter()
    for step in range(rounds):
        decision = session.assign(context=None if contexts is None else contexts[step])
        session.record(decision.id, rewards[step, decision.arm])
    taken = (time.perf_counter() - begun) / rounds * 1e6
    found = session.log()
    entries = different = 0
    for one, other in ((log.frame, found.frame), (log.releases, found.releases)):
        if one is None or other is None:
            different += (one is None) != (other is None)
            continue
        if one.shape != other.shape or list(one) != list(other):
            different += one.size
            continue
        same = (one == other) | (one.isna() & other.isna())
        entries, different = entries + same.size, different + int((~same).to_numpy().sum())
    fields = ("guarantee", "reward_guarantee", "noise", "feedback_rounds", "released_rounds", "recommended")
    different += sum(getattr(log, name) != getattr(found, name) for name in fields)
    return entries, different, taken


def released(design: Any, vectors: bool, timing: str, seed: int) -> bytes:
    """Releases and actions of a session, as bytes, where outcomes come early, late or by their value."""
    rounds, n_arms = 400, 2
    rng = np.random.default_rng(seed)
    rewards = (rng.random((rounds, n_arms)) < MEANS).astype(float)
    contexts, lost = rng.random((rounds, 2)) / 2.0, rng.random(rounds) < 0.1
    jitter = rng.integers(0, WINDOW + 1, rounds)
    options = {"dimension": 2} if vectors else {}
    session = design.session(n_arms, rounds, window=WINDOW, rng=seed, **options)
    due: list[list[tuple[int, float]]] = [[] for _ in range(rounds + WINDOW + 2)]
    for step in range(rounds):
        for one, reward in due[step]:
            session.record(one, reward)
        decision = session.assign(context=contexts[step] if vectors else None)
        reward = rewards[step, decision.arm]
        by_value = 0 if reward else WINDOW
        delay = {"early": 0, "late": WINDOW, "by value": by_value, "at random": int(jitter[step])}[timing]
        if not lost[step]:
            due[step + 1 + delay].append((decision.id, reward))
    log = session.log(missing="drop")
    assert log.releases is not None
    return bytes(log.releases["value"].to_numpy(dtype=np.float64).tobytes() + log.arrays.action.tobytes())


def block(job: tuple[str, int, int, int]) -> Array:
    """Misses, length and caution of the default interval in some sessions; shape (runs, 3)."""
    name, late, part, runs = job
    place = list(DELAYED).index(name), LATE.index(late), part
    rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=place))
    found = np.empty((runs, 3))
    for run in range(runs):
        session = DELAYED[name].session(2, ROUNDS, rng=rng)
        waiting: deque[tuple[int, float]] = deque()
        for reward in (rng.random((ROUNDS, 2)) < MEANS).astype(float).tolist():
            decision = session.assign()
            waiting.append((decision.id, reward[decision.arm]))
            if len(waiting) > late:
                session.record(*waiting.popleft())
        while waiting:
            session.record(*waiting.popleft())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = ai.Contrast(session.log(), treatment=1, control=0).fit()
        low, high = (float(limit) for limit in result.conf_int(ALPHA).iloc[0])
        found[run] = not low <= MEANS[1] - MEANS[0] <= high, high - low, bool(result.cautions)
    return found


def page(counted: dict[tuple[str, int], Array], runs: int, seeds: int, rounds: int | None) -> str:
    lines, wrong = [], 0
    for name, design, most, kind in compared():
        entries, different, taken = compare(design, min(most, rounds or most), kind)
        lines.append(f"| {name} | {kind} | {entries:,} | {different} | {taken:.0f} |")
        wrong += different > 0
    kept = []
    for name, (design, vectors) in PRIVATE.items():
        pairs = [(timing, seed) for timing in ("late", "by value", "at random") for seed in range(seeds)]
        early = {seed: released(design, vectors, "early", seed) for seed in range(seeds)}
        same = sum(released(design, vectors, timing, seed) == early[seed] for timing, seed in pairs)
        kept.append(f"| {name} | {len(pairs)} | {len(pairs) - same} |")
        wrong += same < len(pairs)
    shares = []
    for (name, late), found in counted.items():
        covered = 1.0 - found[:, 0].mean()
        length, cautioned = np.median(found[:, 1]), found[:, 2].mean()
        shares.append(f"| {name} | {late} | {covered:.4f} | {length:.3f} | {cautioned:.3f} |")
        wrong += covered < 0.93 - 3.0 * math.sqrt(0.93 * 0.07 / runs) and cautioned < 0.5
    return f"""# Sessions

Command: `{COMMAND}`. Seed: {SEED}. Date: {evidence.stamp()}.

{"Every row" if not wrong else f"All rows but {wrong}"} of the three tables shows the expected result.

## Equal to a run

Each design is run on rewards and contexts that are fixed in advance, and in a session that receives the same
rewards and contexts, with the same seed. All entries of the log's frame and of its releases, and the
guarantees of the log, are compared bit for bit; the last column is the time for one `assign` and one
`record`.

| design | contexts | entries | different | µs |
| --- | --- | ---: | ---: | ---: |
{chr(10).join(lines)}

## Early, late and lost outcomes of private designs

The sessions have 400 rounds and `window={WINDOW}`, and a tenth of the outcomes are lost. Each
session is compared with one that has the same seed but whose outcomes arrive immediately; its own outcomes
arrive as late as the window allows, or late if they are 0 and immediately if they are 1, or at random.
Releases and actions are compared to the last bit.

| design | sessions | different |
| --- | ---: | ---: |
{chr(10).join(kept)}

## Default analysis of late outcomes

Each row is based on {runs:,} sessions of {ROUNDS:,} rounds, with two arms and 0/1 rewards with means
{MEANS[0]:g} and {MEANS[1]:g}. Each outcome is recorded the stated number of rounds after its own round, and
the remaining ones at the end. The table shows the share of nominal 95% intervals of the default `Contrast`
that contain the difference, their median length, and the share of tables that carry a caution. The Monte
Carlo standard error of a proportion of .95 is {math.sqrt(0.05 * 0.95 / runs):.4f}; a row should show coverage
of at least .93 or carry a caution.

| session | rounds late | coverage | length | cautioned |
| --- | ---: | ---: | ---: | ---: |
{chr(10).join(shares)}
"""


def main() -> None:
    parser = evidence.parser(__doc__)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    runs = QUICK if options.quick else FULL
    rows = [(name, late) for name in DELAYED for late in LATE]
    jobs = [(*row, part, BLOCK) for row in rows for part in range(runs // BLOCK)]
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(block, jobs))
    counted = {
        row: np.concatenate([part for part, job in zip(found, jobs, strict=True) if job[:2] == row])
        for row in rows
    }
    text = page(counted, runs, 2 if options.quick else 50, 5_000 if options.quick else None)
    evidence.publish(text, __file__, options)
    if options.quick:
        name, late = rows[0]
        evidence.hold_cell(text, __file__, f"{name} | {late}", "coverage", (runs, FULL))


if __name__ == "__main__":
    main()
