"""The items that regulators and guidelines require for an adaptive trial, answered from a log.

References
----------
Dimairo M et al. (2020). The adaptive designs CONSORT extension (ACE) statement. BMJ 369:m115. Hopewell S et
al. (2025). CONSORT 2025 statement: updated guideline for reporting randomised trials. BMJ 389:e081123.

ICH (2025). E20: Adaptive designs for clinical trials. Draft guideline, Step 2b, 25 June 2025.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.claims import sentence
from adaptinf.claims.reports import answers as claims
from adaptinf.claims.reports.answers import FOR_AUTHORS
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log import AdaptiveLog
from adaptinf.markup import escaped, framed
from adaptinf.reports.collection_facts import design_told, traits_told
from adaptinf.reports.report_page import paragraph
from adaptinf.reports.report_texts import cautions_of

if TYPE_CHECKING:
    from adaptinf.audit.simulation.characteristics import OperatingCharacteristics
    from adaptinf.inference.diagnostics import Diagnosis
    from adaptinf.inference.results.fit_results import Results
    from adaptinf.reports.shown_numbers import Shown
    from adaptinf.sums import Sums


_INTRODUCTION = (
    "Topics are named in a few words: the statements have the full items. New in the extension for adaptive "
    "designs: 3b, 11c, 12b, 14c, 15b, 17c and 24b. A 2025 number in brackets is that of the nearest item, "
    "because CONSORT 2025 has no item with that content."
)


@dataclass(frozen=True, slots=True)
class Known:
    """Information for the items that a report can answer."""

    log: AdaptiveLog | Sums | None
    shown: Shown | None
    methods: str
    checks: Diagnosis | None = None
    plan: OperatingCharacteristics | None = None

    @property
    def results(self) -> Results | None:
        """The result, if there is one."""
        return None if self.shown is None else self.shown.results


# An answer is empty if the log does not contain one, so that the author has to supply it.
Answer = Callable[[Known], str]


def _counts(known: Known) -> str:
    if not isinstance(known.log, AdaptiveLog):
        return ""
    counts = np.bincount(known.log.arrays.action, minlength=known.log.n_arms)
    return "; ".join(f"{arm}: {count:,}" for arm, count in zip(known.log.arms, counts, strict=True))


def _design(known: Known) -> str:
    counts = _counts(known)
    return f"{known.log.n_arms} arms; rounds allocated: {counts}" if known.log is not None and counts else ""


def adaptation(known: Known) -> str:
    """Name, parameters and traits of the design."""
    if known.log is None or known.log.design is None:
        return ""
    return f"{design_told(known.log)}; {traits_told(known.log)}"


def _rule(known: Known) -> str:
    if not adaptation(known):
        return ""
    batches = _batches(known)
    return f"the rule of item 3b{f', updated in {batches:,} batches' if batches else ''}"


def _batches(known: Known) -> int:
    """Batches of the log; 0 if there are none."""
    log = known.log
    if not isinstance(log, AdaptiveLog):
        return 0 if log is None else log.n_batches
    return 0 if log.arrays.batch is None else int(log.arrays.batch[-1]) + 1


def _updates(known: Known) -> str:
    batches = _batches(known)
    return claims.UPDATES(batches=batches, for_authors=FOR_AUTHORS) if batches else ""


def _allocation(known: Known) -> str:
    if known.log is None:
        return ""
    profile = profile_of(known.log)
    if not profile.knows_propensities:
        return ""
    moved = "changed over time" if profile.moves else "were constant"
    return claims.ALLOCATION(status=known.log.propensity_status, moved=moved)


def _randomised(known: Known) -> str:
    counts = _counts(known)
    return f"rounds assigned: {counts}" if counts else ""


def _missing(known: Known) -> str:
    log = known.log
    if not isinstance(log, AdaptiveLog):
        return ""
    if log.arrays.observed is None:
        return claims.NONE_MISSING()
    return f"{int((~log.arrays.observed).sum()):,} rewards are missing (missing={log.missing!r})"


def _estimates(known: Known) -> str:
    if known.shown is None:
        return ""
    if known.shown.results.validity == "not valid" and known.shown.results.correction is None:
        return claims.NO_INTERVALS(for_authors=FOR_AUTHORS)
    terms = known.shown.results.terms
    told = [
        f"{term}: {known.shown.said(place)}"
        for place, term in enumerate(terms)
        if math.isfinite(known.shown.results.estimate[place])
    ]
    return "; ".join(told[:10]) + (f"; and {len(told) - 10} more" if len(told) > 10 else "")


def _analysed(known: Known) -> str:
    if known.results is None:
        return ""
    by = (
        ", by assigned arm"
        if isinstance(known.log, AdaptiveLog) and known.log.arrays.received is not None
        else ""
    )
    return f"{known.results.facts.n_rounds:,} rounds{by}"


def _methods(known: Known) -> str:
    return claims.METHODS() if known.methods else ""


def _limits(known: Known) -> str:
    if known.shown is None:
        return ""
    cautions = cautions_of(known.shown)
    told = [f"cautions of the analysis: {'; '.join(cautions)}"] if cautions else []
    return sentence([*told, known.shown.multiplicity])


def _interim(known: Known) -> str:
    whole = isinstance(known.log, AdaptiveLog)
    return claims.INTERIM(for_authors=FOR_AUTHORS) if whole else ""


def _planned(known: Known) -> str:
    if known.plan is None:
        return ""
    return claims.PLANNED(for_authors=FOR_AUTHORS)


def nothing(known: Known) -> str:
    """No answer, for items that neither a log nor a result can answer."""
    return ""


# Journals ask for either version, so each item has its number in CONSORT 2010 with its extension and in
# CONSORT 2025.
ITEMS: tuple[tuple[str, str, str, Answer], ...] = (
    ("1a", "1a", "identification as a randomised trial in the title", nothing),
    ("1b", "1b", "structured summary that identifies the design as adaptive", nothing),
    ("2a", "6", "background and rationale", nothing),
    ("2b", "7", "objectives or hypotheses", nothing),
    ("3a", "9", "trial design and allocation ratio", _design),
    ("3b", "9", "type of adaptive design, planned adaptations, and what informs them", adaptation),
    ("3c", "10", "important changes outside the planned adaptations", nothing),
    ("4a", "12a", "eligibility of participants", nothing),
    ("4b", "11", "settings and locations", nothing),
    ("5", "13", "interventions of every arm", nothing),
    ("6a", "14", "outcome measures, including those that inform adaptations", nothing),
    ("6b", "10", "unplanned changes to outcomes", nothing),
    ("7a", "16a", "how sample size and operating characteristics were determined", _planned),
    ("7b", "16b", "interim decision criteria; planned and actual timing of interim looks", _updates),
    ("8a", "17a", "how the allocation sequence was generated", _allocation),
    ("8b", "17b", "type of randomisation; rule or algorithm that updates it, and how often", _rule),
    ("9", "18", "concealment of the allocation", nothing),
    ("10", "19", "who generated the sequence, enrolled and assigned", nothing),
    ("11a", "20a", "who was blinded", nothing),
    ("11b", "20b", "how blinding was achieved", nothing),
    ("11c", "(20a)", "confidentiality of interim information; avoiding operational bias", nothing),
    ("12a", "21a", "statistical methods for outcomes, including those that inform adaptations", _methods),
    ("12b", "(21a)", "estimation and inference under the adaptive features", _methods),
    ("12c", "21d", "additional analyses", nothing),
    ("13a", "22a", "participant flow by arm: assigned, treated, analysed", _randomised),
    ("13b", "22b", "losses and exclusions by arm", nothing),
    ("14a", "23a", "dates of recruitment and follow-up by arm", nothing),
    ("14b", "23b", "why the trial ended or was stopped", nothing),
    ("14c", "(23b)", "adaptation decisions that were made", _interim),
    ("15a", "25", "baseline characteristics by arm", nothing),
    ("15b", "(25)", "whether participants were alike between interim stages", nothing),
    ("16", "26", "numbers analysed", _analysed),
    ("17a", "26", "results by arm, effect sizes and their precision", _estimates),
    ("17b", "26", "for binary outcomes, both absolute and relative effects", nothing),
    ("17c", "(26)", "interim results that informed decisions", _interim),
    ("18", "28", "ancillary analyses", nothing),
    ("19", "27", "harms", nothing),
    ("20", "30", "limitations: bias, imprecision, multiplicity", _limits),
    ("21", "30", "generalisability", nothing),
    ("22", "29", "interpretation", nothing),
    ("23", "2", "registration", nothing),
    ("24a", "3", "where the protocol can be accessed", nothing),
    ("24b", "3", "where the statistical analysis plan and other trial documents can be accessed", nothing),
    ("25", "5a", "funding", nothing),
    ("", "4", "sharing of data, code and materials", nothing),
    ("", "5b", "conflicts of interest", nothing),
    ("", "8", "involvement of patients and the public", nothing),
    ("", "12b", "eligibility of sites and of those who deliver the interventions", nothing),
    ("", "15", "how harms were defined and assessed", nothing),
    ("", "21b", "who is in each analysis, and in which group", _analysed),
    ("", "21c", "how missing data were handled", _missing),
    ("", "24a", "interventions as they were delivered", nothing),
    ("", "24b", "concomitant care", nothing),
)


def checklist(known: Known) -> str:
    """The table of items, filled in if the log answers them."""
    rows = []
    for old, new, topic, answer in ITEMS:
        told = answer(known)
        cell = escaped(told) if told else f'<span class="ask">{FOR_AUTHORS}</span>'
        rows.append(
            f"<tr><td>{old or '&ndash;'}</td><td>{new}</td>"
            f'<th scope="row">{escaped(topic)}</th><td>{cell}</td></tr>'
        )
    names = ("ACE 2020", "CONSORT 2025", "Topic", "Answer")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    inner = f"<thead><tr>{head}</tr></thead>\n<tbody>\n{chr(10).join(rows)}\n</tbody>"
    return f"{paragraph(_INTRODUCTION)}\n{framed('Items', inner, 'fill')}"


_DRAFT = (
    "Topics of the draft of June 2025 for confirmatory trials with an adaptive design, in a few words and "
    "without its numbers, which may still change. The guideline has the full text."
)
_DRIFTS = ("common drift", "drift over time", "drift by batch", "drift that could be missed")


def _rows(known: Known, measure: str) -> list[dict[Any, Any]]:
    """Rows of the plan with a value for a measure."""
    if known.plan is None:
        return []
    frame = known.plan.frame
    return frame[(frame["measure"] == measure) & frame["value"].notna()].to_dict("records")


def _extreme(known: Known, measure: str, largest: bool) -> str:
    """The largest, or smallest, share for a measure, with its Monte Carlo limits."""
    rows = _rows(known, measure)
    if not rows:
        return ""
    row = (max if largest else min)(rows, key=lambda one: float(one["value"]))
    of = ", ".join(dict.fromkeys(str(row[name]) for name in ("analysis", "term") if row[name]))
    return (
        f"{'at most' if largest else 'at least'} {row['value']:.4g} (simulation: {row['low']:.4g} to "
        f"{row['high']:.4g}; {of}; {row['scenario']}, {row['horizon']:,} rounds)"
    )


def _error_rate(known: Known) -> str:
    told = _extreme(known, "type-I error", largest=True)
    return f"nominal {known.plan.alpha:g}; simulated {told}" if known.plan is not None and told else ""


def _power(known: Known) -> str:
    return _extreme(known, "power", largest=False)


def _coverage(known: Known) -> str:
    return _extreme(known, "coverage", largest=False)


def _bias(known: Known) -> str:
    rows = _rows(known, "bias")
    if not rows:
        return ""
    row = max(rows, key=lambda one: abs(float(one["value"])))
    return claims.LARGEST_BIAS(
        bias=row["value"],
        error=row["mc_error"],
        term=row["term"],
        scenario=row["scenario"],
        rounds=row["horizon"],
    )


def _drift(known: Known) -> str:
    if known.checks is None:
        return ""
    told: dict[str, list[str]] = {}
    for one in known.checks.checks:
        if one.name in _DRIFTS and one.verdict != "not applicable":
            told.setdefault(one.name, []).append(one.verdict)
    found = [f"{name}: {', '.join(dict.fromkeys(verdicts))}" for name, verdicts in told.items()]
    return f"checks of the log: {'; '.join(found)}" if found else ""


def _weights(known: Known) -> str:
    results = known.results
    if results is None or results.weights is None:
        return ""
    if results.weights == "uniform":
        return claims.UNIFORM()
    return claims.WEIGHTED(weights=results.weights, for_authors=FOR_AUTHORS)


def _simulation(known: Known) -> str:
    if known.plan is None:
        return ""
    frame = known.plan.frame
    return claims.SIMULATED(
        scenarios=frame["scenario"].nunique(),
        sizes=frame["horizon"].nunique(),
        trials=known.plan.replications,
        for_authors=FOR_AUTHORS,
    )


def _estimation(known: Known) -> str:
    if known.results is None:
        return ""
    return claims.ESTIMATED(estimator=known.results.estimator, validity=known.results.validity)


TOPICS: tuple[tuple[str, Answer], ...] = tuple(
    zip(
        claims.E20_TOPICS,
        (
            nothing,
            adaptation,
            _error_rate,
            _power,
            _bias,
            _coverage,
            _estimation,
            _drift,
            _weights,
            _simulation,
            nothing,
            nothing,
        ),
        strict=True,
    )
)


def regulatory(known: Known) -> str:
    """The table of topics, filled in if they are known."""
    return topics_table((topic, answer(known)) for topic, answer in TOPICS)


def topics_table(answers: Iterable[tuple[str, str]]) -> str:
    """The table of topics and their answers."""
    rows = []
    for topic, told in answers:
        asked = not told or told == FOR_AUTHORS
        cell = f'<span class="ask">{FOR_AUTHORS}</span>' if asked else escaped(told)
        rows.append(f'<tr><th scope="row">{escaped(topic)}</th><td>{cell}</td></tr>')
    head = "".join(f'<th scope="col">{name}</th>' for name in ("ICH E20, draft", "Answer"))
    inner = f"<thead><tr>{head}</tr></thead>\n<tbody>\n{chr(10).join(rows)}\n</tbody>"
    return f"{paragraph(_DRAFT)}\n{framed('Topics of ICH E20', inner, 'fill halves')}"
