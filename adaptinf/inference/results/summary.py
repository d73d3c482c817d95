"""Summary tables: statsmodels' own, with every cell and note escaped for LaTeX and HTML.

Imported when a summary is first asked for, because statsmodels takes a while to load.
"""

from __future__ import annotations

import csv
import html
import io
import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from statsmodels.iolib.table import SimpleTable

from adaptinf.claims import said, tables
from adaptinf.claims.privacy import guarantees
from adaptinf.inference.results.log_facts import USUAL, without_meaning
from adaptinf.inference.results.multiplicity import (
    ADJUSTMENTS,
    AT_ONCE,
    adjusted_logs,
    adjustment_note,
    at_once_note,
    check_adjustment,
)
from adaptinf.inference.results.tables import (
    cell_widths,
    escape_latex,
    escape_markdown,
    format_number,
    format_pvalue,
    format_statistic,
    great_table,
    is_rule,
    latex_float,
    markdown_table,
    text_table,
    total_width,
)
from adaptinf.parameters import check_alpha
from adaptinf.texts import literal, spreadsheet_cell

if TYPE_CHECKING:
    from great_tables import GT

    from adaptinf.guarantee import PrivacyGuarantee
    from adaptinf.inference.results.log_facts import LogFacts
    from adaptinf.inference.results.simultaneous import JointInference
    from adaptinf.typing import FloatArray


def footer(results: JointInference, alpha: float = 0.05) -> tuple[str, ...]:
    """Notes under a summary, in their order."""
    return tuple(said(tables.FOOTER, Footer(results, alpha)))


class Footer:
    """What claims ask of a result; alpha is the level of its intervals."""

    def __init__(self, results: JointInference, alpha: float) -> None:
        self.results, self._alpha = results, alpha
        self.facts, self.notes = results.facts, results.notes
        self.efficiency_note, self.readings = results.efficiency_note, results.facts.readings

    @property
    def exact_law(self) -> dict[str, str]:
        """P-values and intervals are exact."""
        return {"law": self.results.reference.name} if self.results.reference.exact else {}

    @property
    def approximate_law(self) -> dict[str, str]:
        """They are not."""
        return {} if self.results.reference.exact else {"law": self.results.reference.name}

    @property
    def without_std_error(self) -> bool:
        """P-values and intervals do not use standard errors."""
        return not self.results.reference.uses_std_error

    @property
    def correction(self) -> str:
        """What corrected columns rest on."""
        correction, law = self.results.correction, self.results.reference
        if correction is None:
            return ""
        claim = tables.CORRECTION_IMPOSSIBLE if correction.vacuous(self._alpha) else tables.CORRECTED
        note = claim(correction=correction.describe(self._alpha), covers=correction.coverage)
        return note if law.exact else f"{note} {tables.FAR_OUT(law=law.name)}"

    @property
    def corrects_rounds(self) -> bool:
        """There is a correction by round, and some unit has several."""
        person = self.facts.person
        several = self.facts.n_units is not None or (person is not None and person.rounds > 1)
        return self.results.correction is not None and several

    @property
    def cautions(self) -> Sequence[dict[str, str]]:
        """Each caution."""
        return [{"caution": caution} for caution in self.results.cautions]

    @property
    def repeated_units(self) -> dict[str, int]:
        """Units with several rounds, for which nothing allows."""
        units = self.facts.n_units
        return {} if units is None else {"units": units, "rounds": self.facts.n_rounds}

    # Privacy

    @property
    def withdrawn(self) -> dict[str, str]:
        """Why the design's promise does not hold."""
        return {"why": "; ".join(self.facts.unpromised)} if self.facts.unpromised else {}

    @property
    def privacy(self) -> str:
        """What is promised, by whom, and what of that covers these numbers."""
        guarantee = self.facts.guarantee
        if guarantee is None:
            return ""
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
        return " ".join(parts)

    @property
    def all_rounds_of_a_unit(self) -> dict[str, Any]:
        """The guarantee of a person with several rounds."""
        person = self.facts.person
        told = self.facts.guarantee is not None and person is not None and person.rounds > 1
        return {"guarantee": person} if told else {}

    @property
    def auxiliary(self) -> dict[str, str]:
        """Guarantees of participants of auxiliary logs."""
        told = self.facts.guarantee is not None and self.facts.auxiliary
        return {"guarantees": "; ".join(map(str, self.facts.auxiliary))} if told else {}

    @property
    def simulation_noise(self) -> bool:
        """The noise was drawn for a simulation."""
        return self.facts.noise == "simulation"


_MIN_WIDTH = 78
_FACT_GAP = "   "


