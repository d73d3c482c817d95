"""Tables that were read wrongly, or refused without the cause: found by the generator of odd tables."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adaptinf as ai
from adaptinf.errors import LogValidationError, ParameterError

ROLES = {"action": "arm", "reward": "y"}
DAYS = {**ROLES, "batch": "day"}


def refusal(read: Any, *sources: Any, **options: Any) -> str:
    with pytest.raises((LogValidationError, ParameterError)) as caught:
        read(*sources, **options)
    return str(caught.value)


def test_a_context_has_decimal_commas_too() -> None:
    log = ai.read_log(b"arm;y;x\na;0,5;1,5\nb;1;2,5\n", **ROLES, context="x")
    assert log.column("x").tolist() == [1.5, 2.5]


def test_a_text_among_numbers_of_a_context_has_its_line() -> None:
    cells = "".join(f"a,1,{value}\n" for value in (0.5, 1.5, "error", 2.5, 3.5))
    told = refusal(ai.read_log, f"arm,y,x\n{cells}".encode(), **ROLES, context="x")
    assert "column 'x' has text among its numbers, such as 'error', and would be read as labels" in told
    assert told.endswith("or list the text in missing_values= [line 4]")


def test_hexadecimal_text_is_no_whole_number() -> None:
    told = refusal(ai.read_log, b"arm,y\na,1\nb,0x1F\na,2\n", **ROLES)
    assert "reward column 'y' contains numbers and '0x1F'; correct this entry" in told
    assert told.endswith("[line 3]")


def test_a_whole_number_next_to_what_floats_have_is_named() -> None:
    lines = b'{"arm": "a", "y": 0.5}\n{"arm": "b", "y": 9007199254740993}\n'
    told = refusal(ai.read_log, lines, **ROLES)
    assert "reward column 'y' has numbers that float64 cannot represent exactly [line 2]" in told


@pytest.mark.parametrize("text", ["1.15E+18", "1.152921504606847e+18", "1152921504606846976.0"])
def test_ids_that_were_floats_are_refused(text: str) -> None:
    told = refusal(ai.read_log, f"arm,y,who\na,1,{text}\nb,2,7\n".encode(), **ROLES, unit="who")
    assert f"column 'who' contains {text!r}: floats of this size cannot represent every whole number" in told
    assert told.endswith("write the column again from its source, as whole numbers or as text [line 2]")
    exact = ai.read_log(b"arm,y,who\na,1,1152921504606846977\nb,2,7\n", **ROLES, unit="who")
    assert exact.column("unit_id").tolist() == [2**60 + 1, 7]


def test_objects_of_more_digits_are_as_exact_as_a_column_of_them() -> None:
    values = np.array([np.longdouble("0.1"), np.longdouble("0.5")])
    for column in (values, pd.Series(values, dtype=object)):
        frame = pd.DataFrame({"arm": ["a", "b"], "y": column})
        told = "reward column 'y' has numbers that float64 cannot represent exactly [row 0]"
        assert told in refusal(ai.AdaptiveLog, frame, **ROLES)


def test_labels_that_read_the_same_are_named_with_their_column() -> None:
    frame = pd.DataFrame({"arm": [1, "1", 2], "y": 1.0})
    told = "action column 'arm': the labels 1, '1' cannot be distinguished in releases and files"
    assert told in refusal(ai.AdaptiveLog, frame, **ROLES)


@pytest.mark.parametrize("damage", ["cut short", "another encoding"])
def test_a_part_that_cannot_be_read_is_named(tmp_path: Path, damage: str) -> None:
    data = b"arm,y,day\na,1,1\nb,2,1\n"
    for number in range(3):
        whole = gzip.compress(data) if damage == "cut short" else data
        bad = whole[:-9] if damage == "cut short" else data.replace(b"b", b"\xfc")
        end = ".csv.gz" if damage == "cut short" else ".csv"
        (tmp_path / f"part-{number}{end}").write_bytes(bad if number == 1 else whole)
    assert "part-1" in refusal(ai.read_log, tmp_path, **ROLES)
    assert "part-1" in refusal(ai.aggregate, tmp_path, **DAYS)


class TestAggregate:
    def test_damaged_compression(self, tmp_path: Path) -> None:
        place, data = tmp_path / "x.csv.gz", b"arm,y,day\na,1,1\nb,2,1\n"
        place.write_bytes(gzip.compress(data)[:-9])
        assert f"{place} is not a readable CSV file" in refusal(ai.aggregate, place, **DAYS)
        place.write_bytes(data)  # the name alone says that it is compressed
        assert ai.aggregate(place, **DAYS).frame["sum"].tolist() == [1.0, 2.0]

    def test_an_empty_part_that_is_compressed(self, tmp_path: Path) -> None:
        for number, data in enumerate((b"arm,y,day\na,1,1\n", b"arm,y,day\nb,2,1\n", b"")):
            (tmp_path / f"part-{number}.csv.gz").write_bytes(gzip.compress(data))
        assert ai.aggregate(tmp_path, **DAYS).frame["sum"].tolist() == [1.0, 2.0]

    def test_a_part_without_a_column(self, tmp_path: Path) -> None:
        (tmp_path / "part-0.csv").write_text("arm,y,day\na,1,1\n")
        (tmp_path / "part-1.csv").write_text("arm,day\nb,1\n")
        assert "column 'y' is missing in 'part-1.csv', but not in the other files" in refusal(
            ai.aggregate, tmp_path, **DAYS
        )

    def test_headers(self, tmp_path: Path) -> None:
        place = tmp_path / "x.csv"
        place.write_text("arm,y,y,day\na,1,2,1\nb,2,3,1\n")
        told = "column 'y' occurs several times in the header of x.csv; rename or drop one"
        assert told in refusal(ai.aggregate, place, **DAYS)
        place.write_text("a,1,1\nb,2,1\n")
        assert "there is no column 'arm' for action" in refusal(ai.aggregate, place, **DAYS)
        place.write_text("# exported\narm,y,day\na,1,1\nb,2,1\n")
        assert ("3 rows differ from the header in the number of fields, 1") in refusal(
            ai.aggregate, place, **DAYS
        )
        place.write_text("")
        assert "it contains no text" in refusal(ai.aggregate, place, **DAYS)

    def test_a_category_that_is_missing_is_no_arm(self) -> None:
        frame = pd.DataFrame({"arm": pd.Categorical(["a", None, "b"]), "y": 1.0, "day": 1})
        assert "action column 'arm' has no value in 1 row" in refusal(ai.aggregate, frame, **DAYS)

    def test_truth_values_of_objects(self) -> None:
        values = pd.Series([True, False, True, True], dtype=object)
        frame = pd.DataFrame({"arm": ["a", "b", "a", "b"], "y": values, "day": 1})
        assert ai.aggregate(frame, **DAYS).frame["sum"].tolist() == [2.0, 1.0]
        share = pd.Series([0.5, True, 0.5, 0.5], dtype=object)
        told = refusal(ai.aggregate, frame.assign(p=share), **DAYS, propensity="p")
        assert "propensity column 'p' must contain numbers" in told

    def test_truth_values_are_not_grouped_with_numbers(self) -> None:
        arms = pd.Series([1, True, 0, False], dtype=object)
        frame = pd.DataFrame({"arm": arms, "y": np.arange(4.0), "day": 1})
        told = "action column 'arm' mixes booleans and other labels; use labels of one type"
        assert told in refusal(ai.aggregate, frame, **DAYS)

    def test_batches_of_objects(self) -> None:
        days = pd.Series([1, [1], 2, 2], dtype=object)
        frame = pd.DataFrame({"arm": ["a", "b", "a", "b"], "y": np.arange(4.0), "day": days})
        assert "batch column 'day' contains no labels" in refusal(ai.aggregate, frame, **DAYS)
