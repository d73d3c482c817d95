"""Contrasts with an arm that joined a running trial: their bias, and which logs have no interval.

Trials are run in memory by the code that a trial's file runs, and outcomes are drawn beside it. The oracle is
the mean of scores with the true means in place of predictions: it has no bias if arms are drawn with the
logged propensities. Deviations of an estimator from the oracle have a far smaller standard error than its
errors, so they show its bias.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import evidence
import numpy as np

import adaptinf as ai
from adaptinf.sessions.session_memory import logged
from adaptinf.trial.replay import Replay
from adaptinf.trial.trial_setup import declared_entry

SEED = 20261128
COMMAND = "python docs/evidence/added_arms.py"
TRIALS, ROUNDS, JOINS, EXPLORATION = 1_500, 400, 150, 0.2
QUICK = 40
MEANS = {"a": 0.3, "b": 0.5, "c": 0.7}
TRUTH = MEANS["c"] - MEANS["a"]
FITS: dict[str, dict[str, str]] = {
    "default": {},
    "AIPW, equal weights": {"estimator": "aipw", "weights": "uniform"},
    "IPW, equal weights": {"estimator": "ipw", "weights": "uniform"},
}


def trial_log(number: int, first: dict[str, Any], design: ai.designs.Design) -> ai.AdaptiveLog:
    """The log of a trial that an arm joins."""
    rng = np.random.default_rng([SEED, number])
    replay = Replay("memory", {**first, "seed": rng.bytes(32).hex()}, design, lambda *_: None)
    for step, drawn in enumerate(rng.random(ROUNDS)):
        if step == JOINS:
            replay.add_arm("c", "c", "an amendment", "the sponsor")
        made, _ = replay.assign(step, None, f"assign {step}")
        replay.record(made.id, float(drawn < MEANS[made.arm]), f"record {step}")
    return logged(replay.session, None, True, None)


def oracle(log: ai.AdaptiveLog) -> float:
    """Error of the contrast from scores with the true means, over the rounds that both arms had."""
    late = slice(JOINS, None)
    action, reward = log.arrays.action[late], log.arrays.recorded[late]
    shares = log.arrays.propensities
    assert shares is not None
    found = [
        np.mean((action == code) * (reward - MEANS[arm]) / shares[late, code])
        for code, arm in enumerate(MEANS)
    ]
    return float(found[2] - found[0])


def errors(log: ai.AdaptiveLog) -> list[tuple[float, float, float]]:
    """For each estimator: its error, whether there is an interval, and whether it covers."""
    made = []
    for options in FITS.values():
        found = ai.Contrast(log, treatment="c", control="a").fit(**options)  # type: ignore[arg-type]
        low, high = found.conf_int().iloc[0]
        made.append((float(found.params.iloc[0]) - TRUTH, float(low == low), float(low <= TRUTH <= high)))
    return made


def mean(values: Any) -> str:
    """A mean with its Monte-Carlo error."""
    values = np.asarray(values, dtype=float)
    if len(values) < 2:
        return "-"
    return f"{values.mean():.4f} ({values.std(ddof=1) / math.sqrt(len(values)):.4f})"


def drawn_as_logged(logs: list[ai.AdaptiveLog]) -> float:
    """Largest standard score of rounds with an arm less their propensities, after the arm joined."""
    surplus = []
    for log in logs:
        assert log.arrays.propensities is not None
        hits = log.arrays.action[JOINS:, None] == np.arange(len(MEANS))
        surplus.append((hits - log.arrays.propensities[JOINS:]).sum(axis=0))
    found = np.array(surplus)
    return float(np.abs(found.mean(axis=0) / found.std(axis=0, ddof=1)).max() * math.sqrt(len(logs)))


def page(count: int, command: str) -> str:
    """The page."""
    design = ai.designs.EpsilonGreedy(exploration=EXPLORATION)
    first = declared_entry(design, ["a", "b"], ROUNDS, None, None, False, (0.0, 1.0))
    logs = [trial_log(number, first, design) for number in range(count)]
    exact = np.array([oracle(log) for log in logs])
    results = np.array([errors(log) for log in logs])
    rows = []
    for place, name in enumerate(FITS):
        error, told, covers = results[:, place].T
        with_one = told == 1.0
        cells = [
            mean(error - exact),
            f"{with_one.sum():,}",
            mean(error[with_one]),
            mean(error[~with_one]),
            mean(covers[with_one]),
        ]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    table = "\n".join(rows)
    without = np.flatnonzero(results[:, 0, 1] == 0.0)
    few = [successes(logs[place], 0) for place in without]
    return f"""# Contrasts with an arm that joined a trial

Command: `{command}`.
Seed: {SEED}. Date: {evidence.stamp()}.

{count:,} trials of {ROUNDS} participants under epsilon-greedy with exploration {EXPLORATION}; arm c (mean
.7) joins arms a (.3) and b (.5) after round {JOINS} by `add_arm`. Parameter: c - a, {TRUTH:.1f}. Monte-Carlo
errors are in parentheses.

| estimator | bias, by the oracle | intervals | error where one is given | error elsewhere | coverage |
| --- | ---: | ---: | ---: | ---: | ---: |
{table}

The *oracle* is the mean of inverse-probability scores with the true means. It has no bias if arms are drawn
with the logged propensities; here its mean error is {mean(exact)}. The largest standardised difference
between the arms' counts and the sums of their propensities is **{drawn_as_logged(logs):.1f}**.

- **The trial**: arms are drawn with the logged propensities, and AIPW with equal weights has no bias.
- **Weights**: the default has a bias of a hundredth or two of its standard error. Its weights depend on
  earlier outcomes: if the first outcomes of an arm are good, a greedy design assigns it more often, and its
  later rounds receive larger weights. The estimate is a ratio of weighted sums, whose bias is of order 1/T.
- **Selection**: no interval is given if an arm has hardly any successes or failures among the rounds in which
  both arms were available. In the logs without an interval, arm a had {
        np.median(few) if few else math.nan:.0f} successes (median), so c - a was too large.
  The remaining logs therefore have a negative mean error, although the estimator has almost no bias over all
  logs. A simulation that omits logs without an interval, as the computation of coverage requires, shows this
  as a bias.
"""


def successes(log: ai.AdaptiveLog, code: int) -> int:
    """Number of successes of an arm after the other joined."""
    late = slice(JOINS, None)
    return int(log.arrays.recorded[late][log.arrays.action[late] == code].sum())


def main() -> None:
    """Make the page."""
    options = evidence.parser(__doc__).parse_args()
    count = QUICK if options.quick else TRIALS
    command = f"{COMMAND} --quick" if options.quick else COMMAND
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ai.errors.AdaptinfWarning)
        text = page(count, command)
    evidence.publish(text, __file__, options)
    for name in FITS:
        found = evidence.measured(evidence.cell(text, name, "bias, by the oracle"))
        if name != "default" and abs(found[0]) > evidence.ERRORS * found[1]:
            raise SystemExit(f"OFF: {name} has a bias of {found[0]}")


if __name__ == "__main__":
    main()
