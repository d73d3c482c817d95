"""Summary tables in the style of statsmodels, with all cells and notes escaped for LaTeX and HTML.

This module is imported only when a summary is requested, because statsmodels takes a while to load.
"""

from __future__ import annotations

import csv
import html
import io
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from statsmodels.iolib.table import SimpleTable

from adaptinf.inference.results.explanation import LABEL, explained, lines
from adaptinf.inference.results.multiplicity import (
    ADJUSTMENTS,
    AT_ONCE,
    adjusted_logs,
    check_adjustment,
)
from adaptinf.inference.results.tables import (
    LiteralTable,
    cell_widths,
    escape_latex,
    escape_markdown,
    format_number,
    format_pvalue,
    format_statistic,
    great_table,
    latex_float,
    limit_heads,
    markdown_table,
    p_head,
    stacked,
    text_table,
    total_width,
)
from adaptinf.parameters import check_alpha
from adaptinf.texts import ROOM, level_text, literal, spreadsheet_cell

if TYPE_CHECKING:
    from great_tables import GT

    from adaptinf.inference.results.log_facts import LogFacts
    from adaptinf.inference.results.simultaneous import JointInference
    from adaptinf.typing import FloatArray


_WIDTH = 78
_FACT_GAP = "   "
_PAIR = 36
"""Largest number of characters in a fact that is placed next to another."""
_CELL = 8
_LISTED = 4
"""Number of arms whose rounds are listed however long their names are."""


