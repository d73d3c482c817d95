"""One lazy query that sums a log's rows by batch and arm in the engine that stores them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add, mul, or_
from typing import Any

import narwhals as nw

from adaptinf.log.validation.frame_columns import (
    EXACT,
    FAULTS,
    MATCH_TOLERANCE,
    SUM_TOLERANCE,
    Label,
    out_of_range,
    outside,
)
from adaptinf.sums.covariate_products import DENOMINATOR, further_triples
from adaptinf.sums.engine.engine_tables import is_long
from adaptinf.sums.engine.query_columns import (
    ARM,
    BATCH,
    FURTHER,
    PROPENSITY,
    REWARD,
    SHARE,
    WHOLE,
    Columns,
    Schema,
    finite,
    infinite,
    missing,
    propensities_of,
)
from adaptinf.sums.unit_totals import SAME


def fault_query(read: nw.LazyFrame[Any], faults: Mapping[str, tuple[str, nw.Expr]]) -> nw.LazyFrame[Any]:
    """A query for the number of rows with each fault, by batch and arm, for use if sums suggest faults."""
    flagged = read.with_columns(
        **{column_of_fault(code): counted(flag) for code, (_, flag) in faults.items()}
    )
    return flagged.group_by(BATCH, ARM).agg(
        *(nw.col(column_of_fault(code)).sum().alias(column_of_fault(code)) for code in faults)
    )


def faults_of(
    columns: Columns, schema: Schema, reward_range: tuple[float, float] | None
) -> dict[str, tuple[str, nw.Expr]]:
    """Faults that rows may have: for each code, its message and its test, which applies to `named_rows`."""
    found = dict[str, tuple[str, nw.Expr]]()

    def add(code: str, told: str, flag: nw.Expr) -> None:
        known = found.get(code)
        found[code] = (told, flag) if known is None else (known[0], known[1] | flag)

    for own, (name, role) in columns.numbers.items():
        number, kind, what = nw.col(own), schema[name], f"{role} column {name!r}"
        whole, known = nw.col(f"{own}{WHOLE}"), ~missing(number)
        add(f"missing-{role}", f"{what} {FAULTS['missing']}", whole.is_null() if is_long(kind) else ~known)
        if role == "propensity":
            chosen = own == PROPENSITY
            low = number <= 0.0 if chosen else number < 0.0
            told = f"{what} {outside('(0' if chosen else '[0')}"
            add("propensity-out-of-range", told, known & (low | (number > 1.0)))
        elif not kind.is_integer():
            add(f"infinite-{role}", f"{what} {FAULTS['infinite']}", infinite(number))
            large = finite(number) & (number.abs() >= float(EXACT))
            add(f"rounded-{role}", f"{what} of type {kind} {FAULTS['rounded']}", large)
        if is_long(kind):
            add(f"inexact-{role}", f"{what} {FAULTS['inexact']}", ~whole.is_null() & number.is_null())
    reward = nw.col(REWARD)
    if reward_range is not None:
        lowest, highest = reward_range
        beyond = finite(reward) & ((reward < lowest) | (reward > highest))
        add("reward-out-of-range", out_of_range(lowest, highest), beyond)
    for place, role in enumerate(columns.further.roles):
        below = nw.col(f"{FURTHER}{place}")
        if role == DENOMINATOR:
            told = f"denominator {columns.further.names[place]!r} is negative"
            add("bad-denominator", told, ~missing(below) & (below < 0.0))
    return found | _faults_of_shares(columns)


def _faults_of_shares(columns: Columns) -> dict[str, tuple[str, nw.Expr]]:
    """Check the arms' propensities against each other and against that of the chosen arm."""
    shares = _shares_of(columns)
    if not shares:
        return {}
    total, known = reduce(add, shares.values()), ~reduce(or_, map(missing, shares.values()))
    names = ", ".join(map(repr, columns.every.values()))
    off = known & ((total - 1.0).abs() > SUM_TOLERANCE)
    found = {"propensities-sum": (f"rows of {names} {FAULTS['propensities-sum']}", off)}
    own = nw.col(PROPENSITY)
    if columns.propensity is None:
        code = "chosen-propensity-zero"
        return found | {code: (FAULTS[code], own == 0.0)}
    code = "propensity-mismatch"
    return found | {code: (FAULTS[code], known & ~missing(own) & _mismatch(shares))}


