"""The farmer trial of Kasy and Sautmann as it is stored, and sorted: makes docs/evidence/farmer_trial.md.

    python docs/evidence/farmer_trial.py --data combined_outcomes.csv
    python docs/evidence/farmer_trial.py --quick     # a stand-in with the published counts, printed

The file is `data/combined_outcomes.csv` of the public repository
maxkasy/Precision-Agriculture-for-Development on GitHub, which states no licence: it is neither shipped nor
fetched.
"""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

import evidence
import numpy as np
import pandas as pd

import adaptinf as ai
from adaptinf.errors import LogValidationError

CALLS, SUCCESSES = (867, 3188, 1766, 334, 987, 1258), (139, 624, 324, 48, 166, 222)
"""Published, by treatment."""
POSTERIOR = (0.161, 0.196, 0.184, 0.146, 0.169, 0.177)
"""Published means of the posteriors."""
PUBLISHED = "2, 3, 6, 5, 1, 4"
DAYS = (30, 28, 26, 24, 22, 20, 18, 15, 13, 11, 9, 7, 5, 3)
COMMAND = "python docs/evidence/farmer_trial.py --data combined_outcomes.csv"
ROLES = {"action": "treatment", "reward": "outcome", "batch": "date"}


def stand_in(path: Path) -> Path:
    """A file of the same form with the published counts, in an order of its own."""
    rng = np.random.default_rng(5)
    arms = np.repeat(np.arange(1, 7), CALLS)
    outcome = np.concatenate([np.arange(n) < wins for n, wins in zip(CALLS, SUCCESSES, strict=True)])
    order = rng.permutation(len(arms))
    dates = [f"{'06' if day == 30 else '6'}/{day}/2019" for day in np.repeat(DAYS, 600)]
    table = pd.DataFrame({"treatment": arms[order], "outcome": outcome[order].astype(int), "date": dates})
    table.to_csv(path, index=False)
    return path


def ranking(estimates: pd.Series) -> str:
    return ", ".join(estimates.sort_values(ascending=False).index)


def page(path: Path, told: str) -> str:
    frame = ai.datasets.farmer_trial(path)
    try:
        ai.AdaptiveLog(frame, **ROLES)
        refused = "no error"
    except LogValidationError as error:
        refused = str(error)
    log = ai.AdaptiveLog(frame, **ROLES, reading={"sort": True})
    shares = ai.audit.with_propensities(log, "batch-shares")
    fits = {
        "sample means": ai.ArmMeans(log).fit("sample-mean").params,
        "default (ALEE)": ai.ArmMeans(log).fit().params,
        "AIPW, shares of batches": ai.ArmMeans(shares).fit("aipw").params,
    }
    lines = [f"| published posterior | {' | '.join(f'{x:.3f}' for x in POSTERIOR)} | {PUBLISHED} |"]
    lines += [
        f"| {name} | {' | '.join(f'{x:.4f}' for x in values)} | {ranking(values)} |"
        for name, values in fits.items()
    ]
    kept = sum(ranking(values) == PUBLISHED for values in fits.values())
    return f"""# The farmer trial

Command: `{COMMAND}`. Seed: none, because nothing is drawn. Date: {evidence.stamp()}.

Kasy and Sautmann (2021) report 8,400 calls to rice farmers in 14 batches, with six ways of calling. {told}.
The rows of the file are stored in reverse chronological order, with dates as month/day/year. In this order,
`AdaptiveLog(frame, action="treatment", reward="outcome", batch="date")` is refused:

```text
{refused}
```

With `"sort": True`, the table shows the arms from best to worst; {kept} of {len(fits)} agree with the
published ranking:

| | {" | ".join(str(arm) for arm in range(1, 7))} | ranking |
| --- |{" ---: |" * 6} --- |
{chr(10).join(lines)}

The default table:

```text
{ai.ArmMeans(log).fit()}
```
"""


def main() -> None:
    parser = evidence.parser(__doc__)
    parser.add_argument("--data", type=Path, help="combined_outcomes.csv; needed unless --quick")
    options = parser.parse_args()
    if options.data is None and not options.quick:
        parser.error("--data is needed: a copy of data/combined_outcomes.csv of the repository named above")
    with tempfile.TemporaryDirectory() as folder:
        path = options.data or stand_in(Path(folder) / "combined_outcomes.csv")
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        told = f"SHA-256 of the file: {digest}..." if options.data else "A stand-in with the published counts"
        evidence.publish(page(path, told), __file__, options)


if __name__ == "__main__":
    main()
