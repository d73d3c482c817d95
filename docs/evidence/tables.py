"""How wide default tables are, what stands below them, and whether sentences hold their numbers.

    python docs/evidence/tables.py

Fits of `table_fits.py`: every model with its defaults on every log that allows it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import evidence
from table_fits import LOGS, MODELS, WARNED, below, fits

from adaptinf.errors import InvalidForLog
from adaptinf.inference.results import Results
from adaptinf.inference.results.tables import format_number

HEAD = """# The lines under a table

Command: `python docs/evidence/tables.py`. Seeds: 0 to 5. Date: {stamp}.

In {fits} fits, {models} models are fitted with their defaults to {logs} logs (rows and sums, private and
live, late and missing outcomes), if the log allows the model; names of arms have 20 characters. Each table is
examined as printed, with Holm's adjustment, and with simultaneous intervals.

| printed | tables | widest (80) | most lines below, cautions apart (6) | cautions and reasons | cut |
| --- | ---: | ---: | ---: | ---: | ---: |
"""
FOOT = """
*Cut* counts cautions, and reasons why a number is missing, that contain a word that is not in the printed
table. Of {notes:,} claims about these fits, `explain()` states {explained:,}. Sentences exist for {terms}
terms with an interval, and {right} contain the estimate and both limits as printed in the table.
"""


def measured(results: dict[str, Results], adjust: str | None) -> list[int]:
    """Tables, the widest, the most lines below, cautions, and those that are cut."""
    count, widest, most, warned, cut = 0, 0, 0, 0, 0
    for result in results.values():
        try:
            text = result.summary(adjust=adjust).as_text()
        except InvalidForLog:  # a correction is due, which the largest statistic does not allow
            continue
        lines = below(text)
        count += 1
        widest = max(widest, *map(len, text.splitlines()))
        most = max(most, sum(len(part) for label, part in lines.items() if label not in WARNED))
        told = " ".join(" ".join(line for part in lines.values() for line in part).split()).lower()
        said = result.explain(adjust=adjust)
        for one in [*said.of("caution"), *said.of("missing")]:
            warned += 1
            cut += " ".join(one.text.split()).lower().rstrip(".") not in told
    return [count, widest, most, warned, cut]


def sentences(results: dict[str, Results]) -> tuple[int, int]:
    """Terms with an interval, and those whose sentence holds the numbers of the table."""
    asked = right = 0
    for result in results.values():
        corrected = result.correction is not None and not result.correction.vacuous(0.05)
        limits = (result.conf_int_corrected() if corrected else result.conf_int()).to_numpy()
        table = str(result)
        for place, term in enumerate(result.terms):
            numbers = [float(result.estimate[place]), *limits[place].tolist()]
            if not np.isnan(numbers).any():
                told = result.sentence(term, adjust=None)
                asked += 1
                right += all(format_number(x) in told and format_number(x) in table for x in numbers)
    return asked, right


def claims(results: dict[str, Results]) -> tuple[int, int]:
    """Notes and cautions of results, clause by clause, and those that an explanation has."""
    listed = explained = 0
    for result in results.values():
        told = " ".join(result.explain().texts)
        for note in (*result.notes, *result.cautions):
            for clause in getattr(note, "clauses", (note,)):
                listed += 1
                explained += str(clause) in told
    return listed, explained


def main() -> None:
    options = evidence.parser(__doc__).parse_args()
    stamp, results = evidence.stamp(), fits()
    page = HEAD.format(stamp=stamp, fits=len(results), models=len(MODELS), logs=len(LOGS))
    for name, adjust in (("as printed", None), ("Holm", "holm"), ("simultaneous", "max-t")):
        page += f"| {name} | {' | '.join(f'{x:,}' for x in measured(results, adjust))} |\n"
    notes, explained = claims(results)
    terms, right = sentences(results)
    evidence.publish(
        page + FOOT.format(notes=notes, explained=explained, terms=terms, right=right), __file__, options
    )


if __name__ == "__main__":
    main()
