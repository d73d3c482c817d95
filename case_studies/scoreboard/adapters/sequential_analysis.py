"""sequential-analysis: sequences for an arm's bounded outcomes, and for an effect under changing shares."""

from sequential_analysis.procedures import BettingConfidenceSequence, BoundedABTest


def interval(log, target):
    if target == "contrast":
        floor = max(float(log.shares.min()), 1e-6)
        procedure = BoundedABTest(propensity_input="p", arm_count=log.n_arms, floor=floor, grid=1_000)
        inputs = [
            {"arm": arm, "y": reward, "p": shares}
            for arm, reward, shares in zip(
                log.arms.tolist(), log.rewards.tolist(), log.shares.tolist(), strict=True
            )
        ]
    else:
        procedure = BettingConfidenceSequence(grid=1_000)
        inputs = [{"x": reward} for reward in log.of(log.arm).tolist()]
    state, output = procedure.initial_state(), None
    for observed in inputs:
        state, output = procedure.step(state, observed)
    return None if output is None else (output.lower, output.upper)
