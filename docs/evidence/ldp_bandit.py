"""The locally private nonparametric bandit: makes docs/evidence/ldp_bandit.md.

Cells are independent of each other: each has a seed of its own, made from its name.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import evidence
import numpy as np

from adaptinf.designs import Uniform
from adaptinf.designs.base import Design
from adaptinf.designs.local.bins import LDPBandit
from adaptinf.designs.local.cube_designs import ABSE
from adaptinf.designs.local.local_linear import LDPLinear
from adaptinf.simulation.environments.vector_arms import SmoothArms
from case_studies.local_privacy.visited import VisitedBinOnly

HERE = Path(__file__).resolve().parent
SEED = 2025
EPSILONS = (1.0, 2.0, 4.0, 8.0, 1024.0)
AUXILIARY = (0, 10_000, 20_000, 50_000, 100_000)
PAGE = """\
# The locally private bandit

Command: `python docs/evidence/ldp_bandit.py{flags}`. Seed: {seed} and the name of the cell. Date: {today}.
Running time: {minutes:.1f} minutes on one core.

The setting is that of Ma et al., Section 4.1: K = 3 arms, contexts uniform on the unit square, and Bernoulli
rewards with the paper's f_k, which depend only on the first coordinate; there are no auxiliary data. Regret
is summed over the contexts that occurred. The increase of regret with n, and its decrease with auxiliary
data, are shown on [another page](ldp_slopes.md).

## Regret at n = {horizon:,}

The figures are means and standard errors of {runs} runs. Uniform choice: {uniform}. ABSE, without privacy and
with a Lipschitz constant of 1, the default: {abse}; with that of the f_k, which is {steepest:.2f}:
{abse_steepest}.

{regret}

The table shows the number of active bins at the end, the number of arms dropped over all bins, and the share
of the square in which only one arm remains:

{shape}

The rows are:

- *corrected*: radii that account for the variance of the noise, constants as in `LDPBandit`. The paper halves
any of
  a bin's longest edges.
- *corrected, first edge*: the first of the longest edges. It helps in this setting because the arms differ
  along the first coordinate, which no design can know.
- *published*: the paper's radius with C_n = 2 log2(n). Bins are halved and arms are dropped because of noise.
- *not private*: as *corrected*, but with noise only in the bin of the context, as in a public implementation.
  Anyone who sees that a bin receives no report knows that the context is not in it. This row is included to
  show the cost of the correct noise, and is not part of the library.
- *LDPLinear*: the locally private generalised linear bandit, with one parameter vector per arm. It has an
  advantage here: arms that are best in bands of one coordinate, one band per arm, can be described by the
  largest of K linear functions. It cannot learn an arm that is best in two bands with another band between
  them.

## Auxiliary data

In this table, epsilon = 1 and n = {horizon:,}, with {runs} runs and one auxiliary log with uniformly drawn
contexts and arms (gamma = 0, kappa = 1), privatised at epsilon = 8. It shows mean regret and standard error
over trials and logs.

{auxiliary}

## Speed

The table shows the processor time of a run with n = {horizon:,} on one core, with code compiled in advance.

