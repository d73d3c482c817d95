"""A trial with planned looks.

References
----------
Lan, DeMets (1983), "Discrete sequential boundaries for clinical trials". Jennison, Turnbull (2000), "Group
Sequential Methods with Applications to Clinical Trials". Tsiatis, Rosner, Mehta (1984), "Exact confidence
intervals following a group sequential test".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adaptinf.claims import assumptions
from adaptinf.claims.logs import plans as claims
from adaptinf.claims.propensities import RIGHT
from adaptinf.designs.base import Design
from adaptinf.errors import InvalidForLog
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.log_facts import LogFacts
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import BOOLEAN, check, number_array, refuse
from adaptinf.plans.decisions import Course, Rule, with_all
from adaptinf.plans.looks import Look
from adaptinf.plans.plan_arguments import by_look, plan_problems, treatments_of
from adaptinf.plans.planning.committee import CommitteeReport
from adaptinf.plans.planning.dates import Start, horizon_of, look_days, moment_of
from adaptinf.plans.planning.planner import Planning
from adaptinf.plans.planning.timing import Timing
from adaptinf.plans.several import SeveralCourse
from adaptinf.plans.several_results import RepeatedReference, look_of
from adaptinf.plans.stopped_results import COUNTS, RankReference, StagewiseReference, StoppedResults
from adaptinf.plans.stored_plans import differs, missing_assumed
from adaptinf.typing import FloatArray


class Plan(Planning):
    """A trial that compares two arms at planned looks and may stop at each of them.

    Parameters
    ----------
    design : Design
        The assignment of participants, which must record every arm's propensity.
    arms : sequence of labels
        The arms in the design's order, which may be more than the two compared.
    treatment, control : label
        The arms that are compared; the control's mean is subtracted. With a tuple or list of up to four
        treatments, each is compared with the control, and the probability of rejecting any treatment without
        effect is at most alpha (closed tests by the joint law of their scores). The trial stops at the first
        look that rejects a treatment.
    looks : sequence of int, or of numbers or dates
        Rounds after which there is a look, ascending; the last is the horizon. With ``clock="date"``, days
        since the start, or dates; with ``clock="information"``, levels of information.
    horizon : int, optional
        Number of rounds of a trial that does not stop; by default, that of the last look. With
        ``clock="date"``, the largest number of participants; by default `accrual` times the days. With
        ``clock="information"``, the largest number of participants, which is required.
    spending : str
        How alpha is spent over the looks, as in `spending_bounds`. At each look, the classical designs spend
        the amount that they would if information grew in proportion to the number of rounds.
    gamma, rho : float
        Parameters of the spending families, as in `spending_bounds`.
    futility : float or sequence of float, optional
        Stop if the standardised score at a look before the last (for two-sided tests, its absolute value) is
        at most this value. Futility is not binding: a trial may continue, and levels do not depend on it.
    drop : float or sequence of float, optional
        One of several treatments is dropped if its standardised score at a look before the last is at most
        this value. The design continues with the other arms. Dropping is not binding either: the critical
        values of the others do not depend on it.
    sides : {2, 1}
        Whether the test is two-sided, or rejects only if the treatment is better.
    alpha : float
        Level of all looks together, between 0 and 0.5.
    margin : float
        Difference under the null: below 0 for a test of non-inferiority.
    inflation : float
        Factor of all standard errors, as found by `calibrate`.
    law : {"z", "rerandomization", "exact"}
        How statistics are compared: with critical values of normal scores; by rank among replays of the
        design on the same outcomes; or by the exact distribution of the counts of two arms with 0/1 rewards.
        Ranks are exact at any sample size if no arm has an effect on anyone; of several treatments, the
        largest score is compared. Counts are exact if success rates are constant; they require a design that
        `audit.exact` supports and at most 400 rounds, and compare pooled score statistics given the number of
        successes. Neither gives an interval, and both require a margin of 0.
    replays : int
        Number of replays.
    seed : int
        Seed of the replays, which is part of the plan, so that a look can be repeated.
    least : float
        Smallest effective number of rewards of either arm for a test at a look and, if rewards are 0 and 1,
        smallest number of either outcome. The alpha of a look with fewer rewards is carried over to the next
        look. Comparisons by rank do not require a minimum.

    delay : int or distribution
        In simulations: the number of further rounds after which an outcome is known; or a distribution of
        days, such as ``scipy.stats.gamma(2, scale=15)``, which requires `accrual`.
    accrual : float, optional
        In simulations: mean number of participants a day, who arrive as a Poisson process.
    dropout : float
        In simulations: share of participants without an outcome. They are replaced.
    clock : {"rounds", "date", "information"}
        The unit in which looks are counted and alpha is spent. A look by date uses the participants
        before the first one whose outcome is pending at that time. Information is the inverse of the squared
        standard error of the difference (the smallest of several): a look takes place once it reaches the
        look's level, and alpha is spent by the level's share of the last one. Once all participants of the
        horizon are known, a look is the last one.
    start : date, datetime or str, optional
        With ``clock="date"``, when the trial begins; by default with its first participant. Required if looks
        are dates, each of which stands for the end of its day. Times without a zone are in UTC.
    earlier : sequence of float
        If the plan was changed after some looks, the shares of its former length at which these were planned;
        see `amended`.
    strata : str, optional
        Column of the log, such as a context known before the choice. Scores then predict rewards within each
        value of the column, and are summed over the values.

    Raises
    ------
    ParameterError
        If arguments are invalid; the message lists every problem.

    Notes
    -----
    At a look, the score is the sum over rounds of h (D - margin), with D the difference of the two arms'
    augmented inverse-propensity scores and h = (1/e(treatment) + 1/e(control))^(-1/2) for the propensities e.
    The score is a martingale if the difference is `margin` in every round, for any design and any drift
    common to both arms; its clock is the sum of the squares of its steps. Alpha is spent by the number of
    rounds; critical values use the observed clock. Scores predict rewards by the arms' own means, or from a
    recent level common to both arms, whichever has had the smaller steps so far; as if each arm had had 10
    more rewards at the mean of both. Statistics are compared as Student's t, with one less than the smaller
    of the two arms' effective numbers of rewards as degrees of freedom.

    Examples
    --------
    >>> import adaptinf as ai
    >>> plan = ai.Plan(
    ...     ai.designs.Thompson(floor=0.2), arms=("usual", "new"), treatment="new", control="usual",
    ...     looks=[200, 400, 600],
    ... )
    >>> plan.bounds.round(3)
       rounds  fraction  spent  bound
    1     200     0.333  0.000  3.710
    2     400     0.667  0.012  2.511
    3     600     1.000  0.050  1.993
    >>> log = plan.design.run(ai.environments.BernoulliArms([0.3, 0.45]), horizon=600, rng=1)
    >>> result = plan.analyse(log)
    >>> result.decision, result.rounds
    ('reject', 600)
    """

    def __init__(
        self,
        design: Design,
        *,
        arms: Sequence[Any],
        treatment: Any,
        control: Any,
        looks: Sequence[Any],
        horizon: int | None = None,
        spending: str = "lan-demets-obrien-fleming",
        gamma: float = -4.0,
        rho: float = 2.0,
        futility: float | Sequence[float] | None = None,
        drop: float | Sequence[float] | None = None,
        sides: int = 2,
        alpha: float = 0.05,
        margin: float = 0.0,
        inflation: float = 1.0,
        law: str = "z",
        replays: int = 999,
        seed: int = 0,
        least: float = 20.0,
        delay: Any = 0,
        accrual: float | None = None,
        dropout: float = 0.0,
        clock: str = "rounds",
        start: Any = None,
        earlier: Sequence[float] = (),
        strata: str | None = None,
    ) -> None:
        self.given = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        labels = tuple(arms) if isinstance(arms, (list, tuple)) else ()
        treatments = treatments_of(treatment, labels)
        refuse("Plan", plan_problems(self.given, labels, treatments))
        by_date = clock == "date"
        when = look_days(looks, start) if by_date else number_array(looks)
        given_up, left_at = by_look(futility, looks), by_look(drop, looks)
        assert when is not None
        assert given_up is not None
        assert left_at is not None
        self.design, self.arms, self.treatments, self.control = design, labels, treatments, control
        self.treatment = treatments[0] if len(treatments) == 1 else treatments
        by_rounds = clock == "rounds"
        self.looks: NDArray[Any] = when.astype(np.int64) if by_rounds else when
        self.horizon = horizon_of(when, horizon, accrual, by_rounds)
        self.start = Start(moment_of(start)[0]) if by_date else None
        self.spending, self.gamma, self.rho = spending, float(gamma), float(rho)
        self.sides, self.alpha, self.margin = int(sides), float(alpha), float(margin)
        self.inflation, self.strata = float(inflation), strata
        self.timing = Timing(delay, None if accrual is None else float(accrual), float(dropout))
        self.law, self.replays, self.seed = law, int(replays), int(seed)
        self.rule = Rule(self.spent(self.alpha / self.sides), given_up, self.sides, float(least), left_at)

    def __repr__(self) -> str:
        return f"<Plan: {self.treatment} - {self.control}, looks {self.said_looks}, {self.spending} spending>"

    def look(self, log: AdaptiveLog, stage: int | None = None, as_of: Any = None) -> Look:
        """The state of a trial at the latest look that its log has reached.

        Parameters
        ----------
        log : AdaptiveLog
            The trial so far, with every arm's propensities. The log's arms are those of the plan, or numbers
            from 0 in the plan's order, as in simulations.
        stage : int, optional
            Number of the look, from 1, by default that of the latest; later rounds are then not used.
        as_of : number, date, datetime or str, optional
            With ``clock="date"``, the time until which the log is complete, as days since the start or a
            date; by default the end of its last day. The log needs `round`, the days or times of arrival;
            without an ``"outcome_round"``, outcomes were known at once.

        Returns
        -------
        Look
            If the trial should have stopped at an earlier look, that look.

        Raises
        ------
        ParameterError
            If the log has other arms, has not reached the look, or lacks times.
        InvalidForLog
            If propensities are missing, or rewards are missing other than at random.
        """
        course = self.course(log, stage, as_of)
        if course is None:
            return self.recorded({"stage": 0, "rounds": 0, "decision": "continue"})
        at = {"stage": course.look + 1, "rounds": course.rounds}
        if isinstance(course, SeveralCourse):
            return self.recorded({**at, **look_of(course, self.treatments)})
        tested = bool(course.tests) and course.tests[-1] == course.look
        statistic, bound = (float(course.z[-1]), float(course.bound[-1])) if tested else (np.nan, np.nan)
        numbers = {"statistic": statistic, "bound": bound, "decision": course.decision}
        return self.recorded({**at, **numbers, "leading": self._leading(log, course)})

    def analyse(self, log: AdaptiveLog, as_of: Any = None, overrun: bool = False) -> StoppedResults:
        """Estimate, interval and p-value of a trial that has stopped.

        Parameters
        ----------
        log : AdaptiveLog
            As in `look`. Rounds after the look at which the plan stopped are not used.
        as_of : number, date, datetime or str, optional
            As in `look`.
        overrun : bool
            Whether to use all rounds of the log: participants who had been assigned before the trial stopped
            have outcomes that arrive later. All data then take the place of the look at which the plan
            stopped. The decision remains that of this look.

        Returns
        -------
        StoppedResults
            One term for each treatment, its difference from the control; by rank, only that of the treatment
            with the largest score.

        Raises
        ------
        ParameterError
            If the log has other arms, or lacks times.
        InvalidForLog
            If propensities are missing; if rewards are missing, other than at random; if the plan has not
            stopped, or no look had enough data; with `overrun`, if there are several treatments or
            comparisons are not by normal scores.
        """
        check("Plan.analyse", overrun=(overrun, BOOLEAN))
        course = self._ended(log, as_of)
        if overrun and (self.law != "z" or self.joint):
            raise InvalidForLog("Plan.analyse", claims.OVERRUN_ONE(law=self.law), ["Plan.analyse(log)"])
        if isinstance(course, SeveralCourse):
            return self._repeated(log, course)
        if overrun and log.n_rounds > course.ends[course.tests[-1]]:
            return self._overrun(log, course)
        kinds = {"z": self._results, "rerandomization": self._ranked, "exact": self._counted}
        return kinds[self.law](log, course)

    def committee(self, log: AdaptiveLog, closed: bool = False) -> CommitteeReport:
        """The report for the data monitoring committee: open, or closed with results by arm.

        Parameters
        ----------
        log : AdaptiveLog
            The trial so far, as in `look`.
        closed : bool
            Whether to show participants and outcomes by arm, the statistics of looks, and the conditional
            power or the result. By default all arms are pooled.

        Returns
        -------
        CommitteeReport
            Use `to_markdown()`, or ``ai.report(plan.committee(log, closed=True), "closed.html")``. The file
            of a closed report is readable only by its owner.

        Raises
        ------
        ParameterError
            If `closed` is not a boolean, or the log has other arms.

        Examples
        --------
        >>> import adaptinf as ai
        >>> coin = ai.designs.Uniform()
        >>> plan = ai.Plan(coin, arms=["A", "B"], treatment="B", control="A", looks=[100, 200])
        >>> log = coin.run(ai.environments.NormalArms([0.0, 0.1]), horizon=120, rng=0)
        >>> plan.committee(log).facts["Participants"]
        '120'
        """
        check("Plan.committee", closed=(closed, BOOLEAN))
        self.codes(log)
        return CommitteeReport(self, log, closed)

    def _overrun(self, log: AdaptiveLog, course: Course) -> StoppedResults:
        """Results by stage-wise ordering, with all data in place of the last look that tested something."""
        process = self.process(log, np.array([log.n_rounds]))
        assert process is not None
        more = log.n_rounds - int(course.ends[course.tests[-1]])
        found = self._results(log, with_all(course, process, log.n_rounds))
        return replace(found, notes=(claims.OVERRUN_USED(more=more), *found.notes))

    def _results(self, log: AdaptiveLog, course: Course) -> StoppedResults:
        """By stage-wise ordering."""
        stopped = course.stopped()
        reference = StagewiseReference(stopped, self.margin)
        notes = [claims.STAGEWISE(**self._used(course))]
        numbers = np.array([stopped.estimate + self.margin]), np.array([course.std_error])
        return self._told(log, course, self.treatments, numbers, reference, notes)

    def _repeated(self, log: AdaptiveLog, course: SeveralCourse) -> StoppedResults:
        """By simultaneous repeated intervals."""
        processes = self.processes(log, course.ends)
        assert processes is not None
        reference = RepeatedReference(processes, course, self.spent_by(course.ends), self.margin)
        rejected = tuple(compress(self.treatments, course.rejected))
        named = ", ".join(map(str, rejected)) if rejected else "none"
        notes = [claims.REPEATED(**self._used(course)), claims.CLOSED(rejected=named)]
        numbers = reference.estimate, reference.std_error
        found = self._told(log, course, self.treatments, numbers, reference, notes)
        return replace(found, rejected=rejected)

    def _ranked(self, log: AdaptiveLog, course: Course) -> StoppedResults:
        """By rank among replays."""
        estimate = self.margin + float(course.z[-1]) * course.std_error
        reference = RankReference(course.pvalue, self.margin)
        notes = [claims.BY_RANK(replays=self.replays, **self._used(course)), claims.NO_LIMITS()]
        if len(self.treatments) > 1:
            notes.append(claims.ANY_TREATMENT())
        numbers = np.array([estimate]), np.array([course.std_error])
        return self._told(log, course, [self._leading(log, course)], numbers, reference, notes)

    def _counted(self, log: AdaptiveLog, course: Course) -> StoppedResults:
        """Results by the exact distribution of the counts."""
        z = float(course.z[-1])
        total = int(log.arrays.reward[: course.rounds].sum())
        value = abs(z) if self.sides == 2 else z
        pvalue = self.count_looks.pvalue(self.count_bounds, course.look, total, value)
        notes = [claims.BY_COUNTS(**self._used(course)), claims.NO_COUNT_LIMITS()]
        numbers = np.array([z * course.std_error]), np.array([course.std_error])
        reference = RankReference(pvalue, 0.0, COUNTS)
        return self._told(log, course, self.treatments, numbers, reference, notes)

    def _used(self, course: Course | SeveralCourse) -> dict[str, Any]:
        return {"looks": len(course.tests), "planned": len(self.looks), "spending": self.spending}

    def _told(
        self,
        log: AdaptiveLog,
        course: Course | SeveralCourse,
        treatments: Sequence[Any],
        numbers: tuple[FloatArray, FloatArray],
        reference: StagewiseReference | RankReference | RepeatedReference,
        notes: Sequence[str],
    ) -> StoppedResults:
        """The result with the assumptions of every method; `numbers` are estimates and standard errors."""
        rounds, found = int(course.ends[course.tests[-1]]), profile_of(log).propensities_found
        if rounds < log.n_rounds:
            notes = [*notes, claims.OVERRUN(more=log.n_rounds - rounds)]
        warned = [told] if (told := differs(log, course.look + 1, course.decision)) else []
        return StoppedResults(
            model="Plan",
            estimands=tuple(Estimand("contrast", treatment=one, control=self.control) for one in treatments),
            terms=tuple(f"{one} - {self.control}" for one in treatments),
            estimate=numbers[0],
            std_error=numbers[1],
            reference=reference,
            estimator="sample-mean" if self.law == "exact" else "aipw",
            facts=LogFacts.of(log),
            null=self.margin,
            notes=(*notes, *assumptions(self.assumes(log))),
            cautions=(*warned, *(() if found is None else found.cautions)),
            validity="exact" if reference.exact else "asymptotic",
            decision=course.decision,
            rounds=rounds,
        )

    def assumes(self, log: AdaptiveLog) -> tuple[str, ...]:
        """The assumptions of the results for a log.

        Parameters
        ----------
        log : AdaptiveLog
            As in `look`.
        """
        if self.law == "exact":
            return claims.CONSTANT_RATES(), claims.LOOKS_KEPT()
        under = claims.NO_EFFECT_ON_ANYONE if self.law == "rerandomization" else claims.CONSTANT_EFFECT
        right = RIGHT.filled({}, profile_of(log).propensities_found)
        return right, under(), claims.LOOKS_KEPT(), *missing_assumed(log)
