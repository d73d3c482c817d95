"""Three arms under Thompson sampling with a falling floor, with and without contexts.

Hadad, Hirshberg, Zhan, Wager and Athey (2021): rewards uniform within 1 of the arm's mean, means (1, 1, 1),
(.9, 1, 1.1) and (.5, 1, 1.5); Thompson sampling with a normal prior N(0, 1), five initial rounds an arm,
propensities at least t^-.7 / 3; normal 90% intervals from AIPW scores with uniform, square-root and two-point
weights, and from sample means. ALEE (Ying, Khamaru and Zhang 2023) stands beside them, with both of its
standard errors.

What the figures were read from leaves three things open, and every reading is run: the noise variance in
Thompson's posterior (1/3, the rewards' own, or 1, each with 100 posterior draws a round; or "estimated", as
in the authors' published simulation: the arm's variance so far, with 20 draws); whether the contrast is of
the best arm and the middle one, or the worst; and whether the first 15 rounds are drawn, with probability
1/3 each, or dealt out in turn, as the authors do and log as if drawn. Dealing was added last, after the other
readings had been compared with the paper.

Chosen here, before anything was measured: the first 15 rounds are drawn except in that last reading;
T = 10,000 is run with the estimated noise variance alone; with contexts, x uniform on [-1, 1], arms that
change places at 0, ten batches of 100 rounds, Thompson sampling on each side of 0 with noise variance 1/3.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy import special

from case_studies.hadad import pictures
from case_studies.hadad.arms import (
    ALPHA,
    ESTIMATORS,
    PLACES,
    READINGS,
    SETTINGS,
    covered,
    replications,
    targets,
)
from case_studies.hadad.contextual import FITS, TERMS, contextual_replications, contextual_targets
from case_studies.hadad.dealt import DEALT, dealt_replications
from case_studies.outcome import Outcome, Settings

SEED = 20211
PAPER = {
    "no signal": {"uniform": 0.878, "sqrt": 0.874, "two-point": 0.894, "sample mean": 0.790},
    "high signal": {"uniform": 0.812, "sqrt": 0.841, "two-point": 0.877, "sample mean": 0.882},
}
"""90% intervals of the contrast at T = 1,000, read off a plot: give or take .003."""
NEAR = 0.003 + 3.0 * math.sqrt(0.16 / 6_000)
"""A figure agrees: the plot's reading, and three standard errors of 6,000 replications."""
MAIN = "estimated"
CONTRASTS = ("best - middle", "best - worst")


def run(settings: Settings) -> Outcome:
    sizes = {1_000: settings.runs(6_000, 640), 10_000: settings.runs(6_000, 192)}
    kept, rows = {}, []
    for horizon, noise in itertools.product(sizes, READINGS):
        if horizon > 1_000 and noise != MAIN:
            continue
        for name, means in SETTINGS.items():
            found = replications(means, READINGS[noise], horizon, sizes[horizon], SEED, settings.n_jobs)
            rows += arm_rows(found, targets(means), {"signal": name, "noise": noise, "T": horizon})
            if noise == MAIN and horizon == 1_000:
                kept[name] = (found, targets(means))
    for name, means in SETTINGS.items():
        found = dealt_replications(name, 1_000, sizes[1_000], SEED, settings.n_jobs)
        rows += arm_rows(found, targets(means), {"signal": name, "noise": DEALT, "T": 1_000})
    by_context = []
    for name, means in SETTINGS.items():
        found = contextual_replications(name, settings.runs(2_000, 64), SEED, settings.n_jobs)
        by_context += context_rows(found, contextual_targets(means), name)
    tables = {"arms": pd.DataFrame(rows), "contextual": pd.DataFrame(by_context)}
    tables["readings"] = readings(tables["arms"])
    drawn = {
        "coverage": pictures.coverage(tables["arms"], PAPER),
        "readings": pictures.readings(tables["arms"], PAPER),
        "errors": pictures.errors(kept),
        "contextual": pictures.contextual(tables["contextual"]),
    }
    return Outcome(figures(tables), tables, drawn)


def arm_rows(found: np.ndarray, target: np.ndarray, labels: Mapping[str, object]) -> list[dict[str, object]]:
    """Coverage, bias and half-width by estimator and place."""
    return summary_rows(found, target, ESTIMATORS, PLACES, labels)


def context_rows(found: np.ndarray, target: np.ndarray, name: str) -> list[dict[str, object]]:
    """The same for values of policies."""
    return summary_rows(found, target, ("matched rounds", *FITS), TERMS, {"signal": name})


def summary_rows(
    found: np.ndarray,
    target: np.ndarray,
    estimators: tuple[str, ...],
    places: tuple[str, ...],
    labels: Mapping[str, object],
) -> list[dict[str, object]]:
    """Rows of a table: means over replications, with their errors."""
    runs = found.shape[0]
    share = covered(found, target)
    bias, spread = np.nanmean(found[..., 0], axis=0) - target, np.nanstd(found[..., 0], axis=0)
    half = -special.ndtri(ALPHA / 2.0) * np.nanmean(found[..., 1], axis=0)
    return [
        {
            **labels,
            "estimator": estimator,
            "of": place,
            "coverage": share[row, column],
            "coverage_se": math.sqrt(share[row, column] * (1.0 - share[row, column]) / runs),
            "bias": bias[row, column],
            "bias_se": spread[row, column] / math.sqrt(runs),
            "sd": spread[row, column],
            "half-width": half[row, column],
            "runs": runs,
        }
        for row, estimator in enumerate(estimators)
        for column, place in enumerate(places)
    ]


