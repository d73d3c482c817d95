"""Looks with few events, by re-randomisation: makes docs/evidence/looks_ranks.md.

Trials of 200 rounds with success rates of 10%, most of which have too few events at every look. Both arms are
equal, so each rejection is an error. The same replays serve all plans of a trial.
"""

from __future__ import annotations

import itertools
import math
import time

import evidence
import numpy as np
from looks import DRIFTS, LOOKS, Array, Trials, plan_of

from adaptinf.inference.group_sequential.score_process import ScoreProcess, score_process
from adaptinf.plans.replays import follow_by_rank, replayed

SEED, TRIALS, REPLAYS, ROUNDS, LEVEL = 20261128, 1_000, 199, 200, 0.05
COMMAND = "python docs/evidence/looks_ranks.py"
DESIGNS = ("epsilon-greedy .2", "Thompson, floor .05", "top-two Thompson", "DBCD, Neyman")
RULES = ("O'Brien-Fleming", "Pocock")
SETS = tuple(itertools.product(DESIGNS, DRIFTS))
PLANS = tuple(itertools.product(RULES, LOOKS))


def errors(place: int, size: int) -> Array:
    """Rejections of a set of trials by each plan, (plans,)."""
    design, drift = SETS[place]
    trials = Trials(design, "10%", ROUNDS, drift)
    plans = [plan_of(trials, *one) for one in PLANS]
    at, found = np.unique(np.concatenate([plan.looks for plan in plans])), np.zeros(len(plans))
    columns = [np.searchsorted(at, plan.looks) for plan in plans]
    logs = trials.made.logs(trials.world, ROUNDS, size, np.random.SeedSequence([SEED, place]))
    for number, log in enumerate(logs):
        arrays = log.arrays
        scores = score_process(arrays.action, arrays.reward, arrays.propensities, (1, 0), at)
        replays = replayed(trials.made, arrays.reward, 2, ROUNDS, (1, 0), at, REPLAYS, number, 2)
        for row, (plan, own) in enumerate(zip(plans, columns, strict=True)):
            seen = ScoreProcess(*(one[own] for one in scores))
            found[row] += follow_by_rank(seen, replays[:, own], plan.rule).decision == "reject"
    return found


def limit(size: int) -> float:
    """The level and three Monte Carlo errors."""
    return LEVEL + 3.0 * math.sqrt(LEVEL * (1.0 - LEVEL) / size)


def page(size: int) -> tuple[str, bool]:
    """The page, and whether it is as it should be."""
    begun = time.process_time()
    shares = np.array([errors(place, size) for place in range(len(SETS))]) / size
    rows = [
        f"| {' | '.join([*one, *(f'{share:.3f}' for share in row)])} |"
        for one, row in zip(SETS, shares, strict=True)
    ]
    held = shares <= limit(size)
    head = " | ".join(f"{rule}, {looks} looks" for rule, looks in PLANS)
    spent, over = time.process_time() - begun, limit(size) - LEVEL
    text = f"""# Looks with few events

Command: `{COMMAND}`. Seed: {SEED}. Date: {evidence.stamp()}. Processor
time: {spent:.0f} s.

Two equal arms, {ROUNDS} rounds, and a success rate of 10%, which stays or drifts up by one standard
deviation. Without drift, no look [makes a test by its normal score](looks.md), because an arm has fewer
than 20 events. With `law="rerandomization"`, each trial is ranked among {REPLAYS} replays. {size:,} trials a
cell: three Monte Carlo errors are {over:.3f}.

- Error rates are at most {LEVEL:.2f}, plus three Monte Carlo errors, in {held.sum()} of {held.size} cells;
  the largest is {shares.max():.3f}, and the mean of all cells is {shares.mean():.3f}.

| design | drift | {head} |
| --- | --- | {" | ".join(["---:"] * len(PLANS))} |
{chr(10).join(rows)}
"""
    return text, bool(held.all())


def main() -> None:
    """Write the page."""
    options = evidence.parser(__doc__).parse_args()
    text, good = page(8 if options.quick else TRIALS)
    assert good or not options.quick
    evidence.publish(text, __file__, options)


if __name__ == "__main__":
    main()
