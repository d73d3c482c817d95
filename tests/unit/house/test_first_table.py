"""What the first table of an interpreter loads: imports are most of the time that it takes."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

PROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]

TABLE = """
import sys
import numpy as np
import adaptinf as ai
from adaptinf.log import AdaptiveLog, LogArrays

share = np.linspace(0.3, 0.7, 200)
action = (np.random.default_rng(1).random(200) < share).astype(np.int64)
every = np.stack([1.0 - share, share], axis=1)
arrays = LogArrays(
    action=action,
    reward=np.random.default_rng(2).normal(size=200),
    propensity=every[np.arange(200), action],
    propensities=every,
)
text = str(ai.ArmMeans(AdaptiveLog.from_arrays(arrays, arms=("a", "b"))).fit())
print("coef" in text, *sorted(sys.modules))
"""


def test_it_needs_neither_the_compiler_nor_the_heavy_parts_of_scipy() -> None:
    done = subprocess.run([sys.executable, "-c", TABLE], capture_output=True, text=True, check=True)
    shown, *loaded = done.stdout.split()
    assert shown == "True"
    heavy = {"scipy.stats", "scipy.optimize", "numba", "matplotlib", "joblib", "formulaic"}
    assert not heavy & set(loaded)
    declared = {Requirement(one).name for one in PROJECT["dependencies"]}
    assert len(declared) == 11
    assert declared & set(loaded) == {"numpy", "scipy", "pandas", "pyarrow", "statsmodels", "packaging"}
