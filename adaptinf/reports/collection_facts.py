"""Facts about the collection of a log, its arms, its guarantee, and evidence against it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pandas as pd

from adaptinf.claims import Finding, contradictions, said, sentence
from adaptinf.claims.logs import statements as log_claims
from adaptinf.claims.logs.promises import ADAPTIVE
from adaptinf.claims.reports import collection as claims
from adaptinf.inference.results.log_facts import evidence_told
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log import AdaptiveLog
from adaptinf.log.provenance import source_note
from adaptinf.log.public import noise_told
from adaptinf.log.report import Stopping
from adaptinf.log.traits import LOOKS, PLAN
from adaptinf.sums import Sums

if TYPE_CHECKING:
    from adaptinf.inference.results.log_facts import LogFacts
    from adaptinf.inference.validity.profile import LogProfile

_CONTEXTS = {
    "groups": "the group",
    "vectors": "each arm's context vector",
    "position": "the position of the context",
    "yes": "the context",
}


def arms_seen(log: AdaptiveLog) -> pd.DataFrame:
    """One row per arm in a log: rounds, mean reward, and the smallest propensity when it was chosen."""
    arrays = log.arrays
    columns = {"reward": arrays.recorded}
    if arrays.propensity is not None:
        columns["propensity"] = arrays.propensity
    by_arm = pd.DataFrame(columns).groupby(arrays.action)
    table = pd.DataFrame({"rounds": by_arm.size(), "mean reward": by_arm["reward"].mean()})
    if arrays.observed is not None:
        table["rewards missing"] = by_arm.size() - by_arm["reward"].count()
    if arrays.propensity is not None:
        table["smallest propensity when chosen"] = by_arm["propensity"].min()
    table = table.reindex(range(log.n_arms))
    for name in {"rounds", "rewards missing"} & set(table):
        table[name] = table[name].fillna(0).astype(int)
    table.insert(0, "arm", [str(arm) for arm in log.arms])
    return table


def arms_summed(sums: Sums) -> pd.DataFrame:
    """The same for sums."""
    cells = sums.cells.about(0.0)
    return pd.DataFrame(
        {
            "arm": [str(arm) for arm in sums.arms],
            "rounds": cells.pulls.sum(axis=0).astype(int),
            "mean reward": cells.moments[0, 1].sum(axis=0) / cells.pulls.sum(axis=0),
            "smallest propensity": cells.smallest.min(axis=0),
        }
    )


def arm_rows(log: AdaptiveLog | Sums, *, means: bool = True) -> tuple[list[str], list[list[str]]]:
    """Headers and rows of the table of arms, as texts.

    `means` is False if the table is next to estimates, because sample means would then be a second answer to
    the same question.
    """
    frame = arms_summed(log) if isinstance(log, Sums) else arms_seen(log)
    if not means:
        frame = frame.drop(columns="mean reward")
    rows = [[_cell(value) for value in row] for row in frame.itertuples(index=False, name=None)]
    return list(frame.columns), rows


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.4g}"
    return f"{value:,}"


def design_told(log: AdaptiveLog | Sums) -> str:
    """Name and parameters of the design, and what is not known about it."""
    record = log.design
    if record is None:
        return claims.UNNAMED_DESIGN()
    known = {name: value for name, value in record.parameters.items() if name not in (PLAN, LOOKS)}
    given = ", ".join(f"{name} = {value}" for name, value in known.items() if value is not None)
    return f"{record.name} ({given})" if given else record.name


def traits_told(log: AdaptiveLog | Sums) -> str:
    """Whether the design adapts, and to what."""
    traits = None if log.design is None else log.design.traits
    if traits is None:
        return _stated(log)
    adapts = claims.ADAPTS if traits.adapts else claims.DOES_NOT_ADAPT
    return sentence([adapts(), _contexts_told(traits.uses_context)])


def _stated(log: AdaptiveLog | Sums) -> str:
    """Statements of a log without a design about rewards and contexts."""
    free = log.context_free
    if log.adaptive is None and free is None:
        return claims.UNSTATED()
    reacted = "" if log.adaptive is None else ADAPTIVE(reacted="adapted" if log.adaptive else "did not adapt")
    contexts = {True: claims.INDEPENDENT, False: claims.DEPENDED, None: claims.CONTEXTS_UNSTATED}[free]
    return sentence([reacted or claims.REWARDS_UNSTATED(), contexts()])


def _contexts_told(use: str) -> str:
    """Statements of a design about its use of contexts."""
    if use == "no":
        return claims.INDEPENDENT()
    return claims.DEPENDS(contexts=_CONTEXTS[use]) if use in _CONTEXTS else claims.POSSIBLY()


def log_facts(log: AdaptiveLog | Sums) -> list[tuple[str, str]]:
    """Statements of the log about the design, its traits, and how it was read."""
    facts = [("Allocation rule", design_told(log)), ("What it depends on", traits_told(log))]
    facts.append(("Number of rounds", f"{log.n_rounds:,}, stopping {Stopping.of(log).told}"))
    if isinstance(log, Sums):
        return [*facts, ("Data", claims.SUMS(batches=log.n_batches))]
    report = log.report
    facts += [("Data", f"read from {report.source}"), ("Outcome", report.outcome)]
    facts += [(f"Reading, {reading.kind}", reading.text) for reading in report.readings]
    if log.missing is not None:
        facts.append(("Missing rewards", f"taken as missing={log.missing!r}"))
    return facts


def uncovered_promise(log: AdaptiveLog | Sums | None, facts: LogFacts, *, released: bool) -> str:
    """The guarantee of a private log whose raw numbers a report shows; empty if it shows none."""
    promised = facts.guarantee
    private = bool(facts.unpromised) if promised is None else promised.epsilon > 0.0
    if not private or (released and log is None):
        return ""
    if promised is not None and math.isfinite(promised.epsilon):
        return claims.BEYOND_GUARANTEE(guarantee=promised)
    return claims.UNCOVERED()


def guarantee_facts(
    log: AdaptiveLog | Sums | None, facts: LogFacts, *, released: bool
) -> list[tuple[str, str]]:
    """The privacy guarantee, its source, the noise behind it, and whether it covers the report."""
    promised = facts.guarantee
    if promised is None:
        why = "; ".join(facts.unpromised) or claims.NO_PRIVACY()
        return [("Guarantee", f"none: {why}")]
    pairs = [("Guarantee", f"{promised}{source_note('stated' if facts.stated else None)}")]
    shows = claims.SHOWS_RELEASES if released and log is None else claims.SHOWS_RAW
    pairs += [("These results", shows())]
    pairs += [("Noise", noise_told(facts.noise).strip("; ,()") or "unknown")]
    if facts.person is not None and facts.person.rounds > 1:
        pairs.append(("With all rounds of a unit", str(facts.person)))
    pairs += [("Auxiliary log", str(own)) for own in facts.auxiliary]
    if isinstance(log, AdaptiveLog):
        pairs += [("Why", reason) for reason in promised.reasons]
    return pairs


class StatementFacts:
    """Facts for claims about a log's own statements."""

    def __init__(self, profile: LogProfile) -> None:
        self.profile = profile

    @property
    def states_context_free(self) -> bool:
        """Whether the log states that contexts did not affect the choice."""
        return self.profile.log.context_free is True

    @property
    def contexts_found(self) -> Finding | None:
        """Whether a context visibly affected the choice."""
        return self.profile.context_followed(log_claims.FOLLOWED)


def log_cautions(log: AdaptiveLog | Sums) -> list[str]:
    """Evidence against a log and its statements; empty if there is none."""
    facts = StatementFacts(profile_of(log))
    stated = contradictions(said(log_claims.STATED, facts, "assumes"))
    return [*evidence_told(log), *stated, *said(log_claims.STATED, facts, "caution")]
