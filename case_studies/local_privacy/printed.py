"""The paper's Table 2 as printed, and what can be checked in it without its data."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from case_studies.local_privacy.table_2 import COLUMNS, PAIRS

# Ratios at n/4 and then at n, in the order LDPMAB, Linear, NN, each with and then without auxiliary data.
TABLE_2 = {
    (1.0, 1.0): {
        "Adult": (1.459, 0.987, 0.954, 0.950, 0.906, 0.935, 1.101, 0.795, 0.724, 0.715, 0.750, 0.784),
        "Jobs": (0.801, 0.797, 0.786, 0.794, 0.800, 0.795, 0.694, 0.693, 0.684, 0.690, 0.700, 0.695),
        "Taxi": (0.989, 0.976, 0.987, 0.984, 0.998, 0.989, 0.994, 0.992, 0.996, 0.993, 0.998, 0.995),
    },
    (1.0, 4.0): {
        "Adult": (1.602, 0.987, 0.988, 0.986, 1.110, 0.992, 1.210, 0.795, 0.782, 0.771, 0.871, 0.816),
        "Jobs": (0.846, 0.797, 0.795, 0.804, 0.800, 0.798, 0.742, 0.693, 0.688, 0.704, 0.698, 0.695),
        "Taxi": (0.997, 0.985, 0.976, 0.969, 0.990, 0.989, 0.996, 0.992, 0.992, 0.991, 0.996, 0.995),
    },
    (2.0, 1.0): {
        "Adult": (1.459, 0.986, 0.964, 0.986, 0.895, 0.930, 1.102, 0.919, 0.762, 0.772, 0.745, 0.808),
        "Jobs": (0.819, 0.808, 0.788, 0.791, 0.800, 0.797, 0.719, 0.720, 0.683, 0.683, 0.705, 0.688),
        "Taxi": (0.992, 0.974, 0.989, 0.989, 1.000, 0.996, 0.996, 0.992, 0.997, 0.997, 1.000, 0.999),
    },
    (2.0, 4.0): {
        "Adult": (1.602, 0.986, 0.964, 0.968, 0.895, 0.929, 1.210, 0.919, 0.762, 0.762, 0.745, 0.791),
        "Jobs": (0.857, 0.808, 0.788, 0.785, 0.800, 0.792, 0.754, 0.720, 0.683, 0.674, 0.705, 0.696),
        "Taxi": (1.001, 0.974, 0.989, 0.989, 1.000, 1.000, 1.002, 0.992, 0.997, 0.997, 1.000, 1.000),
    },
}
RANK_SUMS = {"n/4": (15, 45, 55, 52, 37, 43), "n": (22, 44, 54, 56, 33, 36)}


def table() -> pd.DataFrame:
    """The printed ratios in the form of ours."""
    rows = []
    for place, size in enumerate(("n/4", "n")):
        for pair in PAIRS:
            for data, ratios in TABLE_2[pair].items():
                told = {"rounds": size, "epsilon": pair[0], "epsilon_m": pair[1], "data": data}
                rows.append({**told, **dict(zip(COLUMNS, ratios[6 * place : 6 * place + 6], strict=True))})
    return pd.DataFrame(rows)


def unchanged(epsilon: float, kind: str) -> tuple[int, int]:
    """Entries of Linear and NN that are the same under epsilon_m = 1 and 4, and how many there are.

    Without auxiliary data ("wo") nothing depends on epsilon_m; with them ("w") everything does.
    """
    places = [COLUMNS.index(f"{method} {kind}") for method in ("LDPLinear", "network")]
    first, second = (
        np.array(list(TABLE_2[epsilon, each].values())).reshape(3, 2, 6)[..., places] for each in (1.0, 4.0)
    )
    return int((first == second).sum()), first.size


def smallest_rank_sums() -> dict[str, list[int]]:
    """Rank sums of the printed ratios, ties having the smallest of their ranks."""
    found = {}
    for size, rows in table().groupby("rounds", sort=False):
        ranks = stats.rankdata(-rows[COLUMNS].to_numpy(), method="min", axis=1)
        found[str(size)] = ranks.sum(axis=0).astype(int).tolist()
    return found
