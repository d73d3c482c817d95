"""The senders of requests: their tokens, and the number of wrong tokens from each address."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from adaptinf.service.problems import Problem
from adaptinf.service.writer import Writer
from adaptinf.trial.served_rows import Token, digest_of

_BURST, _ADDRESSES = 100, 10_000


def address_of(scope: Mapping[str, Any]) -> str:
    """The address from which a request came."""
    found: str = (scope.get("client") or ("", 0))[0]
    return found


class Holders:
    """The tokens of a trial that is served."""

    def __init__(self, writer: Writer) -> None:
        self._writer, self._failures = writer, _Failures()

    async def known(self, text: str, address: str) -> tuple[Token, str] | Problem:
        """The token with this text, and its digest; an address that sends many wrong tokens has to wait."""
        digest = digest_of(text)
        token = self._writer.tokens.get(digest)
        if token is None:
            if self._failures.many(address):
                return Problem("too-many-failures")
            # It may have been issued since the last transaction.
            answer = await self._writer.look()
            if isinstance(answer, Problem):
                return answer
            token = self._writer.tokens.get(digest)
        if token is None or not token.serves():
            self._failures.note(address)
            return Problem("unauthorized")
        return token, digest


class _Failures:
    """Requests without a valid token: an address may send a hundred at once, and then one per second."""

    def __init__(self) -> None:
        self._spent: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def many(self, address: str) -> bool:
        """Whether an address has sent too many wrong tokens."""
        return self._now(address) >= _BURST

    def note(self, address: str) -> None:
        """Count one more."""
        self._spent[address] = self._now(address) + 1.0, time.monotonic()
        self._spent.move_to_end(address)
        if len(self._spent) > _ADDRESSES:
            self._spent.popitem(last=False)

    def _now(self, address: str) -> float:
        spent, then = self._spent.get(address, (0.0, 0.0))
        return max(0.0, spent - (time.monotonic() - then))
