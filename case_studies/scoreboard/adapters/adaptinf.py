"""adaptinf: what `recommend` puts first; cautions, with which a table begins, are warnings."""

import warnings

import adaptinf as ai

COLUMNS = {"propensity": "chosen", "batch": "period", "unit": "unit", "context": "leaf"}
MODELS = {"leader": "winner", "lowest": "winner", "ratio": "contrasts", "policy": "policy-value",
          "arm": "arm-means", "stopped": "arm-means"}  # fmt: skip


def read(log):
    frame, stopping = log.frame(), "data-chosen" if log.data_chosen else "fixed"
    told = {"reward_range": (0, 1), "arms": list(range(log.n_arms)), "stopping": stopping}
    told["adaptive"] = None if log.adaptive else False
    if log.arms is None:
        names = {"arm": "arm", "n": "n", "sum": "sum", "sum_squares": "squares", "batch": "period"}
        return ai.Sums(frame, **names, propensity="share", **told)
    for name, column in COLUMNS.items():
        if column in frame:
            told[name] = column
    if log.shares is not None:
        told["propensities"] = "p{arm}"
    return ai.AdaptiveLog(frame, action="arm", reward="reward", **told)


def interval(log, target):
    pair, lift = {"treatment": 1, "control": 0}, {"control": 0, "lift": True}
    asked = {"contrast": pair, "ratio": lift, "policy": {"policy": log.policy}}
    data = read(log.reversed() if target == "lowest" else log)
    result = ai.recommend(data, MODELS.get(target, target), **asked.get(target, {})).fit()
    if result.cautions:
        warnings.warn("; ".join(result.cautions), stacklevel=2)
    alpha = 0.05 / log.n_arms if target == "stopped" else 0.05  # it was selected: all arms at once
    low, high = result.conf_int(alpha=alpha).to_numpy()[log.arm if target in ("arm", "stopped") else 0]
    if target == "lowest":
        return 1 - high, 1 - low, result.winner
    if target == "leader":
        return low, high, result.winner
    return (low + 1, high + 1) if target == "ratio" else (low, high)
