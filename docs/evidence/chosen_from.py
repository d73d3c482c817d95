"""Tests that were chosen from the releases of a private trial: makes docs/evidence/chosen_from.md.

The first half of a DP-ConSE trial has arrivals of one context only, whose better arm is settled early; six
others arrive in the second half, and no arm does better in them. The null hypothesis says so, and is true.
The test takes the last released contrasts as its centre: it rejects where the six raw sums lie closer to them
than sums of fair coins would. For a centre that was fixed in advance its p-value is exact.

Runs are drawn through their sums, with the constants of the design; some are run as they are, round by
round.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import evidence
import numpy as np
from scipy import stats

from adaptinf.designs import DPConSE
from adaptinf.designs.contextual.private_conse_kernel import window_ends
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.inference.corrections.information import Correction
from adaptinf.inference.corrections.information_of_log import correction_for
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments import Tableau

SEED = 20_261_123
COMMAND = "python docs/evidence/chosen_from.py"
LATE = 6
"""Contexts that arrive in the second half only; context 0 is that of the first half."""
ALPHA = 0.05
CONTRAST_EPSILON = 0.05
SHARE = 0.6


@dataclass(frozen=True)
class Setting:
    """One trial: its horizon, and the first window, in which the first half's context is settled."""

    name: str
    horizon: int
    first_window: int

    @property
    def design(self) -> DPConSE:
        epsilon = CONTRAST_EPSILON / SHARE
        return DPConSE(epsilon=epsilon, contrast_share=SHARE, first_window=self.first_window)

    def contexts(self) -> np.ndarray:
        """Context 0, then the others in turn."""
        half = self.horizon // 2
        return np.concatenate([np.zeros(half, int), 1 + np.arange(self.horizon - half) % LATE])

    def environment(self, rng: np.random.Generator) -> Tableau:
        """Arm 1 is better in context 0; elsewhere both arms pay the same fair coin."""
        contexts = self.contexts()
        coin = rng.integers(0, 2, size=self.horizon).astype(float)
        rewards = np.stack([coin, coin], axis=1)
        rewards[contexts == 0] = (0.0, 1.0)
        return Tableau(rewards, contexts, reward_range=(0, 1))


VACUOUS = Setting("T = 520,000: the right level is out of reach", 520_000, 1_200)
REACHABLE = Setting("T = 2,000: the right level is 8.7e-5", 2_000, 64)


@dataclass(frozen=True)
class Tests:
    """P-values of runs, in logarithms, and what each counts; shapes (runs,)."""

    log_p: np.ndarray
    first: np.ndarray
    every: np.ndarray


def drawn(setting: Setting, runs: int, rng: np.random.Generator) -> Tests:
    """Runs through their sums alone: coins, windows, decisions and noise as in the design."""
    horizon, groups = setting.horizon, 1 + LATE
    ends = window_ends(horizon, setting.first_window, groups)
    contrast_scale, arrival_scale = 1.0 / CONTRAST_EPSILON, 2.0 * SHARE / ((1.0 - SHARE) * CONTRAST_EPSILON)
    log_two = math.log(2.0 * groups * ends.size * horizon)
    total, decided = np.zeros((runs, groups)), np.zeros((runs, groups), dtype=bool)
    first = np.zeros(runs, dtype=int)
    for length in np.diff(ends, prepend=0):
        came = np.where(np.arange(groups) == 0, float(length), 0.0)
        arrivals = came + rng.laplace(scale=arrival_scale, size=(runs, groups))
        # in context 0 every randomised round adds one half, whichever arm the coin takes
        contrast = 0.5 * came + rng.laplace(scale=contrast_scale, size=(runs, groups))
        first += np.where(decided[:, 0], 0, length)
        total += arrivals
        upper = np.maximum(arrivals + arrival_scale * log_two, 0.0)
        decided |= (
            np.abs(contrast) > np.sqrt(0.5 * upper * (math.log(2.0) + log_two)) + contrast_scale * log_two
        )
    total = np.maximum(total, 1.0)
    least = 4.0 * math.log(horizon) / ((1.0 - SHARE) * CONTRAST_EPSILON / SHARE)
    budget = np.maximum(least, total.min(axis=1) ** (1.0 - setting.design.alpha))
    inclusion = np.minimum(1.0, budget[:, None] / total)[:, 1:]
    late = np.bincount(setting.contexts(), minlength=groups)[1:]
    pulls = rng.binomial(late, inclusion)
    sums = rng.binomial(pulls, 0.5) - 0.5 * pulls
    centres = sums + rng.laplace(scale=contrast_scale, size=sums.shape)
    log_p = [log_pvalue(*run) for run in zip(pulls, sums, centres, strict=True)]
    return Tests(np.array(log_p), first, first + pulls.sum(axis=1))


