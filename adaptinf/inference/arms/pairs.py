"""Differences of two arms of a table: those of `Contrast`, with its weights, its law and its guards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adaptinf.inference.arms.contrast import Contrast
from adaptinf.inference.arms.facts.weighted import OWN
from adaptinf.inference.scores.joint import JOINT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adaptinf.inference.arms.circumstances.ratios import Denominator
    from adaptinf.inference.arms.models import ArmMeans
    from adaptinf.inference.arms.question import Asked, Choice
    from adaptinf.inference.arms.record import ArmMethod
    from adaptinf.inference.results.base import Results
    from adaptinf.log import AdaptiveLog
    from adaptinf.sums import Sums
    from adaptinf.typing import Validity


@dataclass(frozen=True, slots=True, eq=False)
class PairContrasts:
    """Contrasts of a table's arms on the rounds in which both could be chosen, fitted when asked for."""

    log: AdaptiveLog | Sums
    arms: tuple[Any, ...]
    denominator: Denominator | None
    how: Mapping[str, Any]
    """Arguments of `Contrast.fit`."""

    def __call__(self, first: int, second: int) -> Results:
        """The contrast of two arms, by their places in the table."""
        pair = Contrast(self.log, treatment=self.arms[first], control=self.arms[second])
        pair.denominator = self.denominator
        return pair.fit(**self.how)


def differences_of(
    model: ArmMeans, method: ArmMethod, asked: Asked, choice: Choice, label: Validity
) -> PairContrasts | None:
    """What tests of the differences of a table's arms are; None where each arm has weights of its own."""
    if not method.pairs or label == "not valid" or asked.stationary or choice.weights in OWN:
        return None
    taken = {name: getattr(asked, name) for name in ("test", "arm_error", "outcome", "ridge")}
    weights = None if asked.weights == JOINT else asked.weights
    how = {"estimator": choice.estimator, "weights": weights, **taken}
    return PairContrasts(model.log, model.arms, model.denominator, how)
