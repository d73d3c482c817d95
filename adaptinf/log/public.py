"""The public part of a log, which its privacy guarantee covers, with a reason for each component."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.claims import Claim, Said, first, said
from adaptinf.claims.logs import coverage as claims
from adaptinf.claims.logs import public_part
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.files import as_path, atomic_write
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.log.provenance import auxiliary_guarantees, guarantee_of_person, source_note
from adaptinf.log.storage.parquet import StoredPublic, write_public
from adaptinf.log.storage.stored import encode, storable
from adaptinf.log.storage.view import LogColumns
from adaptinf.log.traits import BLANKED, PLANNED, DesignTraits, Outputs
from adaptinf.log.traits import declared as declared_parameters
from adaptinf.log.validation import DesignRecord, Label
from adaptinf.parameters import refuse
from adaptinf.texts import spreadsheet_cell, with_texts

_NEVER = (
    *("unit_id", "decision_id", "reward", "received", "observation", "outcome_round", "batch"),
    "randomised",
)
"""Columns that no guarantee covers, whether or not the log has them."""


@dataclass(frozen=True, slots=True)
class Part:
    """One column or field, whether the guarantee covers it, and the reason."""

    name: str
    covered: bool
    reason: str


class _Facts:
    """Facts for claims about the guarantee, the design's statements, and one named part."""

    always = True

    def __init__(self, log: LogColumns, name: str, declared: Collection[str] = ()) -> None:
        assert log.guarantee is not None
        self.log, self.guarantee, self.name, self._declared = log, log.guarantee, name, declared
        self.outputs = stated_outputs(log) or Outputs()

    @property
    def anticipating(self) -> bool:
        return self.guarantee.notion != "standard"

    @property
    def has_estimates(self) -> bool:
        return self.log.propensity_status == "estimated"

    @property
    def outputs_by_context(self) -> bool:
        return self.outputs.propensities == "by-context"

    @property
    def outputs_without_propensities(self) -> bool:
        return self.outputs.propensities == "not covered"

    @property
    def counts_rounds(self) -> bool:
        return np.array_equal(self.log.column("t"), np.arange(1, self.log.n_rounds + 1))

    @property
    def phase_by_calendar(self) -> bool:
        return self.outputs.phase == "calendar"

    @property
    def phase_by_outputs(self) -> bool:
        return self.outputs.phase == "outputs" and not self.anticipating

    @property
    def protects_contexts(self) -> dict[str, str]:
        return {} if self.guarantee.unit == "reward" else {"unit": self.guarantee.unit}

    @property
    def context_is_public(self) -> bool:
        return self.name in self._declared

    @property
    def length_by_releases(self) -> bool:
        # The design did not determine the length if the log is a beginning of a longer one, or if somebody
        # ended the trial.
        return self.outputs.length != "declared" and self.log.stopping not in ("fixed", "data-chosen")

    @property
    def ended_early(self) -> bool:
        return self.log.design is not None and PLANNED in self.log.design.parameters

    @property
    def stopped_by_data(self) -> bool:
        return self.log.stopping == "data-chosen"

    @property
    def recommends_by_releases(self) -> bool:
        return bool(self.outputs.recommended)


def column_coverage(
    log: LogColumns, names: Iterable[str], contexts: Collection[str] = ()
) -> tuple[Part, ...]:
    """Coverage of a private log's columns, by canonical name, given the contexts declared public."""
    return tuple(_part(_claims_of(log, name), _Facts(log, name, contexts)) for name in names)


def public_columns(log: LogColumns, contexts: Collection[str]) -> tuple[Part, ...]:
    """Coverage of all columns that may be declared, given the contexts that were declared public."""
    # Coverage follows from what was declared, and never from which columns the log happens to have: that an
    # outcome was late or a participant was erased must not become an output.
    declared = [name for name in map(str, log.frame) if name.startswith("propensity") or name == "phase"]
    columns = column_coverage(log, ["action", *declared, *_NEVER, *log.outcomes], contexts)
    about = tuple(_part(claims.CONTEXT, _Facts(log, name, contexts)) for name in context_names(log))
    by_round = any(part.name == "action" and part.covered for part in columns)
    counted = (Part("t", True, claims.COUNTS_ROUNDS()),) if by_round else ()
    return (*counted, *columns, *about)


