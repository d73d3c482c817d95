"""How fast analyses are beside what cannot be much faster: makes docs/evidence/limits.md.

Each analysis runs in a process of its own, of this library and of another checkout (--before); the limit is
measured in turn with it, within the same process (tests/benchmarks/bench_growth.py).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

import evidence

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "benchmarks"))
from bench_growth import ARMS, GROUPS, ROWS, SEED, Case, Found, exponent, measure

COMMAND = "python docs/evidence/limits.py --before CHECKOUT"
MANY, ROUNDS = 3.0, 100_000
GROWTH = 1.1
BEGIN, END = "<!-- made by limits.py -->", "<!-- end of limits.py -->"
Sizes = dict[int, Case]
AIMS = {"AdaptiveOLS": {10_000: 2.0, 1_000_000: 1.3}}


def by_arms(name: str) -> Sizes:
    return {arms: Case(name, ROUNDS, arms) for arms in ARMS}


def by_groups() -> Sizes:
    return {groups: Case("CATE", ROUNDS, groups=groups) for groups in GROUPS}


def by_rows(name: str) -> Sizes:
    return {rows: Case(name, rows) for rows in (ROWS[0], ROWS[-1])}


def alone(case: Case, library: Path | None, repeats: int) -> Found:
    """`measure` in a process of its own, of this library or of another checkout."""
    return Found(**evidence.alone(__file__, library, json.dumps([asdict(case), repeats])))


Pair = tuple[Found, Found | None]


def both(case: Case, options: argparse.Namespace, repeats: int = 5) -> Pair:
    """Now, and before."""
    now = alone(case, None, repeats)
    return now, alone(case, options.before, repeats) if options.before else None


def shown(found: Found | None, what: str) -> str:
    if found is None:
        return "-"
    return {"own": f"{found.own:,.1f}", "limit": f"{found.limit:,.1f}", "logs": f"{found.logs:.2f}"}[what]


def growth_table(names: dict[str, Sizes], of: str, options: argparse.Namespace) -> str:
    """Milliseconds by size, and the ratio of the largest to the smallest."""
    lines = []
    for name, sizes in names.items():
        found = {size: both(case, options) for size, case in sizes.items()}
        for place, versions in (("before", 1), ("now", 0)):
            own = [pair[versions] for pair in found.values()]
            if any(one is None for one in own):
                continue
            times = [one.own for one in own if one is not None]
            cells = " | ".join(f"{one:,.0f}" for one in times)
            lines.append(f"| {name} | {place} | {cells} | {times[-1] / times[0]:.1f} | {MANY:.0f} |")
        bound = [pair[0].limit for pair in found.values()]
        cells = " | ".join(f"{one:,.1f}" for one in bound)
        lines.append(f"| {name} | one pass of NumPy | {cells} | {bound[-1] / bound[0]:.1f} | |")
    heads = " | ".join(f"{size:,} {of}" for size in next(iter(names.values())))
    rule = " | ".join("---:" for _ in range(len(next(iter(names.values()))) + 2))
    return "\n".join([f"| analysis | | {heads} | last / first | aim |", f"| --- | --- | {rule} |", *lines])


def rows_table(names: tuple[str, ...], options: argparse.Namespace) -> str:
    """Exponents in rows, and memory at the largest size."""
    head = "| analysis | before, exponent | now, exponent | aim | before, logs | now, logs | aim |"
    lines = [head, "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for name in names:
        found = {
            rows: both(case, options, 1 if rows == ROWS[-1] else 5) for rows, case in by_rows(name).items()
        }
        largest = found[max(found)]
        slopes = []
        for version in (1, 0):
            times = {rows: pair[version] for rows, pair in found.items()}
            known = {rows: one.own for rows, one in times.items() if one is not None}
            slopes.append(f"{exponent(known):.2f}" if known else "-")
        logs = [shown(largest[version], "logs") for version in (1, 0)]
        lines.append(f"| {name} | {slopes[0]} | {slopes[1]} | {GROWTH} | {logs[0]} | {logs[1]} | 1 |")
    return "\n".join(lines)


def regression_table(options: argparse.Namespace, sizes: tuple[int, ...]) -> str:
    """Least squares beside statsmodels."""
    lines = ["| rows | before, ms | now, ms | statsmodels, ms | before | now | aim |", "| ---: " * 7 + "|"]
    for rows in sizes:
        now, then = both(Case("AdaptiveOLS", rows), options)
        ratios = ["-" if one is None else f"{one.own / one.limit:.1f}" for one in (then, now)]
        times = f"{shown(then, 'own')} | {shown(now, 'own')} | {shown(now, 'limit')}"
        lines.append(f"| {rows:,} | {times} | {ratios[0]} | {ratios[1]} | {AIMS['AdaptiveOLS'][rows]} |")
    return "\n".join(lines)


def recommend_line(options: argparse.Namespace) -> str:
    now, then = both(Case("recommend", 10_000), options, 15)
    return (
        f"`recommend` with 10,000 rows: {shown(then, 'own')} ms before, {shown(now, 'own')} ms now; the "
        "target was half."
    )


def page(options: argparse.Namespace) -> str:
    """The page."""
    quick = options.quick
    arms = {} if quick else {name: by_arms(name) for name in ("Contrasts", "diagnose", "ArmMeans")}
    names = () if quick else ("Contrast", "CATE", "AdaptiveOLS")
    parts = [
        growth_table(arms, "arms", options) if arms else "",
        growth_table({"CATE": by_groups()}, "groups", options),
        regression_table(options, (10_000,) if quick else (10_000, 1_000_000)),
        "" if quick else rows_table(names, options),
        recommend_line(options),
    ]
    load = ", ".join(f"{one:.2f}" for one in os.getloadavg())
    return f"""# Speed beside the limit

{BEGIN}

Command: `{COMMAND}`. Seed: {SEED}. Date: {evidence.stamp()}. Times are processor milliseconds on a machine
with two cores; its load when the page was written: {load}. The figures are medians; each analysis uses a log
for which nothing has been computed yet, in a process that has already analysed a smaller log. *Before* is the
library at commit {evidence.commit_of(options.before) or "-"}.

## Analyses in arms and groups

The logs have {ROUNDS:,} rows in 20 batches, with every arm's propensity. The limit is the time of one pass by
NumPy, which sums each column of the log.

{parts[0]}

{parts[1]}

## Least squares beside statsmodels

`AdaptiveOLS` of a log that did not adapt, with three covariates, checks and cautions, is compared with
statsmodels' `OLS`, which gives the same coefficients, HC2 errors, p-values and intervals without any checks.

{parts[2]}

## Rows and memory

The table shows the exponent of time in the number of rows from {ROWS[0]:,} to {ROWS[-1]:,} rows of two arms;
1 means proportional growth. *Logs* is the peak of memory above the log at {ROWS[-1]:,} rows, as requested by
Python and NumPy, in multiples of the size of the log.

{parts[3]}

{parts[4]}

{END}
"""


def main() -> None:
    """Measure and write."""
    parser = evidence.parser(__doc__)
    parser.add_argument("--before", type=Path, help="another checkout of the library, to compare with")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        case, repeats = json.loads(options.one)
        print(json.dumps(asdict(measure(Case(**case), repeats))))
        return
    evidence.publish(page(options), __file__, options, between=(BEGIN, END))


if __name__ == "__main__":
    main()
