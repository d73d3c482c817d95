"""Facts about ordinary least squares, uncorrected or corrected."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from adaptinf.claims import Finding, first, said
from adaptinf.claims.contexts import NO_PART, NOT_BY_PAST
from adaptinf.claims.regression import plain_regression as claims
from adaptinf.claims.regression.regressions import CONSTANT
from adaptinf.inference.corrections.information import Correction
from adaptinf.inference.distributions.tails import student_quantile
from adaptinf.inference.regression.design import unit_codes
from adaptinf.inference.regression.facts.regression_facts import RegressionFacts
from adaptinf.inference.regression.least_squares import BY_CLUSTER, LeastSquares
from adaptinf.inference.validity.constant_means import shares_moved
from adaptinf.inference.validity.profile import is_binary
from adaptinf.log import Stability
from adaptinf.typing import IntArray

_USUAL_ALPHA = 0.05
# A correction that more than doubles the length of intervals is not made by default.
_PATIENCE = 2.0


class PlainFacts(RegressionFacts):
    """Facts about least squares without an adjustment."""

    @cached_property
    def squares(self) -> LeastSquares:
        """The least-squares fit that all kinds of covariance share."""
        return self.data.squares

    @property
    def kind(self) -> str:
        """The kind of covariance that is used."""
        return self.options.covariance

    @cached_property
    def clusters(self) -> IntArray | None:
        """Codes of units, if the covariance is clustered by unit; shape (n,)."""
        return unit_codes(self.profile.log, self.data.rounds) if self.kind in BY_CLUSTER else None

    @property
    def n_clusters(self) -> int | None:
        """Number of units, if the covariance is clustered by unit."""
        return None if self.clusters is None else int(self.clusters.max()) + 1

    @property
    def no_sandwich(self) -> bool:
        return False

    @property
    def nothing_adapted(self) -> str:
        """Why nothing adapted, if this makes plain least squares the default; otherwise empty."""
        preferred = not self.data.adaptive and not self.profile.varying_propensities
        return self.profile.why_not_adaptive if preferred else ""

    @property
    def nothing_due(self) -> dict[str, str]:
        return {} if self.data.adaptive else {"why": self.profile.why_not_adaptive}

    @property
    def known_stable(self) -> Stability | None:
        """Why the estimate is asymptotically normal although the design adapts; None if it is not."""
        found = self.profile.stability
        return found if found is not None and found.stable and self.data.selector is None else None

    @property
    def stable(self) -> dict[str, str]:
        found = self.known_stable
        if found is None or not self.data.adaptive:
            return {}
        design = self.profile.design_title
        return {"design": design, "condition": found.condition, "source": found.source}

    @property
    def naive(self) -> bool:
        return self.data.adaptive and self.known_stable is None

    @property
    def contexts_fixed(self) -> str:
        return NOT_BY_PAST() if self.profile.has_contexts and not self.naive else ""

    @property
    def contexts_found(self) -> Finding | None:
        return self.profile.contexts_found

    @property
    def contexts_without_part(self) -> list[str]:
        return said((NO_PART,), self) if self.stable else []

    @property
    def constant_coefficients(self) -> str:
        return "" if self.naive else CONSTANT.of(self, {})

    @property
    def selected_naively(self) -> bool:
        return self.naive and self.data.selector is not None

    @property
    def unnamed_design(self) -> bool:
        return self.naive and self.profile.log.design is None

    @property
    def _guaranteed(self) -> bool:
        log = self.profile.log
        return self.naive and (log.guarantee is not None or log.reward_guarantee is not None)

    @property
    def no_corrected_columns(self) -> dict[str, str]:
        reason = self.profile.no_correction
        return {"reason": reason} if self._guaranteed and reason else {}

    @property
    def correction_available(self) -> bool:
        return self._guaranteed and not self.profile.no_correction

    @property
    def shares_moved(self) -> str:
        compared = bool(np.ptp(self.data.action) > 0)
        return shares_moved(self.profile, self.arms_used) if not self.data.adaptive and compared else ""

    @property
    def only_shares_moved(self) -> bool:
        several = len(self.arms_used) > 1 and not self.data.adaptive
        return several and self.profile.shares_move and not self.shares_moved

    @property
    def classical(self) -> bool:
        return self.kind == "classical"

    @property
    def by_cluster(self) -> dict[str, int | None]:
        return {"units": self.n_clusters} if self.kind == "cluster" else {}

    @property
    def bias_reduced(self) -> dict[str, int | None]:
        return {"units": self.n_clusters} if self.kind == "CR2" else {}

    @property
    def robust(self) -> dict[str, str]:
        return {} if self.classical or self.kind in BY_CLUSTER else {"kind": self.kind}

    @property
    def no_errors(self) -> str:
        """The reason why there are no standard errors; empty if there are."""
        return first(claims.NO_ERRORS, self)

    @property
    def no_residual(self) -> dict[str, int]:
        n, p = self.squares.q.shape
        return {"n": n, "p": p} if n <= p else {}

    @property
    def constant(self) -> bool:
        return bool(self.squares.total == 0.0)

    @property
    def exact_fit(self) -> bool:
        return bool(self.squares.perfect)

    @property
    def one_unit(self) -> bool:
        return self.n_clusters is not None and self.n_clusters < 2

    @property
    def decided_alone(self) -> dict[str, Any]:
        if self.kind not in ("HC2", "HC3") or self.squares.decided == 0:
            return {}
        return {"rounds": self.squares.decided, "kind": self.kind}

    @property
    def decided_by_a_unit(self) -> dict[str, str]:
        alone = self.fit.found
        return {"terms": ", ".join(alone)} if alone else {}


class CorrectedFacts(PlainFacts):
    """Facts about least squares corrected by the log's privacy guarantee."""

    @cached_property
    def correction(self) -> Correction | None:
        """The correction; None if the log permits none.

        An arm that the design recommended may depend on every reward, including rewards that did not change
        any action. In that case, all rounds are counted.
        """
        found = self.profile.correction_chosen_from(self.options.settings.get("chosen_from", "actions"))
        if found is None or self.data.selector != "recommended":
            return found
        return replace(found, n=self.data.n_rounds)

    @property
    def not_adaptive(self) -> dict[str, str]:
        return self.nothing_due

    @property
    def no_correction(self) -> str:
        return self.profile.no_correction if self.correction is None else ""

    @property
    def affordable(self) -> dict[str, float]:
        """How much longer corrected intervals are, if this is acceptable or if nothing else is valid."""
        data, correction = self.data, self.correction
        if correction is None or data.nobs <= data.size or correction.vacuous(_USUAL_ALPHA):
            return {}
        df = float(data.nobs - data.size)
        levels = (correction.level(math.log(_USUAL_ALPHA)), math.log(_USUAL_ALPHA))
        wide, usual = (float(student_quantile(level - math.log(2.0), df)[0]) for level in levels)
        ratio = wide / usual
        if not math.isfinite(ratio) or (ratio > _PATIENCE and data.selector is None):
            return {}
        return {"ratio": ratio}

    @property
    def corrected(self) -> dict[str, str]:
        correction = self.correction
        released = correction is not None and correction.chosen_from == "releases"
        return {"read": "actions, contexts and releases" if released else "actions and contexts"}

    @property
    def recommended(self) -> bool:
        return self.data.selector == "recommended"

    @property
    def binary(self) -> bool:
        return is_binary(self.data.y)

    @property
    def bounded(self) -> dict[str, float]:
        limits = self.profile.log.reward_range
        if self.binary or limits is None or not np.any(np.isfinite(limits)):
            return {}
        return {"low": limits[0], "high": limits[1]}
