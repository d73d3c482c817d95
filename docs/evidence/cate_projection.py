"""Bias and coverage of effect projections after Thompson sampling by context: makes cate_projection.md."""

from __future__ import annotations

import evidence
import numpy as np
from scipy import special, stats

from adaptinf.inference.effects.effect_weights import contrast_weights
from adaptinf.inference.regression.score_projection import weighted_projection
from adaptinf.inference.scores.inverse import aipw_scores, indicators, predictions

SEED = 20262
ROUNDS = 1_000
SHARES, BASE = np.array([0.5, 0.3, 0.2]), np.array([0.0, 1.0, -1.0])
EFFECTS = {"none": [0.0, 0.0, 0.0], "linear": [0.0, 0.5, 1.0], "curved": [0.0, -0.5, 1.5]}
FLOORS = {"0.1": 0.0, "0.5 / sqrt(t)": 0.5}
WEIGHTS = ("uniform", "combined", "two-point")
TEXT = """# Bias and coverage of projections of effects

Command: `{command}`. Seed: {seed}. Date: {today}.

There are {rounds:,} rounds, three contexts x = 0, 1, 2 with shares .5, .3, .2, two arms, and normal rewards
with variance 1, whose mean under control is 0, 1 and -1. In each context, the treatment is drawn with the
probability that it is better (normal posterior under a flat prior, variance known), but the probability of
either arm is at least the floor. The formula is `~ x`, which is correct for no effect and for the linear
effect (0, .5, 1), and wrong for the curved one (0, -.5, 1.5). The truth is the best linear approximation over
the contexts. The analysis uses AIPW scores with the arms' running means, and t intervals; combined weights
are based on the round's own propensities, and two-point weights on the exponent of the floor.

The table shows results for the slope. Bias is in units of the standard deviation of the estimates, with a
Monte Carlo error of {bias_error:.3f}; the Monte Carlo error of a coverage of .95 is {cover_error:.3f}.
Lengths of standard errors are relative to those with uniform weights.

{table}
"""


def runs(effects: np.ndarray, decay: float, size: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Contexts, actions, rewards and the treatment's propensities of runs side by side, shape (R, T) each."""
    context = rng.choice(3, size=(size, ROUNDS), p=SHARES)
    action = np.zeros(context.shape, dtype=np.int64)
    reward, treated = np.zeros(context.shape), np.zeros(context.shape)
    sums, counts, each = np.zeros((size, 3, 2)), np.zeros((size, 3, 2)), np.arange(size)
    for t in range(ROUNDS):
        x, floor = context[:, t], 0.5 * (t + 1.0) ** -decay if decay else 0.1
        means = sums[each, x] / np.maximum(counts[each, x], 1)
        spread = np.sqrt((1 / np.maximum(counts[each, x], 1)).sum(axis=1))
        share = np.clip(special.ndtr((means[:, 1] - means[:, 0]) / spread), floor, 1 - floor)
        share = np.where(counts[each, x].min(axis=1) < 1, 0.5, share)
        a = (rng.random(size) < share).astype(np.int64)
        y = rng.normal(BASE[x] + a * effects[x], 1.0)
        sums[each, x, a] += y
        counts[each, x, a] += 1
        action[:, t], reward[:, t], treated[:, t] = a, y, share
    return context, action, reward, treated


def rows_of(name: str, floor: str, replications: int, cell: int) -> list[str]:
    """Rows of the table for one truth and one floor."""
    rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(cell,)))
    effects, line = np.array(EFFECTS[name]), np.column_stack([np.ones(3), np.arange(3.0)])
    truth = np.linalg.solve(line.T @ (SHARES[:, None] * line), line.T @ (SHARES * effects))[1]
    found: dict[str, list[tuple[float, float, float]]] = {kind: [] for kind in WEIGHTS}
    for x, a, y, share in zip(*runs(effects, FLOORS[floor], replications, rng), strict=True):
        chosen, both = indicators(a, np.array([0, 1])), np.column_stack([1 - share, share])
        own = np.where(a == 1, share, 1 - share)
        scores = aipw_scores(chosen, y, own, predictions(chosen, y))
        change = scores[:, 1] - scores[:, 0]
        for kind in WEIGHTS:
            weight = contrast_weights(both, kind, FLOORS[floor])
            gain = chosen * (weight / own)[:, None]
            rest = line[x][1:], change[1:], weight[1:]  # the first round has no weight
            fit = weighted_projection(*rest, ["one", "x"], gain=gain[1:])
            found[kind].append((fit.coefficient[1] - truth, float(np.sqrt(fit.covariance[1, 1])), fit.df[1]))
    rows, plain = [], float(np.array(found["uniform"])[:, 1].mean())
    for kind, values in found.items():
        error, std_error, df = np.array(values).T
        cover = np.mean(np.abs(error) < stats.t.ppf(0.975, df) * std_error)
        cells = [floor, name, kind, f"{error.mean() / error.std():+.2f}", f"{cover:.3f}"]
        rows.append("| " + " | ".join([*cells, f"{std_error.mean() / plain:.2f}"]) + " |")
    return rows


def main() -> None:
    """Simulate and write the page."""
    parser = evidence.parser(__doc__)
    parser.add_argument("--replications", type=int, help="by default 1,000, in quick runs 240")
    options = parser.parse_args()
    replications = options.replications or (240 if options.quick else 1_000)
    lines = ["| floor | effect | weights | bias | coverage | length |", "| --- " * 6 + "|"]
    cells = [(name, floor) for floor in FLOORS for name in EFFECTS]
    for cell in range(len(cells))[1::4] if options.quick else range(len(cells)):
        lines += rows_of(*cells[cell], replications, cell)
    text = TEXT.format(
        command=f"python docs/evidence/cate_projection.py --replications {replications}"
        + " --quick" * options.quick,
        seed=SEED,
        today=evidence.stamp(),
        rounds=ROUNDS,
        bias_error=replications**-0.5,
        cover_error=(0.95 * 0.05 / replications) ** 0.5,
        table="\n".join(lines),
    )
    evidence.publish(text, __file__, options)
    if options.quick:
        evidence.hold_cell(text, __file__, "0.1 | linear | uniform", "coverage", (replications, 1_000))


if __name__ == "__main__":
    main()
