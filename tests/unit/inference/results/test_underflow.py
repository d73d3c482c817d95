"""What underflows is 0: a caller whose `np.errstate` raises gets the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adaptinf as ai
from adaptinf.inference.distributions.tails import binomial_limits
from adaptinf.privacy.counter_noise import log_tail_and_slope


def make_log(size: float, scale: float) -> ai.AdaptiveLog:
    """Two arms whose means differ by so many units of their noise."""
    n = 4000
    rng = np.random.default_rng(0)
    action = rng.integers(0, 2, n)
    frame = pd.DataFrame({"arm": np.array(["a", "b"])[action], "site": rng.choice(["n", "s"], n)})
    frame["y"] = scale * rng.normal(size * action, 1.0)
    frame["age"], frame["propensity_a"], frame["propensity_b"] = rng.normal(size=n), 0.5, 0.5
    frame["batch"] = np.repeat(np.arange(4), n // 4)
    return ai.AdaptiveLog(frame, action="arm", reward="y", context=["site", "age"], batch="batch")


FITS: dict[str, Callable[[Any], Any]] = {
    "means": lambda log: ai.ArmMeans(log).fit("aipw"),
    "sample means": lambda log: ai.ArmMeans(log).fit("sample-mean"),
    "alee": lambda log: ai.ArmMeans(log).fit("alee"),
    "contrast": lambda log: ai.Contrast(log, treatment="b", control="a").fit("aipw"),
    "batched": lambda log: ai.Contrast(log, treatment="b", control="a").fit("batched"),
    "groups": lambda log: ai.CATE(log, by="site").fit(),
    "projection": lambda log: ai.CATE.from_formula("age + site", log).fit(),
    "regression": lambda log: ai.AdaptiveOLS.from_formula("reward ~ C(action) + age", log).fit("none"),
    "weighted": lambda log: ai.AdaptiveOLS(log).fit("weighted"),
    "policy": lambda log: ai.PolicyValue(log, policy=np.full((log.n_rounds, 2), 0.5)).fit(),
}


def everything(result: Any) -> list[Any]:
    found = [result.to_frame(), result.cov_params(), result.adjust("holm"), result.conf_int(1e-9)]
    test = result.t_test(np.eye(len(result.terms)))
    return [*found, test.to_frame(), str(result.wald_test(np.eye(len(result.terms)))), str(result)]


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize(("size", "scale"), [(200.0, 1.0), (0.5, 1e-157)])
def test_underflow_is_no_error(name: str, size: float, scale: float) -> None:
    log = make_log(size, scale)
    with np.errstate(all="warn", under="ignore"):
        expected = everything(FITS[name](log))
    with np.errstate(under="raise"):
        found = everything(FITS[name](log))
    for ours, theirs in zip(found, expected, strict=True):
        if isinstance(ours, str):
            assert ours == theirs
        else:
            np.testing.assert_array_equal(ours, theirs)


def test_underflow_is_no_error_of_limits_and_tails() -> None:
    x, scales, terms = np.array([700.0]), np.array([[1.0, 0.5]]), np.array([[2.0, 1.0]])
    with np.errstate(all="warn", under="ignore"):
        expected = [*binomial_limits([1, 5], [5, 5], -900.0), *log_tail_and_slope(x, scales, terms)]
    with np.errstate(under="raise"):
        found = [*binomial_limits([1, 5], [5, 5], -900.0), *log_tail_and_slope(x, scales, terms)]
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
