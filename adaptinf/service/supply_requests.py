"""Requests about sites and kits, and the codes of refusals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from adaptinf.errors import ParameterError
from adaptinf.service.problems import closed_code, refused
from adaptinf.service.requested import Act
from adaptinf.service.roles import BY_ARM
from adaptinf.sessions.session_memory import has_key
from adaptinf.trial.journal_rows import Entry
from adaptinf.trial.operator_actions import FINISHED
from adaptinf.trial.replay import Replay
from adaptinf.trial.served_rows import Token
from adaptinf.trial.supplies.supply import site_problems
from adaptinf.trial.supplies.supply_operations import stock_of


def site_added(site: str, key: Any, by: str) -> Act:
    """Add a site."""

    def why(replay: Replay) -> str:
        if site_problems(site, []):
            return "does-not-fit"
        return "site-exists" if site_problems(site, replay.supply.sites) else "sites-too-late"

    return _act(lambda replay: replay.add_site(site, key, by), lambda _: {"site": site}, key, why)


def kits_added(site: str, arm_of: Mapping[str, Any], key: Any, by: str) -> Act:
    """Add kits to a site."""

    def why(replay: Replay) -> str:
        if not replay.blinded:
            return "not-blinded"
        return "kits-unfit" if site in replay.supply.sites else "does-not-fit"

    def told(number: int) -> dict[str, Any]:
        return {"site": site, "kits": number}

    return _act(lambda replay: replay.add_new_kits(site, arm_of, key, by), told, key, why)


def kit_retired(kit: str, key: Any, reason: str, by: str) -> Act:
    """Record the loss of a kit."""

    def why(replay: Replay) -> str:
        return "kit-used" if kit in replay.supply.kits else "unknown-kit"

    return _act(lambda replay: replay.retire_kit(kit, key, reason, by), lambda _: {"kit": kit}, key, why)


def _act(
    ask: Callable[[Replay], tuple[Any, Entry | None]],
    told: Callable[[Any], dict[str, Any]],
    key: Any,
    why: Callable[[Replay], str],
) -> Act:
    """A request of the operator; `why` explains refusals not due to the key or the trial's state."""

    def act(replay: Replay) -> tuple[Any, Entry | None]:
        try:
            answer, entry = ask(replay)
        except ParameterError:
            raise refused(_unchanged(replay, key) or why(replay)) from None
        return told(answer), entry

    return act


def _unchanged(replay: Replay, key: Any) -> str:
    """The reason why the state or the key does not permit the change; empty if both permit it."""
    if has_key(replay.session, key):
        return "key-reused"
    if replay.closed:
        return closed_code(replay)
    return replay.state if replay.state == FINISHED else ""


def stock_for(token: Token) -> Act:
    """Kits by site; a token of one site sees only its own."""

    def act(replay: Replay) -> tuple[Any, Entry | None]:
        return [row for row in stock_seen(replay, token.role) if token.site in (None, row["site"])], None

    return act


def stock_seen(replay: Replay, role: str) -> list[dict[str, Any]]:
    """Kits by site, and by arm for roles that may see arms; operators also see whether some arm runs low."""
    hidden = () if role == "operator" else ("low",)
    rows = stock_of(replay, role in BY_ARM)
    return [{name: value for name, value in row.items() if name not in hidden} for row in rows]
