"""A small experiment as rows of plain values, and the texts that are written of it."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import numpy as np

Rng = np.random.Generator
Rows = list[dict[str, Any]]
NAMES = ("arm", "y", "p", "day", "who", "region", "x")
_ARMS = (("a", "b"), ("control", "new page"), ("a", "b", "c"), ("email", "none of these", "push"))
_SHARES = {2: ((0.5, 0.5), (0.25, 0.75)), 3: ((0.5, 0.25, 0.25),)}


def draw(rng: Rng, arms: tuple[Any, ...] | None = None) -> Rows:
    """Rounds of two or three days: arm, outcome in quarters, propensity, day, person, region, a number."""
    arms = arms or _ARMS[rng.integers(len(_ARMS))]
    rows: Rows = []
    for day in range(1, int(rng.integers(3, 5))):
        choices = _SHARES[len(arms)]
        shares = rng.permutation(choices[rng.integers(len(choices))]).tolist()
        chosen = [*range(len(arms)), *range(len(arms)), *rng.choice(len(arms), rng.integers(2, 9)).tolist()]
        for arm in rng.permutation(chosen).tolist():
            rows.append(
                {
                    "arm": arms[arm],
                    "y": int(rng.integers(-8, 60)) / 4,
                    "p": shares[arm],
                    "day": day,
                    "who": f"u{int(rng.integers(10_000)):04d}",
                    "region": ("EU", "US", "Asia")[rng.integers(3)],
                    "x": int(rng.integers(0, 40)) / 2,
                }
            )
    rows[0] |= {"y": 0.25, "x": 0.5}  # columns of whole numbers alone would be others
    rows[-1] |= {"y": 12.75, "x": 3.5}
    return rows


def copied(rows: Rows) -> Rows:
    """The same rows, to be damaged."""
    return [dict(row) for row in rows]


def place(rng: Rng, rows: Rows) -> int:
    """A row that is neither the first nor the last."""
    return int(rng.integers(1, len(rows) - 1))


def pick(rng: Rng, choices: Any) -> Any:
    """One of several things."""
    listed = list(choices)
    return listed[rng.integers(len(listed))]


def written(value: Any, decimal: str = ".") -> str:
    """A value as text."""
    if value is None:
        return ""
    return repr(value).replace(".", decimal) if isinstance(value, float) else str(value)


def text(
    rows: Rows,
    sep: str = ",",
    decimal: str = ".",
    newline: str = "\n",
    header: bool = True,
    quoting: Any = csv.QUOTE_MINIMAL,
) -> str:
    """Rows as delimited text; the row of place i stands in line i + 2 where nothing has line breaks."""
    sink = io.StringIO()
    writer = csv.writer(sink, delimiter=sep, lineterminator=newline, quoting=quoting)
    if header:
        writer.writerow(rows[0])
    writer.writerows([[written(value, decimal) for value in row.values()] for row in rows])
    return sink.getvalue()


def objects(rows: Rows) -> str:
    """Rows as lines of JSON."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def sums_of(rows: Rows) -> Rows:
    """Sums by day and arm."""
    cells: dict[tuple[Any, Any], Rows] = {}
    for row in rows:
        cells.setdefault((row["day"], row["arm"]), []).append(row)
    return [
        {
            "day": day,
            "arm": arm,
            "n": len(held),
            "s": sum(row["y"] for row in held),
            "q": sum(row["y"] ** 2 for row in held),
            "p": held[0]["p"],
        }
        for (day, arm), held in sorted(cells.items(), key=lambda item: (item[0][0], str(item[0][1])))
    ]


def totals_of(rows: Rows, share: float) -> Rows:
    """Sums by arm alone."""
    arms = list(dict.fromkeys(row["arm"] for row in rows))
    return [
        {
            "arm": arm,
            "n": sum(row["arm"] == arm for row in rows),
            "s": sum(row["y"] for row in rows if row["arm"] == arm),
            "q": sum(row["y"] ** 2 for row in rows if row["arm"] == arm),
            "p": share,
        }
        for arm in arms
    ]