def log_pvalue(pulls: np.ndarray, sums: np.ndarray, centres: np.ndarray) -> float:
    """Of a centre fixed in advance: that sums of fair coins come as close to it, in L1, as these did.

    Centres are rounded to the lattice of the sums, so the law of the distance is a convolution; sums of
    positive numbers, exact far out in the tail.
    """
    base = 0.5 * pulls
    aims = np.rint(centres + base).astype(int)  # numbers of heads
    heads = np.rint(sums + base).astype(int)
    distance = int(np.abs(heads - aims).sum())
    steps = np.arange(distance + 1)
    law = np.ones(1)
    for number, aim in zip(pulls.tolist(), aims.tolist(), strict=True):
        own = stats.binom.pmf(aim + steps, number, 0.5) + stats.binom.pmf(aim - steps, number, 0.5)
        own[0] *= 0.5
        law = np.convolve(law, own)[: distance + 1]
    with np.errstate(divide="ignore"):
        return float(np.log(law.sum()))


def run(setting: Setting, runs: int, rng: np.random.Generator) -> tuple[Tests, list[tuple[float, float]]]:
    """Runs of the design as it is; also what the library's corrections make of their p-values."""
    log_p, first, every, corrected = [], [], [], []
    for log in setting.design.logs(setting.environment(rng), setting.horizon, runs, int(rng.integers(2**31))):
        value, pulls = logged_pvalue(log)
        log_p.append(value)
        first.append(log.feedback_rounds)
        every.append(log.released_rounds)
        assert log.released_rounds == log.feedback_rounds + pulls
        licensed = [correction_for(log, chosen_from=choice) for choice in ("actions", "releases")]
        corrected.append(tuple(float(one.apply(value)) for one in licensed if one is not None))
    return Tests(np.array(log_p), np.array(first), np.array(every)), corrected


def logged_pvalue(log: AdaptiveLog) -> tuple[float, int]:
    """The test of one log: the raw sums of its second half against its last released contrasts."""
    arrays, half = log.arrays, log.n_rounds // 2
    used = arrays.randomised & (np.arange(log.n_rounds) >= half)
    context = log.arrays.context["feature"]
    pulls = np.bincount(context[used], minlength=1 + LATE)[1:]
    gains = (2.0 * arrays.action[used] - 1.0) * (arrays.reward[used] - 0.5)
    sums = np.bincount(context[used], weights=gains, minlength=1 + LATE)[1:]
    last = log.releases[(log.releases["round"] == log.n_rounds) & (log.releases["name"] == "contrast_sum")]
    centres = last.sort_values("group")["value"].to_numpy()[1:]
    return log_pvalue(pulls, sums, centres), int(pulls.sum())


def rejections(tests: Tests) -> dict[str, np.ndarray]:
    """Whether each run rejects at alpha: uncorrected, by the count for actions, by that for releases."""
    guarantee = PrivacyGuarantee(CONTRAST_EPSILON)

    def reject(counts: np.ndarray) -> np.ndarray:
        levels = {
            n: Correction(CONTRAST_EPSILON, int(n), guarantee).level(math.log(ALPHA)) for n in set(counts)
        }
        return np.array([value <= levels[n] for value, n in zip(tests.log_p, counts, strict=True)])

    return {
        "none": tests.log_p <= math.log(ALPHA),
        "actions": reject(tests.first),
        "releases": reject(tests.every),
    }


def share(hits: np.ndarray) -> str:
    """A share with its upper or two-sided limits at 99%, by Clopper and Pearson."""
    k, n = int(hits.sum()), hits.size
    low = stats.beta.ppf(0.005, k, n - k + 1) if k else 0.0
    high = stats.beta.ppf(0.995, k + 1, n - k) if k < n else 1.0
    return f"{k:,} of {n:,} ({k / n:.4f}; {low:.4f} to {high:.4f})"


