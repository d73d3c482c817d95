"""Topics of the ICH E20 draft on adaptive designs, filled from a log, a result and a simulated plan.

References
----------
ICH (2025). E20: Adaptive designs for clinical trials. Draft guideline, Step 2b, 25 June 2025.
"""

from __future__ import annotations

from typing import Any

from adaptinf.claims.reports import answers as claims
from adaptinf.markup import escaped, framed
from adaptinf.reports.checklist import FOR_AUTHORS, Answer, Known, adaptation, nothing
from adaptinf.reports.page import paragraph

_INTRODUCTION = (
    "Topics of the draft of June 2025 for confirmatory trials with an adaptive design, in a few words and "
    "without its numbers, which may still change. The guideline has the full text."
)
_DRIFTS = ("common drift", "drift over time", "drift by batch", "drift that could be missed")


def _rows(known: Known, measure: str) -> list[dict[Any, Any]]:
    """Rows of the plan with a measure that has a value."""
    if known.plan is None:
        return []
    frame = known.plan.frame
    return frame[(frame["measure"] == measure) & frame["value"].notna()].to_dict("records")


def _extreme(known: Known, measure: str, largest: bool) -> str:
    """The largest, or smallest, share of a measure with its Monte-Carlo limits."""
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


TOPICS: tuple[tuple[str, Answer], ...] = (
    ("why an adaptive design, and why one of this complexity", nothing),
    ("adaptations and the rule for them, fixed before the trial", adaptation),
    ("control of the type I error, over the scenarios of the plan", _error_rate),
    ("power, or the chance of the right conclusion, over the scenarios", _power),
    ("bias of the estimates under the adaptation", _bias),
    ("coverage of the intervals under the adaptation", _coverage),
    ("methods of estimation that allow for the adaptation", _estimation),
    ("drift over time of outcomes or of those enrolled: is there any", _drift),
    ("sensitivity of the estimates to such drift", _weights),
    ("simulation report: scenarios, numbers of trials, errors, software", _simulation),
    ("who sees interim results, and how the others are kept from them", nothing),
    ("deviations from the planned adaptations, and analyses for them", nothing),
)
"""Topic, and what is known of it."""


def regulatory(known: Known) -> str:
    """The table of topics, filled where they are known."""
    rows = []
    for topic, answer in TOPICS:
        told = answer(known)
        cell = escaped(told) if told else f'<span class="ask">{FOR_AUTHORS}</span>'
        rows.append(f'<tr><th scope="row">{escaped(topic)}</th><td>{cell}</td></tr>')
    head = "".join(f'<th scope="col">{name}</th>' for name in ("ICH E20, draft", "Answer"))
    inner = f"<thead><tr>{head}</tr></thead>\n<tbody>\n{chr(10).join(rows)}\n</tbody>"
    return f"{paragraph(_INTRODUCTION)}\n{framed('Topics of ICH E20', inner, 'fill halves')}"
