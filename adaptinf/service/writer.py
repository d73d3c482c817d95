"""One writer for all requests: requests that are waiting share one write to disk, in order of arrival."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from adaptinf.errors import ParameterError
from adaptinf.service.figures import Figures
from adaptinf.service.problems import Problem, problem_of, refused
from adaptinf.service.requested import Act
from adaptinf.trial import Trial
from adaptinf.trial.access import answer_each, follow
from adaptinf.trial.replay import Replay
from adaptinf.trial.served_rows import Token, tokens_of

GROUP, WAITING = 500, 5_000
"""The largest number of actions in a transaction, and of actions that may wait for one."""
_FOLLOWING = 0.05
"""Seconds without a request after which the rows of other processes are read."""


@dataclass
class _Asked:
    """The actions of one request, with its token and the recipient of its answers."""

    acts: Sequence[Act]
    digest: str | None
    roles: tuple[str, ...]
    sited: bool
    answer: asyncio.Future[list[Any]] = field(repr=False)


class Writer:
    """The only thread that uses the trial, between `start` and `stop`.

    A group consists of the requests that arrived while the previous group was written, so no request waits
    for others to arrive. Each request is checked against the tokens in the file within its transaction: after
    a revocation is on disk, nothing is stored with that token. If a group cannot be written, none of its
    requests receive an answer.
    """

    def __init__(self, trial: Trial, figures: Figures) -> None:
        self.trial, self.figures = trial, figures
        self.tokens: dict[str, Token] = {}
        self._acts = -1
        self._queue: SimpleQueue[_Asked | None] = SimpleQueue()
        self._waiting, self._stopped, self._follows = 0, False, True
        self._thread = threading.Thread(target=self._work, name="trial writer", daemon=True)

    async def start(self) -> None:
        """Start answering requests, using the tokens in the file."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()
        await self.look()

    async def look(self) -> Any:
        """Read the rows that other processes have written; a `Problem` if the trial cannot be used."""
        (answer,) = await self.ask([lambda _: (None, None)])
        return answer

    async def stop(self) -> None:
        """Answer the waiting requests, and end."""
        self._stopped = True
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    async def ask(
        self, acts: Sequence[Act], digest: str | None = None, roles: tuple[str, ...] = (), sited: bool = False
    ) -> list[Any]:
        """The answer to each action, or a `Problem` if refused; `sited` permits tokens for one site."""
        if self._stopped or self._waiting + len(acts) > WAITING:
            return [Problem("overloaded")] * len(acts)
        self._waiting += len(acts)
        asked = _Asked(acts, digest, roles, sited, self._loop.create_future())
        self._queue.put(asked)
        try:
            # The client may go away; the request stays in its place.
            return await asyncio.shield(asked.answer)
        finally:
            self._waiting -= len(acts)

    def _work(self) -> None:
        while (group := self._group()) is not None:
            with self.figures.group_seconds.time():
                answers = self._answers(group)
            self.figures.group_size.observe(sum(len(one.acts) for one in group))
            self._loop.call_soon_threadsafe(_deliver, group, answers)

    def _group(self) -> list[_Asked] | None:
        """The waiting requests, in order of arrival; None at the end."""
        first = self._next()
        if first is None:
            return None
        self._follows = True
        group, size = [first], len(first.acts)
        while size < GROUP:
            try:
                more = self._queue.get_nowait()
            except Empty:
                break
            if more is None:
                self._queue.put(None)
                break
            group.append(more)
            size += len(more.acts)
        return group

    def _next(self) -> _Asked | None:
        """The first waiting request; None at the end."""
        # A process that gets no requests for some time would otherwise read many rows at once with its next
        # one, in a transaction for which all other processes wait.
        while True:
            try:
                return self._queue.get(timeout=_FOLLOWING if self._follows else None)
            except Empty:
                self._follows = follow(self.trial)

    def _answers(self, group: list[_Asked]) -> list[list[Any]]:
        try:
            told = iter(
                answer_each(self.trial, [self._permitted(one, act) for one in group for act in one.acts])
            )
        except Exception as error:
            # The memory was discarded, and the next group reads the file again.
            self.figures.failures.labels(type(error).__name__).inc()
            return [[Problem("not-stored")] * len(one.acts) for one in group]
        return [[_as_problem(next(told)) for _ in one.acts] for one in group]

    def _permitted(self, asked: _Asked, act: Act) -> Act:
        """The action, if the token still permits it when it is processed."""

        def done(replay: Replay) -> Any:
            self._noted(replay)
            if asked.digest is not None:
                token = self.tokens.get(asked.digest)
                if token is None or not token.serves():
                    raise refused("unauthorized")
                if token.role not in asked.roles or (token.site is not None and not asked.sited):
                    raise refused("forbidden")
            return act(replay)

        return done

    def _noted(self, replay: Replay) -> None:
        """The tokens by digest, which are read again when there are further actions."""
        if self._acts != len(replay.acts):
            self.tokens, self._acts = tokens_of(replay), len(replay.acts)


def _as_problem(answer: Any) -> Any:
    return problem_of(answer) if isinstance(answer, ParameterError) else answer


def _deliver(group: list[_Asked], answers: list[list[Any]]) -> None:
    for asked, answer in zip(group, answers, strict=True):
        if not asked.answer.done():
            asked.answer.set_result(answer)
