"""The content of each view, based on facts, a log, or results."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adaptinf.claims.reports import trial_pages as claims
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.recommend import recommend
from adaptinf.inference.results.log_facts import LogFacts
from adaptinf.inference.results.tables import format_number, format_pvalue
from adaptinf.inference.sequences import ConfidenceSequence, SequenceResults
from adaptinf.log import AdaptiveLog
from adaptinf.log.stated_plans import GOES_ON, plan_of
from adaptinf.markup import table
from adaptinf.reports.collection_facts import uncovered_promise
from adaptinf.reports.first_screen import lead, warnings
from adaptinf.reports.log_sections import assumptions, diagnosed, diagnosis_of, numbers
from adaptinf.reports.report_page import Section, defined, paragraph, summary_parts
from adaptinf.reports.report_texts import cautions_of, made_by
from adaptinf.reports.shown_numbers import Shown
from adaptinf.service.pages.parts import (
    DAY,
    counted,
    lasted,
    moment,
    said_moment,
    share,
    shown_picture,
    warned,
)
from adaptinf.service.pages.reading import Facts, Stand
from adaptinf.sessions.session_memory import first_rounds
from adaptinf.texts import arm_label
from adaptinf.trial.supplies.supply_operations import LOW

_ALPHA = 0.05
OLDEST = 50
"""Number of pending outcomes that are listed one by one."""
_AGES = (
    ("less than a day", 0.0, DAY),
    ("1 to 7 days", DAY, 7 * DAY),
    ("7 to 30 days", 7 * DAY, 30 * DAY),
    ("more than 30 days", 30 * DAY, np.inf),
)
_DONE = {"pause": "paused", "resume": "resumed", "finish": "finished"}
_COMPARISON = "sample ratio"


def promise(facts: Facts, log: AdaptiveLog | None) -> str:
    """The current privacy guarantee; empty if the design has none."""
    if facts.promised is None or log is None:
        return "" if facts.promised is None else str(facts.promised)
    return claims.NOT_PROMISED() if log.guarantee is None else str(log.guarantee)


def overview(facts: Facts, times: Sequence[float], promised: str) -> list[Section]:
    """Enrolment so far and planned, pending outcomes, the guarantee and the state."""
    status, now = facts.status, time.time()
    rounds, horizon = status["rounds"], status["horizon"]
    told = f"{rounds:,} of {horizon:,} participants have been assigned; the trial is {status['state']}."
    recent = int(np.count_nonzero(np.asarray(times) > now - 7 * DAY))
    pairs = [
        ("State", status["state"]),
        ("Design", status["design"]),
        ("Participants", f"{rounds:,} of {horizon:,} ({share(rounds, horizon)})"),
        ("Last 7 days", counted(recent, "participant", "participants")),
        ("Last assignment", moment(times[-1]) if times else "none"),
        ("Pending", counted(status["pending"], "outcome", "outcomes")),
        ("Overdue", counted(len(facts.overdue), "outcome", "outcomes") if facts.window is not None else ""),
        ("Guarantee", promised),
        ("Erased", counted(status["erased"], "participant", "participants")),
        ("Copy", "yes: it accepts no requests until it replaces the trial" if status["copied"] else ""),
        ("Journal", counted(status["rows"], "row", "rows")),
        ("Head", status["head"]),
    ]
    parts = [lead(told, []), defined((name, value) for name, value in pairs if value)]
    if times:
        parts.append(shown_picture("enrolment", f"Participants over time: {told}", claims.ENROLMENT()))
    return [("state", "State", "\n".join(parts)), *_schedule(facts)]


def _schedule(facts: Facts) -> list[Section]:
    """The planned looks and the number taken, without their findings."""
    if not facts.planned:
        return []
    rows = [
        [f"{stage}", after, "taken" if stage <= facts.taken else "reached" if reached else "planned"]
        for stage, (after, reached) in enumerate(facts.planned, 1)
    ]
    counted = "participants" if facts.looks else "information" if facts.levels else "time"
    heads = "look", counted, "state"
    return [("schedule", "Planned looks", table(heads, rows, "Looks in the plan"))]


def outcomes(facts: Facts, times: Sequence[float], units: Sequence[Any] | None) -> list[Section]:
    """Pending and overdue outcomes, with the names of participants only if these are given."""
    rounds, pending, now = facts.status["rounds"], facts.pending, time.time()
    if not rounds:
        return [("pending", "Pending outcomes", paragraph(claims.NOBODY()))]
    ages = np.array([now - times[one - 1] for one in pending])
    told = f"{rounds - len(pending):,} of {rounds:,} outcomes are recorded; {len(pending):,} are pending."
    rows = [
        [name, f"{int(np.count_nonzero((ages >= least) & (ages < most))):,}"] for name, least, most in _AGES
    ]
    parts = [lead(told, []), table(("pending for", "outcomes"), rows, "Pending outcomes by age")]
    if facts.window is None:
        parts.append(paragraph(claims.NO_WINDOW()))
    else:
        late = counted(len(facts.overdue), "outcome is overdue.", "outcomes are overdue.")
        parts += [paragraph(late), paragraph(claims.WINDOW(window=facts.window))]
    return [("pending", "Pending outcomes", "\n".join(parts)), *_oldest(facts, times, units, now)]


def _oldest(facts: Facts, times: Sequence[float], units: Sequence[Any] | None, now: float) -> list[Section]:
    """The outcomes that have been pending for longest."""
    shown, late = facts.pending[:OLDEST], set(facts.overdue)
    if not shown:
        return []
    rows = []
    for place, one in enumerate(shown):
        since = times[one - 1]
        row = [str(one), moment(since), lasted(now - since), "yes" if one in late else "no"]
        rows.append(row if units is None else [*row, "" if units[place] is None else str(units[place])])
    heads = ["decision", "assigned", "pending for", "overdue", *([] if units is None else ["participant"])]
    few = f"The {len(shown)} oldest pending outcomes" if len(shown) > 1 else "The pending outcome"
    return [("oldest", "Oldest pending outcomes", table(heads, rows, few))]


def allocation(log: AdaptiveLog | None) -> list[Section]:
    """Participants by arm, their expected number, the ratio's checks, and the shares over time."""
    if log is None:
        return [("arms", "Participants by arm", paragraph(claims.NOBODY()))]
    counts, expected = log._rounds_by_arm(), log.arrays.propensities
    sums = None if expected is None else expected.sum(axis=0)
    rows = []
    for place, arm in enumerate(log.arms):
        row = [arm_label(arm), f"{counts[place]:,.0f}", share(float(counts[place]), log.n_rounds)]
        rows.append(row if sums is None else [*row, f"{sums[place]:,.1f}"])
    heads = ("arm", "participants", "share", *(() if sums is None else ("expected",)))
    parts = [warned([claims.BY_ARM()]), table(heads, rows, "Number of participants assigned to each arm")]
    told = ", ".join(f"{row[0]} {row[2]}" for row in rows)
    parts.append(shown_picture("allocation", "Share of each arm over the rounds", f"Shares: {told}."))
    return [("arms", "Participants by arm", "\n".join(parts)), ("ratio", "Sample ratio", _ratio(log))]


