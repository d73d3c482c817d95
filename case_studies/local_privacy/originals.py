"""Table 2 on the paper's own data, from local files:

    python -m case_studies.local_privacy.originals --adult FOLDER --jobs FILE --taxi FILE

FOLDER holds UCI's adult.data and adult.test. Jobs and Taxi are CSV files with a column `label`, a column
`source` (0 for the people of the trial, 1, 2, .. for auxiliary data) and features. A twentieth of the trial's
rows becomes public, for the scales, and takes no part; all others come once, in an order of their own.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from case_studies.local_privacy import data, table_2
from case_studies.local_privacy.simulations import CHECK_EVERY

SEED = 2604
PUBLIC_SHARE = 0.05


def tasks(adult: Path | None, jobs: Path | None, taxi: Path | None) -> list[data.Task]:
    """Trials on the sets that are there."""
    given = {} if adult is None else {"Adult": data.adult(adult)}
    named = {"Jobs": jobs, "Taxi": taxi}
    given |= {name: data.prepared(name, path) for name, path in named.items() if path is not None}
    found = []
    for number, (name, rows) in enumerate(given.items()):
        rng = np.random.SeedSequence([SEED, number])
        found.append(data.task(name, data.set_aside(rows, PUBLIC_SHARE, rng)))
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("adult", "jobs", "taxi"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--n-jobs", type=int, default=-1)
    options = parser.parse_args(arguments)
    found = tasks(options.adult, options.jobs, options.taxi)
    if not found:
        parser.error("name the files of a set: --adult, --jobs or --taxi")
    measured = table_2.measure(found, options.runs, SEED, CHECK_EVERY, options.n_jobs)
    ratios = table_2.summary(measured)
    for table in (table_2.baselines(found, measured), ratios, table_2.rank_sums(ratios)):
        print(table.round(3).to_string(index=False), end="\n\n")


if __name__ == "__main__":
    main()
