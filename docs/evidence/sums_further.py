"""Ratios, covariates and groups from sums against those of the rows: makes docs/evidence/sums_further.md.

The logs of sums_by_unit.py with a denominator, a covariate and a group are added up by the same engines.
Every answer from the sums is compared with that of the rows with `outcome="batch-mean"`; where one is
refused, the other has to be refused in the same way.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import evidence
import numpy as np
import pandas as pd
import sums_by_unit
from sums_by_unit import LIMIT

SEED = 20261126
COMMAND = "python docs/evidence/sums_further.py"
COLUMNS = {"action": "arm", "reward": "y", "batch": "day"}
FURTHER = {"denominator": "orders", "covariate": "before"}
GROUPS = ("phone", "desk")
Answers = dict[str, Callable[[Any], Any]]


def rows_of(number: int) -> pd.DataFrame:
    """A log of sums_by_unit.py with orders, what was spent before and a device; rewards of half of the logs
    depend on all three."""
    frame = sums_by_unit.rows_of(number)
    rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(number,)))
    orders = rng.poisson(1.0 + 0.3 * frame["arm"]) + (rng.random(len(frame)) < 0.5)
    before = 1_000.0 * (number % 3) + rng.normal(size=len(frame))
    device = rng.choice(GROUPS, len(frame))
    if number % len(sums_by_unit.KINDS) > 1:
        frame["y"] += 2.0 * orders + before - 1_000.0 * (number % 3) + 0.5 * (device == "desk")
    return frame.assign(orders=orders, before=before, device=device)


def further_answers(estimator: str) -> Answers:
    """What is asked of a log, or of its sums, with a denominator or a covariate, by name."""
    import adaptinf as ai

    asked = {"estimator": estimator, "test": "t"} | ({"outcome": "batch-mean"} if estimator == "aipw" else {})
    ratio = {"denominator": "orders"}
    found: Answers = {
        "means of ratios": lambda data: ai.ArmMeans(data, **ratio).fit(**asked),
        "differences of ratios": lambda data: ai.Contrasts(data, control=0, **ratio).fit(**asked),
        "lifts of ratios": lambda data: ai.Contrasts(data, control=0, **ratio).fit(**asked, lift=True),
        "lifts": lambda data: ai.Contrasts(data, control=0).fit(**asked, lift=True),
    }
    if estimator == "aipw":
        adjusted = asked | {"covariate": "before"}
        found |= {
            "differences with a covariate": lambda data: ai.Contrasts(data, control=0).fit(**adjusted),
            "ratios with a covariate": lambda data: ai.Contrasts(data, control=0, **ratio).fit(**adjusted),
        }
    return {f"{name}, {estimator}": made for name, made in found.items()}


def group_answers() -> Answers:
    """What is asked of a group's rows, or of its sums."""
    import adaptinf as ai

    return {
        f"{name} of a group, {estimator}": (
            lambda data, model=model, estimator=estimator: model(data).fit(
                estimator,
                "uniform",
                test="t",
                **({"outcome": "batch-mean"} if estimator == "aipw" else {}),
            )
        )
        for name, model in (
            ("means", ai.ArmMeans),
            ("differences", lambda data: ai.Contrasts(data, control=0)),
        )
        for estimator in ("ipw", "aipw")
    }


def numbers(answer: Callable[[Any], Any], data: Any) -> list[Any] | str:
    """Estimates, standard errors and limits, or the kind of the refusal."""
    from adaptinf.errors import AdaptinfError

    try:
        found = answer(data)
        return [found.estimate, found.std_error, found.conf_int()]
    except AdaptinfError as refused:
        return type(refused).__name__


def gap(found: list[Any] | str, due: list[Any] | str) -> float:
    """Largest relative difference; infinite if one alone is refused."""
    if isinstance(found, str) or isinstance(due, str):
        return np.nan if found == due else np.inf
    return max(sums_by_unit.apart(one, other) for one, other in zip(found, due, strict=True))


def effects(sums: Any, groups: dict[str, Any]) -> float:
    """Largest difference of the effects within groups to the contrasts of the groups' own rows; their limits
    have one law for all groups, which single contrasts do not know."""
    import adaptinf as ai

    found = ai.CATE(sums, by="device", treatment=1, control=0).fit("aipw", weights="uniform")
    worst = 0.0
    for place, device in enumerate(sums.groups):
        own = ai.Contrast(groups[device], treatment=1, control=0)
        due = own.fit("aipw", "uniform", outcome="batch-mean")
        got = [found.estimate[place], found.std_error[place]]
        worst = max(worst, gap(got, [due.estimate[0], due.std_error[0]]))
    return worst


