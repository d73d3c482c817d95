"""All arms against a control: makes docs/evidence/contrasts.md.

Logs of adaptive designs, all arms equal or one of them better. Every arm is compared with the first by the
default of `Contrasts`; the intervals must hold all differences at once. Lifts of 0/1 rewards by rates of the
control. Blocks of logs are kept in a folder, all rows' first ones first: a run that was stopped goes on, and
--runs makes the page of as many logs as every row has.
"""

from __future__ import annotations

import functools
import math
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import evidence
import numpy as np
from numpy.typing import NDArray

SEED, FULL, QUICK, BLOCK = 20261201, 5_000, 40, 128
BETTER, LEVEL = 0.2, 0.05
COMMAND = "python docs/evidence/contrasts.py"
DESIGNS = ("epsilon-greedy .2", "Thompson, floor .05", "Thompson, floor .05, batches of 100")
ARMS = (2, 3, 5, 10, 20)
CELLS = tuple((design, arms, gap, 1_000) for design in DESIGNS for arms in ARMS for gap in (0.0, BETTER))
LONG = tuple((design, 5, gap, 10_000) for design in DESIGNS for gap in (0.0, BETTER))
RATES = (0.01, 0.1, 0.5)
LIFTS = tuple((design, rate, lift, 4_000) for design in DESIGNS for rate in RATES for lift in (0.0, 0.3))
JOBS = tuple(("contrasts", *cell) for cell in (*CELLS, *LONG)) + tuple(("lifts", *cell) for cell in LIFTS)
Array = NDArray[np.float64]


def design_of(name: str, prior: str) -> Any:
    """The design of a cell."""
    import adaptinf as ai

    return {
        DESIGNS[0]: ai.designs.EpsilonGreedy(exploration=0.2),
        DESIGNS[1]: ai.designs.Thompson(prior=prior, floor=0.05),
        DESIGNS[2]: ai.designs.Thompson(prior=prior, floor=0.05, batch_size=100),
    }[name]


def block(job: tuple[int, int, int]) -> Array:
    """Some runs of a cell, shape (runs, 4)."""
    import adaptinf as ai

    cell, start, stop = job
    kind, name, second, gap, horizon = JOBS[cell]
    seed = np.random.SeedSequence(SEED, spawn_key=(cell,))
    if kind == "contrasts":
        means = np.zeros(int(second))
        means[1] = gap
        env: Any = ai.environments.NormalArms(means)
    else:
        means = np.array([second, second * (1.0 + gap)])
        env = ai.environments.BernoulliArms(means)
    logs = design_of(name, "normal" if kind == "contrasts" else "beta").logs(
        env, horizon, stop, seed, start=start
    )
    measured = contrasts if kind == "contrasts" else lifts
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.array([measured(log, means, name == DESIGNS[2]) for log in logs])


def kept_block(job: tuple[int, int, int], folder: Path) -> Array:
    """A block from the folder, where it is computed once."""
    path = folder / f"{job[0]}_{job[1]}_{job[2]}.npy"
    if not path.exists():
        found = block(job)
        with (part := path.with_suffix(".part")).open("wb") as file:
            np.save(file, found)
        part.replace(path)
    return np.asarray(np.load(path))


def contrasts(log: Any, means: Array, batched: bool) -> list[float]:
    """Whether all intervals hold at once, by rows and by sums; the share of single ones; cautioned."""
    import adaptinf as ai

    truth = means[1:] - means[0]
    found = ai.Contrasts(log, control=log.arms[0]).fit()
    summed = ai.Contrasts(ai.Sums.of_log(log), control=log.arms[0]).fit() if batched else None
    single = found.conf_int(LEVEL).to_numpy()
    inside = np.mean((single[:, 0] <= truth) & (truth <= single[:, 1]))
    by_sums = math.nan if summed is None else together(summed, truth)
    return [together(found, truth), by_sums, float(inside), float(bool(found.cautions))]


def together(found: Any, truth: Array) -> float:
    """Whether all simultaneous intervals hold; terms without a standard error are omitted.

    The chance of any rejection at the smallest p-value lies between it and Bonferroni's multiple of it.
    """
    law, tail, _ = found._family("evidence", "max-t", 1, 0)
    logs = np.array([law.log_pvalues(float(value))[place] for place, value in enumerate(truth)])
    known = np.isfinite(logs)
    if not known.any():
        return math.nan
    least = float(np.exp(logs[known].min()))
    if least > LEVEL or known.sum() * least <= LEVEL:
        return float(least > LEVEL)
    return float(tail(least) > LEVEL)


def lifts(log: Any, means: Array, batched: bool) -> list[float]:
    """Whether the interval holds, NaN where refused; refused; cautioned."""
    import adaptinf as ai

    found = ai.Contrasts(log, control=log.arms[0]).fit(lift=True)
    low, high = found.conf_int(LEVEL).to_numpy()[0]
    refused = math.isnan(low)
    truth = means[1] / means[0] - 1.0
    inside = math.nan if refused else float(low <= truth <= high)
    return [inside, float(refused), float(bool(found.cautions)), math.nan]


