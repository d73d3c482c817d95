"""The RAND Health Insurance Experiment run again as private adaptive trials.

20,190 person-years of families who were given free care or cost sharing at random. Full data: whether a
doctor was seen in the year is 14 points more frequent with free care. A trial of as many rounds, whose
rewards are drawn with replacement from the data by plan (and health), is run adaptively and privately: what
would have been concluded, at what epsilon, and how many visits would have been forgone? Intervals are judged
on the real outcome distributions: any visit, and the number of visits (0 to 77, a third of them 0), capped at
20.

Chosen here, before anything was measured: as many rounds as the data have person-years; 95% intervals; the
cap of 20 visits, which 1% of the person-years exceed; epsilon in {.01, .02, .05, .1, .3, 1, 3, 10}; DP-ConSE
with alpha = .2, and 0 beside it; an override of one round in ten in the mixture; free care is "preferred"
because it has more visits, not because visits are good.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from adaptinf import CATE, AdaptiveLog, ConfidenceSequence, Contrast, audit, corrected_level, max_information
from adaptinf.datasets import rand_hie
from adaptinf.designs import (
    UCB,
    ConSE,
    Design,
    DPConSE,
    Mixture,
    PrivateSuccessiveElimination,
    PrivateUCB,
    Uniform,
)
from adaptinf.simulation.environments import Replay
from case_studies.outcome import Outcome, Settings
from case_studies.rand_hie import pictures

ARMS = ("cost sharing", "free care")
PAIR = {"treatment": ARMS[1], "control": ARMS[0]}
GROUPS = ("excellent", "good", "fair-or-poor")
CAP = 20
HORIZON = 20_190
EPSILONS = (0.01, 0.02, 0.05, 0.1, 0.3, 1.0, 3.0, 10.0)
CORRECTED = (0.01, 0.02, 0.05, 0.1)
SEED = 1974


def run(settings: Settings) -> Outcome:
    frame = rand_hie()
    frame["visits up to 20"] = frame["visits"].clip(upper=CAP) / CAP
    outcomes = {"any visit": "any_visit", "visits up to 20": "visits up to 20"}
    told = {"arms": ARMS, "reward_range": (0.0, 1.0)}
    pooled = {name: Replay(frame, "arm", column, **told) for name, column in outcomes.items()}
    by_health = {name: Replay(frame, "arm", column, "group", **told) for name, column in outcomes.items()}
    tables = {
        "full_data": full_data(frame, outcomes),
        "contrasts": contrasts(pooled, settings.runs(600, 64), settings.n_jobs),
        "corrected": corrected(pooled["any visit"], settings.runs(80, 12), settings.n_jobs),
        "groups": groups(by_health, settings.runs(240, 16), settings.n_jobs),
        "regret": regret(
            pooled["any visit"], by_health["any visit"], settings.runs(600, 64), settings.n_jobs
        ),
    }
    drawn = {
        "groups": pictures.groups(tables["groups"], tables["full_data"]),
        "price": pictures.price(tables["regret"], tables["corrected"], tables["contrasts"]),
        "coverage": pictures.coverage(tables["contrasts"], tables["groups"]),
    }
    return Outcome(figures(tables), tables, drawn)


def full_data(frame: pd.DataFrame, outcomes: Mapping[str, str]) -> pd.DataFrame:
    """Differences of means in all data, with standard errors that take person-years as independent."""
    rows = []
    for outcome, column in outcomes.items():
        for group in ("all", *GROUPS):
            part = frame if group == "all" else frame[frame["group"] == group]
            moments = part.groupby("arm")[column].agg(["size", "mean", "var"])
            free, shared = moments.loc[ARMS[1]], moments.loc[ARMS[0]]
            rows.append(
                {
                    "outcome": outcome,
                    "group": group,
                    "person-years": len(part),
                    "cost sharing": shared["mean"],
                    "free care": free["mean"],
                    "effect": free["mean"] - shared["mean"],
                    "std_error": math.sqrt(free["var"] / free["size"] + shared["var"] / shared["size"]),
                }
            )
    return pd.DataFrame(rows)


def naive(log: AdaptiveLog) -> Any:
    """Welch's t, as if the plans had been fixed in advance."""
    return Contrast(log, **PAIR).fit("sample-mean", test="t")


def alee(log: AdaptiveLog) -> Any:
    """Adaptive linear estimating equations."""
    return Contrast(log, **PAIR).fit("alee")


def betting(log: AdaptiveLog) -> Any:
    """Betting confidence sequences of both arms, at the last round."""
    return ConfidenceSequence(log, "contrast", **PAIR).fit("betting", estimator="sample-mean")


def aipw(log: AdaptiveLog) -> Any:
    """AIPW with the weights that the library chooses; refused where propensities are not known."""
    return Contrast(log, **PAIR).fit("aipw")


def exact(log: AdaptiveLog) -> Any:
    """Sample means by exact tests, and the correction that privacy pays for."""
    return Contrast(log, **PAIR).fit("sample-mean")


