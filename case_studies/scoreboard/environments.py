"""Where tools run: environments of their own, made once in the cache, with the versions that are pinned."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
from pathlib import Path

from case_studies.scoreboard.tools import Tool

HERE = Path(__file__).parent


class Missing(Exception):
    """A tool cannot be run here; the message says why."""


def uv() -> str:
    """The program that makes environments: beside this Python, or on the path."""
    found = shutil.which("uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if found is None:
        raise Missing("uv is not installed (pip install uv)")
    return found


def python_of(tool: Tool, cache: Path) -> Path:
    """The Python that has a tool, which is installed if need be.

    Raises
    ------
    Missing
        If it cannot be installed.
    """
    if tool.environment == "here":
        return Path(sys.executable)
    wanted = (HERE / "requirements" / f"{tool.environment}.txt").read_text(encoding="utf-8")
    folder = cache / "environments" / tool.environment
    stamp, python = folder / "installed", folder / "bin" / "python"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        listed = HERE / "requirements" / f"{tool.environment}.txt"
        install = ["pip", "install", "--python", str(python), "-r", str(listed)]
        for command in (["venv", "--clear", str(folder)], install):
            done = subprocess.run([uv(), *command], capture_output=True, text=True, check=False)
            if done.returncode:
                raise Missing(done.stderr.strip().splitlines()[-1])
        stamp.write_text(wanted, encoding="utf-8")
    return python


def r_has(tool: Tool, snapshots: Path) -> None:
    """Check that R has a tool's package, or that its repository was fetched.

    Raises
    ------
    Missing
        If it has not.
    """
    if shutil.which("Rscript") is None:
        raise Missing("R is not installed")
    if tool.snapshot:
        if not (snapshots / tool.name / "R").is_dir():
            raise Missing(f"clone {tool.snapshot} at {tool.version} into {snapshots / tool.name}")
        return
    asked = f'cat(requireNamespace("{tool.name}", quietly = TRUE))'
    done = subprocess.run(["Rscript", "-e", asked], capture_output=True, text=True, check=False)
    if not done.stdout.endswith("TRUE"):
        raise Missing(f"R lacks {tool.name}")


def version_here(tool: Tool) -> str:
    """The installed version of a tool of this environment; that of the formula where it is one."""
    try:
        return importlib.metadata.version(tool.name)
    except importlib.metadata.PackageNotFoundError:
        return tool.version
