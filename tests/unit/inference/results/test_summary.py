"""Summary tables: what they say, how wide they are, and that nothing in them is read as markup."""

from __future__ import annotations

import csv
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from claims_said import says

from adaptinf.claims import tables
from adaptinf.claims.privacy import guarantees
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.inference.corrections.information import Correction
from adaptinf.inference.distributions.references import (
    BinomialReference,
    NormalReference,
    Reference,
    StudentReference,
)
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.fit_results import Results
from adaptinf.inference.results.log_facts import LogFacts
from adaptinf.inference.results.tables import escape_latex, format_pvalue

NASTY = r"a_1 & 50% <b>$x#{}~^\|</b>"
GUARANTEE = PrivacyGuarantee(epsilon=0.1)
ESTIMATE = np.array([0.5, 0.625])
STD_ERROR = np.array([0.02, 0.03])
NORMAL = NormalReference(ESTIMATE, STD_ERROR)


def make(reference: Reference = NORMAL, terms: tuple[str, ...] = ("a", "b"), **changes: Any) -> Results:
    fields: dict[str, Any] = {
        "model": "ArmMeans",
        "estimands": tuple(Estimand("arm-mean", arm=term) for term in terms),
        "terms": terms,
        "estimate": ESTIMATE,
        "std_error": STD_ERROR,
        "reference": reference,
        "estimator": "sample-mean",
        "facts": LogFacts(1000, "PrivateUCB", GUARANTEE, "simulation"),
        "details": {"ess": np.array([400.0, 312.0]), "min_propensity": np.array([0.25, 0.0625])},
    }
    return Results(**{**fields, **changes})


def corrected(n: int = 1000, **changes: Any) -> Results:
    return make(correction=Correction(0.1, n, GUARANTEE), **changes)


def plain(text: str) -> str:
    return " ".join(text.split())


def test_header_block() -> None:
    text = make(weights="sqrt").summary().as_text()
    for label, value in {
        "Estimator:": "sample-mean",
        "Weights:": "sqrt",
        "Design:": "PrivateUCB",
        "Guarantee:": "not covered",
        "No. rounds:": "1,000",
        r"Effective sample \(min\):": r"312\.0",
        "Smallest propensity:": r"0\.0625",
        "Noise backend:": "simulation",
        "Level:": "95%",
    }.items():
        assert re.search(rf"{label} +{value}", text), label
    assert "Null:" not in text
    assert re.search(r"Null: +0\.5", make(null=0.5).summary().as_text())


def test_what_is_not_known_has_no_line() -> None:
    text = make(facts=LogFacts(10), details={}).summary().as_text()
    for label in (
        "Design:",
        "Guarantee:",
        "Noise backend:",
        "propensity:",
        "Weights:",
        "Outcome:",
        "Privacy",
    ):
        assert label not in text, label
    text = make(facts=LogFacts(10, guarantee=GUARANTEE)).summary().as_text()
    assert re.search("Noise backend: +unknown", text)
    withdrawn = make(facts=LogFacts(10, unpromised=("it was paused by hand",))).summary().as_text()
    assert re.search("Guarantee: +none", withdrawn)


def test_coefficients() -> None:
    row = next(line for line in make().summary().as_text().splitlines() if line.startswith("b "))
    assert row.split() == ["b", "0.6250", "0.0300", "20.833", "2.2e-96", "0.5662", "0.6838"]


@pytest.mark.parametrize(
    ("alpha", "labels"),
    [(0.05, ["[0.025", "0.975]"]), (0.1, ["[0.05", "0.95]"]), (0.01, ["[0.005", "0.995]"])],
)
def test_labels_follow_alpha(alpha: float, labels: list[str]) -> None:
    text = corrected().summary(alpha).as_text()
    own, adjusted = (line.split() for line in text.splitlines() if "P>|z|" in line or labels[0] in line)
    assert own == ["coef", "std", "err", "z", "P>|z|", *labels]
    assert [word for word in adjusted if word != "corrected"] == ["P>|z|", *labels]


