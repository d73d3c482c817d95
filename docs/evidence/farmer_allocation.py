"""The farmer trial's allocation replayed by exploration sampling: makes docs/evidence/farmer_allocation.md.

    python docs/evidence/farmer_allocation.py --data combined_outcomes.csv    # a few minutes
    python docs/evidence/farmer_allocation.py --quick     # a stand-in that follows the rule, printed

The file is `data/combined_outcomes.csv` of the public repository
maxkasy/Precision-Agriculture-for-Development on GitHub, which states no licence: it is neither shipped nor
fetched. The rule is that of `modified_thompson.R` there: Beta(1, 1) priors, 50,000 posterior draws before
each wave, shares alpha (1 - alpha) / sum; of 600 calls each treatment gets its share rounded down, and what
is left is drawn with replacement, in proportion to the remainders.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import evidence
import numpy as np
import pandas as pd

import adaptinf as ai
from adaptinf.audit.rerun.logged_rows import logged_rows
from adaptinf.audit.rerun.path_propensities import PathFollower

SEED, WALKS, QUICK_WALKS = 20261128, 500, 20
WAVE, WAVES, ARMS, DRAWS = 600, 14, 6, 50_000
RATES = (0.161, 0.196, 0.184, 0.146, 0.169, 0.177)
"""Published means of the posteriors, for the stand-in."""
COMMAND = "python docs/evidence/farmer_allocation.py --data combined_outcomes.csv"
OPTIONS = {"batch_size": WAVE, "draws": DRAWS}
EXPLORATION = ai.designs.ExplorationSampling(**OPTIONS)
RULES = {
    "exploration sampling": (EXPLORATION, 0),
    "exploration sampling, a wave late": (EXPLORATION, 1),
    "top-two Thompson sampling": (ai.designs.TopTwoThompson(**OPTIONS), 0),
    "Thompson sampling": (ai.designs.Thompson(**OPTIONS), 0),
}


def shares(log: ai.AdaptiveLog, design: ai.designs.Design, walks: int, seed: int) -> np.ndarray:
    """The design's propensities before each wave, given the logged past, from fresh posterior draws.

    Returns shape (walks, waves, arms).
    """
    problems: list[str] = []
    follower = PathFollower(design, log, logged_rows(log, design, None, None, problems))
    assert not problems
    found = np.empty((walks, log.n_rounds // WAVE, ARMS))
    for walk in range(walks):
        follower.walk(log.arrays.action, np.random.default_rng([seed, walk]))
        found[walk] = follower.record.propensities[::WAVE]
    return found


def dealt(share: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Calls of a wave by treatment: shares rounded down, the rest drawn by the remainders."""
    whole = np.floor(WAVE * share + 1e-9).astype(int)
    left = WAVE - int(whole.sum())
    if left == 0:
        return whole
    rest = np.maximum(WAVE * share - whole, 0.0)
    return whole + rng.multinomial(left, rest / rest.sum())


def stand_in(rng: np.random.Generator) -> pd.DataFrame:
    """A trial that follows the rule, with the published success rates."""
    arms, outcomes = np.zeros(0, dtype=int), np.zeros(0, dtype=int)
    for wave in range(WAVES):
        share = np.full(ARMS, 1.0 / ARMS)
        if wave:  # the shares of a wave are those before its first call, whatever this call will be
            padded = (
                np.append(arms, np.zeros(WAVE, dtype=int)),
                np.append(outcomes, np.zeros(WAVE, dtype=int)),
            )
            share = shares(as_log(*padded), EXPLORATION, 1, int(rng.integers(2**31)))[0, -1]
        calls = np.repeat(np.arange(ARMS), dealt(share, rng))
        arms = np.append(arms, calls)
        outcomes = np.append(outcomes, (rng.random(WAVE) < np.array(RATES)[calls]).astype(int))
    return pd.DataFrame(
        {"treatment": arms + 1, "outcome": outcomes, "wave": np.repeat(np.arange(WAVES), WAVE)}
    )


def as_log(arms: np.ndarray, outcomes: np.ndarray) -> ai.AdaptiveLog:
    frame = pd.DataFrame({"treatment": arms + 1, "outcome": outcomes})
    known = [f"{arm}" for arm in range(1, ARMS + 1)]
    frame["treatment"] = pd.Categorical(frame["treatment"].astype(str), categories=known)
    return ai.AdaptiveLog(frame, action="treatment", reward="outcome")