{speed}
"""


def seed_of(name: str) -> np.random.SeedSequence:
    return np.random.SeedSequence([SEED, zlib.crc32(name.encode())])


def rows_of(epsilon: float) -> dict[str, Design]:
    return {
        "corrected": LDPBandit(epsilon=epsilon),
        "corrected, first edge": LDPBandit(epsilon=epsilon, axis="first"),
        "published": LDPBandit(epsilon=epsilon, calibration="published"),
        "not private: noise in the visited bin only": VisitedBinOnly(epsilon=epsilon),
        "LDPLinear": LDPLinear(epsilon=epsilon),
    }


# --- tables -------------------------------------------------------------------------------------------------


def told(regret: np.ndarray) -> str:
    return f"{regret.mean():,.0f} ± {regret.std(ddof=1) / math.sqrt(regret.size):,.0f}"


def cell(name: str, design: Design, horizon: int, runs: int) -> Any:
    return design.replicate(SmoothArms(3, 2), horizon, runs, rng=seed_of(name))


def steepest() -> float:
    """Lipschitz constant of the f_k."""
    first = np.linspace(0.0, 1.0, 100_001)
    return float(np.abs(np.gradient(SmoothArms(3, 1).expected(first[:, None]), first, axis=0)).max())


def regret_tables(horizon: int, runs: int) -> tuple[str, str, str]:
    head = "| design | " + " | ".join(f"epsilon = {epsilon:g}" for epsilon in EPSILONS) + " |"
    rule = "| --- |" + " --- |" * len(EPSILONS)
    regret, shape, speed = [head, rule], [head, rule], [head, rule]
    for name in rows_of(1.0):
        cells: list[tuple[str, str, str]] = []
        for epsilon in EPSILONS:
            design = rows_of(epsilon)[name]
            cell(name, design, 10, 1)
            begin = time.process_time()
            sims = cell(f"{name}, {epsilon:g}", design, horizon, runs)
            seconds = (time.process_time() - begin) / runs
            ends = {key: value.mean() for key, value in sims.released.items()}
            bins = "bins" in ends
            form = f"{ends['bins']:.1f} / {ends['dropped']:.1f} / {ends['decided']:.2f}" if bins else ""
            cells.append((told(sims.regret), form, f"{seconds:.3f} s"))
        for table, shown in zip((regret, shape, speed), zip(*cells, strict=True), strict=True):
            if all(shown):
                table.append(f"| {name} | " + " | ".join(shown) + " |")
    gap = LDPBandit(epsilon=1024.0, check_every=100)
    cell("check", gap, 10, 1)
    begin = time.process_time()
    sims = cell("check_every = 100", gap, horizon, runs)
    seconds = (time.process_time() - begin) / runs
    speed.append(f"\n`check_every=100` at epsilon = 1024: {seconds:.3f} s, regret {told(sims.regret)}.")
    return "\n".join(regret), "\n".join(shape), "\n".join(speed)


def auxiliary_table(horizon: int, runs: int, sizes: tuple[int, ...]) -> str:
    """Each run has an auxiliary log of its own."""
    kinds: dict[str, Callable[..., Design]] = {
        "corrected": LDPBandit,
        "published": partial(LDPBandit, calibration="published"),
        "LDPLinear": LDPLinear,
    }
    lines = ["| auxiliary participants | " + " | ".join(kinds) + " |", "| --- |" + " --- |" * len(kinds)]
    arms = SmoothArms(3, 2)
    for size in sizes:
        shown = []
        for kind, build in kinds.items():
            regret = np.empty(runs)
            for run in range(runs):
                name = f"auxiliary, {size}, {kind}, {run}"
                logs = (arms.auxiliary(size, rng=seed_of(name)),) if size else ()
                design = build(epsilon=1.0, auxiliary=logs)
                regret[run] = cell(f"{name}, trial", design, horizon, 1).regret[0]
            shown.append(told(regret))
        lines.append(f"| {size:,} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def main() -> None:
    options = evidence.parser(__doc__).parse_args()
    quick = options.quick
    begin = time.perf_counter()
    horizon, runs = (4_000, 4) if quick else (80_000, 30)
    regret, shape, speed = regret_tables(horizon, runs)
    page = PAGE.format(
        flags=" --quick" if quick else "",
        seed=SEED,
        today=evidence.stamp(),
        horizon=horizon,
        runs=runs,
        uniform=told(cell("uniform", Uniform(), horizon, runs).regret),
        abse=told(cell("ABSE", ABSE(), horizon, runs).regret),
        steepest=steepest(),
        abse_steepest=told(cell("ABSE, steepest", ABSE(lipschitz=steepest()), horizon, runs).regret),
        regret=regret,
        shape=shape,
        auxiliary=auxiliary_table(horizon, runs, (0, 2_000) if quick else AUXILIARY),
        speed=speed,
        minutes=(time.perf_counter() - begin) / 60.0,
    )
    evidence.publish(page, __file__, options)
    if quick:
        regret = cell("corrected, 8", LDPBandit(epsilon=8.0), 80_000, 30).regret
        then = evidence.measured(evidence.committed(__file__, "corrected", "epsilon = 8"))
        now = float(regret.mean()), float(regret.std(ddof=1) / math.sqrt(regret.size))
        evidence.hold("regret of the corrected LDPBandit, epsilon = 8", now, then)


if __name__ == "__main__":
    main()
