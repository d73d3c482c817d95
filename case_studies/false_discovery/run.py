"""False discovery after adaptive collection: Neel and Roth (2018), 6.2 and Figure 6, and what does fail.

What the paper leaves open was chosen before anything was measured: OFUL keeps one regression an arm, with a
ridge of 1, a bound of 1 on its coefficients, noise of scale 1 and bands that fail with probability 1/T; each
arm has a context of its own. The other readings are run beside it.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from case_studies.false_discovery import arm_means, methods, oful, pictures
from case_studies.outcome import Outcome, Settings

SEED = 62
ALPHA = 0.05
KEYS = {"z": "z", "t": "t", "by the variance": "variance"}
KEYS |= {"z, ridge": "z_ridge", "by the variance, ridge": "variance_ridge"}


def shares(table: pd.DataFrame, by: list[str], alpha: float = ALPHA) -> pd.DataFrame:
    """Share of p-values of at most alpha, with its standard error; a refused log is not a rejection."""
    grouped = table.groupby(by, sort=False)["pvalue"]
    share = grouped.agg(lambda p: float((p <= alpha).mean()))
    runs = grouped.size()
    frame = pd.DataFrame({"rejected at .05": share})
    frame["standard error"] = np.sqrt(share * (1.0 - share) / runs)
    frame["refused"] = grouped.agg(lambda p: float(p.isna().mean()))
    frame["runs"] = runs
    return frame.reset_index()


def histogram(table: pd.DataFrame, by: list[str], bins: int = 20) -> pd.DataFrame:
    """Share of all runs in each bin of p-values."""
    edges = np.linspace(0.0, 1.0, bins + 1)
    rows = []
    for names, part in table.groupby(by, sort=False):
        counts = np.histogram(part["pvalue"].dropna(), edges)[0] / len(part)
        rows += [
            dict(zip(by, names, strict=True)) | {"from": low, "to": high, "share of runs": share}
            for low, high, share in zip(edges[:-1], edges[1:], counts, strict=True)
        ]
    return pd.DataFrame(rows)


def run(settings: Settings) -> Outcome:
    """Measure everything."""
    jobs = settings.n_jobs
    linear = oful.pvalues(settings.runs(3_200, 320), SEED, jobs)
    compared = methods.pvalues(settings.runs(1_536, 128), SEED, jobs)
    private = methods.private_pvalues(settings.runs(20_032, 5_120), SEED, jobs)
    compared = pd.concat([compared, private], ignore_index=True)
    means = arm_means.equal_arms(settings.runs(20_032, 5_120), SEED, jobs)
    two_arms, difference = arm_means.thompson(settings.runs(20_032, 5_120), SEED + 1, jobs)
    by_test, by_method = ["contexts", "arm", "test"], ["design", "method"]
    tables = {
        "oful": shares(linear, by_test).merge(linear.groupby(by_test, as_index=False)[["pulls"]].mean()),
        "oful_histogram": histogram(linear, by_test),
        "methods": shares(compared, by_method),
        "methods_histogram": histogram(compared, by_method),
        "arm_means": means,
        "thompson": two_arms,
    }
    drawn = {
        "figure_6": pictures.figure_6(linear),
        "failures": pictures.failures(linear, difference),
        "arm_means": pictures.arm_means(means),
        "methods": pictures.methods(compared),
        "private": pictures.private(compared),
    }
    return Outcome(_figures(tables), tables, drawn)


def _figures(tables: dict[str, pd.DataFrame]) -> dict[str, float]:
    """The study's claims."""
    figures: dict[str, float] = {}
    linear = tables["oful"].set_index(["contexts", "arm", "test"])["rejected at .05"]
    for test, key in KEYS.items():
        figures[f"own_{key}"] = linear["own", "most pulled", test]
    for test in ("z", "by the variance"):
        figures[f"shared_{KEYS[test]}"] = linear["shared", "most pulled", test]
    figures["own_least_z"] = linear["own", "least pulled", "z"]
    figures["intercept_most_z"] = linear["intercept", "most pulled", "z"]
    figures["intercept_least_z"] = linear["intercept", "least pulled", "z"]
    two = tables["thompson"].set_index("tested")["rejected at .05"]
    figures["thompson_difference"] = two["difference of the arms"]
    figures["thompson_fewer"] = two["mean of the arm pulled less"]
    means = tables["arm_means"].set_index(["design", "arm"])["too low, one-sided"]
    keys = ("ucb_2", "ucb_half", "ucb_quarter", "beta", "private_1", "private_tenth", "published")
    for key, name in zip(keys, arm_means.DESIGNS, strict=True):
        figures[f"least_{key}"] = means[name, "least pulled"]
    figures["fixed_ucb_half"] = means["UCB, sqrt(log t / 2N)", "arm 0"]
    by_method = tables["methods"].set_index(["design", "method"])["rejected at .05"]
    short = {"Thompson": "thompson", "batched Thompson": "batched"}
    for design, key in short.items():
        for method in methods.METHODS[1:]:
            if (design, method) in by_method.index:
                figures[f"{key}: {method}"] = by_method[design, method]
    figures["private_naive"] = by_method["private UCB", "exact test"]
    figures["private_corrected"] = by_method["private UCB", "exact test, corrected"]
    return {name: float(value) for name, value in figures.items()}
