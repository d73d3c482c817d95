"""The pages that a stranger sees first: short, plain, linked, and in step with each other."""

from __future__ import annotations

import ast
import importlib.util
import math
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import adaptinf as ai

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)]


def script(name: str) -> ModuleType:
    """A script of docs/."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def english() -> ModuleType:
    return script("english")


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 100


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors that the build gives to a page's headings."""
    headings = re.findall(r"^#{1,3} (.+)$", prose(page), re.MULTILINE)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)|`", r"\1", heading).strip().lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


def test_links_of_all_pages_lead_to_files_and_headings() -> None:
    dead = []
    for page in PAGES:
        if "generated" in page.parts or "studies" in page.parts:
            continue
        away = ("studies/", "../studies/", "generated/", "mailto:")  # pages that the build writes
        for link, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", prose(page)):
            if "://" in link or link.startswith(away):
                continue
            target = page.parent / link if link else page
            if not target.exists():
                dead.append(f"{page.relative_to(ROOT)}: {link}")
            elif anchor and target.suffix == ".md" and anchor not in anchors(target):
                dead.append(f"{page.relative_to(ROOT)}: {link}#{anchor}")
    assert dead == []


def test_the_side_bar_has_at_most_24_entries_and_every_page_a_place() -> None:
    def listed(page: Path) -> list[Path]:
        blocks = re.findall(
            r"^```\{toctree\}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        )
        names = [line.strip() for block in blocks for line in block.splitlines()]
        found: list[Path] = []
        for name in names:
            if name == "*":
                found += sorted(path for path in page.parent.glob("*.md") if path != page)
            elif name and not name.startswith(":") and name != "genindex":
                found.append(page.parent / f"{name}.md")
        return found

    front = DOCS / "index.md"
    assert 10 < len(listed(front)) <= 24
    placed, todo = {front}, listed(front)
    while todo:
        page = todo.pop()
        assert page not in placed, page
        placed.add(page)
        todo += listed(page)
    assert placed == {path for path in PAGES if path.is_relative_to(DOCS) and "generated" not in path.parts}


def test_every_question_has_a_block() -> None:
    text = (DOCS / "howto.md").read_text(encoding="utf-8")
    parts = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert [int(part.split(".")[0]) for part in parts] == list(range(1, 28))
    assert all("```python" in part and "?\n" in part.splitlines(keepends=True)[0] for part in parts)


def test_the_reader_test_has_twenty_questions() -> None:
    text = (DOCS / "contributing.md").read_text(encoding="utf-8")
    table = text[text.index("| question |") : text.index("## Code of conduct")]
    rows = [line.split("|")[1].strip() for line in table.strip().splitlines()[2:]]
    assert len(rows) == 20
    assert all(row.endswith("?") for row in rows)


def test_the_citation_is_of_this_version() -> None:
    text = (DOCS / "CITATION.cff").read_text(encoding="utf-8")
    fields = dict(re.findall(r"^([\w-]+): (.+)$", text, re.MULTILINE))
    assert fields["cff-version"] == "1.2.0"
    assert fields["version"] == ai.__version__
    assert fields["license"] == "BSD-3-Clause"
    page = (DOCS / "citing.md").read_text(encoding="utf-8")
    assert page.count(ai.__version__) == 2
    assert fields["title"].strip('"') in page


def test_sentences_are_split_and_counted(english: ModuleType) -> None:
    page = "# A title\n\nOne `x. Y` two (see Zhang et al. 2020). Three\nfour?\n\n- five. Six\n"
    page += "- [seven](a.b)\n\n```text\nno. No\n```\n"
    assert english.sentences(page) == [
        "# A title",
        "One `code` two (see Zhang et al. 2020)",
        "Three four?",
        "- five",
        "Six",
        "- [seven]",
    ]
    assert english.words("- [seven] of `code` | 8") == 4
    assert english.too_long(" ".join(["word"] * 35)) == []
    [found] = english.too_long(" ".join(["word"] * 36))
    assert found.startswith("36 words: word")


def test_a_formula_counts_as_one_word(english: ModuleType) -> None:
    assert english.sentences("As $a + b$ grows, $$\nx + y\n$$\nfalls. $c$ stays.") == [
        "As formula grows, formula falls",
        "formula stays.",
    ]


def test_docstrings_and_messages_of_a_module_are_read(english: ModuleType) -> None:
    source = '"""First.\n\n>>> code()\n"""\nX: str = "a b c"\n"""Of X."""\nraise E(f"no {one} is there")\n'
    assert [one.split() for one in english.docstrings(source)] == [["First."], ["Of", "X."]]
    assert sorted(english.messages(source)) == ["a b c", "no {} is there"]


