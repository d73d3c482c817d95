"""The pages and the roles that may see them: a single table for the pages, their tests and the docs."""

from __future__ import annotations

from typing import NamedTuple

from adaptinf.service.roles import BY_NAME
from adaptinf.trial.served_rows import ROLES

ROOT = "/page"
SIGN_IN, SIGN_OUT, STYLE, ICON = (
    f"{ROOT}/sign-in",
    f"{ROOT}/sign-out",
    f"{ROOT}/style.css",
    f"{ROOT}/icon.svg",
)
THEMES = ("light", "dark")


class View(NamedTuple):
    """A page, a picture or a file: its address, its heading, and the roles that may see it."""

    name: str
    path: str
    title: str
    what: str
    roles: tuple[str, ...]


_ALLOCATION, _STATISTICIAN = BY_NAME["allocation"].roles, ("statistician",)
_FOLLOWING = ("recorder", "monitor", "statistician", "operator")


def _page(name: str, what: str, roles: tuple[str, ...]) -> View:
    return View(name, ROOT if name == "overview" else f"{ROOT}/{name}", name.capitalize(), what, roles)


VIEWS = (
    _page(
        "overview", "participants so far and planned, pending outcomes, the guarantee and the state", ROLES
    ),
    _page("outcomes", "pending and overdue outcomes, and how long they have been pending", _FOLLOWING),
    _page("allocation", "participants by arm over time, and the sample ratio", _ALLOCATION),
    _page("checks", "what `diagnose` finds in the log so far", _STATISTICIAN),
    _page("looks", "planned looks, looks taken so far, and their decisions", _STATISTICIAN),
    _page("results", "the table of the first valid method, and the confidence sequence", _STATISTICIAN),
    _page(
        "stock", "kits left at each site; by arm only for statistician and unblinder", BY_NAME["stock"].roles
    ),
    _page("unblinding", "reveal the arm of one participant in an emergency", BY_NAME["unblind"].roles),
    _page("downloads", "files, by role", ROLES),
    _page("operator", "pause the trial, or resume it", BY_NAME["state"].roles),
)
"""The views, in the order of their links."""
PICTURES = (("enrolment", ROLES), ("allocation", _ALLOCATION), ("sequence", _STATISTICIAN))
"""Pictures, and the roles that may see them; each has an address for light pages and one for dark pages."""
_DESCRIBED = ("operator", "statistician")
_FILES = (
    ("head.json", "the number of rows and the head of the journal, for `Trial.verify(head)`", ROLES),
    ("declaration.json", "the design, arms and plan declared when the trial was created", _DESCRIBED),
    ("log.csv", "the log so far, with outcomes", _STATISTICIAN),
    ("log.parquet", "the log so far with its record, which `read_log` reads", _STATISTICIAN),
    ("public.parquet", "the part of the log that its privacy guarantee covers", _STATISTICIAN),
    ("report.html", "the report on the log so far", _STATISTICIAN),
)
FILES = tuple(View(name, f"{ROOT}/files/{name}", name, what, roles) for name, what, roles in _FILES)
"""Files for download."""


def picture_path(name: str, theme: str) -> str:
    """The address of a picture."""
    return f"{ROOT}/pictures/{name}-{theme}.svg"


BY_VIEW = {view.name: view for view in VIEWS}
BY_FILE = {view.name: view for view in FILES}
PAGES = frozenset(
    {
        *("/", SIGN_IN, SIGN_OUT, STYLE, ICON),
        *(view.path for view in (*VIEWS, *FILES)),
        *(picture_path(name, theme) for name, _ in PICTURES for theme in THEMES),
    }
)


def of_browsers(path: str) -> bool:
    """Whether an address belongs to the pages, and not to the calls."""
    return path in ("/", ROOT) or path.startswith(f"{ROOT}/")


def table() -> str:
    """The views and files with their roles, as a table in Markdown."""
    head = ["page or file", "", *ROLES]
    rows = [
        [f"`{view.path}`", view.what, *("yes" if role in view.roles else "" for role in ROLES)]
        for view in (*VIEWS, *FILES)
    ]
    lines = [head, ["---", "---", *(":---:" for _ in ROLES)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
