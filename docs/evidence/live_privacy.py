"""Audits of private designs used live, with exact noise: makes docs/evidence/live_privacy.md.

Chosen before measuring: epsilon .1, 1 and 4, confidence 99.9%, the trials of `trials`. Each run is a session
of its own, opened with noise="release"; the score is the exact log-likelihood ratio of all that was released,
and `epsilon_lower_bound` chooses an event on one half of the runs and bounds it on the other. OpenDP draws
the noise, many draws of a scale at a time. The planted fault draws it at half of its scale. In the second
table sessions draw one node at a time, as trials do; the replay recomputes each decision from the released
numbers, and the noise of each node is compared with the law of its promise. With --quick fewer runs. Ends
with 1 if a bound exceeds its promise, a fault is missed where the table says it must be found, a decision is
not found again, or the noise has not its law.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import evidence
import numpy as np
from joblib import Parallel, delayed

from adaptinf.audit import EpsilonLowerBound, epsilon_lower_bound
from adaptinf.audit.privacy.designs import neighbouring_trials
from adaptinf.audit.privacy.designs.audited_trial import UNIT_RANGE, Neighbours, one_reward_apart
from adaptinf.audit.privacy.designs.counter_audits import CounterScore
from adaptinf.audit.privacy.trial_checks import Looked, live_findings, live_trial, look_at_sessions
from adaptinf.designs import (
    DPBAI,
    DPNAS,
    Design,
    DPConSE,
    LinPriv,
    Mixture,
    PrivateSuccessiveElimination,
    PrivateUCB,
)
from adaptinf.designs.stopping import stopping_kernel as kernel
from adaptinf.designs.stopping.stopping_samples import ReleaseNoise
from adaptinf.privacy import discrete_laplace
from adaptinf.privacy.drawn_noise import FALSE_ALARM
from adaptinf.privacy.noise import Buffer
from adaptinf.sessions import session_setup as opening
from adaptinf.sessions.steppers import Draw, draw_node
from adaptinf.simulation.environments import Tableau
from adaptinf.simulation.transcripts import Transcripts

SEED = 20_261_125
CONFIDENCE = 0.999
EPSILONS = (0.1, 1.0, 4.0)
AT_ONCE = 2_000
FEW = 1_000
FEATURES = ((1.0, 0.0), (0.0, 1.0), (0.6, 0.7), (0.3, 0.9), (0.8, 0.2))
"""Five arms in two coordinates, so a first phase pulls a collection and not all arms."""
COLUMNS = "| design | trial | epsilon | noise | runs | bound | of the promise | as it should |"


@dataclass(frozen=True)
class Live:
    """A design and a pair of trials; runs on each side by epsilon, and those where a fault must be found.

    A stopping rule has streams of its own for each epsilon.
    """

    name: str
    make: Callable[[float], Design | DPNAS]
    words: str
    pair: Callable[[float], Neighbours] | None
    runs: dict[float, int]
    faulty: dict[float, int]


def alone(horizon: int, row: int, hybrid: bool) -> Neighbours:
    """One arm, all rewards 1/2 but those of one round, which are 0 and 1."""
    first, second = one_reward_apart(np.full((horizon, 1), 0.5), row)
    tables = [Tableau(side, reward_range=UNIT_RANGE) for side in (first, second)]
    score = CounterScore(first, second, hybrid)
    return Neighbours(tables[0], tables[1], horizon, "reward", f"the reward of round {row + 1}", score)


def trials() -> list[Live]:
    """What is audited, with the runs that a fault needs to be told at an epsilon."""
    full = neighbouring_trials(PrivateUCB(epsilon=1.0))[0]
    return [
        Live(
            "PrivateUCB, binary counter",
            lambda epsilon: PrivateUCB(epsilon=epsilon, counter="binary"),
            "one arm, 1 round",
            lambda epsilon: alone(1, 0, hybrid=False),
            {0.1: 6_000, 1.0: 3_000, 4.0: 3_000},
            {0.1: 20_000, 1.0: 3_000, 4.0: 3_000},
        ),
        Live(
            "PrivateUCB",
            lambda epsilon: PrivateUCB(epsilon=epsilon),
            "one arm, 4 rounds",
            lambda epsilon: alone(4, 2, hybrid=True),
            dict.fromkeys(EPSILONS, 2_000),
            {1.0: 2_000},
        ),
        Live(
            "PrivateUCB",
            lambda epsilon: PrivateUCB(epsilon=epsilon),
            "two arms, 16 rounds",
            lambda epsilon: full,
            dict.fromkeys(EPSILONS, 1_000),
            {},
        ),
        Live(
            "Mixture of PrivateUCB",
            lambda epsilon: Mixture(PrivateUCB(epsilon=epsilon), exploration=0.2),
            "two arms, 16 rounds",
            lambda epsilon: full,
            {1.0: 1_000},
            {},
        ),
        Live(
            "LinPriv",
            lambda epsilon: LinPriv(epsilon=epsilon),
            "contexts in two coordinates, 4 rounds",
            lambda epsilon: neighbouring_trials(LinPriv(epsilon=epsilon, dimension=2))[0],
            dict.fromkeys(EPSILONS, 1_000),
            {4.0: 12_000},
        ),
        Live(
            "DPNAS",
            lambda epsilon: DPNAS(epsilon=epsilon, alpha=0.9, beta=0.5, steps="exponential"),
            "sums near the threshold, then across 0",
            None,
            dict.fromkeys(EPSILONS, 1_000),
            {4.0: 48_000},
        ),
        Live(
            "PrivateSuccessiveElimination",
            elimination,
            "two arms, 714 rounds",
            lambda epsilon: neighbouring_trials(elimination(epsilon))[0],
            dict.fromkeys(EPSILONS, 1_000),
            {1.0: 1_000},
        ),
        Live(
            "DPConSE, records",
            lambda epsilon: DPConSE(epsilon=epsilon),
            "two contexts, 3 rounds, a participant alone in the window",
            lambda epsilon: neighbouring_trials(DPConSE(epsilon=epsilon), "record")[0],
            {0.1: 6_000, 1.0: 3_000, 4.0: 3_000},
            {},
        ),
        Live(
            "DPBAI",
            lambda epsilon: DPBAI(epsilon=epsilon, features=FEATURES),
            "five arms, several pulls of each arm of a collection",
            lambda epsilon: neighbouring_trials(DPBAI(epsilon=epsilon, features=FEATURES))[0],
            dict.fromkeys(EPSILONS, 1_000),
            {1.0: 2_000},
        ),
        Live(
            "DPConSE, rewards",
            lambda epsilon: DPConSE(epsilon=epsilon),
            "two contexts, 3 rounds, a participant alone in the window",
            lambda epsilon: neighbouring_trials(DPConSE(epsilon=epsilon), "reward")[0],
            {0.1: 6_000, 1.0: 3_000, 4.0: 3_000},
            {4.0: 3_000},
        ),
        Live(
            "DPConSE, records",
            lambda epsilon: DPConSE(epsilon=epsilon),
            "two contexts, 12 rounds, the first participant",
            lambda epsilon: neighbouring_trials(DPConSE(epsilon=epsilon), "record")[2],
            dict.fromkeys(EPSILONS, 2_000),
            {},
        ),
    ]


def elimination(epsilon: float) -> PrivateSuccessiveElimination:
    """With the shortest epochs that there are."""
    return PrivateSuccessiveElimination(epsilon=epsilon, beta=1.0)


class Drawn:
    """Exact noise of OpenDP, many draws of a scale at a time, at a share of that: 1/2 is a fault."""

    def __init__(self, share: float) -> None:
        self._share, self._left = share, dict[float, list[int]]()

    def __call__(self, name: str, scale: float) -> int:
        """The noise of a node."""
        left = self._left.setdefault(scale, [])
        if not left:
            left += discrete_laplace(self._share * scale, AT_ONCE).tolist()
        return left.pop()


class Stopped(ReleaseNoise):
    """Exact noise of a stopping rule, at a share of its scale: 1/2 is a fault."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self._share = share

    def threshold(self, scale: float) -> Buffer:
        """The threshold's."""
        return super().threshold(self._share * scale)

    def looks(self, scale: float, count: int) -> Buffer:
        """The looks'."""
        return super().looks(self._share * scale, count)

    def release(self, scale: float) -> Buffer:
        """The final sum's."""
        return super().release(self._share * scale)


