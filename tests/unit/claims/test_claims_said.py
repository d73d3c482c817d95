"""What tests ask of texts: the claim, its values, and where it stands."""

from __future__ import annotations

import re

from claims_said import says, wording

from adaptinf.claims import Claim, assumptions

FEW = Claim("few", "{arm}: only {n:d} events (p < {p:.1g})", "caution")
CAUTION = Claim("caution", "Caution: {caution}.", "note")
KNOWN = Claim("known", "propensities are known", "assumes")
AVERAGED = Claim("averaged", "an effect of {arm} is averaged", "target")


def test_a_claim_is_found_by_its_values() -> None:
    told = FEW(arm="b", n=3, p=0.01)
    assert says(told, FEW)
    assert says(["other", told], FEW, arm="b", n=3)
    assert not says(told, FEW, n=30)
    assert not says(told, KNOWN)
    assert not says([], FEW)


def test_it_is_found_within_others() -> None:
    told = CAUTION(caution=FEW(arm="b", n=3, p=0.01))
    assert says(told, CAUTION)
    assert says(told, FEW, n=3)
    assert not says(told, FEW, n=4)
    assert says(f"It holds, as {KNOWN()}; and more", KNOWN)
    text = f"[1] {told} [2] more"
    assert says(text, FEW, arm="b")
    assert says(text, FEW, n=3, p=0.01)
    assert not says(text, FEW, n=4)
    assert not says(text, KNOWN)


def test_it_is_found_in_a_note_on_assumptions() -> None:
    """Where an average stands as a sentence of its own, with another first letter."""
    notes = assumptions([KNOWN(), AVERAGED(arm="b")])
    assert "An effect of b is averaged." in notes[0]
    assert says(notes, AVERAGED, arm="b")
    assert not says(notes, AVERAGED, arm="a")
    assert not says(notes, FEW)


def test_a_pattern_leaves_out_what_is_not_asked_for() -> None:
    assert re.fullmatch(wording(FEW, n=3), "a: only 3 events (p < 0.5)")
    assert not re.fullmatch(wording(FEW, n=3), "a: only 4 events (p < 0.5)")
    assert re.fullmatch(wording(Claim("x", "{{{a!r}}} [b]", "note"), a="c"), "{'c'} [b]")
