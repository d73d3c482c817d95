"""The report of a qualification as a page and as text."""

from __future__ import annotations

from collections.abc import Iterator

from adaptinf.claims.reports.qualification import DIGEST as DIGEST_SAID
from adaptinf.markup import table
from adaptinf.qualification.earlier import DIGEST
from adaptinf.qualification.qualified import Qualification
from adaptinf.qualification.rows import FAIL, PASS, Row
from adaptinf.reports.report_page import Section, defined, divided, listed, page, paragraph
from adaptinf.texts import visible

_TITLE = "Qualification of adaptinf {version}"
_HEADS = ("check", "result", "expected", "obtained", "source")


def html_of(done: Qualification) -> str:
    """The page."""
    record = done.to_dict()
    facts = [("Date", done.date), ("Digest", record[DIGEST]), ("", DIGEST_SAID())]
    faults = [f"{row.part}: {row.name}: {row.obtained}" for row in done.rows if row.verdict == FAIL]
    lead = f'<p class="lead">{done.sentence}</p>'
    opening = [lead, listed(faults), defined(fact for fact in facts if fact[0]), paragraph(facts[-1][1])]
    return page(_TITLE.format(version=done.version), [*opening, divided(list(_sections(done)))])


def _sections(done: Qualification) -> Iterator[Section]:
    yield "machine", "This machine", defined(done.machine)
    for part, rows in done.parts().items():
        cells = [[row.name, row.verdict, row.expected, row.obtained, row.source] for row in rows]
        yield part.lower().replace(" ", "-"), part, table(_HEADS, cells, _caption(part, rows))


def _caption(part: str, rows: list[Row]) -> str:
    return f"{part}: {sum(row.verdict == PASS for row in rows)} of {len(rows)} passed"


def text_of(done: Qualification) -> str:
    """The result, the number of checks by part, and every check that did not pass."""
    lines = [done.sentence, ""]
    for part, rows in done.parts().items():
        lines.append(_caption(part, rows))
        lines += [line for row in rows if row.verdict != PASS for line in _told(row)]
    return "\n".join([*lines, "", f"Digest of the report: {done.to_dict()[DIGEST]}"])


def _told(row: Row) -> Iterator[str]:
    """A check that did not pass."""
    yield f"  {row.verdict}: {visible(row.name)}"
    for name, said in (("expected", row.expected), ("obtained", row.obtained), ("", row.source)):
        if said:
            yield f"      {name + ': ' if name else ''}{visible(said)}"
