"""A report as a Word document for editing: the sentence, cautions, table, assumptions and methods."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from adaptinf.claims.reports import answer as claims
from adaptinf.errors import MissingDependencyError
from adaptinf.reports.report_texts import versions
from adaptinf.texts import literal

if TYPE_CHECKING:
    from docx.document import Document

    from adaptinf.reports.report_content import Content
    from adaptinf.reports.shown_numbers import Shown


def word_document(content: Content) -> bytes:
    """The file."""
    try:
        import docx
    except ImportError as error:
        raise MissingDependencyError("report(docx=...)", "python-docx", "word") from error
    document = docx.Document()
    document.core_properties.title = literal(content.stamp.title)
    document.core_properties.author = content.stamp.version
    document.add_heading(literal(content.stamp.title), level=1)
    if content.promise:
        _paragraph(document, claims.PRIVATE_FILE(promise=content.promise), bold=True)
    if content.shown is None:
        _paragraph(document, claims.NO_RESULT(why=content.why), bold=True)
    else:
        _answer(document, content, content.shown)
    document.add_heading("Data and versions", level=2)
    for one in () if content.released else content.data:
        _paragraph(document, f"Data: {one.told}.")
    if content.stamp.call:
        _paragraph(document, content.stamp.call)
    _paragraph(document, f"{content.stamp.date}, {versions()}.")
    written = io.BytesIO()
    document.save(written)
    return written.getvalue()


def _answer(document: Document, content: Content, shown: Shown) -> None:
    """The finding, and its basis."""
    _paragraph(document, shown.sentence, bold=True)
    for caution in content.cautions:
        _paragraph(document, f"Caution: {caution}")
    headers, rows = shown.columns
    document.add_heading("Results", level=2)
    _paragraph(document, f"{shown.named[:1].upper()}{shown.named[1:]}. {shown.multiplicity}")
    _table(document, headers, rows)
    assumed = [(one.text, one.check) for one in shown.reasons.of("assumes")]
    if assumed:
        document.add_heading("Assumptions", level=2)
        _table(document, ("assumption", "check"), assumed)
    text, references = content.told
    document.add_heading("Methods", level=2)
    _paragraph(document, text)
    for reference in references:
        document.add_paragraph(literal(reference), style="List Bullet")


def _paragraph(document: Document, text: str, *, bold: bool = False) -> None:
    document.add_paragraph().add_run(literal(text)).bold = bold


def _table(document: Document, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table whose first row is repeated on each page; Word wraps long text."""
    table: Any = document.add_table(rows=1, cols=len(headers), style="Light List")
    for cell, name in zip(table.rows[0].cells, headers, strict=True):
        cell.text = literal(name)
    for row in rows:
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = literal(text)
