"""Faults planted in designs, counters and mechanisms, and an audit of each: the ones that the tests catch."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "montecarlo" / "audit"))

import test_planted_faults_counters as counters
import test_planted_faults_epochs as epochs
import test_planted_faults_records as records
import test_planted_faults_ucb as ucb

from adaptinf.audit import EpsilonLowerBound, epsilon_lower_bound
from adaptinf.audit.privacy.designs.stopping_audits import stopping_outputs
from adaptinf.designs import DPBAI, DPNAS, LDPBandit
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.privacy import Counter, Gaussian

Audit = Callable[[int, int], EpsilonLowerBound]
"""``audit(runs, seed)``."""


@dataclass(frozen=True)
class Fault:
    """A fault at one epsilon, beside what is right.

    Attributes
    ----------
    what : str
        In words.
    epsilon : float
        What is promised.
    faulty, right : callable
        Audits of both; `right` is None if the paper's own algorithm is the fault.
    runs : int
        On each side, enough to distinguish them.
    """

    what: str
    epsilon: float
    faulty: Audit
    right: Audit | None
    runs: int = 300_000


def _of_counter(kind: type[Counter], settings: dict[str, Any], audit: Any, epsilon: float) -> Audit:
    return lambda runs, seed: audit(kind(epsilon=epsilon, **settings), runs)


def _of_design(design: Any) -> Audit:
    return lambda runs, seed: epsilon_lower_bound(design, view="releases", runs=runs, rng=seed)


def _of_stopping(rule: DPNAS, promised: PrivacyGuarantee) -> Audit:
    return lambda runs, seed: epsilon_lower_bound(
        stopping_outputs(rule), runs=runs, promised=promised, rng=seed
    )


def _of_sampler(sampler: Any, promised: PrivacyGuarantee) -> Audit:
    return lambda runs, seed: epsilon_lower_bound(sampler, runs=runs, promised=promised, rng=seed)


def _of_published(epsilon: float, which: int) -> Audit:
    return lambda runs, seed: records.published(epsilon, which, runs)


def faults() -> Iterator[Fault]:
    """Every fault, in the order of the table."""
    for name, (kind, settings, audit) in counters.FAULTS.items():
        for epsilon in (0.1, 1.0, 4.0):
            right = _of_counter(Counter, settings, audit, epsilon)
            yield Fault(f"counter: {name}", epsilon, _of_counter(kind, settings, audit, epsilon), right)
    for kind, right, options, epsilons in ucb.FAULTS:
        words = ", ".join(str(value) for value in options.values())
        for epsilon in epsilons:
            faulty, correct = (_of_design(one(epsilon=epsilon, **options)) for one in (kind, right))
            doc = (kind.__doc__ or kind.__name__).splitlines()[0].rstrip(".")
            yield Fault(f"{right.__name__} ({words}): {doc[0].lower()}{doc[1:]}", epsilon, faulty, correct)
    promised = PrivacyGuarantee(epsilon=ucb.EPSILON)
    yield Fault(
        "private UCB: fresh noise at each release",
        ucb.EPSILON,
        _of_sampler(ucb.private_ucb(fresh=True), promised),
        _of_sampler(ucb.private_ucb(fresh=False), promised),
    )
    for epsilon in (1.0, 4.0):
        yield Fault(
            "DPBAI: half the noise",
            epsilon,
            _of_design(epochs.QuietMeans(epsilon=epsilon, features=epochs.AXES)),
            _of_design(DPBAI(epsilon=epsilon, features=epochs.AXES)),
        )
    for epsilon in (0.5, 1.0, 2.0):
        rules = [
            kind(epsilon=epsilon, alpha=0.9, beta=0.5, steps="exponential")
            for kind in (epochs.Unsplit, DPNAS)
        ]
        audits = [_of_stopping(rule, rules[1].guarantee()) for rule in rules]
        yield Fault("DPNAS: budget not split", epsilon, *audits)
    for epsilon in (0.5, 1.0):
        yield Fault(
            "elimination: sums not reset between epochs",
            epsilon,
            lambda runs, seed, epsilon=epsilon: epochs.audit(
                epochs.NeverReset(epsilon=epsilon, beta=1.0), epochs.EPOCHS
            ),
            lambda runs, seed, epsilon=epsilon: epochs.audit(
                epochs.ShortEpochs(epsilon=epsilon, beta=1.0), 1
            ),
        )
    yield _classical(8.0, 0.1)
    published = {
        "closing times of batches": (records.CLOSING, (0.1, 1.0, 4.0)),
        "whether an estimate comes": (records.CAME, (0.1, 1.0)),
        "batch lengths, from actions": (records.ACTIONS, (0.1, 0.3)),
        "lengths that share T_min": (records.SHARED, (0.1, 1.0)),
    }
    for words, (which, epsilons) in published.items():
        for epsilon in epsilons:
            yield Fault(f"DP-ConSE, published: {words}", epsilon, _of_published(epsilon, which), None)
    for epsilon in (0.1, 1.0, 4.0):
        promised = LDPBandit(epsilon=epsilon).guarantee(1, 2)
        reports = [
            _of_sampler(records.Reports(epsilon, only_visited=faulty), promised) for faulty in (True, False)
        ]
        yield Fault("LDPBandit: noise in the visited bin alone", epsilon, *reports)


def _classical(epsilon: float, delta: float) -> Fault:
    """Normal noise of the classical standard deviation, where its proof does not hold."""
    promised = PrivacyGuarantee(epsilon, delta)

    def normal(scale: float) -> Any:
        def sample(side: int, runs: int, rng: np.random.Generator) -> Any:
            return side + rng.normal(scale=scale, size=runs)

        return sample

    classical = math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon
    analytic = Gaussian(epsilon=epsilon, delta=delta).scale
    return Fault(
        f"normal noise, classical scale, delta = {delta:g}",
        epsilon,
        _of_sampler(normal(classical), promised),
        _of_sampler(normal(analytic), promised),
        runs=1_000_000,
    )