def field_coverage(log: LogColumns) -> tuple[Part, ...]:
    """Coverage of the contents of a private log other than its columns."""
    return tuple(_part(listed, _Facts(log, name)) for name, listed in claims.FIELDS.items())


def context_names(log: LogColumns) -> list[str]:
    """Names of the declared contexts, in the log or erased."""
    blanked = [] if log.design is None else log.design.parameters.get(BLANKED, [])
    return [*log.context, *(name for name in blanked if name not in log.context)]


def stated_outputs(log: LogColumns | PublicLog) -> Outputs | None:
    """The statements of the log's design about its outputs."""
    traits = None if log.design is None else log.design.traits
    return None if traits is None else traits.outputs


def not_covered(log: LogColumns, names: Iterable[str]) -> dict[str, str]:
    """Columns of a private log outside its guarantee, with reasons; empty if it has no guarantee."""
    if log.guarantee is None:
        why = log.unpromised
        return dict.fromkeys(names, claims.UNPROMISED(reasons="; ".join(why))) if why else {}
    if math.isinf(log.guarantee.epsilon):
        return dict.fromkeys(names, claims.INFINITE())
    return {part.name: part.reason for part in column_coverage(log, names) if not part.covered}


def noise_told(noise: str | None) -> str:
    """The source of the noise, printed after a guarantee."""
    told = {"simulation": "; simulated noise, not private", "release": "; exact noise (release)"}
    return told.get(noise or "", "")


def _claims_of(log: LogColumns, name: str) -> Sequence[Claim]:
    """Facts about a column."""
    if name in log.context:
        return claims.CONTEXT
    if name in log.outcomes:
        return (claims.OUTCOME,)
    if name == "propensity" or name.startswith("propensity_"):
        return claims.PROPENSITY
    return claims.COLUMNS[name]


def _part(listed: Sequence[Claim], facts: _Facts) -> Part:
    """The first claim that applies: why the part is covered, or which condition is not met."""
    told = first(listed, facts)
    assert isinstance(told, Said)
    return Part(facts.name, told.claim.kind == "reason", told)


_PARQUET_SUFFIXES = (".parquet", ".pq")