def level(n: float) -> str:
    value = Correction(CONTRAST_EPSILON, int(n), PrivacyGuarantee(CONTRAST_EPSILON)).level(math.log(ALPHA))
    exponent = math.floor(value / math.log(10.0))
    return f"{math.exp(value - exponent * math.log(10.0)):.1f}e{exponent}"


def row(name: str, tests: Tests) -> str:
    hits = rejections(tests)
    first, every = float(np.median(tests.first)), float(np.median(tests.every))
    cells = [
        name,
        f"{first:,.0f} → {every:,.0f}",
        f"{level(first)} → {level(every)}",
        *(share(hits[choice]) for choice in ("none", "actions", "releases")),
    ]
    return f"| {' | '.join(cells)} |"


PAGE = """\
# Tests chosen from the releases

Command: `{command}`. Seed: {seed}. Date: {stamp}. Processor time: {seconds:.0f} s.

A max-information correction counts the rounds whose reward can have affected the choice of the test. The
default (`chosen_from="actions"`) counts rounds whose reward can affect a later *action*. In this example, a
test uses the last *released* contrasts as its centre. They are private, but they are computed from the same
rewards as the test, and these rewards do not affect any action, so the default does not count them.

The trial is `DPConSE(epsilon=.05/.6)`, so ε for rewards is ε_D = .05. In the first half, all arrivals have
one context, whose better arm is determined early. Six other contexts arrive only in the second half, all of
their participants are randomised, and both arms have success probability 1/2 there. The null hypothesis of no
effect is therefore true. The test rejects if the six raw sums are closer, in L1, to the released sums than
sums of fair coins would be; for a centre fixed in advance, its p-value is exact (a convolution of binomial
distributions). The columns n and the required level of the p-value are medians over runs. The rejection rates
at .05 have exact 99% limits.

| setting | n, actions → releases | level, actions → releases | uncorrected | "actions" | "releases" |
| --- | --- | --- | --- | --- | --- |
{rows}

With `chosen_from="releases"`, every randomised round counts, and no more than 5% of the runs reject in either
setting. With T = 520,000, the level is unattainable. With T = 2,000, it is {reach}, which six sums near their
centre can reach (the smallest possible p-value is {least:.1e}). The corrected columns of a result fitted with
the default state that they do not cover such a selection.

The first two rows are runs of the design, round by round, with `correction_for` applied to their logs. The
other rows are simulated through their sums, which have the same distribution: the arms of the second half are
drawn with probability 1/2, and windows and decisions follow the design's constants.
"""


def main() -> None:
    options = evidence.parser(__doc__).parse_args()
    quick = options.quick
    started = time.process_time()
    rng = np.random.default_rng(SEED)
    many, whole = (500, 4) if quick else (10_000, 60)
    rows = []
    for setting in (VACUOUS, REACHABLE):
        tests, corrected = run(setting, whole, rng)
        hits = rejections(tests)
        for choice, values in zip(("actions", "releases"), zip(*corrected, strict=True), strict=True):
            assert np.array_equal(np.array(values) <= math.log(ALPHA), hits[choice])
        rows.append(row(f"{setting.name}, run as it is", tests))
    for setting in (VACUOUS, REACHABLE):
        tests = drawn(setting, many, rng)
        hits = rejections(tests)
        assert hits["releases"].mean() <= ALPHA
        assert setting is REACHABLE or hits["actions"].mean() > ALPHA
        rows.append(row(f"{setting.name}, drawn", tests))
    late = np.bincount(REACHABLE.contexts())[1:]
    least = math.exp(sum(math.log(stats.binom.pmf(n // 2, n, 0.5)) for n in late.tolist()))
    page = PAGE.format(
        command=COMMAND,
        seed=SEED,
        stamp=evidence.stamp(),
        seconds=time.process_time() - started,
        rows="\n".join(rows),
        reach=level(REACHABLE.horizon),
        least=least,
    )
    evidence.publish(page, __file__, options)


if __name__ == "__main__":
    main()