def _mismatch(shares: Mapping[Label, nw.Expr]) -> nw.Expr:
    """Whether the chosen arm's propensity differs from the value in that arm's own column."""
    own = nw.col(PROPENSITY)
    gaps = [
        (nw.col(ARM) == nw.lit(arm)) & ((share - own).abs() > MATCH_TOLERANCE * share)
        for arm, share in shares.items()
    ]
    return reduce(or_, gaps)


def _mismatches(columns: Columns) -> dict[str, nw.Expr]:
    """Counts of rows in which the two propensities of the chosen arm differ, if both are known."""
    if columns.propensity is None or not columns.every:
        return {}
    return {MISMATCHED: counted(_mismatch(_shares_of(columns)))}


def _shares_of(columns: Columns) -> dict[Label, nw.Expr]:
    return {arm: nw.col(f"{SHARE}{place}") for place, arm in enumerate(columns.every)}


def counted(flag: nw.Expr) -> nw.Expr:
    """1.0 if a flag is set, and 0.0 if it is not set or missing; engines sum floats faster."""
    return nw.when(flag).then(nw.lit(1.0)).otherwise(nw.lit(0.0))


def column_of_fault(code: str) -> str:
    """Column that counts the rows with a fault; hyphens are replaced, because some warehouses reject them."""
    return code.replace("-", "_")


COUNT = "n"
HIGHEST = 3
"""Highest inverse power of propensities by which powers of rewards are multiplied; counts need one more."""
KNOWN, KNOWN_SUM = "known", "known_sum"
"""Number of rows without missing numbers, and the sum of all numbers, which reveals infinity and NaN."""
MISMATCHED = "mismatched"
LOGS, SURE = "logs", "sure"
"""If there are units: the sum of the logs of the chosen arms' propensities, and the number that are 1."""
LEAST, MOST = "least", "most"
"""Prefixes of the columns that contain smallest and largest values."""
TOTAL = "__total"
_WEIGHT = "__weight"


def cell_query(
    read: nw.LazyFrame[Any],
    keys: Sequence[str],
    columns: Columns,
    centres: Sequence[float],
    *,
    ends: bool,
    weighted: bool,
) -> nw.LazyFrame[Any]:
    """Lazy sums of centred rewards and columns by batch and arm, with sums that reveal faulty rows.

    Rows are also grouped by `keys`; if `ends` is true, the smallest and the largest reward are added. Sums
    divided by powers of propensities are computed if `weighted` is true. These sums are not needed if
    propensities are constant within each batch and arm, because they then follow from the other sums.
    """
    numbers = [nw.col(name) for name in columns.numbers]
    summed, both = _summands(columns, centres), propensities_of(columns)
    if weighted:
        read = read.with_columns(_inverse(nw.col(PROPENSITY)).alias(_WEIGHT))
        # The inverse is missing if the chosen arm's propensity is not positive.
        numbers.append(nw.col(_WEIGHT))
        summed |= _over_powers(columns, centres) | _over_all(len(columns.every)) | _mismatches(columns)
        if columns.unit is not None:
            own = nw.col(PROPENSITY)
            summed |= {LOGS: own.log(), SURE: counted(own >= 1.0 - SAME)}
    if weighted and columns.every:
        read = read.with_columns(reduce(add, _shares_of(columns).values()).alias(TOTAL))
        both.append(TOTAL)
    summed[KNOWN_SUM] = reduce(add, numbers)
    least = [f"{FURTHER}{n}" for n, role in enumerate(columns.further.roles) if role == DENOMINATOR]
    both += [REWARD] if ends else []
    wide = read.with_columns(**summed)
    with warnings.catch_warnings():
        # narwhals adds columns to an eager pandas frame one by one, about which pandas warns.
        warnings.filterwarnings("ignore", "DataFrame is highly fragmented")
        return wide.group_by(BATCH, ARM, *keys).agg(
            nw.len().alias(COUNT),
            nw.col(KNOWN_SUM).count().alias(KNOWN),
            *(nw.col(name).sum().alias(name) for name in summed),
            *(nw.col(name).min().alias(f"{LEAST}{name}") for name in (*least, *both)),
            *(nw.col(name).max().alias(f"{MOST}{name}") for name in both),
        )


