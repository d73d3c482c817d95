"""The methods of a plan for use before a trial begins, and before it ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

from adaptinf.audit.simulation.sample_sizes import SampleSize
from adaptinf.inference.inputs.arguments import require_log
from adaptinf.parameters import Count, refuse
from adaptinf.plans.plan_characteristics import PlanCharacteristics, characteristics
from adaptinf.plans.planned_trial import PlannedTrial
from adaptinf.plans.planning.conditional import conditional_power, predictive_power
from adaptinf.plans.planning.protocol import Protocol
from adaptinf.plans.planning.sizes import PowerCurve, power_curve, required_information, sample_size

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog
    from adaptinf.simulation.environments import Environment
    from adaptinf.typing import RandomSource

_CHANGEABLE = ("horizon", "futility", "drop", "delay", "accrual", "dropout")
"""Arguments, besides looks, that affect neither the level nor the comparison."""


class Planning(PlannedTrial):
    """Sizes and power of a plan."""

    def amended(self, taken: int, looks: Sequence[Any], **changes: Any) -> Self:
        """The plan with different looks in place of those that have not been taken.

        Parameters
        ----------
        taken : int
            Number of looks so far.
        looks : sequence
            All looks, of which those already taken are unchanged; the last may be before or after the former
            horizon.
        **changes
            `horizon` of looks by date or information, `futility` or `drop` by look, and the `delay`,
            `accrual` and `dropout` of simulations; other arguments cannot be changed in a trial that has
            begun.

        Returns
        -------
        Plan
            The alpha of the looks so far remains as planned. Later looks spend the alpha in excess of this,
            according to their share of the new length; a look at which no more may be spent cannot reject.

        Raises
        ------
        ParameterError
            If looks that have been taken are changed, or other arguments, or the arguments are invalid
            together.

        Notes
        -----
        The level holds if the change does not depend on results by arm: it may be based on the rate of
        enrolment, the pooled variance, or information from outside the trial.

        Examples
        --------
        >>> import adaptinf as ai
        >>> coin = ai.designs.Uniform()
        >>> plan = ai.Plan(coin, arms=["A", "B"], treatment="B", control="A", looks=[100, 200])
        >>> plan.amended(1, [100, 200, 300]).bounds.round(3)
           rounds  fraction  spent  bound
        1     100     0.500  0.003  2.963
        2     200     0.667  0.012  2.572
        3     300     1.000  0.050  1.999
        """
        listed, before = list(looks), list(self.given["looks"])
        problems = Count(0)("taken", taken)
        problems += [f"{name} cannot be changed" for name in changes if name not in _CHANGEABLE]
        if not problems and taken and (taken >= len(before) or listed[:taken] != before[:taken]):
            problems.append(
                f"looks must begin with the {taken} that have been taken, {before[:taken]!r:.60}, of "
                f"{len(before)}, got {listed!r:.60}"
            )
        refuse("Plan.amended", problems)
        spent: dict[str, Any] = {"earlier": self.fractions[:taken].tolist()}
        if self.clock == "rounds":
            spent["horizon"] = None
        return self.changed(looks=listed, **{**spent, **changes})

    def operating_characteristics(
        self,
        environment: Environment | Mapping[str, Environment],
        replications: int = 10_000,
        rng: RandomSource | None = None,
        *,
        n_jobs: int = 1,
        on_error: str = "raise",
    ) -> PlanCharacteristics:
        """Simulate the trial: error rates, sample size, and estimates after the stop.

        Parameters
        ----------
        environment : Environment, or dict of environments by name
            Environments of the simulation; their arms are the plan's, in order.
        replications : int
            Number of trials per environment.
        rng : int, SeedSequence, Generator or None
            Source of randomness; results do not depend on the number of workers.
        n_jobs : int
            Worker processes.
        on_error : {"raise", "count"}
            Whether an error in a trial ends the simulation, or such trials are counted and omitted; the
            first error is then quoted below the table.

        Returns
        -------
        PlanCharacteristics

        Raises
        ------
        ParameterError
            If arguments are invalid; the message lists every problem.
        InvalidForLog
            If the design does not record every arm's propensities.

        Examples
        --------
        >>> import adaptinf as ai
        >>> coin = ai.designs.Uniform()
        >>> plan = ai.Plan(coin, arms=["A", "B"], treatment="B", control="A", looks=[100, 200])
        >>> equal = ai.environments.BernoulliArms([0.5, 0.5])
        >>> found = plan.operating_characteristics(equal, replications=640, rng=1)
        >>> bool(found.frame.loc[0, "rejected"] < 0.09)
        True
        """
        return characteristics(self, environment, replications, rng, n_jobs, on_error)

    def sample_size(
        self,
        environment: Environment,
        power: float = 0.9,
        *,
        longest: int = 100_000,
        replications: int = 2_000,
        rng: RandomSource | None = None,
        n_jobs: int = 1,
    ) -> SampleSize:
        """Number of rounds at which the plan has a given power, with looks at the same fractions.

        Parameters
        ----------
        environment : Environment
            The alternative: for instance the smallest difference that matters.
        power : float
            Required probability of rejection, in (0, 1).
        longest : int
            Longest horizon examined.
        replications : int
            Number of simulated trials per horizon.
        rng : int, SeedSequence, Generator or None
            Source of randomness; every horizon uses the same streams.
        n_jobs : int
            Number of worker processes; it does not affect the results.

        Returns
        -------
        SampleSize
            The horizon, its Monte Carlo error, and the horizons examined. `horizon` is None if the power is
            not reached.

        Raises
        ------
        ParameterError
            If arguments are invalid; the message lists every problem.

        Notes
        -----
        If propensities are constant, nothing adapts, and rewards are 0/1, normal or uniform with constant
        means, the horizon follows from the normal law of the looks, without simulation. Otherwise trials are
        simulated, and each further horizon is read off a power curve that is normal in the square root of the
        horizon, until the simulated power is within half a standard error of the required one.

        Examples
        --------
        >>> import adaptinf as ai
        >>> plan = ai.Plan(
        ...     ai.designs.Uniform(), arms=["A", "B"], treatment="B", control="A", looks=[100, 200]
        ... )
        >>> plan.sample_size(ai.environments.NormalArms([0.0, 0.5])).horizon
        169
        """
        return sample_size(self, environment, power, longest, replications, rng, n_jobs)

    def power_curve(
        self,
        environments: Environment | Mapping[str, Environment],
        replications: int = 2_000,
        rng: RandomSource | None = None,
        *,
        n_jobs: int = 1,
    ) -> PowerCurve:
        """Power of the plan over environments, by their difference.

        Parameters
        ----------
        environments : dict of Environment by name, or Environment
            For instance, several differences.
        replications : int
            Number of trials per environment.
        rng : int, SeedSequence, Generator or None
            Source of randomness.
        n_jobs : int
            Number of worker processes; it does not affect the results.

        Returns
        -------
        PowerCurve

        Raises
        ------
        ParameterError
            If arguments are invalid; the message lists every problem.

        Examples
        --------
        >>> import adaptinf as ai
        >>> plan = ai.Plan(
        ...     ai.designs.Uniform(), arms=["A", "B"], treatment="B", control="A", looks=[100, 200]
        ... )
        >>> worlds = {f"{d}": ai.environments.NormalArms([0.0, d]) for d in (0.5, 0.25)}
        >>> plan.power_curve(worlds, 128, rng=0).frame[["difference", "law"]].round(3).to_dict("list")
        {'difference': [0.25, 0.5], 'law': [0.422, 0.942]}
        """
        return power_curve(self, environments, replications, rng, n_jobs)

    def protocol(
        self,
        environment: Environment | Mapping[str, Environment],
        replications: int = 10_000,
        rng: RandomSource | None = None,
        *,
        n_jobs: int = 1,
    ) -> Protocol:
        """The appendix of the protocol: the plan, its operating characteristics, and the topics of ICH E20.

        Parameters
        ----------
        environment, replications, n_jobs
            As in `operating_characteristics`. Include scenarios without a difference.
        rng : int, SeedSequence, Generator or None
            Source of randomness; an int is stated in the appendix, so that its numbers can be reproduced.

        Returns
        -------
        Protocol
            Use `to_markdown()`, or ``ai.report(appendix, "appendix.html")``.

        Raises
        ------
        ParameterError
            If arguments are invalid; the message lists every problem.

        Examples
        --------
        >>> import adaptinf as ai
        >>> plan = ai.Plan(
        ...     ai.designs.Uniform(), arms=["A", "B"], treatment="B", control="A", looks=[100, 200]
        ... )
        >>> plan.protocol(ai.environments.BernoulliArms([0.5, 0.5]), 64, rng=7).seed
        7
        """
        found = self.operating_characteristics(environment, replications, rng, n_jobs=n_jobs)
        seed: Any = rng
        return Protocol(self, found, int(seed) if isinstance(seed, Integral) else None)

    def information(self, log: AdaptiveLog) -> float:
        """Information of a log about the difference: the inverse of its squared standard error.

        Parameters
        ----------
        log : AdaptiveLog
            The trial so far, as in `look`.

        Returns
        -------
        float
            The smallest over several treatments; 0 before both arms have the plan's `least` number of
            effective rewards and outcomes. Looks with ``clock="information"`` wait until this information
            reaches their level.

        Raises
        ------
        InvalidForLog
            If propensities are missing, or rewards are missing other than at random.

        Examples
        --------
        >>> import adaptinf as ai
        >>> coin = ai.designs.Uniform()
        >>> plan = ai.Plan(coin, arms=["A", "B"], treatment="B", control="A", looks=[100, 200])
        >>> log = coin.run(ai.environments.NormalArms([0.0, 0.3]), horizon=100, rng=0)
        >>> round(plan.information(log), 1)
        20.9
        """
        require_log("Plan.information", log, incomplete=True)
        return self.information_now(log)

    def required_information(self, difference: float, power: float = 0.9) -> float:
        """Information that the last look needs for a given power, whatever the variance and the allocation.

        Parameters
        ----------
        difference : float
            The true difference.
        power : float
            Required probability of rejection, in (0, 1).

        Returns
        -------
        float
            The information, from the joint normal distribution of the scores at looks at the plan's shares.

        Raises
        ------
        ParameterError
            If arguments are invalid, or the plan has several treatments or another law.

        Examples
        --------
        >>> import adaptinf as ai
        >>> coin = ai.designs.Uniform()
        >>> plan = ai.Plan(coin, arms=["A", "B"], treatment="B", control="A", looks=[100, 200])
        >>> round(plan.required_information(0.5), 1)
        42.2
        """
        return required_information(self, difference, power)

    def conditional_power(self, log: AdaptiveLog, difference: float | None = None) -> float:
        """Probability that a trial under way will reject, if the true difference has a given value.

        Parameters
        ----------
        log : AdaptiveLog
            The trial so far, as in `look`.
        difference : float, optional
            The true difference, by default the current estimate.

        Returns
        -------
        float
            The probability, given the score at the latest look. Later information is projected in proportion
            to the rounds or days, and futility is ignored.

        Raises
        ------
        InvalidForLog
            If the plan does not have ``law="z"``, has stopped, or has not tested anything yet.

        Examples
        --------
        >>> import adaptinf as ai
        >>> coin = ai.designs.Uniform()
        >>> plan = ai.Plan(coin, arms=["A", "B"], treatment="B", control="A", looks=[100, 200])
        >>> log = coin.run(ai.environments.NormalArms([0.0, 0.3]), horizon=100, rng=0)
        >>> plan.conditional_power(log, 0.0) < plan.conditional_power(log, 0.5)
        True
        """
        return conditional_power(self, log, difference)

    def predictive_power(self, log: AdaptiveLog) -> float:
        """Conditional power averaged over the true differences that are plausible given the trial so far.

        Parameters
        ----------
        log : AdaptiveLog
            The trial so far, as in `look`.

        Returns
        -------
        float
            The average over a normal distribution about the current estimate, with its standard error: the
            posterior distribution under a flat prior.

        Raises
        ------
        InvalidForLog
            As for `conditional_power`.

        Examples
        --------
        >>> import adaptinf as ai
        >>> coin = ai.designs.Uniform()
        >>> plan = ai.Plan(coin, arms=["A", "B"], treatment="B", control="A", looks=[100, 200])
        >>> log = coin.run(ai.environments.NormalArms([0.0, 0.3]), horizon=100, rng=0)
        >>> 0.0 < plan.predictive_power(log) < 1.0
        True
        """
        return predictive_power(self, log)
