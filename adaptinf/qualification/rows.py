"""Rows of a qualification: the expected and the obtained value, and whether they agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from adaptinf.errors import MissingDependencyError

PASS, FAIL, UNTESTED = "pass", "fail", "not run"


@dataclass(frozen=True, slots=True)
class Row:
    """One test, or one part of the installation that was checked.

    Attributes
    ----------
    part : str
        What it belongs to.
    name : str
        What was tested.
    expected, obtained : str
        The known answer, and that of this machine.
    verdict : {"pass", "fail", "not run"}
        Whether they agree.
    source : str
        The source of the known answer, or the reason why the test was not run.
    """

    part: str
    name: str
    expected: str
    obtained: str
    verdict: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Known:
    """A test whose answer is known: numbers, to a relative tolerance, or a text."""

    part: str
    name: str
    source: str
    answer: Callable[[], Sequence[float] | str]
    expected: Sequence[float] | str
    tolerance: float = 1e-8

    def row(self) -> Row:
        """Run the test; any exception is a failure, unless an extra is missing."""
        expected = _written(self.expected)
        try:
            found = self.answer()
        except MissingDependencyError as error:
            return Row(self.part, self.name, expected, "", UNTESTED, str(error))
        except Exception as error:  # A broken installation may raise anything.
            return Row(self.part, self.name, expected, f"{type(error).__name__}: {error}", FAIL, self.source)
        verdict = PASS if self._agrees(found) else FAIL
        return Row(self.part, self.name, expected, _written(found), verdict, self.source)

    def _agrees(self, found: Sequence[float] | str) -> bool:
        if isinstance(self.expected, str) or isinstance(found, str):
            return found == self.expected
        same = len(found) == len(self.expected)
        return same and bool(np.allclose(found, self.expected, rtol=self.tolerance, atol=self.tolerance))


def _written(answer: Sequence[float] | str) -> str:
    return answer if isinstance(answer, str) else ", ".join(f"{number:.9g}" for number in answer)
