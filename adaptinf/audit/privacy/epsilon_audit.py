"""Lower bounds on the actual epsilon of the outputs of a design or mechanism, by simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.audit.privacy.audited_mechanisms import (
    CounterSource,
    MechanismSource,
    pair_problems,
    stream_problems,
    worst_inputs,
    worst_streams,
)
from adaptinf.audit.privacy.designs import Neighbours, neighbouring_trials
from adaptinf.audit.privacy.designs.stopping_audits import stopping_outputs
from adaptinf.audit.privacy.lower_bound import EpsilonLowerBound, LearnedScore, bound_from_scores, learn
from adaptinf.audit.privacy.output_sources import (
    CHUNK,
    DEFAULT_RUNS,
    LIVE_RUNS,
    CalledSource,
    OutputSampler,
    Source,
    actions_problem,
    design_source,
)
from adaptinf.audit.privacy.trial_checks import (
    Checked,
    counter_checks,
    design_checks,
    live_problems,
    live_trial,
    stopping_checks,
)
from adaptinf.designs.base import Design
from adaptinf.designs.stopping.stopping_rules import DPNAS
from adaptinf.errors import ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.parameters import (
    COUNT,
    JOBS,
    SEED,
    UNIT,
    Count,
    Is,
    Number,
    OneOf,
    OrNone,
    number_array,
    problems_of,
    refuse,
)
from adaptinf.privacy.counter import Counter
from adaptinf.privacy.mechanism import BACKENDS, Mechanism
from adaptinf.simulation.replicate import seed_sequence
from adaptinf.typing import FloatArray, RandomSource
from adaptinf.workers import spread

CONFIDENCE = Number(0.5, 1.0 - 1e-9)
_VIEWS = ("all", "releases", "actions", "digits")
_FEWEST_RUNS, _FEWEST_LIVE = 1_000, 100


@dataclass(frozen=True)
class Settings:
    """How runs are made."""

    view: Any
    backend: Any
    runs: Any
    decimals: Any
    rng: Any
    n_jobs: Any

    def problems(self, target: Any, neighbours: Any) -> list[str]:
        """All problems with the target and its neighbours."""
        fewest = _FEWEST_LIVE if self.live(target) else _FEWEST_RUNS
        problems = OrNone(Count(fewest))("runs", self.runs) + OneOf(*_VIEWS)("view", self.view)
        problems += OrNone(Count(0))("decimals, if not None,", self.decimals)
        problems += JOBS("n_jobs", self.n_jobs)
        return problems + self._backend_problems(target) + _target_problems(target, neighbours, self.view)

    def _backend_problems(self, target: Any) -> list[str]:
        if self.backend is not None:
            problems = OneOf(*BACKENDS)("backend", self.backend)
            if not problems and isinstance(target, Counter) and target.backend != self.backend:
                return [
                    f"the counter's noise uses the {target.backend} backend: construct the counter with "
                    "backend= instead"
                ]
            known = (Design, DPNAS, Mechanism, Counter)
            if not problems and self.backend == "release" and not isinstance(target, known):
                return ["backend must be simulation if target is a callable"]
            if problems:
                return problems
        if self.drawn_by(target) == "release" and not self.live(target) and self.rng is not None:
            return ["rng must be omitted: noise from the release backend is never seeded"]
        return SEED("rng", self.rng)

    def live(self, target: Any) -> bool:
        """Whether all runs use the live path: sessions, trials in files, or a rule applied to data."""
        return self.backend == "release" and isinstance(target, (Design, DPNAS))

    def live_share(self, target: Any) -> float:
        """Fraction of the live path that is checked; smaller if there are fewer simulated runs."""
        if self.backend == "simulation":
            return 0.0
        return 1.0 if self.live(target) or self.runs is None else min(1.0, int(self.runs) / DEFAULT_RUNS)

    def drawn_by(self, target: Any) -> str:
        """The source of the noise."""
        if isinstance(target, Counter):
            return target.backend
        return "simulation" if self.backend is None else str(self.backend)


def inputs_problems(target: Any, rounds: Any) -> list[str]:
    """List problems with a target for which inputs are requested, or with their length."""
    problems = []
    if not isinstance(target, Counter) and not (isinstance(target, Mechanism) and _audited(target)):
        problems.append(f"target must be a mechanism or a counter of adaptinf.privacy, got {target!r:.60}")
    if rounds is not None:
        problems += COUNT("rounds, if not None,", rounds)
        if not isinstance(target, Counter):
            problems.append("rounds must be omitted if target is not a counter")
    return problems


def level_problems(confidence: Any, delta: Any, promised: Any) -> list[str]:
    """List problems with the confidence level, delta or the claimed guarantee."""
    return problems_of(
        confidence=(confidence, CONFIDENCE),
        delta=(delta, OrNone(UNIT)),
        promised=(promised, OrNone(Is(PrivacyGuarantee, "a PrivacyGuarantee"))),
    )


def claim_problems(own: PrivacyGuarantee | None, claim: PrivacyGuarantee | None) -> list[str]:
    """Refuse a claimed guarantee for neighbours other than the audited ones."""
    if own is None or claim is None or claim.unit == own.unit:
        return []
    if claim.unit == "record" and claim.notion == "standard":
        return []
    return [
        f"promised must be a guarantee per {own.unit}, because the neighbours differ in one {own.unit}; "
        f"it is per {claim.unit}"
    ]


def _target_problems(target: Any, neighbours: Any, view: Any) -> list[str]:
    if isinstance(target, (Design, DPNAS)):
        problems = OrNone(Is(Neighbours, "Neighbours"))("neighbours", neighbours)
        if view == "digits" and isinstance(target, DPNAS):
            problems.append("view must be all, releases or actions if target is a stopping rule")
        return problems
    problems = ["view='actions' applies only to designs"] if view == "actions" else []
    if isinstance(target, (Mechanism, Counter)):
        if isinstance(target, Mechanism) and not _audited(target):
            problems.append(f"no score is known for {type(target).__name__}: pass a callable that samples it")
        elif neighbours is not None:
            problems += _input_problems(target, neighbours)
    elif not callable(target):
        problems.append(
            f"target must be a design, a mechanism, a counter or sample(side, runs, rng), got {target!r:.60}"
        )
    elif neighbours is not None:
        problems.append("neighbours must be omitted if target is a callable: it samples both sides")
    return problems


def _audited(mechanism: Mechanism) -> bool:
    return worst_inputs.dispatch(type(mechanism)) is not worst_inputs.dispatch(object)


def _input_problems(target: Any, neighbours: Any) -> list[str]:
    sides = None
    if isinstance(neighbours, Sequence) and len(neighbours) == 2:
        sides = [number_array(side) for side in neighbours]
    if sides is None or sides[0] is None or sides[1] is None:
        return [f"neighbours must be a pair of arrays of numbers, got {neighbours!r:.60}"]
    if isinstance(target, Counter):
        return stream_problems(target, stream_array(sides[0]), stream_array(sides[1]))
    return pair_problems(target, sides[0], sides[1])


def stream_array(items: Any) -> FloatArray:
    """A stream as an array of shape (items, dimension)."""
    array = np.asarray(items, dtype=np.float64)
    return array[:, None] if array.ndim == 1 else array


Target: TypeAlias = Design | DPNAS | Mechanism | Counter | OutputSampler
Inputs: TypeAlias = Neighbours | Sequence[ArrayLike]


def epsilon_lower_bound(
    target: Target,
    neighbours: Inputs | None = None,
    *,
    view: str = "all",
    backend: str | None = None,
    runs: int | None = None,
    confidence: float = 0.999,
    delta: float | None = None,
    promised: PrivacyGuarantee | None = None,
    decimals: int | None = 9,
    rng: RandomSource | None = None,
    n_jobs: int = 1,
) -> EpsilonLowerBound:
    """Lower confidence bound on the actual epsilon of the outputs of a design or mechanism.

    Parameters
    ----------
    target : Design, DPNAS, Mechanism, Counter or callable
        The target of the audit. A callable ``sample(side, runs, rng)`` returns outputs for data set 0 or 1,
        of shape (runs,) or (runs, numbers). A counter is audited from its initial state.
    neighbours : Neighbours, or pair of array_like, optional
        For a design or a stopping rule, two trials that differ in one unit, by default the first pair of
        `neighbouring_trials`, or the pair marked for actions. For a mechanism, two arrays of statistics; for
        a counter, two streams; by default those of `neighbouring_inputs`. Must be None for a callable.
    view : {"all", "releases", "actions", "digits"}
        The information available to the adversary: all releases as numbers, with the actions of a design
        (white box); only the actions of a design or the stopping time of a rule (black box), which reveal
        less; or the sign, the largest power of two below, and the lowest set bit of every released float,
        which reveal information that floating-point noise masks poorly. ``"all"``: releases and actions, if
        there are any, each with half of the error probability; for designs, stopping rules and counters also
        findings of other kinds (see Notes).
    backend : {"simulation", "release"}, optional
        Source of the noise, by default a simulation. A counter uses its own source, and callables always
        simulate. With ``"release"``, a design is run as users run it, in sessions and in trials in files,
        with exact OpenDP noise, and a stopping rule is run on data. By default, the bound for a design comes
        from simulation, and the live path is checked as well; ``"simulation"`` omits this check. Exact noise
        is slow: in ten seconds, it allows about 100,000 runs of `Laplace`, or 3,000 of a counter or a short
        session, compared with millions in simulation.
    runs : int, optional
        Runs on each of the two data sets, in each view: by default a million, or as many as amount to 2^28
        rounds, but at least 100,000; for the live path, as many as amount to 80,000 rounds, but between 100
        and 1,000. If fewer than a million are requested, the number of live runs is reduced in proportion.
    confidence : float
        Confidence level of the bound: the bound exceeds the true epsilon in at most a share 1 - `confidence`
        of audits.
    delta : float, optional
        The delta of the bound, at least that of the guarantee, which is the default; without a guarantee, the
        default is 0.
    promised : PrivacyGuarantee, optional
        The guarantee with which the bound is compared; by default the target's own, for the unit of
        `neighbours`. Replays and noise tests check the target against its own guarantee: their findings do
        not refute any other.
    decimals : int or None
        Number of decimals to which scores are rounded; None keeps every digit, so rounding errors distinguish
        the data sets, as they would for an adversary who sees them.
    rng : int, SeedSequence, Generator or None
        Source of randomness; must be omitted for mechanisms and counters with the release backend. The r-th
        piece of the runs depends only on (rng, r). Exact noise is never seeded.
    n_jobs : int
        Number of worker processes; the bound does not depend on it.

    Returns
    -------
    EpsilonLowerBound
        The bound, its confidence level, the number of runs, a description of the event, the guarantee, and
        the findings.

    Raises
    ------
    ParameterError
        If an argument is invalid; the message lists every problem, and nothing has been drawn.
    MissingDependencyError
        If release noise is requested and OpenDP is missing.

    Notes
    -----
    The bound is one-sided: a bound above the guarantee refutes it, whereas a bound below it proves nothing.
    The tightness of the bound is limited by the choice of event. The score of a white-box audit is the exact
    log-likelihood ratio of the releases; if this is unavailable, a ratio is learned from a quarter of the
    runs. An event is chosen on one half of the runs and bounded on the other by Clopper-Pearson limits, in
    both directions.

    The bound covers only one pair of short trials. With ``view="all"``, a design is also run 512 times on
    each of its `audit_trials`: longer trials, with rewards beyond [0, 1], unequal contexts, epochs that end,
    or rewards drawn by coins. On these trials, the design's decisions are recomputed, bit for bit, from the
    releases and the earlier actions (except for `DPNAS`, which does not release the noise of its looks), and
    the noise of every release must have the distribution that the guarantee requires and be independent of
    all other noise and of the rewards. Sessions and trials in files with exact noise are checked in the same
    way, including some that are reopened, restored from a backup, or have outcomes that never arrive; their
    noise is also compared with its exact distribution as drawn, and tested for truncated tails, for numbers
    that are 0 or repeat too often, and for lattices. All noise tests together raise a false alarm with
    probability at most 1e-6. A finding refutes the guarantee, as does a bound above it, because the proof
    does not apply to such a program. The files are temporary.

    References
    ----------
    Ding, Z., Wang, Y., Wang, G., Zhang, D. and Kifer, D. (2018). Detecting violations of differential
    privacy. CCS.

    Jagielski, M., Ullman, J. and Oprea, A. (2020). Auditing differentially private machine learning: how
    private is private SGD? NeurIPS.

    Mironov, I. (2012). On significance of the least significant bits for differential privacy. CCS.

    Examples
    --------
    >>> import adaptinf as ai
    >>> result = ai.audit.epsilon_lower_bound(ai.privacy.Laplace(epsilon=1.0), runs=50_000, rng=0)
    >>> bool(0.9 < result.epsilon <= 1.0), result.refuted
    (True, False)
    >>> counter = ai.privacy.Counter(epsilon=1.0, mechanism="binary", horizon=31)
    >>> print(ai.audit.epsilon_lower_bound(counter, runs=20_000, rng=0).event)  # doctest: +ELLIPSIS
    the log-likelihood ratio of the noisy sums at 1, 2, 4, 8, 16 is at ...
    >>> noise = ai.privacy.Laplace(epsilon=1.0)
    >>> digits = ai.audit.epsilon_lower_bound(noise, view="digits", runs=20_000, rng=0)
    >>> digits.refuted, digits.event  # doctest: +ELLIPSIS
    (True, 'the release is ..., with lowest set bit 2^..., or one of ... other such kinds')
    """
    settings = Settings(view, backend, runs, decimals, rng, n_jobs)
    refuse(
        "epsilon_lower_bound",
        settings.problems(target, neighbours) + level_problems(confidence, delta, promised),
    )
    needed = settings.live(target)
    if needed and isinstance(target, Design):
        refuse("epsilon_lower_bound", live_problems(target, live_trial(target)))
    sources, own_promise = _sources(target, neighbours, settings)
    share = settings.live_share(target)
    runs = min(source.default_runs for source in sources) if runs is None else runs
    problems = claim_problems(own_promise, promised)
    promised = own_promise if promised is None else promised
    if promised is not None and delta is not None and delta < promised.delta:
        problems.append(
            f"delta must be at least that of the guarantee, {promised.delta:g}: nothing is guaranteed below "
            "it"
        )
    refuse("epsilon_lower_bound", problems)
    given_away = (0.0 if promised is None else promised.delta) if delta is None else float(delta)
    # The largest of the views' bounds is reported, so all of them must hold together (Bonferroni).
    level = 1.0 - (1.0 - confidence) / len(sources)
    bounds = []
    for source in sources:
        scored = _scored(source, runs, n_jobs)
        found = bound_from_scores(
            *scored.sides, delta=given_away, confidence=level, decimals=decimals, n_chosen=scored.n_chosen
        )
        bounds.append((found, source.event(found, scored.learned), source.name))
    found, event, name = max(bounds, key=lambda one: one[0].epsilon)
    checked = _checks(target, neighbours, settings, share) if view == "all" else Checked((), ())
    return EpsilonLowerBound(
        epsilon=found.epsilon,
        confidence=float(confidence),
        delta=given_away,
        runs=int(runs),
        tested=found.tested,
        hits=found.hits,
        event=event,
        target=name,
        promised=promised,
        findings=checked.findings,
        looked=checked.looked,
        own_promise=promised == own_promise,
    )


def privacy_scores(
    target: Target,
    neighbours: Inputs | None = None,
    *,
    view: str = "releases",
    backend: str | None = None,
    runs: int | None = None,
    decimals: int | None = 9,
    rng: RandomSource | None = None,
    n_jobs: int = 1,
) -> tuple[FloatArray, FloatArray]:
    """Scores from which `epsilon_lower_bound` computes its bound, for other analyses or for plots.

    Parameters
    ----------
    target, neighbours, view, backend, runs, decimals, rng, n_jobs
        As in `epsilon_lower_bound`.

    Returns
    -------
    first, second : ndarray of shape (runs,)
        One score per run, large if the second data set is more likely; for three quarters of the runs if the
        score was learned from the others.

    Raises
    ------
    ParameterError
        If an argument is invalid; the message lists every problem.

    Examples
    --------
    >>> import adaptinf as ai
    >>> first, second = ai.audit.privacy_scores(ai.privacy.Laplace(epsilon=1.0), runs=1_000, rng=0)
    >>> float(first.min()), float(second.max())
    (-1.0, 1.0)
    """
    settings = Settings(view, backend, runs, decimals, rng, n_jobs)
    refuse("privacy_scores", settings.problems(target, neighbours))
    (source, *_), _ = _sources(target, neighbours, settings)
    runs = source.default_runs if runs is None else runs
    first, second = _scored(source, runs, n_jobs).sides
    return (first, second) if decimals is None else (np.round(first, decimals), np.round(second, decimals))


def neighbouring_inputs(
    target: Mechanism | Counter, *, rounds: int | None = None
) -> tuple[FloatArray, FloatArray]:
    """The two inputs, as far apart as a guarantee allows, on which a mechanism or counter is audited.

    Parameters
    ----------
    target : Mechanism or Counter
        A mechanism or counter of `adaptinf.privacy`.
    rounds : int, optional
        For a counter, the largest number of items: by default the horizon for the binary mechanism (at most
        about a million numbers), and 32 otherwise.

    Returns
    -------
    first, second : ndarray
        Statistics of shape (d,), or streams of shape (items, dimension), that differ in the most revealing
        item.

    Raises
    ------
    ParameterError
        If the target is neither a mechanism nor a counter, or `rounds` is unsuitable for it.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> ai.audit.neighbouring_inputs(ai.privacy.DiscreteLaplace(epsilon=1.0, sensitivity=3))
    (array([0.]), array([3.]))
    >>> first, second = ai.audit.neighbouring_inputs(ai.privacy.Counter(epsilon=1.0), rounds=16)
    >>> len(first), np.flatnonzero(first != second)
    (16, array([8]))
    """
    refuse("neighbouring_inputs", inputs_problems(target, rounds))
    return worst_streams(target, rounds) if isinstance(target, Counter) else worst_inputs(target)


def _sources(
    target: Any, neighbours: Any, settings: Settings
) -> tuple[list[Source], PrivacyGuarantee | None]:
    """Sources of outputs, one per view, and the target's guarantee for them."""
    root = seed_sequence(settings.rng)
    view = "releases" if settings.view == "all" else settings.view
    if isinstance(target, Counter):
        streams = (
            worst_streams(target) if neighbours is None else tuple(stream_array(side) for side in neighbours)
        )
        return [CounterSource(target, (streams[0], streams[1]), view, root)], target.guarantee()
    if isinstance(target, Mechanism):
        pair = worst_inputs(target)
        if neighbours is not None:
            pair = np.asarray(neighbours[0], dtype=np.float64), np.asarray(neighbours[1], dtype=np.float64)
        drawn_by = settings.drawn_by(target)
        return [MechanismSource(target, pair, view, drawn_by, root)], target.guarantee()
    if isinstance(target, Design):
        return _design_sources(target, neighbours, settings.view, root, settings.live(target))
    if isinstance(target, DPNAS):
        views = ("releases", "actions") if settings.view == "all" else (view,)
        live = settings.live(target)
        samplers = [stopping_outputs(target, neighbours, one, live) for one in views]
        runs = LIVE_RUNS if live else DEFAULT_RUNS
        return [CalledSource(sampler, view, root, runs) for sampler in samplers], target.guarantee()
    return [CalledSource(target, view, root)], None


