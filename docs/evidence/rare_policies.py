"""Intervals of policy values and differences with rare outcomes: makes docs/evidence/rare_policies.md.

Logs are made by the plain NumPy designs of the scoreboard. The policy chooses the second of two equal arms
with probability .75; the difference is its value minus that of always choosing the first arm. "Normal" is the
estimate plus and minus 1.96 standard errors of the same fit.
"""

from __future__ import annotations

import argparse
import time
import warnings

import evidence
import numpy as np

from adaptinf.claims.laws import GAMMA
from adaptinf.errors import AdaptinfWarning
from adaptinf.inference.policies.policy_models import PolicyContrast, PolicyValue
from adaptinf.inference.results.fit_results import Results
from adaptinf.log import AdaptiveLog, LogArrays
from case_studies.scoreboard.designs import DESIGNS
from case_studies.scoreboard.worlds import world

SEED = 20_261_128
COMMAND = "python docs/evidence/rare_policies.py"
POLICY = np.array([0.25, 0.75])
RATE = 0.02
CASES = (("epsilon_greedy", 300), ("epsilon_greedy", 1000), ("epsilon_greedy", 3000),
         ("thompson_floor", 1000), ("coin", 1000))  # fmt: skip
HEADS = "| log | coverage | normal | below | above | width | width, normal | counted | cautioned |"
HELD = "epsilon greedy, T = 1000, value"


def logs(design: str, rounds: int, number: int) -> list[AdaptiveLog]:
    """Logs with two equal arms, of which 2% of the outcomes are 1."""
    rng = np.random.default_rng([SEED, rounds, *design.encode()])
    drawn = world("rare", number, rounds, 2, rng)
    arms, shares, _ = DESIGNS[design](drawn, rng.random((number, rounds)), rng)
    assert shares is not None
    rewards = np.take_along_axis(drawn.outcomes, arms[:, :, None], axis=2)[:, :, 0]
    own = np.take_along_axis(shares, arms[:, :, None], axis=2)[:, :, 0]
    return [
        AdaptiveLog.from_arrays(
            LogArrays(arms[j], rewards[j], propensity=own[j], propensities=shares[j]), arms=("a", "b")
        )
        for j in range(number)
    ]


def row(name: str, fits: list[Results], truth: float) -> str:
    """A row of the page; fits without an interval are left out."""
    ends = np.array([fit.conf_int().to_numpy()[0] for fit in fits])
    given = np.isfinite(ends).all(axis=1)
    centre = np.array([fit.params.iloc[0] for fit in fits])
    half = 1.96 * np.array([fit.bse.iloc[0] for fit in fits])
    low, high = ends[given].T
    normal = np.abs(centre - truth)[given] <= half[given]
    shares = [
        np.mean((low <= truth) & (truth <= high)), normal.mean(), np.mean(high < truth), np.mean(low > truth),
        np.median(high - low), np.median(2 * half[given]),
        np.mean([GAMMA() in fit.reference.name for fit in fits]),
        np.mean([bool(fit.cautions) for fit in fits]),
    ]  # fmt: skip
    digits = (3, 3, 3, 3, 4, 4, 2, 2)
    cells = [f"{share:.{digit}f}" for share, digit in zip(shares, digits, strict=True)]
    return f"| {' | '.join([name, *cells])} |"


def rows(options: argparse.Namespace) -> list[str]:
    """All rows."""
    number = 100 if options.quick else 1_000
    found = []
    for design, rounds in CASES if not options.quick else CASES[1:2]:
        made = logs(design, rounds, number)
        name = f"{design.replace('_', ' ')}, T = {rounds}"
        found.append(row(f"{name}, value", [PolicyValue(log, POLICY).fit() for log in made], RATE))
        pairs = [PolicyContrast(log, POLICY, baseline="a").fit() for log in made]
        found.append(row(f"{name}, difference", pairs, 0.0))
    return found


PAGE = """# Policy values with rare outcomes

Command: `{command}`. Seed: {seed}. Date: {stamp}. Processor time: {seconds:.0f} s.

There are two arms with outcome rates of 2%. The policy chooses the second arm with probability .75; the
estimand is the difference between its value and that of the first arm. Each row is based on 1,000 logs, which
the plain NumPy simulators of the [scoreboard](../studies/scoreboard.md) make. After epsilon-greedy, one arm
has a propensity of .05, so the estimate depends on one or two outcomes with large weights. Without these
outcomes, the estimate and its standard error are both too small: normal intervals lie below the truth.

If the effective number of uncommon rewards is below 10, or a part of an estimate has fewer than 5, intervals
treat these rewards as Poisson counts with weights (Fay and Feuer 1997). *Counted* is the share of such fits,
and *normal* is the coverage of the estimate plus or minus 1.96 standard errors in the same logs. *Below* and
*above* are shares of intervals on either side of the truth. Widths are medians.

{heads}
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
{rows}

Counted intervals are conservative: the upper limit allows for one more event with the largest weight.
"""


def main() -> None:
    options = evidence.parser(__doc__).parse_args()
    started = time.process_time()
    warnings.simplefilter("ignore", AdaptinfWarning)
    found = rows(options)
    page = PAGE.format(
        command=COMMAND,
        seed=SEED,
        stamp=evidence.stamp(),
        seconds=time.process_time() - started,
        heads=HEADS,
        rows="\n".join(found),
    )
    if options.quick:
        now = evidence.measured(evidence.cell(page, HELD, "coverage"), 100)
        then = evidence.measured(evidence.committed(__file__, HELD, "coverage"), 1_000)
        evidence.hold("coverage of values", now, then)
    evidence.publish(page, __file__, options)


if __name__ == "__main__":
    main()