def counts(log: ai.AdaptiveLog) -> np.ndarray:
    """Calls by wave and treatment, shape (waves, arms)."""
    waves = np.arange(log.n_rounds) // WAVE
    return np.bincount(waves * ARMS + log.arrays.action, minlength=WAVES * ARMS).reshape(WAVES, ARMS)


def distances(simulated: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Expected calls, standardised deviations, and the share of simulated trials as far away or further.

    Of waves 2 on; simulated (walks, waves, arms). A quarter is added to variances, for whole numbers.
    """
    center, spread = simulated.mean(axis=0), np.sqrt(simulated.var(axis=0) + 0.25)
    z = (seen - center) / spread
    own = (((simulated - center) / spread)[:, 1:] ** 2).sum(axis=(1, 2))
    far = int((own >= (z[1:] ** 2).sum()).sum())
    return center, z, (far + 1) / (len(simulated) + 1)


def page(log: ai.AdaptiveLog, told: str, walks: int) -> str:
    seen, rng = counts(log), np.random.default_rng(SEED)
    rows, kept = [], {}
    for name, (design, late) in RULES.items():
        if design not in kept:
            kept[design] = shares(log, design, walks, SEED)
        given = np.concatenate([kept[design][:, :1]] * late + [kept[design][:, : WAVES - late]], axis=1)
        simulated = np.array([[dealt(share, rng) for share in trial] for trial in given])
        center, z, pvalue = distances(simulated, seen)
        if not rows:
            first = center, z
        told_p = f"{pvalue:.3f}" if pvalue > 1.0 / (walks + 1) else f"< {1.5 / (walks + 1):.3f}"
        rows.append(f"| {name} | {(z[1:] ** 2).sum():,.0f} | {np.abs(z[1:]).max():.1f} | {told_p} |")
    waves = [
        f"| {wave + 1} | "
        + " | ".join(f"{seen[wave, arm]} ({first[0][wave, arm]:.1f})" for arm in range(ARMS))
        + f" | {np.abs(first[1][wave]).max():.1f} |"
        for wave in range(WAVES)
    ]
    newline = "\n"
    return f"""# The farmer trial's allocation

Command: `{COMMAND}`. Seed: {SEED}. Date: {evidence.stamp()}.

Kasy and Sautmann (2021) report {WAVES} waves of {WAVE} calls with six treatments. {told}.
`ExplorationSampling(batch_size={WAVE}, draws={DRAWS})` is run along the logged calls and outcomes, and gives
the shares before each wave. This is repeated {walks} times, because the shares are based on posterior draws,
of which the authors use the same number. Calls are then assigned as in the authors' code: shares of {WAVE}
are rounded down, and the remaining calls are drawn in proportion to the remainders.

The table shows the logged numbers of calls, with expected numbers in parentheses, and the largest deviation
in standard deviations of the simulated calls:

| wave | 1 | 2 | 3 | 4 | 5 | 6 | largest |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
{newline.join(waves)}

For this rule and others, the deviations of the {(WAVES - 1) * ARMS} counts of waves 2 to {WAVES} are
summarised by their sum of squares, the largest of them, and the share of simulated trials that are at least
as far from the mean.

| rule | squares | largest | p-value |
| --- | ---: | ---: | ---: |
{newline.join(rows)}
"""


def main() -> None:
    parser = evidence.parser(__doc__)
    parser.add_argument("--data", type=Path, help="combined_outcomes.csv; needed unless --quick")
    options = parser.parse_args()
    if options.data is None and not options.quick:
        parser.error("--data is needed: a copy of data/combined_outcomes.csv of the repository named above")
    if options.data is None:
        frame, told = stand_in(np.random.default_rng(SEED)), "A stand-in that follows the rule"
        log = as_log(frame["treatment"].to_numpy() - 1, frame["outcome"].to_numpy())
    else:
        frame = ai.datasets.farmer_trial(options.data)
        log = ai.AdaptiveLog(
            frame, action="treatment", reward="outcome", batch="date", reading={"sort": True}
        )
        told = f"SHA-256 of the file: {hashlib.sha256(options.data.read_bytes()).hexdigest()[:16]}..."
    evidence.publish(page(log, told, QUICK_WALKS if options.quick else WALKS), __file__, options)


if __name__ == "__main__":
    main()
