"""tea-tasting: an experiment with one metric, absolute and relative."""

import pyarrow as pa
import tea_tasting as tt


def interval(log, target):
    users = pa.table({"variant": log.arms, "outcome": log.rewards})
    found = tt.Experiment(outcome=tt.Mean("outcome")).analyze(users)["outcome"]
    if target == "contrast":
        return found.effect_size_ci_lower, found.effect_size_ci_upper
    return 1 + found.rel_effect_size_ci_lower, 1 + found.rel_effect_size_ci_upper
