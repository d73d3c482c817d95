"""A record of behaviour, to compare two versions of the library.

``python tests/net/record.py record FILE`` writes what designs, fits, audits, theory, privacy and the command
line give; ``python tests/net/record.py compare OLD NEW`` lists every difference and exits with 1 if there is
any. Files that end in .gz are compressed. Only public names of adaptinf are used.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from net_audits import record_audits
from net_book import Book, read_entries
from net_compare import differences
from net_doors import record_doors
from net_fits import record_fits
from net_numbers import record_numbers
from net_runs import record_designs

SECTIONS: dict[str, Callable[[Book], None]] = {
    "designs": record_designs,
    "fits": record_fits,
    "audits": record_audits,
    "doors": record_doors,
    "numbers": record_numbers,
}
EXACT = 1e-12


def recorded(sections: list[str], wanted: Callable[[str], bool] | None = None) -> Book:
    """The entries of some sections."""
    book = Book(wanted)
    for name in sections:
        with book.section(name):
            SECTIONS[name](book)
    return book


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    record = commands.add_parser("record", help="write a record")
    record.add_argument("file")
    record.add_argument("--sections", nargs="+", choices=list(SECTIONS), default=list(SECTIONS))
    compare = commands.add_parser("compare", help="list the differences of two records")
    compare.add_argument("old")
    compare.add_argument("new")
    compare.add_argument("--rtol", type=float, default=EXACT)
    compare.add_argument("--limit", type=int, default=0, help="lines to print, all by default")
    given = parser.parse_args()
    return _record(given.file, given.sections) if given.command == "record" else _compare(given)


def _record(file: str, sections: list[str]) -> int:
    book = recorded(sections)
    book.write(file)
    kinds = Counter(key.split(" | ")[0] for key in book.entries)
    for name, seconds in book.seconds.items():
        sys.stdout.write(f"{name}: {seconds:.1f} s\n")
    counts = ", ".join(f"{count} {name}" for name, count in kinds.items())
    sys.stdout.write(f"{len(book.entries)} entries ({counts}) in {sum(book.seconds.values()):.1f} s\n")
    return 0


def _compare(given: argparse.Namespace) -> int:
    found = list(differences(read_entries(given.old), read_entries(given.new), given.rtol))
    for line in found[: given.limit or None]:
        sys.stdout.write(f"{line}\n")
    entries = {line.split(" > ")[0].split(": ")[0] for line in found}
    sys.stdout.write(f"{len(found)} differences in {len(entries)} entries\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
