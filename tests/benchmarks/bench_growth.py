"""How the processor time and memory of analyses grow in rows, arms and groups, beside the practical limit.

``python tests/benchmarks/bench_growth.py`` prints the figures, ``pytest`` with the same path asserts the
growth in arms and groups. The limit is one pass of NumPy over the columns of the log, or the same regression
by statsmodels, measured in turn within the same process. Each analysis is of a log that was not looked at.
"""

from __future__ import annotations

import functools
import math
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.benchmark

BATCHES, COLUMNS, SEED = 20, 3, 20261127
ROWS, ARMS, GROUPS = (100_000, 1_000_000, 10_000_000), (2, 10, 50), (2, 200, 2_000)


@dataclass(frozen=True, slots=True)
class Case:
    """An analysis of a log of so many rounds, arms and groups."""

    name: str
    rounds: int = 100_000
    arms: int = 2
    groups: int = 2


@dataclass(frozen=True, slots=True)
class Found:
    """Median milliseconds of the analysis and of its limit, and its peak of memory above the log, in logs.

    Memory is what Python and NumPy asked for, without what the allocator keeps.
    """

    own: float
    limit: float
    logs: float


def arrays_of(case: Case) -> Any:
    """A batched design's rounds: every arm's propensity, a group, covariates, and rewards."""
    from adaptinf.log import LogArrays

    rng = np.random.default_rng(SEED)
    shares = 0.5 * rng.dirichlet(np.full(case.arms, 3.0), BATCHES) + 0.5 / case.arms
    batch = np.arange(case.rounds) * BATCHES // case.rounds
    above, action = rng.random(case.rounds), np.zeros(case.rounds, dtype=np.int64)
    for limit in np.cumsum(shares, axis=1)[:, :-1].T:
        action += above > limit[batch]
    if case.name == "recommend":
        reward = (rng.random(case.rounds) < 0.3).astype(float)
    else:
        reward = rng.normal(size=case.rounds)
    context: dict[str, Any] = {}
    if case.name in ("CATE", "PolicyValue"):
        context["g"] = rng.integers(case.groups, size=case.rounds)
    if case.name.startswith("AdaptiveOLS"):
        context |= {f"x{j}": rng.normal(size=case.rounds) for j in range(COLUMNS)}
    given: dict[str, Any] = {"action": action, "reward": reward, "context": context}
    if case.name != "AdaptiveOLS":
        every = shares[batch]
        given |= {"propensities": every, "propensity": every[np.arange(case.rounds), action], "batch": batch}
    return LogArrays(**given)


def log_of(case: Case, arrays: Any) -> Any:
    """The rounds as a log that nothing was asked of yet."""
    from adaptinf.log import AdaptiveLog

    adaptive = False if case.name == "AdaptiveOLS" else None
    return AdaptiveLog.from_arrays(arrays, arms=tuple(range(case.arms)), adaptive=adaptive)


def analysis(case: Case) -> Callable[[Any], object]:
    """The call."""
    import adaptinf as ai

    calls: dict[str, Callable[[Any], object]] = {
        "ArmMeans": lambda log: ai.ArmMeans(log).fit(),
        "Contrast": lambda log: ai.Contrast(log, treatment=1, control=0).fit(),
        "Contrasts": lambda log: ai.Contrasts(log, control=0).fit(),
        "CATE": lambda log: ai.CATE(log, by="g", treatment=1, control=0).fit(),
        "PolicyValue": lambda log: ai.PolicyValue(log, 1).fit(),
        "AdaptiveOLS": lambda log: ai.AdaptiveOLS(log).fit(),
        "AdaptiveOLS, weighted": lambda log: ai.AdaptiveOLS(log).fit(),
        "diagnose": ai.diagnose,
        "recommend": ai.recommend,
    }
    return calls[case.name]


def limit(case: Case, arrays: Any) -> Callable[[], object]:
    """What the analysis cannot be faster than by much."""
    if case.name.startswith("AdaptiveOLS"):
        from statsmodels.regression.linear_model import OLS

        def regression() -> object:
            columns = np.column_stack([np.ones(case.rounds), *arrays.context.values()])
            fit = OLS(arrays.reward, columns).fit(cov_type="HC2")
            return fit.bse, fit.pvalues, fit.conf_int()

        return regression
    columns = [arrays.propensities, arrays.propensity, arrays.reward, arrays.action, *arrays.context.values()]
    return lambda: [column.sum() for column in columns]


def milliseconds(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return 1e3 * (time.process_time() - began)


def measure(case: Case, repeats: int = 5) -> Found:
    """Time and memory of an analysis, after one of a small log that loads what it needs."""
    call = analysis(case)
    for rounds in (20_000, min(120_000, case.rounds)):
        small = Case(case.name, rounds, case.arms, case.groups)
        call(log_of(small, arrays_of(small)))
    arrays = arrays_of(case)
    whole = sum(column.nbytes for column in arrays.by_field().values() if isinstance(column, np.ndarray))
    whole += sum(column.nbytes for column in arrays.context.values())
    log = log_of(case, arrays)
    tracemalloc.start(1)
    call(log)
    logs = tracemalloc.get_traced_memory()[1] / whole
    tracemalloc.stop()
    bound, own, beside = limit(case, arrays), [], []
    for _ in range(repeats):
        log = log_of(case, arrays)
        own.append(milliseconds(functools.partial(call, log)))
        beside.append(milliseconds(bound))
    return Found(float(np.median(own)), float(np.median(beside)), logs)


def exponent(times: dict[int, float]) -> float:
    """Slope of log time in log size between the smallest and the largest size."""
    low, high = min(times), max(times)
    return math.log(times[high] / times[low]) / math.log(high / low)


@pytest.mark.parametrize("name", ["Contrasts", "diagnose"])
def test_fifty_arms_cost_few_times_as_much_as_two(name: str) -> None:
    few, many = (measure(Case(name, arms=arms)).own for arms in (2, 50))
    assert many < 5.0 * few


def test_two_thousand_groups_cost_few_times_as_much_as_two() -> None:
    few, many = (measure(Case("CATE", groups=groups)).own for groups in (2, 2_000))
    assert many < 3.0 * few


def main() -> None:
    for name in ("Contrasts", "diagnose", "ArmMeans"):
        times = {arms: measure(Case(name, arms=arms)) for arms in ARMS}
        sys.stdout.write(lines(name, "arms", times))
    found = {groups: measure(Case("CATE", groups=groups)) for groups in GROUPS}
    sys.stdout.write(lines("CATE", "groups", found))
    for name in ("ArmMeans", "Contrast", "CATE", "PolicyValue", "AdaptiveOLS", "diagnose"):
        sys.stdout.write(lines(name, "rows", {rows: measure(Case(name, rows), 3) for rows in ROWS}))


def lines(name: str, of: str, found: dict[int, Found]) -> str:
    """An analysis by size, with its exponent."""
    parts = [
        f"{size:,}: {one.own:.1f} ms, {one.own / one.limit:.1f} x limit, {one.logs:.2f} logs"
        for size, one in found.items()
    ]
    slope = exponent({size: one.own for size, one in found.items()})
    return f"{name} in {of}: {'; '.join(parts)}; exponent {slope:.2f}\n"


if __name__ == "__main__":
    main()
