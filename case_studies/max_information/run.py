"""Max-information: Corollaries 1 to 4 of Neel and Roth (2018), regret bounds, and what a private design buys.

Curves are exact. Orders are drawn with a constant of 1, as the paper gives none. Chosen before anything was
measured: two arms with means .5 and .5 under the null hypothesis, .7 and .5 under the alternative; regret on
five arms with means .75, .625, .., .25.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from adaptinf.designs import UCB, PrivateSuccessiveElimination, PrivateUCB
from adaptinf.designs.base_design import Design
from adaptinf.simulation.environments import BernoulliArms
from adaptinf.theory import private_elimination_regret, private_ucb_regret
from case_studies.max_information import corollaries, cost, pictures
from case_studies.outcome import Outcome, Settings

SEED = 606
MEANS = [0.75, 0.625, 0.5, 0.375, 0.25]
HORIZONS = (30_000, 100_000, 300_000, 1_000_000)
EPSILONS = (0.1, 1.0)


def regrets(runs: int, n_jobs: int) -> pd.DataFrame:
    """Measured regret of private designs beside the bounds that are stated or proved for it."""
    env = BernoulliArms(MEANS)
    rows = []
    for horizon in HORIZONS:
        few = max(32, runs * HORIZONS[0] // horizon)
        designs: dict[tuple[str, float], Design] = {("UCB", np.inf): UCB()}
        for epsilon in EPSILONS:
            designs["private UCB", epsilon] = PrivateUCB(epsilon=epsilon)
            designs["private elimination", epsilon] = PrivateSuccessiveElimination(epsilon=epsilon)
        for (name, epsilon), design in designs.items():
            found = design.replicate(env, horizon, few, rng=SEED, n_jobs=n_jobs).regret
            bound = private_elimination_regret if name == "private elimination" else private_ucb_regret
            rows.append(
                {
                    "design": name,
                    "epsilon": epsilon,
                    "T": horizon,
                    "mean regret": float(found.mean()),
                    "standard error": float(found.std(ddof=1) / np.sqrt(few)),
                    "bound": float(bound(MEANS, horizon, epsilon)),
                    "runs": few,
                }
            )
    return pd.DataFrame(rows)


def run(settings: Settings) -> Outcome:
    """Compute the curves and measure what can be measured."""
    runs = settings.runs(10_048, 320)
    found = cost.table(runs, SEED, settings.n_jobs)
    plain = cost.regret_without_privacy(runs, SEED)
    found["regret over UCB's"] = found["mean regret"] / found["T"].map(plain)
    measured = regrets(settings.runs(320, 64), settings.n_jobs)
    examples = corollaries.counterexample()
    tables = {
        "cost": found,
        "counterexample": examples,
        "corollary_1_2": corollaries.first_and_second(),
        "corollary_3": corollaries.levels(),
        "corollary_4": corollaries.fourth(),
        "regret": measured,
    }
    drawn = {
        "corollary_1_2": pictures.first_and_second(tables["corollary_1_2"]),
        "corollary_3": pictures.third(tables["corollary_3"]),
        "corollary_4": pictures.fourth(tables["corollary_4"]),
        "counterexample": pictures.counterexample(examples),
        "cost": pictures.cost(found),
        "regret": pictures.regret(measured),
    }
    return Outcome(_figures(tables), tables, drawn)


def _figures(tables: dict[str, pd.DataFrame]) -> dict[str, float]:
    """The study's claims."""
    examples = tables["counterexample"]
    first = examples[(examples["level"] == "printed, beta = 1") & (examples["matches"] == 62)].iloc[0]
    ratios = corollaries.worst_ratios(examples)
    figures = {
        "printed_alpha": float(first["promised"]),
        "printed_true": float(first["true"]),
        "printed_worst": max(value for name, value in ratios.items() if name.startswith("printed")),
        "valid_worst": max(value for name, value in ratios.items() if name.startswith("valid")),
        "level_100": corollaries.usual_level(0.1, 100),
        "level_1000": corollaries.usual_level(0.1, 1_000),
        "level_root": corollaries.usual_level(0.01, 10_000),
    }
    fourth = tables["corollary_4"]
    last = fourth[fourth["T"] == fourth["T"].max()].set_index("setting")["log10 of the level"]
    figures |= {"fourth_5": float(last["K = 5"]), "fourth_100": float(last["K = 100"])}
    orders = tables["corollary_1_2"]
    end = orders[(orders["K"] == 5) & (orders["T"] == orders["T"].max())].iloc[0]
    figures["first_bias"] = float(end["bias, Corollary 1"])
    figures["first_regret"] = float(end["regret over T, Theorem 3 at that epsilon"])
    figures["second_regret"] = float(end["regret over T, valid at that epsilon"])
    found = tables["cost"]
    figures["largest_size_corrected"] = float(found["size, corrected"].max())
    figures["largest_size_naive"] = float(found["size, naive"].max())
    shorter, longer = found["length over ALEE's"] <= 1.0, found["length over ALEE's"] > 2.0
    figures["shorter_up_to"] = float(found.loc[shorter, "epsilon sqrt T"].max())
    figures["twice_from"] = float(found.loc[longer, "epsilon sqrt T"].min())
    chosen = found["first choice"] == "sample-mean with corrected columns"
    figures["chosen_up_to"] = float(found.loc[chosen, "epsilon sqrt T"].max())
    private = found[(found["design"] == "private UCB") & (found["rewards"] == cost.BINARY)]
    cells = private.set_index(["epsilon", "T"])
    for key, epsilon in (("01", 0.01), ("1", 0.1), ("10", 1.0)):
        figures[f"power_{key}"] = float(cells["power, corrected"][epsilon, 1_000])
        figures[f"regret_{key}"] = float(cells["regret over UCB's"][epsilon, 1_000])
    measured = tables["regret"]
    figures["regret_above_bound"] = float((measured["mean regret"] > measured["bound"]).sum())
    at = measured.set_index(["design", "epsilon", "T"])["mean regret"]
    figures["regret_ucb_1"] = float(at["private UCB", 1.0, 1_000_000])
    figures["regret_elimination_1"] = float(at["private elimination", 1.0, 1_000_000])
    return figures
