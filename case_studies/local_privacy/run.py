"""Locally private bandits: Ma, Jiang, Zhao, Yang and Yu (2025), Section 4, Figures 4 to 9 and Table 2.

What the paper leaves open was chosen before anything was measured. Simulations: `LDPBandit` as corrected, a
check every 100 participants; beside it the first of the longest edges, and noise in the visited bin only.
Figure 7(b): one auxiliary log; Figure 9(a) and (b): 20,000 people in each of the two logs; 9(c): gamma = 0.
Figure 6 is measured over many trials at its own size, and drawn where the corrected radius shows something:
eighty times the people, eight times every epsilon.
Table 2: three sets that ship with scikit-learn, a third each public, for the trial and from elsewhere; the
first three principal components; n = 40,000, one log of 10,000, both drawn with replacement; n/4 is the first
quarter of a run; rank sums as the paper's printed ones come out, ties having the smallest rank.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from case_studies.local_privacy import claims, data, learning, pictures, simulations, table_2
from case_studies.outcome import Outcome, Settings

SEED = 2604
ROUNDS, REPORTS = 40_000, 10_000
PAPER_SIZES, SHOWN_SIZES = (1_000, 500), (80_000, 40_000)


def tasks() -> list[data.Task]:
    """Trials on the sets of scikit-learn."""
    found = []
    for number, name in enumerate(data.SHIPPED):
        rows = data.shipped(name, np.random.SeedSequence([SEED, number]))
        found.append(data.task(name, rows, ROUNDS, REPORTS))
    return found


def measure(settings: Settings) -> tuple[claims.Claims, dict[str, pd.DataFrame]]:
    """Figures with their standard errors, and tables."""
    jobs = settings.n_jobs
    trials = tasks()
    found = table_2.measure(trials, settings.runs(100, 15), SEED, simulations.CHECK_EVERY, jobs)
    sizes = simulations.QUICK if settings.quick else simulations.FULL
    regrets = simulations.measure(sizes, SEED, jobs)
    summary = simulations.summary(regrets)
    ends = [
        learning.endings(kind, PAPER_SIZES, settings.runs(most, fewest), SEED, jobs)
        for kind, most, fewest in (("published", 1_000, 60), ("corrected", 100, 10))
    ]
    ratios = table_2.summary(found)
    ranks = table_2.rank_sums(ratios)
    tables = {
        "figure_6": learning.showcase("corrected", SHOWN_SIZES, SEED),
        "figure_6_many": pd.concat(ends, ignore_index=True),
        "orders": learning.orders(50_000, 80_000, settings.runs(100, 20), SEED, jobs),
        "regret": summary,
        "table_2": ratios,
        "table_2_ranks": ranks,
        "table_2_baselines": table_2.baselines(trials, found),
    }
    figures = claims.in_print() | claims.figure_6(tables["figure_6_many"])
    figures |= claims.figure_7(summary) | claims.orders(tables["orders"])
    figures |= claims.spread(regrets) | claims.figures_8_and_9(summary)
    figures |= claims.table_2(found, ratios, ranks)
    return figures, tables


def run(settings: Settings) -> Outcome:
    """Measure, and draw what was measured."""
    figures, tables = measure(settings)
    drawn = {
        "figures_4_5": pictures.setting(),
        "figure_6": pictures.learning(tables["figure_6"]),
        "figure_6_many": pictures.dropped(tables["figure_6_many"]),
        "figure_7": pictures.rounds(tables["regret"]),
        "figure_8": pictures.auxiliary(tables["regret"]),
        "figure_9": pictures.quality(tables["regret"]),
        "table_2": pictures.ratios(tables["table_2"]),
    }
    return Outcome({name: value for name, (value, _) in figures.items()}, tables, drawn)
