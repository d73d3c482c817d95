"""Rows and the sums of the same batches answer the same questions alike."""

from __future__ import annotations

import numpy as np
import pytest

from adaptinf.inference.validity.profile import profile_of
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.sums import NEEDS_ROWS, Sums

SIZES = np.array([30, 50, 20])
BATCH = np.repeat(np.arange(3), SIZES)
SHARES = np.array([[0.5, 0.5, 0.0], [0.2, 0.5, 0.3], [1.0, 0.0, 0.0]])
CODES = np.array([2, 0])


@pytest.fixture
def log() -> AdaptiveLog:
    rng = np.random.default_rng(1)
    every = SHARES[BATCH]
    action = np.array([rng.choice(3, p=own) for own in every])
    arrays = LogArrays(
        action=action,
        reward=rng.exponential(size=100),
        propensity=every[np.arange(100), action],
        propensities=every,
        batch=BATCH,
    )
    return AdaptiveLog.from_arrays(arrays, arms=("a", "b", "c"))


def test_rows_and_sums_answer_alike(log: AdaptiveLog) -> None:
    rows, sums = profile_of(log), profile_of(Sums.of_log(log))
    assert (rows.n_pieces, sums.n_pieces) == (100, 3)
    np.testing.assert_array_equal(np.bincount(BATCH, rows.piece_sizes), sums.piece_sizes)
    for jointly in (False, True):
        found = sums.possible(CODES, jointly=jointly)
        np.testing.assert_array_equal(rows.possible(CODES, jointly=jointly), found[BATCH])
        both = (SHARES[:, [2]] > 0.0) & (SHARES[:, [0]] > 0.0)
        np.testing.assert_array_equal(found, both.repeat(2, axis=1) if jointly else SHARES[:, CODES] > 0.0)
    drawn = (SHARES[:, CODES] > 0.0) & (SHARES[:, CODES] < 1.0)
    np.testing.assert_array_equal(sums.drawn(CODES), drawn)
    np.testing.assert_array_equal(rows.drawn(CODES), drawn[BATCH])
    pulls = [[np.sum((b == BATCH) & (log.arrays.action == code)) for code in CODES] for b in range(3)]
    for profile in (rows, sums):
        np.testing.assert_array_equal(profile.batch_pulls(CODES), pulls)
        np.testing.assert_allclose(profile.expected_pulls, SIZES @ SHARES, rtol=1e-12)
        own = [log.arrays.reward[log.arrays.action == code] for code in CODES]
        skewness = [np.sum((y - y.mean()) ** 3) / np.sum((y - y.mean()) ** 2) ** 1.5 for y in own]
        np.testing.assert_allclose(profile.own_skewness(CODES), skewness, rtol=1e-9)
    assert (rows.data_name, rows.rows_refusal, rows.read_facts()) == ("log", "", {})
    assert (sums.data_name, sums.rows_refusal) == ("sums", NEEDS_ROWS)
    assert sums.read_facts() == {"rounds": 100, "batches": 3, "by": "arm"}


def test_an_arm_that_is_sure_leaves_no_room_where_its_propensity_alone_is_known(log: AdaptiveLog) -> None:
    arrays = LogArrays(action=log.arrays.action, reward=log.arrays.reward, propensity=log.arrays.propensity)
    profile = profile_of(AdaptiveLog.from_arrays(arrays, arms=("a", "b", "c")))
    found = profile.possible(np.array([1, 0]), jointly=False)
    np.testing.assert_array_equal(found, np.array([[True, True], [True, True], [False, True]])[BATCH])