class ResultSummary:
    """Tables and notes of one result, as text, Markdown, LaTeX, HTML or CSV.

    Parameters
    ----------
    title : str
        Heading.
    tables : sequence of SimpleTable
        Header block and coefficients.
    notes : sequence of str
        Footer, one entry per note.

    Attributes
    ----------
    tables : list of SimpleTable
        As given.
    notes : tuple of str
        As given.
    """

    def __init__(self, title: str, tables: Sequence[SimpleTable], notes: Sequence[str]) -> None:
        self.title = literal(title)
        self.tables = list(tables)
        self.notes = tuple(map(literal, notes))

    def __str__(self) -> str:
        return self.as_text()

    def __repr__(self) -> str:
        return f'{type(self)}\n"""\n{self}\n"""'

    def _repr_html_(self) -> str:
        return self.as_html()

    def _repr_latex_(self) -> str:
        return self.as_latex()

    def as_text(self) -> str:
        """Summary as plain text, its notes wrapped to the width of the tables."""
        lines = "\n".join(table.as_text() for table in self.tables).split("\n")
        # Where one table ends and the next begins two rules meet: one is enough.
        kept = [
            x for x, after in zip(lines, [*lines[1:], ""], strict=True) if not (is_rule(x) and x == after)
        ]
        width = max(len(line) for line in kept)
        text = [self.title.center(width).rstrip(), *(line.rstrip() for line in kept)]
        if self.notes:
            text.append("Notes:")
        for number, note in enumerate(self.notes, start=1):
            head = f"[{number}] "
            text += textwrap.wrap(
                note,
                width,
                initial_indent=head,
                subsequent_indent=" " * len(head),
                break_long_words=False,
                break_on_hyphens=False,
            )
        return "\n".join(text)

    def as_latex(self, caption: str | None = None, label: str | None = None) -> str:
        """Summary as LaTeX: a `table` with caption, tabulars and notes, for the booktabs package.

        A tabular alone is ``summary.tables[-1].as_latex_tabular(center=False)``.

        Parameters
        ----------
        caption : str, optional
            LaTeX, taken as it is; the title by default.
        label : str, optional
            For references, such as ``"tab:trial"``.
        """
        notes = [rf"[{n}] {escape_latex(note)}" for n, note in enumerate(self.notes, start=1)]
        return latex_float(
            escape_latex(self.title) if caption is None else caption, self.tables, notes, label
        )

    def to_gt(self) -> GT:
        """The table as a Great Table, with facts and notes below it.

        Raises
        ------
        MissingDependencyError
            If Great Tables is not installed.
        """
        return great_table(self.title, self.tables, self.notes)

    def as_html(self) -> str:
        """Summary as HTML tables, the notes as a numbered list."""
        # Its title is no heading: pages that show it have an order of their own.
        title = f"<p><strong>{html.escape(self.title)}</strong></p>"
        parts = [title, *(table.as_html() for table in self.tables)]
        if self.notes:
            items = "\n".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
            parts.append(f"<p>Notes:</p>\n<ol>\n{items}\n</ol>")
        return "\n".join(parts)

    def as_markdown(self) -> str:
        """Summary as Markdown tables, the notes as a numbered list."""
        parts = [f"**{escape_markdown(self.title)}**", *map(markdown_table, self.tables)]
        if self.notes:
            items = [f"{n}. {escape_markdown(note)}" for n, note in enumerate(self.notes, start=1)]
            parts.append("\n".join(items))
        return "\n\n".join(parts)

    def as_csv(self) -> str:
        """Summary as comma-separated text; ``Results.to_frame`` gives full precision.

        Texts that a spreadsheet would take for formulas begin with an apostrophe.
        """
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        rows = [[self.title], *(row for table in self.tables for row in table.data)]
        for row in [*rows, *([note] for note in self.notes)]:
            writer.writerow([spreadsheet_cell(str(cell)) for cell in row])
        return stream.getvalue()


def summarise(results: JointInference, alpha: float, adjust: str | None = None) -> ResultSummary:
    """Summary of a result."""
    check_alpha("summary", alpha)
    if adjust is not None:
        check_adjustment("summary", adjust, AT_ONCE)
    header, rows = _coefficients(results, alpha, adjust)
    facts = _facts(results)
    # The narrower of the two tables is padded, so that they end at the same column.
    coefficient_widths = cell_widths([header[0], header[1], *rows], minimum=8)
    fact_widths = cell_widths(facts, minimum=0)
    width = max(_MIN_WIDTH, total_width(coefficient_widths, " "), total_width(fact_widths, _FACT_GAP))
    coefficient_widths[0] += width - total_width(coefficient_widths, " ")
    fact_widths[1] += width - total_width(fact_widths, _FACT_GAP)
    shown = [
        text_table(
            [row[1:] for row in facts], None, [row[0] for row in facts], fact_widths, "lrlr", _FACT_GAP
        ),
        text_table(
            [row[1:] for row in rows],
            [f"{top}\n{bottom}" if any(header[0]) else bottom for top, bottom in zip(*header, strict=True)][
                1:
            ],
            [row[0] for row in rows],
            coefficient_widths,
            "l" + "r" * (len(header[0]) - 1),
        ),
    ]
    notes = (*footer(results, alpha), *_without_interval(results, alpha, adjust))
    if adjust is not None:
        count = int(np.isfinite(results.pvalues.to_numpy()).sum())
    if adjust == AT_ONCE:
        notes = (at_once_note(count, results.covariance is not None), *notes)
    elif adjust is not None:
        notes = (*notes, adjustment_note(adjust, count, corrected=results.correction is not None))
    return ResultSummary(f"{results.model} Results", shown, notes)


