"""Numbers of inference that are known: from other software, from arithmetic, or recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial

from adaptinf import datasets, designs
from adaptinf.audit import exact, randomization_test
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.inference.effects import CATE
from adaptinf.inference.group_sequential import spending_bounds
from adaptinf.inference.results.fit_results import Results
from adaptinf.inference.sequences import ConfidenceSequence
from adaptinf.log import AdaptiveLog
from adaptinf.privacy import analytic_scale, gaussian_delta
from adaptinf.qualification.rows import Known
from adaptinf.simulation import environments

_PART, _LOOKS = "Inference", (0.2, 0.4, 0.6, 0.8, 1.0)
_RPACT = "rpact 3.3.4 for R, to 1e-6"
_COUNTS = "arithmetic: 5,334 of 6,822 and 8,548 of 13,368 person-years with a visit"
_RECORDED = "recorded when this version was made"
_FREE, _SHARING = "free care", "cost sharing"
_SEED, _OTHER, _ROUNDS = 1, 4, 400


@cache
def _insurance() -> AdaptiveLog:
    """The data set that comes with statsmodels."""
    frame = datasets.rand_hie()
    return AdaptiveLog(frame, action="arm", reward="any_visit", adaptive=False, reward_range=(0.0, 1.0))


@cache
def _adaptive() -> AdaptiveLog:
    """A log of Thompson sampling."""
    place = environments.BernoulliArms([0.3, 0.6])
    return designs.Thompson(floor=0.1).run(place, _ROUNDS, rng=_OTHER)


@cache
def _grouped() -> AdaptiveLog:
    """A log of an adaptive design with two groups."""
    place = environments.FiniteContext([0.6, 0.4], [[0.3, 0.7], [0.6, 0.2]])
    return designs.EpsilonGreedy(exploration=0.3).run(place, _ROUNDS, rng=_SEED)


def _row(results: Results, columns: Sequence[str]) -> list[float]:
    """Columns of a table, one after the other."""
    frame = results.to_frame()
    return [float(value) for column in columns for value in frame[column]]


_ESTIMATES, _INTERVAL = ("estimate", "std_error"), ("conf_low", "conf_high")


def number_tests() -> Iterator[Known]:
    """Tests of estimates, intervals and tests."""
    yield from _boundaries()
    yield from _of_data()
    yield from _of_adaptive_logs()
    yield from _of_privacy()


_BOUNDS = {
    "lan-demets-obrien-fleming": (
        *(4.876884948791, 3.357011923392, 2.680280061264, 2.289816769713, 2.031032060098),
    ),
    "pocock": (2.413180287054,) * 5,
}


def _boundaries() -> Iterator[Known]:
    for spending, expected in _BOUNDS.items():
        name = f"spending_bounds, five equal looks, one-sided level .025, {spending}"
        yield Known(_PART, name, _RPACT, partial(_bounds, spending), expected, 1e-6)


def _bounds(spending: str) -> list[float]:
    found: list[float] = spending_bounds(_LOOKS, 0.025, 1, spending).tolist()
    return found


def _of_data() -> Iterator[Known]:
    yield Known(
        _PART,
        "ArmMeans of the RAND Health Insurance Experiment: sample means",
        _COUNTS,
        lambda: _row(ArmMeans(_insurance()).fit("sample-mean"), ("estimate",)),
        (8548 / 13368, 5334 / 6822),
        1e-12,
    )
    yield Known(
        _PART,
        "Contrast of the same data: difference, standard error, 95% interval",
        _RECORDED,
        lambda: _row(
            Contrast(_insurance(), treatment=_FREE, control=_SHARING).fit(), (*_ESTIMATES, *_INTERVAL)
        ),
        (0.1424446834009938, 0.006500061297631446, 0.12970381338577217, 0.15518555341621545),
    )


def _of_adaptive_logs() -> Iterator[Known]:
    yield Known(
        _PART,
        "ArmMeans of a log of Thompson sampling: estimates, standard errors, 95% intervals",
        _RECORDED,
        lambda: _row(ArmMeans(_adaptive()).fit(), (*_ESTIMATES, *_INTERVAL)),
        (
            *(0.4206842746155778, 0.6169266749053199, 0.07372178961437544, 0.027297064712990867),
            *(0.27197233667768406, 0.5631307124385259, 0.5693962125534715, 0.670722637372114),
        ),
    )
    yield Known(
        _PART,
        "CATE by group of a log of epsilon-greedy: effects, standard errors",
        _RECORDED,
        lambda: _row(CATE(_grouped(), by="feature", treatment=1, control=0).fit(), _ESTIMATES),
        (0.3912267758145962, -0.618146119276713, 0.09017590653149013, 0.078838766064435),
    )
    yield Known(
        _PART,
        "ConfidenceSequence of the log of Thompson sampling: the last 95% intervals",
        _RECORDED,
        lambda: [
            float(value)
            for column in _INTERVAL
            for value in ConfidenceSequence(_adaptive()).fit().to_frame()[column].tail(2)
        ],
        (0.27341130599408814, 0.5229362893551937, 0.6474507429774619, 0.7023661740209448),
    )
    yield Known(
        _PART,
        "randomization_test of the log of Thompson sampling: p-value of 199 reruns",
        _RECORDED,
        lambda: [randomization_test(_adaptive(), replications=199).pvalue],
        (0.015,),
    )
    yield Known(
        _PART,
        "audit.exact: bias of both sample means of Thompson sampling after 20 rounds",
        "enumeration of all outcomes; recorded when this version was made",
        lambda: [getattr(exact(designs.Thompson(), 20).bias(0.6, 0.3), name) for name in ("arm1", "arm0")],
        (-0.025914374426966313, -0.07090207850061622),
    )


def _of_privacy() -> Iterator[Known]:
    yield Known(
        _PART,
        "gaussian_delta(1, 1) and analytic_scale(1, 1e-5)",
        "Balle and Wang (2018), in closed form",
        lambda: [gaussian_delta(1.0, 1.0), analytic_scale(1.0, 1e-5)],
        (0.126936737507, 3.730632),
        1e-6,
    )