def audited(live: Live, epsilon: float, share: float, runs: int, number: int) -> EpsilonLowerBound:
    """The bound from sessions on both trials."""
    design = live.make(epsilon)
    if isinstance(design, DPNAS):
        return stopped(design, share, runs, number)
    assert live.pair is not None
    with drawing(Drawn(share)):
        return epsilon_lower_bound(
            design,
            live.pair(epsilon),
            backend="release",
            view="releases",
            runs=runs,
            confidence=CONFIDENCE,
            rng=np.random.SeedSequence(SEED, spawn_key=(number,)),
        )


@contextmanager
def drawing(draw: Draw) -> Iterator[None]:
    """Let sessions draw their noise so."""
    before = opening.draw_node
    opening.draw_node = draw
    try:
        yield
    finally:
        opening.draw_node = before


def bound(sample: Any, promised: Any, runs: int, number: int) -> EpsilonLowerBound:
    """The bound from scores of a side's runs."""
    return epsilon_lower_bound(
        sample,
        view="releases",
        runs=runs,
        confidence=CONFIDENCE,
        promised=promised,
        rng=np.random.SeedSequence(SEED, spawn_key=(number,)),
    )


def stopped(rule: DPNAS, share: float, runs: int, number: int) -> EpsilonLowerBound:
    """The bound from runs of a stopping rule, which reads its samples with exact noise."""
    (pair,) = neighbouring_trials(rule)

    def sample(side: int, runs: int, rng: np.random.Generator) -> Any:
        samples = (pair.first, pair.second)[side].tables(pair.horizon).tableau[:, 0]
        outcomes = np.zeros((runs, kernel.OUTCOMES))
        for run in range(runs):
            result = rule._run(samples, None, None, Stopped(share))
            outcomes[run] = result.estimate, result.stopped, result.samples
        nothing = np.zeros((runs, 0), dtype=np.int64)
        assert pair.score is not None
        return pair.score(Transcripts(nothing, np.zeros((runs, 0, 5)), outcomes))

    return bound(sample, rule.guarantee(), runs, number)