def _coefficients(
    results: JointInference, alpha: float, adjust: str | None
) -> tuple[tuple[list[str], list[str]], list[list[str]]]:
    letter, logs, at_once = results.reference.statistic, results.log_pvalues, adjust == AT_ONCE
    test = "P exact" if results.reference.exact else f"P>|{letter}|"
    limits = [f"[{alpha / 2:.6g}", f"{1 - alpha / 2:.6g}]"]
    bottom = ["", "coef", "std err", letter, test, *limits]
    top = [""] * len(bottom)
    columns = [
        [format_number(x) for x in results.estimate],
        [format_number(x) for x in results.std_error],
        [format_statistic(x) for x in results.tvalues],
        [format_pvalue(x) for x in logs],
        *_limit_columns(
            (results.conf_int_simultaneous(alpha) if at_once else results.conf_int(alpha)).to_numpy()
        ),
    ]
    if at_once:
        top[-2:] = ["at once"] * 2
        with np.errstate(divide="ignore"):
            together = np.log(results.pvalues_simultaneous().to_numpy())
        columns.insert(4, [format_pvalue(x) for x in together])
        bottom.insert(5, "P")
        top.insert(5, "at once")
    if results.correction is not None:
        bottom += [test, *limits]
        top += ["corrected"] * 3
        logs = results.log_pvalues_corrected
        columns += [
            [format_pvalue(x) for x in logs],
            *_limit_columns(results.conf_int_corrected(alpha).to_numpy()),
        ]
    if adjust is not None and not at_once:
        top.append(ADJUSTMENTS[adjust])
        bottom.append("P")
        columns.append([format_pvalue(x) for x in adjusted_logs(np.asarray(logs, dtype=np.float64), adjust)])
    rows = [[term, *cells] for term, *cells in zip(map(str, results.terms), *columns, strict=True)]
    return (top, bottom), rows


def _without_interval(results: JointInference, alpha: float, adjust: str | None) -> tuple[str, ...]:
    """Why terms have no limits at this level, where the notes do not say it of the usual one."""
    if adjust is None and alpha == USUAL:
        return ()
    shown = results.conf_int_simultaneous(alpha) if adjust == AT_ONCE else results.conf_int(alpha)
    lacking = np.isnan(shown.to_numpy()).any(axis=1) & ~np.isnan(results.log_pvalues.to_numpy())
    if not lacking.any():
        return ()
    asked = (results.terms, results.estimands, results.facts.spread, results.std_error)
    limits = np.where(lacking[:, None], results.reference.interval(float(np.log(alpha))), np.nan)
    return tuple(note for note in without_meaning(limits, *asked) if note not in results.notes)


def _facts(results: JointInference) -> list[list[str]]:
    facts = results.facts
    ess = results.ess.to_numpy()
    left = [
        ("Model:", results.model),
        ("Estimator:", results.estimator),
        ("Weights:", results.weights or "none"),
        ("Design:", facts.design or "unknown"),
        ("Guarantee:", _covered(facts, results.private)),
    ]
    needs_noise = facts.guarantee is not None and facts.guarantee.epsilon > 0.0
    right = [
        ("No. rounds:", str(facts.n_rounds)),
        ("Effective sample (min):", f"{np.nanmin(ess):.1f}" if np.any(np.isfinite(ess)) else "unknown"),
        (
            "Smallest propensity:",
            format_number(results.min_propensity) if results.min_propensity > 0 else "not used",
        ),
        ("Noise backend:", facts.noise or ("unknown" if needs_noise else "none")),
        ("Null:", f"{results.null:g}"),
    ]
    if facts.outcome:
        left.append(("Outcome:", facts.outcome))
        right.append(("", ""))
    return [[*a, *b] for a, b in zip(left, right, strict=True)]


def _covered(facts: LogFacts, private: bool) -> str:
    """What is promised of the numbers of a table, which is nothing unless all are from releases."""
    if facts.guarantee is not None and not private:
        return "not covered"
    return _short_guarantee(facts.guarantee) + (" (stated)" if facts.stated else "")


def _short_guarantee(guarantee: PrivacyGuarantee | None) -> str:
    if guarantee is None:
        return "none"
    delta = f", delta = {guarantee.delta:.3g}" if guarantee.delta > 0 else ""
    unit = "person" if guarantee.rounds > 1 else guarantee.unit
    return f"epsilon = {guarantee.epsilon:.4g}{delta}, per {unit}"


def _limit_columns(limits: FloatArray) -> tuple[list[str], list[str]]:
    return [format_number(x) for x in limits[:, 0]], [format_number(x) for x in limits[:, 1]]