def row(job: tuple[Any, ...], found: Array) -> str:
    """A line of the tables; found (runs, 4)."""
    kind, name, second, gap, horizon = job
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        share = np.nanmean(found, axis=0)
    if kind == "contrasts":
        by_sums = "" if math.isnan(share[1]) else f"{share[1]:.4f}"
        label = f"{name}, {second} arms, {'one better' if gap else 'equal'}, {horizon:,} rounds"
        return f"| {label} | {share[0]:.4f} | {by_sums} | {share[2]:.4f} | {share[3]:.2f} |"
    inside = "" if math.isnan(share[0]) else f"{share[0]:.4f}"
    label = f"{name}, rate {second:g}, lift {gap:g}"
    return f"| {label} | {inside} | {share[1]:.3f} | {share[2]:.2f} |"


def short(found: Array, column: int, aim: float) -> bool:
    """Whether coverage is below a target by three Monte Carlo errors."""
    known = found[:, column][~np.isnan(found[:, column])]
    return len(known) > 0 and known.mean() < aim - 3.0 * math.sqrt(aim * (1.0 - aim) / len(known))


def page(jobs: list[int], counted: list[Array], runs: int) -> str:
    parts = {
        kind: [k for k, job in enumerate(jobs) if JOBS[job][0] == kind] for kind in ("contrasts", "lifts")
    }
    lines = {kind: "\n".join(row(JOBS[jobs[k]], counted[k]) for k in part) for kind, part in parts.items()}
    below = [k for k in parts["contrasts"] if short(counted[k], 0, 0.94) or short(counted[k], 1, 0.94)]
    told = sum(counted[k][:, 3].mean() > 0.5 for k in below)
    weak = [k for k in parts["lifts"] if short(counted[k], 0, 0.93)]
    cautioned = sum(counted[k][:, 2].mean() > 0.5 for k in weak)
    return f"""# All arms against a control

Command: `{COMMAND}`. Seed: {SEED}. Date: {evidence.stamp()}.

Rewards are normal with variance 1 and mean 0, and the second arm is better by {BETTER} or not at all; each
row is based on {runs:,} logs. *At once* is the share of logs in which all differences from the first arm lie
in the intervals of `Contrasts` with its defaults. *from sums* is the same for `Sums` of the log, under the
batched design. *single* is the mean coverage of individual 95% intervals; *cautioned* is the share of logs
whose table carries a caution. With 20 arms, a floor of .05 implies uniform assignment.

{len(parts["contrasts"]) - len(below)} of {len(parts["contrasts"])} rows have simultaneous coverage of at
least .94, less three Monte Carlo errors; of the others, {told} of {len(below)} carry a caution in most logs.

| design | at once | from sums | single | cautioned |
| --- | ---: | ---: | ---: | ---: |
{lines["contrasts"]}

## Lifts

There are two arms with 0/1 rewards and 4,000 rounds; rows differ in the control's rate and the true lift. A
lift is refused if there are fewer than 20 events in either arm, or if the control's mean is within 3 standard
errors of 0; *covered* is the coverage of the available intervals. {len(parts["lifts"]) - len(weak)} of
{len(parts["lifts"])} rows have coverage of at least .93, less three Monte Carlo errors; of the others,
{cautioned} of {len(weak)} carry a caution in most logs.

| design | covered | refused | cautioned |
| --- | ---: | ---: | ---: |
{lines["lifts"]}
"""


def main() -> None:
    parser = evidence.parser(__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--runs", type=int, default=FULL, help="logs a row; all take some two hours of processor time"
    )
    parser.add_argument("--folder", type=Path, help="for blocks of logs")
    options = parser.parse_args()
    runs = QUICK if options.quick else options.runs
    jobs = [0, 2, len(CELLS) + len(LONG) + 2] if options.quick else list(range(len(JOBS)))
    parts = [(job, start, min(start + BLOCK, runs)) for start in range(0, runs, BLOCK) for job in jobs]
    with evidence.folder(options.folder, __file__, options.quick) as folder:
        folder.mkdir(parents=True, exist_ok=True)
        with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
            found = list(pool.map(functools.partial(kept_block, folder=folder), parts))
    counted = [
        np.concatenate([rows for rows, part in zip(found, parts, strict=True) if part[0] == job])
        for job in jobs
    ]
    text = page(jobs, counted, runs)
    evidence.publish(text, __file__, options)
    if options.quick:
        label = f"{DESIGNS[0]}, 2 arms, equal, 1,000 rounds"
        evidence.hold_cell(text, __file__, label, "at once", (runs, FULL))


if __name__ == "__main__":
    main()
