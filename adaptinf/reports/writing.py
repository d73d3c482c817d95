"""The report of a log or a result, as one HTML file."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

from adaptinf.audit.simulation.characteristics import OperatingCharacteristics
from adaptinf.claims.reports import page as claims
from adaptinf.claims.tables import CAUTION
from adaptinf.errors import InvalidForLog, MissingDependencyError, ParameterError
from adaptinf.files import as_path, atomic_write
from adaptinf.inference.arms import Contrast
from adaptinf.inference.diagnostics import diagnose
from adaptinf.inference.effects import CATE
from adaptinf.inference.inputs.published import answered_by
from adaptinf.inference.recommend import Recommendation, recommend
from adaptinf.inference.released import BinMeans
from adaptinf.inference.results.base import Results
from adaptinf.inference.results.log_facts import LogFacts
from adaptinf.log import AdaptiveLog, PublicLog
from adaptinf.markup import table
from adaptinf.parameters import Is, OrNone, alpha_problems, refuse
from adaptinf.reports.checklist import Known, checklist, regulatory
from adaptinf.reports.collection_facts import (
    arm_rows,
    guarantee_facts,
    log_cautions,
    log_facts,
    not_covered_told,
)
from adaptinf.reports.report_page import code, defined, listed, page, paragraph, summary_parts
from adaptinf.reports.report_texts import methods_told, versions
from adaptinf.sums import Sums

if TYPE_CHECKING:
    from adaptinf.inference.diagnostics import Diagnosis

_SHOWN = 100


def answer_of(public: PublicLog) -> tuple[Results | None, str]:
    """The table that the releases answer without a further choice; None, and why, where there is none."""
    ways = answered_by(public)
    if not ways:
        return None, claims.UNREAD()
    treatment, control = public.arms[-1], public.arms[0]
    try:
        if ways[0].startswith("BinMeans"):
            return BinMeans(public).fit(), ""
        if public.n_arms > 2:
            return None, claims.SEVERAL_PAIRS(arms=public.n_arms)
        if public.facts["contexts"]:
            return CATE(public, by=public.facts["contexts"][0]).fit(), ""
        return Contrast(public, treatment=treatment, control=control).fit(), ""
    except InvalidForLog as error:
        return None, str(error)


def published_page(public: PublicLog, alpha: float, title: str, call: str | None) -> str:
    """The whole page."""
    results, why = answer_of(public)
    facts = LogFacts.released(public)
    lead = claims.PUBLISHED(
        rounds=public.n_rounds,
        design=facts.design or "an unnamed design",
        version=versions().partition(" (")[0],
    )
    answer = paragraph(why) if results is None else summary_parts(results.summary(alpha), "term")
    sections = [
        ("published", "What is published, and what is left out", code(public.statement)),
        ("results", "Results", answer),
        ("releases", "Releases", _releases(public)),
        ("guarantee", "Privacy guarantee", defined(guarantee_facts(None, facts, released=True))),
    ]
    if results is not None:
        told, references = methods_told(results, None, alpha)
        sections.append(("methods", "Methods, ready to paste", f"{paragraph(told)}\n{listed(references)}"))
    exact = [code(call)] if call else []
    sections.append(("call", "Call and versions", "\n".join([*exact, paragraph(versions())])))
    return page(title, lead, sections)


def _releases(public: PublicLog) -> str:
    """The last rows of the releases."""
    rows = public.releases.tail(_SHOWN)
    if rows.empty:
        return paragraph("There are none.")
    texts = [[str(cell) for cell in row] for row in rows.itertuples(index=False, name=None)]
    many = len(public.releases)
    caption = f"The last {len(rows)} of {many:,} releases" if many > len(rows) else f"All {many} releases"
    return table([str(name) for name in rows], texts, caption)


_SUBJECT = "report"
_ENDINGS = (".html", ".htm")
_FACTS = ("n_rounds", "design", "guarantee", "noise")


def report(
    data: Results | AdaptiveLog | Sums | PublicLog | OperatingCharacteristics,
    path: str | PathLike[str],
    *,
    log: AdaptiveLog | Sums | None = None,
    methods: Recommendation | None = None,
    plan: OperatingCharacteristics | None = None,
    alpha: float = 0.05,
    title: str | None = None,
    call: str | None = None,
) -> None:
    """Write a report as one HTML file: collection, checks, valid methods, results and a methods paragraph.

    Parameters
    ----------
    data : Results, AdaptiveLog, Sums, PublicLog or OperatingCharacteristics
        A result, or a log whose arm means are then estimated by the first method of `recommend`; the public
        part of one, for a report from its releases alone; or a plan alone, for the appendix of a protocol.
    path : path
        Ends in ``.html`` or ``.htm``.
    log : AdaptiveLog or Sums, optional
        With a result: the log that it came from, for its checks, valid methods and pictures.
    methods : Recommendation, optional
        What `recommend` says about the log; by default about arm means, or the first difference of arms.
    plan : OperatingCharacteristics, optional
        The design's `audit.operating_characteristics`, simulated beforehand, for an appendix and the topics
        of the ICH E20 draft.
    alpha : float
        One minus the level of the intervals, between 0 and 0.5.
    title : str, optional
        Heading of the page.
    call : str, optional
        The call or command that made the result, to be shown as it is.

    Raises
    ------
    ParameterError
        Listing everything that does not fit.
    FileError
        If the file cannot be written; one that is there stays as it is.

    Notes
    -----
    The file needs nothing else: it holds its pictures, and asks no server for anything. All texts of the log
    are escaped. A report of a trial is for its owner alone (mode 0600), as are the files of the trial's log.
    The same call writes the same bytes with the same versions: there is no date in it. Pictures
    need matplotlib; without it the report says so in their place.

    The report shows raw data by arm and is not covered by a privacy guarantee, unless the result is from the
    private releases alone and is reported without its log, or `data` is a public part. That of a private log
    says so on top.

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
    place = _checked(data, path, log, methods, plan, alpha, title, call)
    if isinstance(data, OperatingCharacteristics):
        text = _planned(data, alpha, title or "Operating characteristics of a plan", call)
        atomic_write(place, lambda file: file.write(text.encode("utf-8")))
        return
    heading = title or "Report of an adaptive experiment"
    if isinstance(data, PublicLog):
        text = published_page(data, alpha, heading, call)
        atomic_write(place, lambda file: file.write(text.encode("utf-8")))
        return
    results = data if isinstance(data, Results) else None
    source = log if isinstance(data, Results) else data
    found, why = methods, ""
    if source is not None and found is None:
        found, why = _recommended(source, results)
    if results is None and found is not None:
        try:
            results, call = found.fit(), call or found.best.call
        except InvalidForLog as error:
            why = str(error)
    text = _written(results, source, found, why, alpha, heading, call, plan)
    told = [source, *([] if results is None else [results.facts])]
    owner_only = any(one.owner_only for one in told if one is not None)
    atomic_write(place, lambda file: file.write(text.encode("utf-8")), owner_only)


