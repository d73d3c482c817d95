"""Browsers that sign in at the pages of a trial."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pandas as pd
from httpx2 import Response
from served import Served

FORM = re.compile(r'name="form" value="([\w-]+)"')


def form_of(text: str) -> str:
    """The secret of the forms on a page."""
    found = set(FORM.findall(text))
    assert len(found) == 1
    return found.pop()


def ask_to_sign_in(client: Any, token: str) -> Response:
    form = form_of(client.get("/page/sign-in").text)
    answer: Response = client.post(
        "/page/sign-in", data={"form": form, "token": token}, follow_redirects=False
    )
    return answer


def sign_in(served: Served, role: str) -> Any:
    """The client, signed in with a role and nothing else."""
    served.client.cookies.clear()
    answer = ask_to_sign_in(served.client, served.tokens[role])
    assert (answer.status_code, answer.headers["location"]) == (303, "/page")
    return served.client


def get(client: Any, path: str) -> Response:
    answer: Response = client.get(path, follow_redirects=False)
    return answer


class _Tables(HTMLParser):
    """Rows of cells of each table."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self._within = False

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self._within = True

    def handle_endtag(self, tag: str) -> None:
        self._within = self._within and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._within:
            self.tables[-1][-1][-1] += data


def tables_of(text: str) -> list[pd.DataFrame]:
    """The tables of a page, as texts."""
    parser = _Tables()
    parser.feed(text)
    return [pd.DataFrame(rows[1:], columns=rows[0]) for rows in parser.tables]