def _summands(columns: Columns, centres: Sequence[float]) -> dict[str, nw.Expr]:
    """Powers of rewards, and products of up to three rewards and additional columns."""
    reward = nw.col(REWARD)
    found = {f"moment_0_{degree}": power for degree, power in enumerate(_powers(reward - centres[0]), 1)}
    found["nonzero"] = counted(reward != 0.0)
    found |= {f"product_0_{name}": product for name, product in _products(columns, centres).items()}
    for place in range(len(columns.further.names)):
        found[f"positive_{place}"] = counted(nw.col(f"{FURTHER}{place}") > 0.0)
    return found


def _over_powers(columns: Columns, centres: Sequence[float]) -> dict[str, nw.Expr]:
    """Powers of rewards and products, divided by powers of propensities."""
    above, weight = nw.col(REWARD) - centres[0], nw.col(_WEIGHT)
    found, products = dict[str, nw.Expr](), _products(columns, centres)
    for power, inverse in enumerate(_powers(weight), 1):
        found[f"moment_{power}_0"] = inverse
        for degree, rewards in enumerate(_powers(above), 1):
            found[f"moment_{power}_{degree}"] = inverse * rewards
        found |= {f"product_{power}_{name}": product * inverse for name, product in products.items()}
    return found | {f"moment_{HIGHEST + 1}_0": weight * weight * weight * weight}


def highest_power(columns: Columns) -> int:
    """The highest inverse power of propensities by which powers of rewards are multiplied."""
    return HIGHEST if columns.propensity is not None or columns.every else 0


def _products(columns: Columns, centres: Sequence[float]) -> dict[str, nw.Expr]:
    """Products of up to three rewards and additional columns, keyed by the positions of their factors."""
    count = len(columns.further.names)
    names = (REWARD, *(f"{FURTHER}{place}" for place in range(count)))
    above = [nw.col(name) - centre for name, centre in zip(names, centres, strict=True)]
    found = {}
    for triple in further_triples(count):
        factors = [above[place - 1] for place in triple if place]
        found["_".join(map(str, triple))] = reduce(mul, factors)
    return found


def _inverse(share: nw.Expr) -> Any:
    """1 / share, or missing if the share is missing or 0; many engines fail when they divide by 0."""
    return nw.when(share > 0.0).then(1.0 / share)


def _powers(base: nw.Expr) -> list[nw.Expr]:
    """The first powers of an expression, computed by multiplication."""
    found = [base]
    for _ in range(HIGHEST - 1):
        found.append(found[-1] * base)
    return found


def _over_all(n_arms: int) -> dict[str, nw.Expr]:
    """1 / e, e and e (1 - e) for every arm's propensity, whether or not the arm was chosen."""
    found = {}
    for place in range(n_arms):
        share = nw.col(f"__share_{place}")
        # Arms with propensity 0 have no inverse; the smallest propensity identifies their batches.
        found[f"inverse_{place}"] = _inverse(share).otherwise(nw.lit(0.0))
        found[f"expected_{place}"] = share
        found[f"spread_{place}"] = share * (1.0 - share)
    return found