def _design_sources(
    design: Design,
    neighbours: Neighbours | None,
    view: str,
    root: np.random.SeedSequence,
    live: bool = False,
) -> tuple[list[Source], PrivacyGuarantee | None]:
    """One or both views of a design, on the most revealing pairs or on the given pair."""
    # Live runs are few, and examining both views would halve the sample for releases, which reveal more.
    sources: list[Source] = []
    promise = None
    for one in ("releases", "actions") if view == "all" else (view,):
        trials = _worst(design, one) if neighbours is None else neighbours
        left_out = trials.score is None if one == "releases" else bool(actions_problem(trials))
        if view == "all" and left_out and (one == "actions" or not actions_problem(trials)):
            continue
        if live and sources:
            break
        promise = _promise(design, trials)
        run = design if trials.design is None else trials.design
        if not isinstance(run, type(design)) or _promise(run, trials) != promise:
            raise ParameterError(
                "epsilon_lower_bound",
                [
                    f"neighbours are trials of a different design, {run!r:.200}: use those of "
                    "neighbouring_trials(target)"
                ],
            )
        sources.append(design_source(run, trials, one, root, live))
    return sources, promise


def _checks(target: Any, neighbours: Any, settings: Settings, share: float) -> Checked:
    """Further checks, including a share of the live path."""
    root, live = seed_sequence(settings.rng), settings.live(target)
    if isinstance(target, Design):
        return design_checks(target, root, share, simulated=not live, needed=live)
    if isinstance(target, DPNAS):
        return stopping_checks(target, neighbours, root, share, simulated=not live, needed=live)
    if isinstance(target, Counter):
        return counter_checks(target, root)
    return Checked((), ())


