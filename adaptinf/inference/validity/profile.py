"""Facts about a log that determine the validity of methods, which are stored with the log."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from adaptinf.claims import Claim, Finding, adaptivity, contexts
from adaptinf.claims.arms.batched import MOVED_INSIDE
from adaptinf.claims.logs import statements
from adaptinf.inference.corrections.information import ChosenFrom, Correction
from adaptinf.inference.corrections.information_of_log import correction_for, why_not
from adaptinf.inference.inputs.rounds import moves, stays
from adaptinf.inference.validity.assignment import (
    MOVED,
    REACTS,
    REACTS_BESIDE,
    SHORT,
    VISIBLE,
    deciding_context,
    leader_test,
    pooling_pvalue,
    reaction_pvalue,
    runs_pvalue,
    shares_pvalue,
    strata,
)
from adaptinf.inference.validity.calibration import some_rounds
from adaptinf.inference.validity.methods import Verdict
from adaptinf.inference.validity.pieces import RowPieces
from adaptinf.inference.validity.reward_facts import RewardFacts
from adaptinf.inference.validity.stationarity import Trends, stretches_of_rows, times, trends_of_rows
from adaptinf.log import AdaptiveLog, DesignTraits, Stability
from adaptinf.log.validation.arm_columns import batch_cells
from adaptinf.sums import Sums
from adaptinf.sums.homogeneity import within_pvalue
from adaptinf.typing import BoolArray, FloatArray

Found = TypeVar("Found")

SMALL = 0.05
"""With propensities below this, asymptotic intervals are doubtful for moderate numbers of rounds."""
TINY_PROPENSITY = 1e-4
"""With propensities below this, one reward weighs as much as thousands, and a warning is given."""
FEW_EFFECTIVE = 20.0
"""Student's t is doubtful if the effective number of rewards (degrees of freedom plus 1) is below this."""
_SAME = 1e-9
"""Propensities that differ by less are treated as equal, because writing and reading a frame rounds them."""
_IN_PLACE_OF_MEANS = {
    "by-vector": contexts.REGRESSION(covariates="its own context vectors"),
    "by-context": contexts.REGRESSION(covariates="contexts"),
    "by-released-bin": contexts.RELEASED_BINS(),
    "by-bin": contexts.WITHIN_BIN(),
}


