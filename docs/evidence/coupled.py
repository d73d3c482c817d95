"""Neighbouring live trials of every private design, coupled: makes docs/evidence/coupled.md.

Chosen before measuring: the designs of `designs` at epsilon .5, 1 and 4, all kinds of neighbours that apply,
the default number of pairs. `audit.coupled` runs two trials with equal coins, shifts the noise of one until
both release the same, and compares every covered output to the last bit. With --quick one pair of values and
of contexts of a few designs. Ends with 1 if an output differs or a cost is above the promise.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import evidence
import numpy as np
from joblib import Parallel, delayed

from adaptinf.audit import Coupled, coupled
from adaptinf.designs import (
    DPBAI,
    DPNAS,
    DPConSE,
    LinPriv,
    Mixture,
    PrivateSuccessiveElimination,
    PrivateUCB,
)

SEED = 20_261_126
FEATURES = ((1.0, 0.0), (0.0, 1.0), (0.6, 0.7), (0.3, 0.9), (0.8, 0.2))
"""Five arms in two coordinates, so a first phase pulls a collection and not all arms."""
KINDS = ("value", "context", "early", "late", "never", "amended", "erased")
QUICK = ("DPConSE, epsilon 1", "PrivateUCB, binary counter, epsilon 4", "DPNAS, epsilon 1")
COLUMNS = "| design | neighbours | pairs | in files | largest cost | promised | outputs compared | agree |"


def designs() -> dict[str, Any]:
    """What is coupled; elimination with the shortest epochs that there are."""
    ucb, records = PrivateUCB(epsilon=1.0), DPConSE(epsilon=1.0, first_window=4)
    phases = DPBAI(epsilon=1.0, features=FEATURES)
    return {
        "PrivateUCB, epsilon .5": PrivateUCB(epsilon=0.5),
        "PrivateUCB, epsilon 1": ucb,
        "PrivateUCB, binary counter, epsilon 4": PrivateUCB(epsilon=4.0, counter="binary"),
        "PrivateSuccessiveElimination, epsilon 1": PrivateSuccessiveElimination(epsilon=1.0, beta=1.0),
        "PrivateSuccessiveElimination, epsilon 4": PrivateSuccessiveElimination(epsilon=4.0, beta=1.0),
        "DPConSE, epsilon 1": DPConSE(epsilon=1.0),
        "DPConSE, several windows, epsilon 1": records,
        "DPConSE, several windows, epsilon 4": DPConSE(epsilon=4.0, first_window=4),
        "DPConSE, one context, epsilon 1": DPConSE(epsilon=1.0, contrast_share=1.0),
        "LinPriv, epsilon 1": LinPriv(epsilon=1.0),
        "LinPriv, three coordinates, epsilon 4": LinPriv(epsilon=4.0, dimension=3, counter="binary"),
        "DPBAI, epsilon 1": phases,
        "DPNAS, epsilon 1": DPNAS(epsilon=1.0, alpha=0.5, beta=0.2, steps="exponential"),
        "DPNAS, every sample, epsilon 4": DPNAS(epsilon=4.0, alpha=0.9, beta=0.5),
        "Mixture of PrivateUCB, epsilon 1": Mixture(ucb, exploration=0.2),
        "Mixture of PrivateSuccessiveElimination, epsilon 4": Mixture(
            PrivateSuccessiveElimination(epsilon=4.0, beta=1.0), exploration=0.1
        ),
        "Mixture of DPConSE, epsilon 1": Mixture(records, exploration=0.2),
        "Mixture of LinPriv, epsilon 1": Mixture(LinPriv(epsilon=1.0), exploration=0.2),
        "Mixture of DPBAI, epsilon 1": Mixture(phases, exploration=0.2),
    }


@dataclass(frozen=True)
class Measured:
    """A design, what its couplings found, and the seconds of processor that they took."""

    name: str
    found: Coupled
    seconds: float


def measured(name: str, design: Any, number: int, quick: bool) -> Measured:
    """A default call, or of a quick run one pair of values and of whole records."""
    rng = np.random.SeedSequence(SEED, spawn_key=(number,))
    begun = time.process_time()
    if quick:
        kinds = ("value", "context") if isinstance(design, DPConSE) else ("value",)
        found = coupled(design, kinds, pairs=1, rng=rng)
    else:
        found = coupled(design, rng=rng)
    return Measured(name, found, time.process_time() - begun)


def rows(one: Measured) -> list[str]:
    """Rows of the table, by kind."""
    lines = []
    for kind in KINDS:
        pairs = [pair for pair in one.found.pairs if pair.kind == kind]
        if not pairs:
            continue
        agreeing, worst = sum(pair.agrees for pair in pairs), max(pairs, key=lambda pair: pair.cost)
        cells = (
            one.name,
            kind,
            f"{len(pairs)}",
            f"{sum(pair.files for pair in pairs)}",
            f"{worst.cost:.4f}",
            f"{worst.promised.epsilon:g}",
            f"{sum(pair.outputs for pair in pairs):,}",
            "all" if agreeing == len(pairs) else f"{agreeing} of {len(pairs)}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def disagreements(results: list[Measured]) -> str:
    """The first disagreement of each design and kind; a line that says so if there is none."""
    lines = []
    for one in results:
        for kind in KINDS:
            told = [pair for pair in one.found.pairs if pair.kind == kind and not pair.agrees]
            if told:
                lines.append(f"- {one.name}, {kind}: {told[0].differs}. `{told[0].disagreement}`")
    return "\n".join(lines) if lines else "There is none."


def main() -> None:
    """Couple, and write the page."""
    asked = evidence.parser(__doc__)
    asked.add_argument("--jobs", type=int, default=2)
    options = asked.parse_args()
    begun = time.time()
    chosen = [
        (name, design, number, options.quick)
        for number, (name, design) in enumerate(designs().items())
        if not options.quick or name in QUICK
    ]
    work = Parallel(n_jobs=1 if options.quick else options.jobs)
    results: list[Measured] = work(delayed(measured)(*each) for each in chosen)
    pairs = [pair for one in results for pair in one.found.pairs]
    slowest = max(results, key=lambda one: one.seconds)
    page = PAGE.format(
        seed=SEED,
        stamp=evidence.stamp(),
        pairs=f"{len(pairs):,}",
        kept=f"{sum(not pair.refuted for pair in pairs):,} of {len(pairs):,}",
        share=f"{max(one.found.share for one in results):.4f}",
        outputs=f"{sum(pair.outputs for pair in pairs):,}",
        columns=COLUMNS,
        rows="\n".join(line for one in results for line in rows(one)),
        disagreements=disagreements(results),
        slowest=f"{slowest.seconds:.0f} ({slowest.name})",
        minutes=f"{(time.time() - begun) / 60.0:.0f}",
    )
    evidence.publish(page, __file__, options)
    if options.quick:
        evidence.hold_cell(page, __file__, "DPConSE, epsilon 1 | context", "largest cost")
    if any(pair.refuted for pair in pairs):
        raise SystemExit(1)


PAGE = """# Neighbouring live trials, coupled

