"""Pages as text: templates around contents, with all external text escaped."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from adaptinf.errors import MissingDependencyError
from adaptinf.reports.page_style import STYLE as OF_REPORTS
from adaptinf.reports.report_page import Section, divided
from adaptinf.service.pages.views import ROOT, SIGN_IN, SIGN_OUT, VIEWS
from adaptinf.texts import literal

try:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup
except ImportError as error:
    raise MissingDependencyError("a trial over HTTP", "Jinja2", "serve") from error


def _plain(value: Any) -> Any:
    """Text with invisible characters made visible; markup is unchanged."""
    return value if isinstance(value, Markup) else literal(str(value))


_TEMPLATES = Environment(
    loader=PackageLoader("adaptinf.service.pages"),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=_plain,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.globals |= {"root": ROOT, "sign_in": SIGN_IN, "sign_out": SIGN_OUT}


def rendered(name: str, title: str, role: str, **values: Any) -> str:
    """A page from its template, with the links of a role; without links if the role is empty."""
    links = [view for view in VIEWS if role in view.roles]
    return _TEMPLATES.get_template(f"{name}.html").render(title=title, role=role, links=links, **values)


def marked(sections: Sequence[Section]) -> Markup:
    """Sections, whose texts are escaped, as part of a page."""
    return Markup(divided(sections))


def inserted(html: str) -> Markup:
    """Further content, whose texts are escaped."""
    return Markup(html)


def _own(name: str) -> str:
    return files("adaptinf.service.pages").joinpath("templates", name).read_text(encoding="utf-8")


STYLE_TEXT = f"{OF_REPORTS}\n{_own('pages.css')}".encode()
"""The style of reports, with additions for pages."""
ICON_TEXT = _own("icon.svg").encode()