def _worst(design: Design, view: str) -> Neighbours:
    """The most revealing pair for a view, among those that the design supplies."""
    pairs = neighbouring_trials(design)
    best = [pair for pair in pairs if pair.for_actions] if view == "actions" else []
    return (best or list(pairs))[0]


def _promise(design: Design, pair: Neighbours) -> PrivacyGuarantee | None:
    """The design's own guarantee for the difference between the neighbours."""
    placed = design._placed(pair.first)
    guarantee = placed.guarantee(pair.horizon, pair.first.n_arms)
    if guarantee is None or guarantee.unit == pair.unit:
        return guarantee
    return placed.reward_guarantee(pair.horizon, pair.first.n_arms) if pair.unit == "reward" else None


@dataclass(frozen=True, eq=False)
class _Scored:
    """Scores on both data sets, the number of leading scores that choose the event, and any learned score."""

    sides: list[FloatArray]
    n_chosen: int
    learned: LearnedScore | None


def _scored(source: Source, runs: int, n_jobs: int) -> _Scored:
    sides = [_gather(source, side, runs, n_jobs) for side in (0, 1)]
    if sides[0].ndim == 1:
        return _Scored(sides, runs // 2, None)
    quarter = runs // 4
    learned = learn(sides[0][:quarter], sides[1][:quarter])
    return _Scored([learned.scores(outputs[quarter:]) for outputs in sides], runs // 2 - quarter, learned)


def _gather(source: Source, side: int, runs: int, n_jobs: int) -> Any:
    pieces = [(start, min(start + CHUNK, runs)) for start in range(0, runs, CHUNK)]
    jobs = [(source.outputs, (side, *piece)) for piece in pieces]
    return np.concatenate(spread(jobs, n_jobs if len(jobs) > 1 else 1))