def bound_row(live: Live, epsilon: float, share: float, runs: int, number: int) -> tuple[str, bool]:
    """A row of the first table, and whether it is as it should be."""
    result = audited(live, epsilon, share, runs, number)
    right = result.refuted == (share < 1.0)
    cells = (
        live.name,
        live.words,
        f"{epsilon:g}",
        "exact" if share == 1.0 else "half the scale",
        f"{runs:,}",
        f"{result.epsilon:.3f}",
        f"{result.epsilon / result.promised.epsilon:.2f}",
        "yes" if right else "NO",
    )
    return f"| {' | '.join(cells)} |", right


def replay_row(name: str, design: Design, runs: int, share: float, number: int) -> tuple[str, bool]:
    """Decisions recomputed and laws of noise, over sessions that draw one node at a time."""
    root = np.random.SeedSequence(SEED, spawn_key=(1_000 + number,))
    looked, trial = Looked(), live_trial(design)
    assert trial is not None
    with drawing(draw_node if share == 1.0 else (lambda name, scale: draw_node(name, share * scale))):
        rounds = look_at_sessions(looked, design, trial, root, runs)
    findings = live_findings(looked, FALSE_ALARM)
    wrong = [one.text for one in findings if one.check != "noise"]
    noisy = [one.text for one in findings if one.check == "noise"]
    right = not wrong and bool(noisy) == (share < 1.0)
    noise = "exact" if share == 1.0 else "half the scale"
    decisions = f"{rounds:,} of {rounds:,}" if not wrong else "; ".join(wrong)
    law = noisy[0].rpartition(" [")[0] if noisy else "nothing found"
    return f"| {name} | {runs} | {noise} | {decisions} | {law}{'' if right else ', WRONG'} |", right


