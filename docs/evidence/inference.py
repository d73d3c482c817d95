"""Coverage, type I errors, bias and widths of the inference suite under adaptive designs.

Makes docs/evidence/inference.md. The studies are kept in a folder, so a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import evidence
import numpy as np
import pandas as pd
from inference_page import page
from inference_passes import ALPHA, SCORED, WEALTH, Battery, check

from adaptinf.audit import Study, coverage_from_tallies, study
from adaptinf.designs import (
    UCB,
    DPConSE,
    EpsilonGreedy,
    LDPBandit,
    Mixture,
    PrivateUCB,
    Thompson,
)
from adaptinf.designs.base import Design
from adaptinf.designs.run_results import Replications
from adaptinf.errors import ParameterError
from adaptinf.inference.arms import Contrast
from adaptinf.inference.corrections.information_of_log import correction_for
from adaptinf.inference.distributions.bounded import BoundedDifferenceReference
from adaptinf.inference.distributions.references import BinomialReference
from adaptinf.inference.distributions.two_samples import difference_intervals
from adaptinf.inference.effects.cate import CATE
from adaptinf.inference.recommend.recommendation import recommend
from adaptinf.inference.released.effects import released_intervals
from adaptinf.simulation.environments import BernoulliArms, Environment, FiniteContext, SmoothArms

SEED = 2026
HORIZONS = (1_000, 10_000)
EPSILON = 0.1
MEANS = {"no signal": (0.5, 0.5), "low signal": (0.5, 0.55), "high signal": (0.5, 0.7)}
EFFECTS = {"no signal": 0.0, "low signal": 0.05, "high signal": 0.2}
BEGINS = {"no signal": 0.5, "low signal": 0.46, "high signal": 0.0}
WEIGHTS = ("uniform", "sqrt", "two-point")
CONSE = DPConSE(epsilon=1.0, alpha=0.2)
EXACT = ("corrected exact",)
ANYTIME = ("normal mixture", "empirical Bernstein", "betting", "empirical Bernstein, ipw")
NAIVE = ("sample mean",)
NAMES = {
    "sample mean": "sample-mean",
    **{weights: f"aipw with {weights} weights" for weights in WEIGHTS},
    "alee": "alee",
    "batched": "batched",
    "corrected exact": "sample-mean with corrected columns",
    "betting": "betting sequence on sample means",
    "normal mixture": "normal-mixture sequence on sample means",
    "empirical Bernstein": "empirical-bernstein sequence on sample means",
    "asymptotic sequence": "asymptotic sequence on sample means",
    "empirical Bernstein, ipw": "empirical-bernstein sequence on ipw scores",
    "asymptotic sequence, aipw": "asymptotic sequence on aipw scores",
}
"""What `recommend` calls the methods."""
COMMAND = "python docs/evidence/inference.py"
QUICK = ("DPConSE", "UCB", "PrivateUCB")
WHY = """\
Thompson's floor is .004 at T = 1,000 and .0008 at 10,000. With high signal, the worse arm has only a handful
of rewards at such propensities, and these determine both the AIPW estimate and its standard error: unweighted
scores are affected most, and two-point weights least. Without signal, the same unweighted intervals
overcover: the statistic is not normal while propensities depend on the data. Sqrt and two-point weights
follow the propensities, so the later scores of an arm that began badly receive lower weights; this explains
their bias under Thompson, which is about half of that of sample means. Batched least squares assumes that
both arms' rewards in a batch have the same variance. If the means are .5 and .7, and the worse arm has a
tenth of the rounds, the variance of the difference is (.25/.1 + .21/.9) / (.214/.1 + .214/.9) = 1.15 times
the pooled one: even in the limit, 95% intervals have coverage of .9325, and more rounds do not help. ALEE
replaces the sum of squared weights with its limit, 1, and is therefore conservative. Sequences and corrected
means are conservative because they are valid at all rounds, or under any design.
"""
NOT_RUN = (
    "Intervals of betting sequences (only their wealth is examined), and all sequences for arm means "
    "based on scores.",
    "IPW, ALEE with self-normalised errors, the running ridge, and policy values: these have separate "
    "pages or tests.",
    "Corrected sample means under DPConSE and LDPBandit, which choose by context, so that sample means "
    "are refused; sequences by group.",
    "Stopping times: sequences are evaluated only after the last round.",
)


@dataclass(frozen=True)
class Setting:
    """A design over a horizon, with what is fitted.

    Attributes
    ----------
    design : Design
        What gathers the data.
    weights : tuple of str
        Of AIPW; empty where propensities are not known.
    decay : float
        For two-point weights.
    kind : {"arms", "smooth"}
        Rewards of two arms, or two arms whose rewards depend on a context.
    small : bool
        Whether propensities fall below .05.
    """

    design: Design
    weights: tuple[str, ...] = ()
    decay: float = 0.0
    kind: str = "arms"
    small: bool = False


def settings(horizon: int) -> dict[str, Setting]:
    """The grid; nothing in it was changed after figures were seen."""
    posterior: dict[str, Any] = {"prior": "normal", "noise_scale": 0.5}
    private = PrivateUCB(epsilon=EPSILON)
    return {
        "Thompson": Setting(
            Thompson(**posterior, floor=(0.5, 0.7), initial_pulls=5), WEIGHTS, 0.7, small=True
        ),
        "EpsilonGreedy": Setting(EpsilonGreedy(exploration=0.2), WEIGHTS),
        "UCB": Setting(UCB()),
        "batched Thompson": Setting(Thompson(**posterior, floor=0.1, batch_size=horizon // 10), WEIGHTS),
        "PrivateUCB": Setting(private),
        "Mixture(PrivateUCB)": Setting(Mixture(private, exploration=0.2), WEIGHTS),
        "LDPBandit": Setting(LDPBandit(epsilon=4.0, check_every=10), ("uniform",), kind="smooth"),
        "Mixture(LDPBandit)": Setting(
            Mixture(LDPBandit(epsilon=4.0, check_every=10), exploration=0.2), ("uniform",), kind="smooth"
        ),
    }


def environment(kind: str, signal: str) -> Environment:
    """Where data are collected."""
    if kind == "arms":
        return BernoulliArms(MEANS[signal])
    if kind == "groups":
        effect = EFFECTS[signal]
        return FiniteContext([0.6, 0.4], [[0.4, 0.4 + effect], [0.6, 0.6 + effect]])
    # Bumps at 1/2 and 1: their averages over [1/2, 1] are the same.
    rows = np.linspace(BEGINS[signal], 1.0, 1_001)[:, None]
    return SmoothArms(n_arms=2, dimension=1, contexts=rows, order="resampled")


def batched(log: Any) -> Any:
    """Batched least squares."""
    return Contrast(log, treatment=1, control=0).fit("batched")


def aipw_groups(log: Any) -> Any:
    """AIPW of the effects by group."""
    return CATE(log, by="feature", treatment=1, control=0).fit("aipw")


def battery_of(setting: Setting, env: Environment) -> Battery:
    """Analyses of the logs of a setting."""
    mean0, mean1 = env.arm_means()
    own = setting.kind == "arms"
    return Battery((float(mean0), float(mean1)), setting.weights, setting.decay, own)


def part(name: str, signal: str, horizon: int, runs: int, folder: Path) -> Study:
    """One cell of the grid as a study of its own."""
    if name == "DPConSE":
        design, env = CONSE, environment("groups", signal)
        analyses: dict[str, Any] = {"aipw": aipw_groups}
        truth: dict[str, Any] = {}
    else:
        setting = settings(horizon)[name]
        design, env = setting.design, environment(setting.kind, signal)
        battery = battery_of(setting, env)
        analyses, truth = {"all": battery}, {"all": battery.target}
        if name == "batched Thompson":
            analyses["batched"] = batched
    return study(
        {name: design},
        {signal: env},
        analyses,
        [horizon],
        runs,
        SEED,
        _path(name, signal, horizon, runs, folder),
        truth=truth,
        progress=False,
    )


@dataclass(frozen=True)
class Corrected:
    """Corrected exact tests of sample means, for many runs at once; 0/1 rewards."""

    log_level: float

    def __call__(self, sims: Replications) -> Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        pulls, sums = sims.pulls, sims.sums
        means = sims.means
        pair = (means[:, 1], pulls[:, 1], means[:, 0], pulls[:, 0])
        limits = [BoundedDifferenceReference(*pair).interval(self.log_level)]
        limits += [BinomialReference(sums[:, arm], pulls[:, arm]).interval(self.log_level) for arm in (0, 1)]
        estimate = np.column_stack((means[:, 1] - means[:, 0], means))
        low, high = (np.column_stack([limit[:, side] for limit in limits]) for side in (0, 1))
        return {"corrected exact": (estimate, low, high)}


def by_group(sims: Replications) -> Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Effects under DPConSE from sums, and from the private releases alone."""
    tallies = sims.phase_tallies("estimation", randomised=True)
    released = sims.released
    return {
        "difference in means": difference_intervals(*(tallies[..., k] for k in range(3)), binary=True),
        "released": released_intervals(
            released["contrast_sum"],
            released["arrivals"],
            epsilon_sum=CONSE.contrast_share * CONSE.epsilon,
            epsilon_count=(1.0 - CONSE.contrast_share) * CONSE.epsilon,
            minimum=released["t_min"] / 4.0,
        ),
    }


