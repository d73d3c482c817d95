"""Bias and coverage of policy values after a contextual epsilon-greedy trial: makes policy_value.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import evidence
import numpy as np
import pandas as pd
from scipy import stats

from adaptinf.inference.policies.policy_models import PolicyContrast, PolicyValue
from adaptinf.inference.validity.policies import PolicySnapshots
from adaptinf.log import AdaptiveLog, LogArrays

SEED = 20261
BATCHES, EPSILON, N_ARMS = 5, 0.2, 3
INTERCEPT, SLOPE = np.array([0.3, 0.4, 0.0]), np.array([0.5, -0.5, 0.0])
BEST = 0.6
FITS: dict[str, dict[str, Any]] = {
    "uniform": {"weights": "uniform"},
    "default": {},
    "default, snapshots": {},
    "stable-variance": {"weights": "stable-variance", "contextual": False},
    "stable-variance, contextual": {"weights": "stable-variance", "contextual": True},
    "min-variance": {"weights": "min-variance", "contextual": False},
    "min-variance, contextual": {"weights": "min-variance", "contextual": True},
    "CADR": {"estimator": "cadr"},
}
TEXT = """# Bias and coverage of policy values

Command: `{command}`. Seed: {seed}. Date: {today}.

A trial has five batches of equal size, three arms, a context that is uniform on [-1, 1], and normal rewards
with variance 1. The first batch is uniform; each later one chooses, with probability 0.8, the arm with the
best mean on the context's side of 0, and otherwise any arm. With signal, arms a, b and c have means .3 + .5x,
.4 - .5x and 0; without signal, all means are 0. The policy chooses the best arm by the sign of x (a on the
right, b on the left); its baseline is arm c. With drift, the rewards of all arms increase by 1 over the
trial: the value is the mean over the period, and the difference is unchanged. The AIPW scores use running
means. By default, a value has uniform weights and a difference has combined ones, one per round for both
policies: from the previous batch, or with snapshots from the design's policy at the contexts of earlier
rounds.

Bias is in units of the standard deviation of the estimates, with a Monte Carlo error of {bias_error:.3f};
that of a coverage of .95 is {cover_error:.3f}. Lengths are mean lengths of intervals, relative to those with
uniform weights.

{table}

