"""Randomisation tests of short trials by every path that the design can take, each with its probability."""

from __future__ import annotations

import itertools

import numpy as np

from adaptinf.audit.randomization.runs import Plan
from adaptinf.audit.rerun.path_propensities import PathFollower, fixed_propensities
from adaptinf.typing import FloatArray

MOST_PATHS = 2**16
"""More paths than this are drawn and not enumerated: walking them takes about 1.4 s."""
_WHOLE = 1e-9


def every_path(plan: Plan) -> tuple[FloatArray, FloatArray] | None:
    """Statistic and probability of every path on the logged rows, both of shape (paths,).

    None where rows are permuted, where there are too many paths, or where the probability of a path is not
    a function of it alone (hidden posterior draws, overriding coins, private noise).
    """
    n_arms, n_rounds = plan.log.n_arms, plan.log.n_rounds
    if plan.by_order or n_rounds * np.log(n_arms) > np.log(MOST_PATHS) + _WHOLE:
        return None
    if fixed_propensities(plan.design, plan.log, plan.rows) is None:
        return None
    follower = PathFollower(plan.design, plan.log, plan.rows)
    stream = np.random.default_rng(0)
    paths = np.array(list(itertools.product(range(n_arms), repeat=n_rounds)), dtype=np.int64)
    chances, tallies = np.empty(len(paths)), np.empty((len(paths), n_arms, 3))
    for i, path in enumerate(paths):
        tallies[i] = follower.walk(path, stream)
        chances[i] = follower.record.propensity.prod()
    if not abs(chances.sum() - 1.0) <= _WHOLE:
        return None
    possible = chances > 0.0
    return plan.from_paths(paths[possible], tallies[possible]), chances[possible]