def sums(name: str, signal: str, horizon: int, runs: int, folder: Path) -> pd.DataFrame:
    """Analyses that need sums only, of the same design, in a file."""
    whole = _path(name, signal, horizon, runs, folder)
    path = whole.with_name(f"sums-{whole.name}.csv")
    if not path.exists():
        if name == "DPConSE":
            design, env = CONSE, environment("groups", signal)
            fit: Any = by_group
            truth, terms = env.effects(), ["feature=0", "feature=1"]
        else:
            design, env = settings(horizon)[name].design, environment("arms", signal)
            correction = correction_for(design.run(env, horizon, rng=0))
            assert correction is not None
            fit = Corrected(correction.level(math.log(ALPHA)))
            mean0, mean1 = env.arm_means()
            truth, terms = np.array([mean1 - mean0, mean0, mean1]), ["contrast", "arm 0", "arm 1"]
        frame = coverage_from_tallies(design, env, fit, truth, horizon, runs, SEED).frame
        frame["term"] = [terms[int(term)] for term in frame["term"]]
        folder.mkdir(parents=True, exist_ok=True)
        frame.to_csv(path, index=False)
    return pd.read_csv(path)


def label_of(design: str, method: str) -> str:
    """What the suite says a method is worth for logs of a design."""
    if method in EXACT:
        return "exact"
    if method in ANYTIME:
        return "anytime"
    if method == WEALTH:
        return "wealth"
    return "naive" if method in NAIVE and design != "UCB" else "asymptotic"


