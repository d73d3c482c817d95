"""What must not change: makes docs/evidence/invariance.md.

Adding a constant to rewards, multiplying them, writing the arms in another order, and labels of other types,
on logs of plain NumPy and for every model and every method that `recommend` labels valid. Rewards are
multiples of 2^-10 so that the moved ones are exact; bounds of rewards move along.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import evidence
import numpy as np
import pandas as pd
from numpy.typing import NDArray

import adaptinf as ai

Array = NDArray[np.float64]

SEED, ROUNDS, ALPHA, MOST, ROUNDED = 20261127, 600, 0.1, 1e-9, 2.0
COMMAND = "python docs/evidence/invariance.py"
ARMS = ("a", "b", "c")
TYPES: dict[str, tuple[Any, ...]] = {
    "whole numbers": (3, 1, 2),
    "fractions": (0.5, 0.25, 2.0),
    "texts of numbers": ("03", "1", "2.0"),
    "texts with signs": ("a`b", "=1+1", "Ü <b>"),
}
"""Labels may be texts, whole numbers, fractions or truth values (of two arms)."""


@dataclass(frozen=True)
class Data:
    """A file: arms by code, rewards, propensities of all arms, group, unit and batch of each round."""

    arm: NDArray[np.int64]
    reward: Array
    every: Array
    group: NDArray[np.int64]
    unit: NDArray[np.int64]
    batch: NDArray[np.int64]


@dataclass(frozen=True)
class Move:
    """Rewards a + b * reward, the order in which arms are given, and their labels."""

    shift: float = 0.0
    scale: float = 1.0
    order: tuple[int, ...] = (0, 1, 2)
    labels: tuple[Any, ...] = ARMS


MOVES = {
    "rewards + 1e6": Move(shift=1e6),
    "rewards x 1e9": Move(scale=1e9),
    "rewards x 1e-9": Move(scale=1e-9),
    "arms in another order": Move(order=(2, 0, 1)),
    **{f"labels: {name}": Move(labels=labels) for name, labels in TYPES.items()},
}
KINDS = ("every propensity", "chosen arm's", "none", "contexts", "batches", "units")
REWARDS = ("normal", "0/1", "skewed")
ADJUSTMENTS = {
    "every propensity": ("weighted",),
    "contexts": ("weighted",),
    "batches": ("weighted", "batched"),
}
"""Of regressions, beside the decorrelated ones."""


def made(kind: str, rewards: str, rng: np.random.Generator) -> Data:
    """Propensities follow the running mean of rewards; rewards are exact in binary."""
    group = rng.integers(0, 2, ROUNDS)
    batch = np.arange(ROUNDS) * 6 // ROUNDS
    every, arm = np.empty((ROUNDS, 3)), np.empty(ROUNDS, dtype=np.int64)
    reward, sums, counts = np.empty(ROUNDS), np.zeros(3), np.ones(3)
    share = np.full(3, 1 / 3)
    for t in range(ROUNDS):
        if kind != "batches" or t == 0 or batch[t] != batch[t - 1]:
            lean = np.exp(np.clip(sums / counts, -1.0, 1.0))
            share = 0.15 + 0.55 * lean / lean.sum()
        every[t] = share
        arm[t] = min(int((rng.random() > np.cumsum(share)).sum()), 2)
        mean = 0.3 + 0.1 * arm[t] + 0.1 * group[t]
        drawn = {
            "normal": mean + rng.standard_normal(),
            "0/1": float(rng.random() < mean),
            "skewed": mean * np.exp(rng.standard_normal()),
        }[rewards]
        reward[t] = np.round(drawn * 1024.0) / 1024.0
        sums[arm[t]] += reward[t]
        counts[arm[t]] += 1.0
    return Data(arm, reward, every, group, np.arange(ROUNDS) % 60, batch)


def log_of(data: Data, kind: str, rewards: str, move: Move) -> ai.AdaptiveLog:
    """The moved file, read as a user would."""
    labels = pd.Series([move.labels[code] for code in data.arm], dtype=object)
    frame = pd.DataFrame({"arm": labels, "y": move.shift + move.scale * data.reward})
    given: dict[str, Any] = {"action": "arm", "reward": "y", "arms": [move.labels[k] for k in move.order]}
    if kind == "chosen arm's":
        frame["p"] = data.every[np.arange(ROUNDS), data.arm]
        given["propensity"] = "p"
    elif kind != "none":
        for k in range(3):
            frame[f"p{k}"] = data.every[:, k]
        given["propensities"] = {move.labels[k]: f"p{k}" for k in range(3)}
    if kind == "contexts":
        frame["g"] = np.array(["old", "young"])[data.group]
        given["context"] = "g"
    if kind == "batches":
        frame["batch"] = data.batch
        given["batch"] = "batch"
    if kind == "units":
        frame["person"] = data.unit
        given["unit"] = "person"
    if rewards == "0/1":
        given["reward_range"] = (move.shift, move.shift + move.scale)
    return ai.AdaptiveLog(frame, **given)


def fits(log: ai.AdaptiveLog, kind: str, move: Move) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """Model, method and fit of everything that is valid."""
    pair = {"treatment": move.labels[1], "control": move.labels[0]}
    asked: dict[str, dict[str, Any]] = {"arm-means": {}, "contrast": pair}
    if kind != "none":
        asked["policy-value"] = {"policy": {move.labels[0]: 0.25, move.labels[1]: 0.75, move.labels[2]: 0.0}}
    if kind == "contexts":
        asked["cate"] = {"by": "g", **pair}
    for target, arguments in asked.items():
        if target == "policy-value":
            weights = [arguments["policy"][log.arms[k]] for k in range(3)]
            arguments = {"policy": np.array(weights)}
        for row in ai.recommend(log, target, **arguments).methods:
            if row.verdict.valid:
                yield target, row.verdict.name, row.run
    model = ai.AdaptiveOLS.from_formula("y ~ C(arm)", log)
    adjustments = ["w-decorrelation", *ADJUSTMENTS.get(kind, ())]
    for adjustment in adjustments if kind != "units" else ():
        yield "regression on arms", adjustment, partial(model.fit, adjustment)


def inference(result: Any, log: ai.AdaptiveLog, move: Move) -> dict[int | str, Array]:
    """Estimate, standard error and limits of each term, by the code of its arm or its name."""
    limits = result.conf_int(ALPHA).to_numpy()
    values = np.column_stack([result.estimate, result.std_error, limits])
    names: dict[str, int] = {str(label): code for code, label in enumerate(move.labels)}
    if result.model == "ArmMeans" or (result.model == "ConfidenceSequence" and len(result.terms) == 3):
        return {names[term]: row for term, row in zip(result.terms, values, strict=True)}
    return dict(enumerate(values))


def distance(base: Array, moved: Array, move: Move, *, level: bool) -> float:
    """How far moved estimate, error and limits are from where they belong, in standard errors.

    Beyond what two numbers of the size of the shift lose when they are stored.
    """
    shift = move.shift if level else 0.0
    back = (moved - np.array([shift, 0.0, shift, shift])) / move.scale
    if not np.array_equal(np.isnan(base), np.isnan(back)):
        return np.inf
    with np.errstate(invalid="ignore"):
        off = np.where(base == back, 0.0, np.abs(base - back) - ROUNDED * np.spacing(move.shift) / move.scale)
    size = base[1] if base[1] > 0.0 else np.nan
    return float(np.nanmax(np.maximum(off, 0.0) / size, initial=0.0))


def measure(kind: str, rewards: str, worst: dict[tuple[str, str], tuple[float, str]]) -> int:
    """All moves of one log; returns how many fits were compared."""
    rng = np.random.default_rng([SEED, KINDS.index(kind), REWARDS.index(rewards)])
    data, none, compared = made(kind, rewards, rng), Move(), 0
    plain = log_of(data, kind, rewards, none)
    base = [(target, name, inference(fit(), plain, none)) for target, name, fit in fits(plain, kind, none)]
    for title, move in MOVES.items():
        log = log_of(data, kind, rewards, move)
        found = {(target, name): fit for target, name, fit in fits(log, kind, move)}
        for target, name, before in base:
            if target.startswith("regression") and move.order != none.order:
                continue  # another baseline, and other coefficients
            fit = found.get((target, name))
            after = {} if fit is None else inference(fit(), log, move)
            level = target in ("arm-means", "policy-value")
            for term, values in before.items():
                own = level or (target.startswith("regression") and term == 0)  # the intercept
                off = distance(values, after[term], move, level=own) if term in after else np.inf
                by_origin = move.shift != 0.0 and " ipw " in f" {name} "
                key = (title, f"{target}, ipw: moves with the origin" if by_origin else target)
                if off >= worst.get(key, (-1.0, ""))[0]:
                    worst[key] = (off, f"{name}; {kind}, {rewards}")
            compared += 1
    return compared


def page(worst: dict[tuple[str, str], tuple[float, str]], compared: int) -> str:
    lines = "\n".join(
        f"| {move} | {target} | {off:.1e} | {where} |"
        for (move, target), (off, where) in sorted(worst.items())
    )
    of = [off for (_, target), (off, _) in worst.items() if not target.endswith("origin")]
    beyond = sum(off > MOST for off in of)
    return f"""# Invariance

Command: `{COMMAND}`. Seed: {SEED}. Date: {evidence.stamp()}.

{compared:,} fits to transformed logs are compared with those to the original logs: {
        len(KINDS) * len(REWARDS)
    } logs of {ROUNDS} rounds, with every method that `recommend` labels valid. The table shows the
largest distance of an estimate, a standard error or an interval limit from its correct value, in standard
errors, and where it occurs. Two units in the last place of 1e6 (2.3e-10) are subtracted, because an estimate
of that size loses this much when it is stored. {beyond} of {len(of)} lines exceed {MOST:g}. Distances for
IPW on shifted rewards are shown separately, because its scores are rewards divided by propensities, and its
errors therefore grow with the distance of rewards from 0.

| move | target | largest distance | method and log |
| --- | --- | ---: | --- |
{lines}
"""


def main() -> None:
    options = evidence.parser(__doc__).parse_args()
    kinds = KINDS[:2] if options.quick else KINDS
    worst: dict[tuple[str, str], tuple[float, str]] = {}
    compared = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in kinds:
            for rewards in REWARDS:
                compared += measure(kind, rewards, worst)
    evidence.publish(page(worst, compared), __file__, options)


if __name__ == "__main__":
    main()
