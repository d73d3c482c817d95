"""Parts of a page, based on the parts of reports: facts, tables, pictures, numbers and times as text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.util import find_spec

from adaptinf.claims.reports import trial_pages as claims
from adaptinf.markup import escaped
from adaptinf.reports.report_page import paragraph
from adaptinf.service.pages.views import picture_path

DAY = 86_400.0


def moment(seconds: float) -> str:
    """A time, in UTC."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def said_moment(text: str) -> str:
    """A time from a row, as text."""
    return moment(datetime.fromisoformat(text).timestamp())


def lasted(seconds: float) -> str:
    """A length of time, in its largest unit."""
    for size, unit in ((DAY, "day"), (3600.0, "hour"), (60.0, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count:,} {unit}" + ("s" if count > 1 else "")
    return "less than a minute"


def counted(count: int, one: str, many: str) -> str:
    """A number with its noun."""
    return f"{count:,} {one if count == 1 else many}"


def share(count: float, total: float) -> str:
    """A part of a total, in percent."""
    return f"{count / total:.1%}" if total else ""


def warned(texts: Sequence[str]) -> str:
    """Cautions, one paragraph each."""
    return "\n".join(
        f'<p class="caution" role="note"><strong>Caution:</strong> {escaped(text)}</p>' for text in texts
    )


def shown_picture(name: str, alt: str, caption: str) -> str:
    """A picture from a separate address, on the background of the page."""
    if find_spec("matplotlib") is None:
        return paragraph(claims.NO_PICTURE())
    light, dark = picture_path(name, "light"), picture_path(name, "dark")
    return (
        f'<figure>\n<picture><source srcset="{dark}" media="(prefers-color-scheme: dark)">'
        f'<img src="{light}" alt="{escaped(alt)}"></picture>\n<figcaption>{escaped(caption)}</figcaption>\n'
        "</figure>"
    )
