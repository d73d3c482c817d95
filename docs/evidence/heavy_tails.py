"""Coverage and cautions with skewed and heavy-tailed rewards: makes docs/evidence/heavy_tails.md.

Five equal arms, by Gaussian Thompson sampling in batches of 50 with a floor of .02, from a plain NumPy
simulator. "Before" is the share of the same fits that carry a caution without the rule for the error of the
tails.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import evidence
import numpy as np
import pandas as pd

import adaptinf as ai
from adaptinf.errors import AdaptinfWarning, InvalidForLog
from adaptinf.inference.validity import rare

SEED = 20_261_129
ARMS, BATCH, FLOOR = 5, 50, 0.02
LOGS = {500: 200, 2_000: 200}
"""Logs in a row, by their rounds."""
Draw = Callable[[np.random.Generator, int], np.ndarray]
REWARDS: dict[str, tuple[Draw, float]] = {
    "normal": (lambda rng, n: rng.normal(1.0, 1.0, n), 1.0),
    "exponential": (lambda rng, n: rng.exponential(1.0, n), 1.0),
    "lognormal 1.0": (lambda rng, n: rng.lognormal(0.0, 1.0, n), np.exp(0.5)),
    "lognormal 1.5": (lambda rng, n: rng.lognormal(0.0, 1.5, n), np.exp(1.125)),
    "lognormal 2.0": (lambda rng, n: rng.lognormal(0.0, 2.0, n), np.exp(2.0)),
    "Pareto 2.5": (lambda rng, n: rng.pareto(2.5, n), 1.0 / 1.5),
    "revenue": (lambda rng, n: (rng.random(n) < 0.05) * rng.lognormal(0.0, 1.0, n), 0.05 * np.exp(0.5)),
}
MODELS = ("ArmMeans", "ArmMeans, sums", "Winner", "Contrast", "Lift", "PolicyValue", "PolicyContrast", "CATE")
HELD = "lognormal 1.5, T = 2,000"


def frame_of(draw: Draw, rounds: int, rng: np.random.Generator) -> pd.DataFrame:
    """A log: arms, rewards, batches, a group, and every arm's propensity."""
    count, total = np.zeros(ARMS), np.zeros(ARMS)
    reward, arm = draw(rng, rounds), np.empty(rounds, dtype=np.int64)
    share = np.full((rounds, ARMS), 1.0 / ARMS)
    for begin in range(0, rounds, BATCH):
        rows = slice(begin, begin + BATCH)
        if begin:
            spread = reward[:begin].std() / np.sqrt(np.maximum(count, 1))
            drawn = rng.normal(total / np.maximum(count, 1), spread, (200, ARMS)).argmax(axis=1)
            share[rows] = FLOOR + (1.0 - ARMS * FLOOR) * np.bincount(drawn, minlength=ARMS) / 200.0
        arm[rows] = np.searchsorted(share[begin].cumsum()[:-1], rng.random(BATCH), side="right")
        count += np.bincount(arm[rows], minlength=ARMS)
        total += np.bincount(arm[rows], weights=reward[rows], minlength=ARMS)
    frame = pd.DataFrame(share, columns=[f"p{k}" for k in range(ARMS)])
    return frame.assign(
        arm=arm, y=reward, batch=np.arange(rounds) // BATCH, group=rng.integers(2, size=rounds)
    )


def fits(frame: pd.DataFrame, mean: float) -> dict[str, tuple[Callable[[], ai.Results], float]]:
    """Every model of one log, and its truth."""
    columns: dict[str, Any] = {"action": "arm", "reward": "y", "batch": "batch"}
    columns |= {"propensities": {k: f"p{k}" for k in range(ARMS)}}
    log, grouped = ai.AdaptiveLog(frame, **columns), ai.AdaptiveLog(frame, **columns, context=["group"])
    sums = ai.aggregate(frame, **columns)
    uniform, first, second = np.full(ARMS, 1.0 / ARMS), np.eye(ARMS)[0], np.eye(ARMS)[1]
    mixed = [0.8 * one + 0.2 * uniform for one in (first, second)]
    return {
        "ArmMeans": (lambda: ai.ArmMeans(log).fit(), mean),
        "ArmMeans, sums": (lambda: ai.ArmMeans(sums).fit(), mean),
        "Winner": (lambda: ai.Winner(log).fit(), mean),
        "Contrast": (lambda: ai.Contrast(log, treatment=1, control=0).fit(), 0.0),
        "Lift": (lambda: ai.Contrasts(log, treatments=[1], control=0).fit(lift=True), 0.0),
        "PolicyValue": (lambda: ai.PolicyValue(log, [uniform]).fit(), mean),
        "PolicyContrast": (lambda: ai.PolicyContrast(log, mixed[0], baseline=mixed[1]).fit(), 0.0),
        "CATE": (lambda: ai.CATE(grouped, by="group", treatment=1, control=0).fit(), 0.0),
    }


