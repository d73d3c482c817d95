"""Webhooks: messages to other programs about alarms and unblindings, without participant, arm or outcome.

The messages follow Standard Webhooks: headers contain an id, a timestamp, and a signature of both and of the
body. A message is sent until it is accepted, which is recorded as a row of the journal; a message may
therefore arrive twice, with the same id, but no message is lost if the service is killed.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import re
import ssl
import time
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from adaptinf.service.figures import Figures
from adaptinf.service.monitoring.alarms import BY_ARM
from adaptinf.service.settings import Webhook
from adaptinf.service.writer import Writer
from adaptinf.trial.access import first_digest, rows_of
from adaptinf.trial.journal_rows import Entry
from adaptinf.trial.operator_actions import ALARM
from adaptinf.trial.replay import Replay
from adaptinf.trial.served_rows import sent_row, told_until

SECONDS, POLL, LONGEST = 5.0, 2.0, 3_600.0
"""Seconds for one attempt, between reads of the journal, and at most between attempts."""
_STATUS = re.compile(rb"HTTP/1\.[01] 2\d\d[ \r\n]")


class Message(NamedTuple):
    """The part of a row that is sent to a webhook."""

    row: int
    id: str
    body: bytes


class Hook:
    """One receiver, to which a separate task sends one message after another."""

    def __init__(self, writer: Writer, figures: Figures, settings: Webhook) -> None:
        self._writer, self._figures, self._settings = writer, figures, settings
        self._tls = ssl.create_default_context(cafile=settings.ca or None)

    async def begin(self) -> None:
        """Start sending events from now on to a new receiver."""

        def act(replay: Replay) -> tuple[None, Entry | None]:
            hook = self._settings.name
            new = told_until(replay, hook) is None
            return None, sent_row(replay, hook, rows_of(self._writer.trial)) if new else None

        await self._writer.ask([act])

    async def run(self) -> None:
        """Send events until cancelled; after a failure, wait twice as long each time."""
        wait = POLL
        while True:
            try:
                await self._send_all()
                wait = POLL
            except (OSError, TimeoutError, ValueError, ConnectionError):
                self._figures.hook_failures.inc()
                wait = min(2.0 * wait, LONGEST)
            await asyncio.sleep(wait)

    async def _send_all(self) -> None:
        (message,) = await self._writer.ask([self._next])
        while isinstance(message, Message):
            await self._post(message)
            _, message = await self._writer.ask([self._done(message.row), self._next])

    def _next(self, replay: Replay) -> tuple[Message | None, None]:
        """The first message that was not sent."""
        known = told_until(replay, self._settings.name)
        if replay.closed or known is None:
            return None, None
        for act in replay.acts:
            if act["row"] > known and (told := self._told(act)):
                name = f"{first_digest(self._writer.trial)}.{act['row']}".encode()
                body = json.dumps({"type": told, "timestamp": act["time"], "data": _data(act)}).encode()
                return Message(act["row"], hashlib.sha256(name).hexdigest()[:32], body), None
        return None, None

    def _told(self, act: Entry) -> str:
        """The type of a message; empty if this receiver is not notified."""
        if act["kind"] == "unblind":
            return "unblinding"
        if act["kind"] != ALARM or (act["alarm"] in BY_ARM and not self._settings.arms):
            return ""
        return "alarm.raised" if act["raised"] else "alarm.cleared"

    def _done(self, row: int) -> Any:
        return lambda replay: (None, sent_row(replay, self._settings.name, row))

    async def _post(self, message: Message) -> None:
        """Send once; any status other than success is a failure, and redirections are not followed."""
        where = urlsplit(self._settings.url)
        headers = signed(self._settings.secret, message, int(time.time()))
        path = (where.path or "/") + (f"?{where.query}" if where.query else "")
        lines = [f"POST {path} HTTP/1.1", f"Host: {where.netloc}", "Content-Type: application/json"]
        lines += [f"Content-Length: {len(message.body)}", "Connection: close", "User-Agent: adaptinf"]
        head = "\r\n".join([*lines, *(f"{name}: {value}" for name, value in headers.items()), "", ""])
        async with asyncio.timeout(SECONDS):
            opened = asyncio.open_connection(where.hostname, where.port or 443, ssl=self._tls)
            reader, sender = await opened
            try:
                sender.write(head.encode() + message.body)
                await sender.drain()
                if not _STATUS.match(await reader.readline()):
                    raise ConnectionError("not accepted")
            finally:
                sender.transport.abort()


def signed(secret: str, message: Message, seconds: int) -> dict[str, str]:
    """The headers of a message, as Standard Webhooks defines them."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    content = f"{message.id}.{seconds}.".encode() + message.body
    mark = base64.b64encode(hmac.digest(key, content, "sha256")).decode()
    return {"webhook-id": message.id, "webhook-timestamp": str(seconds), "webhook-signature": f"v1,{mark}"}


def _data(act: Entry) -> dict[str, str]:
    return {"alarm": act["alarm"]} if act["kind"] == ALARM else {}
