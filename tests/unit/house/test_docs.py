"""The examples in README.md and in the documentation's pages run and print what the pages show."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FENCED = re.compile(r"^```(?:python|pycon)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def session(page: Path) -> str:
    """The page's blocks that show a prompt, in order: one session."""
    blocks = FENCED.findall(page.read_text(encoding="utf-8"))
    return "\n".join(block for block in blocks if ">>> " in block)


PAGES = [page for page in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]) if session(page)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_of_a_page(page: Path) -> None:
    test = doctest.DocTestParser().get_doctest(session(page), {}, page.name, str(page), 0)
    report: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=report.append)
    assert result.attempted > 0
    assert result.failed == 0, "".join(report)


def test_a_page_with_a_wrong_output_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```pycon\n>>> 1 + 1\n3\n```\n")
    with pytest.raises(AssertionError, match="Expected"):
        test_examples_of_a_page(page)


def test_some_page_has_examples() -> None:
    assert ROOT / "docs" / "privacy.md" in PAGES
