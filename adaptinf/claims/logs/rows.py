"""Claims about missing rows, or results that use only some of them."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

NEEDS_ROWS = Claim(
    "sums.Sums", "row-level data are required, but the log contains only sums by batch and arm", "needs"
)
"""Why a method that reads rounds one by one refuses sums."""
NO_ROUNDS = Claim(
    "inference.inputs.published.refuse_rounds",
    "the public part of a log contains releases, not the outcomes of individual rounds",
    "needs",
)
MARKED = Claim(
    "inference.inputs.rounds.marked_log",
    "Results use {kept} of {rounds} rounds, specified by the rounds argument; the choice of rounds is "
    "assumed not to depend on rewards.",
    "assumes",
    short="{kept} of {rounds} rounds, chosen without looking at rewards",
)
SUMS = Claim("sums.Sums", "Sums: {total:,} rounds in {batches:,} batches, {arms} arms ({labels})", "note")
COPIES = Claim(
    "log.repeated_rows.copied_rows",
    "{n:,} of {rows:,} rows duplicate earlier rows (zero-based rows {start} to {last} are repeated "
    "starting at row {again}); remove them, because duplicating every row reduces standard errors by a "
    "factor of up to 1.4",
    "caution",
)
ALIKE = Claim(
    "log.dependence.alike_neighbours",
    "after subtracting each arm's local mean, rewards of consecutive rows are more similar when both rows "
    "have the same arm (z = {z:.1f}, p = {p:.1g}), so rows may be dependent and standard errors too small; "
    "remove duplicate records of the same event, or identify repeated units (unit=)",
    "caution",
)