@dataclass(frozen=True, eq=False)
class PublicLog:
    """The part of a log covered by its privacy guarantee, with an explanation; see `AdaptiveLog.public`.

    `to_parquet` writes the public part as one file, which `read_log` reads; `ArmMeans`, `Contrast`, `CATE`,
    `BinMeans` and `report` accept it, and recompute the published table from its releases.

    Attributes
    ----------
    guarantee : PrivacyGuarantee
        The guarantee that covers this part.
    facts : dict of str to object
        Covered fields: the design with its parameters and traits, the arms, the names of contexts, the noise,
        the number of rounds and, if stated, how it was determined (``"stopping"``); if covered, also the
        recommended arm, each arm's pulls, and the schedule of the phases.
    releases : DataFrame
        Columns round, name, group, value, mechanism and scale.
    rounds : DataFrame or None
        Covered columns, one row per round; None if no action is covered.
    parts : tuple of Part
        Every column and field of the log: its name, whether it is covered, and the reason.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.BernoulliArms([0.9, 0.5, 0.2])
    >>> log = ai.designs.PrivateSuccessiveElimination(epsilon=1.0).run(arms, horizon=10_000, rng=0)
    >>> public = log.public()
    >>> public.rounds.columns.tolist()
    ['t', 'action', 'propensity', 'propensity_0', 'propensity_1', 'propensity_2']
    >>> public.covered["action"]
    'actions and releases are covered jointly'
    >>> public.left_out["reward"]
    'rewards are the data that the guarantee protects'
    """

    guarantee: PrivacyGuarantee
    facts: Mapping[str, Any]
    releases: pd.DataFrame
    rounds: pd.DataFrame | None
    parts: tuple[Part, ...]

    @property
    def covered(self) -> dict[str, str]:
        """The contents of the public part, with the reasons."""
        return {part.name: part.reason for part in self.parts if part.covered}

    @property
    def left_out(self) -> dict[str, str]:
        """Contents of the log that the public part omits, with the reason."""
        return {part.name: part.reason for part in self.parts if not part.covered}

    @property
    def statement(self) -> str:
        """A description of the contents of the public part, with reasons, and of the omitted contents."""
        lines = [
            *said(public_part.OPENING, _StatementFacts(self)),
            "Included:",
            *(f"  {name}: {reason}" for name, reason in self.covered.items()),
            "Left out:",
            *(f"  {name}: {reason}" for name, reason in self.left_out.items()),
        ]
        return "\n".join(lines)

    unpromised = ()
    """Why the guarantee does not hold; always empty, because otherwise there would be no public part."""

    @property
    def arms(self) -> tuple[Label, ...]:
        """All arms."""
        return tuple(self.facts["arms"])

    @property
    def n_arms(self) -> int:
        """Number of arms, chosen or not."""
        return len(self.arms)

    @property
    def n_rounds(self) -> int:
        """Number of rounds."""
        return int(self.facts["n_rounds"])

    @property
    def noise(self) -> str | None:
        """Source of the privacy noise."""
        noise: str | None = self.facts["noise"]
        return noise

    @property
    def stopping(self) -> str | None:
        """How the number of rounds was determined, if stated."""
        stopping: str | None = self.facts.get("stopping")
        return stopping

    @property
    def guarantee_source(self) -> str | None:
        """Source of the guarantee, as in the log."""
        source: str | None = self.facts["guarantee_source"]
        return source

    @cached_property
    def design(self) -> DesignRecord | None:
        """The design as it was declared."""
        traits = self.facts["traits"]
        known = None if traits is None else DesignTraits.from_dict(traits)
        name = self.facts["design"]
        return None if name is None else DesignRecord(name, dict(self.facts["parameters"]), known)

    @property
    def declared_person_guarantee(self) -> PrivacyGuarantee | None:
        """The guarantee for a person with the largest declared number of rounds."""
        return guarantee_of_person(self.guarantee, self.facts.get("rounds_per_unit"))

    @property
    def auxiliary_guarantees(self) -> tuple[PrivacyGuarantee, ...]:
        """The guarantee for the participants of each auxiliary log."""
        return auxiliary_guarantees(None if self.design is None else self.design.traits)

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write one Parquet file from which `read_log` restores an equal public part.

        Parameters
        ----------
        path : path
            File name that ends in ``.parquet`` or ``.pq``. Other programs read the releases as its rows; its
            schema contains the explanation and everything else, with a digest, under ``adaptinf.public``.

        Raises
        ------
        ParameterError
            If the name has another ending.
        FileError
            If the file cannot be written; an existing file is left unchanged.
        """
        place = as_path("PublicLog.to_parquet", "path", path)
        _check_ending(place, _PARQUET_SUFFIXES)
        write_public(place, self._stored())

    def equals(self, other: PublicLog) -> bool:
        """Whether two public parts have the same contents; NaN equals NaN."""
        mine, theirs = self._stored(), other._stored()
        return mine.told() == theirs.told() and mine.tables() == theirs.tables()

    def _stored(self) -> StoredPublic:
        parts = tuple((part.name, part.covered, part.reason) for part in self.parts)
        return StoredPublic(
            self.guarantee, dict(self.facts), self.releases, self.rounds, parts, self.statement
        )

    @classmethod
    def _restored(cls, stored: StoredPublic) -> PublicLog:
        parts = tuple(Part(*part) for part in stored.parts)
        return cls(stored.guarantee, stored.facts, stored.releases, stored.rounds, parts)

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write releases as CSV, rounds to ``<name>_rounds``, and explanation and facts to ``<path>.json``.

        These files are for other programs: `read_log` reads the file of `to_parquet`.

        Parameters
        ----------
        path : path
            File name that ends in ``.csv``.

        Raises
        ------
        ParameterError
            If the name has another ending.
        """
        path = as_path("PublicLog.to_csv", "path", path)
        for place, table in self._tables(path, (".csv",)).items():
            text = (
                with_texts(table, spreadsheet_cell)
                .to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
                .encode()
            )
            atomic_write(place, lambda file, text=text: file.write(text))  # type: ignore[misc]
        told = json.dumps(self._told(), indent=1).encode()
        atomic_write(path.with_name(f"{path.name}.json"), lambda file: file.write(told))

    def _tables(self, path: Path, suffixes: Sequence[str]) -> dict[Path, pd.DataFrame]:
        _check_ending(path, suffixes)
        if self.rounds is None:
            return {path: self.releases}
        return {path: self.releases, path.with_stem(f"{path.stem}_rounds"): self.rounds}

    def _told(self) -> dict[str, Any]:
        """The public part except for its tables, in the form stored as JSON."""
        return {
            "statement": self.statement,
            "guarantee": self.guarantee.to_dict(),
            "facts": encode(dict(self.facts)),
            "covered": self.covered,
            "left_out": self.left_out,
        }

    def __str__(self) -> str:
        """The statement."""
        return self.statement


