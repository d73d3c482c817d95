"""Bias of arm means under UCB and private UCB: Neel and Roth (2018), Section 6.1, Figures 1 to 5.

What the paper leaves open was chosen before anything was measured: rewards are 0 or 1; the five arms of its
second experiment have means 1, .95, .., .8, and in a second reading .6, .55, .., .4; delta of the private
index is 1/T; UCB's width is read in three ways.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from adaptinf.designs import UCB, PrivateUCB
from adaptinf.designs.base_design import Design
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.inference.corrections.arm_bias import bias_bound, trivial_bias_bound
from adaptinf.simulation.environments import BernoulliArms
from adaptinf.simulation.replicate import iterate_runs
from case_studies.bias_of_bandits import pictures
from case_studies.outcome import Outcome, Settings

SEED = 61
Z = 1.959964
FIRST = (500, 1.0 - 0.05 * np.arange(20))
SECOND = (100_000, 1.0 - 0.05 * np.arange(5))
SECOND_MIDDLE = (100_000, 0.6 - 0.05 * np.arange(5))
WIDTHS = {"sqrt(2 log t / N)": 2.0, "sqrt(log t / 2N)": 0.5, "sqrt(log t / 4N)": 0.25}
NO_NOISE = 1e9
EPSILONS = (0.05, 0.2, 1.0, 3.0, 10.0, 30.0, 100.0, 400.0, 2_000.0)


@dataclass(frozen=True)
class Bias:
    """Biases of a design's arm means, over many runs.

    Attributes
    ----------
    bias, error : ndarray of shape (arms,)
        Mean of sample mean minus truth, and its standard error.
    size, size_error : float
        Mean of the absolute biases over arms, and its standard error where no bias changes its sign.
    floor : float
        What `size` would be on average if there were no bias at all.
    fewest, most : float
        Pulls of an arm in any run.
    regret : float
        Mean pseudo-regret of a run.
    """

    bias: np.ndarray
    error: np.ndarray
    size: float
    size_error: float
    floor: float
    fewest: float
    most: float
    regret: float

    @property
    def significant(self) -> int:
        """Arms whose 95% interval excludes 0."""
        return int(np.sum(np.abs(self.bias) > Z * self.error))

    @property
    def worst(self) -> float:
        """Bias of the arm where it is largest."""
        return float(self.bias[np.abs(self.bias).argmax()])


def measure(
    design: Design, world: tuple[int, np.ndarray], runs: int, n_jobs: int, rng: int | tuple[int, ...] = SEED
) -> Bias:
    """Run a design many times and hold its sample means against the truth."""
    horizon, means = world
    root = np.random.SeedSequence(rng)
    sims = design.replicate(BernoulliArms(means), horizon, runs, rng=root, n_jobs=n_jobs)
    errors = sims.means - means
    bias = errors.mean(axis=0)
    error = errors.std(axis=0, ddof=1) / np.sqrt(runs)
    signed = (errors * np.sign(bias)).mean(axis=1)
    return Bias(
        bias,
        error,
        float(np.abs(bias).mean()),
        float(signed.std(ddof=1) / np.sqrt(runs)),
        float(np.sqrt(2.0 / np.pi) * error.mean()),
        float(sims.pulls.min()),
        float(sims.pulls.max()),
        float(sims.regret.mean()),
    )


def published(epsilon: float, *, relaxation: bool = True) -> PrivateUCB:
    """The paper's private UCB."""
    return PrivateUCB(epsilon=epsilon, calibration="published", relaxation=relaxation)


def first_designs() -> dict[str, Design]:
    """What is run in the first experiment."""
    designs: dict[str, Design] = {f"UCB, {name}": UCB(width=width) for name, width in WIDTHS.items()}
    designs["published, epsilon .05"] = published(0.05)
    designs["published, epsilon .05, gamma off"] = published(0.05, relaxation=False)
    designs["published, epsilon 10"] = published(10.0)
    designs["published, epsilon 10, gamma off"] = published(10.0, relaxation=False)
    designs["published, no noise, gamma off"] = published(NO_NOISE, relaxation=False)
    designs["corrected, epsilon .05"] = PrivateUCB(epsilon=0.05)
    designs["corrected, epsilon 1"] = PrivateUCB(epsilon=1.0)
    designs["corrected, epsilon 10"] = PrivateUCB(epsilon=10.0)
    return designs