def released(log: AdaptiveLog) -> Any:
    """What DP-ConSE itself releases; the difference in means for ConSE."""
    private = log.design is not None and log.design.name == "DPConSE"
    return CATE(log, by="group", **PAIR).fit(estimator="released" if private else "difference-in-means")


def difference(log: AdaptiveLog) -> Any:
    """The trusted analyst's difference in means over the randomised rounds."""
    return CATE(log, by="group", **PAIR).fit(estimator="difference-in-means")


def scores(log: AdaptiveLog) -> Any:
    """The trusted analyst's AIPW over the whole second half."""
    return CATE(log, by="group", **PAIR).fit(estimator="aipw")


def contrast_designs() -> dict[str, Design]:
    """One contrast: the designs that are compared."""
    return {
        "uniform": Uniform(),
        "UCB": UCB(),
        "private UCB, 0.02": PrivateUCB(epsilon=0.02),
        "private UCB, 0.1": PrivateUCB(epsilon=0.1),
        "private UCB, 1": PrivateUCB(epsilon=1.0),
        "private elimination, 0.1": PrivateSuccessiveElimination(epsilon=0.1),
        "private elimination, 1": PrivateSuccessiveElimination(epsilon=1.0),
        "mixture with private UCB, 1": Mixture(PrivateUCB(epsilon=1.0), exploration=0.1),
    }


def group_designs() -> dict[str, Design]:
    """Effects by health: the designs that are compared."""
    return {
        "ConSE": ConSE(alpha=0.2),
        "DP-ConSE, 0.3": DPConSE(epsilon=0.3, alpha=0.2),
        "DP-ConSE, 1": DPConSE(epsilon=1.0, alpha=0.2),
        "DP-ConSE, 3": DPConSE(epsilon=3.0, alpha=0.2),
        "DP-ConSE, 1, alpha = 0": DPConSE(epsilon=1.0, alpha=0.0),
    }


def simulated(
    designs: Mapping[str, Design],
    environments: Mapping[str, Replay],
    analyses: Mapping[str, Callable[[AdaptiveLog], Any]],
    runs: int,
    n_jobs: int,
) -> pd.DataFrame:
    """Coverage, power and width of analyses over simulated trials."""
    found = audit.study(
        designs=dict(designs),
        environments=dict(environments),
        analyses=dict(analyses),
        horizons=[HORIZON],
        replications=runs,
        rng=SEED,
        n_jobs=n_jobs,
        progress=False,
    )
    kept = ["design", "environment", "analysis", "term", "truth", "runs", "missing", "invalid", "coverage"]
    kept += ["coverage_se", "rejected", "bias", "bias_se", "sd", "width", "note"]
    return found.frame[kept].rename(columns={"environment": "outcome"})


def contrasts(environments: Mapping[str, Replay], runs: int, n_jobs: int) -> pd.DataFrame:
    """One contrast under every design, by methods that need no exact test."""
    analyses = {"naive": naive, "ALEE": alee, "betting": betting, "AIPW": aipw}
    table = simulated(contrast_designs(), environments, analyses, runs, n_jobs)
    return table[~table["analysis"].str.endswith("corrected")].reset_index(drop=True)


def corrected(environment: Replay, runs: int, n_jobs: int) -> pd.DataFrame:
    """The max-information correction of private UCB's exact intervals, where it is not vacuous."""
    designs = {f"{epsilon:g}": PrivateUCB(epsilon=epsilon) for epsilon in CORRECTED}
    table = simulated(designs, {"any visit": environment}, {"exact": exact}, runs, n_jobs)
    table = table.rename(columns={"design": "epsilon"})
    table["epsilon"] = table["epsilon"].astype(float)
    table["bits at beta = .025"] = [
        max_information(epsilon, HORIZON - 1, beta=0.025) for epsilon in table["epsilon"]
    ]
    table["corrected level"] = [
        corrected_level(0.05, epsilon=epsilon, n=HORIZON - 1) for epsilon in table["epsilon"]
    ]
    return table


def groups(environments: Mapping[str, Replay], runs: int, n_jobs: int) -> pd.DataFrame:
    """Effects by health: what is released, and what a trusted analyst makes of the raw log."""
    analyses = {"released": released, "difference": difference, "AIPW": scores}
    table = simulated(group_designs(), environments, analyses, runs, n_jobs)
    table["term"] = table["term"].str.removeprefix("group=")
    again = (table["design"] == "ConSE") & (table["analysis"] == "released")  # its difference in means
    return table[~again].reset_index(drop=True)


