"""The winner of a public leaderboard of language models, with and without allowance for the choice.

Zrnic and Fithian (2024) publish the win rates of 136 models on Chatbot Arena, each from some 500 battles,
with standard errors. The best model was chosen by these rates. How high is its rate really? Estimates are
treated as independent and normal, as the authors do. In addition, the table's rates are taken as the truth,
or the ten highest are set to their mean, and all models are measured again. Chosen before anything was
measured: 95% and 90% intervals; seed 20241.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from case_studies.llm_arena import pictures
from case_studies.llm_arena.data import table
from case_studies.llm_arena.intervals import coverage, hybrid_on_a_grid, ours
from case_studies.outcome import Outcome, Settings

SEED = 20241
LEVELS = (0.05, 0.1)


def run(settings: Settings) -> Outcome:
    models = table(settings.cache)
    rates, errors = models["win_rate"].to_numpy(), models["sigma"].to_numpy()
    found = pd.concat([ours(rates, errors, alpha).assign(level=1 - alpha) for alpha in LEVELS])
    top = models.sort_values("win_rate", ascending=False, kind="stable").head(10)
    alike = np.where(models.index.isin(top.index), top["win_rate"].mean(), rates)
    worlds = {"as in the table": rates, "the best ten alike": alike}
    again = pd.concat(
        [
            coverage(truth, errors, LEVELS[0], settings.runs(10_000, 1_000), SEED).assign(truth=name)
            for name, truth in worlds.items()
        ],
        ignore_index=True,
    )
    named = found[found["level"] == 1 - LEVELS[0]].set_index("method")
    figures = {f"{row.method.replace(' ', '_')}_{end}": getattr(row, end)
               for row in named.reset_index().itertuples() for end in ("low", "high")}  # fmt: skip
    low, high = hybrid_on_a_grid(rates, errors, LEVELS[0])
    figures |= {"grid_low": low, "grid_high": high, "models": float(len(models))}
    figures["winner"] = float(np.max(rates))
    for row in again.itertuples():
        world = "alike" if row.truth == "the best ten alike" else "table"
        figures[f"coverage_{row.method}_{world}"] = row.coverage
        if row.method == "usual":
            figures[f"bias_{world}"] = row.bias
    tables = {"intervals": found, "coverage": again}
    return Outcome(figures, tables, {"winner": pictures.winner(top, found)})