def _check_ending(path: Path, suffixes: Sequence[str]) -> None:
    if path.suffix.lower() not in suffixes:
        problem = f"the name must end in {' or '.join(suffixes)}, got {path.name!r}"
        raise ParameterError("PublicLog files", [problem])


class _StatementFacts:
    """Facts about a public part, for the claims in its statement."""

    always = True

    def __init__(self, public: PublicLog) -> None:
        self._guarantee, self._facts = public.guarantee, public.facts

    @property
    def guarantee(self) -> dict[str, str]:
        return {"guarantee": str(self._guarantee), "source": source_note(self._facts["guarantee_source"])}

    @property
    def notion(self) -> str:
        return " ".join(said(public_part.NOTION, self))

    @property
    def standard(self) -> bool:
        return self._guarantee.notion == "standard"

    @property
    def anticipating(self) -> bool:
        return not self.standard

    @property
    def protects_rewards(self) -> bool:
        return self._guarantee.unit == "reward"

    @property
    def protects_records(self) -> bool:
        return not self.protects_rewards

    @property
    def guarantee_reasons(self) -> list[str]:
        return [f"  {reason}" for reason in self._guarantee.reasons]

    @property
    def simulated_noise(self) -> bool:
        return bool(self._facts["noise"] == "simulation")

    @property
    def exact_noise(self) -> bool:
        return bool(self._facts["noise"] == "release")

    @property
    def unknown_noise(self) -> bool:
        return self._facts["noise"] is None

    @property
    def price(self) -> dict[str, str]:
        more = public_part.MORE_DELTA() if self._guarantee.delta else ""
        return {"unit": self._guarantee.protects, "delta": more}


class Publishable:
    """Access to the part of a log that its guarantee covers."""

    def public(self: LogColumns, contexts: Sequence[str] = ()) -> PublicLog:  # type: ignore[misc]
        """The part of the log covered by its privacy guarantee, and nothing else.

        Parameters
        ----------
        contexts : sequence of str
            Context columns that were declared public before the trial, by the user's or the canonical names.
            Only a guarantee for rewards leaves contexts public.

        Returns
        -------
        PublicLog
            Releases, declared parameters and, under the standard notion, actions and everything that follows
            from them, with a reason for every part. The public part has its own methods for writing files.

        Raises
        ------
        ParameterError
            If `contexts` contains a name that is not a context of the log, or the guarantee protects
            contexts.
        InvalidForLog
            If the log has no finite guarantee, or its design does not define its outputs.

        Notes
        -----
        The public part never contains rewards, units, coins, seeds, times, counts of missing or clipped
        outcomes, or a digest of the raw log, against which guesses could be checked. Under the anticipating
        notion, a participant's own action is omitted as well, and therefore all actions, their counts and
        propensities by round: a published column would show every participant's own action.

        The design's statements are taken as true, as is the declaration of arms, groups of contexts,
        parameters and horizon.

        Examples
        --------
        >>> import adaptinf as ai
        >>> groups = ai.environments.FiniteContext([0.5, 0.5], [[0.4, 0.7], [0.6, 0.3]])
        >>> log = ai.designs.DPConSE(epsilon=1.0).run(groups, horizon=2_000, rng=0)
        >>> public = log.public()
        >>> public.rounds is None, public.facts["calendar"]
        (True, {'learning': [1, 1000], 'estimation': [1001, 2000]})
        """
        return _public_log(self, contexts)


