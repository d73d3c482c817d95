"""Predictions in the scores of plans, while a level drifts: makes docs/evidence/predictions.md.

A trial of 1,000 rounds with normal rewards and one look at its end. The predictions of `Plan` are compared,
on the same trials, with the arms' own means and with the true level: rejections by Student's t, and clocks.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import evidence
import numpy as np
from scipy import stats

import adaptinf as ai
from adaptinf.inference.group_sequential.score_process import score_process

SEED, ROUNDS, LEAST = 20261128, 1_000, 20.0
DESIGNS = {
    "coin": ai.designs.Uniform(),
    "epsilon-greedy .2": ai.designs.EpsilonGreedy(exploration=0.2),
    "Thompson, floor .05": ai.designs.Thompson(prior="normal", floor=0.05),
}
TIME = np.arange(ROUNDS) / ROUNDS
LEVELS = {
    "none": np.zeros(ROUNDS),
    "up by 1 sd": TIME,
    "up by 2 sd": 2.0 * TIME,
    "down by 1 sd": -TIME,
    "1 sd at half": (TIME >= 0.5).astype(float),
    "one wave": np.sin(2.0 * np.pi * TIME),
    "four waves": np.sin(8.0 * np.pi * TIME),
}
EFFECTS = (0.0, 0.25)
KINDS = ("arm means", "plan", "true level")
Array = np.ndarray[Any, Any]


def trials(
    design: Any, level: Array, effect: float, runs: int, rng: np.random.Generator
) -> tuple[Array, ...]:
    """Actions, rewards and propensities of trials; (runs, T), (runs, T) and (runs, T, 2)."""
    found = []
    for _ in range(runs):
        rewards = rng.normal(size=(ROUNDS, 2)) + level[:, None] + np.array([0.0, effect])
        world = ai.environments.Tableau(rewards, reward_range=(-40.0, 40.0))
        arrays = design.run(world, horizon=ROUNDS, rng=rng).arrays
        found.append((arrays.action, arrays.reward, arrays.propensities))
    return tuple(np.array(part) for part in zip(*found, strict=True))


def scores(action: Array, reward: Array, chance: Array, level: Array | None) -> tuple[Array, Array]:
    """Standardised scores and clocks at the end, (runs,) each: with arm means, or with a known level."""
    runs = np.arange(len(action))
    count, total = np.zeros((len(action), 2)), np.zeros((len(action), 2))
    score, clock = np.zeros(len(action)), np.zeros(len(action))
    for t in range(ROUNDS):
        arm, y, e = action[:, t], reward[:, t], chance[:, t]
        if t:
            pooled = (total.sum(axis=1) / count.sum(axis=1))[:, None]
            mean = np.where(count > 0, total / np.maximum(count, 1.0), pooled)
            if level is not None:
                mean = np.full_like(mean, level[t])
            weight = 1.0 / np.sqrt(1.0 / e[:, 0] + 1.0 / e[:, 1])
            away = np.where(arm == 1, 1.0, -1.0) * (y - mean[runs, arm]) / e[runs, arm]
            step = weight * (mean[:, 1] - mean[:, 0] + away)
            score, clock = score + step, clock + step * step
        count[runs, arm] += 1.0
        total[runs, arm] += y
    return score / np.sqrt(clock), clock


def measured(design: Any, level: Array, effect: float, runs: int, rng: np.random.Generator) -> Array:
    """Rejections and mean clock of each kind of prediction, (3, 2), and the trials with enough rewards."""
    action, reward, chance = trials(design, level, effect, runs, rng)
    every = zip(action, reward, chance, strict=True)
    plan = [score_process(*one, (1, 0), np.array([ROUNDS])) for one in every]
    effective = np.array([one.effective[0] for one in plan])
    both = {
        "arm means": scores(action, reward, chance, None),
        "plan": (np.array([one.z[0] for one in plan]), np.array([one.clock[0] for one in plan])),
        "true level": scores(action, reward, chance, level),
    }
    enough = effective >= LEAST
    found = np.zeros((len(KINDS) + 1, 2))
    for place, kind in enumerate(KINDS):
        z, clock = both[kind]
        pvalue = 2.0 * stats.t.sf(np.abs(z[enough]), effective[enough] - 1.0)
        found[place] = (pvalue <= 0.05).mean(), clock[enough].mean() / ROUNDS
    found[-1, 0] = enough.sum()
    return found


def page(runs: int) -> str:
    """The page."""
    rows, held, slow = [], [], []
    for place, ((name, design), (drift, level)) in enumerate(
        itertools.product(DESIGNS.items(), LEVELS.items())
    ):
        cells = [name, drift]
        for number, effect in enumerate(EFFECTS):
            found = measured(design, level, effect, runs, np.random.default_rng([SEED, place, number]))
            cells += [f"{rate:.3f}" for rate, _ in found[:-1]]
            if not number:
                clocks = [f"{clock:.3f}" for _, clock in found[:-1]]
                slow += [found[:2, 1]] if drift != "none" else []
                trials_held = found[-1, 0]
                limit = 0.055 + 3.0 * math.sqrt(0.055 * 0.945 / trials_held)
                held.append([rate <= limit for rate, _ in found[:-1]])
        rows.append(f"| {' | '.join([*cells, *clocks])} |")
    within = {kind: sum(one[place] for one in held) for place, kind in enumerate(KINDS)}
    three, most = " | ".join(KINDS), np.max(slow, axis=0)
    return f"""# Predictions in the scores of plans

Command: `python docs/evidence/predictions.py`. Seed: {SEED}. Date: {evidence.stamp()}.

There are two arms, 1,000 rounds, normal rewards with standard deviation 1, and a level that drifts; a single
two-sided test at 5% is made at the end, in trials with at least 20 effective rewards of each arm. {runs:,}
trials a cell. *Arm means* predict each arm by its own earlier rewards; *plan* is the rule used by `Plan`;
*true level* predicts both arms by the true drifting level. The clock is given per round, for trials without
an effect; without prediction errors, it would be 1.

Error rates are at most .055, plus three Monte Carlo errors, in {within["plan"]} of {len(held)} rows with the
plan's predictions, and in {within["arm means"]} with arm means. With drift, the plan's clock is at most \
{most[1]:.3f}, and that of arm means is at most {most[0]:.3f}.

| design | drift | errors: {three} | power at .25: {three} | clock: {three} |
| --- | --- | {" | ".join(["---:"] * 9)} |
{chr(10).join(rows)}
"""


def main() -> None:
    """Measure, and write the page."""
    options = evidence.parser(__doc__).parse_args()
    if options.quick:
        rng = np.random.default_rng(SEED)
        found = measured(DESIGNS["epsilon-greedy .2"], LEVELS["up by 2 sd"], 0.0, 128, rng)
        print(found)
        assert found[1, 1] < 1.2 < found[0, 1]
        return
    evidence.publish(page(1_024), __file__, options)


if __name__ == "__main__":
    main()
