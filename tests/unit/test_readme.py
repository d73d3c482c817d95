"""README.md and the quick start: their blocks run, and print what the pages show."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from adaptinf.cli import main

ROOT = Path(__file__).parents[2]
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [ROOT / "README.md", ROOT / "docs" / "quickstart.md"]


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and content of each fenced block."""
    return FENCED.findall(page.read_text(encoding="utf-8"))


def printed(page: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[tuple[str, str, str | None]]:
    """Each block that runs, what it printed, and what the page says that it prints (None: nothing)."""
    names: dict[str, object] = {}
    found = [*blocks(page), ("", "")]
    for (language, content), (following, output) in pairwise(found):
        if language == "python":
            exec(compile(content, page.name, "exec"), names)
        elif language == "bash" and content.startswith("adaptinf "):
            assert main(shlex.split(content)[1:]) == 0
        else:
            continue
        yield content, capsys.readouterr().out, output if following == "text" else None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_print_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = list(printed(page, capsys))
    assert len(ran) >= 1
    for content, output, shown in ran:
        assert output == (shown or ""), content


def test_readme_shows_the_two_setup_commands_exactly() -> None:
    commands = [content for language, content in blocks(PAGES[0]) if language == "bash"]
    assert commands == ["pip install -e . && adaptinf demo\n", 'pip install -e ".[test]" && pytest\n']


def test_the_example_of_the_readme_has_twenty_lines_at_most() -> None:
    [example] = [content for language, content in blocks(PAGES[0]) if language == "python"]
    assert len(example.splitlines()) <= 20


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []
