"""Requests about sites and kits: checked, performed in memory, and returned as rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from adaptinf.errors import ParameterError
from adaptinf.parameters import refuse
from adaptinf.sessions import Decision
from adaptinf.sessions.participants import plain
from adaptinf.sessions.session_memory import answered, keep_key, refuse_key
from adaptinf.texts import shown
from adaptinf.trial.journal_rows import Entry
from adaptinf.trial.operator_actions import FINISHED, act_problems, named
from adaptinf.trial.planned_looks import PlannedLooks
from adaptinf.trial.supplies.kit_codes import form_problems, telling_problems
from adaptinf.trial.supplies.supply import Supply, named_at, site_problems, where_problems

BLINDED = "blinded"
"""Field of a trial's first entry: participants receive kits, and no arm is shown."""
SITE, KITS, RETIRED = "add_site", "add_kits", "retire_kit"
"""Kinds of rows about sites and kits, which are also the kinds of these requests."""


class Supplied(PlannedLooks):
    """The sites and kits of a trial."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.supply = Supply()

    @property
    def blinded(self) -> bool:
        """Whether participants receive kits, and no arm is shown."""
        return bool(self.declared.get(BLINDED, False))

    def add_site(self, site: Any, key: Any, by: Any) -> tuple[str, Entry | None]:
        """Add a site; return, if the key is new, the entry to write."""
        refuse(SITE, act_problems("a site", by))
        supply, said = self.supply, {"site": plain(site)}
        if not self._is_new(SITE, key, said):
            return str(site), None
        problems = site_problems(site, supply.sites)
        if self.session.rounds and not supply.sites:
            problems.append("participants were assigned without a site: add sites before the first one")
        refuse(SITE, problems)
        keep_key(self.session, SITE, plain(key), len(supply.sites))
        supply.add_site(site)
        return site, {"kind": SITE, "key": plain(key), **said, "by": by}

    def add_kits(
        self, site: Any, kits: Any, key: Any, by: Any, new: bool = False
    ) -> tuple[int, Entry | None]:
        """Add kits with their arms to a site; return their number and, if the key is new, the entry."""
        refuse(KITS, act_problems("kits", by))
        problems = (
            [] if isinstance(kits, Mapping) and kits else ["kits must be a dict that maps codes to arms"]
        )
        refuse(KITS, problems)
        codes = sorted(kits, key=str)
        said = {"site": plain(site), "codes": [[plain(code), plain(kits[code])] for code in codes]}
        if not self._is_new(KITS, key, said):
            return len(codes), None
        if not self.blinded:
            problems.append("the trial is not blinded, so it has no kits: create it with blinded=True")
        elif site is None or not self.supply.sites:
            problems.append("site is required: add it with add_site before its kits")
        problems += where_problems(site, self.supply.sites) if not problems else []
        problems += form_problems(codes, self.supply.kits)
        refuse(KITS, problems)
        pairs = [(code, self.session._participants.arm_code(KITS, kits[code])) for code in codes]
        if new:  # Replays skip this check, which reads all kits.
            known = {code: kit.arm for code, kit in self.supply.kits.items()} | dict(pairs)
            arms = self.session.arms
            refuse(KITS, telling_problems({code: arms[arm] for code, arm in known.items()}))
        keep_key(self.session, KITS, plain(key), len(self._rows(KITS)))
        self.supply.add_kits(site, pairs)
        return len(codes), {"kind": KITS, "key": plain(key), **said, "by": by}

    def add_new_kits(self, site: Any, kits: Any, key: Any, by: Any) -> tuple[int, Entry | None]:
        """As `add_kits`, for a new request: codes must not reveal arms."""
        return self.add_kits(site, kits, key, by, new=True)

    def retire_kit(self, kit: Any, key: Any, reason: Any, by: Any) -> tuple[str, Entry | None]:
        """Record that a kit was lost or damaged; return, if the key is new, the entry to write."""
        refuse(RETIRED, act_problems(reason, by))
        supply, said = self.supply, {"kit": plain(kit)}
        if not self._is_new(RETIRED, key, said):
            return str(kit), None
        if not isinstance(kit, str) or kit not in supply.kits:
            raise ParameterError(RETIRED, [f"there is no kit {shown(kit)}"])
        if not supply.in_stock(kit):
            how = "was retired before" if kit in supply.retired else "was given to a participant"
            raise ParameterError(RETIRED, [f"kit {kit} {how}"])
        keep_key(self.session, RETIRED, plain(key), len(supply.retired))
        supply.retire(kit)
        return kit, {"kind": RETIRED, "key": plain(key), **said, "reason": reason, "by": by}

    def unblind(self, unit: Any, reason: Any, by: Any) -> tuple[Decision, Entry]:
        """The decision about a unit with its arm and its kit, and the entry."""
        decision, entry = super().unblind(unit, reason, by)
        return replace(decision, kit=self.kit_of(decision.id)), entry

    def _is_new(self, subject: str, key: Any, said: Entry) -> bool:
        """Whether a key is new; an error if it belongs to another request."""
        if self._fresh(subject, key, refused=(FINISHED,)):
            self._refuse_erased(subject, key=key)
            return True
        place = answered(self.session, subject, plain(key))
        row = self._rows(subject)[place]
        if any(row[name] != value for name, value in said.items()):
            refuse_key(self.session, subject, plain(key))
        return False

    def _rows(self, kind: str) -> list[Entry]:
        return [act for act in self.acts if act["kind"] == kind]

    def at_site(self, subject: str, site: Any, unit: Any) -> Any:
        """The name of a unit at its site, after checks."""
        refuse(subject, [*named("unit", unit), *where_problems(plain(site), self.supply.sites)])
        return named_at(site, unit)

    def refuse_unsupplied(self, site: Any) -> None:
        """Refuse to draw an arm unless every arm that may be drawn has a kit at the site."""
        if not self.blinded:
            return
        refuse(
            "assign",
            ["site is required in a blinded trial: add sites and kits first"] if site is None else [],
        )
        if self.lacks_kits(site):
            # Which arm it is would tell those who see the other kits what was assigned.
            problem = (
                f"site {site!r} has no kit left for at least one arm: add kits before the next participant"
            )
            raise ParameterError("assign", [problem])

    def lacks_kits(self, site: str) -> bool:
        """Whether some arm that may be drawn has no kit at a site."""
        return any(self.supply.count(site, arm) == 0 for arm in self.assignable())

    def assignable(self) -> list[int]:
        """Positions of the arms that were not removed."""
        removed = set(self.removed)
        return [code for code, arm in enumerate(self.session.arms) if arm not in removed]

    def supplied(self, site: Any) -> None:
        """Note the site of the round that was just decided, and draw its kit."""
        supply, step = self.supply, self.session.rounds - 1
        if site is None:
            return
        arm = int(self.session._rounds.record.action[step]) if self.blinded else None
        refuse("assign", where_problems(site, supply.sites))
        if arm is not None and not supply.count(site, arm):
            raise ParameterError("assign", ["its arm has no kit"])
        self._coins.set("kit", step + 1)
        supply.give(site, arm, self._coins.generator.random)

    def kit_of(self, decision: int) -> str | None:
        """The kit of a decision, if there is one."""
        return self.supply.of(decision - 1).get("kit")

    def site_of(self, decision: int) -> str | None:
        """The site of a decision; None if there is no such decision or no site."""
        return self.supply.of(decision - 1).get("site")

    def steps_at(self, site: str) -> set[int]:
        """Steps of the rounds of a site."""
        return {step for step, (where, _) in enumerate(self.supply.given) if where == site}

    def stand(self, standing: dict[str, Any]) -> None:
        """Restore the state at the time of a snapshot."""
        super().stand(standing)
        for act in self.acts:
            if act["kind"] == SITE:
                self.supply.add_site(act["site"])
            elif act["kind"] == KITS:
                arm_code = self.session._participants.arm_code
                self.supply.add_kits(act["site"], [(code, arm_code(KITS, arm)) for code, arm in act["codes"]])
            elif act["kind"] == RETIRED:
                self.supply.retire(act["kit"])
        self.supply.settle()