def regret(pooled: Replay, by_health: Replay, runs: int, n_jobs: int) -> pd.DataFrame:
    """Visits forgone against free care for all, over epsilon."""
    designs: dict[str, list[tuple[float, Design, Replay]]] = {
        "UCB": [(math.inf, UCB(), pooled)],
        "private UCB": [(epsilon, PrivateUCB(epsilon=epsilon), pooled) for epsilon in EPSILONS],
        "private elimination": [
            (epsilon, PrivateSuccessiveElimination(epsilon=epsilon), pooled)
            for epsilon in EPSILONS
            if epsilon >= 0.1
        ],
        "ConSE": [(math.inf, ConSE(alpha=0.2), by_health)],
        "DP-ConSE": [
            (epsilon, DPConSE(epsilon=epsilon, alpha=0.2), by_health)
            for epsilon in EPSILONS
            if epsilon >= 0.1
        ],
    }
    coin = {id(place): coin_regret(place) for place in (pooled, by_health)}
    rows = []
    for name, cells in designs.items():
        for epsilon, design, place in cells:
            lost = design.replicate(place, HORIZON, runs, rng=SEED + 1, n_jobs=n_jobs).regret
            rows.append(
                {
                    "design": name,
                    "epsilon": epsilon,
                    "regret": lost.mean(),
                    "std_error": lost.std(ddof=1) / math.sqrt(runs),
                    "of a coin's": lost.mean() / coin[id(place)],
                    "sd": lost.std(ddof=1),
                }
            )
    return pd.DataFrame(rows)


def coin_regret(environment: Replay) -> float:
    """Expected regret of a fair coin."""
    gaps = environment.means.max(axis=1) - environment.means.mean(axis=1)
    return float(HORIZON * np.dot(environment.probabilities[0], gaps))


def figures(tables: Mapping[str, pd.DataFrame]) -> dict[str, float]:
    """The figures that expected.toml judges."""
    truth = tables["full_data"].set_index(["outcome", "group"])
    single = tables["contrasts"].set_index(["design", "outcome", "analysis"])
    fixed = tables["corrected"].set_index(["epsilon", "analysis"])
    lost = tables["regret"].set_index(["design", "epsilon"])["of a coin's"]
    mixture = "mixture with private UCB, 1"
    numbers = tables["groups"].groupby(["design", "outcome", "analysis"], sort=False)
    health = numbers[["coverage", "rejected", "width"]].mean()
    found = {f"effect_{group}": truth.loc[("any visit", group), "effect"] for group in ("all", *GROUPS)}
    found |= {
        "naive_ucb": single.loc[("UCB", "any visit", "naive"), "coverage"],
        "alee_ucb": single.loc[("UCB", "any visit", "ALEE"), "coverage"],
        "betting_ucb": single.loc[("UCB", "any visit", "betting"), "coverage"],
        "naive_ucb_bias": single.loc[("UCB", "any visit", "naive"), "bias"],
        "naive_private_bias": single.loc[("private UCB, 0.02", "any visit", "naive"), "bias"],
        "aipw_mixture": single.loc[(mixture, "any visit", "AIPW"), "coverage"],
        "aipw_mixture_visits": single.loc[
            ("mixture with private UCB, 1", "visits up to 20", "AIPW"), "coverage"
        ],
        "alee_private_visits": single.loc[("private UCB, 1", "visits up to 20", "ALEE"), "coverage"],
        "betting_private_power": single.loc[("private UCB, 1", "any visit", "betting"), "rejected"],
        "aipw_refused": single.loc[("private UCB, 1", "any visit", "AIPW"), "invalid"]
        / single.loc[("private UCB, 1", "any visit", "naive"), "runs"],
        "corrected_power_002": fixed.loc[(0.02, "exact, corrected"), "rejected"],
        "corrected_power_01": fixed.loc[(0.1, "exact, corrected"), "rejected"],
        "corrected_width_002": fixed.loc[(0.02, "exact, corrected"), "width"],
        "exact_width_002": fixed.loc[(0.02, "exact"), "width"],
        "corrected_bits_002": fixed.loc[(0.02, "exact"), "bits at beta = .025"],
        "corrected_bits_01": fixed.loc[(0.1, "exact"), "bits at beta = .025"],
    }
    for name, design in {"03": "DP-ConSE, 0.3", "1": "DP-ConSE, 1", "3": "DP-ConSE, 3"}.items():
        for outcome in ("any visit", "visits up to 20"):
            place = (design, outcome, "released")
            suffix = "" if outcome == "any visit" else "_visits"
            found[f"released_coverage_{name}{suffix}"] = health.loc[place, "coverage"]
        found[f"released_power_{name}"] = health.loc[(design, "any visit", "released"), "rejected"]
    found |= {
        "released_power_1_alpha_0": health.loc[
            ("DP-ConSE, 1, alpha = 0", "any visit", "released"), "rejected"
        ],
        "released_width_1_visits": health.loc[("DP-ConSE, 1", "visits up to 20", "released"), "width"],
        "difference_width_1_visits": health.loc[("DP-ConSE, 1", "visits up to 20", "difference"), "width"],
        "conse_power": health.loc[("ConSE", "any visit", "difference"), "rejected"],
        "aipw_power_1": health.loc[("DP-ConSE, 1", "any visit", "AIPW"), "rejected"],
        "regret_ucb": lost["UCB", math.inf],
        "regret_private_ucb_001": lost["private UCB", 0.01],
        "regret_private_ucb_1": lost["private UCB", 1.0],
        "regret_elimination_01": lost["private elimination", 0.1],
        "regret_elimination_1": lost["private elimination", 1.0],
        "regret_conse": lost["ConSE", math.inf],
        "regret_dp_conse_1": lost["DP-ConSE", 1.0],
    }
    return {name: float(value) for name, value in found.items()}
