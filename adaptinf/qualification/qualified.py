"""The qualification: all checks, their result, and the report as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from adaptinf.claims.reports.qualification import DIGEST as DIGEST_SAID
from adaptinf.claims.reports.qualification import FAILED, PASSED
from adaptinf.qualification.earlier import DIGEST, compared, digest_of
from adaptinf.qualification.extras import DISABLED, requirement_rows
from adaptinf.qualification.first_arms import design_tests
from adaptinf.qualification.installed import packages
from adaptinf.qualification.known_numbers import number_tests
from adaptinf.qualification.live_trials import trial_tests
from adaptinf.qualification.machine import machine_facts
from adaptinf.qualification.noise_draws import noise_tests
from adaptinf.qualification.rows import FAIL, UNTESTED, Known, Row
from adaptinf.version import __version__


@dataclass(frozen=True, slots=True)
class Qualification:
    """The result of all checks of an installation.

    Attributes
    ----------
    version : str
        The version of adaptinf.
    date : str
        The time, in UTC.
    machine : list of pairs of str
        Facts about the machine.
    rows : list of Row
        The checks.
    files : dict
        SHA-256 of each file, by package and name.
    """

    version: str
    date: str
    machine: list[tuple[str, str]]
    rows: list[Row]
    files: dict[str, dict[str, str]]

    def count(self, verdict: str) -> int:
        """Number of checks with a verdict."""
        return sum(row.verdict == verdict for row in self.rows)

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return self.count(FAIL) == 0

    @property
    def sentence(self) -> str:
        """The result in words."""
        failed, untested = self.count(FAIL), self.count(UNTESTED)
        run = len(self.rows) - untested
        if failed:
            return FAILED(failed=failed, run=run, untested=untested)
        return PASSED(run=run, untested=untested)

    def parts(self) -> dict[str, list[Row]]:
        """Checks by part, in order."""
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            found.setdefault(row.part, []).append(row)
        return found

    def to_dict(self) -> dict[str, Any]:
        """The report, with its digest."""
        record: dict[str, Any] = {
            "adaptinf": self.version,
            "date": self.date,
            "qualified": self.passed,
            "machine": dict(self.machine),
            "checks": [asdict(row) for row in self.rows],
            "files": self.files,
            "digest_of": str(DIGEST_SAID()),
        }
        return {**record, DIGEST: digest_of(record)}


def qualify(
    earlier: Mapping[str, Any] | None = None, say: Callable[[str], None] = lambda _: None
) -> Qualification:
    """Check the files of this installation, and run tests with known answers on this machine.

    Parameters
    ----------
    earlier : dict, optional
        An earlier report, as read by `read_report`: files that differ from it are failures.
    say : callable
        Function that is called with each test before the test runs.

    Returns
    -------
    Qualification
        All checks.
    """
    date = datetime.now(UTC).isoformat(timespec="seconds")
    say("Installed files")
    installed = packages(tuple(DISABLED))
    rows = [*requirement_rows(), *(one.row() for one in installed)]
    rows += [] if earlier is None else compared(earlier, installed)
    for test in _tests():
        say(f"{test.part}: {test.name}")
        rows.append(test.row())
    files = {one.name: one.files for one in installed}
    return Qualification(__version__, date, machine_facts(), rows, files)


def _tests() -> Iterator[Known]:
    yield from number_tests()
    yield from design_tests()
    yield from noise_tests()
    yield from trial_tests()
