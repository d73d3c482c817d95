"""How the auditing module of jax-privacy is found, with a stand-in for it (figures: tests/second_opinion)."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from adaptinf.errors import MissingDependencyError, ParameterError

module = importlib.import_module("adaptinf.audit.privacy.second_opinion")

STAND_IN = """
import dataclasses
{imports}

@dataclasses.dataclass(frozen=True)
class Split:
    seed: int

@dataclasses.dataclass(frozen=True)
class MultiSplit:
    num_samples: int
    seed: int

@dataclasses.dataclass(frozen=True)
class Explicit:
    threshold: float

class CanaryScoreAuditor:
    def __init__(self, likelier, rarer):
        self.likelier, self.rarer = likelier, rarer

    def epsilon_clopper_pearson(self, significance, delta, *, threshold_strategy):
        if isinstance(threshold_strategy, Explicit):
            hits = [int((side >= threshold_strategy.threshold).sum()) for side in (self.likelier, self.rarer)]
            return hits[0] + hits[1] / 1000
        return significance if isinstance(threshold_strategy, Split) else threshold_strategy.num_samples
"""


@pytest.fixture(autouse=True)
def _unloaded() -> Iterator[None]:
    module._auditing.cache_clear()
    sys.modules.pop(module._MODULE, None)
    yield
    module._auditing.cache_clear()
    sys.modules.pop(module._MODULE, None)


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, source: str | None) -> None:
    """A distribution of that name in front of all others."""
    (folder / "jax_privacy").mkdir()
    (folder / "jax_privacy" / "__init__.py").write_text("raise RuntimeError('the package was imported')")
    if source is not None:
        (folder / "jax_privacy" / "auditing.py").write_text(source)
    information = folder / "jax_privacy-9.9.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: jax-privacy\nVersion: 9.9\n")
    monkeypatch.syspath_prepend(str(folder))


def test_one_file_is_loaded_and_the_package_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, STAND_IN.format(imports=""))
    first, second = np.r_[np.zeros(90), np.ones(10)], np.r_[np.zeros(40), np.ones(60)]
    order = np.random.default_rng(0).permutation(100)
    opinion = module.second_opinion(first[order], second[order], confidence=0.99, splits=4)
    assert opinion.version == "9.9"
    assert opinion.split == pytest.approx(0.005, abs=1e-15)
    assert opinion.multi_split == 4.0
    likelier, rarer = (int(side[order][50:].sum()) for side in (second, first))
    hits = (likelier, rarer) if opinion.same_event < 45 else (50 - rarer, 50 - likelier)
    assert opinion.same_event == pytest.approx(hits[0] + hits[1] / 1000, abs=1e-12)
    assert "jax_privacy" not in sys.modules
    assert "jax-privacy 9.9" in str(opinion)


@pytest.mark.parametrize("source", [None, STAND_IN.format(imports="import a_module_that_nobody_has")])
def test_what_is_missing_is_named_with_both_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str | None
) -> None:
    install(tmp_path, monkeypatch, source)
    with pytest.raises(MissingDependencyError) as refusal:
        module.second_opinion(np.zeros(20), np.ones(20))
    text = str(refusal.value)
    assert ("a_module_that_nobody_has" if source else "jax_privacy/auditing.py") in text
    assert text.endswith("pip install 'adaptinf[second-opinion]' && pip install --no-deps jax-privacy")
    assert module._MODULE not in sys.modules


def test_nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_DISTRIBUTION", "a-distribution-that-nobody-has")
    with pytest.raises(MissingDependencyError, match="second opinion needs a-distribution-that-nobody-has"):
        module.second_opinion(np.zeros(20), np.ones(20))


def test_everything_wrong_is_listed() -> None:
    with pytest.raises(ParameterError) as refusal:
        module.second_opinion([1.0], "x", confidence=2, delta=-1, splits=0, seed=-1)
    assert len(refusal.value.problems) == 6
    with pytest.raises(ParameterError, match="as many second scores as first ones, 20, got 21"):
        module.second_opinion(np.zeros(20), np.zeros(21))
