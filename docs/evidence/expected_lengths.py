"""Lengths that `recommend` expects beside those of the fits: makes docs/evidence/expected_lengths.md.

Six designs with two arms; "all" also asks for the lengths that are withheld because an arm has too few
effective rewards or events.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator

import evidence
import numpy as np

from adaptinf import recommend
from adaptinf.designs import Design, EpsilonGreedy, Thompson
from adaptinf.errors import AdaptinfWarning, InvalidForLog
from adaptinf.inference.arms import arm_lengths
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments import BernoulliArms

SEED, ROUNDS, LOGS, QUICK = 20_261_201, 2_000, 6, 3
DESIGNS: dict[str, tuple[Callable[[], Design], tuple[float, float]]] = {
    "Thompson, floor t^-.7 / 3": (lambda: Thompson(floor=(1 / 3, 0.7)), (0.3, 0.5)),
    "Thompson, floor t^-.5 / 2": (lambda: Thompson(floor=(0.5, 0.5)), (0.3, 0.5)),
    "Thompson, floor .1": (lambda: Thompson(floor=0.1), (0.3, 0.5)),
    "epsilon-greedy, t^-.7": (lambda: EpsilonGreedy(exploration=1.0, decay=0.7), (0.3, 0.5)),
    "epsilon-greedy, .1": (lambda: EpsilonGreedy(exploration=0.1), (0.3, 0.5)),
    "epsilon-greedy, .1, 1%": (lambda: EpsilonGreedy(exploration=0.1), (0.01, 0.01)),
}
HEADS = "| design | scores | without length | all scores | sequences |"
HELD = "Thompson, floor .1"


def ratios(log: AdaptiveLog) -> Iterator[tuple[str, float]]:
    """Kind of method, and the expected length of its intervals divided by that of the fit; NaN if unknown."""
    for target, pair in (("arm-means", {}), ("contrast", {"treatment": 1, "control": 0})):
        for one in recommend(log, target, **pair).methods:
            name = one.verdict.name
            kind = "sequences" if "sequence" in name else "scores" if "ipw with" in name else ""
            if not one.verdict.valid or not kind:
                continue
            try:
                ends = one.run().conf_int().to_numpy()
            except InvalidForLog:
                continue
            own = (ends[:, 1] - ends[:, 0])[np.isfinite(ends).all(axis=1)]
            if own.size and not np.isinf(one.verdict.length):
                yield kind, one.verdict.length / float(own.mean())


def row(design: str, number: int) -> str:
    """A row of the page: the range of the middle four fifths of the ratios."""
    made, rates = DESIGNS[design]
    found: dict[str, list[float]] = {"scores": [], "sequences": [], "all": []}
    usual = arm_lengths.foreseeable
    for seed in np.random.SeedSequence([SEED, *design.encode()]).spawn(number):
        log = made().run(BernoulliArms(list(rates)), horizon=ROUNDS, rng=np.random.default_rng(seed))
        for kind, ratio in ratios(log):
            found[kind].append(ratio)
        again = AdaptiveLog.from_arrays(
            log.arrays, arms=log.arms, reward_range=log.reward_range, design=log.design
        )
        arm_lengths.foreseeable = lambda question, freedom: True
        found["all"] += [ratio for kind, ratio in ratios(again) if kind == "scores"]
        arm_lengths.foreseeable = usual
    cells = [design]
    for kind in ("scores", "all", "sequences"):
        values = np.array(found[kind])
        known = values[np.isfinite(values)]
        low, middle, high = np.quantile(known, (0.1, 0.5, 0.9)) if known.size else 3 * [np.nan]
        cells.append(f"{middle:.2f} ({low:.2f} to {high:.2f})" if known.size else "")
        if kind == "scores":
            cells.append(f"{np.mean(~np.isfinite(values)):.2f}")
    return f"| {' | '.join(cells)} |"


PAGE = """# Expected lengths of intervals

Command: `{command}`. Seed: {seed}. Date: {stamp}. Processor time: {seconds:.0f} s.

The lengths of `recommend` divided by those of the fits, for all methods for arm means and contrasts with
AIPW and IPW (*scores*) and all sequences, over 6 logs of 2,000 rounds with success rates .3 and .5 or, in the
last row, 1%. The median is followed by the range of the middle four fifths. If an arm has at most 10
effective rewards, or fewer than 10 effective events, methods with scores state no length: *without length* is
the share of such rows, and *all scores* shows what the lengths would be.

{heads}
| --- | ---: | ---: | ---: | ---: |
{rows}

With so few effective rewards, standard errors vary by half, the outcome model is imprecise, and intervals are
corrected for skewness or based on counts.
"""


def main() -> None:
    options = evidence.parser(__doc__).parse_args()
    started = time.process_time()
    warnings.simplefilter("ignore", AdaptinfWarning)
    names = [HELD] if options.quick else list(DESIGNS)
    page = PAGE.format(
        command="python docs/evidence/expected_lengths.py",
        seed=SEED,
        rows="\n".join(row(name, QUICK if options.quick else LOGS) for name in names),
        stamp=evidence.stamp(),
        seconds=time.process_time() - started,
        heads=HEADS,
    )
    if options.quick:
        now, then = (float(text.split()[0]) for text in (
            evidence.cell(page, HELD, "scores"), evidence.committed(__file__, HELD, "scores")))  # fmt: skip
        evidence.hold("median ratio", (now, 0.02), (then, 0.02))
    evidence.publish(page, __file__, options)


if __name__ == "__main__":
    main()
