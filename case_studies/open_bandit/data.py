"""The samples of the Open Bandit Dataset that the package obp 0.4.1 carries, and the priors of its policy."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

__all__ = ["WHEEL", "DataMissingError", "dataset", "parse_priors", "unpack"]

REQUIREMENT = "obp==0.4.1"
WHEEL = "obp-0.4.1-py3-none-any.whl"
SHA256 = "87dec9caf4283c25ab13036532e0a24566f1c7bdcad1653a8ded43b2f5ef8208"
_FOLDER = "obp/dataset/obd/"
_PRIORS = "obp/policy/conf/prior_bts.yaml"


class DataMissingError(RuntimeError):
    """The data are not there and cannot be fetched."""


def dataset(cache: Path) -> tuple[Path, dict[str, dict[str, list[float]]]]:
    """Folder of the logs, and the policy's Beta parameters at the start of the week, by campaign.

    The wheel is fetched once, by pip and without its dependencies: nothing of it is installed or run.

    Raises
    ------
    DataMissingError
        If the wheel is neither in the cache nor to be had, or is not the one that this study was written for.
    """
    cache.mkdir(parents=True, exist_ok=True)
    wheel = cache / WHEEL
    if not wheel.is_file():
        _fetch(cache)
    return unpack(wheel, SHA256, cache / "obp-0.4.1")


def _fetch(cache: Path) -> None:
    options = ["--no-deps", "--only-binary", ":all:", "--quiet", "--retries", "1", "--dest", str(cache)]
    command = [sys.executable, "-m", "pip", "download", *options, REQUIREMENT]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    except subprocess.TimeoutExpired:
        said = "no answer within two minutes"
    if not (cache / WHEEL).is_file():
        raise DataMissingError(
            f"{REQUIREMENT} is not in {cache} and could not be fetched from the package index: {said}\n"
            f"Run this once with a network, or put {WHEEL} (1.3 MB, from the package index) into {cache}, "
            "or name the folder that has it with --cache."
        )


def unpack(wheel: Path, sha256: str, target: Path) -> tuple[Path, dict[str, dict[str, list[float]]]]:
    """Unpack a wheel's logs below `target`, and read the priors; its checksum must be `sha256`."""
    found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if found != sha256:
        raise DataMissingError(
            f"{wheel} has the sha256 {found}, not {sha256}: delete it and run the study again."
        )
    with zipfile.ZipFile(wheel) as archive:
        wanted = [name for name in archive.namelist() if name.startswith(_FOLDER) and name.endswith(".csv")]
        for name in wanted:
            if not (target / name).is_file():
                archive.extract(name, target)
        priors = parse_priors(archive.read(_PRIORS).decode())
    return target / _FOLDER, priors


def parse_priors(text: str) -> dict[str, dict[str, list[float]]]:
    """Read campaign, parameter and numbers from the file of priors.

    Its YAML has two levels of keys and lists of numbers, and no more.
    """
    priors: dict[str, dict[str, list[float]]] = {}
    campaign = parameter = ""
    for line in text.splitlines():
        entry = line.strip()
        if not entry:
            continue
        if entry.startswith("- "):
            priors[campaign][parameter].append(float(entry[2:]))
        elif line[0] != " ":
            campaign = entry.rstrip(":")
            priors[campaign] = {}
        else:
            parameter = entry.rstrip(":")
            priors[campaign][parameter] = []
    return priors
