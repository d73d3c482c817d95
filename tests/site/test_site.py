"""The built pages: words that people search for lead to the guide about them, and the side bar is short.

Run by path on a folder of built pages, which needs Node:

    sphinx-build -b html docs html && ADAPTINF_SITE=html pytest -n 0 tests/site
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SITE = Path(os.environ.get("ADAPTINF_SITE", "html"))
FIRST = {
    "interim analysis": ("interim", "#interim-looks-and-early-stopping"),
    "delete participant": ("trial", "#delete-a-participant"),
    "no propensities": ("choosing", "#without-propensities"),
    "sample size": ("planning", "#plan-a-trial-sample-size-and-power"),
    "cluster standard errors": ("ratios", "#repeated-users"),
    "export Word": ("reports", "#tables-and-reports-to-hand-on"),
    "CUPED": ("ratios", "#ratios-and-covariates-cuped"),
    "revenue per user": ("ratios", "#ratios-and-covariates-cuped"),
    "peek": ("interim", "#interim-looks-and-early-stopping"),
    "late outcomes": ("missing", "#outcomes-that-become-known-late"),
    "winner": ("many_arms", "#the-winner-s-own-interval"),
    "GDPR": ("privacy", "#gdpr-and-other-laws"),
}
"""What people type, and the page and section that have to come first."""
LAST = re.compile(r"changelog$|evidence/|studies/")
PLAIN = ("drift", "propensity", "coverage", "units", "interval", "sums", "Thompson", "restart", "Parquet")
"""Words that pages of evidence and the changelog are full of."""


def search(*queries: str) -> list[list[tuple[str, str]]]:
    """Pages and anchors that the search finds, the best first; the scripts are those of the built pages."""
    command = ["node", str(HERE / "search.js"), str(SITE), *queries]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [[(page, anchor) for page, anchor in found] for found in json.loads(done.stdout)]


@pytest.fixture(scope="module")
def found() -> dict[str, list[tuple[str, str]]]:
    """What every query finds."""
    queries = (*FIRST, *PLAIN)
    return dict(zip(queries, search(*queries), strict=True))


@pytest.mark.parametrize("query", FIRST)
def test_a_word_leads_to_its_page(query: str, found: dict[str, list[tuple[str, str]]]) -> None:
    page, anchor = found[query][0]
    assert (page, anchor) == FIRST[query]
    assert f'id="{anchor[1:]}"' in (SITE / f"{page}.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("query", [*FIRST, *PLAIN])
def test_the_changelog_and_the_evidence_come_last(
    query: str, found: dict[str, list[tuple[str, str]]]
) -> None:
    late = [bool(LAST.match(page)) for page, _ in found[query]]
    assert late == sorted(late)
    assert not late[0]


def test_case_does_not_matter() -> None:
    upper, lower, title = search("CUPED", "cuped", "Cuped")
    assert upper[0] == lower[0] == title[0]


def test_the_side_bar_is_short_and_has_its_shelves() -> None:
    text = (SITE / "index.html").read_text(encoding="utf-8")
    bar = text[text.index('class="sidebar-tree"') : text.index("</aside>")]
    assert 10 < bar.count('class="toctree-l1') <= 24
    captions = re.findall(r'class="caption-text">([^<]+)<', bar)
    assert captions == ["Start", "Analyse", "Run", "Privacy", "More"]
    folded = re.findall(r'class="toctree-l1 has-children"><a[^>]*>([^<]+)<', bar)
    assert {"Reference", "Theory", "Project"} <= set(folded)


def test_every_page_is_in_the_side_bar() -> None:
    text = (SITE / "index.html").read_text(encoding="utf-8")
    bar = text[text.index('class="sidebar-tree"') : text.index("</aside>")]
    linked = {link.split("#")[0] for link in re.findall(r'href="([^"]+)"', bar)}
    aside = {"index.html", "search.html", "py-modindex.html"}
    pages = {path.name for path in SITE.glob("*.html")} - aside
    assert pages <= linked
