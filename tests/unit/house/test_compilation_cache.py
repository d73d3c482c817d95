"""The disk cache of compiled designs: used again when nothing changed, stale when any file did."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import adaptinf

SCRIPT = """
import sys
import adaptinf
from adaptinf.designs import PrivateUCB
from adaptinf.designs.arms.ucb import _run_block
from adaptinf.simulation.environments import BernoulliArms

log = PrivateUCB(epsilon=1.0, counter="binary").run(BernoulliArms([0.5, 0.5]), horizon=20, rng=1)
print(adaptinf.__file__)
print(float(log.releases["value"].iloc[0] - log.arrays.reward[0]))
print(sum(_run_block.stats.cache_hits.values()), sum(_run_block.stats.cache_misses.values()))
"""


def run(home: Path) -> tuple[float, int, int]:
    """Noise of the first release, and hits and misses of the cache, in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
    environment["PYTHONPATH"] = str(home)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True, cwd=home
    )
    where, noise, counts = done.stdout.splitlines()[-3:]
    assert Path(where).parent == home / "adaptinf"
    hits, misses = counts.split()
    return float(noise), int(hits), int(misses)


def cache_files(home: Path) -> dict[str, int]:
    found = [*home.rglob("*.nbi"), *home.rglob("*.nbc")]
    return {str(path.relative_to(home)): path.stat().st_mtime_ns for path in found}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A copy of the package that nothing else compiles into."""
    source = Path(adaptinf.__file__).parent
    shutil.copytree(source, tmp_path / "adaptinf", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.mark.slow
def test_cache_is_used_again_and_goes_stale_with_any_source(home: Path) -> None:
    first, hits, misses = run(home)
    assert (hits, misses) == (0, 1)
    written = cache_files(home)
    assert any(name.endswith(".nbi") for name in written)
    assert any(name.endswith(".nbc") for name in written)

    again, hits, misses = run(home)
    assert (hits, misses) == (1, 0)
    assert again == first
    assert cache_files(home) == written  # no file more, none written anew

    inlined = home / "adaptinf" / "privacy" / "noise.py"
    text = inlined.read_text()
    assert text.count("source.standard_exponential() * scale") == 1
    inlined.write_text(text.replace("standard_exponential() * scale", "standard_exponential() * scale * 2.0"))
    changed, hits, misses = run(home)
    assert (hits, misses) == (0, 1)
    assert changed == pytest.approx(2.0 * first, rel=1e-12)