def _ratio(log: AdaptiveLog) -> str:
    """The checks of the sample ratio."""
    found, why = diagnosis_of(log, _ALPHA)
    if found is None:
        return paragraph(why)
    rows = [
        [one.name, "" if np.isnan(one.log_adjusted) else format_pvalue(one.log_adjusted), one.verdict]
        for one in found.checks
        if one.name.startswith(_COMPARISON)
    ]
    return table(("check", "Holm P", "finding"), rows, "Checks of the sample ratio")


def stock(rows: Sequence[Mapping[str, Any]] | None) -> list[Section]:
    """Kits at each site, to the extent that the visitor may see them."""
    if not rows:
        told = claims.NO_KITS() if rows is None else claims.NO_SITES()
        return [("kits", "Kits", paragraph(told))]
    named = {"site": "site", "arm": "arm", "in_stock": "in stock", "given": "given", "retired": "retired"}
    names = [name for name in (*named, "low") if name in rows[0]]
    cells = [[_stocked(name, row[name]) for name in names] for row in rows]
    parts = [table([named.get(name, name) for name in names], cells, "Kits at each site")]
    if "arm" in names:
        parts.insert(0, warned([claims.STOCK_BY_ARM()]))
    if "low" in names:
        parts.append(paragraph(claims.LOW(low=LOW)))
    return [("kits", "Kits", "\n".join(parts))]


def _stocked(name: str, value: Any) -> str:
    """A cell of the table of kits."""
    if name == "low":
        return "yes" if value else "no"
    return arm_label(value) if name == "arm" else value if name == "site" else f"{value:,}"


