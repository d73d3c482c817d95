"""Apply a history to a session or to a trial in a file, recording every output along the way."""

from __future__ import annotations

import hashlib
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from adaptinf.audit.privacy.histories import AMEND, ASSIGN, ERASE, LOSE, History, Terms
from adaptinf.designs.base import Design
from adaptinf.errors import AdaptinfError
from adaptinf.log import AdaptiveLog
from adaptinf.sessions import Decision, open_session
from adaptinf.sessions.session_memory import forget, logged

if TYPE_CHECKING:
    import pandas as pd


# Redrawn noise is the original times this factor, with the opposite sign, so a shift is tried at two distant
# points of the noise's distribution.
_STRETCH = 3


@dataclass(eq=False)
class GivenNoise:
    """A whole number for each node, of the order of its scale, determined by the seed and the name."""

    # `shifts` are added to the noise of the named nodes, and the noise of `stretched` nodes is redrawn.
    # `asked` records the nodes with their scales in order. A node that is requested twice gets a second name,
    # so that its second noise differs.

    seed: bytes
    shifts: Mapping[str, int] = field(default_factory=dict)
    stretched: frozenset[str] = frozenset()
    asked: dict[str, float] = field(default_factory=dict)

    def __call__(self, name: str, scale: float) -> int:
        """The noise of a node with a given scale, both in units."""
        while name in self.asked:
            name += ", again"
        self.asked[name] = scale
        drawn = round(scale * self._standard(name))
        if name in self.stretched:
            drawn = -_STRETCH * drawn - round(scale)
        return drawn + self.shifts.get(name, 0)

    def _standard(self, name: str) -> float:
        """A Laplace variable of scale 1, by inversion."""
        digest = hashlib.sha256(self.seed + name.encode()).digest()
        place = (int.from_bytes(digest[:8], "big") + 0.5) / 2.0**63 - 1.0
        return math.copysign(-math.log1p(-abs(place)), place)


_Answer = TypeVar("_Answer")
# RECORDS are outputs that depend on when outcomes were recorded and on erasures, which guarantees cover in
# fewer cases.
ARM, ANSWER, PROPENSITIES, NODE, RELEASE, PUBLIC, STATUS, RECORDS = (
    "arm",
    "answer",
    "propensities",
    "node",
    "release",
    "public",
    "status",
    "records",
)
_TELLS_RECORDS = ("pending", "erased", "rows", "unrepeatable")
_NO_OUTPUT = ("head",)
# Any level would do, because intervals are compared as text: this is an alpha of about .05.
_LOG_ALPHA = -3.0


class Output(NamedTuple):
    """An output: its description, its exact text, the part it belongs to and its participant."""

    words: str
    text: str
    part: str
    step: int = -1


class Release(NamedTuple):
    """One row of a run's releases."""

    round: int
    name: str
    group: Any
    value: float
    mechanism: str
    scale: float


class Released(NamedTuple):
    """The releases of a run, row by row, and its nodes with their scales, in order."""

    releases: list[Release]
    nodes: dict[str, float]


@dataclass(frozen=True)
class Shown:
    """All outputs of a run, in order."""

    outputs: list[Output]
    released: Released


class Stage(Protocol):
    """A session or trial to which a history can be applied."""

    def assign(self, steps: Sequence[int], contexts: Sequence[Any]) -> list[Decision]:
        """Assign arms."""

    def record(self, steps: Sequence[int], ids: Sequence[int], rewards: Sequence[float | None]) -> list[Any]:
        """Record outcomes; None marks a lost outcome."""

    def amend(self, step: int, decision: int, reward: float) -> Any:
        """Correct an outcome."""

    def erase(self, step: int, decision: int) -> Any:
        """Erase a participant."""

    def log(self) -> AdaptiveLog:
        """The log so far."""

    def finish(self) -> None:
        """End a trial that has reached its horizon."""

    def shown(self) -> list[Output]:
        """Outputs other than responses and logs."""


