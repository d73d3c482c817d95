"""README.md and the pages for users: their blocks run, and print what the pages show."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from adaptinf.cli.demonstration import EXPERIMENTS

ROOT = Path(__file__).parents[3]
README, QUICKSTART = ROOT / "README.md", ROOT / "docs" / "quickstart.md"
DESIGNS, CLASSIFICATION = ROOT / "docs" / "designs.md", ROOT / "docs" / "classification.md"
CHOOSING, BIAS = ROOT / "docs" / "choosing.md", ROOT / "docs" / "bias.md"
REGRESSION, PLANNING = ROOT / "docs" / "regression.md", ROOT / "docs" / "planning.md"
PLOTS, AUDITING = ROOT / "docs" / "plots.md", ROOT / "docs" / "auditing.md"
HOWTO, STATSMODELS = ROOT / "docs" / "howto.md", ROOT / "docs" / "from_statsmodels.md"
EXECUTED = [README, QUICKSTART, DESIGNS, CLASSIFICATION, CHOOSING, BIAS, REGRESSION]
INDEX, INTERIM = ROOT / "docs" / "index.md", ROOT / "docs" / "interim.md"
EXECUTED += [PLANNING, PLOTS, AUDITING, HOWTO, STATSMODELS, INDEX]
EXECUTED += [ROOT / "docs" / f"{name}.md" for name in ("interim", "many_arms", "ratios", "reports")]
SLOW = {
    STATSMODELS,
    HOWTO,
    QUICKSTART,
    DESIGNS,
    CLASSIFICATION,
    REGRESSION,
    PLOTS,
    AUDITING,
    INTERIM,
}  # several designs compile
MARKS = dict.fromkeys(SLOW, pytest.mark.slow) | {PLANNING: pytest.mark.long}  # many trials are simulated
PAGES = [pytest.param(page, marks=MARKS.get(page, ()), id=page.name) for page in EXECUTED]


@pytest.fixture(scope="module")
def examples() -> ModuleType:
    """The script docs/refresh_examples.py."""
    spec = importlib.util.spec_from_file_location("refresh_examples", ROOT / "docs" / "refresh_examples.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", PAGES)
def test_blocks_print_what_the_page_shows(examples: ModuleType, page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == examples.refreshed(text), f"run python docs/refresh_examples.py {page.relative_to(ROOT)}"


def test_refreshing_replaces_an_output_that_has_changed(examples: ModuleType) -> None:
    page = "A\n```python\nx = 1\n```\nB\n```python\nprint(x + 1)\n```\n```text\n{}```\nC\n"
    assert examples.refreshed(page.format("3\n")) == page.format("2\n")
    with pytest.raises(RuntimeError, match="no block of text"):
        examples.refreshed("```python\nprint(1)\n```\n")
    with pytest.raises(RuntimeError, match="this command failed"):
        examples.refreshed("```bash\nadaptinf validate nowhere.csv\n```\n")


def test_readme_shows_the_two_setup_commands_exactly(examples: ModuleType) -> None:
    found = examples.blocks(README.read_text(encoding="utf-8"))
    commands = [content for language, content in found if language == "bash"]
    assert commands == ["pip install -e . && adaptinf demo\n", 'pip install -e ".[test]" && pytest\n']


def test_the_example_of_the_readme_is_short_and_shows_its_table(examples: ModuleType) -> None:
    found = examples.blocks(README.read_text(encoding="utf-8"))
    [place] = [place for place, (language, _) in enumerate(found) if language == "python"]
    assert len(found[place][1].splitlines()) <= 20
    language, table = found[place + 1]
    assert language == "text"
    assert "Contrast Results" in table
    assert "More      result.explain()" in table
    assert "reference distribution: t." in " ".join(table.split())
    assert max(map(len, table.splitlines())) <= 80


def test_the_words_below_the_example_have_the_numbers_of_its_table() -> None:
    text = README.read_text(encoding="utf-8")
    [row] = re.findall(r"^1 - 0 .*$", text, re.MULTILINE)
    estimate, *_, low, high = (100 * float(cell) for cell in row.split()[3:])
    words = " ".join(text.split())
    assert f"page 1 receives an estimated {estimate:.1f} more clicks per 100 visits than page 0" in words
    assert f"compatible with {low:.1f} to {high:.1f} more" in words
    assert low < 100 * (0.5 - 0.3) < high


@pytest.mark.parametrize("page", [README, INDEX], ids=lambda page: page.name)
def test_the_first_picture_is_described_by_its_own_numbers(page: Path) -> None:
    [described] = re.findall(
        r"^!\[(.*)\]\(\S*figures/demo\.svg\)$", page.read_text(encoding="utf-8"), re.MULTILINE
    )
    kinds = zip(*(one.recorded for one in EXPERIMENTS), strict=True)
    for tallies in kinds:
        assert {tally.trials for tally in tallies} == {500}
        first, second, third = (f"{tally.missed / 5:.3g}%" for tally in tallies)
        assert f"in {first}, {second} and {third}" in described


@pytest.mark.parametrize("page", EXECUTED, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
    assert links
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []
