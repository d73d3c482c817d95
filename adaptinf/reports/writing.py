"""A report on a log or a result, as one HTML file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from os import PathLike
from pathlib import Path
from typing import Any

from adaptinf.audit.simulation.characteristics import OperatingCharacteristics
from adaptinf.claims.reports import page as claims
from adaptinf.errors import InvalidForLog
from adaptinf.files import as_path, atomic_write
from adaptinf.inference.recommend import Recommendation, recommend
from adaptinf.inference.results.fit_results import Results
from adaptinf.inference.results.log_facts import LogFacts
from adaptinf.inference.results.multiplicity import ADJUSTMENTS, AT_ONCE
from adaptinf.log import AdaptiveLog, PublicLog
from adaptinf.parameters import FLAG, Is, OrNone, alpha_problems, refuse
from adaptinf.plans import CommitteeReport, Protocol
from adaptinf.reports.data_digest import sources_of
from adaptinf.reports.public_sections import answer_of
from adaptinf.reports.report_content import (
    CHECKLISTS,
    Content,
    Several,
    Stamp,
    committee_page,
    planned_page,
    protocol_page,
    published_page,
)
from adaptinf.reports.shown_numbers import Shown
from adaptinf.reports.word_document import word_document
from adaptinf.sums import Sums
from adaptinf.texts import unlisted

_SUBJECT = "report"
_ENDINGS = (".html", ".htm")
_FACTS = ("n_rounds", "design", "guarantee", "noise")
_PLANNED = (OperatingCharacteristics, Protocol, CommitteeReport)
_AS_TABLE = "as its table"
_ADJUSTMENTS = (_AS_TABLE, AT_ONCE, *ADJUSTMENTS)


def report(
    data: Results
    | Sequence[Results]
    | Mapping[str, Results]
    | AdaptiveLog
    | Sums
    | PublicLog
    | OperatingCharacteristics
    | Protocol
    | CommitteeReport,
    path: str | PathLike[str],
    *,
    log: AdaptiveLog | Sums | PublicLog | None = None,
    methods: Recommendation | None = None,
    plan: OperatingCharacteristics | None = None,
    alpha: float = 0.05,
    adjust: str | None = "as its table",
    brief: bool = False,
    docx: str | PathLike[str] | None = None,
    checklist: str | Sequence[str] | None = None,
    source: Any = None,
    title: str | None = None,
    call: str | None = None,
    on: date | None = None,
) -> None:
    r"""Write a report as one HTML file: the finding, a plot, checks of its validity, and the methods.

    Parameters
    ----------
    data : Results, or several, AdaptiveLog, Sums, PublicLog, or the output of a plan
        A result, or several in a list or by name, each of which gets a sentence, a picture and a table; or a
        log, whose arm means are then estimated by the first method of `recommend`; or the public part of a
        log, for a report based on its releases alone; or a plan alone, for the appendix of a protocol: the
        output of `audit.operating_characteristics` or `Plan.protocol`; or the output of `Plan.committee`.
    path : path
        File name that ends in ``.html`` or ``.htm``.
    log : AdaptiveLog, Sums or PublicLog, optional
        With a result: the log from which it was computed, for its checks, valid methods and pictures; or the
        public part from which it was computed, for everything that may be published.
    methods : Recommendation, optional
        The output of `recommend` for the log; by default for arm means, or for the first difference between
        arms.
    plan : OperatingCharacteristics, optional
        The design's `audit.operating_characteristics`, simulated in advance, for an appendix and the topics
        of the draft ICH E20 guideline.
    alpha : float
        One minus the confidence level of the intervals, between 0 and 0.5.
    adjust : {"as its table", "max-t", "holm", "bh"} or None
        For several terms: how the numbers in the table, the plot and the paragraph are adjusted; by default
        as in the printed result.
    brief : bool
        Whether to restrict the report to one printed A4 page: the sentence, the plot, cautions and methods.
    docx : path, optional
        For a result or a log: also write its sentence, cautions, table, assumptions and methods as a Word
        document with this name, which must end in ``.docx``. Requires python-docx, the extra ``word``.
    checklist : {"consort", "ich-e20"}, or several, optional
        Items of a guideline with the answers that the log provides: CONSORT 2025 and its extension for
        adaptive designs, or the draft ICH E20. Not available with ``brief=True``.
    source : path, or list of paths, optional
        Files from which the data were read: the report lists them with their SHA-256. By default it gives the
        SHA-256 of the rows, in the form written by ``log.frame.to_csv(index=False, lineterminator="\n")``.
    title : str, optional
        Heading of the page.
    call : str, optional
        The call or command that created the result, to be shown verbatim.
    on : date, optional
        Date of the report; by default that of ``SOURCE_DATE_EPOCH`` if this is set, and otherwise today's
        date in UTC.

    Raises
    ------
    ParameterError
        If arguments are inconsistent; the message lists every problem.
    MissingDependencyError
        If a Word document is requested and python-docx is not installed.
    FileError
        If the file cannot be written; an existing file is left unchanged.

    Notes
    -----
    The file is self-contained: it includes its plots and makes no requests to any server. All text from the
    log is escaped. A report on a trial is readable only by its owner (mode 0600), like the files of the
    trial's log; so is a closed report for a data monitoring committee, but not an open one. The same call
    writes the same bytes on the same day with the same versions. The plot of allocation over time needs
    matplotlib; without it, the report says so instead.

    For a private log, everything that its guarantee does not cover is in a marked frame; everything outside
    the frame is from ``log.public()``, from a result based on releases alone, or entered by the caller.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import pathlib
    >>> import tempfile
    >>> arms = ai.environments.BernoulliArms([0.3, 0.5])
    >>> log = ai.designs.Thompson(floor=0.1).run(arms, horizon=400, rng=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ai.report(log, f"{folder}/trial.html", title="A trial")
    ...     page = pathlib.Path(folder, "trial.html").read_text(encoding="utf-8")
    >>> "<h1>A trial</h1>" in page, "<h2 id=" in page
    (True, True)
    """
    given: dict[str, Any] = {
        "log": log,
        "methods": methods,
        "plan": plan,
        "alpha": alpha,
        "adjust": adjust,
        "brief": brief,
    }
    given |= {"docx": docx, "checklist": checklist, "source": source, "title": title, "call": call, "on": on}
    several = data if isinstance(data, (list, tuple, Mapping)) else None
    place, files, word = _checked(data, path, given)
    lists = (checklist,) if isinstance(checklist, str) else tuple(checklist or ())
    stamp = Stamp(title or _TITLE, call, (on or _today()).isoformat(), brief, lists)
    if isinstance(data, _PLANNED):
        text, owner_only = _planned(data, alpha, stamp, title)
    elif (public := _public_part(data, log)) is not None:
        results, why = (data, "") if isinstance(data, Results) else answer_of(public)
        text = published_page(public, _shown(results, alpha, adjust), why, stamp)
        owner_only = False
    elif several is not None:
        own = log if isinstance(log, (AdaptiveLog, Sums)) else None
        each = several.values() if isinstance(several, Mapping) else several
        contents = [_content(one, own, methods, plan, alpha, adjust, stamp, files) for one in each]
        together = Several(tuple(several) if isinstance(several, Mapping) else (), tuple(contents))
        text, owner_only = together.text(), any(one.owner_only for one in contents)
    else:
        results = data if isinstance(data, Results) else None
        of_log = log if isinstance(data, Results) else data
        assert of_log is None or isinstance(of_log, (AdaptiveLog, Sums))
        content = _content(results, of_log, methods, plan, alpha, adjust, stamp, files)
        text, owner_only = content.text(), content.owner_only
        if word is not None:
            whole = word_document(content)
            atomic_write(word, lambda file: file.write(whole), owner_only)
    atomic_write(place, lambda file: file.write(text.encode("utf-8")), owner_only)


def _planned(
    data: OperatingCharacteristics | Protocol | CommitteeReport, alpha: float, stamp: Stamp, title: str | None
) -> tuple[str, bool]:
    """The page of a plan, and whether it is for its owner alone."""
    if isinstance(data, CommitteeReport):
        return committee_page(data, replace(stamp, title=title or data.title)), data.closed
    if isinstance(data, Protocol):
        return protocol_page(data, replace(stamp, title=title or _PROTOCOL_TITLE)), False
    return planned_page(data, alpha, replace(stamp, title=title or _PLAN_TITLE)), False


def _public_part(*given: Any) -> PublicLog | None:
    """The public part of a log, if it is among the arguments."""
    return next((one for one in given if isinstance(one, PublicLog)), None)


_TITLE = "Report of an adaptive experiment"
_PROTOCOL_TITLE = "Appendix: adaptive design"
_PLAN_TITLE = "Operating characteristics of a plan"


def _today() -> date:
    """Today's date in UTC, or the date requested for reproducible builds."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(epoch), UTC) if epoch.isdigit() else datetime.now(UTC)
    return now.date()


def _shown(results: Results | None, alpha: float, adjust: str | None) -> Shown | None:
    if results is None:
        return None
    return Shown(results, alpha, results._adjustment if adjust == _AS_TABLE else adjust)


def _content(
    results: Results | None,
    log: AdaptiveLog | Sums | None,
    methods: Recommendation | None,
    plan: OperatingCharacteristics | None,
    alpha: float,
    adjust: str | None,
    stamp: Stamp,
    files: Sequence[Path],
) -> Content:
    """The report's contents; for a log alone, using the first recommended method."""
    found, why = methods, ""
    if log is not None and found is None:
        found, why = _recommended(log, results)
    if results is None and found is not None:
        try:
            results = found.fit()
            stamp = replace(stamp, call=stamp.call or found.best.call)
        except InvalidForLog as error:
            why = str(error)
    return Content(
        stamp, log, _shown(results, alpha, adjust), found, why, plan, sources_of(log, files), alpha
    )


def _checked(data: Any, path: Any, given: dict[str, Any]) -> tuple[Path, list[Path], Path | None]:
    """Paths of the report, the data files and the Word document, after checking all arguments."""
    place = as_path(_SUBJECT, "path", path)
    problems = alpha_problems(given["alpha"])
    for name in ("title", "call"):
        problems += OrNone(Is(str, "a text"))(name, given[name])
    problems += OrNone(Is(Recommendation, "a result of recommend"))("methods", given["methods"])
    told = "a result of audit.operating_characteristics"
    problems += OrNone(Is(OperatingCharacteristics, told))("plan", given["plan"])
    problems += FLAG("brief", given["brief"]) + OrNone(Is(date, "a date"))("on", given["on"])
    if given["adjust"] is not None and given["adjust"] not in _ADJUSTMENTS:
        problems.append(unlisted("adjust", _ADJUSTMENTS, given["adjust"], ", or None"))
    problems += _checklist_problems(given["checklist"])
    if given["brief"] is True and given["checklist"]:
        problems.append("brief=True cannot be combined with checklist=: write two reports")
    if place.suffix.lower() not in _ENDINGS:
        problems.append(f"path must end in .html or .htm, got {str(place)!r:.80}")
    if isinstance(data, (list, tuple, Mapping)):
        problems += _several_problems(data, given)
    else:
        problems += _data_problems(data, given["log"], given["methods"], given["plan"])
    word = None if given["docx"] is None else as_path(_SUBJECT, "docx", given["docx"])
    if word is not None and word.suffix.lower() != ".docx":
        problems.append(f"docx must end in .docx, got {str(word)!r:.80}")
    if word is not None and (isinstance(data, (PublicLog, *_PLANNED)) or isinstance(given["log"], PublicLog)):
        problems.append("docx= applies only to a result or a log, and data is neither: omit it")
    refuse(_SUBJECT, problems)
    source = given["source"]
    listed = source if isinstance(source, (list, tuple)) else [] if source is None else [source]
    return place, [as_path(_SUBJECT, "source", one) for one in listed], word


def _checklist_problems(given: Any) -> list[str]:
    """Problems with the names of checklists."""
    lists = (given,) if isinstance(given, str) else given or ()
    if not isinstance(lists, (list, tuple)):
        known = ", ".join(map(repr, CHECKLISTS))
        return [f"checklist must be one of {known}, or a list of them, got {given!r:.60}"]
    return [unlisted("checklist", CHECKLISTS, one) for one in lists if one not in CHECKLISTS]


def _several_problems(data: Any, given: dict[str, Any]) -> list[str]:
    """Problems with several results, and arguments that apply only to a single one."""
    each = list(data.values()) if isinstance(data, Mapping) else list(data)
    problems = [
        f"data must be results of fit(), got {one!r:.60}" for one in each if not isinstance(one, Results)
    ]
    if not each:
        problems.append("data must contain at least one result")
    if isinstance(data, Mapping):
        problems += [
            f"names of results must be strings, got {name!r:.60}"
            for name in data
            if not isinstance(name, str)
        ]
    alone = [name for name in ("brief", "docx", "checklist") if given[name]]
    problems += [f"{name}= applies to a single result, but data has {len(each)}" for name in alone]
    if isinstance(given["log"], PublicLog):
        problems.append("log= can be a public part only if data is a single result")
    elif not problems:
        for one in each:
            problems += _data_problems(one, given["log"], given["methods"], given["plan"])
    return list(dict.fromkeys(problems))


def _data_problems(data: Any, log: Any, methods: Any, plan: Any) -> list[str]:
    """Arguments that do not apply to the subject of the report."""
    problems = []
    if plan is not None and isinstance(data, _PLANNED):
        problems.append("plan= applies to a result or a log, but data is itself a plan: omit it")
    if not isinstance(data, (Results, AdaptiveLog, Sums, PublicLog, *_PLANNED)):
        told = "one or more results of fit(), an AdaptiveLog, Sums, a PublicLog or a plan"
        problems.append(f"data must be {told}, got {data!r:.60}")
    if PublicLog in (type(data), type(log)) and (methods is not None or plan is not None):
        problems.append("methods= and plan= apply to a result or a log, not to a public part: omit them")
    if log is not None and not isinstance(log, (AdaptiveLog, Sums, PublicLog)):
        problems.append(f"log must be an AdaptiveLog, Sums or a PublicLog, got {log!r:.60}")
    elif log is not None and not isinstance(data, Results):
        problems.append("log= applies only if data is a result: omit it")
    elif log is not None and isinstance(data, Results):
        own = LogFacts.released(log) if isinstance(log, PublicLog) else LogFacts.of(log)
        differ = [name for name in _FACTS if getattr(own, name) != getattr(data.facts, name)]
        if differ:
            problems.append(f"log is not the log of the result: {', '.join(differ)} differ")
    return problems


def _recommended(log: AdaptiveLog | Sums, results: Results | None) -> tuple[Recommendation | None, str]:
    """Valid estimators for a result's target, or for arm means if there are none."""
    first = None if results is None else results.estimands[0]
    if first is None:
        return recommend(log), ""
    if first.kind == "arm-mean":
        return recommend(log, "arm-means"), ""
    if first.kind in ("contrast", "lift") and first.treatment in log.arms and first.control in log.arms:
        return recommend(log, "contrast", treatment=first.treatment, control=first.control), ""
    return None, claims.NEEDS_METHODS()