class SessionStage:
    """A session with separate coins for each event, as in trials."""

    def __init__(self, design: Design, terms: Terms, seed: bytes, noise: GivenNoise) -> None:
        from adaptinf.trial.trial_setup import Coins

        self._coins = Coins(seed)
        how = design, terms.declared, terms.horizon, terms.window, None
        self._session = open_session(*how, self._coins.generator, "release", noise)

    def assign(self, steps: Sequence[int], contexts: Sequence[Any]) -> list[Decision]:
        """Assign arms one by one."""
        made = []
        for step, context in zip(steps, contexts, strict=True):
            self._coins.set("assign", step + 1)
            made.append(self._session.assign(f"participant {step + 1}", context))
        return made

    def record(self, steps: Sequence[int], ids: Sequence[int], rewards: Sequence[float | None]) -> list[Any]:
        """Record outcomes one by one."""
        told = []
        for decision, reward in zip(ids, rewards, strict=True):
            self._coins.set("record", decision)
            told.append(self._session.record(decision, reward))
        return told

    def amend(self, step: int, decision: int, reward: float) -> Any:
        """Correct an outcome."""
        return self._session.amend(decision, reward)

    def erase(self, step: int, decision: int) -> Any:
        """Erase a participant."""
        forget(self._session, decision - 1)

    def log(self) -> AdaptiveLog:
        """The log so far."""
        return logged(self._session, "drop", True, "keep")

    def finish(self) -> None:
        """End the windows, so that the remaining outcomes enter."""
        self._session.end_windows()

    def shown(self) -> list[Output]:
        """The number of rounds."""
        return [Output("the session's rounds", repr(self._session.rounds), STATUS)]


class TrialStage:
    """A trial in its own file."""

    def __init__(self, design: Design, terms: Terms, seed: bytes, noise: GivenNoise, folder: Path) -> None:
        from adaptinf.trial.live_trial import Trial
        from adaptinf.trial.trial_setup import declared_entry

        declared = terms.features, terms.dimension, terms.per_arm, terms.reward_range, terms.window
        first = declared_entry(design, terms.arms, terms.horizon, *declared)
        self._folder = folder
        self._trial = Trial._begun(folder / "trial.db", {**first, "seed": seed.hex()}, design, noise)

    def assign(self, steps: Sequence[int], contexts: Sequence[Any]) -> list[Decision]:
        """Assign arms, with a single write to disk."""
        units, keys = [[f"{word} {step + 1}" for step in steps] for word in ("participant", "assign")]
        return self._trial.assign_many(units, contexts, keys=keys)

    def record(self, steps: Sequence[int], ids: Sequence[int], rewards: Sequence[float | None]) -> list[Any]:
        """Record outcomes, with a single write to disk."""
        return list(self._trial.record_many(ids, rewards, keys=[f"record {step + 1}" for step in steps]))

    def amend(self, step: int, decision: int, reward: float) -> Any:
        """Correct an outcome."""
        how = {"reason": "the laboratory's correction", "by": "the laboratory"}
        return self._trial.amend(decision, reward, key=f"amend {step + 1}", **how)

    def erase(self, step: int, decision: int) -> Any:
        """Erase a participant."""
        how = {"reason": "on request", "by": "data protection"}
        return self._trial.erase(f"participant {step + 1}", key=f"erase {step + 1}", **how)

    def log(self) -> AdaptiveLog:
        """The log so far."""
        return self._trial.log("drop", erased="keep")

    def finish(self) -> None:
        """End the trial."""
        self._trial.finish("the horizon has been reached")

    def shown(self) -> list[Output]:
        """The trial's status, and the files of its public part, byte for byte."""
        return [*self._status(), *self._files()]

    def _status(self) -> list[Output]:
        status = self._trial.status()
        return [
            Output(
                f"status().{name}", repr(getattr(status, name)), RECORDS if name in _TELLS_RECORDS else STATUS
            )
            for name in status.__slots__
            if name not in _NO_OUTPUT
        ]

    def _files(self) -> list[Output]:
        place = Path(tempfile.mkdtemp(dir=self._folder))

        def written() -> list[tuple[str, bytes]]:
            self.log().public().to_csv(place / "public.csv")
            return [(path.name, path.read_bytes()) for path in sorted(place.iterdir())]

        files, problem = _answered(written)
        if files is None:
            return [Output("the files of the public part", problem, PUBLIC)]
        return [Output(f"the file {name}", repr(content), PUBLIC) for name, content in files]

    def close(self) -> None:
        """Close the file."""
        self._trial.close()


