"""Errors that state every problem and how to solve it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from adaptinf.texts import visible

__all__ = [
    "AdaptinfError",
    "AdaptinfWarning",
    "FileError",
    "GuaranteeError",
    "InvalidForLog",
    "JournalError",
    "LogValidationError",
    "MissingDependencyError",
    "ParameterError",
    "Problem",
]

_ROWS_SHOWN = 10


class AdaptinfError(Exception):
    """Base class of every error that adaptinf raises deliberately; all of them can be pickled.

    Examples
    --------
    >>> import adaptinf as ai
    >>> try:
    ...     design = ai.designs.EpsilonGreedy(exploration=2.0)
    ... except ai.errors.AdaptinfError as error:
    ...     print(type(error).__name__)
    ParameterError
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*(visible(part, "\n") if isinstance(part, str) else part for part in args))

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle would call the class with the finished text, although the class takes other arguments.
        return _restored, (type(self), self.args), self.__dict__ or None


def _restored(kind: type[AdaptinfError], args: tuple[Any, ...]) -> AdaptinfError:
    """Restore an error without calling its constructor; its attributes are set from its state."""
    error = kind.__new__(kind, *args)
    super(AdaptinfError, error).__init__(*args)
    return error


class AdaptinfWarning(UserWarning):
    """Base class of every warning that adaptinf issues.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", ai.errors.AdaptinfWarning)
    ...     log = ai.designs.UCB().run(ai.environments.BernoulliArms([0.4, 0.6]), horizon=50, rng=0)
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*(visible(part, "\n") if isinstance(part, str) else part for part in args))


class ParameterError(AdaptinfError, ValueError):
    """One or more parameters are out of range; all of them are listed.

    Parameters
    ----------
    subject : str
        The object being built or called.
    problems : sequence of str
        One sentence per problem, stating what is wrong and what would be valid.

    Examples
    --------
    >>> import adaptinf as ai
    >>> str(ai.errors.ParameterError("PrivateUCB", ["epsilon must be positive, got -1"]))
    'PrivateUCB: epsilon must be positive, got -1'
    """

    def __init__(self, subject: str, problems: Sequence[str]) -> None:
        self.subject = subject
        self.problems = tuple(problems)
        shown = [visible(" ".join(map(str.strip, problem.splitlines()))) for problem in self.problems]
        if len(shown) == 1:
            text = f"{visible(subject)}: {shown[0]}"
        else:
            text = f"{visible(subject)}: {len(shown)} problems\n" + "\n".join(f"  - {p}" for p in shown)
        super().__init__(text)


class MissingDependencyError(AdaptinfError, ImportError):
    """An optional package is needed but cannot be imported.

    Parameters
    ----------
    purpose : str
        The task that needs the package.
    package : str
        Its name.
    extra : str
        The extra of adaptinf that installs the package.

    Examples
    --------
    >>> import adaptinf as ai
    >>> print(ai.errors.MissingDependencyError("a forest plot", "matplotlib", "plots"))
    a forest plot requires matplotlib, which cannot be imported: pip install '.[plots]' in the source tree, \
    or pip install -e '.[plots]' if adaptinf was installed with -e
    """

    def __init__(self, purpose: str, package: str, extra: str) -> None:
        self.purpose = purpose
        self.package = package
        self.extra = extra
        super().__init__(
            f"{purpose} requires {package}, which cannot be imported: pip install '.[{extra}]' in the "
            f"source tree, or pip install -e '.[{extra}]' if adaptinf was installed with -e"
        )


class FileError(AdaptinfError, OSError):
    """A file cannot be read or written; an older file with its name is left unchanged.

    Parameters
    ----------
    path : str
        The file.
    done : {"read", "written"}
        The operation on the file that failed.
    reason : str
        The reason reported by the operating system.

    Examples
    --------
    >>> import adaptinf as ai
    >>> print(ai.errors.FileError("log.parquet", "written", "No space left on device"))
    log.parquet cannot be written: No space left on device
    """

    def __init__(self, path: str, done: str, reason: str) -> None:
        self.path = path
        self.done = done
        self.reason = reason
        super().__init__(f"{path} cannot be {done}: {reason}")


class JournalError(AdaptinfError, ValueError):
    """The journal of a trial is not in its original state: it is damaged, changed, or truncated.

    Parameters
    ----------
    path : str
        The file.
    reason : str
        The problems that were found.

    Examples
    --------
    >>> import adaptinf as ai
    >>> print(ai.errors.JournalError("trial.db", "row 17 does not follow from the rows before it"))
    trial.db is damaged: row 17 does not follow from the rows before it
    """

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path} is damaged: {reason}")


class GuaranteeError(AdaptinfError, ValueError):
    """Privacy guarantees that cannot be combined were combined.

    Examples
    --------
    >>> import adaptinf as ai
    >>> central = ai.PrivacyGuarantee(epsilon=0.5)
    >>> try:
    ...     both = central.compose(ai.PrivacyGuarantee(epsilon=0.5, unit="record"))
    ... except ai.errors.GuaranteeError as error:
    ...     print("refused")
    refused
    """


@dataclass(frozen=True, slots=True)
class Problem:
    """One kind of problem in a frame.

    Attributes
    ----------
    code : str
        Short machine-readable name, such as ``"missing-reward"``.
    message : str
        Description of the problem and its solution.
    rows : tuple of int
        Positions of the first affected rows (from 0); empty if the problem does not concern rows.
    total : int
        Number of affected rows.
    lines : tuple of str
        The same rows by line number in a text file, counted from 1 and including any header; empty for other
        tables.

    Examples
    --------
    >>> import adaptinf as ai
    >>> problem = ai.errors.Problem("missing-reward", "2 rewards are missing: say what that means", (3, 7), 2)
    >>> problem.rows
    (3, 7)
    """

    code: str
    message: str
    rows: tuple[int, ...] = ()
    total: int = 0
    lines: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.rows:
            return self.message
        places, name = (self.lines, "line") if self.lines else (self.rows, "row")
        shown = ", ".join(str(place) for place in places[:_ROWS_SHOWN])
        more = f", ... ({self.total} {name}s in total)" if self.total > len(places[:_ROWS_SHOWN]) else ""
        return f"{self.message} [{name}{'' if self.total == 1 else 's'} {shown}{more}]"


class LogValidationError(AdaptinfError, ValueError):
    """A frame is not a valid adaptive log; every problem is listed with its rows.

    Parameters
    ----------
    problems : sequence of Problem
        All problems that were found.
    subject : str
        The object that was checked.
    header : bool
        Whether the first line of a text file is a header.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"arm": ["a", "b"], "y": [1.0, float("inf")]})
    >>> try:
    ...     log = ai.AdaptiveLog(frame, action="arm", reward="y")
    ... except ai.errors.LogValidationError as error:
    ...     print([problem.code for problem in error.problems])
    ['infinite-reward']
    """

    def __init__(self, problems: Sequence[Problem], subject: str = "the log", header: bool = False) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        counted = "rows are counted from 0"
        if any(problem.lines for problem in self.problems):
            counted = "lines are counted from 1" + (", the header line" if header else "")
        head = f"{subject} has {count} problem{'s' if count != 1 else ''} ({counted}):"
        super().__init__(
            visible(head) + "".join(f"\n  - {visible(str(problem))}" for problem in self.problems)
        )


class InvalidForLog(AdaptinfError, ValueError):
    """A method is not valid for this log.

    Parameters
    ----------
    method : str
        The method that was requested.
    reason : str
        The reasons why this log does not support it.
    alternatives : sequence of str
        Methods that this log supports, with any reservations.

    Examples
    --------
    >>> import adaptinf as ai
    >>> log = ai.designs.UCB().run(ai.environments.BernoulliArms([0.4, 0.6]), horizon=50, rng=0)
    >>> try:
    ...     result = ai.ArmMeans(log).fit("aipw")
    ... except ai.errors.InvalidForLog as error:
    ...     print(error.method, bool(error.reason))
    aipw True
    """

    def __init__(self, method: str, reason: str, alternatives: Sequence[str]) -> None:
        self.method = method
        self.reason = reason
        self.alternatives = tuple(alternatives)
        hint = f"; possible alternatives: {'; '.join(self.alternatives)}" if self.alternatives else ""
        super().__init__(visible(f"{method} is not valid for this log: {reason}{hint}"))