Command: `python docs/evidence/coupled.py`. Seed: {seed}. Date: {stamp}.

`audit.coupled` runs two live trials that differ in one participant, with equal coins and with supplied
whole-number noise. The second trial's noise is shifted, draw by draw, until both release the same values.
Arms, propensities if they are covered, names and scales of all draws, the full output of `public()` and its
files, half-way and at the end, and the status of a trial must then agree to the last bit, in addition to the
releases. The cost is the sum of abs(shift) / scale, with the scales as drawn. {kept} pairs agree at no more
than the guaranteed cost; {outputs} outputs were compared, and the largest cost is {share} of the guarantee
for its pair.

This demonstrates an alignment only for these pairs, coins and noise. Because the noise is supplied, a design
passes even if its real noise is removed: a coupling is evidence only together with tests of the distribution,
the scale as drawn, independence, support and lattice.

Neighbouring trials differ in one outcome (`value`), or in an outcome and its context (`context`); in an
outcome that arrives earlier in its window (`early`), after it (`late`) or `never`; in an outcome that is
`amended`; or in a participant who is `erased`. For `context`, the relevant guarantee is the one for records;
otherwise, it is the one for rewards. All pairs are run as sessions, and some also as trials in files. Designs
that wait for each outcome do not support trials in files, and `DPNAS` reads streams, in which a sample is
changed or missing.

{columns}
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |
{rows}

## First disagreements

{disagreements}

The longest call took {slowest} seconds of processor time, and the page took {minutes} minutes on a machine
that was also doing other work.
"""


if __name__ == "__main__":
    main()