def tidy(frame: pd.DataFrame, name: str, signal: str, horizon: int) -> pd.DataFrame:
    """Columns for design, signal, horizon, method, quantity and label."""
    split = [str(term).rpartition(" | ") for term in frame["term"]]
    methods = [first or row for (first, _, _), row in zip(split, frame["analysis"], strict=True)]
    quantities = [last if first or " - " not in last else "contrast" for first, _, last in split]
    return frame.assign(
        design=name,
        signal=signal,
        horizon=horizon,
        method=methods,
        quantity=quantities,
        label=[label_of(name, method) for method in methods],
    )


def grid(horizons: tuple[int, ...] = HORIZONS) -> Iterator[tuple[str, str, int]]:
    for horizon in horizons:
        for name in ("DPConSE", *settings(horizon)):
            for signal in MEANS:
                yield name, signal, horizon


def collect(runs: int, folder: Path, *, compute: bool, quick: bool) -> pd.DataFrame:
    """Figures of every cell; of those that are there, where nothing is to be computed."""
    frames = []
    folder.mkdir(parents=True, exist_ok=True)
    for name, signal, horizon in grid():
        if quick and not (name in QUICK and horizon == HORIZONS[0]):
            continue
        began = time.process_time()
        if not compute and not _done(name, signal, horizon, runs, folder):
            continue
        where = _path(name, signal, horizon, runs, folder)
        cell = part(name, signal, horizon, runs, folder) if compute else Study.load(where)
        found = [cell.frame]
        if name in ("DPConSE", "PrivateUCB", "Mixture(PrivateUCB)"):
            found.append(sums(name, signal, horizon, runs, folder))
        frames += [tidy(frame, name, signal, horizon) for frame in found]
        if compute:
            spent = time.process_time() - began
            print(
                f"{name}, {signal}, T = {horizon}: {spent:.0f} s, {1e3 * spent / runs:.2f} ms a run",
                flush=True,
            )
    return pd.concat(frames, ignore_index=True)