def measured(name: str, rounds: int, number: int) -> dict[str, tuple[float, float, float]]:
    """Coverage of each model's intervals, and shares of fits with a caution, now and before."""
    draw, mean = REWARDS[name]
    rng = np.random.default_rng([SEED, rounds, *name.encode()])
    found: dict[str, list[tuple[float, float, float]]] = {model: [] for model in MODELS}
    for _ in range(number):
        for model, (fit, truth) in fits(frame_of(draw, rounds, rng), mean).items():
            try:
                now = fit()
            except InvalidForLog:
                continue
            most, rare.MISSED = rare.MISSED, np.inf
            before = bool(fit().cautions) if now.cautions else False
            rare.MISSED = most
            ends = np.asarray(now.conf_int(), dtype=float)
            ends = ends[np.isfinite(ends).all(axis=1)]
            if len(ends):
                inside = float(np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1])))
                found[model].append((inside, float(bool(now.cautions)), float(before)))
    none = (np.nan, np.nan, np.nan)
    return {model: tuple(np.mean(one, axis=0).tolist()) if one else none for model, one in found.items()}


def kept(folder: Path, name: str, rounds: int, number: int) -> dict[str, tuple[float, float, float]]:
    """The measurements of a row, from an earlier run if it was stopped after this row."""
    path = folder / f"{name.replace(' ', '_')}_{rounds}_{number}.json"
    if not path.is_file():
        path.write_text(json.dumps(measured(name, rounds, number)), encoding="utf-8")
    return {model: tuple(one) for model, one in json.loads(path.read_text(encoding="utf-8")).items()}


def tables(cells: dict[str, dict[str, tuple[float, float, float]]]) -> str:
    """Two tables: coverage, and cautions now and before."""
    head = f"| rewards | {' | '.join(MODELS)} |\n| --- |{' ---: |' * len(MODELS)}"
    cover = [
        f"| {row} | {' | '.join(f'{one[m][0]:.3f}'.replace('nan', '') for m in MODELS)} |"
        for row, one in cells.items()
    ]
    told = [
        f"| {row} | {' | '.join(f'{one[m][1]:.2f} ({one[m][2]:.2f})' for m in MODELS)} |".replace(
            "nan (nan)", ""
        )
        for row, one in cells.items()
    ]
    lines = [head, *cover, "", "Share of fits with a caution; in parentheses, before.", "", head, *told]
    return "\n".join(lines)


def summary(cells: dict[str, dict[str, tuple[float, float, float]]]) -> str:
    """What holds of fits that are cautioned in at most half of the logs."""
    found = [one[m][0] for one in cells.values() for m in MODELS if one[m][1] <= 0.5]
    told = f"the lowest coverage is {min(found):.3f}, in {len(found)} rows and models." if found else "none."
    return f"Where at most half of the fits carry a caution, {told}"


PAGE = """# Heavy tails

Command: `{command}`. Seed: {seed}. Date: {stamp}.

Five equal arms, Gaussian Thompson sampling in batches of 50 with a floor of .02, default fits, and
nominal 95% intervals. Each row is based on 200 logs. *Revenue* is lognormal for 5% of the rounds and
otherwise 0; the number behind *lognormal* is the standard deviation of the logarithm.

A caution is due where the predicted error of a tail, which should be 2.5%, exceeds half of that after
the correction for skewness. The error is that of an estimate's skewness, which is its expected size
times the relative error of the rewards' skewness
([how](../theory/methods.md#rare-outcomes-and-skewed-rewards)).

Coverage, of the intervals that are given:

{tables}

{summary}
"""


def main() -> None:
    parser = evidence.parser(__doc__)
    parser.add_argument("--folder", type=Path, help="for rows that a stopped run goes on from")
    options = parser.parse_args()
    warnings.simplefilter("ignore", AdaptinfWarning)
    rows = [(name, rounds) for rounds in LOGS for name in REWARDS]
    if options.quick:
        rows = [("lognormal 1.5", 2_000)]
    with evidence.folder(options.folder, __file__, options.quick) as folder:
        folder.mkdir(parents=True, exist_ok=True)
        cells = {
            f"{name}, T = {rounds:,}": kept(folder, name, rounds, 30 if options.quick else LOGS[rounds])
            for name, rounds in rows
        }
    page = PAGE.format(
        command="python docs/evidence/heavy_tails.py",
        seed=SEED,
        stamp=evidence.stamp(),
        tables=tables(cells),
        summary=summary(cells),
    )
    if options.quick:
        now = evidence.measured(evidence.cell(page, HELD, "PolicyValue"), 30)
        then = evidence.measured(evidence.committed(__file__, HELD, "PolicyValue"), LOGS[2_000])
        evidence.hold("coverage of policy values", now, then)
    evidence.publish(page, __file__, options)


if __name__ == "__main__":
    main()
