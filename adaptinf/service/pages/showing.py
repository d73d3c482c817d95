"""The views, pictures and files that a visitor sees, after the role was checked."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import PurePath
from typing import Any

from adaptinf.claims.reports import trial_pages as claims
from adaptinf.errors import InvalidForLog, MissingDependencyError, ParameterError
from adaptinf.reports.report_page import Section
from adaptinf.service.pages import answers, contents, downloads, page_pictures
from adaptinf.service.pages.page_text import inserted, marked, rendered
from adaptinf.service.pages.reading import (
    Asker,
    Facts,
    Reading,
    Stand,
    declared,
    facts_of,
    looks_taken,
    revealed,
    sites_of,
    supplied,
    units_of,
)
from adaptinf.service.pages.views import BY_VIEW, FILES, View
from adaptinf.service.pages.visits import Guest
from adaptinf.service.problems import Problem
from adaptinf.service.requested import turned
from adaptinf.texts import arm_label
from adaptinf.trial.operator_actions import OPEN, PAUSED, act_problems, named

try:
    from starlette.requests import Request
    from starlette.responses import Response
except ImportError as error:
    raise MissingDependencyError("a trial over HTTP", "FastAPI", "serve") from error


class _Refused(Exception):
    """A problem, with which the writer answered."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.code)
        self.problem = problem


def _known(answer: Any) -> Any:
    """An answer of the writer that is not a problem."""
    if isinstance(answer, Problem):
        raise _Refused(answer)
    return answer


