"""Logs whose designs are run again: contexts and rewards are the same, whichever arm is pulled.

Under the sharp null hypothesis, the rewards of all rounds are given, whatever the arms. Re-runs draw the arms
A of n rounds from the design's distribution. The log's arms are a draw from this distribution given that the
trial stopped after n rounds, and the two distributions agree if that event is independent of A: if the
decision to stop used only rewards, regardless of their arms, or nothing at all. If the decision used the
arms, for example by comparing their means, only re-runs that stop by the same rule would be valid, and there
are no rows for those that continue for longer. Permuted rows must also be exchangeable given n, which fails
if the decision used rewards. An exact distribution of counts refers to n rounds; a trial that may stop has
other possible outcomes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from adaptinf.claims import Claim, said
from adaptinf.claims.logs import stopping as claims
from adaptinf.designs.base import Design
from adaptinf.designs.recorded_designs import rebuilt
from adaptinf.inference.results.log_facts import StoppingFacts
from adaptinf.log import AdaptiveLog
from adaptinf.log.report import FIXED, Stopping
from adaptinf.log.traits import ADDED, AMENDED, LEFT_OUT, PLANNED, REMOVED, SWITCHED
from adaptinf.simulation.environment import Environment, environment_tables
from adaptinf.simulation.run import GIVEN, IN_ORDER, TABLEAU, EnvironmentTables
from adaptinf.texts import absent
from adaptinf.typing import FloatArray, IntArray


def design_of(source: Any, problems: list[str]) -> Design | None:
    """The design itself, or the one that a log's record describes."""
    if isinstance(source, Design):
        return source
    if not isinstance(source, AdaptiveLog):
        problems.append(f"design must be a design or a log, got {source!r:.60}")
        return None
    if source.design is None:
        problems.append("the log does not name its design: pass the design itself")
        return None
    made = rebuilt(source.design)
    if made is None:
        problems.append(
            f"{source.design.name} cannot be reconstructed from the log's record: pass the design itself"
        )
    return made


def length_cautions(log: AdaptiveLog, instead: Claim) -> tuple[str, ...]:
    """Caution about a test with a fixed number of rounds; `instead` states when the test remains valid."""
    if log.stopping == FIXED:
        return ()
    told = StoppingFacts(Stopping.of(log), instead())
    return tuple(said(claims.FIXED_LENGTH, told, "caution"))


def rerun_cautions(log: AdaptiveLog, by_order: bool) -> tuple[str, ...]:
    """Statements about a design that is re-run, with its rows in the same or another order."""
    return length_cautions(log, claims.REORDERED if by_order else claims.RERUN)


@dataclasses.dataclass(frozen=True, slots=True)
class _Contexts:
    """Contexts in the form used by a design: codes of finitely many, or one vector per arm."""

    codes: IntArray
    labels: tuple[Any, ...] = ()
    name: str | None = None
    vectors: FloatArray | None = None
    vector_names: tuple[str, ...] = ()
    shared: bool = False


class LoggedRows(Environment):
    """Contexts of a log in order, and rewards of shape (rounds, arms)."""

    def __init__(
        self,
        rewards: FloatArray,
        arms: tuple[Any, ...],
        reward_range: tuple[float, float],
        contexts: _Contexts,
    ) -> None:
        n_rounds, n_arms = rewards.shape
        n_features = max(1, len(contexts.labels))
        self.arms = arms
        self.features = contexts.labels
        self.context_name = contexts.name
        self.probabilities = np.full((1, n_features), 1.0 / n_features)
        self.means = np.broadcast_to(rewards.mean(axis=0), (n_features, n_arms)).copy()
        self.reward_range = reward_range
        vectors = contexts.vectors
        if vectors is not None:
            self.dimension = vectors.shape[2]
            self.vector_names = contexts.vector_names
        self._tables = environment_tables(
            TABLEAU,
            self.means,
            arrivals=self.probabilities,
            tableau=(np.ascontiguousarray(rewards), contexts.codes),
            theta=None if vectors is None else np.zeros((n_arms, self.dimension)),
            vector_law=IN_ORDER,
            shared=contexts.shared,
            vectors=None if vectors is None else vectors.reshape(n_rounds, -1),
            mean_law=GIVEN,
        )

    def paying(self, rewards: FloatArray) -> EnvironmentTables:
        """The contexts with other rewards, of shape (rounds, arms)."""
        return self._tables._replace(tableau=np.ascontiguousarray(rewards))


