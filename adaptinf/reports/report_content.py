"""Contents of a report on a log or a result, in order, on one page or as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from adaptinf.audit.simulation.measures import hypertext
from adaptinf.claims.logs.protocols import BOUNDS
from adaptinf.claims.reports import answer as claims
from adaptinf.claims.reports import page
from adaptinf.claims.reports.trial_pages import NO_LOOK
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.results.comparison import named_results
from adaptinf.inference.results.explanation import lines
from adaptinf.inference.results.log_facts import LogFacts
from adaptinf.log import AdaptiveLog
from adaptinf.markup import escaped, table
from adaptinf.reports.checklist import Known, checklist, regulatory, topics_table
from adaptinf.reports.collection_facts import guarantee_facts, log_cautions, uncovered_promise
from adaptinf.reports.first_screen import lead, origin, picture, warnings
from adaptinf.reports.log_sections import (
    allocation_pictures,
    assumptions,
    collected,
    diagnosed,
    diagnosis_of,
    numbers,
    valid_methods,
)
from adaptinf.reports.public_sections import published_sections
from adaptinf.reports.report_page import (
    Section,
    boxed,
    code,
    contents,
    defined,
    divided,
    listed,
    paragraph,
)
from adaptinf.reports.report_page import page as written
from adaptinf.reports.report_texts import cautions_of, made_by, methods_told, versions

if TYPE_CHECKING:
    from adaptinf.audit.simulation.characteristics import OperatingCharacteristics
    from adaptinf.inference.diagnostics import Diagnosis
    from adaptinf.inference.recommend import Recommendation
    from adaptinf.inference.results.fit_results import Results
    from adaptinf.log import PublicLog
    from adaptinf.plans import CommitteeReport, Protocol
    from adaptinf.reports.data_digest import Source
    from adaptinf.reports.shown_numbers import Shown
    from adaptinf.sums import Sums

CHECKLISTS = {"consort": "Reporting checklist", "ich-e20": "Topics of the ICH E20 draft"}
_CROWDED = 3_200
"""Length of a single page, in characters, above which its font is smaller."""


@dataclass(frozen=True)
class Stamp:
    """The content of a page that does not depend on its data."""

    title: str
    call: str | None
    date: str
    brief: bool
    checklists: tuple[str, ...]

    @property
    def version(self) -> str:
        """The package, without its dependencies."""
        return versions().partition(" (")[0]

    def closing(self, data: Sequence[Source] = ()) -> Section:
        """How to reproduce the page, and from which data."""
        exact = [code(self.call)] if self.call else []
        known = [f'<div class="digest">{paragraph(f"Data: {one.told}.")}</div>' for one in data]
        return "call", "Call, data and versions", "\n".join([*exact, *known, paragraph(versions())])


@dataclass(frozen=True)
class Content:
    """A report on a log, on a result, or on both."""

    stamp: Stamp
    log: AdaptiveLog | Sums | None
    shown: Shown | None
    methods: Recommendation | None
    why: str
    plan: OperatingCharacteristics | None
    data: Sequence[Source]
    alpha: float

    @property
    def results(self) -> Results | None:
        """The result, if there is one."""
        return None if self.shown is None else self.shown.results

    @cached_property
    def facts(self) -> LogFacts:
        """Facts about the log, if there is one."""
        if self.results is not None:
            return self.results.facts
        assert self.log is not None  # A report is made from a result or from a log.
        return LogFacts.of(self.log)

    @property
    def owner_only(self) -> bool:
        """Whether files about the log are readable only by their owner."""
        return self.facts.owner_only or (self.log is not None and self.log.owner_only)

    @property
    def released(self) -> bool:
        """Whether the numbers come only from releases, so that the guarantee covers them."""
        return self.results is not None and self.results.private

    @property
    def own_log(self) -> AdaptiveLog | Sums | None:
        """The log, for statements next to numbers; omitted next to numbers that a guarantee covers."""
        return None if self.released else self.log

    @cached_property
    def cautions(self) -> list[str]:
        """Evidence against the log and the numbers, each item once."""
        of_log = [] if self.own_log is None else log_cautions(self.own_log)
        return list(dict.fromkeys([*of_log, *([] if self.shown is None else cautions_of(self.shown))]))

    @cached_property
    def checks(self) -> tuple[Diagnosis | None, str]:
        """The checks of the log, or the reason why there are none."""
        return diagnosis_of(self.log, self.alpha)

    @cached_property
    def told(self) -> tuple[str, list[str]]:
        """The methods paragraph and its references."""
        return ("", []) if self.shown is None else methods_told(self.shown, self.own_log, self.cautions)

    @property
    def promise(self) -> str:
        """The guarantee of a private log whose raw numbers are shown; empty if none are."""
        return uncovered_promise(self.log, self.facts, released=self.released)

    def text(self) -> str:
        """The whole page."""
        kind = "" if not self.stamp.brief else "brief tight" if self._crowded else "brief"
        return written(self.stamp.title, self._parts(), kind)

    @property
    def _crowded(self) -> bool:
        names = 0 if self.shown is None else sum(len(self.shown.row_name(at)) for at in self.shown.chosen)
        parts = [*self.cautions, self.told[0], *self.told[1]]
        return names + sum(map(len, parts)) > _CROWDED

    def _parts(self) -> list[str]:
        promise = self.promise
        answer = self._answer()
        if self.stamp.brief:
            sections = self._short()
            return [_framed(promise, answer + divided(sections), self._public_told(brief=True))]
        of_numbers, of_log = self._of_numbers(), self._of_log()
        if not promise:
            sections = self._ordered(of_numbers, of_log)
            return [answer, contents(sections), divided(sections)]
        public = self._public_told(brief=False)
        if self.released:
            covered = [*of_numbers, *self._promised(None), *self._last()]
            inner = [*of_log, *self._asked()]
            links = contents([*covered, *inner])
            return [answer, links, divided(covered), _framed(promise, divided(inner), public)]
        sections = [*self._ordered(of_numbers, of_log)]
        return [_framed(promise, f"{answer}\n{contents(sections)}\n{divided(sections)}", public)]

    def _answer(self) -> str:
        """The first screen."""
        data = [] if self.released else self.data
        told = origin(self.facts, data, self.stamp.date, self.stamp.version)
        if self.shown is None:
            return f'<p class="lead">{claims.NO_RESULT(why=self.why)}</p>\n{warnings(self.cautions)}\n{told}'
        all_rows = "" if self.stamp.brief else "results"
        parts = [lead(self.shown.sentence, self.cautions), picture(self.shown, all_rows)]
        return "\n".join([*parts, warnings(self.cautions), told])

    def _short(self) -> list[Section]:
        text, references = self.told
        methods = [("methods", "Methods", _pasted(text, references))] if text else []
        return [*self._assumed_briefly(), *methods, *self._last()]

    def _assumed_briefly(self) -> list[Section]:
        """The line under the table on assumptions, as a section of a one-page report."""
        if self.shown is None:
            return []
        told = dict(lines(self.shown.reasons, self.shown.results.estimator)).get("Assumes", "")
        return [("assumed", "Assumes", paragraph(told))] if told else []

    def _of_numbers(self) -> list[Section]:
        """Sections on the result alone."""
        notes = [] if self.shown is None else made_by(self.shown)
        sections = [("results", "Results", numbers(self.shown, self.why, notes))]
        if self.shown is not None:
            sections.append(
                ("assumed", "What is assumed, and which assumptions were checked", assumptions(self.shown))
            )
            sections.append(("methods", "Methods, ready to paste", _pasted(*self.told)))
        return sections

    def _of_log(self) -> list[Section]:
        """Sections on the log behind the results."""
        return [
            ("allocation", "Allocation over time", allocation_pictures(self.log)),
            ("sound", "Is the log sound?", diagnosed(*self.checks)),
            ("collected", "What was collected, and how", collected(self.log)),
            ("valid", "Which methods are valid", valid_methods(self.methods, self.why)),
        ]

    def _ordered(self, of_numbers: list[Section], of_log: list[Section]) -> list[Section]:
        """Results, allocation, checks, assumptions, methods, then the rest."""
        first, *later = of_numbers
        sections = [first, *of_log[:2], *later, *of_log[2:]]
        return [*sections, *self._promised(self.log), *self._asked(), *self._last()]

    def _promised(self, log: AdaptiveLog | Sums | None) -> list[Section]:
        """The privacy guarantee, if there is or was one."""
        if self.facts.guarantee is None and not self.facts.unpromised:
            return []
        pairs = guarantee_facts(log, self.facts, released=self.released)
        return [("guarantee", "Privacy guarantee", defined(pairs))]

    def _asked(self) -> list[Section]:
        """Checklists, and a plan."""
        known = Known(self.log, self.shown, self.told[0], self.checks[0], self.plan)
        makers = {"consort": checklist, "ich-e20": regulatory}
        sections = [(name, CHECKLISTS[name], makers[name](known)) for name in self.stamp.checklists]
        if self.plan is not None:
            plan = ("plan", "Appendix: operating characteristics", characteristics(self.plan))
            sections.append(plan)
        return sections

    def _last(self) -> list[Section]:
        return [self.stamp.closing([] if self.released else self.data)]

    def _public_told(self, *, brief: bool) -> str:
        """What may be published about a private log, from its public part alone."""
        public, why = self._public()
        if public is None:
            return paragraph(why)
        return paragraph(claims.PUBLISH()) if brief else divided(published_sections(public))

    def _public(self) -> tuple[PublicLog | None, str]:
        if not isinstance(self.log, AdaptiveLog):
            return None, claims.NEEDS_LOG_TO_PUBLISH()
        try:
            return self.log.public(), ""
        except (InvalidForLog, ParameterError) as error:
            return None, claims.NO_PUBLIC(why=error)


@dataclass(frozen=True)
class Several:
    """A report on several results: a sentence, a picture and a table for each, and one part on the log.

    `names` contains the names of the results, empty if they have none.
    """

    names: tuple[str, ...]
    contents: tuple[Content, ...]

    @cached_property
    def headings(self) -> tuple[str, ...]:
        """Names of the results: as given, or from their estimands, with their method if not unique."""
        if self.names:
            return self.names
        shown = [one.shown for one in self.contents if one.shown is not None]
        targets = [one.heading for one in shown]
        methods = list(named_results([one.results for one in shown]))
        return tuple(
            target if targets.count(target) == 1 else f"{target}: {method}"
            for target, method in zip(targets, methods, strict=True)
        )

    def text(self) -> str:
        """The whole page."""
        first = self.contents[0]
        cautions = list(dict.fromkeys(text for one in self.contents for text in one.cautions))
        shown = [one.shown for one in self.contents if one.shown is not None]
        answers = [
            f"<h2>{escaped(name)}</h2>\n{lead(one.sentence, cautions)}\n{picture(one)}"
            for name, one in zip(self.headings, shown, strict=True)
        ]
        told = origin(first.facts, first.data, first.stamp.date, first.stamp.version)
        sections = first._ordered(self._of_numbers(), first._of_log())
        parts = [*answers, warnings(cautions), told, contents(sections), divided(sections)]
        promise = next((one.promise for one in self.contents if one.promise), "")
        whole = "\n".join(part for part in parts if part)
        return written(
            first.stamp.title, [_framed(promise, whole, first._public_told(brief=False) if promise else "")]
        )

    def _of_numbers(self) -> list[Section]:
        """Sections on the results, each of which covers all results."""
        every = [one._of_numbers() for one in self.contents]
        return [
            (anchor, heading, "\n".join(self._headed(place, every)))
            for place, (anchor, heading, _) in enumerate(every[0])
        ]

    def _headed(self, place: int, every: Sequence[Sequence[Section]]) -> list[str]:
        return [
            f"<h3>{escaped(name)}</h3>\n{sections[place][2]}"
            for name, sections in zip(self.headings, every, strict=True)
        ]


def _pasted(text: str, references: Sequence[str]) -> str:
    """The methods paragraph and its references."""
    return f"{paragraph(text)}\n{listed(references)}"


def _framed(promise: str, inner: str, public: str) -> str:
    """Uncovered content in its frame, and covered content below it."""
    return f"{boxed(claims.PRIVATE(promise=promise), inner)}\n{public}" if promise else inner


def published_page(public: PublicLog, shown: Shown | None, why: str, stamp: Stamp) -> str:
    """The page for a public part."""
    facts = LogFacts.released(public)
    covers = page.PUBLISHED(
        rounds=public.n_rounds, design=facts.design or "an unnamed design", version=stamp.version
    )
    pairs = guarantee_facts(None, facts, released=True)
    sections = [] if stamp.brief else published_sections(public)
    sections += [("guarantee", "Privacy guarantee", defined(pairs))]
    parts = [paragraph(covers)]
    if shown is not None:
        cautions = cautions_of(shown)
        answer = [lead(shown.sentence, cautions), picture(shown), warnings(cautions)]
        parts = [*answer, f'<div class="meta">{paragraph(f"{covers} {stamp.date}.")}</div>']
        told = methods_told(shown, None, cautions)
        methods = ("methods", "Methods, ready to paste", _pasted(*told))
        results = ("results", "Results", numbers(shown, "", made_by(shown)))
        assumed = ("assumed", "What is assumed", assumptions(shown))
        sections = [methods] if stamp.brief else [results, assumed, *sections, methods]
    else:
        parts.append(paragraph(why))
    sections.append(stamp.closing())
    parts += [] if stamp.brief else [contents(sections)]
    return written(stamp.title, [*parts, divided(sections)], "brief" if stamp.brief else "")


def planned_page(plan: OperatingCharacteristics, alpha: float, stamp: Stamp) -> str:
    """The page for a plan alone."""
    covers = page.PLAN(design=plan.design, trials=plan.replications)
    known = Known(None, None, "", None, plan)
    sections = [
        ("plan", "Operating characteristics", characteristics(plan)),
        ("regulatory", "Topics of the ICH E20 draft", regulatory(known)),
        stamp.closing(),
    ]
    return written(stamp.title, [paragraph(f"{covers} {stamp.date}."), contents(sections), divided(sections)])


def characteristics(plan: OperatingCharacteristics) -> str:
    """The table of a protocol, with its notes."""
    shown = plan.table()
    rows = [[str(cell) for cell in row] for row in shown.itertuples(index=False, name=None)]
    caption = page.PLAN_CAPTION(trials=plan.replications, alpha=plan.alpha)
    notes = listed([page.PLAN_ERRORS(), *plan.notes], "ol")
    return f"{paragraph(f'Design: {plan.design}')}\n{table(list(shown.columns), rows, caption)}\n{notes}"


def protocol_page(appendix: Protocol, stamp: Stamp) -> str:
    """The page of a plan with looks."""
    found = appendix.found
    bounds = (
        f"{paragraph(BOUNDS(law=appendix.plan.law))}\n{hypertext(appendix.bounds, 'Critical values', ())}"
    )
    caption = page.PLAN_CAPTION(trials=found.replications, alpha=found.alpha)
    sections = [
        ("fixed", "Fixed in advance", defined(appendix.facts.items())),
        ("bounds", "Critical values", bounds),
        ("plan", "Operating characteristics", hypertext(appendix.characteristics, caption, found.notes)),
        ("looks", "Looks", hypertext(appendix.looks, "Looks", ())),
        (
            "regulatory",
            "Topics of the ICH E20 draft",
            topics_table(appendix.topics.itertuples(index=False, name=None)),
        ),
        stamp.closing(),
    ]
    covers = page.PLAN(design=found.design, trials=found.replications)
    return written(stamp.title, [paragraph(f"{covers} {stamp.date}."), contents(sections), divided(sections)])


def committee_page(found: CommitteeReport, stamp: Stamp) -> str:
    """The page for a data monitoring committee; numbers of a private trial are in the frame."""
    first, *further = found.statements
    told = [paragraph(f"{first} {stamp.date}."), listed(further), defined(found.facts.items())]
    taken = hypertext(found.looks, "Looks", ()) if len(found.looks) else paragraph(NO_LOOK())
    sections = [("state", "The trial so far", "\n".join(told[1:])), ("looks", "Looks taken so far", taken)]
    if found.closed:
        sections.append(("arms", "Outcomes by arm", hypertext(found.by_arm, "Sample means", ())))
    sections.append(stamp.closing())
    promise = uncovered_promise(found.log, LogFacts.of(found.log), released=False)
    whole = "\n".join([told[0], contents(sections), divided(sections)])
    return written(stamp.title, [_framed(promise, whole, "")])