Without signal, the greedy arm is random in every batch, however long the trial is, so propensities never
converge. The bias of contextual and min-variance weights is then the same share of the standard deviation for
every length of the trial, whereas with signal it vanishes. The bias is smaller for a difference of two
policies. Under drift, intervals with separate weights for each policy undercover, because these weights are
not equal over the rounds of the period and differ between policies. An effect common to all arms cancels if
both policies share one weight.
"""


def lookup(rows: np.ndarray) -> Callable[[pd.DataFrame], np.ndarray]:
    """Policy by the sign of the context."""
    return lambda frame: rows[(frame["x"].to_numpy() > 0).astype(int)]


def trial(
    rng: np.random.Generator, size: int, signal: float, drift: float
) -> tuple[AdaptiveLog, PolicySnapshots]:
    """One trial, and its policy in each batch."""
    horizon = BATCHES * size
    x, action, reward = rng.uniform(-1, 1, horizon), np.zeros(horizon, dtype=np.int64), np.zeros(horizon)
    propensities = np.full((horizon, N_ARMS), 1 / N_ARMS)
    policies, side = [lookup(np.full((2, N_ARMS), 1 / N_ARMS))], (x > 0).astype(int)
    for start in range(0, horizon, size):
        now = slice(start, start + size)
        if start:
            cell = N_ARMS * side[:start] + action[:start]
            sums = np.bincount(cell, weights=reward[:start], minlength=2 * N_ARMS)
            means = sums / np.maximum(np.bincount(cell, minlength=2 * N_ARMS), 1)
            rows = np.full((2, N_ARMS), EPSILON / N_ARMS)
            rows[[0, 1], means.reshape(2, N_ARMS).argmax(axis=1)] += 1 - EPSILON
            propensities[now] = rows[side[now]]
            policies.append(lookup(rows))
        passed = rng.random(size)[:, None] > np.cumsum(propensities[now], axis=1)[:, :-1]
        action[now] = chosen = passed.sum(axis=1)
        reward[now] = signal * (INTERCEPT[chosen] + SLOPE[chosen] * x[now]) + rng.normal(size=size)
        reward[now] += drift * (np.arange(start, start + size) + 0.5) / horizon
    arrays = LogArrays(
        action=action,
        reward=reward,
        propensity=propensities[np.arange(horizon), action],
        propensities=propensities,
        batch=np.arange(horizon) // size,
        context={"x": x},
    )
    log = AdaptiveLog.from_arrays(arrays, arms=("a", "b", "c"))
    return log, PolicySnapshots(range(0, horizon, size), policies)


def rows_of(size: int, signal: float, drift: float, replications: int, cell: int) -> list[str]:
    """Rows of the table for one kind of trial."""
    rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(cell,)))
    best = lookup(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]))
    errors: dict[str, list[np.ndarray]] = {name: [] for name in FITS}
    for _ in range(replications):
        log, snapshots = trial(rng, size, signal, drift)
        value, contrast = PolicyValue(log, best), PolicyContrast(log, best, baseline="c")
        for name, options in FITS.items():
            own = options if name in ("uniform", "default") else {**options, "snapshots": snapshots}
            one, two = value.fit(**own), contrast.fit(**own)
            estimate = np.append(one.estimate - drift / 2.0, two.estimate) - signal * BEST
            errors[name].append(np.append(estimate, np.append(one.std_error, two.std_error)))
    rows, plain = [], np.array(errors["uniform"])[:, 2:].mean(axis=0)
    for name, values in errors.items():
        table = np.array(values)
        bias = table[:, :2].mean(axis=0) / table[:, :2].std(axis=0)
        cover = np.mean(np.abs(table[:, :2]) < stats.norm.ppf(0.975) * table[:, 2:], axis=0)
        length = table[:, 2:].mean(axis=0) / plain
        cells = [f"{BATCHES * size:,}", "yes" if signal else "no", "yes" if drift else "no", name]
        for k in range(2):
            cells += [f"{bias[k]:+.2f}", f"{cover[k]:.3f}", f"{length[k]:.2f}"]
        rows.append("| " + " | ".join(cells) + " |")
    return rows


def main() -> None:
    """Simulate and write the page."""
    parser = evidence.parser(__doc__)
    parser.add_argument("--replications", type=int, help="by default 500, in quick runs 150")
    options = parser.parse_args()
    replications = options.replications or (150 if options.quick else 500)
    head = ["rounds", "signal", "drift", "weights", "bias", "coverage", "length"]
    head += [f"{name} of contrast" for name in head[4:]]
    lines = [f"| {' | '.join(head)} |", "| --- " * len(head) + "|"]
    cells = [(100, 0.0, 0.0), (100, 1.0, 0.0), (1000, 0.0, 0.0), (1000, 1.0, 0.0)]
    cells += [(1000, 0.0, 1.0), (1000, 1.0, 1.0)]
    for cell in [1] if options.quick else range(len(cells)):
        lines += rows_of(*cells[cell], replications, cell)
    text = TEXT.format(
        command=f"python docs/evidence/policy_value.py --replications {replications}"
        + " --quick" * options.quick,
        seed=SEED,
        today=evidence.stamp(),
        bias_error=replications**-0.5,
        cover_error=(0.95 * 0.05 / replications) ** 0.5,
        table="\n".join(lines),
    )
    evidence.publish(text, __file__, options)
    if options.quick:
        evidence.hold_cell(text, __file__, "500 | yes | no | uniform", "coverage", (replications, 500))


if __name__ == "__main__":
    main()
