"""Facts about least squares weighted by propensities."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from adaptinf.claims import first, propensities
from adaptinf.claims.regression import weighted_regression as claims
from adaptinf.claims.regression.regressions import CONSTANT
from adaptinf.inference.regression.facts.regression_facts import RegressionFacts
from adaptinf.inference.regression.weighted.round_weights import fixed_by, shared_weights
from adaptinf.inference.scores.inverse import indicators
from adaptinf.inference.scores.means import effective_size
from adaptinf.inference.validity.profile import FEW_EFFECTIVE, SMALL, TINY_PROPENSITY
from adaptinf.typing import FloatArray


class WeightedFacts(RegressionFacts):
    """Facts about the data for each arm: rounds in which it could be chosen, rewards and propensities."""

    @cached_property
    def gaps(self) -> str:
        """The arm that was impossible in the most rounds, with their number; empty if there is none."""
        codes = self.arms_used
        counts = self.profile.impossible[codes]
        if not counts.any():
            return ""
        worst = int(np.argmax(counts))
        rounds = f"{int(counts[worst])} of {self.data.n_rounds} rounds"
        return f"arm {self.profile.log.arms[codes[worst]]!r} has propensity 0 in {rounds}"

    @cached_property
    def effective(self) -> FloatArray:
        """Effective number of rewards of each arm, shape (k,)."""
        data, profile, codes = self.data, self.profile, self.arms_used
        weight = np.ones(data.nobs)
        if profile.propensities is not None:
            weight = shared_weights(profile, codes, jointly=False)[data.rounds]
        assert profile.propensity is not None
        gain = np.square(weight / profile.propensity[data.rounds])
        return np.asarray(effective_size(indicators(data.action, codes) * gain[:, None]))

    @property
    def smallest(self) -> float:
        """The smallest propensity of the arms in the fit."""
        return float(self.profile.smallest_propensity[self.arms_used].min())

    @property
    def usual_weights(self) -> str:
        """The default weights: combined if these equalise variances, as in `Contrast`; otherwise uniform.

        Combined weights do not equalise variances if contexts may affect propensities from round to round,
        and no batches fix a weight before a context is observed.
        """
        profile = self.profile
        follows = profile.decides_by_context or not profile.context_free
        uneven = follows and not profile.constant_propensities and not profile.batched
        return "uniform" if profile.propensities is None or uneven else "combined"

    @property
    def lacks_propensities(self) -> bool:
        return self.data.propensity is None

    @property
    def has_zero(self) -> bool:
        return self.data.propensity is not None and not np.all(self.data.propensity > 0.0)

    @property
    def impossible(self) -> dict[str, str]:
        adapts = self.profile.traits is not None and self.profile.traits.adapts
        known = self.profile.propensities is not None and not adapts
        return {} if known or not self.gaps else {"gaps": self.gaps}

    @property
    def passed_over(self) -> str:
        """Why weighting is not the default although there are propensities; otherwise empty."""
        return "" if self.data.propensity is None else first(claims.PASSED_OVER, self)

    @property
    def estimated(self) -> bool:
        return self.profile.estimated

    @property
    def refused(self) -> dict[str, str]:
        reason = first(claims.NEEDS, self)
        return {"reason": reason} if reason else {}

    @property
    def chosen_alone_in_batches(self) -> bool:
        return self.profile.propensities is None and self.data.batch is not None

    @property
    def too_small(self) -> dict[str, float]:
        least, size = self.smallest, float(self.effective.min())
        if least >= SMALL or size >= FEW_EFFECTIVE:
            return {}
        return {"floor": SMALL, "enough": FEW_EFFECTIVE, "least": least, "size": size}

    @property
    def _preferred(self) -> bool:
        """Whether weighting is the default, which requires actual propensities and enough effective rewards.

        Without batches, the propensities of the chosen arms are sufficient.
        """
        return self.data.selector is None and self.data.propensity is not None and not self.passed_over

    @property
    def _whose(self) -> str:
        return "the chosen arm's" if self.profile.propensities is None else "every arm's"

    @property
    def never_small(self) -> dict[str, str]:
        return {"whose": self._whose} if self._preferred and self.smallest >= SMALL else {}

    @property
    def small_but_enough(self) -> dict[str, Any]:
        if not self._preferred or self.smallest >= SMALL:
            return {}
        return {"whose": self._whose, "least": self.smallest, "floor": SMALL, "enough": FEW_EFFECTIVE}

    @property
    def is_shared(self) -> bool:
        """Whether each round has one weight for all arms."""
        return self.fit.weights in ("combined", "uniform")

    @property
    def _several(self) -> bool:
        return len(self.arms_used) > 1

    @property
    def shared(self) -> dict[str, str]:
        if not self.is_shared:
            return {}
        everyone = " for all arms" if self._several else ""
        return {"kind": str(self.fit.weights).capitalize(), "all": everyone, "by": self._by}

    @property
    def _by(self) -> str:
        if self.fit.weights != "combined":
            return ""
        known = {"round": propensities.SAME_ROUND, "batch": propensities.BATCH_BEFORE}
        by = known.get(fixed_by(self.profile, self.arms_used), propensities.ROUND_BEFORE)
        return f", computed from {by()}"

    @property
    def several_arms(self) -> bool:
        return self.is_shared and self._several

    @property
    def _reference(self) -> int | None:
        """Code of the reference arm, if differences between arms are projected."""
        arms = self.fit.found
        return None if arms is None or not arms.gaps else int(arms.reference)

    @property
    def projected(self) -> dict[str, Any]:
        code = self._reference if self.is_shared else None
        return {} if code is None else {"arm": self.profile.log.arms[code]}

    @property
    def unprojected(self) -> bool:
        return self.several_arms and self._reference is None

    @property
    def shared_errors(self) -> bool:
        return self.is_shared

    @property
    def compared_where_possible(self) -> dict[str, str]:
        compared = self.is_shared and self.gaps and self.fit.found is not None
        return {"gaps": self.gaps} if compared else {}

    @property
    def left_out(self) -> dict[str, str]:
        return {"gaps": self.gaps} if self.is_shared and self.gaps and self.fit.found is None else {}

    @property
    def own(self) -> dict[str, str]:
        if self.is_shared:
            return {}
        given = self.options.settings.get("target") is not None
        target = claims.GIVEN_TARGET() if given else claims.UNIFORM_TARGET()
        return {"target": target}

    @property
    def constant_coefficients(self) -> str:
        return "" if self.is_shared else CONSTANT.of(self, {})

    @property
    def assumes_constant(self) -> bool:
        return not self.is_shared

    @property
    def own_errors(self) -> bool:
        return not self.is_shared

    @property
    def own_weights_of_pair_unstated(self) -> dict[str, str]:
        """Facts on separate weights for two arms, by which common drift would appear as a difference."""
        fixed = self.options.stationary or self.profile.constant_propensities
        return {} if self.is_shared or fixed or not self._several else {"weights": "sqrt importance"}

    @property
    def tiny_propensities(self) -> dict[str, float]:
        least = float(self.fit.details["min_propensity"].min())
        return (
            {"least": least, "size": float(self.fit.details["ess"].min())} if least < TINY_PROPENSITY else {}
        )

    @property
    def below_floor(self) -> dict[str, float]:
        least = float(np.min(self.fit.details["min_propensity"]))
        small = self.data.adaptive and least < SMALL
        enough = self.is_shared and float(self.effective.min()) >= FEW_EFFECTIVE
        return {"least": least, "floor": SMALL} if small and not enough else {}

    @property
    def few_effective(self) -> list[dict[str, Any]]:
        arms = [str(self.profile.log.arms[code]) for code in self.arms_used] if self.is_shared else []
        return [
            {"term": arm, "worth": size, "enough": FEW_EFFECTIVE}
            for arm, size in zip(arms, self.effective if arms else (), strict=True)
            if size < FEW_EFFECTIVE
        ]

    @property
    def gone(self) -> dict[str, str]:
        """Whether an arm may have been removed because of its rewards."""
        every, codes = self.profile.propensities, self.arms_used
        if every is None or not self.profile.adaptive or not self.is_shared:
            return {}
        arms = []
        for code in codes[self.profile.impossible[codes] > 0]:
            possible = every[:, code] > 0.0
            if possible.any() and not possible[int(np.argmax(possible)) :].all():
                arms.append(str(self.profile.log.arms[code]))
        return {"arms": ", ".join(arms)} if arms else {}

    @property
    def no_errors(self) -> str:
        """The reason why there are no standard errors; empty if there are."""
        return first(claims.NO_ERRORS, self)

    @property
    def decided_alone(self) -> dict[str, int]:
        decided = self.fit.decided > 0 and not np.all(self.fit.std_error == 0.0)
        return {"rounds": self.fit.decided} if decided else {}

    @property
    def few_with_weight(self) -> bool:
        return bool(np.isnan(self.fit.std_error).any())