def _public_log(log: LogColumns, contexts: Sequence[str]) -> PublicLog:
    guarantee = _finite_guarantee(log)
    declared = _declared_contexts(log, contexts, guarantee)
    frame = log.frame
    columns, fields = public_columns(log, declared), field_coverage(log)
    shown = {part.name for part in (*columns, *fields) if part.covered}
    rounds = None
    if "action" in shown:
        frame["t"] = np.arange(1, log.n_rounds + 1)
        actions = storable({"action": frame["action"].to_numpy()}, log.arms)["action"]
        rounds = frame.assign(action=actions)[[name for name in frame.columns if name in shown]]
    facts = {
        "design": None if log.design is None else log.design.name,
        "parameters": None if log.design is None else declared_parameters(log.design.parameters),
        "traits": None if log.design is None or log.design.traits is None else log.design.traits.to_dict(),
        "arms": list(log.arms),
        "contexts": context_names(log),
        "guarantee_source": log.guarantee_source,
        "noise": log.noise,
        "n_rounds": log.n_rounds,
        **({"rounds_per_unit": log.rounds_per_unit} if log.rounds_per_unit is not None else {}),
        **({"stopping": log.stopping} if log.stopping is not None else {}),
        **({"recommended": log.recommended} if "recommended" in shown else {}),
        **({"pulls": _pulls(log)} if "pulls" in shown else {}),
        **({"calendar": _calendar(log)} if _by_calendar(log) else {}),
    }
    return PublicLog(guarantee, facts, log.releases.copy(), rounds, (*columns, *fields))


def _finite_guarantee(log: LogColumns) -> PrivacyGuarantee:
    guarantee = log.guarantee
    if guarantee is None:
        why = f" ({'; '.join(log.unpromised)})" if log.unpromised else ""
        raise InvalidForLog("public", f"it has no privacy guarantee, so none of it is covered{why}", ())
    if not np.isfinite(guarantee.epsilon):
        reason = f"its guarantee is infinite, so none of it is covered ({'; '.join(guarantee.reasons)})"
        raise InvalidForLog("public", reason, ())
    if stated_outputs(log) is None:
        reason = "its design does not declare its outputs, so the coverage of the guarantee is unknown"
        ways = ("a log whose design declares them: DesignTraits(outputs=Outputs(...))",)
        raise InvalidForLog("public", reason, ways)
    return guarantee


def _declared_contexts(log: LogColumns, contexts: Any, guarantee: PrivacyGuarantee) -> tuple[str, ...]:
    given = (contexts,) if isinstance(contexts, str) else contexts
    if not isinstance(given, (list, tuple)) or not all(isinstance(name, str) for name in given):
        raise ParameterError(
            "AdaptiveLog.public", [f"contexts must be a list of names, got {contexts!r:.60}"]
        )
    found = tuple(str(log.columns.get(name, name)) for name in given)
    known = ", ".join(map(repr, log.context)) or "none"
    problems = [
        f"contexts contains {name!r}, but the log's contexts are {known}"
        for name, canonical in zip(given, found, strict=True)
        if canonical not in log.context
    ]
    if given and guarantee.unit != "reward":
        problems.append(
            f"contexts must be omitted: the guarantee is per {guarantee.unit}, and contexts are part of it"
        )
    refuse("AdaptiveLog.public", problems)
    return found


def _pulls(log: LogColumns) -> dict[Any, int]:
    return dict(zip(log.arms, log._rounds_by_arm().tolist(), strict=True))


def _by_calendar(log: LogColumns) -> bool:
    outputs = stated_outputs(log)
    return outputs is not None and outputs.phase == "calendar" and log.arrays.phase is not None


def _calendar(log: LogColumns) -> dict[str, list[int]]:
    """First and last round of each phase."""
    codes = log.arrays.phase
    assert codes is not None
    places = {name: np.flatnonzero(codes == code) + 1 for code, name in enumerate(log.phases)}
    return {name: [int(rows[0]), int(rows[-1])] for name, rows in places.items() if rows.size}
