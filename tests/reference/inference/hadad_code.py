"""Arms and contrasts of one log by the published code of Hadad et al.: writes hadad_code.csv beside this.

    python tests/reference/inference/hadad_code.py

It needs that code's package adaptive_CI (repository gsbDBI/adaptive-confidence-intervals), confseq and NumPy,
in an environment of their own, and nothing of this package.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

ROUNDS, SEED, DECAY = 400, 20261126, 0.7
MEANS = np.array([0.0, 0.1, 0.3])


def simulated() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Arms and rewards, (T,), and probabilities, (T, 3): Thompson sampling with the floor t^-.7 / 3."""
    rng, arms = np.random.default_rng(SEED), len(MEANS)
    count, total = np.zeros(arms), np.zeros(arms)
    action, reward = np.zeros(ROUNDS, dtype=int), np.zeros(ROUNDS)
    share = np.zeros((ROUNDS, arms))
    for t in range(ROUNDS):
        draws = rng.normal(total / (count + 1.0), 1.0 / np.sqrt(count + 1.0), size=(200, arms))
        floor = (t + 1.0) ** -DECAY / arms
        wins = np.bincount(draws.argmax(axis=1), minlength=arms) / 200
        share[t] = floor + (1.0 - arms * floor) * wins
        action[t] = rng.choice(arms, p=share[t])
        reward[t] = MEANS[action[t]] + rng.normal()
        count[action[t]] += 1.0
        total[action[t]] += reward[t]
    return action, reward, share


def predictions(action: np.ndarray, reward: np.ndarray) -> np.ndarray:
    """The published outcome model: an arm's mean over earlier rounds, 0 before its first one; (T, 3)."""
    chosen = action[:, None] == np.arange(len(MEANS))
    means = np.cumsum(chosen * reward[:, None], axis=0) / np.maximum(np.cumsum(chosen, axis=0), 1)
    return np.vstack([np.zeros(len(MEANS)), means[:-1]])


def main() -> None:
    """Write the table."""
    from adaptive_CI.compute import stick_breaking
    from adaptive_CI.inference import aw_scores, evaluate_aipw_contrasts, evaluate_aipw_stats
    from adaptive_CI.weights import twopoint_stable_var_ratio

    action, reward, share = simulated()
    scores = aw_scores(reward, action, share, predictions(action, reward))
    two_point = stick_breaking(twopoint_stable_var_ratio(e=share, alpha=DECAY))
    weights = {
        "uniform": np.ones_like(share),
        "sqrt": np.sqrt(share),
        "two-point": np.sqrt(two_point * share),
    }
    rows = []
    for name, own in weights.items():
        for kind, evaluate in (("mean", evaluate_aipw_stats), ("contrast", evaluate_aipw_contrasts)):
            estimate, error = evaluate(scores, own, MEANS)[:2]
            rows += [
                [kind, name, place, repr(float(a)), repr(float(b))]
                for place, (a, b) in enumerate(zip(estimate, error, strict=True))
            ]
    with Path(__file__).with_suffix(".csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [["kind", "weights", "arm", "estimate", "std_error"], *rows]
        )


if __name__ == "__main__":
    main()
