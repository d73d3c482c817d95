"""Figures of the pages have a sister on a dark ground, which pages put beside them."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from docutils import nodes
from docutils.utils import new_document

DOCS = Path(__file__).parents[2] / "docs"
DRAWN = re.findall(r"\]\(figures/([\w-]+)\.svg\)", (DOCS / "plots.md").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def conf() -> ModuleType:
    spec = importlib.util.spec_from_file_location("conf", DOCS / "conf.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_is_drawn_on_both_grounds(name: str) -> None:
    light, dark = (
        (DOCS / "figures" / f"{name}{end}.svg").read_text(encoding="utf-8") for end in ("", "_dark")
    )
    assert re.findall("fill: (#[0-9a-f]{6})", light)[0] == "#ffffff"
    assert re.findall("fill: (#[0-9a-f]{6})", dark)[0] == "#131416"
    assert re.search('width="([0-9.]+)pt"', light)[1] == re.search('width="([0-9.]+)pt"', dark)[1]  # type: ignore[index]
    assert "#000000" not in dark


def shown(conf: Any, uri: str, page: str = "plots") -> list[tuple[str, list[str]]]:
    """Images of a page with one figure."""
    document = new_document("page")
    document += nodes.paragraph("", "", nodes.image(uri=uri, alt="what is seen"))
    place = SimpleNamespace(docname=page, doc2path=lambda name: DOCS / f"{name}.md")
    document.settings.env = place
    conf.DarkFigures(document).apply()
    images = list(document.findall(nodes.image))
    assert {image["alt"] for image in images} == {"what is seen"}
    return [(image["uri"], image["classes"]) for image in images]


def test_a_page_shows_the_figure_of_its_ground(conf: ModuleType) -> None:
    assert shown(conf, "figures/forest.svg") == [
        ("figures/forest.svg", ["only-light"]),
        ("figures/forest_dark.svg", ["only-dark"]),
    ]
    assert shown(conf, "../figures/forest.svg", "theory/proofs")[1][0] == "../figures/forest_dark.svg"
    assert shown(conf, "figures/absent.svg") == [("figures/absent.svg", [])]
