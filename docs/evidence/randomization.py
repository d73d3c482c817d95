"""Level and power of randomisation tests: makes docs/evidence/randomization.md.

P-values are kept in a folder, 640 logs a file, as soon as they are there: a run that was stopped goes on.
"""

from __future__ import annotations

import dataclasses
import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import evidence
import numpy as np
from joblib import Parallel, delayed
from scipy import stats

from adaptinf.audit.randomization.randomization_tests import randomization_test
from adaptinf.designs.arms.play_the_winner import PlayTheWinner
from adaptinf.designs.arms.posterior import Thompson
from adaptinf.designs.arms.ucb import UCB, PrivateUCB
from adaptinf.designs.arms.uniform import EpsilonGreedy
from adaptinf.designs.base import Design
from adaptinf.designs.contextual.private_conse import DPConSE
from adaptinf.simulation.environment import Environment
from adaptinf.simulation.environments import BernoulliArms, FiniteContext, NormalArms

SEED = 20_261_121
RE_RUNS, LEVEL = 199, 0.05
BAND = (0.043, 0.057)
ENOUGH = 10_000
SHARE = 640
COMMAND = "python docs/evidence/randomization.py"

EQUAL, BETTER = BernoulliArms([0.5, 0.5]), BernoulliArms([0.45, 0.6])
NORMAL, HIGHER = NormalArms([0.0, 0.0]), NormalArms([0.0, 0.3])
SITES = FiniteContext([0.5, 0.5], [[0.4, 0.4], [0.6, 0.6]])
TREATED = FiniteContext([0.5, 0.5], [[0.35, 0.45], [0.55, 0.65]])


@dataclass(frozen=True)
class Cell:
    """A design with equal arms and with one alternative, and a statistic."""

    design: Design
    null: Environment
    alternative: Environment
    horizon: int
    form: str
    statistic: str = "studentised"

    @property
    def label(self) -> str:
        """Name of the row: the design with what differs from its defaults."""
        values = {one.name: getattr(self.design, one.name) for one in dataclasses.fields(self.design)}
        defaults = {one.name: one.default for one in dataclasses.fields(self.design)}
        given = ", ".join(f"{name}={value!r}" for name, value in values.items() if value != defaults[name])
        return f"{type(self.design).__name__}({given})"


CELLS = (
    Cell(Thompson(prior="normal"), NORMAL, HIGHER, 300, "assignment"),
    Cell(Thompson(draws=10), EQUAL, BETTER, 60, "assignment"),
    Cell(EpsilonGreedy(exploration=0.1), EQUAL, BETTER, 1_000, "assignment"),
    Cell(DPConSE(epsilon=1.0), SITES, TREATED, 1_000, "assignment"),
    Cell(PlayTheWinner(), EQUAL, BETTER, 200, "assignment"),
    Cell(UCB(), EQUAL, BETTER, 1_000, "order"),
    Cell(UCB(width=0.3), EQUAL, BETTER, 300, "order"),
    Cell(UCB(width=0.3), EQUAL, BETTER, 300, "order", "pulls"),
    Cell(PrivateUCB(epsilon=1.0), EQUAL, BETTER, 300, "order"),
)


def p_values(cell: Cell, env: Environment, number: int, start: int, stop: int, folder: Path) -> np.ndarray:
    """P-values of logs `start` to `stop`; the seed of a test is that of its log's number."""
    about = zlib.crc32(repr((cell, env.means.tolist(), RE_RUNS, SEED)).encode())
    path = folder / f"{number}_{about:08x}_{start}_{stop}.npy"
    if path.exists():
        return np.load(path)
    root = np.random.SeedSequence(SEED, spawn_key=(number, 0))
    found = []
    for run, log in enumerate(cell.design.logs(env, cell.horizon, stop, root, start), start):
        seed = np.random.SeedSequence(SEED, spawn_key=(number, 1, run))
        test = randomization_test(
            log, cell.design, cell.statistic, cell.form, RE_RUNS, seed, treatment=1, control=0
        )
        found.append(test.pvalue)
    part = path.with_suffix(".part.npy")
    np.save(part, np.array(found))
    part.rename(path)
    return np.array(found)


