"""What the study of the Open Bandit samples computes by itself."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from adaptinf import PolicyValue
from adaptinf.log import AdaptiveLog, LogArrays
from case_studies.open_bandit import data
from case_studies.open_bandit.estimates import altered, expected_error, self_normalised
from case_studies.open_bandit.facts import chance_of_being_best, resampled_coverage, successive, weights

PRIORS = (
    "all:\n  alpha:\n    - 47.0\n    - 8\n  beta:\n    - 12198.0\n    - 3566.0\nmen:\n  alpha:\n    - 1.0\n"
)


def test_priors_are_read_by_campaign() -> None:
    assert data.parse_priors(PRIORS) == {
        "all": {"alpha": [47.0, 8.0], "beta": [12198.0, 3566.0]},
        "men": {"alpha": [1.0]},
    }


def test_another_wheel_is_refused(tmp_path: Path) -> None:
    wheel = tmp_path / data.WHEEL
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("obp/dataset/obd/bts/all/all.csv", "a\n1\n")
    with pytest.raises(data.DataMissingError, match=f"not {data.SHA256}: delete it"):
        data.unpack(wheel, data.SHA256, tmp_path / "out")


def test_without_a_network_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(tmp_path),
        "PIP_CONFIG_FILE": "/dev/null",
    }.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(data.DataMissingError, match=rf"put {data.WHEEL} .* into .*--cache"):
        data.dataset(tmp_path / "cache")


@pytest.mark.parametrize(
    ("alpha", "beta", "expected"),
    [([1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1 / 3] * 3), ([2.0, 1.0], [1.0, 1.0], [2 / 3, 1 / 3])],
)
def test_chance_of_being_best(alpha: list[float], beta: list[float], expected: list[float]) -> None:
    found = chance_of_being_best(np.array(alpha), np.array(beta))
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_coverage_with_equal_weights_is_that_of_a_wald_interval() -> None:
    covered, below = resampled_coverage(np.ones(200), 0.5, 20_000, np.random.default_rng(5))
    # Exactly .9440 and .0280 for 200 fair coins; four binomial standard errors.
    assert covered == pytest.approx(0.9440, abs=0.0065)
    assert below == pytest.approx(0.0280, abs=0.0047)


def test_an_altered_round_changes_ipw_by_its_weight() -> None:
    rng = np.random.default_rng(3)
    arrays = LogArrays(
        action=rng.integers(0, 2, 400),
        reward=rng.integers(0, 2, 400).astype(float),
        propensity=np.full(400, 0.5),
    )
    log = AdaptiveLog.from_arrays(arrays, arms=(0, 1), reward_range=(0, 1), propensity_status="estimated")
    changed = altered(log, 7, 0.01, 1.0)
    before, after = (PolicyValue(one, "uniform").fit(estimator="ipw") for one in (log, changed))
    assert weights(changed)[7] == pytest.approx(50.0)
    gain = (50.0 - log.arrays.reward[7]) / 400
    assert float(after.params.iloc[0] - before.params.iloc[0]) == pytest.approx(gain, abs=1e-12)
    assert log.arrays.propensity[7] == 0.5


def test_errors_of_equal_weights_are_binomial() -> None:
    reward = np.repeat([1.0, 0.0], [30, 70])
    assert self_normalised(reward, np.full(100, 3.0)) == pytest.approx((0.3, np.sqrt(0.21 / 100)))
    assert expected_error(np.ones(100), 0.3) == pytest.approx(np.sqrt(0.21 / 100))


def test_successive_showings_are_of_the_same_item_and_position() -> None:
    frame = pd.DataFrame(
        {
            "timestamp": pd.to_datetime([0, 10, 25, 100], unit="s", utc=True),
            "item_id": [4, 5, 4, 4],
            "position": [1, 1, 1, 2],
            "propensity_score": [0.1, 0.2, 0.3, 0.3],
        }
    )
    gap, change = successive(frame)
    np.testing.assert_allclose(gap, [25.0])
    np.testing.assert_allclose(change, [np.log(3.0)])