def reordered(tables: EnvironmentTables, order: IntArray) -> EnvironmentTables:
    """The rows in another order: contexts and rewards stay together."""
    vectors = tables.vectors[order] if tables.vectors.shape[0] else tables.vectors
    return tables._replace(
        tableau=tables.tableau[order], tableau_features=tables.tableau_features[order], vectors=vectors
    )


def logged_rows(
    log: AdaptiveLog,
    design: Design,
    context: str | Sequence[str] | None,
    features: Sequence[Any] | None,
    problems: list[str],
) -> LoggedRows | None:
    """The rows of a log in the form used by the design; reasons why this fails are added to `problems`."""
    arrays = log.arrays
    late = late_problems(log)
    problems += late
    contexts = _contexts(log, design, context, features, problems)
    if contexts is None or late:
        return None
    rewards = np.repeat(arrays.reward[:, None], log.n_arms, axis=1)
    span = log.reward_range or (float(arrays.reward.min()), float(arrays.reward.max()))
    rows = LoggedRows(rewards, tuple(log.arms), span, contexts)
    problems += plan_problems(log, design, rows)
    return rows


def _same_tables(one: Any, other: Any) -> bool:
    """Whether two programs have the same tables, which may be nested."""
    if isinstance(one, tuple):
        return all(map(_same_tables, one, other))
    if one is None:
        return other is None
    return bool(np.array_equal(one, other, equal_nan=True))


def plan_problems(log: AdaptiveLog, design: Design, env: Environment) -> list[str]:
    """Why a design cannot be re-run for a log that stopped early: its choices depend on the plan."""
    planned = None if log.design is None else log.design.parameters.get(PLANNED)
    if planned is None or not design.traits.adapts or design._environment_problems(env, log.n_rounds):
        return []
    again, before = (
        design.program(env, rounds, recording=False).tables for rounds in (log.n_rounds, planned)
    )
    if _same_tables(again, before):
        return []
    return [
        f"the log contains {log.n_rounds:,} of {planned:,} planned rounds, and the choices of "
        f"{type(design).__name__} depend on that number: if run again, it would plan for fewer"
    ]


def late_problems(log: AdaptiveLog) -> list[str]:
    """Why a design cannot be re-run for a log: outcomes arrived late, or arms were removed or added."""
    told = log.design
    adapts = told is not None and (told.traits is None or told.traits.adapts)
    problems = []
    if told is not None and adapts and (amended := told.parameters.get(AMENDED)):
        problems.append(
            f"{amended} outcomes were amended after the design had used other values: log(amended=False) "
            "gives a log with the values that it used"
        )
    for name, done in ((REMOVED, "removed"), (ADDED, "added")):
        if told is not None and (changed := told.parameters.get(name)):
            arms = ", ".join(f"{arm!r} after round {before:,}" for arm, before in changed)
            problems.append(
                f"arms were {done} by hand ({arms}), and {told.name} would not do so when it is run again"
            )
    if told is not None and (changed := told.parameters.get(SWITCHED)):
        versions = ", ".join(f"{version} after round {before:,}" for version, before in changed)
        problems.append(
            f"other versions of adaptinf decided in parts of the trial ({versions}), and a re-run uses one"
        )
    if told is not None and adapts and (left_out := told.parameters.get(LEFT_OUT)):
        problems.append(
            f"{left_out:,} rounds of participants who were erased are omitted, but {told.name} used them"
        )
    return problems + _order_problems(log)


def _order_problems(log: AdaptiveLog) -> list[str]:
    """Reasons why later choices did not use the outcomes of earlier ones."""
    known, batch = log.arrays.known, log.arrays.batch
    if known is None:
        return []
    rows = np.arange(1, log.n_rounds + 1)
    following = rows if batch is None else np.searchsorted(batch, batch, side="right")
    late = int(np.count_nonzero(known > following))
    if not late:
        return []
    return [
        f"{late} outcomes became known after the next {'round' if batch is None else 'batch'} had begun "
        "(outcome_round), but a re-run design receives every outcome immediately"
    ]