def rejections(cell: Cell, env: Environment, number: int, runs: int, n_jobs: int, folder: Path) -> int:
    """Logs whose p-value is at most the level."""
    spans = [(start, min(runs, start + SHARE)) for start in range(0, runs, SHARE)]
    parts = Parallel(n_jobs=n_jobs)(
        delayed(p_values)(cell, env, number, start, stop, folder) for start, stop in spans
    )
    return int((np.concatenate(parts) <= LEVEL + 1e-12).sum())


def rows(numbers: Iterable[int], null_runs: int, power_runs: int, n_jobs: int, folder: Path) -> Iterator[str]:
    """One line of the table a cell."""
    for number in numbers:
        cell, begin = CELLS[number], time.perf_counter()
        hits = rejections(cell, cell.null, 2 * number, null_runs, n_jobs, folder)
        power = rejections(cell, cell.alternative, 2 * number + 1, power_runs, n_jobs, folder)
        share, error = hits / null_runs, np.sqrt(LEVEL * (1 - LEVEL) / null_runs)
        p = stats.binomtest(hits, null_runs, LEVEL).pvalue
        found = power / power_runs
        spread = np.sqrt(found * (1 - found) / power_runs)
        inside = "yes" if BAND[0] <= share <= BAND[1] else "**no**"
        inside = inside if null_runs >= ENOUGH else "too few logs"
        print(f"{cell.label} {cell.statistic}: {share:.4f}, {time.perf_counter() - begin:.0f} s", flush=True)
        yield (
            f"| `{cell.label}` | {cell.form} | {cell.statistic} | {cell.horizon:,} "
            f"| {share:.4f} ± {error:.4f} | {inside} | {p:.2f} | {found:.3f} ± {spread:.3f} |"
        )


PAGE = """# Randomisation tests: level and power

Command: `{command}`. Seed: {seed}. Date: {date}.

Each row is based on {null_runs:,} logs with equal arms and {power_runs:,} under one alternative; there are
{re_runs} reruns per test, ties are broken by coins, and a test rejects if $p\\le{level:g}$. If the argument
holds, the level is exactly $10/200={level:g}$, so the rejection rate is a binomial proportion; the table
gives its standard error, and the p-value of a two-sided binomial test against {level:g}. With 10,000 logs,
the rate must lie in [{low}, {high}], that is, within 3.2 standard errors.

| design | re-run by | statistic | rounds | rejected, equal | within | binomial p | rejected, unequal |
| --- | --- | --- | --- | --- | --- | --- | --- |
{table}

Equal arms have Bernoulli .5 or normal (0, 1) rewards or, for DP-ConSE, Bernoulli .4 and .6 at two sites.
Unequal arms have Bernoulli .45 and .6; normal means 0 and .3; or, for DP-ConSE, .35 and .45 at one site, and
.55 and .65 at the other.
"""


def main() -> None:
    """Run all cells and write the page."""
    parser = evidence.parser(__doc__)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="for the p-values, build/randomization by default")
    given = parser.parse_args()
    null_runs, power_runs = (200, 10) if given.quick else (10_000, 1_000)
    numbers = (1, 7) if given.quick else range(len(CELLS))
    with evidence.folder(given.folder, __file__, given.quick) as folder:
        folder.mkdir(parents=True, exist_ok=True)
        table = "\n".join(rows(numbers, null_runs, power_runs, given.jobs, folder))
    page = PAGE.format(
        command=COMMAND + " --quick" * given.quick,
        seed=SEED,
        date=evidence.stamp(),
        null_runs=null_runs,
        power_runs=power_runs,
        re_runs=RE_RUNS,
        level=LEVEL,
        low=BAND[0],
        high=BAND[1],
        table=table,
    )
    evidence.publish(page, __file__, given)
    if given.quick:
        evidence.hold_cell(
            page, __file__, f"`{CELLS[1].label}` | assignment | studentised | 60", "rejected, equal"
        )


if __name__ == "__main__":
    main()
