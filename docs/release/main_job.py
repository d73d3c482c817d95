"""What adaptinf is for, without any extra: simulate, read a file, fit, and show tables.

    python docs/release/main_job.py rows.csv

Writes the simulated rows to the file, for the command line to analyse.
"""

from __future__ import annotations

import sys

import pandas as pd

import adaptinf as ai


def main(path: str) -> None:
    simulated = ai.designs.Thompson(floor=0.1).run(
        ai.environments.BernoulliArms([0.3, 0.6]), horizon=500, rng=1
    )
    arrays = simulated.arrays
    rows = pd.DataFrame({"arm": arrays.action, "reward": arrays.reward})
    rows[["p0", "p1"]] = arrays.propensities
    rows.to_csv(path, index=False)
    log = ai.read_log(path, action="arm", reward="reward", propensities="p")
    for model in (ai.ArmMeans(log), ai.AdaptiveOLS(log)):
        print(model.fit().summary())
    print(ai.recommend(log))
    print(f"{len(log)} rounds")


if __name__ == "__main__":
    main(sys.argv[1])