class _Play:
    """One run: its stage, its history and its outputs so far."""

    def __init__(self, stage: Stage, terms: Terms, history: History) -> None:
        self._stage, self._terms, self._history = stage, terms, history
        self._decisions: dict[int, Decision] = {}
        self.outputs: list[Output] = []

    def happen(self, kind: str, steps: list[int]) -> None:
        """Apply an event to several participants together, omitting those who were refused an arm."""
        if kind == ASSIGN:
            self._assign(steps)
            return
        known = [step for step in steps if step in self._decisions]
        if kind in (AMEND, ERASE):
            for step in known:
                self._act(kind, step)
        elif known:
            rewards = [None if kind == LOSE else self._outcome(step) for step in known]
            ids = [self._decisions[step].id for step in known]
            self._answers(kind, known, lambda: self._stage.record(known, ids, rewards))

    def _assign(self, steps: list[int]) -> None:
        contexts = [self._context(step) for step in steps]
        made, problem = _answered(lambda: self._stage.assign(steps, contexts))
        for place, step in enumerate(steps):
            text = problem if made is None else repr(made[place].arm)
            self.outputs.append(Output(f"the arm of participant {step + 1}", text, ARM, step))
            if made is not None:
                self._decisions[step] = made[place]

    def _context(self, step: int) -> Any:
        contexts, features = self._history.contexts, self._terms.features
        if contexts is None:
            return None
        return contexts[step] if features is None else features[int(contexts[step])]

    def _outcome(self, step: int) -> float:
        """The outcome for the arm that a participant received."""
        return float(self._history.rewards[step, self._terms.arms.index(self._decisions[step].arm)])

    def _act(self, kind: str, step: int) -> None:
        decision = self._decisions[step].id
        if kind == ERASE:
            self._answers(kind, [step], lambda: [self._stage.erase(step, decision)])
        else:
            reward = self._history.amended[step][0]
            self._answers(kind, [step], lambda: [self._stage.amend(step, decision, reward)])

    def _answers(self, kind: str, steps: list[int], act: Callable[[], list[Any]]) -> None:
        answers, problem = _answered(act)
        for place, step in enumerate(steps):
            text = problem if answers is None else repr(answers[place])
            self.outputs.append(
                Output(f"the response to {kind} for participant {step + 1}", text, ANSWER, step)
            )

    def end(self) -> None:
        """End the trial if its horizon has been reached."""
        if self._terms.rounds == self._terms.horizon:
            _, problem = _answered(self._stage.finish)
            if problem:
                self.outputs.append(Output("the response to finish", problem, ANSWER))

    def log(self) -> AdaptiveLog | None:
        """The current log; if there is none, the reason is output instead."""
        log, problem = _answered(self._stage.log)
        if log is None:
            self.outputs.append(Output("the log", problem, PUBLIC))
        return log

    def publish(self, log: AdaptiveLog, when: str) -> None:
        """Add the public part of a log, in full, to the outputs."""
        public, problem = _answered(log.public)
        if public is None:
            self.outputs.append(Output(f"public() {when}", problem, PUBLIC))
            return
        parts = {
            "guarantee": repr(public.guarantee),
            **{f"facts[{name!r}]": repr(value) for name, value in public.facts.items()},
            "releases": _table(public.releases),
            "rounds": "none" if public.rounds is None else _table(public.rounds),
            "parts": repr(public.parts),
            "statement": public.statement,
        }
        self.outputs += [Output(f"public().{name} {when}", text, PUBLIC) for name, text in parts.items()]

    def tables(self, log: AdaptiveLog) -> None:
        """Add the conclusions from the log's releases about arms and groups, with intervals and p-values."""
        from adaptinf.inference.arms import ArmMeans, Contrast

        control, treatment = self._terms.arms[0], self._terms.arms[-1]
        tables: dict[str, Callable[[], str]] = {
            "ArmMeans": lambda: _table(ArmMeans(log).fit("released").to_frame()),
            "Contrast": lambda: _table(
                Contrast(log, treatment=treatment, control=control).fit("released").to_frame()
            ),
            "effects by group": lambda: _group_effects(log),
        }
        for name, table in tables.items():
            # A refusal is an output too: it is compared like a table. A table is refused if, for instance,
            # outcomes are missing.
            found, problem = _answered(table)
            self.outputs.append(Output(f"{name} from the releases", found or problem, RECORDS))

    def propensities(self, log: AdaptiveLog) -> None:
        """Add the propensities of every participant, if the design has any."""
        if log.arrays.propensities is not None:
            self.outputs += [
                Output(f"the propensities of participant {step + 1}", repr(row), PROPENSITIES, step)
                for step, row in enumerate(log.arrays.propensities.tolist())
            ]