class LogProfile(RowPieces):
    """The facts about one log, each of which is computed when it is first used."""

    sums: Sums | None = None
    """Sums by batch and arm, if they replace the rows of a log."""

    def __init__(self, log: AdaptiveLog) -> None:
        self.log = log

    @cached_property
    def _kept(self) -> dict[Any, Any]:
        return {}

    def once(self, what: Any, work: Callable[[], Found]) -> Found:
        """A result that another package computes from the data, which is computed once and stored by name."""
        if what not in self._kept:
            self._kept[what] = work()
        found: Found = self._kept[what]
        return found

    def worked_out(self, asked: Any, work: Callable[[], Iterable[Verdict]]) -> list[Verdict]:
        """Verdicts for a request, which defaults, refusals and `recommend` compute only once."""
        return list(self.once(asked, lambda: tuple(work())))

    @cached_property
    def design_names(self) -> tuple[str, ...]:
        """Names of the design, and of the design inside a mixture, which are used only in texts."""
        if self.log.design is None:
            return ()
        inner = self.log.design.parameters.get("design")
        return (self.log.design.name,) if inner is None else (self.log.design.name, str(inner))

    @cached_property
    def design_title(self) -> str:
        """The name of the design for use in a text; empty if the log does not name a design."""
        return " over ".join(self.design_names)

    @cached_property
    def traits(self) -> DesignTraits | None:
        """Statements of the design about itself; None if there are none or the log contradicts them."""
        traits = None if self.log.design is None else self.log.design.traits
        contradicted = traits is not None and not traits.adapts and self.varying_propensities
        return None if contradicted else traits

    @cached_property
    def adaptive(self) -> bool:
        """Whether rewards may have changed later actions; True unless a statement or the log rules this out.

        Exact propensities that are constant over all rounds for every arm also rule it out.
        """
        if self.log.adaptive is not None:
            return self.log.adaptive
        fixed = self.constant_propensities or (self.traits is not None and not self.traits.adapts)
        return not fixed and self.log.feedback_rounds != 0

    @cached_property
    def why_not_adaptive(self) -> str:
        """The reason why rewards cannot have affected actions; empty if they may have."""
        if self.constant_propensities:
            return adaptivity.NEVER_MOVE()
        return adaptivity.AS_STATED() if self.log.adaptive is False else adaptivity.BY_DESIGN()

    @cached_property
    def may_not_adapt(self) -> bool:
        """Whether the user may state that nothing adapted, because no such statement has been made yet."""
        silent = self.log.adaptive is None and self.log.feedback_rounds is None
        return silent and self.traits is None and not self.knows_propensities

    @cached_property
    def shares_move(self) -> bool:
        """Whether arms' shares of the rounds change, according to propensities or, without these, to counts.

        Drift that is common to the arms then affects the plain means of different arms differently, although
        nothing adapts.
        """
        known = self.knows_propensities and not self.estimated
        if known or self.repeated_units:
            return self.varying_propensities
        return min(self._shares_pvalue, self._inside_pvalue) < MOVED / 2.0

    @cached_property
    def shares_move_in_batches(self) -> bool:
        """Whether shares change within batches, where batched least squares assumes constant shares."""
        return self.batched and self.shares_move and self._inside_pvalue < MOVED / 2.0

    @cached_property
    def shares_found(self) -> Finding | None:
        """Evidence that shares change within batches; None if propensities and order cannot show this.

        Methods that assume constant propensities cannot use batches within which propensities are known to
        change.
        """
        if not self.batched or (self.repeated_units and not self.logs_propensities):
            return None
        if self.repeated_units or self._may_move_inside or self._inside_pvalue >= MOVED / 2.0:
            return Finding()
        return Finding((MOVED_INSIDE(),))

    @property
    def _may_move_inside(self) -> bool:
        """Whether the log's propensities allow for shares that change within batches."""
        if not self.logs_propensities or self._never_move:
            return False
        if self.knows_every_propensity:
            return bool(self.moving_batches.any())
        arrays = self.log.arrays
        assert arrays.batch is not None
        assert arrays.propensity is not None
        return bool(batch_cells(arrays.batch, arrays.action, arrays.propensity, self.log.n_arms).moved.any())

    @cached_property
    def _shares_pvalue(self) -> float:
        """P-value for constant shares of arms over all batches, or over stretches of rounds."""
        arrays = self.log.arrays
        return shares_pvalue(arrays.action, self.log.n_arms, arrays.batch)

    @cached_property
    def _inside_pvalue(self) -> float:
        """P-value for arms drawn with equal probabilities within batches, or overall if there are none.

        It is based on runs and, within batches, on counts by stretch.
        """
        arrays, n_arms = self.log.arrays, self.log.n_arms
        runs = runs_pvalue(arrays.action, n_arms, arrays.batch)
        if arrays.batch is None:
            return runs
        return min(1.0, 2.0 * min(runs, within_pvalue(arrays.action, n_arms, arrays.batch)))

    @cached_property
    def states_not_adaptive(self) -> bool:
        """Whether the log states that rewards did not affect assignment."""
        return self.log.adaptive is False

    @cached_property
    def reaction_found(self) -> Finding | None:
        """Evidence that rewards affect which arms are chosen later, in a log that excludes this.

        None if this cannot be observed. If arms' shares change, a lack of evidence shows little: only sudden
        changes can be told from those that were fixed in advance.
        """
        if not self.states_not_adaptive or self.repeated_units or self.incomplete:
            return None
        p, told = self._reaction_test
        if p < (REACTS_BESIDE if self.shares_move else REACTS):
            return Finding((statements.REACTED(p=p),))
        return Finding() if told and not self.shares_move else None

    @cached_property
    def _reaction_test(self) -> tuple[float, bool]:
        """P-value for arms kept regardless of their last reward and leader, and whether it tells much."""
        arrays, n_arms = self.log.arrays, self.log.n_arms
        kept = reaction_pvalue(arrays.action, arrays.reward)
        led, told = leader_test(arrays.action, arrays.reward, n_arms, arrays.batch, local=self.shares_move)
        return (led if math.isnan(kept) else min(1.0, 2.0 * min(kept, led))), told

    @cached_property
    def pooling_pvalue(self) -> float:
        """P-value for levels that do not change with the shares of arms; NaN if not observable."""
        if self.repeated_units or self.incomplete or self.context_refusal:
            return math.nan
        return pooling_pvalue(*self._short_stretches)

    @property
    def _short_stretches(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """By stretch and arm, numbers, sums and sums of squares of deviations from arms' means; (S, K)."""
        arrays, n_arms = self.log.arrays, self.log.n_arms
        mean = np.bincount(arrays.action, arrays.reward, n_arms) / np.maximum(self.pulls, 1.0)
        away = arrays.reward - mean[arrays.action]
        stretch = strata(self.log.n_rounds, None, SHORT)
        cell, size = stretch * n_arms + arrays.action, (int(stretch[-1]) + 1) * n_arms
        powers: list[FloatArray | None] = [None, away, away**2]
        number, first, second = (
            np.bincount(cell, power, size).reshape(-1, n_arms).astype(np.float64) for power in powers
        )
        return number, first, second

    @cached_property
    def stability(self) -> Stability | None:
        """The way in which counts of the design are known to converge."""
        return None if self.traits is None else self.traits.stability

    @cached_property
    def floor_decay(self) -> float | None:
        """Decay of the propensity floor of the design; None if the design declares no decreasing floor."""
        floor = None if self.traits is None else self.traits.floor
        return None if floor is None or floor.decay == 0.0 else floor.decay

    @cached_property
    def usable_decay(self) -> float | None:
        """The declared decay if it is below 1, so that two-point weights can use it; otherwise None."""
        return self.floor_decay if self.floor_decay is not None and self.floor_decay < 1.0 else None

    @cached_property
    def trends(self) -> Trends:
        """Trends in time of the rewards of each arm.

        No trend is tested if contexts assign arms, because rewards then vary with the mix of contexts.
        """
        if self.context_refusal:
            return Trends(np.full(self.log.n_arms, np.nan))
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            return self._trends()

    @cached_property
    def _drifts(self) -> dict[tuple[int, ...], Finding | None]:
        return {}

    def drift_of(self, codes: Iterable[int]) -> Finding | None:
        """Evidence from trends on arm means that must be constant, computed once for given codes (k,)."""
        arms = tuple(codes)
        if arms not in self._drifts:
            self._drifts[arms] = self.trends.of(arms, self.log.arms)
        return self._drifts[arms]

    def _trends(self) -> Trends:
        """Trends; for a long log, levels by stretch are computed from equally spaced blocks of rounds.

        These are a quarter of the rounds that are used to check propensities.
        """
        arrays, n_arms = self.log.arrays, self.log.n_arms
        time = times(self.log.n_rounds, arrays.batch)
        unit, pulls = self.units if self.repeated_units else None, None
        if arrays.observed is not None:
            time, unit = time[arrays.observed], None if unit is None else unit[arrays.observed]
        else:
            pulls = self.pulls
        action, reward = self.rewarded_actions, self.rewards
        even = arrays.batch is None and arrays.observed is None
        found = trends_of_rows(action, reward, None if even else time, n_arms, unit, pulls)
        if self.repeated_units:
            return found
        rows = some_rounds(len(reward), 4 * n_arms)
        return replace(found, stretches=stretches_of_rows(action[rows], reward[rows], time[rows], n_arms))

    @cached_property
    def decides_by_context(self) -> bool:
        """Whether arms are known to have been assigned by context, because the log or its design says so."""
        if self.log.context_free is False:
            return True
        return self.traits is not None and self.traits.uses_context not in ("no", "unknown")

    @cached_property
    def by_own_vectors(self) -> bool:
        """Whether each arm has its own context vectors."""
        return self.traits is not None and self.traits.uses_context == "vectors"

    @cached_property
    def context_free(self) -> bool:
        """Whether contexts did not affect the choice, by declaration, by design, or for lack of contexts."""
        if self.log.context_free is not None or not self.log.context:
            return self.log.context_free is not False
        return self.traits is not None and self.traits.uses_context == "no"

    @cached_property
    def fixed_in_time(self) -> bool:
        """Whether propensities are known not to depend on the context of the round, even an unlogged one.

        This is the case if they never change, or if the log or its design states that contexts did not affect
        them.
        """
        if self.constant_propensities or self.log.context_free is not None:
            return self.constant_propensities or bool(self.log.context_free)
        return self.traits is not None and self.traits.uses_context == "no"

    @cached_property
    def fixed_before_contexts(self) -> BoolArray:
        """Whether the propensity of each arm is fixed before the context of a round, shape (K,).

        This includes contexts that are not in the log. The propensity is fixed if contexts did not affect the
        choice, or if it is constant within batches that have two or more rounds on average.
        """
        every, n_arms = self.propensities, self.log.n_arms
        if self.fixed_in_time or every is None:
            return np.ones(n_arms, dtype=bool)
        batch = self.log.arrays.batch
        if batch is None:
            return np.zeros(n_arms, dtype=bool)
        return stays(every, batch)

    @cached_property
    def no_shared_weights(self) -> str:
        """The reason why arms cannot share weights based on propensities; empty if they can."""
        followed = self.decides_by_context or not self.context_free
        if self.batched or not followed or self.constant_propensities:
            return ""
        return contexts.NOT_FIXED_BEFORE()

    @cached_property
    def moving_batches(self) -> BoolArray:
        """Whether the propensity of some arm is known to change within each batch, shape (B,)."""
        batch, every = self.log.arrays.batch, self.log.arrays.propensities
        assert batch is not None
        found = np.zeros(int(batch[-1]) + 1 if len(batch) else 0, dtype=bool)
        if every is not None:
            found[batch[moves(every, batch, _SAME)]] = True
        return found

    @cached_property
    def undeclared_context(self) -> bool:
        """Whether contexts may have assigned the arms in a design that does not declare this.

        Positive propensities solve this problem. Scores are then recommended first, and other methods state
        their assumptions.
        """
        design = self.log.design
        named = design is not None and (design.traits is None or design.traits.uses_context == "unknown")
        open_question = bool(self.log.context) and self.log.context_free is None
        weighable = self.knows_propensities and not self.impossible.any()
        return named and open_question and not weighable

    @cached_property
    def deciding_context(self) -> str:
        """Name of a context that visibly determines arms, in a log that states no rule or propensities.

        The name is empty if no context determines arms. It is also empty if this need not be checked, because
        contexts did not affect the choice, or because propensities that are not 1 in all rounds account for
        it.
        """
        log, arrays = self.log, self.log.arrays
        unanswered = arrays.propensity is None or arrays.propensity.min(initial=1.0) >= 1.0
        open_question = log.context and log.context_free is None and unanswered
        if not open_question or self.context_free or self.decides_by_context:
            return ""
        return deciding_context(arrays.context, arrays.action, log.n_arms, arrays.batch)

    @cached_property
    def never_random(self) -> bool:
        """Whether all propensities are 1 with several arms, and it is not stated that earlier rounds decided.

        If contexts are known to assign arms, the log is refused for that reason instead.
        """
        if not self._all_sure or self.fixed_in_time or self.context_refusal:
            return False
        return int(np.count_nonzero(self.pulls)) > 1

    @property
    def _all_sure(self) -> bool:
        known = self.log.arrays.propensity
        return known is not None and known.min(initial=1.0) >= 1.0 - _SAME

    @cached_property
    def contexts_found(self) -> Finding | None:
        """Evidence that a context determines arms, for methods that exclude this; None without contexts.

        A design that uses contexts is refused if they must not affect the choice.
        """
        return self.context_followed(contexts.FOLLOWED)

    def context_followed(self, claim: Claim) -> Finding | None:
        """Evidence on whether a context visibly determines arms; None without contexts."""
        found = self.visible_context
        if found is None:
            return None
        visibly = contexts.VISIBLY(context=found, visible=VISIBLE)
        return Finding((claim(visibly=visibly),) if found else ())

    @cached_property
    def visible_context(self) -> str | None:
        """Name of a context that determines arms according to the data, regardless of what the log declares.

        The name is empty if no context does. The result is None without contexts, and for a design that uses
        contexts.
        """
        arrays = self.log.arrays
        if not arrays.context or self.decides_by_context:
            return None
        rows = some_rounds(self.log.n_rounds, 1)
        context = {name: np.asarray(values)[rows] for name, values in arrays.context.items()}
        batch = None if arrays.batch is None else arrays.batch[rows]
        return deciding_context(context, arrays.action[rows], self.log.n_arms, batch)

    @cached_property
    def context_refusal(self) -> str:
        """The reason why means over the arms' own rounds cannot be compared; empty if they can."""
        if self.decides_by_context:
            title = self.design_title
            why = contexts.BY_DESIGN(design=title) if title else contexts.AS_STATED()
            return contexts.MIXED(why=why, differ="differ")
        if self.deciding_context:
            why = contexts.VISIBLY(context=self.deciding_context, visible=VISIBLE)
            return contexts.MIXED(why=why, differ="differ")
        if self.undeclared_context:
            return contexts.MIXED(
                why=contexts.PERHAPS_BY_DESIGN(design=self.design_title), differ="may differ"
            )
        return ""

    @cached_property
    def in_place_of_means(self) -> str:
        """Alternatives to arm means, or ways to make arm means comparable, if contexts may assign arms."""
        if self.deciding_context:
            return contexts.WITH_COLUMN(context=self.deciding_context)
        if not self.decides_by_context:
            return contexts.STATE_NO_PART()
        kind = "by-group" if self.traits is None else self.traits.arm_means
        if kind in _IN_PLACE_OF_MEANS:
            return _IN_PLACE_OF_MEANS[kind]
        return contexts.WITHIN_GROUPS(contexts=", ".join(self.log.context) or "the context")

    @cached_property
    def context_names(self) -> str:
        """The names of the log's contexts for use in a sentence."""
        names = self.log.context
        if not names:
            return contexts.NOT_IN_LOG()
        return ", ".join([*names[:5], "..."] if len(names) > 5 else names)

    @cached_property
    def has_contexts(self) -> bool:
        """Whether the log has context columns."""
        return bool(self.log.context)

    @cached_property
    def knows_propensities(self) -> bool:
        """Whether the propensities of the chosen arms are known."""
        return self.log.arrays.propensity is not None

    @cached_property
    def batched(self) -> bool:
        """Whether rounds fall into batches."""
        return self.log.arrays.batch is not None

    @cached_property
    def may_weigh_rounds(self) -> bool:
        """Whether weights of rounds could be based on the propensities of all arms."""
        return not self.rows_refusal and self.knows_every_propensity

    @cached_property
    def shares_stand_in(self) -> bool:
        """Whether the arms' shares in batches replace propensities, which is never the case for rows."""
        return False

    @cached_property
    def share_cautions(self) -> tuple[str, ...]:
        """Cautions that shares that replace propensities change, if unweighted means are compared."""
        found = self.shares_found if self.shares_stand_in else None
        return () if found is None else found.cautions

    @cached_property
    def moves(self) -> bool:
        """Whether propensities may change with the data: True for adaptive logs, unless they are constant."""
        return self.adaptive and not self.constant_propensities

    @cached_property
    def context_may_move(self) -> bool:
        """Whether all propensities are known but may change with contexts, which weights must not do."""
        return self.knows_every_propensity and self.moves and not self.context_free

    @cached_property
    def correction(self) -> Correction | None:
        """The correction that the guarantee permits for tests that were chosen from actions and contexts."""
        return correction_for(self.log)

    def correction_chosen_from(self, chosen_from: ChosenFrom) -> Correction | None:
        """The permitted correction for tests that were chosen from actions, or also from releases."""
        return (
            self.correction if chosen_from == "actions" else correction_for(self.log, chosen_from=chosen_from)
        )

    @cached_property
    def no_correction(self) -> str:
        """The reason why there is no correction; empty if there is one."""
        return why_not(self.log)


PROFILES: dict[type, Callable[[Any], LogProfile]] = {}
"""Functions that build the profile of data other than logs; the module for sums adds its own."""


def profile_of(log: AdaptiveLog | Sums) -> LogProfile:
    """The profile of a log or of sums, which is built at the first call and stored with the data."""
    kept = log.kept
    if "profile" not in kept:
        kept["profile"] = PROFILES.get(type(log), LogProfile)(log)
    profile: LogProfile = kept["profile"]
    return profile


def compared(question: Any) -> RewardFacts:
    """Facts about pooled rewards: all rewards or, for a contrast, the rewards of the compared arms.

    `question` has a profile and codes (k,), and indicates whether it is about a contrast.
    """
    profile: LogProfile = question.profile
    return profile.of_arms(question.codes) if question.contrast else profile


def is_binary(reward: FloatArray) -> bool:
    """Whether all rewards are 0 or 1; reward (T,)."""
    return bool(np.all((reward == 0.0) | (reward == 1.0)))