@pytest.mark.slow
def test_nothing_is_found_in_pages_docstrings_and_messages(english: ModuleType) -> None:
    paths = english.paths()
    assert len(paths) > 600
    assert [one for path in paths for one in english.findings(path)] == []


@pytest.mark.parametrize(
    "text",
    [
        "it says of each what it is worth for one log",
        "A protocol takes 10,000",
        "pay for the\nrewards' part in the choice",
        "It wants both arms in every batch",
        "hopeless soon after",
        "one row a\n    round",
        "Whoever meets a participant asks",
        "intervals can be had from sums",
        "names that\ncannot be told apart",
        "nothing speaks against it",
        "a constant that is fixed beforehand",
        "an error with all that is found wrong with the rows",
        "None where there is none",
        "it stands under the table",
        "a design of your own",
        "the outcome was told",
        "an arm is no text",
    ],
)
def test_odd_phrases_are_seen(english: ModuleType, text: str) -> None:
    assert english.odd(text) != []


def test_circles_of_pictures_become_arcs_of_the_same_place_and_size() -> None:
    figures = script("figures")
    around = [(0.3 * math.sin(turn), 0.3 * math.cos(turn)) for turn in np.arange(1, 9) * math.pi / 4]
    curves = "".join(f"C 0.01 0.01 0.01 0.01 {4 + x:.4f} {72 + y:.4f} " for x, y in around)
    found = figures._short(f'<path d="M 4.0000 72.3000 {curves}z" />')
    assert found == '<path d="M3.7 72a0.3 0.3 0 1 0 0.6 0a0.3 0.3 0 1 0 -0.6 0z" />'
    oval = curves.replace("72.3000", "72.9000")
    assert "a" not in figures._short(f'd="M 4.0000 72.3000 {oval}z"')


def test_the_font_of_formulas_has_the_characters_that_its_style_sheet_promises() -> None:
    styles = (DOCS / "_static" / "adaptinf.css").read_text(encoding="utf-8")
    parts = re.findall(r"U\+([0-9A-F]+)(?:-([0-9A-F]+))?", styles)
    promised = [(int(first, 16), int(last or first, 16)) for first, last in parts]
    ranges = next(
        node.value
        for node in ast.parse((DOCS / "formula_font.py").read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "RANGES"
    )
    assert promised == list(ast.literal_eval(ranges))
    assert (DOCS / "_static" / "formulas.woff2").read_bytes()[:4] == b"wOF2"
    assert "SIL OPEN FONT LICENSE" in (DOCS / "_static" / "formulas_license.txt").read_text(encoding="utf-8")


def test_the_evidence_index_is_made_from_the_pages() -> None:
    maker = script("evidence_index")
    index = (DOCS / "evidence" / "index.md").read_text(encoding="utf-8")
    assert index == maker.made(index, maker.pages()), "run python docs/evidence_index.py"
    for name in maker.pages():
        assert index.count(f"]({name}.md)") == 1


def test_a_headline_follows_its_page() -> None:
    maker = script("evidence_index")
    entry = ("holds", r"(\d+ of \d+) rows", "{0} rows", "all")
    page = "# Title\n\nSeed: 1. Date: 2026-01-02, commit\nabc1234. So 6 of\n7 rows."
    assert (
        maker.row("drift", page, entry)
        == "| [holds](drift.md) | 6 of 7 rows | all | 2026-01-02 | abc1234 |\n"
    )
    assert maker.row("drift", page, None) == "| [Title](drift.md) |  |  | 2026-01-02 | abc1234 |\n"
    with pytest.raises(SystemExit, match="no longer has the headline"):
        maker.row("drift", page.replace("rows", "cells"), entry)


@pytest.mark.parametrize("paper", ["neel_roth", "dp_se", "dp_bai", "ldp_nonparametric", "conse"])
def test_the_table_of_errata_has_every_point_of_a_paper(paper: str) -> None:
    page = (DOCS / "errata" / f"{paper}.md").read_text(encoding="utf-8")
    index = (DOCS / "errata" / "index.md").read_text(encoding="utf-8")
    points = re.findall(r"^## (\d+)\. ", page, re.MULTILINE)
    rows = re.findall(rf"^\| \[(\d+)\]\({paper}\.md\) \| (.+) \| (.+) \| (.+) \|$", index, re.MULTILINE)
    assert [number for number, *_ in rows] == points
    assert {status for _, _, status, _ in rows} <= {"false", "gap", "misprint", "reading"}
    assert page.splitlines()[0].replace("# ", "## ") in index
