"""Coverage of intervals from private releases of two arms: makes docs/evidence/two_arm_release.md."""

from __future__ import annotations

import math
from dataclasses import dataclass

import evidence
import numpy as np

from adaptinf.designs import DPConSE, PrivateSuccessiveElimination
from adaptinf.designs.base import Design
from adaptinf.inference.released.effects import effect_from_two_means, released_intervals
from adaptinf.inference.released.pair_effects import pair_effect
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.simulation.environments import BernoulliArms, Environment, UniformArms
from adaptinf.simulation.replicate import Program, Run, iterate_runs

SEED = 2_718
ALPHA = 0.05
COMMAND = "python docs/evidence/two_arm_release.py"
FULL, QUICK = 10_000, 400
CLAIM = 0.94


@dataclass(frozen=True)
class Elimination:
    """A trial of successive elimination."""

    epsilon: float
    means: tuple[float, ...]
    horizon: int
    spread: float | None = None
    """Half the width of uniform rewards; 0/1 rewards where it is None."""


ELIMINATION = (
    Elimination(1.0, (0.5, 0.5), 20_000),
    Elimination(1.0, (0.57, 0.43), 20_000),
    Elimination(1.0, (0.5525, 0.4475), 20_000),
    Elimination(1.0, (0.95, 0.8), 20_000),
    Elimination(1.0, (0.57, 0.43), 100_000),
    Elimination(0.1, (0.62, 0.38), 20_000),
    Elimination(1.0, (0.6, 0.46, 0.3), 30_000),
    Elimination(1.0, (0.57, 0.43), 20_000, spread=0.4),
)
CONSE = tuple(
    (epsilon, alpha, horizon) for horizon in (2_000, 20_000) for epsilon in (1.0, 0.1) for alpha in (0.0, 0.3)
)
CONSE_MEANS = (0.4, 0.55)


@dataclass(frozen=True)
class Coverage:
    """Shares of the runs whose interval holds the truth, and lengths."""

    runs: int
    spent: float
    plain: float
    length: float
    plain_length: float
    last_epoch: dict[int, float]


class _ByEpochs(PrivateSuccessiveElimination):
    """The design with each epoch's sum of 0/1 rewards drawn at once, as `replicate` does."""

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        return super().program(environment, horizon, recording=recording, by_rounds=False)


def _log(design: Design, arms: Environment, horizon: int, run: Run) -> AdaptiveLog:
    """A log of the run's releases; no method of releases reads its rounds."""
    nothing = LogArrays(np.zeros(horizon, dtype=np.int64), np.zeros(horizon))
    releases = design._releases(run.released, arms, horizon)
    return AdaptiveLog.from_arrays(nothing, arms=arms.arms, design=design.record(), releases=releases)


def elimination_coverage(trial: Elimination, runs: int, index: int) -> Coverage:
    """Of the first two arms, a pair named in advance."""
    means = np.array(trial.means)
    arms = BernoulliArms(means)
    design: Design = _ByEpochs(epsilon=trial.epsilon)
    if trial.spread is not None:
        arms = UniformArms(means - trial.spread, means + trial.spread)
        design = PrivateSuccessiveElimination(epsilon=trial.epsilon)
    rng = np.random.SeedSequence(SEED, spawn_key=(index,))
    paths: dict[bytes, tuple[float, float, float]] = {}
    rows = []
    for run in iterate_runs(design, arms, trial.horizon, 0, runs, rng):
        path = run.released[:, [0, 2]].tobytes()  # rounds and arms settle pulls, epoch and share
        if path not in paths:
            found = pair_effect(_log(design, arms, trial.horizon, run), 0, 1)
            paths[path] = found.details["pulls_an_arm"], found.details["epoch"], found.share
        last = [run.released[run.released[:, 2] == arm] for arm in (0, 1)]
        shared = min(part.shape[0] for part in last) - 1
        rows.append((last[0][shared, 3] - last[1][shared, 3], *paths[path]))
    center, pulls, epoch, share = np.array(rows).T
    effect = effect_from_two_means(center, pulls, scale=1.0 / (trial.epsilon * pulls))
    truth = trial.means[0] - trial.means[1]
    spent, inside = np.empty((2, runs)), np.zeros(runs, dtype=bool)
    plain = np.array(effect.interval(math.log(ALPHA)))
    for part in np.unique(share):
        limits = np.array(effect.interval(math.log(ALPHA * part)))
        spent[:, share == part] = limits[:, share == part]
    inside = (spent[0] <= truth) & (truth <= spent[1])
    reached = {int(e): float(np.mean(epoch == e)) for e in np.unique(epoch)}
    return Coverage(
        runs,
        float(inside.mean()),
        float(np.mean((plain[0] <= truth) & (truth <= plain[1]))),
        float(np.mean(spent[1] - spent[0])),
        float(np.mean(plain[1] - plain[0])),
        reached,
    )


