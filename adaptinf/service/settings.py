"""The configuration file of a service: interfaces to other software, and receivers of alarms."""

from __future__ import annotations

import math
import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adaptinf.errors import FileError
from adaptinf.parameters import refuse

_SECRET, _WORD = re.compile(r"[A-Za-z0-9_-]{22,200}"), re.compile(r"[A-Za-z0-9_.-]{1,100}")
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
_HTTP = re.compile(r"https?://[!-~]*[!-.0-~]")
_HTTPS = re.compile(r"https://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[!-~]*)?")
_HOOK = re.compile(r"whsec_[A-Za-z0-9+/]{32,86}={0,2}")
_SECTIONS = ("libreclinica", "alarms", "webhooks")
_LEAST = {"every_seconds": 1.0, "overdue_days": 0.0, "free_gigabytes": 0.0}
_HELD = "it contains secrets, but other users can read it: run chmod 600 on it"


@dataclass(frozen=True, slots=True)
class LibreClinica:
    """The settings with which LibreClinica randomises through this service."""

    study: str
    """Its study OID."""
    url: str
    """Address at which LibreClinica reaches this service."""
    username: str
    token: str
    """A token with the role assigner, which is the password."""
    secret_path: str = ""
    """First part of the address at which LibreClinica requests the password; empty if this is not allowed."""
    context: str = ""
    """The question whose answer is the context; if empty, participants have no context."""


@dataclass(frozen=True, slots=True)
class Alarms:
    """When alarms are raised."""

    every_seconds: float = 60.0
    """Time between checks."""
    overdue_days: float | None = None
    """Age at which a pending outcome becomes overdue; None for no limit."""
    free_gigabytes: float = 1.0
    """Smallest free space on the disk that contains the trial's file."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """The receivers of alarms and unblindings."""

    name: str
    url: str
    secret: str
    ca: str = ""
    """File with trusted certificates; if empty, those of the system are used."""
    arms: bool = False
    """Whether the receiver is notified of alarms that concern arms."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The features that a configuration file enables; by default, none."""

    libreclinica: LibreClinica | None = None
    alarms: Alarms | None = None
    webhooks: tuple[Webhook, ...] = ()


NOTHING = Settings()


def settings_from(path: Path) -> Settings:
    """Read a configuration file.

    Raises FileError if the file cannot be read, or can be read by users other than its owner, and
    ParameterError with every problem in it.
    """
    try:
        text = path.read_bytes()
        wide = os.name == "posix" and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    except OSError as error:
        raise FileError(str(path), "read", error.strerror or "it is not a file") from None
    if wide:
        raise FileError(str(path), "used", _HELD)
    try:
        content = tomllib.loads(text.decode())
    except ValueError as error:
        raise FileError(str(path), "read", f"it is not TOML ({error})") from None
    return _settings(content)


def _settings(content: Mapping[str, Any]) -> Settings:
    problems = [f"{name!r:.60} is not a section of this file" for name in content if name not in _SECTIONS]
    libreclinica, alarms, hooks = (content.get(name) for name in _SECTIONS)
    problems += [] if libreclinica is None else _libreclinica_problems(libreclinica)
    problems += [] if alarms is None else _alarm_problems(alarms)
    problems += [] if hooks is None else _webhook_problems(hooks)
    refuse("serve", problems)
    return Settings(
        None if libreclinica is None else LibreClinica(**libreclinica),
        None if alarms is None else Alarms(**alarms),
        tuple(Webhook(**hook) for hook in hooks or ()),
    )


def _alarm_problems(found: Any) -> list[str]:
    problems = _entries("alarms", found, (), tuple(_LEAST))
    return problems or [
        f"alarms.{name} must be a number of at least {_LEAST[name]:g}"
        for name, value in found.items()
        if isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not _LEAST[name] <= value < math.inf
    ]


def _webhook_problems(found: Any) -> list[str]:
    if not isinstance(found, list):
        return ["webhooks must be a list of sections, [[webhooks]]"]
    problems = []
    for number, hook in enumerate(found, 1):
        where = f"webhooks {number}"
        wrong = texts(where, hook, ("name", "url", "secret"), ("ca",), ("arms",))
        problems += wrong or _hook_problems(where, hook)
    names = [hook.get("name") for hook in found if isinstance(hook, dict)]
    return problems + (
        ["webhooks must have different names"] if len(set(map(str, names))) < len(names) else []
    )


def _hook_problems(where: str, hook: dict[str, Any]) -> list[str]:
    problems = []
    if not _HTTPS.fullmatch(hook["url"]):
        problems.append(f"{where}.url must be an address such as https://alarms.example.org/trial")
    if not _WORD.fullmatch(hook["name"]):
        problems.append(f"{where}.name must consist of letters, digits and ._-")
    if not _HOOK.fullmatch(hook["secret"]) or len(hook["secret"].removeprefix("whsec_")) % 4:
        problems.append(f"{where}.secret must be whsec_ and the base64 form of 24 to 64 random bytes")
    if not isinstance(hook.get("arms", False), bool):
        problems.append(f"{where}.arms must be true or false")
    if "ca" in hook and not Path(hook["ca"]).is_file():
        problems.append(f"{where}.ca must be a file of certificates")
    return problems


def _libreclinica_problems(found: Any) -> list[str]:
    where, needed = "libreclinica", ("study", "url", "username", "token")
    problems = texts(where, found, needed, ("secret_path", "context"))
    if problems:
        return problems
    if not _HTTP.fullmatch(found["url"]):
        problems.append(
            "libreclinica.url must be an address such as https://trial.example.org, without / at the end"
        )
    if not _WORD.fullmatch(found["username"]):
        problems.append("libreclinica.username must consist of letters, digits and ._-")
    if not _TOKEN.fullmatch(found["token"]):
        problems.append("libreclinica.token must be a token with the role assigner, of 43 characters")
    if found.get("secret_path") and not _SECRET.fullmatch(found["secret_path"]):
        problems.append(
            "libreclinica.secret_path must have at least 22 characters, which are letters, digits or _-"
        )
    return problems


def texts(
    where: str, found: Any, needed: tuple[str, ...], others: tuple[str, ...], flags: tuple[str, ...] = ()
) -> list[str]:
    """Problems with a section of texts, and of flags, which are checked elsewhere."""
    problems = _entries(where, found, needed, (*others, *flags))
    return problems + [
        f"{where}.{name} must be text"
        for name in (*needed, *others)
        if isinstance(found, dict)
        and name in found
        and not (isinstance(found[name], str) and found[name].strip())
    ]


def _entries(where: str, found: Any, needed: tuple[str, ...], others: tuple[str, ...]) -> list[str]:
    """Problems with the names in a section."""
    if not isinstance(found, dict):
        return [f"{where} must be a section, [{where}]"]
    problems = [f"{where}.{name} is required" for name in needed if name not in found]
    return problems + [
        f"{where} has no entry {name!r:.60}" for name in found if name not in (*needed, *others)
    ]
