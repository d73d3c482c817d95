"""adaptinf: what `recommend` puts first."""

import adaptinf as ai

PAIR = {"treatment": 1, "control": 0}
COLUMNS = {"propensity": "chosen", "batch": "period", "unit": "unit", "context": "leaf"}


def read(log):
    frame, stopping = log.frame(), "data-chosen" if log.data_chosen else "fixed"
    told = {"reward_range": (0, 1), "arms": list(range(log.n_arms)), "stopping": stopping}
    told["adaptive"] = None if log.adaptive else False
    if log.arms is None:
        names = {"arm": "arm", "n": "n", "sum": "sum", "sum_squares": "squares", "batch": "period"}
        return ai.Sums(frame[frame["n"] > 0], **names, propensity="share", **told)
    for name, column in COLUMNS.items():
        if column in frame:
            told[name] = column
    if log.shares is not None:
        told["propensities"] = "p{arm}"
    return ai.AdaptiveLog(frame, action="arm", reward="reward", **told)


def interval(log, target):
    data, alpha, row = read(log.reversed() if target == "lowest" else log), 0.05, 0
    if target in ("leader", "lowest"):
        result = ai.recommend(data, "winner").fit()
        low, high = result.conf_int().to_numpy()[0]
        return (low, high, result.winner) if target == "leader" else (1 - high, 1 - low, result.winner)
    if target == "ratio":
        return ai.recommend(data, "contrasts", control=0, lift=True).fit().conf_int().to_numpy()[0] + 1
    if target == "policy":
        result = ai.recommend(data, "policy-value", policy=log.policy).fit()
    elif target == "contrast":
        result = ai.recommend(data, "contrast", **PAIR).fit()
    else:
        result, row = ai.recommend(data, "arm-means").fit(), log.arm
        alpha = 0.05 / log.n_arms if target == "stopped" else 0.05  # it was selected: all arms at once
    return result.conf_int(alpha=alpha).to_numpy()[row]
