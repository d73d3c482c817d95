"""Biased coins and permuted blocks against the formulas, round by round, and published allocations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import adaptinf as ai
from adaptinf.designs.arms.biased_coin import coin_probability
from adaptinf.errors import ParameterError


def coin(rule: str, gamma: float, n: list[float], s: list[float]) -> list[float]:
    rates = [(y + 1) / (k + 2) for y, k in zip(s, n, strict=True)]
    target = [math.sqrt(p if rule == "rsihr" else p * (1 - p)) for p in rates]
    target = [one / sum(target) for one in target]
    if not sum(n):
        return target
    drawn = [rho * (rho / (max(k, 0.5) / sum(n))) ** gamma for rho, k in zip(target, n, strict=True)]
    return [one / sum(drawn) for one in drawn]


def erade(rule: str, alpha: float, n: list[float], s: list[float]) -> list[float]:
    first = coin(rule, 0.0, n, s)[0]
    if n[0] > sum(n) * first:
        first = alpha * first
    elif n[0] < sum(n) * first:
        first = 1 - alpha * (1 - first)
    return [first, 1 - first]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("neyman", [0.1871102, 0.2534742, 0.2532257, 0.1502448, 0.1559451]),
        ("rsihr", [0.2672184, 0.2033942, 0.1772075, 0.1887906, 0.1633893]),
    ],
)
def test_published_allocations(rule: str, expected: list[float]) -> None:
    n = [77.0, 80.0, 83.0, 90.0, 94.0]
    s = [k * p for k, p in zip(n, [0.8, 0.7, 0.67, 0.78, 0.75], strict=True)]
    assert coin(rule, 2.0, n, s) == pytest.approx(expected, abs=5e-8)


@pytest.mark.parametrize("rule", ["neyman", "rsihr"])
@pytest.mark.parametrize("burn_in", [0, 4])
@pytest.mark.parametrize(
    ("kind", "strength", "rates"),
    [
        ("DBCD", 2.0, [0.2, 0.5, 0.9]),
        ("DBCD", 0.0, [0.1, 0.6]),
        ("ERADE", 0.4, [0.3, 0.7]),
        ("ERADE", 0.0, [0.5, 0.5]),
    ],
)
def test_propensities_round_by_round(
    kind: str, strength: float, rates: list[float], rule: str, burn_in: int
) -> None:
    options: dict[str, Any] = {"gamma" if kind == "DBCD" else "alpha": strength}
    design = getattr(ai.designs, kind)(rule=rule, burn_in=burn_in, **options)
    arrays = design.run(ai.environments.BernoulliArms(rates), horizon=150, rng=7).arrays
    arms = len(rates)
    n, s = [0.0] * arms, [0.0] * arms
    for t in range(150):
        if t < burn_in * arms:
            expected = [(burn_in - k) / (burn_in * arms - t) for k in n]
        else:
            expected = (coin if kind == "DBCD" else erade)(rule, strength, n, s)
        np.testing.assert_allclose(arrays.propensities[t], expected, atol=1e-12)
        if arms == 2:
            one = coin_probability(rule, strength, burn_in, kind == "ERADE", n[1], s[1], n[0], s[0], t + 1)
            assert float(one) == pytest.approx(expected[1], abs=1e-12)
        n[arrays.action[t]] += 1
        s[arrays.action[t]] += arrays.reward[t]
    if burn_in:
        assert np.bincount(arrays.action[: burn_in * arms]).tolist() == [burn_in] * arms


def test_shares_reach_their_target() -> None:
    """Ten runs of 20,000 rounds: mean shares within .005 of the target, and gamma makes them vary less."""
    arms = ai.environments.BernoulliArms([0.9, 0.1])
    spread = {}
    for name, design in {
        "0": ai.designs.DBCD(rule="rsihr", gamma=0.0),
        "2": ai.designs.DBCD(rule="rsihr", gamma=2.0),
        "erade": ai.designs.ERADE(rule="rsihr", alpha=0.5),
    }.items():
        share = design.replicate(arms, 20_000, 10, rng=3).pulls[:, 0] / 20_000
        assert share.mean() == pytest.approx(0.75, abs=0.005)
        spread[name] = share.std()
    assert spread["2"] < spread["0"]


def test_choices_have_their_propensities() -> None:
    log = ai.designs.DBCD(rule="rsihr", burn_in=3).run(
        ai.environments.BernoulliArms([0.2, 0.4, 0.8]), horizon=30_000, rng=2
    )
    every = log.arrays.propensities
    for arm in range(3):
        excess = ((log.arrays.action == arm) - every[:, arm]).sum()
        assert abs(excess) < 4 * math.sqrt((every[:, arm] * (1 - every[:, arm])).sum())


@pytest.mark.parametrize("per_arm", [1, 3])
def test_permuted_blocks(per_arm: int) -> None:
    log = ai.designs.PermutedBlocks(per_arm=per_arm).run(
        ai.environments.NormalArms([0.0, 1.0, 2.0]), horizon=30 * per_arm, rng=1
    )
    blocks = log.arrays.action.reshape(-1, 3 * per_arm)
    assert (np.sort(blocks, axis=1) == np.repeat(np.arange(3), per_arm)).all()
    assert len(np.unique(blocks, axis=0)) > 1
    counts = np.zeros(3)
    for t, arm in enumerate(log.arrays.action):
        if t % (3 * per_arm) == 0:
            counts[:] = per_arm
        np.testing.assert_allclose(log.arrays.propensities[t], counts / counts.sum(), atol=1e-12)
        counts[arm] -= 1
    assert log.guarantee is not None
    assert log.guarantee.epsilon == 0.0


def test_exact_laws_of_biased_coins() -> None:
    """Six rounds by enumeration of all arms and outcomes."""
    for design in (ai.designs.DBCD(gamma=1.0), ai.designs.ERADE(rule="rsihr", burn_in=1)):
        law = ai.audit.exact(design, 6)
        found = dict.fromkeys(range(7), 0.0)

        def walk(
            n: list[float], s: list[float], chance: float, design: Any = design, found: Any = found
        ) -> None:
            done = int(sum(n))
            if done == 6:
                found[int(n[1])] += chance
                return
            if isinstance(design, ai.designs.DBCD):
                shares = coin("neyman", 1.0, n, s)
            elif done < 2:
                shares = [(1 - k) / (2 - done) for k in n]
            else:
                shares = erade("rsihr", 0.5, n, s)
            for arm, share in enumerate(shares):
                for y, rate in ((1.0, 0.3), (0.0, 0.7)):
                    if share > 0:
                        more = [k + (a == arm) for a, k in enumerate(n)]
                        won = [k + y * (a == arm) for a, k in enumerate(s)]
                        walk(more, won, chance * share * rate)

        walk([0.0, 0.0], [0.0, 0.0], 1.0)
        mean = sum(pulls * chance for pulls, chance in found.items())
        assert law.expected_pulls(0.3, 0.3)[1] == pytest.approx(mean, abs=1e-10)


def test_refusals() -> None:
    with pytest.raises(ParameterError) as caught:
        ai.designs.DBCD(rule="equal", gamma=-1.0, burn_in=-2)
    assert [problem.split()[0] for problem in caught.value.problems] == ["rule", "burn_in", "gamma"]
    with pytest.raises(ParameterError, match="alpha"):
        ai.designs.ERADE(alpha=1.5)
    with pytest.raises(ParameterError, match="per_arm"):
        ai.designs.PermutedBlocks(per_arm=0)
    with pytest.raises(ParameterError):
        ai.designs.ERADE().run(ai.environments.BernoulliArms([0.1, 0.2, 0.3]), horizon=10, rng=0)
    with pytest.raises(ParameterError):
        ai.designs.DBCD().run(ai.environments.Tableau([[2.0, 1.0]] * 10), horizon=10, rng=0)
