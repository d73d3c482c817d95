"""Exact noise for a private trial: each node is drawn once, and all nodes are tested."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.designs import Design
from adaptinf.errors import JournalError, ParameterError
from adaptinf.markup import table
from adaptinf.parameters import Count, refuse
from adaptinf.privacy.drawn_noise import Draws
from adaptinf.privacy.noise_tests import NoiseTest, noise_tests
from adaptinf.sessions.steppers import Draw, draw_node
from adaptinf.texts import frame_text
from adaptinf.trial.journal_rows import Entry

if TYPE_CHECKING:
    import pandas as pd


NODE = "node"
"""Kind of a row, and the name of the field that identifies the node."""


class Nodes:
    """Source of a trial's noise: its journal while rows are replayed, then OpenDP.

    An audit supplies the noise instead of OpenDP.
    """

    def __init__(self, path: str, draw: Draw | None = None) -> None:
        self._path, self._draw, self._following = path, draw, False
        self._waiting: list[Entry] = []
        self._fresh: list[Entry] = []

    def __call__(self, name: str, scale: float) -> int:
        """The noise of a node with the given scale, both in units."""
        if not self._following:
            if self._waiting:
                raise JournalError(self._path, "its last rows are missing")
            units = (self._draw or draw_node)(name, scale)
            self._fresh.append({"kind": NODE, NODE: name, "scale": scale, "units": units})
            entry = self._fresh[-1]
        elif not self._waiting or (self._waiting[0][NODE], self._waiting[0]["scale"]) != (name, scale):
            raise JournalError(
                self._path, "a row of noise is missing or differs from the noise that its request requires"
            )
        else:
            entry = self._waiting.pop(0)
        return int(entry["units"])

    def expect(self, entry: Entry) -> None:
        """Store a row for the request that follows it."""
        self._waiting.append(entry)

    @contextmanager
    def following(self) -> Iterator[None]:
        """Draw nothing, but use all waiting rows."""
        self._following = True
        try:
            yield
            if self._waiting:
                raise JournalError(self._path, "a row of noise belongs to no request")
        finally:
            self._following = False

    def leave(self) -> None:
        """Use the waiting rows without changes: the request to which they belong cannot be recomputed."""
        self._waiting.clear()

    def drawn(self) -> list[Entry]:
        """The rows for the noise that has been drawn since the last call."""
        fresh, self._fresh = self._fresh, []
        return fresh


def private_terms(design: Design, horizon: int, n_arms: int, window: Any) -> dict[str, Any]:
    """What the first entry states about noise and the window; empty if no noise is drawn."""
    name, promised = type(design).__name__, design.guarantee(horizon, n_arms)
    # In this case nothing depends on rewards, so there is no noise to draw.
    if promised is None or promised.epsilon == 0.0:
        told = (
            f"outcome_window must be omitted: {name} adds no noise and uses outcomes as soon as they arrive"
        )
        refuse("Trial.create", [] if window is None else [told])
        return {}
    rehearses = "its method session() rehearses a trial with simulated noise"
    problems = []
    if design.nodes is None:
        problems.append(
            f"{name} has a privacy guarantee, and a live private trial requires exact release noise, which "
            f"{name} does not draw ({design.inexact}): {rehearses}"
        )
    elif design.pending != "window":
        problems.append(
            f"{name} cannot choose while outcomes are pending: its session waits for each, with exact noise"
        )
    elif window is None:
        problems.append(
            "outcome_window is required: the number of further participants after which an outcome is used, "
            "whenever it arrives, because delays that depend on the outcomes would reveal them"
        )
    else:
        problems += Count(0)("outcome_window", window)
    refuse("Trial.create", problems)
    return {"outcome_window": int(window), "noise": "release"}


NodeRows = list[tuple[int, Entry, str]]
"""Numbers, entries and digests of rows of noise."""

NOT_COVERED = (
    "Not covered by the guarantee: these tests read the noise itself. Keep their results as safe as the "
    "trial's file."
)
_COLUMNS = ("test", "single tests", "chance below", "finding")


@dataclass(frozen=True, slots=True)
class NoiseAudit:
    """Results of tests on a trial's noise; **not covered** by its guarantee, because they read the noise.

    Attributes
    ----------
    trials : tuple of str
        Names of the files.
    nodes : int
        Number of nodes of noise that were examined; rows shared by several files count once.
    tests : tuple of NoiseTest
        Every kind of test: its name, its number of single tests, the log of a bound on the probability that
        noise with the stated distribution is as unusual as this in any of them, and the finding, in words.
    not_covered : str
        The reason why the results must not be published.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import tempfile
    >>> path = f"{tempfile.mkdtemp()}/trial.db"
    >>> design = ai.designs.Mixture(ai.designs.PrivateUCB(epsilon=1.0), exploration=0.1)
    >>> with ai.Trial.create(path, design, arms=2, horizon=4, outcome_window=0) as trial:
    ...     decisions = [trial.assign(f"participant {n}", key=f"key {n}") for n in range(3)]
    ...     found = trial.audit_noise()
    >>> found.to_frame()["test"].tolist()[:4]
    ['law', 'scale', 'tails', 'one tail']
    """

    trials: tuple[str, ...]
    nodes: int
    tests: tuple[NoiseTest, ...]
    not_covered: str = NOT_COVERED

    @property
    def findings(self) -> tuple[str, ...]:
        """The findings, in words; empty if the tests found nothing unusual."""
        return tuple(test.finding for test in self.tests if test.finding)

    def to_frame(self) -> pd.DataFrame:
        """One row for each kind of test.

        Returns
        -------
        DataFrame
            Columns test, tests (their number), log_chance (the log of the bound on the probability of
            anything this unusual) and finding (empty if there is none).
        """
        import pandas as pd

        columns = {
            "test": [test.kind for test in self.tests],
            "tests": [test.tests for test in self.tests],
            "log_chance": [test.log_bound for test in self.tests],
            "finding": [test.finding for test in self.tests],
        }
        return pd.DataFrame(columns)

    def _rows(self) -> list[tuple[str, str, str, str]]:
        return [
            (test.kind, f"{test.tests:,}", _chance(test.log_bound), test.finding or "nothing")
            for test in self.tests
        ]

    def _title(self) -> str:
        verdict = "NOT as specified" if self.findings else "nothing found"
        return f"Noise of {', '.join(self.trials)}: {self.nodes:,} nodes, {verdict}"

    def __str__(self) -> str:
        import pandas as pd

        rows = pd.DataFrame(self._rows(), columns=list(_COLUMNS))
        return f"{self._title()}\n{frame_text(rows)}\n{self.not_covered}"

    def _repr_html_(self) -> str:
        return table(_COLUMNS, self._rows(), f"{self._title()}. {self.not_covered}")


def audited(rows: Sequence[NodeRows], names: Sequence[str]) -> NoiseAudit:
    """Tests of the noise in one file or several, whose names are given."""
    draws = drawn(rows, names)
    if not len(draws):
        raise ParameterError("audit_noise", ["no noise has been drawn yet"])
    return NoiseAudit(tuple(names), len(draws), tuple(noise_tests(draws)))


def drawn(rows: Sequence[NodeRows], names: Sequence[str]) -> Draws:
    """The draws in files, in row order; a row that several files share belongs to the first."""
    # A digest covers all rows up to its own, so files with a common digest have the same beginning.
    known: set[tuple[int, str]] = set()
    fresh: list[tuple[int, Entry]] = []
    for place, own in enumerate(rows):
        fresh += [(place, entry) for number, entry, digest in own if (number, digest) not in known]
        known.update((number, digest) for number, _, digest in own)
    nodes = {name: code for code, name in enumerate(dict.fromkeys(str(entry[NODE]) for _, entry in fresh))}
    labels: list[Any] = [nodes[str(entry[NODE])] for _, entry in fresh]
    return Draws(
        np.array([entry["units"] for _, entry in fresh], dtype=np.int64),
        np.array([entry["scale"] for _, entry in fresh], dtype=np.float64),
        np.array([place for place, _ in fresh], dtype=np.int64),
        np.array(labels, dtype=np.int64),
        [f"the node {name}" for name in nodes],
        run_names=tuple(names),
    )


def _chance(log_bound: float) -> str:
    """A probability in words."""
    if log_bound > np.log(0.01):
        return f"{min(1.0, np.ceil(100.0 * np.exp(log_bound)) / 100.0):.2f}"
    return f"1e{int(np.ceil(log_bound / np.log(10.0)))}" if np.isfinite(log_bound) else "0"