class ResultSummary:
    """Tables and notes of a result, as text, Markdown, LaTeX, HTML or CSV.

    Parameters
    ----------
    title : str
        Heading.
    tables : sequence of SimpleTable
        The header block and the table of estimates.
    notes : sequence of str
        Notes, which are numbered below the tables.
    lines : sequence of (str, str)
        Labels such as "Caution", each with its text, which are shown below the tables.

    Attributes
    ----------
    tables : list of SimpleTable
        As given.
    notes : tuple of str
        As given.
    lines : tuple of (str, str)
        As given.
    """

    def __init__(
        self,
        title: str,
        tables: Sequence[SimpleTable],
        notes: Sequence[str] = (),
        lines: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.title = literal(title)
        self.tables = list(tables)
        self.notes = tuple(map(literal, notes))
        self.lines = tuple((label, literal(text)) for label, text in lines)

    def __str__(self) -> str:
        return self.as_text()

    def __repr__(self) -> str:
        return f'{type(self)}\n"""\n{self}\n"""'

    def _repr_html_(self) -> str:
        return self.as_html()

    def _repr_latex_(self) -> str:
        return self.as_latex()

    def as_text(self) -> str:
        """The summary as plain text, with notes wrapped to the width of the tables."""
        kept = stacked(self.tables, _WIDTH if self.lines else 0)
        width = max(map(len, kept))
        text = [self.title.center(width).rstrip(), *kept]
        for label, said in self.lines:
            text += _wrapped(said, max(width, ROOM), label.ljust(LABEL))
        if self.notes:
            text.append("Notes:")
        for number, note in enumerate(self.notes, start=1):
            text += _wrapped(note, width, f"[{number}] ")
        return "\n".join(text)

    def as_latex(self, caption: str | None = None, label: str | None = None) -> str:
        """Return the summary in LaTeX: a `table` with caption, tabulars and notes, for the booktabs package.

        For a tabular alone, use ``summary.tables[-1].as_latex_tabular(center=False)``.

        Parameters
        ----------
        caption : str, optional
            The caption in LaTeX, which is used unchanged; by default, the title.
        label : str, optional
            Label for references, such as ``"tab:trial"``.
        """
        notes = [rf"\textit{{{name}}} {escape_latex(text)}" for name, text in self.lines]
        notes += [rf"[{n}] {escape_latex(note)}" for n, note in enumerate(self.notes, start=1)]
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
        return great_table(self.title, self.tables, [*map(": ".join, self.lines), *self.notes])

    def as_html(self) -> str:
        """The summary as HTML tables, with notes as a numbered list."""
        # The title is not marked up as a heading, because pages that show the table have headings of their
        # own.
        title = f"<p><strong>{html.escape(self.title)}</strong></p>"
        parts = [title, *(table.as_html() for table in self.tables)]
        if self.lines:
            said = [f"<dt>{label}</dt><dd>{html.escape(text)}</dd>" for label, text in self.lines]
            parts.append("<dl>\n" + "\n".join(said) + "\n</dl>")
        if self.notes:
            items = "\n".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
            parts.append(f"<p>Notes:</p>\n<ol>\n{items}\n</ol>")
        return "\n".join(parts)

    def as_markdown(self) -> str:
        """The summary as Markdown tables, with notes as a numbered list."""
        parts = [f"**{escape_markdown(self.title)}**", *map(markdown_table, self.tables)]
        if self.lines:
            parts.append("\n".join(f"- **{label}:** {escape_markdown(text)}" for label, text in self.lines))
        if self.notes:
            items = [f"{n}. {escape_markdown(note)}" for n, note in enumerate(self.notes, start=1)]
            parts.append("\n".join(items))
        return "\n\n".join(parts)

    def as_csv(self) -> str:
        """The summary as comma-separated text; ``Results.to_frame`` has full precision.

        An apostrophe is put before texts that a spreadsheet would interpret as formulas.
        """
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        rows = [[self.title], *(row for table in self.tables for row in table.data)]
        for row in [*rows, *map(list, self.lines), *([note] for note in self.notes)]:
            writer.writerow([spreadsheet_cell(str(cell)) for cell in row])
        return stream.getvalue()


def _wrapped(text: str, width: int, head: str) -> list[str]:
    """The lines of a note after its label."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )


def summarise(results: JointInference, alpha: float, adjust: str | None = None) -> ResultSummary:
    """Create the summary of a result."""
    check_alpha("summary", alpha)
    if adjust is not None:
        check_adjustment("summary", adjust, AT_ONCE)
    short, long = facts_of(results, alpha)
    shown = [_table(_in_two_columns(short), "lrlr")]
    if long:
        shown[0].output_formats["txt"]["table_dec_below"] = None
        shown.append(_table([[*pair] for pair in long], "ll"))
        shown[1].output_formats["txt"]["table_dec_above"] = None
    for (top, bottom), rows in _blocks(results, alpha, adjust):
        heads = [f"{a}\n{b}" if any(top) else b for a, b in zip(top, bottom, strict=True)]
        stubs, cells = [row[0] for row in rows], [row[1:] for row in rows]
        widths = [0, *[_CELL] * len(heads[1:])]
        shown.append(text_table(cells, heads[1:], stubs, widths, "l" + "r" * len(heads[1:])))
    told = lines(explained(results, alpha, adjust), results.estimator)
    return ResultSummary(f"{results.model} Results", shown, lines=told)


def _table(rows: list[list[str]], aligns: str) -> LiteralTable:
    """A table of facts that is as wide as a table of results."""
    widths = cell_widths(rows, minimum=0)
    widths[1] += max(0, _WIDTH - total_width(widths, _FACT_GAP))
    cells, stubs = [row[1:] for row in rows], [row[0] for row in rows]
    return text_table(cells, None, stubs, widths, aligns, _FACT_GAP)


_Block = tuple[tuple[list[str], list[str]], list[list[str]]]
"""Two header lines and the rows, both of which have terms in the first column."""


def _blocks(results: JointInference, alpha: float, adjust: str | None) -> list[_Block]:
    """Estimates and adjusted columns, side by side if they fit into a table, otherwise one below another."""
    logs, at_once = results.log_pvalues, adjust == AT_ONCE
    test, limits = p_head(results.reference), limit_heads(alpha)
    own = {
        **_estimates(results),
        test: [format_pvalue(x) for x in logs],
        **dict(zip(limits, _limit_columns(results.conf_int(alpha).to_numpy()), strict=True)),
    }
    groups = [("", own)]
    if at_once:
        with np.errstate(divide="ignore"):
            together = np.log(results.pvalues_simultaneous().to_numpy())
        both = _limit_columns(results.conf_int_simultaneous(alpha).to_numpy())
        p = [format_pvalue(x) for x in together]
        groups.append(("at once", {"P": p, **dict(zip(limits, both, strict=True))}))
    if results.correction is not None:
        logs = results.log_pvalues_corrected
        both = _limit_columns(results.conf_int_corrected(alpha).to_numpy())
        p = [format_pvalue(x) for x in logs]
        groups.append(("corrected", {test: p, **dict(zip(limits, both, strict=True))}))
    if adjust is not None and not at_once:
        adjusted = adjusted_logs(np.asarray(logs, dtype=np.float64), adjust)
        groups.append((ADJUSTMENTS[adjust], {"P": [format_pvalue(x) for x in adjusted]}))
    terms = list(map(str, results.terms))
    whole = _block(terms, groups)
    widths = cell_widths([*whole[0], *whole[1]], minimum=_CELL)
    widths[0] = max((len(word) for term in terms for word in term.split()), default=0)
    fits = total_width(widths, " ") <= ROOM
    return [whole] if fits else [_block(terms, [group]) for group in groups]


def _estimates(results: JointInference) -> dict[str, list[str]]:
    """Columns with estimates, errors and statistics or, if rewards are missing, with both bounds."""
    if results._bounds is not None:
        ends = zip(("lowest", "highest"), results._bounds, strict=True)
        return {name: [format_number(x) for x in values] for name, values in ends}
    return {
        "coef": [format_number(x) for x in results.estimate],
        "std err": [format_number(x) for x in results.std_error],
        results.reference.statistic: [format_statistic(x) for x in results.tvalues],
    }


def _block(terms: list[str], groups: list[tuple[str, dict[str, list[str]]]]) -> _Block:
    top, bottom, columns = [""], [""], []
    for name, group in groups:
        top += [name] * len(group)
        bottom += list(group)
        columns += list(group.values())
    return (top, bottom), [[term, *cells] for term, *cells in zip(terms, *columns, strict=True)]


def _in_two_columns(pairs: list[tuple[str, str]]) -> list[list[str]]:
    """Facts in two columns; the left column is read first."""
    half = (len(pairs) + 1) // 2
    right = [*pairs[half:], *([("", "")] * (2 * half - len(pairs)))]
    return [[*a, *b] for a, b in zip(pairs[:half], right, strict=True)]


def facts_of(results: JointInference, alpha: float) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The facts above the estimates: those in two columns, and those on separate lines."""
    pairs = [pair for pair in _facts(results, alpha) if pair[1]]
    short = [pair for pair in pairs if sum(map(len, pair)) < _PAIR]
    return short, [pair for pair in pairs if pair not in short]


def _facts(results: JointInference, alpha: float) -> list[tuple[str, str]]:
    """The facts above the estimates; values that are not known are left out."""
    facts, ess = results.facts, results.ess.to_numpy()
    noise = facts.noise or ""
    if not noise and facts.guarantee is not None and facts.guarantee.epsilon > 0.0:
        noise = "unknown"
    return [
        ("Outcome:", ", ".join(filter(None, (facts.reward, facts.outcome)))),
        ("Estimator:", results.estimator),
        ("Weights:", results.weights or ""),
        ("Validity:", results.validity),
        ("Design:", facts.design or ""),
        ("Guarantee:", _covered(facts, results.private)),
        ("Noise backend:", noise),
        ("No. rounds:", f"{facts.n_rounds:,}" if facts.n_rounds else ""),
        ("Effective sample (min):", f"{np.nanmin(ess):,.1f}" if np.any(np.isfinite(ess)) else ""),
        ("Smallest propensity:", format_number(results.min_propensity) if results.min_propensity > 0 else ""),
        ("Level:", level_text(alpha)),
        ("Null:", f"{results.null:g}" if results.null else ""),
        *_rounds_by_arm(results),
    ]


def _rounds_by_arm(results: JointInference) -> list[tuple[str, str]]:
    """Numbers of rounds of the arms that are compared, and of events if rewards are 0 or 1."""
    counts = results.facts.counts
    if counts is None:
        return []
    estimands = (results._chosen_from or results).estimands
    named = dict.fromkeys(arm for one in estimands for arm in (one.control, one.treatment, one.arm))
    places = [counts.arms.index(arm) for arm in named if arm in counts.arms] or range(len(counts.arms))
    label = "Rounds:" if counts.events is None else "Rounds (events):"

    def told(place: int) -> str:
        events = "" if counts.events is None else f" ({counts.events[place]:,})"
        return f"{literal(str(counts.arms[place]))}: {counts.rounds[place]:,}{events}"

    every = "; ".join(map(told, places))
    if len(places) <= _LISTED or len(label) + len(_FACT_GAP) + len(every) <= _WIDTH:
        return [(label, every)]
    by_size = sorted(places, key=lambda place: counts.rounds[place])
    return [(f"{label[:-1]} of {len(by_size)} arms:", f"{told(by_size[0])} to {told(by_size[-1])}")]


def _covered(facts: LogFacts, private: bool) -> str:
    """The guarantee for the results in a table, which exists only if all are based on releases."""
    guarantee = facts.guarantee
    if guarantee is None:
        return "none" if facts.unpromised else ""
    if not private:
        return "not covered"
    delta = f", delta = {guarantee.delta:.3g}" if guarantee.delta > 0 else ""
    unit = "person" if guarantee.rounds > 1 else guarantee.unit
    return f"epsilon = {guarantee.epsilon:.4g}{delta}, per {unit}" + (" (stated)" if facts.stated else "")


def _limit_columns(limits: FloatArray) -> tuple[list[str], list[str]]:
    return [format_number(x) for x in limits[:, 0]], [format_number(x) for x in limits[:, 1]]
