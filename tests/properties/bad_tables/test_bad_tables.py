"""Odd and damaged tables: read with the very values that they hold, or refused by an error that names why."""

from __future__ import annotations

from dataclasses import replace

import pytest
from doors import OUTCOMES, Refused, Right, Seen, Use, Verdict, judge
from table_runs import FAMILIES, SEED, run

from adaptinf.errors import ParameterError

IN_CI = 300
"""docs/evidence/bad_tables.py tries 6,000 others."""


@pytest.mark.slow
def test_three_hundred_odd_tables() -> None:
    outcomes = list(run(IN_CI, SEED + 1))
    assert {each.family for each in outcomes} == set(FAMILIES)
    faults = [
        f"{each.family}, {each.kind} ({each.number}), {each.use.door}: {each.verdict}"
        for each in outcomes
        if each.verdict.outcome not in ("right", "refused")
    ]
    assert faults == []


def test_the_judge_tells_outcomes_apart() -> None:
    rows = [{"arm": "a", "y": 1.0, "day": 1}, {"arm": "b", "y": 2.0, "day": 1}]
    seen = Seen({"a": 1.0, "b": 2.0}, {"a": 1, "b": 1}, {"arm": ["a", "b"], "y": [1.0, 2.0], "day": [0, 0]})
    use = Use("x", lambda: seen, Right(rows))
    assert judge(use) == Verdict("right")
    assert (
        judge(replace(use, run=lambda: replace(seen, means={"a": 1.0, "b": 2.0 + 1e-9}))).outcome == "silent"
    )
    assert judge(replace(use, run=lambda: replace(seen, counts={"a": 2, "b": 1}))).outcome == "silent"
    other = replace(seen, columns={"y": [2.0, 1.0]})
    assert judge(replace(use, run=lambda: other)) == Verdict("silent", "column 'y' has 2.0 in row 0 for 1.0")
    assert judge(replace(use, due=Refused(("y",)))) == Verdict("silent", "was read, and must be refused")
    assert judge(replace(use, run=lambda: 1 / 0)).outcome == "traceback"  # type: ignore[arg-type,return-value]

    def refuse() -> Seen:
        raise ParameterError("x", ["column 'y' is bad [line 3]"])

    assert judge(replace(use, run=refuse)).outcome == "good, refused"
    assert judge(replace(use, run=refuse, due=Refused(("'y'", "line 3")))).outcome == "refused"
    assert judge(replace(use, run=refuse, due=Refused(("'y'", "line 4")))).outcome == "nameless"
    assert len(OUTCOMES) == 6
