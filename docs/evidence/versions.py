"""Speed of two checkouts in one run: each task in turn in both, as a ratio of processor times.

    python docs/evidence/versions.py OLD NEW [--rounds 5]

OLD and NEW are source trees. Only public names are used, so older versions run the same tasks. With --quick
every task runs once, in this tree alone. Nothing is ever written.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
REPEATS = 3


def tasks() -> dict[str, Callable[[], Any]]:
    """What is timed, by name; the first call of each compiles and is not counted."""
    import numpy as np
    import pandas as pd

    import adaptinf as ai

    arms = ai.environments.BernoulliArms([0.9, 0.8, 0.7, 0.6, 0.5])
    groups = ai.environments.FiniteContext([0.5, 0.3, 0.2], means=[[0.4, 0.7], [0.6, 0.3], [0.3, 0.65]])
    vectors = ai.environments.LinearArms(np.array([[0.3, 0.4], [0.5, 0.1]]), noise=0.1)
    thompson = ai.designs.Thompson(floor=(0.2, 0.3), batch_size=10)
    short = thompson.run(arms, 500, rng=0)
    grouped = ai.designs.DPConSE(epsilon=1.0).run(groups, 20_000, rng=0)
    rng = np.random.default_rng(0)
    share = np.full((1_000_000, 10), 0.1)
    frame = pd.DataFrame({"arm": rng.integers(0, 10, 1_000_000), "y": rng.normal(size=1_000_000), "p": 0.1})
    frame[[f"propensity_{k}" for k in range(10)]] = share
    frame[["x1", "x2"]] = rng.normal(size=(1_000_000, 2))
    known = {"action": "arm", "reward": "y", "propensity": "p"}
    large = ai.AdaptiveLog(frame.drop(columns=["x1", "x2"]), **known)
    wide = ai.AdaptiveLog(frame, context=["x1", "x2"], **known, about={"context_free": True})
    two = ai.designs.PlayTheWinner().run(ai.environments.BernoulliArms([0.4, 0.6]), 200, rng=1)
    return {
        "PrivateUCB, 640 runs of 20,000 rounds": lambda: ai.designs.PrivateUCB(epsilon=1.0).replicate(
            arms, 20_000, 640, rng=0
        ),
        "UCB, 640 runs of 20,000 rounds": lambda: ai.designs.UCB().replicate(arms, 20_000, 640, rng=0),
        "Thompson, 64 runs of 2,000 rounds": lambda: thompson.replicate(arms, 2_000, 64, rng=0),
        "LinPriv, 64 runs of 2,000 rounds": lambda: ai.designs.LinPriv(epsilon=1.0).replicate(
            vectors, 2_000, 64, rng=0
        ),
        "DPConSE, 640 runs of 20,000 rounds, loop": lambda: ai.designs.DPConSE(epsilon=1.0).replicate(
            groups, 20_000, 640, rng=0, by_rounds=True
        ),
        "64 logs of UCB, 500 rounds": lambda: list(ai.designs.UCB().logs(arms, 500, 64, rng=0)),
        "100 fits of ArmMeans, 500 rounds": lambda: [ai.ArmMeans(short).fit() for _ in range(100)],
        "20 tables of ArmMeans": lambda: [str(ai.ArmMeans(short).fit().summary()) for _ in range(20)],
        "ArmMeans, AIPW two-point, 10^6 x 10": lambda: ai.ArmMeans(large).fit("aipw", "two-point", decay=0.3),
        "Contrast, sample means, 10^6 rounds": lambda: ai.Contrast(large, treatment=1, control=0).fit(
            "sample-mean"
        ),
        "AdaptiveOLS, weighted, 10^6 x 12": lambda: ai.AdaptiveOLS(wide).fit("weighted"),
        "20 fits of CATE by group, 20,000 rounds": lambda: [
            ai.CATE(grouped, by="feature", treatment=1, control=0).fit() for _ in range(20)
        ],
        "20 tables of recommend": lambda: [ai.recommend(short) for _ in range(20)],
        "50 betting sequences, 500 rounds": lambda: [
            ai.ConfidenceSequence(short, target="arm-means").fit() for _ in range(50)
        ],
        "randomisation test, 999 re-runs": lambda: ai.audit.randomization_test(two, replications=999, rng=0),
        "exact law, T = 100": lambda: ai.audit.exact(ai.designs.PlayTheWinner(), 100),
        "coverage, 512 trials": lambda: ai.audit.coverage(
            ai.designs.UCB(), arms, lambda log: ai.ArmMeans(log).fit("alee"), 500, 512, rng=0
        ),
    }


def child(repeats: int) -> None:
    """Print the least processor time of every task; with no repeats that of the first call."""
    found = {}
    for name, task in tasks().items():
        times = []
        for _ in range(1 + repeats):
            start = time.process_time()
            task()
            times.append(time.process_time() - start)
        found[name] = min(times[min(1, repeats) :])
    print(json.dumps(found))


def timed(tree: str, repeats: int = REPEATS) -> dict[str, float]:
    """Times of one source tree, and what importing and starting it takes."""
    environment = {**os.environ, "PYTHONPATH": tree}
    command = [sys.executable, __file__, "--child", "--rounds", str(repeats)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="see that every task of this tree runs")
    parser.add_argument("--child", action="store_true")
    given = parser.parse_args()
    if given.child:
        child(given.rounds)
        return
    if given.quick:
        print(*(f"{name}: {seconds:.3f} s" for name, seconds in timed(str(ROOT), 0).items()), sep="\n")
        return
    old, new = given.trees
    pairs = [(timed(old), timed(new)) for _ in range(given.rounds)]
    print(f"load {os.getloadavg()[0]:.1f}; least of {REPEATS} calls; {given.rounds} processes each, in turn")
    print("| task | old, s | new over old, median (least to most) |\n| --- | ---: | ---: |")
    for name in pairs[0][0]:
        ratios = [after[name] / before[name] for before, after in pairs]
        seconds = min(before[name] for before, _ in pairs)
        middle = statistics.median(ratios)
        print(f"| {name} | {seconds:.4f} | {middle:.2f} ({min(ratios):.2f} to {max(ratios):.2f}) |")


if __name__ == "__main__":
    main()
