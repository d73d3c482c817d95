"""The call that couples neighbouring trials: what is checked first, which pairs, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.audit.privacy.coupling.histories import KINDS
from adaptinf.audit.privacy.coupling.pairs import MORE, SUBJECT, PairAudit, noise_problems
from adaptinf.audit.privacy.coupling.results import Coupled
from adaptinf.audit.privacy.coupling.stopping import coupled_stopping
from adaptinf.audit.privacy.coupling.terms import declared_terms, design_terms
from adaptinf.designs.base_design import Design
from adaptinf.designs.stopping.stopping_rules import DPNAS
from adaptinf.parameters import COUNT, SEED, OrNone, problems_of, refuse
from adaptinf.simulation.replicate import seed_sequence
from adaptinf.texts import shown
from adaptinf.typing import RandomSource

if TYPE_CHECKING:
    from adaptinf.trial import Trial

_ALONE = (1, 2)
"""Of four pairs those with the fewest arms that a design takes, where an outcome is in the most nodes."""
_PAIRS, _FURTHER, _LONG = 4, 3, 200
"""Pairs of each kind; further ones that come with each; participants beyond whom there are fewer."""
_CLIPPED = 1
"""The base, of a long trial, in which outcomes are clipped: what replaces one has to be clipped as well."""


def coupled(
    target: Design | DPNAS | Trial,
    neighbours: str | Sequence[str] | None = None,
    *,
    pairs: int | None = None,
    horizon: int | None = None,
    rng: RandomSource | None = None,
) -> Coupled:
    """Run neighbouring live trials whose covered outputs must agree to the last bit, and add up the cost.

    Two trials have equal coins and differ in one participant. Their noise is given, in whole numbers; that of
    the second trial is shifted, draw by draw, by what the sums differ that it hides, until both release the
    same. Then every covered output must be the same, and the sum of abs(shift) / scale over all draws, with
    scales as they are drawn, at most the promised epsilon.

    Parameters
    ----------
    target : Design, DPNAS or Trial
        A private design whose noise is whole numbers: `PrivateUCB`, `PrivateSuccessiveElimination`,
        `DPConSE`, `LinPriv` with delta 0, `DPBAI`, a `Mixture` of one of them, a design of your own with
        named nodes; or `DPNAS`. Of a trial its declaration alone is read: trials of the same terms are run
        beside it, with at most 64 participants.
    neighbours : str or sequence of str, optional
        Kinds of pairs, by default all that apply: an outcome is another one (``"value"``), or a whole record
        (``"context"``); it comes ``"early"``, ``"late"`` (after the window) or ``"never"``; it is
        ``"amended"``; or the participant is ``"erased"``.
    pairs : int, optional
        Pairs of each kind, by default 4. With each come 3 more of other values and contexts, as what they
        cost depends on the participant; where a trial has more than 200 participants none do, and there is
        by default 1 pair of each other kind, and 2 with an amendment.
    horizon : int, optional
        Of a design, the length of the trials; by default long enough for it to release something.
    rng : int, SeedSequence, Generator or None
        Chooses pairs, coins and noise.

    Returns
    -------
    Coupled
        The pairs, their cost beside the promise, the outputs that were compared, and the first disagreement
        in words.

    Raises
    ------
    ParameterError
        Listing all that is found wrong; or why the design cannot be coupled, and what can be audited instead.
    MissingDependencyError
        If SQLAlchemy or OpenDP are missing, which trials in files need.

    Notes
    -----
    A pair holds the design to the proof of its promise. Coins, arms, propensities where covered, names and
    scales of all draws, releases, `public` in full, with its files, half-way and at the end, and the status
    of a trial are compared. Left out are what the participant who differs is told, and, where contexts
    differ, the participant's own arm; what a status tells of the number of outcomes that are in, where the
    neighbours differ in that; and the head.

    Shifts are found from the releases of the two runs, and have to be the same for other noise of the node:
    they follow data and what was released before, never the noise. `DPNAS` does not release its looks; its
    alignment is that of the proof: the threshold's noise is shifted by the sensitivity Delta, that of the
    look at which it halts by 2 Delta, and that of the estimate by what the sums differ.

    Equal outputs show an alignment for these pairs, coins and noise, and no more. As the noise is given, a
    design passes with its real noise removed. Only where law, scale as drawn, independence, support and
    lattice of the noise are tested too is it evidence: see `epsilon_lower_bound`.

    References
    ----------
    Ding, Z., Wang, Y., Wang, G., Zhang, D. and Kifer, D. (2018). Detecting violations of differential
    privacy. CCS.

    Zhang, D. and Kifer, D. (2017). LightDP: towards automating differential privacy proofs. POPL.

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.PrivateUCB(epsilon=1.0, counter="binary")
    >>> found = ai.audit.coupled(design, ["value", "never"], pairs=1, rng=0)
    >>> found.refuted, found.disagreement, found.cost <= 1.0
    (False, '', True)
    """
    refuse(SUBJECT, _call_problems(target, neighbours, pairs, horizon, rng))
    kinds = (
        KINDS if neighbours is None else (neighbours,) if isinstance(neighbours, str) else tuple(neighbours)
    )
    root = np.random.default_rng(seed_sequence(rng))
    if isinstance(target, DPNAS):
        return coupled_stopping(target, kinds, neighbours is not None, pairs or _PAIRS, root)
    if isinstance(target, Design):
        refuse(SUBJECT, noise_problems(target))
        design, terms = design_terms(target, horizon)
    else:
        design, terms = declared_terms(target)
        refuse(SUBJECT, noise_problems(design))
    audit = PairAudit.of(design, terms)
    fewest = (
        audit
        if terms.fewest is None
        else PairAudit.of(design, replace(terms, arms=terms.arms[: terms.fewest]))
    )
    fitting = audit.fitting(kinds)
    refuse(
        SUBJECT, [] if neighbours is None else [audit.unfit(kind) for kind in kinds if kind not in fitting]
    )
    found = []
    for number in range(pairs or _PAIRS):
        long = terms.rounds > _LONG
        few = pairs is None and long and number > 0
        again = (*MORE, "amended") if number == _CLIPPED else MORE
        here = [kind for kind in fitting if kind in again or not few]
        one = fewest if number % 4 in _ALONE else audit
        found += one.pairs(number, here, root, 0 if long else _FURTHER)
    return Coupled(audit.words, tuple(sorted(found, key=lambda pair: KINDS.index(pair.kind))))


def _call_problems(target: Any, neighbours: Any, pairs: Any, horizon: Any, rng: Any) -> list[str]:
    """What is wrong with a call."""
    from adaptinf.trial import Trial

    problems = problems_of(pairs=(pairs, OrNone(COUNT)), horizon=(horizon, OrNone(COUNT)), rng=(rng, SEED))
    kinds = (neighbours,) if isinstance(neighbours, str) else neighbours
    if kinds is not None:
        known = isinstance(kinds, Sequence) and len(kinds) > 0 and all(kind in KINDS for kind in kinds)
        if not known:
            problems.append(f"neighbours must be of {', '.join(KINDS)}, got {shown(neighbours)}")
    if not isinstance(target, (Design, DPNAS, Trial)):
        problems.append(f"target must be a private design, a DPNAS or a trial, got {shown(target)}")
    if horizon is not None and not isinstance(target, Design):
        problems.append(
            "horizon must be left out where target is no design: it is declared, or that of a stream"
        )
    return problems
