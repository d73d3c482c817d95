"""What holds for every test."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator, Iterator

# One thread a process, told before NumPy is loaded: the suite fills the cores with processes, and threads
# that factorise 25 by 2 numbers wait for each other many times longer than the work takes.
for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import numpy as np  # noqa: E402
import pytest  # noqa: E402

os.environ["MPLBACKEND"] = "Agg"  # pictures open no windows

# Bytecode is kept, whatever the environment says: each of hundreds of processes that tests start would parse
# the package anew, and each run of pytest would rewrite the assertions of all tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


SLOW_EXAMPLES = {"adaptinf.audit.simulation.sample_sizes.sample_size"}
"""Doctests that simulate for seconds, as what they show does; their docstrings cannot hold a marker."""


def _global_state() -> bytes:
    name, keys, *position = np.random.get_state()  # noqa: NPY002 - it only looks
    return repr((name, position)).encode() + np.asarray(keys).tobytes()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Prepare what was collected, and leave out what is `long` unless ``-m`` names it."""
    empty_namespaces(items)
    for item in items:
        if item.name in SLOW_EXAMPLES:
            item.add_marker(pytest.mark.slow)
    if "long" not in config.option.markexpr:
        long = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if not item.get_closest_marker("long")]


def empty_namespaces(items: list[pytest.Item]) -> None:
    """Empty the namespaces of doctests: an example has to run where nothing but it was typed."""
    for item in items:
        if (case := getattr(item, "dtest", None)) is not None:
            case.globs = {"__name__": "__main__"}


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None]:
    """Collect without looking for garbage: millions of objects come, of which nearly all stay.

    Afterwards none of them is looked at again, which would take a second each time that a test made many; and
    what tests make is looked at seldom, as compiling a design makes and drops millions.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(20_000, 10, 100)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that skips itself where no test may, as in ``.ci/run``: what CI leaves out, nobody runs."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("ADAPTINF_NO_SKIPS"):
        report.outcome, report.longrepr = "failed", f"skipped where no test may be: {report.longrepr}"
    return report


@pytest.fixture(autouse=True)
def global_generator_untouched() -> Iterator[None]:
    """Fail a test that draws from NumPy's global generator, or seeds it."""
    before = _global_state()
    yield
    if _global_state() != before:
        pytest.fail("the test touched NumPy's global generator: use np.random.default_rng(seed)")


@pytest.fixture(autouse=True)
def figures_closed() -> Iterator[None]:
    """Close the figures that a test drew; too many open ones are a warning of matplotlib."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