def test_test_names_in_the_header() -> None:
    student = make(StudentReference(ESTIMATE, STD_ERROR, np.array([9.0, 9.0]))).summary().as_text()
    assert "P>|t|" in student
    assert "reference distribution: t." in student
    exact = make(BinomialReference(1000 * ESTIMATE, np.array([1000, 1000]))).summary().as_text()
    assert "P exact" in exact
    assert says(
        make(BinomialReference(1000 * ESTIMATE, np.array([1000, 1000]))).explain().texts, tables.EXACT_LAW
    )


def test_corrected_columns_are_the_frame() -> None:
    result = corrected(null=0.5)
    line = [x for x in result.summary(0.1).as_text().splitlines() if x.startswith("b ")][-1]
    frame = result.to_frame(0.1).iloc[1]
    expected = [frame["p_value_corrected"], frame["conf_low_corrected"], frame["conf_high_corrected"]]
    assert [float(x) for x in line.split()[-3:]] == pytest.approx(expected, rel=0.05, abs=5e-4)
    assert "corrected" not in make().summary().as_text()


def test_correction_is_described_and_a_vacuous_one_admitted() -> None:
    text = corrected().explain().texts
    assert any("max-information of at most 14.3 bits" in one for one in text)
    assert says(text, tables.FAR_OUT, law="normal")
    assert says(text, tables.CORRECTED)
    assert not says(text, tables.CORRECTION_IMPOSSIBLE)
    assert says(corrected(n=10**6).explain().texts, tables.CORRECTION_IMPOSSIBLE)
    exact = corrected(reference=BinomialReference(1000 * ESTIMATE, np.array([1000, 1000])))
    assert not says(exact.explain().texts, tables.FAR_OUT)


def test_privacy_notes() -> None:
    text = make().explain().texts
    assert says(text, guarantees.COVERS_ACTIONS)
    assert says(text, guarantees.NOT_COVERED)
    assert says(text, guarantees.SIMULATION_NOISE)
    released = make(facts=LogFacts(1000, "DPConSE", GUARANTEE, "release"), private=True)
    text = released.explain().texts
    assert says(text, guarantees.COVERS_RELEASES)
    assert not says(text, guarantees.NOT_COVERED)
    assert not says(text, guarantees.SIMULATION_NOISE)


def test_corrected_columns_of_units_that_came_back_say_what_they_take_for_granted() -> None:
    facts = LogFacts(1000, "PrivateUCB", GUARANTEE, "simulation", person=GUARANTEE.group(3))
    assert says(corrected(facts=facts).explain().texts, tables.CORRECTS_ROUNDS)
    assert not says(corrected().explain().texts, tables.CORRECTS_ROUNDS)
    assert not says(make(facts=facts).explain().texts, tables.CORRECTS_ROUNDS)


@pytest.mark.parametrize("private", [False, True])
def test_an_infinite_guarantee_covers_nothing(private: bool) -> None:
    facts = LogFacts(1000, "DPConSE", PrivacyGuarantee(epsilon=np.inf), "release")
    text = make(facts=facts, private=private).explain().texts
    assert says(text, guarantees.COVERS_NOTHING)
    assert not says(text, guarantees.COVERS_RELEASES)
    assert not says(text, guarantees.COVERS_ACTIONS)


def test_an_explanation_keeps_the_models_notes_in_order() -> None:
    notes = [one.text for one in make(notes=("first", "second")).explain().of("note")]
    assert notes[1:3] == ["first", "second"]
    assert says(notes[0], tables.LAW, law="normal")


@pytest.mark.parametrize("result", [make(), corrected(), corrected(n=10**5)])
def test_text_is_rectangular_and_narrow(result: Results) -> None:
    lines = result.summary().as_text().splitlines()
    rules = {len(line) for line in lines if set(line) == {"="}}
    assert len(rules) == 1
    assert rules.pop() <= 80
    assert max(map(len, lines)) <= 80
    # Facts and estimates, and what is corrected: a rule above, one between two, one below.
    assert sum(set(line) == {"="} for line in lines) == 3 + (result.correction is not None)