def second_designs() -> dict[str, Design]:
    """What is run in the second experiment."""
    designs: dict[str, Design] = {f"UCB, {name}": UCB(width=width) for name, width in WIDTHS.items()}
    designs["published, epsilon 400"] = published(400.0)
    designs["published, epsilon 400, gamma off"] = published(400.0, relaxation=False)
    designs["published, no noise, gamma off"] = published(NO_NOISE, relaxation=False)
    return designs


def guarantee(design: Design, world: tuple[int, np.ndarray]) -> PrivacyGuarantee | None:
    """What a design really promises; nothing where its noise was taken away."""
    if isinstance(design, PrivateUCB) and design.epsilon == NO_NOISE:
        return None
    return design.guarantee(world[0], world[1].size)


def summary(
    designs: dict[str, Design], found: dict[str, Bias], world: tuple[int, np.ndarray]
) -> pd.DataFrame:
    """One row per design."""
    rows = []
    for name, result in found.items():
        promise = guarantee(designs[name], world)
        bound = np.nan if promise is None else float(bias_bound(promise, *world).mean())
        rows.append(
            {
                "design": name,
                "mean absolute bias": result.size,
                "if there were none": result.floor,
                "largest bias": result.worst,
                "arms whose 95% interval excludes 0": result.significant,
                "guaranteed epsilon": np.nan if promise is None else promise.epsilon,
                "bound, mean over arms": bound,
                "fewest pulls": int(result.fewest),
                "most pulls": int(result.most),
                "mean regret": result.regret,
            }
        )
    return pd.DataFrame(rows)


def by_arm(designs: dict[str, Design], found: dict[str, Bias], world: tuple[int, np.ndarray]) -> pd.DataFrame:
    """Bias and standard error of every arm under every design, and the theorem's bound where there is one."""
    columns: dict[str, np.ndarray] = {"mean": world[1]}
    for name, result in found.items():
        columns[name] = result.bias
        columns[f"{name}: standard error"] = result.error
        promise = guarantee(designs[name], world)
        if promise is not None:
            columns[f"{name}: bound"] = bias_bound(promise, *world)
    return pd.DataFrame(columns)


def sweep(runs: int, n_jobs: int) -> pd.DataFrame:
    """Bias against epsilon in the first experiment, with the theorem's bound, for three private indices."""
    rows = []
    for place, epsilon in enumerate(EPSILONS):
        designs = {
            "published": published(epsilon),
            "published, gamma off": published(epsilon, relaxation=False),
            "corrected": PrivateUCB(epsilon=epsilon),
        }
        for number, (name, design) in enumerate(designs.items()):
            result = measure(design, FIRST, runs, n_jobs, (SEED, place, number))
            promise = design.guarantee(FIRST[0], FIRST[1].size)
            bound = bias_bound(promise, *FIRST)
            rows.append(
                {
                    "index": name,
                    "epsilon": epsilon,
                    "guaranteed epsilon": promise.epsilon,
                    "mean absolute bias": result.size,
                    "if there were none": result.floor,
                    "bound, mean over arms": float(bound.mean()),
                    "arms above their bound": int((np.abs(result.bias) > bound + 4.0 * result.error).sum()),
                    "bound says nothing": bool((bound >= trivial_bias_bound(FIRST[1]))[1:].all()),
                    "mean regret": result.regret,
                }
            )
    return pd.DataFrame(rows)


