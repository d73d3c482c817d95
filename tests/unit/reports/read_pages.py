"""What the tests of reports read out of their pages."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from html.parser import HTMLParser

VOID = {"meta", "link", "img", "br"}


@dataclass(frozen=True)
class Row:
    """A row of the picture: its texts, and where its line and dot stand, on the axis."""

    name: str
    estimate: str
    interval: str
    at: float
    low: float
    high: float


def plain(text: str) -> str:
    """Text without tags."""
    return html.unescape(re.sub(r"<[^>]*>", "", text))


def forest_rows(page: str) -> list[Row]:
    """Rows of the picture, and their numbers from what is drawn."""
    found = re.search(r'<table class="forest.*?</table>', page, re.DOTALL)
    assert found is not None
    table = found[0]
    begin, end = (float(re.findall(f'data-{name}="(.*?)"', table)[0]) for name in ("begin", "end"))

    def value(share: str) -> float:
        return begin + (end - begin) * float(share) / 100.0

    rows = []
    body = table[table.index("<tbody>") : table.index("</tbody>")]
    for row in re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL):
        line = re.search(r'<line x1="(.*?)%" x2="(.*?)%"', row)
        dot = re.search(r'<circle cx="(.*?)%"', row)
        name, estimate, interval = (
            plain(part) for part in re.findall(r'<t[hd](?: scope="row"| class="number")>(.*?)</t[hd]>', row)
        )
        ends = (float("nan"),) * 2 if line is None else (value(line[1]), value(line[2]))
        rows.append(Row(name, estimate, interval, float("nan") if dot is None else value(dot[1]), *ends))
    return rows


def table_rows(page: str, section: str) -> tuple[list[str], dict[str, list[str]]]:
    """Headers and rows by their first cell of the first table of a section."""
    body = page[page.index(f'<h2 id="{section}">') :]
    table = body[body.index("<table>") : body.index("</table>")]
    head = [plain(cell) for cell in re.findall(r'<th scope="col".*?>(.*?)</th>', table)]
    rows = {}
    for row in re.findall(r"<tr>(.*?)</tr>", table[table.index("<tbody>") :], re.DOTALL):
        first, *cells = (plain(cell) for cell in re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row))
        rows[first] = cells
    return head, rows


class _Outside(HTMLParser):
    """Texts that stand in no frame."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[bool] = []
        self.texts: list[str] = []
        self.boxes = 0
        self.feed(page[page.index("<body") : page.index("</html>")])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            box = dict(attrs).get("class") == "box"
            self.boxes += box
            self.open.append(box)

    def handle_endtag(self, tag: str) -> None:
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if not any(self.open):
            self.texts.append(data)


def outside(page: str) -> tuple[str, int]:
    """Text outside of frames, and the number of frames."""
    found = _Outside(page)
    return "\n".join(found.texts), found.boxes
