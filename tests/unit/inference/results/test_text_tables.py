"""Text tables of at most 80 columns: what wraps, what is broken, what folds, and how tables are stacked."""

from __future__ import annotations

import pytest

from adaptinf.inference.results.tables import LiteralTable, plain_table, stacked, text_table

HEADS = ["", "coef", "std err", "z", "P>|z|", "[0.025", "0.975]"]
NUMBERS = ["0.1234", "0.0123", "12.345", "2.2e-96", "0.1000", "0.1468"]


def table(*terms: str, **layout: object) -> LiteralTable:
    widths = [20, *[8] * len(NUMBERS)]
    aligns = "l" + "r" * len(NUMBERS)
    return text_table([NUMBERS] * len(terms), HEADS[1:], terms, widths, aligns, " ", **layout)  # type: ignore[arg-type]


def test_a_table_that_fits_is_as_wide_as_asked() -> None:
    assert table("B").as_text().splitlines() == [
        "=" * 74,
        "                         coef  std err        z    P>|z|   [0.025   0.975]",
        "-" * 74,
        "B                      0.1234   0.0123   12.345  2.2e-96   0.1000   0.1468",
        "=" * 74,
    ]


def test_a_long_term_wraps_at_blanks_beside_empty_cells() -> None:
    first, second = "checkout-one-page-v2", "checkout-control-old"
    lines = table(f"{first} - {second}", "B").as_text().splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[3].split() == [first, "-", *NUMBERS]
    assert lines[4] == f"  {second}"
    assert lines[5].split() == ["B", *NUMBERS]


def test_a_word_longer_than_its_room_is_broken() -> None:
    lines = table("x" * 90).as_text().splitlines()
    assert {len(lines[0]), max(map(len, lines))} == {80}
    assert "".join(line.split()[0] for line in lines[3:-1]) == "x" * 90
    assert lines[3].split()[1:] == NUMBERS
    assert all(line == "  " + line.strip() for line in lines[4:-1])


def test_numbers_are_never_broken_and_fold_where_there_is_no_room() -> None:
    figures = [f"{place:.10f}" for place in range(12)]
    text = plain_table([["term", *figures]], ["", *map(str, range(12))], "l" + "r" * 12).as_text()
    assert max(map(len, text.splitlines())) <= 80
    assert [line.split()[0] for line in text.splitlines() if "." in line] == ["term"] * 3
    assert [word for word in text.split() if "." in word] == figures


def test_columns_that_fold_do_so_before_words_are_broken() -> None:
    cells = ["0.1234", "[0.05, 0.15]"] * 3
    for folds, rules in ((1, 3), (0, 2)):
        text = plain_table(
            [["a-term-of-forty-characters-without-a-gap", *cells]], None, "lrrrrrr", folds=folds
        )
        lines = text.as_text().splitlines()
        assert max(map(len, lines)) <= 80
        assert sum(set(line) == {"="} for line in lines) == rules
        assert lines[1].startswith("a-term-of-forty-characters-without-a-gap") == folds


def test_text_on_the_left_wraps_and_its_head_with_it() -> None:
    said = "the fitted exponent is descriptive only, and must be chosen before the data are there"
    lines = plain_table([["decay", said, "0.1"]], ["", "what is said of it", "value"], "llr").as_text()
    body = lines.splitlines()
    assert max(map(len, body)) == 80
    assert body[1].split() == ["what", "is", "said", "of", "it", "value"]
    assert body[3].endswith("0.1")
    assert body[4].startswith("       ")
    assert " ".join(f"{body[3]} {body[4]}".replace("decay", "").replace("0.1", "").split()) == said


def test_heads_stand_on_the_side_of_their_column_and_end_at_the_rule() -> None:
    lines = (
        plain_table([["a", "not valid", "1.0"]], ["", "label", "a very long head " * 5], "llr")
        .as_text()
        .splitlines()
    )
    rule = next(place for place, line in enumerate(lines) if set(line) == {"-"})
    assert lines[rule - 1].split()[0] == "label"
    assert lines[rule - 1].index("label") == lines[rule + 1].index("not valid")


def test_rules_below_rows_also_in_latex() -> None:
    shown = table("a", "N", ruled=(1,))
    assert [set(line) for line in shown.as_text().splitlines()[2:5:2]] == [{"-"}, {"-"}]
    assert shown.as_latex_tabular().count(r"\midrule") == 2


def test_tables_are_stacked_to_one_width_with_one_rule_between() -> None:
    facts = plain_table([["Design", "Thompson"]], None, "ll")
    lines = stacked([facts, table("B")])
    assert [line for line in lines if set(line) == {"="}] == ["=" * 74] * 3
    assert len(lines) == 7
    assert {len(line) for line in stacked([facts], least=78) if set(line) == {"="}} == {78}


@pytest.mark.parametrize("width", [1, 2, 3])
def test_room_for_hardly_a_letter(width: int) -> None:
    cells = ["9" * (76 - width), "abc"]
    lines = plain_table([["stub words", *cells]], None, "lrl").as_text().splitlines()
    assert "".join(lines[1:-1]).replace(" ", "").count("9") == 76 - width


def test_the_column_gives_way_in_which_the_fewest_rows_wrap() -> None:
    rows = [[f"arm {place}", "a measure of some words that all rows have"] for place in range(9)]
    rows.append(["a name of many more words than other rows have", "short"])
    lines = plain_table(rows, ["", "what"], "ll").as_text().splitlines()
    assert len(lines) == 4 + 11
    assert [line.endswith("that all rows have") for line in lines[3:12]] == [True] * 9


def test_cells_wrap_after_semicolons_alone() -> None:
    cells = ["0.1 (< 0.2); 0.3 (> 0.4)", "x" * 50]
    lines = plain_table([["quantiles", *cells]], None, "lwr").as_text().splitlines()
    shown = [" ".join(line.split("x")[0].split()) for line in lines[1:3]]
    assert shown == ["quantiles 0.1 (< 0.2);", "0.3 (> 0.4)"]


def test_stubs_over_their_rows_take_the_whole_width() -> None:
    rows = [["a name of a group of several words", "x", "1"], ["", "y", "2"], ["b", "z", "3"]]
    table = plain_table(rows, ["", "of", "value"], "llr", over=True)
    lines = table.as_text().splitlines()
    assert [len(line) for line in lines if set(line) == {"="}] == [len(rows[0][0])] * 2
    body = lines[lines.index("-" * len(rows[0][0])) + 1 : -1]
    assert body == [rows[0][0], "    x        1", "    y        2", "b", "    z        3"]
    assert table.as_latex_tabular().count(rows[0][0]) == 1