def minutes(runs: int, folder: Path) -> float:
    """Processor time of the studies."""
    done = [cell for cell in grid() if _done(*cell, runs, folder)]
    spent = [Study.load(_path(*cell, runs, folder)).times["cpu_seconds"].sum() for cell in done]
    return float(sum(spent)) / 60.0


def _path(name: str, signal: str, horizon: int, runs: int, folder: Path) -> Path:
    plain = name.replace("(", "-").replace(")", "")
    return folder / f"{plain}-{signal.replace(' ', '-')}-{horizon}-{runs}"


def _done(name: str, signal: str, horizon: int, runs: int, folder: Path) -> bool:
    path = _path(name, signal, horizon, runs, folder)
    if not path.exists():
        return False
    try:
        Study.load(path)
    except ParameterError:
        return False
    return True


def check_passes(logs: int = 50) -> None:
    """Compare the passes over arrays with the classes, on logs of every design."""
    for name, setting in settings(1_000).items():
        for signal in ("low signal", "high signal"):
            env = environment(setting.kind, signal)
            battery = battery_of(setting, env)
            for log in setting.design.logs(env, 1_000, logs // 2, SEED + 1):
                check(battery, log)
        print(f"{name}: the passes agree with the classes on {logs} logs", flush=True)


def check_labels() -> None:
    """Compare the labels with those of `recommend`."""
    for name, setting in settings(1_000).items():
        env = environment(setting.kind, "high signal")
        log = setting.design.run(env, 1_000, rng=SEED)
        decay = setting.decay if "two-point" in setting.weights else None
        said = {
            row.verdict.name: row.verdict.label for row in recommend(log, "contrast", decay=decay).methods
        }
        methods = [*battery_of(setting, env).methods, *(SCORED if setting.weights else ())]
        methods += ["batched"] if name == "batched Thompson" else []
        methods += ["corrected exact"] if name in ("PrivateUCB", "Mixture(PrivateUCB)") else []
        for method in methods:
            label = label_of(name, method)
            assert said[NAMES[method]] == ("not valid" if label == "naive" else label), (name, method)
        print(f"{name}: labels are those of recommend", flush=True)


def main() -> None:
    parser = evidence.parser(__doc__)
    parser.add_argument("--check", action="store_true", help="only compare the passes with the classes")
    parser.add_argument("--page", action="store_true", help="only write the page, of what is there")
    parser.add_argument("--folder", type=Path, help="for parts, build/inference by default")
    options = parser.parse_args()
    if options.check:
        check_labels()
        check_passes()
        return
    with evidence.folder(options.folder, __file__, options.quick) as folder:
        write(options, folder)


def write(options: argparse.Namespace, folder: Path) -> None:
    """Measure, unless it is there, and make the page."""
    runs = 128 if options.quick else 20_032
    frame = collect(runs, folder, compute=not options.page, quick=options.quick)
    smooth = [environment("smooth", signal).arm_means() for signal in MEANS]
    absent = [
        f"{name}, {signal}, T = {horizon:,}"
        for name, signal, horizon in grid()
        if not _done(name, signal, horizon, runs, folder)
    ]
    text = page(
        frame,
        why=WHY,
        left=[*(["Cells: " + "; ".join(absent) + "."] if absent else []), *NOT_RUN],
        command=COMMAND + " --quick" * options.quick,
        seed=SEED,
        today=evidence.stamp(),
        runs=runs,
        minutes=minutes(runs, folder),
        epsilon=EPSILON,
        contrasts=", ".join(f"{round(second - first, 3) + 0.0:.3f}" for first, second in smooth),
    )
    evidence.publish(text, __file__, options)
    if options.quick:
        evidence.hold_cell(text, __file__, "1,000 | UCB | no signal", "sample mean", (runs, 20_032))


if __name__ == "__main__":
    main()
