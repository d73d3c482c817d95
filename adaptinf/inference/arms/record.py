"""The record of a method for arm means: one a file, and `METHODS` lists them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from adaptinf.inference.arms.fit import ArmFit, no_notes, normal_test, residual_rows
from adaptinf.inference.arms.question import Asked, Choice, Question
from adaptinf.inference.validity.methods import MethodRecord
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from adaptinf.inference.corrections.information import Correction

__all__ = ["ArmMethod"]


@dataclass(frozen=True, slots=True, eq=False)
class ArmMethod(MethodRecord[Question]):
    """One method of inference for arm means, their differences, or both.

    Attributes
    ----------
    settle : callable
        Completes what was asked for, or raises `Refused`.
    notes : callable
        Assumptions and reasons under the table of one fit.
    resolve_test : callable
        Which test a fit takes, of "normal", "t", "exact" and "few" (exact tests of few events).
    rows : callable
        What each round contributes.
    options : tuple of str
        Arguments of `fit` that it understands, beyond the test.
    implied_by : tuple of str
        Options and tests that ask for it where no estimator is named.
    no_weights : str
        How the refusal of weights begins; empty where it takes some.
    contrast_only : bool
        Whether it estimates differences alone: then `fit` returns a `Difference`, and takes tests itself.
    baseline : bool
        Whether it also runs where it is not valid, as a naive baseline.
    bound : {"", "shares", "propensities"}
        What the least possible variance is computed from; empty where errors ignore adaptivity.
    """

    settle: Callable[[Question, Asked], Choice]
    notes: Callable[[Question, ArmFit, str, Correction | None], list[str]] = no_notes
    resolve_test: Callable[..., str] = normal_test
    rows: Callable[[Question, ArmFit], Mapping[str, FloatArray]] = residual_rows
    options: tuple[str, ...] = ()
    implied_by: tuple[str, ...] = ()
    no_weights: str = ""
    contrast_only: bool = False
    baseline: bool = False
    bound: Literal["", "shares", "propensities"] = ""
