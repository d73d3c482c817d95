"""Notes under a summary: the test, the correction, the model's assumptions, what privacy covers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from adaptinf.claims import said, tables
from adaptinf.claims.privacy import guarantees

if TYPE_CHECKING:
    from adaptinf.inference.results.base import Results


def footer(results: Results, alpha: float = 0.05) -> tuple[str, ...]:
    """Notes under a summary, in their order."""
    return tuple(said(tables.FOOTER, Footer(results, alpha)))


class Footer:
    """What claims ask of a result; alpha is the level of its intervals."""

    def __init__(self, results: Results, alpha: float) -> None:
        self.results, self._alpha = results, alpha
        self.facts, self.notes = results.facts, results.notes
        self.efficiency_note, self.readings = results.efficiency_note, results.facts.readings

    @property
    def exact_law(self) -> dict[str, str]:
        """P-values and intervals are exact."""
        return {"law": self.results.reference.name} if self.results.reference.exact else {}

    @property
    def approximate_law(self) -> dict[str, str]:
        """They are not."""
        return {} if self.results.reference.exact else {"law": self.results.reference.name}

    @property
    def without_std_error(self) -> bool:
        """P-values and intervals do not use standard errors."""
        return not self.results.reference.uses_std_error

    @property
    def correction(self) -> str:
        """What corrected columns rest on."""
        correction, law = self.results.correction, self.results.reference
        if correction is None:
            return ""
        claim = tables.CORRECTION_IMPOSSIBLE if correction.vacuous(self._alpha) else tables.CORRECTED
        note = claim(correction=correction.describe(self._alpha), covers=correction.coverage)
        return note if law.exact else f"{note} {tables.FAR_OUT(law=law.name)}"

    @property
    def corrects_rounds(self) -> bool:
        """There is a correction by round, and some unit has several."""
        person = self.facts.person
        several = self.facts.n_units is not None or (person is not None and person.rounds > 1)
        return self.results.correction is not None and several

    @property
    def cautions(self) -> Sequence[dict[str, str]]:
        """Each caution."""
        return [{"caution": caution} for caution in self.results.cautions]

    @property
    def repeated_units(self) -> dict[str, int]:
        """Units with several rounds, for which nothing allows."""
        units = self.facts.n_units
        return {} if units is None else {"units": units, "rounds": self.facts.n_rounds}

    # Privacy

    @property
    def withdrawn(self) -> dict[str, str]:
        """Why the design's promise does not hold."""
        return {"why": "; ".join(self.facts.unpromised)} if self.facts.unpromised else {}

    @property
    def privacy(self) -> str:
        """What is promised, by whom, and what of that covers these numbers."""
        guarantee = self.facts.guarantee
        if guarantee is None:
            return ""
        promised = guarantees.AS_STATED if self.facts.stated else guarantees.PROMISED
        parts: list[str] = [promised(guarantee=guarantee)]
        if math.isinf(guarantee.epsilon):
            parts.append(guarantees.COVERS_NOTHING())
        elif self.results.private:
            parts.append(guarantees.COVERS_RELEASES())
        else:
            standard = guarantee.notion == "standard"
            covers = guarantees.COVERS_ACTIONS if standard else guarantees.COVERS_ACTIONS_OF_OTHERS
            parts += [covers(), guarantees.NOT_COVERED()]
        return " ".join(parts)

    @property
    def all_rounds_of_a_unit(self) -> dict[str, Any]:
        """The guarantee of a person with several rounds."""
        person = self.facts.person
        told = self.facts.guarantee is not None and person is not None and person.rounds > 1
        return {"guarantee": person} if told else {}

    @property
    def auxiliary(self) -> dict[str, str]:
        """Guarantees of participants of auxiliary logs."""
        told = self.facts.guarantee is not None and self.facts.auxiliary
        return {"guarantees": "; ".join(map(str, self.facts.auxiliary))} if told else {}

    @property
    def simulation_noise(self) -> bool:
        """The noise was drawn for a simulation."""
        return self.facts.noise == "simulation"
