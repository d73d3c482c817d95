"""Time of the winner's interval, and widths of sequences beside confseq's: makes docs/evidence/answers.md.

The numbers of confseq are kept in tests/reference/inference/confseq_widths.csv; the script beside it made
them, in an environment of its own, from rewards that are drawn here once more.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import evidence
import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "reference" / "inference"))
import confseq_widths as confseq

COMMAND = "python docs/evidence/answers.py"
ARMS, SEED, REPEATS, AIM = 20, 20261125, 200, 0.050
METHODS = ("beta-binomial", "gamma-exponential")
Array = NDArray[np.float64]


def seconds(repeats: int) -> Array:
    """Processor time of hybrid intervals of 20 correlated estimates, shape (repeats,)."""
    import adaptinf as ai

    rng = np.random.default_rng(SEED)
    found = np.empty(repeats)
    for place in range(-1, repeats):  # the first one loads what it needs
        root = rng.normal(size=(ARMS, 2 * ARMS))
        covariance = root @ root.T / (2 * ARMS)
        estimates = rng.multivariate_normal(np.zeros(ARMS), covariance)
        began = time.process_time()
        ai.winner_interval(estimates, covariance)
        found[place] = time.process_time() - began
    return found


def widths(rate: float, runs: int) -> Array:
    """Widths of the library's sequences, shape (runs, times, methods)."""
    import adaptinf as ai
    from adaptinf.log import LogArrays

    found = np.empty((runs, len(confseq.TIMES), len(METHODS)))
    for run, reward in enumerate(confseq.rewards(rate)[:runs]):
        for place, t in enumerate(confseq.TIMES):
            arrays = LogArrays(action=np.zeros(t, dtype=np.int64), reward=reward[:t])
            log = ai.AdaptiveLog.from_arrays(arrays, arms=("a",), reward_range=(0.0, 1.0))
            for column, method in enumerate(METHODS):
                sequence = ai.ConfidenceSequence(log)
                ends = sequence.fit(method, estimator="sample-mean", t_opt=confseq.TUNED).conf_int()
                found[run, place, column] = float(ends["high"].iloc[0] - ends["low"].iloc[0])
    return found


def theirs(rate: float, runs: int) -> Array:
    """The same of confseq, from the file."""
    path = Path(confseq.__file__).with_suffix(".csv")
    rows = np.loadtxt(path, delimiter=",", skiprows=1)
    mine = rows[(rows[:, 0] == rate) & (rows[:, 1] < runs)]
    return np.asarray(mine[:, 3:].reshape(runs, len(confseq.TIMES), len(METHODS)))


def page(taken: Array, rates: tuple[float, ...], runs: int) -> tuple[str, float]:
    """The page, and the largest ratio of a mean width to confseq's."""
    lines, most = [], 0.0
    for rate in rates:
        own, other = widths(rate, runs).mean(axis=0), theirs(rate, runs).mean(axis=0)
        ratio = own / other
        most = max(most, float(ratio.max()))
        for place, t in enumerate(confseq.TIMES):
            cells = [
                f"{own[place, k]:.4f} | {other[place, k]:.4f} | {ratio[place, k]:.3f}"
                for k in range(len(METHODS))
            ]
            lines.append(f"| {rate:g} | {t:,} | {' | '.join(cells)} |")
    text = f"""# Time of the winner's interval, and widths of sequences

Command: `{COMMAND}`. Seed: {SEED}. Date: {evidence.stamp()}.

## The hybrid interval of 20 arms

The table shows the processor time of `winner_interval` with its default, the hybrid method, for {ARMS}
correlated normal estimates with equal means, over {len(taken)} draws of estimates and covariance. The target
is {AIM * 1_000:g} ms.

| median, ms | 95th percentile, ms | largest, ms |
| ---: | ---: | ---: |
| {np.median(taken) * 1_000:.1f} | {np.quantile(taken, 0.95) * 1_000:.1f} | {taken.max() * 1_000:.1f} |

## Widths beside confseq's on the same data

The rewards of one arm are 0 or 1, at three rates, with {runs} sequences for each. The table shows the mean
widths of 95% sequences that are tuned for {confseq.TUNED:,} rounds, after 100, 1,000 and 10,000 rounds, for
this library and confseq 0.0.11, and their ratio. From confseq, `bernoulli_confidence_interval` is used, and
`gamma_exponential_mixture_bound` at scale 1, tuned for a variance of {confseq.TUNED / 4:g}, with the squared
distances of rewards from the mean of earlier ones. The sequences of confseq are intersected over
{len(confseq.GRID)} time points, those of this library over all rounds. The numbers from confseq are stored in
`tests/reference/inference/confseq_widths.csv`, with the script that produced them. The largest ratio is
{most:.3f}.

| rate | rounds | beta-binomial | confseq | ratio | gamma-exponential | confseq | ratio |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
{chr(10).join(lines)}
"""
    return text, most


def main() -> None:
    options = evidence.parser(__doc__).parse_args()
    rates = confseq.RATES[:1] if options.quick else confseq.RATES
    taken = seconds(20 if options.quick else REPEATS)
    text, most = page(taken, rates, 2 if options.quick else confseq.RUNS)
    evidence.publish(text, __file__, options)
    if options.quick and most > 1.02:
        raise SystemExit(f"OFF: a sequence is {most:.3f} times as wide as confseq's on the same data")
    print(f"headline: widths at most {most:.3f} times confseq's, median {np.median(taken) * 1_000:.1f} ms")


if __name__ == "__main__":
    main()