def block(number: int, engines: sums_by_unit.Engines | None = None) -> dict[tuple[str, str], float]:
    """Largest differences by answer and engine; NaN where rows and sums were refused alike."""
    import adaptinf as ai

    frame, found = rows_of(number), {}
    arms = list(range(sum(name.startswith("propensity_") for name in frame.columns)))
    more: dict[str, Any] = {"outcomes": "orders", "context": ["before", "device"], "arms": arms}
    log = ai.AdaptiveLog(frame, **COLUMNS, **more, propensities="propensity_{arm}")
    groups = {
        device: ai.AdaptiveLog(
            frame[frame["device"] == device], **COLUMNS, arms=arms, propensities="propensity_{arm}"
        )
        for device in GROUPS
    }
    mixed = frame.sample(frac=1.0, random_state=number)
    for engine, made in (engines or sums_by_unit.embedded_engines()).items():
        table = made(mixed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            whole = ai.aggregate(table, **COLUMNS, **FURTHER, arms=arms)
            parted = ai.aggregate(table, **COLUMNS, by="device", arms=arms)
            for name, answer in (further_answers("aipw") | further_answers("ipw")).items():
                found[name, engine] = gap(numbers(answer, whole), numbers(answer, log))
            for name, answer in group_answers().items():
                gaps = [
                    gap(numbers(answer, parted.of_group(device)), numbers(answer, groups[device]))
                    for device in GROUPS
                ]
                found[name, engine] = float(np.fmax.reduce(gaps))
            found["effects within groups, aipw", engine] = effects(parted, groups)
    return found


def table_of(parts: list[dict[tuple[str, str], float]]) -> str:
    """Largest differences of some logs, a line an answer."""
    engines = list(dict.fromkeys(engine for _, engine in parts[0]))
    lines = [
        f"| answer | answered | {' | '.join(engines)} |",
        f"| --- | ---: |{' ---: |' * len(engines)}",
    ]
    for name in dict.fromkeys(name for name, _ in parts[0]):
        each = np.array([[part[name, engine] for engine in engines] for part in parts])
        answered = np.count_nonzero(~np.isnan(each).all(axis=1))
        worst = " | ".join(f"{value:.1e}" for value in np.fmax.reduce(each, axis=0))
        lines.append(f"| {name} | {answered} | {worst} |")
    return "\n".join(lines)


def agreeing(parts: list[dict[tuple[str, str], float]]) -> int:
    """How many logs agree in all answers."""
    return sum(all(not value > LIMIT for value in part.values()) for part in parts)


def page(parts: list[dict[tuple[str, str], float]], few: list[dict[tuple[str, str], float]]) -> str:
    """The page of the differences of all logs, and of those that other engines add up."""
    logs = len(parts)
    others = (
        few
        and f"""
## Other engines

Of the first {len(few)} logs, {agreeing(few)} of {len(few)} agree.

{table_of(few)}
"""
    )
    return f"""# Ratios, covariates and groups from sums

Command: `{COMMAND}`. Seed: {SEED}. Date: {evidence.stamp()}.

There are {logs:,} logs simulated in plain NumPy, with two to four arms, 200 to 600 rounds, and propensities
that vary from row to row. Four kinds of reward are used in turn ({"; ".join(sums_by_unit.KINDS)}); the last
two increase with the number of orders and with earlier spending. `aggregate(denominator=, covariate=)` and
`aggregate(by=)` compute the sums. Estimates, standard errors and limits from the sums are compared with those
from the rows with `outcome="batch-mean"`. Those of groups are compared with the rows of the group alone; for
effects, limits are not compared, because they use one distribution for all groups. In {agreeing(parts)} of
{logs} logs, all numbers agree to a relative {LIMIT:.0e} (entries below a thousandth of the largest agree to
the same absolute difference), and everything that is refused for rows is also refused for sums. *Answered* is
the number of logs that were not refused.

{table_of(parts)}
{others or ""}"""


def main() -> None:
    parser = evidence.parser(__doc__)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    parts, few = sums_by_unit.all_blocks(block, options)
    evidence.publish(page(parts, few), __file__, options)
    if any(value > 100.0 * LIMIT for part in parts + few for value in part.values()):
        raise SystemExit("sums and rows differ")


if __name__ == "__main__":
    main()
