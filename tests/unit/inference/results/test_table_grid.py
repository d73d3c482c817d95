"""Tables of sixty default fits: their width, what stands below them, and sentences with their numbers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from adaptinf.errors import InvalidForLog
from adaptinf.inference.results import Results
from adaptinf.inference.results.tables import format_number, percent

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "docs" / "evidence"))

from table_fits import LOGS, WARNED, below, fits

MOST = 6


def each() -> Iterator[tuple[str, Results]]:
    yield from fits().items()


def test_there_are_sixty() -> None:
    assert len(fits()) >= 60, len(fits())
    assert {name.partition(", ")[0] for name in fits()} == set(LOGS)


@pytest.mark.parametrize("adjust", [None, "holm", pytest.param("max-t", marks=pytest.mark.slow)])
def test_eighty_columns_and_six_lines(adjust: str | None) -> None:
    for name, result in each():
        try:
            text = result.summary(adjust=adjust).as_text()
        except InvalidForLog:
            assert adjust == "max-t", name
            continue
        assert max(map(len, text.splitlines())) <= 80, f"{name}\n{text}"
        lines = below(text)
        others = [line for label, part in lines.items() if label not in WARNED for line in part]
        assert 3 <= len(others) <= MOST, f"{name}\n{text}"
        assert list(lines)[-1] == "More", name
        assert {"Method", "More"} <= set(lines), name


def test_cautions_are_whole_and_first() -> None:
    cautioned = 0
    for name, result in each():
        shown = result.summary()
        labels = [label for label, _ in shown.lines]
        first = next(place for place, label in enumerate(labels) if label not in WARNED)
        assert not set(labels[first:]) & set(WARNED), name
        text = " ".join(line for part in below(shown.as_text()).values() for line in part).lower()
        text = " ".join(text.split())
        for one in [*result.explain().of("caution"), *result.explain().of("missing")]:
            assert " ".join(one.text.split()).lower().rstrip(".") in text, f"{name}: {one.text}"
        assert set(result.cautions) <= {one.text for one in result.explain().of("caution")}, name
        cautioned += bool(result.cautions)
    assert cautioned >= 10


def test_every_claim_is_explained() -> None:
    for name, result in each():
        told = " ".join(result.explain().texts)
        for note in result.notes:
            for clause in getattr(note, "clauses", (note,)):
                assert str(clause) in told, f"{name}: {clause}"
        assert set(result.explain().to_frame()["kind"]) <= {
            *("caution", "missing", "note", "assumes", "target", "advice", "privacy")
        }
        assert (result.explain().to_frame().query("kind == 'assumes'")["check"] != "").all(), name


def test_sentences_hold_the_numbers_of_the_table() -> None:
    asked = 0
    for name, result in each():
        corrected = result.correction is not None and not result.correction.vacuous(0.05)
        limits = (result.conf_int_corrected() if corrected else result.conf_int()).to_numpy()
        table = str(result)
        for place, term in enumerate(result.terms):
            told = result.sentence(term, adjust=None)
            numbers = [float(result.estimate[place]), *limits[place].tolist()]
            if np.isnan(numbers).any():
                assert "without an interval" in told, (name, told)
                continue
            relative = result.estimands[place].kind in ("lift", "ratio-lift")
            for number in numbers:
                shown = percent(number) if relative else format_number(number)
                assert (shown in told) or (relative and percent(-number) in told), (name, told)
                assert format_number(number) in table, name
            asked += 1
            holds = limits[place, 0] <= result.null <= limits[place, 1]
            if result.estimands[place].kind in ("contrast", "cate", "policy-contrast"):
                assert ("ndecided" in told) == holds, (name, told)
        assert result.sentence().endswith("."), name
    assert asked >= 100