class Showing:
    """Creates pages from the data that it reads."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    async def view(self, view: View, _: Request, guest: Guest, asker: Asker) -> Response | Problem:
        """A page with its sections."""
        try:
            if view.name == "operator":
                return await self._operator(guest, asker)
            if view.name == "unblinding":
                return await self._unblinding(guest, asker)
            if view.name == "downloads":
                mine = [one for one in FILES if guest.token.role in one.roles]
                return answers.page(self._rendered("downloads", view, guest, files=mine))
            sections = await getattr(self, f"_{view.name}")(guest, asker)
        except _Refused as refused:
            return refused.problem
        return answers.page(self._rendered("view", view, guest, content=marked(sections)))

    @staticmethod
    def _rendered(template: str, view: View, guest: Guest, **values: Any) -> str:
        form, role = guest.visit.form, guest.token.role
        return rendered(template, view.title, role, form=form, at=view.path, **values)

    async def _facts(self, asker: Asker) -> Facts:
        found: Facts = _known(await self._reading.ask(facts_of(self._reading.trial), asker))
        return found

    async def _stand(self, asker: Asker) -> Stand:
        found: Stand = _known(await self._reading.stand(asker))
        return found

    async def _timed(self, asker: Asker) -> tuple[Facts, list[float]]:
        """Facts, and the times at which the participants were assigned."""
        facts = await self._facts(asker)
        return facts, _known(await self._reading.times(asker))[: facts.status["rounds"]]

    async def _overview(self, _: Guest, asker: Asker) -> list[Section]:
        facts, times = await self._timed(asker)
        log = None if facts.promised is None else (await self._stand(asker)).log
        return contents.overview(facts, times, contents.promise(facts, log))

    async def _outcomes(self, guest: Guest, asker: Asker) -> list[Section]:
        facts, times = await self._timed(asker)
        units = None
        if guest.token.role == "statistician":
            units = _known(await self._reading.ask(units_of(facts.pending[: contents.OLDEST]), asker))
        return contents.outcomes(facts, times, units)

    async def _allocation(self, _: Guest, asker: Asker) -> list[Section]:
        stand = await self._stand(asker)
        compute = partial(contents.allocation, stand.log)
        return await self._reading.computed("allocation", stand.head, compute)

    async def _checks(self, _: Guest, asker: Asker) -> list[Section]:
        stand = await self._stand(asker)
        return await self._reading.computed("checks", stand.head, partial(contents.checks, stand.log))

    async def _looks(self, _: Guest, asker: Asker) -> list[Section]:
        return contents.looks(await self._facts(asker), _known(await self._reading.ask(looks_taken, asker)))

    async def _results(self, _: Guest, asker: Asker) -> list[Section]:
        stand = await self._stand(asker)
        found = await self._reading.computed("sequence", stand.head, partial(contents.sequence_of, stand))
        return await self._reading.computed("results", stand.head, partial(contents.results, stand, found))

    async def _stock(self, guest: Guest, asker: Asker) -> list[Section]:
        return contents.stock(_known(await self._reading.ask(supplied(guest.token.role), asker)))

    async def _unblinding(self, guest: Guest, asker: Asker, status: int = 200, **again: Any) -> Response:
        """The form that reveals an arm; after a mistake, with the text entered and the problem."""
        sites = _known(await self._reading.ask(sites_of, asker))
        said = {"unit": "", "site": "", "reason": "", "by": "", "problems": (), "found": None, **again}
        text = self._rendered("unblinding", BY_VIEW["unblinding"], guest, sites=sites, **said)
        return answers.page(text, status)

    async def unblinded(self, fields: dict[str, str], guest: Guest, asker: Asker) -> Response | Problem:
        """Reveal an arm, as requested by a form; the answer is shown once, as forms cannot be resent."""
        said = {name: fields.get(name, "").strip() for name in ("unit", "site", "reason", "by")}
        problems = [
            f"{one}."
            for one in (*named("participant", said["unit"]), *act_problems(said["reason"], said["by"]))
        ]
        problems += [] if fields.get("confirm") == "yes" else [claims.NOT_CONFIRMED()]
        try:
            if problems:
                return await self._unblinding(guest, asker, 422, problems=problems, **said)
            act = revealed(said["unit"], said["reason"], said["by"], said["site"] or None)
            answer = await self._reading.ask(act, asker)
            if isinstance(answer, Problem) and answer.code in ("unknown-unit", "erased"):
                told = claims.NO_SUCH_UNIT() if answer.code == "unknown-unit" else answer.title
                return await self._unblinding(guest, asker, answer.status, problems=[told], **said)
            found = {"kit": None, **_known(answer), **said}
            found["arm"] = arm_label(found["arm"])
            return await self._unblinding(guest, asker, found=found)
        except _Refused as refused:
            return refused.problem

    async def _operator(self, guest: Guest, asker: Asker, **again: Any) -> Response:
        """The form that pauses or resumes a trial; after a mistake, with the text entered and the problem."""
        facts = await self._facts(asker)
        said = {"reason": "", "by": "", "problems": (), **again}
        text = self._rendered(
            "operator",
            BY_VIEW["operator"],
            guest,
            state=facts.status["state"],
            turns=inserted(contents.turns(facts)),
            **said,
        )
        return answers.page(text, 422 if said["problems"] else 200)

    async def turned(self, fields: dict[str, str], guest: Guest, asker: Asker) -> Response | Problem:
        """Pause or resume, as requested by a form."""
        state, reason, by = (fields.get(name, "").strip() for name in ("state", "reason", "by"))
        problems = [f"{one}." for one in act_problems(reason, by)]
        try:
            if state not in (OPEN, PAUSED):
                return Problem("invalid-body")
            if problems:
                return await self._operator(guest, asker, reason=reason, by=by, problems=problems)
            _known(await self._reading.ask(turned(state, reason, by), asker))
        except _Refused as refused:
            return refused.problem
        return answers.moved(BY_VIEW["operator"].path)

    async def picture(self, name: str, theme: str, _: Request, __: Guest, asker: Asker) -> Response | Problem:
        """A picture on a light or dark background."""
        try:
            made = await getattr(self, f"_draw_{name}")(theme, asker)
        except _Refused as refused:
            return refused.problem
        except (InvalidForLog, ParameterError, MissingDependencyError):
            return Problem("not-found")
        return Problem("not-found") if made is None else answers.answer(made, "image/svg+xml")

    async def _draw_enrolment(self, theme: str, asker: Asker) -> bytes | None:
        facts, times = await self._timed(asker)
        draw = partial(page_pictures.enrolment, tuple(times), facts.status["horizon"], facts.looks)
        return await self._drawn("enrolment", theme, facts.status["head"], draw) if times else None

    async def _draw_allocation(self, theme: str, asker: Asker) -> bytes | None:
        stand = await self._stand(asker)
        if stand.log is None:
            return None
        return await self._drawn(
            "allocation", theme, stand.head, partial(page_pictures.allocation, stand.log)
        )

    async def _draw_sequence(self, theme: str, asker: Asker) -> bytes | None:
        stand = await self._stand(asker)
        found = await self._reading.computed("sequence", stand.head, partial(contents.sequence_of, stand))
        if isinstance(found, str):
            return None
        return await self._drawn("sequence", theme, stand.head, partial(page_pictures.sequence, found))

    async def _drawn(self, name: str, theme: str, head: str, draw: Any) -> bytes:
        return await self._reading.computed(
            f"picture of {name}, {theme}", head, partial(page_pictures.in_theme, theme, draw)
        )

    async def file(self, name: str, _: Request, guest: Guest, asker: Asker) -> Response | Problem:
        """A file for download."""
        media = downloads.MEDIA[PurePath(name).suffix]
        try:
            if name == "head.json":
                now = datetime.now(UTC).isoformat(timespec="seconds")
                return answers.attached(downloads.head_of(await self._facts(asker), now), name, media)
            if name == "declaration.json":
                stated = _known(await self._reading.ask(declared, asker))
                return answers.attached(downloads.as_json(stated), name, media)
            stand = await self._stand(asker)
            if stand.log is None:
                return Problem("not-found")
            write = partial(downloads.of_log, name, stand.log)
            return answers.attached(await self._reading.computed(name, stand.head, write), name, media)
        except _Refused as refused:
            return refused.problem
        except (InvalidForLog, ParameterError) as error:
            form, role = guest.visit.form, guest.token.role
            return answers.page(rendered("problem", name, role, form=form, text=str(error)), 404)
