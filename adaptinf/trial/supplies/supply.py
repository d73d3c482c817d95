"""The stock of kits at each site, and the site and kit of each participant."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from adaptinf.sessions.participants import plain
from adaptinf.spelling import reads_as
from adaptinf.texts import shown, unlisted

LONGEST_SITE = 15
"""Largest number of characters in the name of a site, which precedes the names of its units."""
_BETWEEN = "/"


class Kit(NamedTuple):
    """A kit: the site where it is, and the position of its arm."""

    site: str
    arm: int


class Supply:
    """Sites, kits and what participants received; codes of a stock are sorted, by site and arm."""

    def __init__(self) -> None:
        self.sites: list[str] = []
        self.kits: dict[str, Kit] = {}
        self.given: list[tuple[str | None, str | None]] = []
        self.retired: set[str] = set()
        self._stock: dict[Kit, list[str]] = {}

    def add_site(self, site: str) -> None:
        """Add a site without kits."""
        self.sites.append(site)

    def add_kits(self, site: str, arm_of: Iterable[tuple[str, int]]) -> None:
        """Add kits to the stock of a site."""
        for code, arm in arm_of:
            self.kits[code] = Kit(site, arm)
            insort(self._stock.setdefault(self.kits[code], []), code)

    def retire(self, code: str) -> None:
        """Remove a kit from the stock."""
        self.retired.add(code)
        self._take(code)

    def _take(self, code: str) -> None:
        stock = self._stock[self.kits[code]]
        del stock[bisect_left(stock, code)]

    def count(self, site: str, arm: int) -> int:
        """Number of kits of an arm in stock."""
        return len(self._stock.get(Kit(site, arm), ()))

    def in_stock(self, code: str) -> bool:
        """Whether a kit has neither been given nor retired."""
        return code in self._stock.get(self.kits[code], ())

    def give(self, site: str | None, arm: int | None, draw: Callable[[], float]) -> str | None:
        """Give the next participant a kit drawn from those of the arm; without an arm, note only the site."""
        code = None
        if site is not None and arm is not None:
            # A kit is drawn: the first of a list would show that those before it belong to other arms.
            stock = self._stock[Kit(site, arm)]
            code = stock[min(int(draw() * len(stock)), len(stock) - 1)]
            self._take(code)
        self.given.append((site, code))
        return code

    def cut(self, rounds: int) -> None:
        """Take back what participants after the first `rounds` received."""
        for _, code in self.given[rounds:]:
            if code is not None:
                insort(self._stock[self.kits[code]], code)
        del self.given[rounds:]

    def part(self, since: int) -> dict[str, list[str | None]]:
        """The sites and kits of participants after the first `since`; `extend` accepts them."""
        given = self.given[since:]
        return {"sites": [site for site, _ in given], "kits": [kit for _, kit in given]}

    def extend(self, part: Mapping[str, Any]) -> None:
        """Add what participants received; the kits themselves may be added later."""
        self.given += zip(part["sites"], part["kits"], strict=True)

    def settle(self) -> None:
        """Remove from the stock what participants received; call this after `extend` and all additions."""
        for _, code in self.given:
            if code is not None:
                self._take(code)

    def of(self, step: int) -> dict[str, str]:
        """The site and the kit of a round, if it has them."""
        site, kit = self.given[step] if step < len(self.given) else (None, None)
        return {name: value for name, value in (("site", site), ("kit", kit)) if value is not None}


def site_problems(site: Any, sites: Sequence[str]) -> list[str]:
    """Problems with the name of a new site."""
    known = isinstance(site, str) and 0 < len(site) <= LONGEST_SITE
    if not known or site.strip() != site or _BETWEEN in site or not site.isprintable():
        return [
            f"site must be text of at most {LONGEST_SITE} characters, without a slash and without spaces at "
            f"the beginning or end, got {shown(site)}"
        ]
    alike = [one for one in sites if reads_as(one).lower() == reads_as(site).lower()]
    return [f"site {site!r} looks the same as the existing site {alike[0]!r}"] if alike else []


def where_problems(site: Any, sites: Sequence[str]) -> list[str]:
    """Problems with the site of a request."""
    if not sites:
        return [] if site is None else [f"the trial has no sites, got site {shown(site)}: add it first"]
    if site is None:
        return ["site is required, because the trial has sites"]
    return [] if site in sites else [unlisted("site", sites, site)]


def named_at(site: str | None, name: Any) -> Any:
    """The name of a unit or a key at a site, which differs from the same name at another site."""
    return plain(name) if site is None or name is None else f"{site}{_BETWEEN}{plain(name)}"