def _checked(
    data: Any, path: Any, log: Any, methods: Any, plan: Any, alpha: Any, title: Any, call: Any
) -> Any:
    """Path of the file, after every argument was looked at."""
    place = as_path(_SUBJECT, "path", path)
    problems = alpha_problems(alpha)
    problems += OrNone(Is(str, "a text"))("title", title) + OrNone(Is(str, "a text"))("call", call)
    problems += OrNone(Is(Recommendation, "what recommend returned"))("methods", methods)
    told = "what audit.operating_characteristics returned"
    problems += OrNone(Is(OperatingCharacteristics, told))("plan", plan)
    if plan is not None and isinstance(data, OperatingCharacteristics):
        problems.append("plan= belongs to a result or a log: data is a plan already, leave it out")
    if place.suffix.lower() not in _ENDINGS:
        problems.append(f"path must end in .html or .htm, got {str(place)!r:.80}")
    if not isinstance(data, (Results, AdaptiveLog, Sums, PublicLog, OperatingCharacteristics)):
        told = "a result of fit(), an AdaptiveLog, Sums, a PublicLog or a plan"
        problems.append(f"data must be {told}, got {data!r:.60}")
    if isinstance(data, PublicLog) and (methods is not None or plan is not None):
        problems.append(
            "methods= and plan= belong to a result or a log: data is a public part, leave them out"
        )
    if log is not None and not isinstance(log, (AdaptiveLog, Sums)):
        problems.append(f"log must be an AdaptiveLog or Sums, got {log!r:.60}")
    elif log is not None and not isinstance(data, Results):
        problems.append("log= belongs to a result: data is none, leave it out")
    elif log is not None and isinstance(data, Results):
        own = LogFacts.of(log)
        differ = [name for name in _FACTS if getattr(own, name) != getattr(data.facts, name)]
        if differ:
            problems.append(f"log is not the one that the result is of: {', '.join(differ)} differ")
    refuse(_SUBJECT, problems)
    return place


def _recommended(log: AdaptiveLog | Sums, results: Results | None) -> tuple[Recommendation | None, str]:
    """What is valid for what a result estimates; arm means where there is none."""
    first = None if results is None else results.estimands[0]
    if first is None or first.kind == "arm-mean":
        return recommend(log), ""
    if first.kind in ("contrast", "lift") and first.treatment in log.arms and first.control in log.arms:
        return recommend(log, "contrast", treatment=first.treatment, control=first.control), ""
    return None, claims.NEEDS_METHODS()