def conse_coverage(epsilon: float, alpha: float, horizon: int, runs: int, index: int) -> tuple[float, float]:
    """Coverage and mean length of DP-ConSE's released interval, one context and exact counts."""
    design = DPConSE(epsilon=epsilon, alpha=alpha, contrast_share=1.0)
    rng = np.random.SeedSequence(SEED, spawn_key=(100, index))
    sims = design.replicate(BernoulliArms(list(CONSE_MEANS)), horizon, runs, rng=rng)
    t_min = sims.outcomes[:, sims.outcome_names.index("t_min")][:, None]
    _, low, high = released_intervals(
        sims.released["contrast_sum"],
        sims.released["arrivals"],
        epsilon_sum=epsilon,
        epsilon_count=math.inf,
        minimum=0.25 * t_min,
    )
    truth = CONSE_MEANS[1] - CONSE_MEANS[0]
    return float(np.mean((low <= truth) & (truth <= high))), float(np.mean(high - low))


def error(share: float, runs: int) -> float:
    """Monte Carlo standard error of a proportion."""
    return math.sqrt(max(share * (1.0 - share), 1e-12) / runs)


def page(runs: int, quick: bool) -> tuple[str, list[float]]:
    """The page, and every coverage that is claimed to be at least .94."""
    command = f"{COMMAND} --quick" if quick else COMMAND
    lines = [
        "# Intervals from private releases of two arms",
        "",
        f"Command: `{command}`. Seed: {SEED}. Date: {evidence.stamp()}.",
        "",
        f"The table shows the coverage of 95% intervals over {runs:,} runs per row; a figure after ± is "
        "one Monte",
        "Carlo standard error.",
        "",
        "## Private successive elimination",
        "",
        'The pair is specified in advance: the first two arms. "Fixed shares" is',
        '`Contrast(...).fit("released")`,',
        'whose level was fixed before the last common epoch began; "plain" is the same interval at the full',
        "level, as if the epoch had been chosen in advance. The last column shows the shares of runs by "
        "the last",
        "epoch that both arms reached. Rewards are 0/1, or uniform within .4 of the mean. In the third row, "
        "an "
        "arm is",
        "dropped after the first epoch approximately at the value at which the interval of that epoch begins "
        "to miss the",
        "truth.",
        "",
        "| epsilon | means | T | fixed shares | plain | mean length | of plain | last common epoch |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    claimed = []
    for index, trial in enumerate(ELIMINATION):
        found = elimination_coverage(trial, runs, index)
        claimed.append(found.spent)
        means = ", ".join(f"{mean:g}" for mean in trial.means) + (" (uniform)" if trial.spread else "")
        reached = ", ".join(f"{epoch}: {share:.3f}" for epoch, share in found.last_epoch.items())
        lines.append(
            f"| {trial.epsilon:g} | {means} | {trial.horizon:,} | {found.spent:.4f} ± "
            f"{error(found.spent, runs):.4f} | {found.plain:.4f} ± {error(found.plain, runs):.4f} | "
            f"{found.length:.3f} | {found.plain_length:.3f} | {reached} |"
        )
    lines += [
        "",
        "## DP-ConSE with one context",
        "",
        f"In this table, `contrast_share=1`, with means {CONSE_MEANS[0]:g} and {CONSE_MEANS[1]:g}, 0/1 "
        f"rewards, "
        "and",
        "exact counts.",
        "",
        "| epsilon | alpha | n | coverage | mean length |",
        "| --- | --- | --- | --- | --- |",
    ]
    for index, (epsilon, alpha, horizon) in enumerate(CONSE):
        coverage, length = conse_coverage(epsilon, alpha, horizon, runs, index)
        claimed.append(coverage)
        lines.append(
            f"| {epsilon:g} | {alpha:g} | {horizon:,} | {coverage:.4f} ± {error(coverage, runs):.4f} | "
            f"{length:.3f} |"
        )
    return "\n".join(lines) + "\n", claimed


def main() -> None:
    options = evidence.parser(__doc__).parse_args()
    quick = options.quick
    runs = QUICK if quick else FULL
    text, claimed = page(runs, quick)
    evidence.publish(text, __file__, options)
    short = [coverage for coverage in claimed if coverage < CLAIM - 4.0 * error(CLAIM, runs)]
    if short:
        raise SystemExit(f"coverage below {CLAIM} beyond its Monte Carlo error: {short}")


if __name__ == "__main__":
    main()
