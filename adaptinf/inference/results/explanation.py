"""The basis of a result: all claims about it, and the lines under its table."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adaptinf.claims import Said, tables
from adaptinf.claims.claim import KINDS, answers, sentences
from adaptinf.claims.privacy import guarantees
from adaptinf.claims.views import Assumed
from adaptinf.inference.results.log_facts import USUAL, without_meaning
from adaptinf.inference.results.multiplicity import AT_ONCE, adjustment_note, at_once_note
from adaptinf.texts import ROOM, several, visible_lines

if TYPE_CHECKING:
    import pandas as pd

    from adaptinf.inference.results.simultaneous import JointInference

LABEL = 10
"""Width, in columns, of the labels of the lines under a table."""
MORE = "result.explain()"
"""The call that lists all claims."""
_LINES = 6
_METHOD_LINES = 2
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Reason:
    """A claim about a result.

    Attributes
    ----------
    kind : str
        The kind of claim: ``"caution"``, ``"missing"`` (why a value is missing), ``"note"`` (how a value was
        computed), ``"assumes"``, ``"target"`` (what is estimated), ``"advice"`` or ``"privacy"``.
    text : str
        The claim.
    check : str
        For an assumption, ``"checked"``, ``"contradicted"`` or ``"cannot be checked from this log"``; empty
        for other claims.
    short : str
        A shorter version of the claim, for the lines under the table.
    """

    kind: str
    text: str
    check: str = ""
    short: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """All assumptions, cautions and notes of a result; created by ``result.explain()``.

    Attributes
    ----------
    title : str
        Title of the table to which the explanation refers.
    reasons : tuple of Reason
        The claims, with cautions first.
    """

    title: str
    reasons: tuple[Reason, ...]

    def of(self, kind: str) -> tuple[Reason, ...]:
        """The claims of one kind, such as ``"caution"``."""
        return tuple(one for one in self.reasons if one.kind == kind)

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of all claims."""
        return tuple(one.text for one in self.reasons)

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with one row for each claim.

        Returns
        -------
        DataFrame
            Columns kind, text and check, as in `reasons`.
        """
        import pandas as pd

        rows = [(one.kind, one.text, one.check) for one in self.reasons]
        return pd.DataFrame(rows, columns=["kind", "text", "check"])

    def __str__(self) -> str:
        parts = [self.title]
        for heading, items in self._sections():
            parts += ["", heading, *(line for item in items for line in _wrapped(item, "- ", "  "))]
        return visible_lines(parts)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from adaptinf.markup import escaped

        parts = [f"<p><strong>{escaped(self.title)}</strong></p>"]
        for heading, items in self._sections():
            inner = "\n".join(f"<li>{escaped(item)}</li>" for item in items)
            parts.append(f"<p>{heading}</p>\n<ul>\n{inner}\n</ul>")
        return "\n".join(parts)

    def _sections(self) -> Iterator[tuple[str, list[str]]]:
        """The headings, each with its claims as sentences; headings without claims are left out."""
        for kind, heading in tables.HEADINGS.items():
            if items := [_item(one) for one in self.of(kind)]:
                yield heading, items


def explained(results: JointInference, alpha: float, adjust: str | None = None) -> Explanation:
    """All claims about a result with intervals of level 1 - alpha."""
    reasons = [
        reason
        for answer in answers(tables.FOOTER, Footer(results, alpha, adjust), KINDS)
        for text in sentences(answer)
        for reason in reasons_of(text, answer[0].kind)
    ]
    order = list(tables.HEADINGS)
    listed = sorted(dict.fromkeys(reasons), key=lambda one: order.index(one.kind))
    return Explanation(f"{results.model} Results", tuple(listed))


def reasons_of(text: str, among: str) -> list[Reason]:
    """The claim that a caution or a note states, or the clauses of a note on assumptions."""
    if isinstance(text, Assumed):
        return [one for clause in text.clauses for one in reasons_of(clause, among)]
    if among == "caution" or not isinstance(text, Said):
        return [Reason(among, text)]
    kind = text.claim.kind if text.claim.kind in tables.HEADINGS else "note"
    check = tables.CHECKS[text.status] if kind == "assumes" else ""
    return [Reason(kind, text, check, text.short)]


def lines(explanation: Explanation, estimator: str) -> tuple[tuple[str, str], ...]:
    """Labelled lines under a table: cautions and missing values in full, and the rest in six lines."""
    warned = [("Caution", full_sentence(one.text)) for one in explanation.of("caution")]
    warned += [("Missing", full_sentence(one.text)) for one in explanation.of("missing")]
    ending = [
        (label, text)
        for label, text in (
            ("Advice", _fitted(explanation.of("advice"), 2)),
            ("Privacy", _fitted(explanation.of("privacy"), 2)),
            ("More", MORE),
        )
        if text
    ]
    used = sum(len(_filled(text)) for _, text in ending)
    method = method_line(explanation, estimator, min(_METHOD_LINES, _LINES - used - 1))
    used += len(_filled(method))
    assumes = assumed_briefly(explanation, max(1, _LINES - used))
    found = [("Method", method), ("Assumes", assumes)]
    return (*warned, *((label, text) for label, text in found if text), *ending)


def method_line(explanation: Explanation, estimator: str, most: int) -> str:
    """Text on estimator, weights, adjustments and distribution, in a limited number of lines."""
    notes = sorted(explanation.of("note"), key=_is_law)
    known = tables.ESTIMATORS.get(estimator)
    name = known().short if known is not None else estimator
    return joined_clauses([name, *(one.short for one in notes)], most)


def _is_law(reason: Reason) -> bool:
    """Whether a claim names the distribution of p-values and intervals."""
    return isinstance(reason.text, Said) and reason.text.claim in (tables.LAW, tables.EXACT_LAW)


def estimator_name(estimator: str) -> str:
    """The name of an estimator in a sentence."""
    known = tables.ESTIMATORS.get(estimator)
    return estimator if known is None else known()


def assumed_briefly(explanation: Explanation, most: int) -> str:
    """The assumptions in brief: those that were checked, followed by those that no log can show."""
    asked, unasked = [], []
    for one in explanation.of("assumes"):
        words = one.short or one.text
        if one.check == tables.CHECKS[""]:
            unasked.append(words)
        else:
            asked.append(f"{words} ({_checked(one)})")
    if unasked:
        unasked[0] = f"not checkable: {unasked[0]}"
    return joined_clauses([*asked, *unasked], most)


def _fitted(reasons: Sequence[Reason], most: int) -> str:
    return joined_clauses([one.short for one in reasons if one.short], most)


def joined_clauses(parts: Iterable[str], most: int) -> str:
    """As many clauses as fit into the given number of lines, in one sentence, with the number left out."""
    listed = list(dict.fromkeys(part for part in parts if part))
    if not listed or most < 1:
        return ""
    for kept in range(len(listed), 0, -1):
        left = len(listed) - kept
        text = full_sentence("; ".join([*listed[:kept], *([f"{left} more"] if left else [])]))
        if len(_filled(text)) <= most:
            return text
    return textwrap.shorten(full_sentence(listed[0]), most * (ROOM - LABEL) - LABEL, placeholder=" ...")


def _filled(text: str) -> list[str]:
    return textwrap.wrap(text, ROOM - LABEL, break_on_hyphens=False)


def full_sentence(text: str) -> str:
    """The text with a full stop, and with an initial capital unless it begins with a name."""
    ended = text if text.endswith((".", "!", "?")) else f"{text}."
    if isinstance(text, Said) and text.claim.sentence.startswith("{"):
        return ended
    return f"{ended[:1].upper()}{ended[1:]}"


def _checked(reason: Reason) -> str:
    """Whether an assumption was checked, and what the check cannot see."""
    return f"{reason.check}{reason.text.scope if isinstance(reason.text, Said) else ''}"


def _item(reason: Reason) -> str:
    """A claim as a sentence, with the result of its check."""
    told = full_sentence(reason.text)
    return f"{told[:-1]} ({_checked(reason)})." if reason.check and told.endswith(".") else told


def _wrapped(text: str, first: str, further: str) -> list[str]:
    return textwrap.wrap(text, ROOM, initial_indent=first, subsequent_indent=further, break_on_hyphens=False)


class Footer:
    """The facts on which claims under a table with intervals of level 1 - alpha depend."""

    def __init__(self, results: JointInference, alpha: float, adjust: str | None) -> None:
        self.results, self._alpha, self._adjust = results, alpha, adjust
        self.facts = results.facts
        self.efficiency_note, self.readings = results.efficiency_note, results.facts.readings

    @property
    def naive(self) -> bool:
        """Whether no results in the table allow for adaptive assignment."""
        return self.results.validity == "not valid" and self.results.correction is None

    @property
    def corrected_alone(self) -> bool:
        """Whether only the corrected results allow for adaptive assignment."""
        return self.results.validity == "not valid" and self.results.correction is not None

    @property
    def cautions(self) -> tuple[str, ...]:
        """Evidence against the results."""
        return self.results.cautions

    @property
    def law(self) -> list[str]:
        """The distribution from which p-values and intervals are computed."""
        return self.results._law_said(self._alpha)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes of the model and, unless these give a reason, notes on why terms have no limits."""
        return (*self.results.notes, *self._without_interval)

    @property
    def _without_interval(self) -> tuple[str, ...]:
        results, alpha, adjust = self.results, self._alpha, self._adjust
        if adjust is None and alpha == USUAL:
            return ()
        import numpy as np

        shown = results.conf_int_simultaneous(alpha) if adjust == AT_ONCE else results.conf_int(alpha)
        lacking = np.isnan(shown.to_numpy()).any(axis=1) & ~np.isnan(results.log_pvalues.to_numpy())
        if not lacking.any():
            return ()
        asked = (results.terms, results.estimands, results.facts, results.std_error)
        limits = np.where(lacking[:, None], results.reference.interval(float(np.log(alpha))), np.nan)
        return tuple(note for note in without_meaning(limits, *asked) if note not in results.notes)

    @property
    def adjustment(self) -> str:
        """How p-values and intervals account for the number of terms."""
        results, adjust = self.results, self._adjust
        if adjust is None:
            return ""
        count = int((~results.pvalues.isna()).sum())
        if adjust == AT_ONCE:
            left = int(results._without_information.sum())
            return at_once_note(count - left, results.covariance is not None)
        return adjustment_note(adjust, count, corrected=results.correction is not None)

    @property
    def outside_family(self) -> dict[str, str]:
        """Terms that simultaneous inference leaves out."""
        if self._adjust != AT_ONCE:
            return {}
        flags = self.results._without_information
        left = [str(term) for term, flag in zip(self.results.terms, flags, strict=True) if flag]
        return {"terms": several(left, _NAMED)} if left else {}

    @property
    def without_std_error(self) -> bool:
        """Whether p-values and intervals do not use standard errors."""
        return not self.results.reference.uses_std_error

    @property
    def correction(self) -> list[str]:
        """Statements on the basis of the corrected columns."""
        correction, law = self.results.correction, self.results.reference
        if correction is None:
            return []
        claim = tables.CORRECTION_IMPOSSIBLE if correction.vacuous(self._alpha) else tables.CORRECTED
        notes = [claim(correction=correction.describe(self._alpha)), correction.coverage]
        return notes if law.exact else [*notes, tables.FAR_OUT(law=law.name)]

    @property
    def corrects_rounds(self) -> bool:
        """Whether results are corrected by round although some units have several rounds."""
        person = self.facts.person
        several = self.facts.n_units is not None or (person is not None and person.rounds > 1)
        return self.results.correction is not None and several

    @property
    def repeated_units(self) -> dict[str, int]:
        """Number of units, if some have several rounds for which the result does not allow."""
        units = self.facts.n_units
        return {} if units is None else {"units": units, "rounds": self.facts.n_rounds}

    @property
    def withdrawn(self) -> dict[str, str]:
        """Reasons why the design's guarantee does not hold."""
        return {"why": "; ".join(self.facts.unpromised)} if self.facts.unpromised else {}

    @property
    def privacy(self) -> list[str]:
        """Statements on the guarantee, its source, and the extent to which it covers these results."""
        guarantee = self.facts.guarantee
        if guarantee is None:
            return []
        promised = guarantees.AS_STATED if self.facts.stated else guarantees.PROMISED
        parts: list[str] = [promised(guarantee=guarantee)]
        if math.isinf(guarantee.epsilon):
            parts.append(guarantees.COVERS_NOTHING())
        elif self.results.private:
            parts.append(guarantees.COVERS_RELEASES())
        else:
            standard = guarantee.notion == "standard"
            covers = guarantees.COVERS_ACTIONS if standard else guarantees.COVERS_ACTIONS_OF_OTHERS
            parts += [covers(), guarantees.NOT_COVERED()]
        return parts

    @property
    def all_rounds_of_a_unit(self) -> dict[str, Any]:
        """The guarantee for all rounds of a person who has several."""
        person = self.facts.person
        told = self.facts.guarantee is not None and person is not None and person.rounds > 1
        return {"guarantee": person} if told else {}

    @property
    def auxiliary(self) -> dict[str, str]:
        """The guarantees for participants in auxiliary logs."""
        told = self.facts.guarantee is not None and self.facts.auxiliary
        return {"guarantees": "; ".join(map(str, self.facts.auxiliary))} if told else {}

    @property
    def simulation_noise(self) -> bool:
        """Whether the noise was drawn for a simulation."""
        return self.facts.noise == "simulation"