def regret_paths(design: Design, runs: int, grid: np.ndarray, rng: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean cumulative pseudo-regret of the second experiment at given rounds, and its standard error."""
    horizon, means = SECOND
    gaps = means.max() - means
    kept = iterate_runs(design, BernoulliArms(means), horizon, 0, runs, rng)
    paths = np.array([np.cumsum(gaps[run.record.action])[grid - 1] for run in kept])
    return paths.mean(axis=0), paths.std(axis=0, ddof=1) / np.sqrt(runs)


def regrets(runs: int) -> pd.DataFrame:
    """The paper's Figure 3: regret over time."""
    grid = np.unique(np.geomspace(100, SECOND[0], 60).astype(int))
    designs: dict[str, Design] = {f"UCB, {name}": UCB(width=width) for name, width in WIDTHS.items()}
    designs["published, epsilon 400"] = published(400.0)
    designs["published, no noise, gamma off"] = published(NO_NOISE, relaxation=False)
    parts = []
    for name, design in designs.items():
        mean, error = regret_paths(design, runs, grid, SEED + 1)
        parts.append(pd.DataFrame({"design": name, "round": grid, "regret": mean, "standard error": error}))
    return pd.concat(parts, ignore_index=True)


def run(settings: Settings) -> Outcome:
    """Measure everything."""
    runs, jobs = settings.runs(10_000, 2_048), settings.n_jobs
    designs = first_designs()
    first = {name: measure(design, FIRST, runs, jobs) for name, design in designs.items()}
    long_runs = settings.runs(1_000, 64)
    later = second_designs()
    second = {name: measure(design, SECOND, long_runs, jobs) for name, design in later.items()}
    middle = {name: measure(design, SECOND_MIDDLE, long_runs, jobs) for name, design in later.items()}
    epsilons = sweep(settings.runs(20_000, 2_048), jobs)
    paths = regrets(settings.runs(200, 16))
    tables = {
        "experiment_1": summary(designs, first, FIRST),
        "experiment_1_arms": by_arm(designs, first, FIRST),
        "experiment_2": summary(later, second, SECOND),
        "experiment_2_arms": by_arm(later, second, SECOND),
        "experiment_2_middle": summary(later, middle, SECOND_MIDDLE),
        "by_epsilon": epsilons,
        "regret": paths,
    }
    drawn = {
        "experiment_1": pictures.arms(tables["experiment_1_arms"], pictures.SERIES_1),
        "experiment_2": pictures.arms(tables["experiment_2_arms"], pictures.SERIES_2),
        "by_epsilon": pictures.by_epsilon(epsilons, tables["experiment_1"]),
        "regret": pictures.regret(paths),
    }
    figures = dict(_figures(first, second, middle, epsilons))
    return Outcome(figures, tables, drawn)


def _figures(
    first: dict[str, Bias], second: dict[str, Bias], middle: dict[str, Bias], epsilons: pd.DataFrame
) -> Iterator[tuple[str, float]]:
    """The study's claims."""
    for short, name in zip(("2", "half", "quarter"), WIDTHS, strict=True):
        result = first[f"UCB, {name}"]
        yield f"ucb_{short}_size", result.size
        yield f"ucb_{short}_worst", result.worst
        yield f"ucb_{short}_significant", float(result.significant)
    private = first["published, epsilon .05"]
    yield "private_size", private.size
    yield "private_floor", private.floor
    yield "private_significant", float(private.significant)
    yield "private_fewest_pulls", private.fewest
    yield "private_most_pulls", private.most
    yield "private_regret", private.regret
    yield "gamma_off_size", first["published, epsilon .05, gamma off"].size
    yield "gamma_off_10_size", first["published, epsilon 10, gamma off"].size
    yield "gamma_on_10_size", first["published, epsilon 10"].size
    yield "no_noise_size", first["published, no noise, gamma off"].size
    yield "corrected_1_size", first["corrected, epsilon 1"].size
    yield "corrected_10_size", first["corrected, epsilon 10"].size
    yield "bound_broken", float(epsilons["arms above their bound"].sum())
    for reading, found in (("top", second), ("middle", middle)):
        for short, name in zip(("2", "half", "quarter"), WIDTHS, strict=True):
            yield f"long_{reading}_ucb_{short}_size", found[f"UCB, {name}"].size
        yield f"long_{reading}_private_size", found["published, epsilon 400"].size
        yield f"long_{reading}_no_noise_size", found["published, no noise, gamma off"].size
    yield "long_ucb_regret", second["UCB, sqrt(2 log t / N)"].regret
    yield "long_private_regret", second["published, epsilon 400"].regret
    yield "long_no_noise_regret", second["published, no noise, gamma off"].regret