def private_note(log: AdaptiveLog | None) -> str:
    """A note that the guarantee of a private trial does not cover the page; empty for other trials."""
    promised = log is not None and uncovered_promise(log, LogFacts.of(log), released=False)
    return warned([claims.UNCOVERED()]) if promised else ""


def checks(log: AdaptiveLog | None) -> list[Section]:
    """What the checks find."""
    if log is None:
        return [("checks", "Checks of the log", paragraph(claims.NOBODY()))]
    told, why = diagnosis_of(log, _ALPHA)
    return [("checks", "Checks of the log", f"{private_note(log)}\n{diagnosed(told, why)}")]


def looks(facts: Facts, taken: Sequence[Mapping[str, Any]]) -> list[Section]:
    """Planned looks, and those that were taken with their decisions."""
    if not facts.looks and not facts.levels and facts.dates is None:
        return [("taken", "Looks", paragraph(claims.NO_PLAN()))]
    stopped = bool(taken) and taken[-1]["decision"] != GOES_ON and not taken[-1]["overridden"]
    reached = sum(reached for _, reached in facts.planned)
    due = [warned([claims.LOOK_DUE()])] if reached > len(taken) and not stopped else []
    heads = ("look", "participants", "time", "statistic", "bound", "decision", "lost", "continued by")
    rows = [_look(one) for one in taken]
    parts = [*due, table(heads, rows, "Looks and their decisions") if rows else paragraph(claims.NO_LOOK())]
    return [("taken", "Looks taken so far", "\n".join(parts)), *_schedule(facts)]


def _look(one: Mapping[str, Any]) -> list[str]:
    """A row of the table of looks."""
    known = (one.get(name) for name in ("statistic", "bound"))
    found = ["" if number is None else format_number(float(number)) for number in known]
    against = one["overridden"]
    by = f"{against['by']}: {against['reason']}" if against else ""
    when = said_moment(one["time"])
    return [str(one["stage"]), f"{one['rounds']:,}", when, *found, one["decision"], f"{one['lost']:,}", by]


def results(stand: Stand, sequence: SequenceResults | str) -> list[Section]:
    """The results of the first valid method, and the sequence."""
    log, pending = stand.log, len(stand.pending)
    if log is None:
        return [("table", "Estimates", paragraph(claims.NOBODY()))]
    plan = plan_of(log)
    if plan is not None and plan.refusal(log):
        told = paragraph(claims.PLAN_GOES_ON())
        return [("table", "Estimates", told), ("sequence", "Confidence sequence", _sequence(sequence))]
    known = [claims.ONE_LOOK(), *([claims.PENDING(pending=pending)] if pending else [])]
    try:
        shown = Shown(recommend(log).fit(), _ALPHA, None)
        cautions = warnings([*known, *cautions_of(shown)])
        parts = [lead(shown.sentence, []), cautions, numbers(shown, "", made_by(shown))]
        assumed = [("assumed", "Assumptions", assumptions(shown))]
    except (InvalidForLog, ParameterError) as error:
        parts, assumed = [paragraph(str(error))], []
    first = "\n".join([private_note(log), *parts])
    last = ("sequence", "Confidence sequence", _sequence(sequence))
    return [("table", "Estimates", first), *assumed, last]


def _sequence(found: SequenceResults | str) -> str:
    """The sequence at its last round, and its picture."""
    if isinstance(found, str):
        return paragraph(found)
    told = claims.PREFIX(rounds=found.facts.n_rounds)
    picture = shown_picture("sequence", "Confidence sequence of each arm over the rounds", told)
    return f"{picture}\n{summary_parts(found.summary(_ALPHA))}"


def sequence_of(stand: Stand) -> SequenceResults | str:
    """The sequence of the first rounds, whose outcomes have all arrived; or the reason if there is none."""
    log = stand.log
    if log is None:
        return claims.NOBODY()
    first = stand.pending[0] - 1 if stand.pending else log.n_rounds
    if not first:
        return claims.NO_PREFIX()
    try:
        return ConfidenceSequence(first_rounds(log, first)).fit(alpha=_ALPHA)
    except (InvalidForLog, ParameterError) as error:
        return str(error)


def turns(facts: Facts) -> str:
    """Times of pauses, resumptions and the end, without the reasons, which may name an arm."""
    rows = [[_DONE[one.kind], said_moment(one.time), one.by or ""] for one in facts.turns]
    return (
        table(("action", "time", "by"), rows, "When the trial was paused, resumed or finished")
        if rows
        else ""
    )