def test_missing_numbers_are_shown_as_such() -> None:
    size = np.array([np.nan, 0.03])
    text = make(NormalReference(ESTIMATE, size), std_error=size).summary().as_text()
    row = next(line for line in text.splitlines() if line.startswith("a "))
    assert row.split() == ["a", "0.5000", "nan", "nan", "nan", "nan", "nan"]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_html_is_literal() -> None:
    result = corrected(
        terms=(NASTY, "b"), notes=(f"arm {NASTY}: never chosen",), facts=LogFacts(10, NASTY, GUARANTEE, None)
    )
    reader = _Reader()
    reader.feed(result.summary().as_html())
    assert set(reader.tags) == {"p", "strong", "table", "tr", "td", "th", "dl", "dt", "dd"}  # no heading
    assert reader.tags.count("table") == len(result.summary().tables)
    assert reader.texts.count(NASTY) == 3  # the term in two tables, and the design
    told = _Reader()
    told.feed(result.explain()._repr_html_())
    assert f"Arm {NASTY}: never chosen." in told.texts


def test_latex_is_literal_and_well_formed() -> None:
    result = corrected(
        terms=(NASTY, "b"), notes=(f"arm {NASTY}: never chosen",), facts=LogFacts(10, NASTY, GUARANTEE, None)
    )
    latex = result.summary().as_latex()
    assert latex.count(escape_latex(NASTY)) == 3  # the term in two tables, and the design
    assert "$" not in latex.replace(r"\$", "")
    for special in ("_", "%", "#"):
        assert not re.search(rf"(?<!\\){special}", latex)
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 3
    body = latex[latex.rindex(r"\begin{tabular}") : latex.rindex(r"\end{tabular}")]
    columns = len(re.match(r"\\begin\{tabular\}\{(\w+)\}", body)[1])  # type: ignore[index]
    rows = [line for line in body.splitlines() if line.endswith(r"\\")]
    assert len(rows) == 4
    for row in rows:
        assert len(re.findall(r"(?<!\\)&", row)) == columns - 1
    unescaped = latex.replace(r"\{", "").replace(r"\}", "")
    assert unescaped.count("{") == unescaped.count("}")


def test_labels_with_line_breaks_stay_in_their_cell() -> None:
    text = make(terms=("two\nlines", "b")).summary().as_text()
    assert any(line.startswith("two lines ") for line in text.splitlines())


def test_csv_has_every_table() -> None:
    text = make(terms=('a, "b"', "c"), notes=("a note, and more",)).summary().as_csv()
    rows = list(csv.reader(text.splitlines()))
    assert ["Guarantee:", "not covered", "Level:", "95%"] in rows
    assert ["c", "0.6250", "0.0300", "20.833", "2.2e-96", "0.5662", "0.6838"] in rows
    assert 'a, "b"' in [row[0] for row in rows]
    assert ["More", "result.explain()"] in rows


@pytest.mark.parametrize(
    ("log_p", "shown"),
    [
        (0.0, "1.000"),
        (np.log(0.05), "0.050"),
        (np.log(0.00099), "9.9e-04"),
        (np.log(9.99e-7), "1.0e-06"),
        (np.log(1.04e-300), "1.0e-300"),
        (np.log(0.99e-300), "<1e-300"),
        (-2000.0, "<1e-300"),
        (-1e15, "<1e-300"),
        (-np.inf, "0"),
        (np.nan, "nan"),
    ],
)
def test_pvalues_for_tables(log_p: float, shown: str) -> None:
    assert format_pvalue(log_p) == shown


def test_cautions_come_before_the_notes_that_every_table_has() -> None:
    text = make(cautions=("arm 'a' had 3 successes",), notes=("Assumes nothing.",)).explain().texts
    assert text[0] == "arm 'a' had 3 successes"
    assert "Assumes nothing." in text[1:]
    lines = make(cautions=("arm 'a' had 3 successes",)).summary().lines
    assert lines[0] == ("Caution", "Arm 'a' had 3 successes.")