def released(stage: Stage, terms: Terms, history: History, noise: GivenNoise, until: str = "") -> Released:
    """The releases and nodes of a history, as in `played`; with `until`, only up to the draw of that node."""
    play = _Play(stage, terms, history)
    for kind, steps in history.events(terms):
        play.happen(kind, steps)
        if until in noise.asked:
            break
    else:
        play.end()
    return Released(_releases(play.log()), noise.asked)


def played(stage: Stage, terms: Terms, history: History, noise: GivenNoise) -> Shown:
    """Apply a history to a stage with the given noise."""
    # Public output is compared half-way as well, because trials that agree at the end may have differed
    # before.
    play, half = _Play(stage, terms, history), terms.rounds // 2
    for kind, steps in history.events(terms):
        if kind == ASSIGN and 0 < half <= steps[0]:
            half = 0
            if (log := play.log()) is not None:
                play.publish(log, "half-way")
        play.happen(kind, steps)
    play.end()
    log = play.log()
    if log is not None:
        play.propensities(log)
        play.publish(log, "at the end")
        play.tables(log)
    shown = stage.shown()
    releases = _releases(log)
    nodes = [
        Output(f"draw {number}", f"{name}, scale {scale!r}", NODE)
        for number, (name, scale) in enumerate(noise.asked.items(), 1)
    ]
    rows = [Output(f"release {number}", repr(row), RELEASE) for number, row in enumerate(releases, 1)]
    return Shown([*play.outputs, *nodes, *rows, *shown], Released(releases, noise.asked))


def _answered(act: Callable[[], _Answer]) -> tuple[_Answer | None, str]:
    """A response, or the reason for a refusal."""
    try:
        return act(), ""
    except AdaptinfError as error:
        return None, f"refused: {error}"


def _releases(log: AdaptiveLog | None) -> list[Release]:
    if log is None or log.releases is None:
        return []
    columns = [log.releases[name].tolist() for name in Release._fields]
    return [Release(*row) for row in zip(*columns, strict=True)]


def _table(frame: pd.DataFrame) -> str:
    """A table as text that preserves every bit of its numbers."""
    return repr({name: frame[name].tolist() for name in frame.columns})


def _group_effects(log: AdaptiveLog) -> str:
    """Effects by group as text: estimates, intervals and p-values for the hypothesis of no effect."""
    from adaptinf.inference.released.group_effects import released_effects

    found = released_effects(log)
    numbers = [found.estimate, *found.effect.interval(_LOG_ALPHA), found.effect.log_pvalues(0.0)]
    return repr((found.groups, [part.tolist() for part in numbers]))