def _written(
    results: Results | None,
    log: AdaptiveLog | Sums | None,
    found: Recommendation | None,
    why: str,
    alpha: float,
    title: str,
    call: str | None,
    plan: OperatingCharacteristics | None,
) -> str:
    paragraph_text, references = ("", []) if results is None else methods_told(results, log, alpha)
    facts = LogFacts.of(log) if results is None and log is not None else None
    facts = facts if results is None else results.facts
    assert facts is not None  # there is a result or a log
    n_rounds = f"{facts.n_rounds:,} rounds"
    if facts.stopping is not None and facts.stopping.said is not None:
        n_rounds += f", stopping {facts.stopping.told}"
    lead = f"{n_rounds}, design {facts.design or 'not named'}; analysed with {versions().partition(' (')[0]}."
    checks, unsound = _diagnosis(log, alpha)
    known = Known(log, results, paragraph_text, alpha, checks, plan)
    sections = [
        ("collected", "What was collected, and how", _collected(log)),
        ("sound", "Is the log sound?", unsound if checks is None else _diagnosed(checks)),
        ("valid", "What is valid here, and why", _valid(results, found, why)),
        ("results", "Results", _results(results, why, alpha)),
        ("pictures", "Pictures", _pictures(results, log, alpha)),
        (
            "guarantee",
            "Privacy guarantee",
            defined(guarantee_facts(log, facts, released=_released(results))),
        ),
    ]
    if results is not None:
        sections.append(
            ("methods", "Methods, ready to paste", f"{paragraph(paragraph_text)}\n{listed(references)}")
        )
    sections.append(("checklist", "Reporting checklist", checklist(known)))
    sections.append(("regulatory", "Topics of the ICH E20 draft", regulatory(known)))
    if plan is not None:
        sections.append(("plan", "Appendix: operating characteristics", _characteristics(plan)))
    exact = [code(call)] if call else []
    sections.append(("call", "Call and versions", "\n".join([*exact, paragraph(versions())])))
    cautions = [*([] if log is None else log_cautions(log)), *(() if results is None else results.cautions)]
    warnings: list[str] = [CAUTION(caution=one) for one in dict.fromkeys(cautions)]
    if not_covered := not_covered_told(log, facts, released=_released(results)):
        warnings.insert(0, not_covered)
    return page(title, lead, sections, warnings)


def _released(results: Results | None) -> bool:
    return results is not None and results.private


def _collected(log: AdaptiveLog | Sums | None) -> str:
    if log is None:
        return paragraph(claims.NEEDS_LOG())
    headers, rows = arm_rows(log)
    return f"{defined(log_facts(log))}\n{table(headers, rows, 'Arms')}"


def _planned(plan: OperatingCharacteristics, alpha: float, title: str, call: str | None) -> str:
    """The page of a plan alone."""
    lead = claims.PLAN(design=plan.design, trials=plan.replications)
    sections = [
        ("plan", "Operating characteristics", _characteristics(plan)),
        ("regulatory", "Topics of the ICH E20 draft", regulatory(Known(None, None, "", alpha, None, plan))),
        ("call", "Call and versions", "\n".join([*([code(call)] if call else []), paragraph(versions())])),
    ]
    return page(title, lead, sections)


def _characteristics(plan: OperatingCharacteristics) -> str:
    """The table of a protocol, with its notes."""
    shown = plan.table()
    rows = [[str(cell) for cell in row] for row in shown.itertuples(index=False, name=None)]
    caption = claims.PLAN_CAPTION(trials=plan.replications, alpha=plan.alpha)
    notes = listed([claims.PLAN_ERRORS(), *plan.notes], "ol")
    return f"{paragraph(f'Design: {plan.design}')}\n{table(list(shown.columns), rows, caption)}\n{notes}"


def _diagnosis(log: AdaptiveLog | Sums | None, alpha: float) -> tuple[Diagnosis | None, str]:
    """The checks of a log, or why there are none."""
    if log is None:
        return None, paragraph(claims.NEEDS_LOG())
    try:
        return diagnose(log, alpha=alpha), ""
    except InvalidForLog as error:
        return None, paragraph(str(error))


def _diagnosed(diagnosis: Diagnosis) -> str:
    concerns = dict.fromkeys(f"{one.name} ({one.term}): {one.verdict}" for one in diagnosis.concerns)
    told = claims.CONCERNS() if concerns else claims.NO_CONCERN()
    return "\n".join([paragraph(told), listed(concerns), summary_parts(diagnosis.summary(), "check")])


def _valid(results: Results | None, found: Recommendation | None, why: str) -> str:
    parts = []
    if results is not None:
        more = "" if results.correction is None else claims.CORRECTED_VALID()
        parts.append(paragraph(claims.VALID[results.validity](more=more)))
    if found is None:
        return "\n".join([*parts, paragraph(why or claims.NEEDS_LOG())])
    return "\n".join([*parts, summary_parts(found.summary(), "rank")])


def _results(results: Results | None, why: str, alpha: float) -> str:
    if results is None:
        return paragraph(why)
    return summary_parts(results.summary(alpha), "term")


def _pictures(results: Results | None, log: AdaptiveLog | Sums | None, alpha: float) -> str:
    try:
        from adaptinf.reports.report_page import pictures

        return pictures(results, log, alpha)
    except (MissingDependencyError, ParameterError) as error:
        return paragraph(str(error))