def readings(arms: pd.DataFrame) -> pd.DataFrame:
    """Every reading of what the plot shows, against the paper's figures."""
    rows = []
    for noise, place in itertools.product((*READINGS, DEALT), CONTRASTS):
        gaps = distances(arms, noise, place)
        rows.append(
            {
                "noise variance": noise,
                "contrast": place,
                "figures that agree, of 8": int(sum(abs(gaps) <= NEAR)),
                "largest distance": gaps[np.abs(gaps).argmax()],
                "root mean square": math.sqrt(np.mean(gaps**2)),
            }
        )
    return pd.DataFrame(rows)


def distances(arms: pd.DataFrame, noise: str, place: str) -> np.ndarray:
    """Ours minus the paper's, for each of the paper's figures."""
    table = arms[arms["T"] == 1_000].set_index(["noise", "of", "signal", "estimator"])["coverage"]
    return np.array(
        [
            table.loc[(noise, place, signal, estimator)] - PAPER[signal][estimator]
            for signal, estimator in paper_cells()
        ]
    )


def paper_cells() -> list[tuple[str, str]]:
    """Signals and estimators that the paper has a figure for."""
    return [(signal, estimator) for signal, values in PAPER.items() for estimator in values]


def figures(tables: Mapping[str, pd.DataFrame]) -> dict[str, float]:
    """The figures that expected.toml judges."""
    fit = tables["readings"].set_index(["noise variance", "contrast"])
    found = arm_figures(tables["arms"].set_index(["signal", "noise", "T", "estimator", "of"]))
    for noise, contrast in fit.index:
        label = f"{short(noise)}_{short(contrast)}"
        found[f"distance_{label}"] = fit.loc[(noise, contrast), "root mean square"]
    found |= policy_figures(tables["contextual"].set_index(["signal", "estimator", "of"]))
    return {name: float(value) for name, value in found.items()}


def arm_figures(arms: pd.DataFrame) -> dict[str, float]:
    """Coverage of contrasts, bias of the worst arm, and lengths, without contexts."""
    found = {}
    for noise, contrast in ((DEALT, CONTRASTS[0]), (MAIN, CONTRASTS[0]), (MAIN, CONTRASTS[1])):
        for signal, estimator in paper_cells():
            cell = arms.loc[(signal, noise, 1_000, estimator, contrast)]
            start = "dealt_" if noise == DEALT else ""
            found[f"{start}{short(signal)}_{short(estimator)}_{short(contrast)}"] = cell["coverage"]
    for signal, estimator in itertools.product(SETTINGS, ESTIMATORS):
        cell = arms.loc[(signal, MAIN, 10_000, estimator, "best - middle")]
        found[f"{short(signal)}_{short(estimator)}_long"] = cell["coverage"]
    for signal, estimator in itertools.product(SETTINGS, ESTIMATORS[-2:]):
        cell = arms.loc[(signal, MAIN, 1_000, estimator, "best - middle")]
        found[f"{short(signal)}_{short(estimator)}"] = cell["coverage"]
    for estimator in ("sample mean", "uniform", "two-point", "ALEE"):
        cell = arms.loc[("low signal", MAIN, 1_000, estimator, "worst arm")]
        found[f"worst_bias_{short(estimator)}"] = cell["bias"]
    for estimator in ("sample mean", "two-point", "ALEE"):
        widths = [
            arms.loc[("high signal", MAIN, 1_000, name, "best - middle"), "half-width"]
            for name in (estimator, "uniform")
        ]
        found[f"length_{short(estimator)}"] = widths[0] / widths[1]
    return found


def policy_figures(policies: pd.DataFrame) -> dict[str, float]:
    """Coverage and bias of the worst policy's value, with contexts, and lengths of its intervals."""
    found = {}
    for signal, estimator in itertools.product(("no signal", "high signal"), ("matched rounds", *FITS)):
        cell = policies.loc[(signal, estimator, "worst policy")]
        found[f"policy_{short(signal)}_{short(estimator)}"] = cell["coverage"]
    for estimator in ("matched rounds", *FITS):
        cell = policies.loc[("no signal", estimator, "worst policy")]
        found[f"policy_bias_{short(estimator)}"] = cell["bias"] / cell["sd"]
    for estimator in ("stable-variance", "min-variance, contextual"):
        widths = [
            policies.loc[("no signal", name, "worst policy"), "half-width"] for name in (estimator, "uniform")
        ]
        found[f"policy_length_{short(estimator)}"] = widths[0] / widths[1]
    return found


def short(label: str) -> str:
    """A label as part of a name."""
    return "_".join(
        label.replace(" - ", " minus ").replace("/", " of ").replace("-", " ").replace(",", " ").split()
    )
