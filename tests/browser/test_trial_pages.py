"""Pages of a trial as Chromium shows them: wide and narrow, light and dark, by keyboard alone.

Run by path, with the axe-core of `npm install axe-core`; ADAPTINF_SHOTS names a folder for pictures:

    ADAPTINF_AXE=node_modules/axe-core/axe.min.js pytest -n 0 tests/browser
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest
from chromium import Tab, chromium

import adaptinf as ai
from adaptinf.service.pages.views import VIEWS
from adaptinf.trial import kit_codes

SHOTS = os.environ.get("ADAPTINF_SHOTS")
WIDTHS = (390, 1280)
SITES = ("Basel", "St. Gallen East")
NAME = "<script>document.title = 'script';</script><img src=x onerror=alert(1)> of some length"
ROLES = ("monitor", "statistician", "operator", "unblinder")
SEEN = {"operator": "operator", "unblinding": "unblinder"}
"""Who sees a view that the statistician does not see."""
VIOLATIONS = """axe.run(document, {resultTypes: ["violations"]}).then((found) => found.violations.flatMap(
    (one) => one.nodes.map((node) => one.id + ": " + node.target + " " + node.html.slice(0, 90))))"""
LEVELS = "[...document.querySelectorAll('h1, h2, h3, h4')].map((heading) => +heading.tagName[1])"
UNNAMED = """[...document.querySelectorAll(
        "img:not([alt]), table:not(:has(caption)), input, textarea, select"
    )].filter((one) => !(one.labels && one.labels.length) && one.type !== "hidden")
    .map((one) => one.outerHTML)"""
FOCUS = """(() => { const one = document.activeElement, style = getComputedStyle(one);
    return [one.textContent.trim() || one.id, style.outlineStyle, parseFloat(style.outlineWidth)]; })()"""
TITLE = "document.querySelector('h1').textContent"


class Site(NamedTuple):
    """Where a trial is served, and its tokens."""

    address: str
    tokens: dict[str, str]


@pytest.fixture(scope="module")
def axe() -> str:
    """The script of axe-core."""
    return Path(os.environ["ADAPTINF_AXE"]).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    path = tmp_path_factory.mktemp("trial") / "trial.db"
    plan = ai.Plan(
        ai.designs.Thompson(floor=0.2),
        arms=["a letter with a long name", "call"],
        treatment="call",
        control="a letter with a long name",
        looks=[60, 120],
    )
    with ai.Trial.create(path, plan, blinded=True) as trial:
        for site in SITES:
            trial.add_site(site, key=site, by="the office")
            trial.add_kits(
                site, kit_codes(dict.fromkeys(plan.arms, 70)), key=f"kits {site}", by="the pharmacy"
            )
        for number in range(100):
            made = trial.assign(f"{NAME} {number}", key=f"a{number}", site=SITES[number % 3 == 0])
            if number < 60 or number % 4:
                trial.record(made.id, float(number % 3 == 0), key=f"r{number}")
        trial.look()
        trial.pause("a", by=NAME)
        trial.resume("b", by="the office")
        tokens = {role: trial.add_token(role).text for role in ROLES}
    path.chmod(0o600)
    command = [sys.executable, "-m", "adaptinf", "trial", "serve", str(path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        yield Site(process.stdout.readline().decode().split()[-1], tokens)
        process.terminate()
        assert process.wait(60) == 0


@pytest.fixture
def tab() -> Iterator[Tab]:
    with chromium() as found:
        yield found


def sign_in(tab: Tab, site: Site, role: str) -> None:
    """Sign in by keyboard."""
    tab.go(f"{site.address}/page/sign-in")
    for _ in range(2):  # The link that skips to the content, then the field.
        tab.press("Tab")
    tab.type(site.tokens[role])
    tab.press("Enter")
    tab.wait(f"{TITLE} === 'Overview'")


def faults(tab: Tab, site: Site, width: int, axe: str) -> list[str]:
    """What is wrong with the page that is shown."""
    found = [f"console: {one}" for one in tab.told()]
    found += [f"outside: {one}" for one in tab.requested() if not one.startswith(f"{site.address}/page")]
    if (wide := tab.run("document.documentElement.scrollWidth")) > width:
        found.append(f"{wide} px wide")
    if broken := tab.run("[...document.images].filter((one) => !one.naturalWidth).map((one) => one.src)"):
        found.append(f"not loaded: {broken}")
    levels = tab.run(LEVELS)
    if levels.count(1) != 1 or any(
        after > before + 1 for before, after in zip([0, *levels], levels, strict=False)
    ):
        found.append(f"headings: {levels}")
    found += [f"unnamed: {one}" for one in tab.run(UNNAMED)]
    tab.run(f"{axe}; 0")
    return found + [f"axe: {one}" for one in tab.run(VIOLATIONS)]


@pytest.mark.parametrize("view", ["sign-in", *(view.name for view in VIEWS)])
def test_every_view(view: str, tab: Tab, site: Site, axe: str) -> None:
    path = "/page/sign-in"
    if view != "sign-in":
        sign_in(tab, site, SEEN.get(view, "statistician"))
        (path,) = [one.path for one in VIEWS if one.name == view]
    for width, dark in product(WIDTHS, (False, True)):
        tab.show(width, dark)
        tab.go(f"{site.address}{path}")
        assert faults(tab, site, width, axe) == []
        shade = tab.run("getComputedStyle(document.body).backgroundColor")
        assert (shade == "rgb(255, 255, 255)") is not dark
        kind = "dark" if dark else "light"
        pictures = tab.run("[...document.images].map((one) => one.currentSrc)")
        assert all(one.endswith(f"-{kind}.svg") for one in pictures)
        assert len(pictures) == (view in ("overview", "allocation", "results"))
        assert "script" not in tab.run("document.title")
        if SHOTS:
            tab.picture(Path(SHOTS, f"{view}-{width}-{kind}.png"))


def test_by_keyboard_alone(tab: Tab, site: Site) -> None:
    """The link to the content comes first; what has the focus is framed; a form is sent by a key."""
    sign_in(tab, site, "operator")
    seen = []
    for _ in range(7):
        tab.press("Tab")
        name, outline, width = tab.run(FOCUS)
        assert (outline, width >= 2) == ("solid", True), name
        seen.append(name)
    assert seen == [
        "Skip to the content",
        "Overview",
        "Outcomes",
        "Stock",
        "Downloads",
        "Operator",
        "Sign out",
    ]
    tab.go(f"{site.address}/page/operator")
    tab.press("Tab")
    tab.press("Enter")  # Skips to the content, so the next field is the form's.
    tab.press("Tab")
    tab.type("a bad batch")
    tab.press("Tab")
    tab.type("Dr. Ames")
    tab.press("Enter")
    tab.wait("document.body.textContent.includes('The trial is paused.')")
    assert tab.run("document.querySelector('.fields button').textContent") == "Resume the trial"
    tab.run("document.querySelector('.out button').click()")
    tab.wait(f"{TITLE} === 'Sign in'")
    assert tab.run("document.querySelector('[role=alert]').textContent") == "Signed out."
    tab.go(f"{site.address}/page/operator")
    assert tab.run(TITLE) == "Sign in"


def test_an_arm_is_revealed_by_keyboard_and_shown_once(tab: Tab, site: Site, axe: str) -> None:
    sign_in(tab, site, "unblinder")
    for width, dark in product(WIDTHS, (False, True)):
        tab.show(width, dark)
        tab.go(f"{site.address}/page/unblinding")
        tab.press("Tab")
        tab.press("Enter")
        tab.press("Tab")
        tab.type(f"{NAME} {4 if width == 390 else 5}")
        tab.press("Tab")
        tab.run("document.querySelector('select').value = 'Basel'")
        for text in ("a seizure", "Dr. Ames"):
            tab.press("Tab")
            tab.type(text)
        tab.press("Tab")
        tab.press(" ")
        tab.press("Tab")
        tab.press("Enter")
        tab.wait("document.querySelector('.answer') !== null")
        assert faults(tab, site, width, axe) == []
        (arm,) = tab.run("[...document.querySelectorAll('.answer strong')].map((one) => one.textContent)")
        assert arm in ("a letter with a long name", "call")
        if SHOTS:
            tab.picture(Path(SHOTS, f"answer-{width}-{'dark' if dark else 'light'}.png"))
        tab.ask("Page.reload")  # The form is sent again, which reveals nothing.
        tab.wait(f"{TITLE} === 'Problem'")
        assert "The form has expired" in tab.run("document.body.textContent")
        assert arm not in tab.run("document.body.textContent")
        tab.events.clear()


def test_scripts_cannot_read_the_cookie_and_cannot_run(tab: Tab, site: Site) -> None:
    sign_in(tab, site, "monitor")
    assert tab.run("document.cookie") == ""
    tab.run("document.body.append(Object.assign(document.createElement('script'), {text: 'window.ran = 1'}))")
    assert tab.run("window.ran === undefined")
    assert any("Content Security Policy" in one for one in tab.told())
