"""The machine: system, processor, Python, linear algebra, threads and variables of the environment."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
from llvmlite import binding

from adaptinf.qualification.live_trials import disk_facts

_VARIABLES = re.compile(r"(?:OPENBLAS|OMP|MKL|BLIS|VECLIB|NUMEXPR|NUMBA|PYTHON|ADAPTINF)_?\w*")
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW")
_HIDDEN = "(set; not shown)"


def machine_facts() -> list[tuple[str, str]]:
    """Names and values, in order."""
    return [
        ("System", platform.platform()),
        ("Processor", f"{_processor()}, {os.cpu_count()} cores, as {binding.get_host_cpu_name()}"),
        ("Python", f"{platform.python_implementation()} {platform.python_version()}, {sys.executable}"),
        ("adaptinf", str(Path(__file__).parents[1])),
        ("Linear algebra", _blas()),
        ("Numba", f"{numba.__version__}, {numba.get_num_threads()} threads"),
        *disk_facts(),
        (
            "Environment",
            "; ".join(_variables())
            or "no environment variables for threads, Python, Numba or adaptinf are set",
        ),
    ]


def _processor() -> str:
    """The processor's name, which Linux does not give to Python."""
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()


def _blas() -> str:
    config: Any = np.show_config(mode="dicts")
    found = config.get("Build Dependencies", {}).get("blas", {})
    return f"{found.get('name', 'unknown')} {found.get('version', '')}".strip()


def _variables() -> Iterator[str]:
    for name, value in sorted(os.environ.items()):
        if _VARIABLES.fullmatch(name):
            yield f"{name}={_HIDDEN if _SECRET.search(name) else value}"