def main() -> None:
    """Audit, and write the page."""
    asked = evidence.parser(__doc__)
    asked.add_argument("--jobs", type=int, default=2)
    options = asked.parse_args()
    begun = time.time()
    cells = [
        (live, epsilon, share, runs)
        for live in trials()
        for share, planned in ((1.0, live.runs), (0.5, live.faulty))
        for epsilon, runs in planned.items()
    ]
    if options.quick:
        first = trials()[0]
        cells = [(first, epsilon, 1.0, FEW) for epsilon in EPSILONS] + [(first, 1.0, 0.5, FEW)]
        cells += [(live, 4.0, 1.0, FEW) for live in trials() if live.name in ("LinPriv", "DPNAS")]
        cells.append((next(live for live in trials() if live.name.startswith("DPConSE")), 1.0, 1.0, FEW))
    designs = {
        "PrivateUCB": PrivateUCB(epsilon=1.0),
        "PrivateUCB, binary counter": PrivateUCB(epsilon=0.1, counter="binary"),
        "Mixture of PrivateUCB": Mixture(PrivateUCB(epsilon=4.0), exploration=0.2),
        "LinPriv": LinPriv(epsilon=1.0),
        "PrivateSuccessiveElimination": elimination(1.0),
        "DPBAI": DPBAI(epsilon=1.0, features=FEATURES),
        "DPConSE": DPConSE(epsilon=1.0),
        "Mixture of DPConSE": Mixture(DPConSE(epsilon=1.0), exploration=0.2),
    }
    sessions = dict.fromkeys(("PrivateSuccessiveElimination", "DPBAI", "DPConSE", "Mixture of DPConSE"), 600)
    replays = [
        (name, design, sessions.get(name, 24), share)
        for name, design in designs.items()
        for share in (1.0, 0.5)
    ]
    if options.quick:
        replays = [
            (name, designs[name], 16, share)
            for name, share in (("PrivateUCB", 1.0), ("PrivateUCB", 0.5), ("LinPriv", 1.0), ("LinPriv", 0.5))
        ]
        replays += [(name, designs[name], 16, 1.0) for name in ("DPConSE", "DPBAI")]
    work = Parallel(n_jobs=1 if options.quick else options.jobs)
    rows = work(delayed(bound_row)(*cell, number) for number, cell in enumerate(cells))
    looks = work(delayed(replay_row)(*look, number) for number, look in enumerate(replays))
    kept = sum(right for _, right in (*rows, *looks))
    page = PAGE.format(
        seed=SEED,
        stamp=evidence.stamp(),
        columns=COLUMNS,
        rows="\n".join(row for row, _ in rows),
        looks="\n".join(row for row, _ in looks),
        kept=f"{kept} of {len(rows) + len(looks)}",
        minutes=f"{(time.time() - begun) / 60.0:.0f}",
    )
    evidence.publish(page, __file__, options)
    if kept < len(rows) + len(looks):
        raise SystemExit(1)


PAGE = """# Private designs used live

Command: `python docs/evidence/live_privacy.py`. Seed: {seed}. Date: {stamp}.

Sessions with `noise="release"` are the live path: participants are assigned one at a time, outcomes are
recorded, and OpenDP draws the noise of each named node. `DPNAS` reads samples with `backend="release"`: its
decisions cannot be recomputed, because the noise of its looks is not released. {kept} rows have the expected
result: with exact noise, no bound is above the guarantee; at half of the scale, the fault is detected; and
all other decisions follow from the released numbers.

## Lower bounds of epsilon

Each run is a separate session. The score is the exact log-likelihood ratio of everything that was released;
the bound holds with 99.9% confidence. Two trials differ in one reward or record. "Of the promise" is the
bound divided by the guarantee; for rewards, `DPConSE` guarantees .6 epsilon. At half of the scale, the true
value is twice the guarantee, and the bound must exceed the guarantee. If a reward enters several nodes, this
can take millions of runs; detection of the fault is then left to the tests in the next table.

{columns}
| --- | --- | ---: | --- | ---: | ---: | ---: | --- |
{rows}

## Decisions and laws of noise

Outcomes are drawn by fair coins, with epsilon 1, .1, 4 and then 1: `PrivateUCB` has 256 participants and
three arms, the other designs have two arms, `LinPriv` has contexts in two coordinates, and `DPBAI` has five
arms. Elimination has more than one epoch. The decisions are recomputed from released numbers, counts and
public contexts only, bit for bit. The noise of every node is compared with its stated distribution, and
tested for dependence on the noise of all other nodes and on the outcomes; all tests of a row together raise a
false alarm with probability 1e-6.

| design | sessions | noise | decisions found again | laws of the nodes |
| --- | ---: | --- | ---: | --- |
{looks}

The page took {minutes} minutes on a machine that was also doing other work.
"""


if __name__ == "__main__":
    main()