def _contexts(
    log: AdaptiveLog, design: Design, context: Any, features: Any, problems: list[str]
) -> _Contexts | None:
    inner = getattr(design, "design", design)
    none = _Contexts(np.zeros(log.n_rounds, dtype=np.int64))
    if inner.needs.vectors == "needed":
        return _vectors(log, context, problems)
    if inner.needs.vectors == "ignored":
        return none
    if inner.needs.vectors == "any" and _have_vectors(log, context):
        return _vectors(log, context, problems)
    names = [context] if isinstance(context, str) else list(context or log.context)
    if not names:
        return none
    if len(names) > 1 or names[0] not in log.context:
        problems.append(f"context must name the only context column that the design uses, got {names!r:.80}")
        return None
    column = log.arrays.context[names[0]]
    labels = _labels(column, features, problems)
    if labels is None:
        return None
    position = {label: code for code, label in enumerate(labels)}
    codes = np.array([position[value] for value in column.tolist()], dtype=np.int64)
    return _Contexts(codes, labels, names[0])


def _labels(column: Any, features: Any, problems: list[str]) -> tuple[Any, ...] | None:
    """Labels of the contexts in the design's order: as given, or 0, 1, 2, ..., or sorted."""
    found = sorted(set(column.tolist()))
    if features is not None:
        labels = tuple(features)
        missing = [label for label in found if label not in labels]
        if missing:
            problems.append(f"features must list every context of the log; {missing!r:.80} are missing")
            return None
        return labels
    if column.dtype.kind in "iu" and found[0] >= 0 and found[-1] < 2 * len(found) + 1000:
        return tuple(range(found[-1] + 1))
    return tuple(found)


def _have_vectors(log: AdaptiveLog, context: Any) -> bool:
    """Whether the contexts of a log, or the named ones, are coordinates of vectors."""
    names = list(log.context)
    if context is not None:
        return not isinstance(context, str) and len(list(context)) > 1
    return bool(_numbered(names, "x{}")) or all(_numbered(names, f"x{{}}_{arm}") for arm in log.arms)


def _vectors(log: AdaptiveLog, context: Any, problems: list[str]) -> _Contexts | None:
    """Context vectors from columns x1, x2, ... (shared), x1_<arm>, ... (one per arm), or named columns."""
    names, columns = list(log.context), log.arrays.context
    if context is not None:
        shared = [context] if isinstance(context, str) else list(context)
        missing = [name for name in shared if name not in columns]
        if missing:
            problems += [f"context: {absent('column', name, names, 'the log has')}" for name in missing]
            return None
    else:
        shared = _numbered(names, "x{}")
    by_arm = [_numbered(names, f"x{{}}_{arm}") for arm in log.arms]
    if shared:
        vectors = np.column_stack([columns[name] for name in shared]).astype(np.float64)
        every = np.repeat(vectors[:, None], log.n_arms, axis=1)
        return _Contexts(np.zeros(log.n_rounds, np.int64), (), None, every, tuple(shared), True)
    if by_arm[0] and len({len(part) for part in by_arm}) == 1:
        every = np.stack([np.column_stack([columns[name] for name in part]) for part in by_arm], axis=1)
        flat = tuple(name for part in by_arm for name in part)
        return _Contexts(np.zeros(log.n_rounds, np.int64), (), None, every.astype(np.float64), flat, False)
    problems.append(
        "the design requires context vectors: columns x1, x2, ... of the log, or x1_<arm>, x2_<arm>, ... for "
        f"every arm; the log has {names!r:.80}. context= names the coordinates of a vector that all arms "
        "share"
    )
    return None


def _numbered(names: list[str], pattern: str) -> list[str]:
    found: list[str] = []
    while pattern.format(len(found) + 1) in names:
        found.append(pattern.format(len(found) + 1))
    return found
