"""Corollaries 1 to 4 of Neel and Roth (2018) as curves, and a counterexample to the third: exact."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from scipy import stats

from adaptinf.inference.corrections.information import (
    Bound,
    corrected_level,
    log_correct_pvalues,
    log_corrected_level,
)
from adaptinf.theory import linpriv_regret, private_ucb_worst_case

ALPHA = 0.05
EPSILON, ROUNDS = 0.1, 101
BETAS = (1.0, 0.5, 0.05)
ARMS = (5, 20, 100)
DIMENSION = 5
HORIZONS = np.geomspace(100, 10**7, 41).astype(int)


def printed_log_level(alpha: float, epsilon: float, rounds: int, beta: float) -> float:
    """Logarithm of Corollary 3's level as printed, which is not valid: it lacks the beta of Theorem 6."""
    return math.log(alpha) - _nats(epsilon, rounds, beta)


def fixed_log_level(alpha: float, epsilon: float, rounds: int, beta: float) -> float:
    """Logarithm of the level of Theorem 6 at a fixed beta; -inf where none is left."""
    return math.log(alpha - beta) - _nats(epsilon, rounds, beta) if beta < alpha else -math.inf


def _nats(epsilon: float, rounds: int, beta: float) -> float:
    return epsilon**2 * rounds / 2.0 + epsilon * math.sqrt(rounds * math.log(2.0 / beta) / 2.0)


def counterexample() -> pd.DataFrame:
    """What levels promise and do for a design that answers by randomised response.

    Two arms with fair coins; arm t + 1 is the reward of round t with probability q = e^epsilon / (1 +
    e^epsilon), else the other. The statistic counts the rounds in which they agree: for fixed actions it is
    binomial with probability 1/2, in truth with q. A row stands for a number of matches m that is just
    significant: `promised` is the alpha at which p(m) is the level, `true` the probability of m or more.
    """
    matches = np.arange((ROUNDS - 1) // 2 + 1, ROUNDS)
    q = 1.0 / (1.0 + math.exp(-EPSILON))
    log_p = stats.binom.logsf(matches - 1, ROUNDS - 1, 0.5)
    true = stats.binom.logsf(matches - 1, ROUNDS - 1, q)
    parts = []
    for beta in BETAS:
        parts.append((f"printed, beta = {beta:g}", log_p + _nats(EPSILON, ROUNDS, beta)))
    bounds: tuple[Bound, ...] = ("max-information", "moment")
    for bound in bounds:
        parts.append((f"valid, {bound}", np.array([_smallest_log_alpha(value, bound) for value in log_p])))
    frames = []
    for name, promised in parts:
        frame = pd.DataFrame({"level": name, "matches": matches, "p-value": np.exp(log_p)})
        frame["promised"], frame["true"] = np.exp(promised), np.exp(true)
        frame["true over promised"] = np.exp(true - promised)
        frames.append(frame[promised <= math.log(0.5)])
    return pd.concat(frames, ignore_index=True)


def _smallest_log_alpha(log_p: float, bound: Bound) -> float:
    """Logarithm of the alpha at which a p-value is just significant: the corrected p-value."""
    return float(log_correct_pvalues(log_p, epsilon=EPSILON, n=ROUNDS - 1, bound=bound))


def levels(rounds: int = 1_000) -> pd.DataFrame:
    """Corollary 3: the p-value that a nominal .05 needs, against epsilon times the root of T."""
    rows = []
    for product in np.geomspace(0.01, 20.0, 100):
        epsilon = float(product) / math.sqrt(rounds)
        forms = {
            "valid, best beta": log_corrected_level(math.log(ALPHA), epsilon=epsilon, n=rounds),
            "valid, moment bound": log_corrected_level(
                math.log(ALPHA), epsilon=epsilon, n=rounds, bound="moment"
            ),
            "valid, beta = .01": fixed_log_level(ALPHA, epsilon, rounds, 0.01),
            "printed, beta = 1 (invalid)": printed_log_level(ALPHA, epsilon, rounds, 1.0),
        }
        rows += [
            {"level": name, "epsilon sqrt T": product, "log10 of the level": value / math.log(10.0)}
            for name, value in forms.items()
        ]
    return pd.DataFrame(rows)


def budget(horizon: int, n_arms: int) -> float:
    """The epsilon of Corollaries 1 and 4, ln(T)^1.5 / sqrt(K T), its constant taken to be 1."""
    return float(math.log(horizon) ** 1.5 / math.sqrt(n_arms * horizon))


def fourth() -> pd.DataFrame:
    """Corollary 4: the level at its epsilon, which is said to be of the order of alpha."""
    rows = []
    for n_arms in ARMS:
        for horizon in HORIZONS.tolist():
            epsilon = budget(horizon, n_arms)
            log_level = log_corrected_level(math.log(ALPHA), epsilon=epsilon, n=horizon)
            rows.append(_level_row(f"K = {n_arms}", horizon, epsilon, log_level))
    for horizon in HORIZONS.tolist():
        epsilon = 1.0 / math.sqrt(horizon)
        log_level = log_corrected_level(math.log(ALPHA), epsilon=epsilon, n=horizon)
        rows.append(_level_row("epsilon = 1 / sqrt T", horizon, epsilon, log_level))
    return pd.DataFrame(rows)


def _level_row(name: str, horizon: int, epsilon: float, log_level: float) -> dict[str, object]:
    return {
        "setting": name,
        "T": horizon,
        "epsilon": epsilon,
        "epsilon sqrt T": epsilon * math.sqrt(horizon),
        "log10 of the level": log_level / math.log(10.0),
    }


def first_and_second() -> pd.DataFrame:
    """Corollaries 1 and 2: bounds on bias and regret at their epsilon, and what these should be."""
    rows = []
    for n_arms in ARMS:
        for horizon in HORIZONS.tolist():
            simple, linear = budget(horizon, n_arms), math.sqrt(n_arms / horizon)
            mended = n_arms * simple
            explicit = float(private_ucb_worst_case(horizon, n_arms, simple))
            rows.append(
                {
                    "K": n_arms,
                    "T": horizon,
                    "bias, Corollary 1": math.expm1(simple) / 2.0,
                    "bias, Corollary 1 with the factor K": math.expm1(min(mended, 700.0)) / 2.0,
                    "bias, Corollary 2": math.expm1(linear),
                    "regret over T, Corollary 1": math.sqrt(n_arms * math.log(horizon) / horizon),
                    "regret over T, Theorem 3 at that epsilon": explicit / horizon,
                    "regret over T, Corollary 2": DIMENSION * math.sqrt(n_arms / horizon),
                    "regret over T, valid at that epsilon": float(
                        linpriv_regret(horizon, n_arms, DIMENSION, linear)
                    )
                    / horizon,
                }
            )
    return pd.DataFrame(rows)


def worst_ratios(table: pd.DataFrame, from_alpha: float = 1e-6) -> dict[str, float]:
    """Largest ratio of true to promised probability by level, over alphas of at least `from_alpha`."""
    wide = table[table["promised"] >= from_alpha]
    return {str(name): float(part.max()) for name, part in wide.groupby("level")["true over promised"]}


def usual_level(epsilon: float, rounds: int) -> float:
    """P-value that a nominal .05 needs."""
    return float(corrected_level(ALPHA, epsilon=epsilon, n=rounds))
