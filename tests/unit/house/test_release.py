"""What a release consists of agrees: versions, dates and dependencies stand in several files."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest

import adaptinf as ai

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RECIPE = (ROOT / "docs" / "release" / "recipe.yaml").read_text(encoding="utf-8")


def listed(heading: str, text: str = RECIPE) -> list[str]:
    """Entries of a list of the recipe."""
    [block] = re.findall(rf"^ *{heading}:\n((?: +- .*\n)+)", text, re.MULTILINE)
    return [line.strip().removeprefix("- ") for line in block.splitlines()]


def spaced(requirement: str) -> str:
    """A requirement as conda writes it."""
    return re.sub(r"^([\w-]+)", r"\1 ", requirement)


def test_the_recipe_has_the_version_and_the_dependencies_of_the_package() -> None:
    assert re.findall(r'^  version: "(.*)"$', RECIPE, re.MULTILINE) == [ai.__version__]
    python = spaced(f"python{PROJECT['requires-python']}")
    assert listed("run") == [python, *map(spaced, PROJECT["dependencies"])]
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    assert listed("host") == [python, "pip", *map(spaced, build)]


def test_the_recipe_describes_the_package_as_it_does_itself() -> None:
    fields = dict(re.findall(r"^  (\w+): (.+)$", RECIPE, re.MULTILINE))
    assert fields["summary"] == PROJECT["description"]
    assert fields["license"] == PROJECT["license"]
    assert [fields["license_file"]] == PROJECT["license-files"]
    assert listed("entry_points") == [f"{name} = {call}" for name, call in PROJECT["scripts"].items()]


def test_the_changelog_begins_with_this_version_and_the_citation_has_its_date() -> None:
    log = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    citation = (ROOT / "docs" / "CITATION.cff").read_text(encoding="utf-8")
    version, date = re.findall(r"^## (\S+), (.+)$", log, re.MULTILINE)[0]
    assert version == ai.__version__
    told = re.findall(r"^date-released: (\d{4}-\d\d-\d\d)$", citation, re.MULTILINE)
    assert told == ([] if date == "not yet released" else [date])


@pytest.mark.skipif(not (ROOT / ".ci").exists(), reason="a source distribution has no .ci")
def test_quick_tests_are_there_and_the_release_can_be_run() -> None:
    files = (ROOT / ".ci" / "quick_tests").read_text(encoding="utf-8").split()
    assert len(files) == len(set(files)) >= 8
    assert [file for file in files if not (ROOT / file).is_file()] == []
    assert os.access(ROOT / ".ci" / "release", os.X_OK)
