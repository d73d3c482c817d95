"""Wrong uses over the whole suite: each ends in an error that says what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import wording

import adaptinf as ai
from adaptinf import designs
from adaptinf.audit.rerun.simulated_counts import stability
from adaptinf.claims.arms.batched import NO_BATCHES
from adaptinf.claims.arms.sample_means import BIASED
from adaptinf.claims.effects.rounds_and_weights import PROPENSITIES_VARY
from adaptinf.claims.propensities import EVERY_ONE_NEEDED, NEEDED, OTHER_CONTEXTS_UNKNOWN
from adaptinf.claims.recommendations import STOPPED_BY_DATA
from adaptinf.claims.sequences import BOUNDS_NEEDED
from adaptinf.errors import AdaptinfError, InvalidForLog, LogValidationError, ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.inference.effects.cate import CATE
from adaptinf.inference.policies.policy_models import PolicyContrast, PolicyValue
from adaptinf.inference.recommend.recommendation import recommend
from adaptinf.inference.results.comparison import compare
from adaptinf.inference.results.fit_results import Results
from adaptinf.inference.sequences.confidence_sequence import ConfidenceSequence
from adaptinf.inference.validity.policies import PolicySnapshots
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.simulation.environments import BernoulliArms

ROUNDS = 120
PRIVATE = PrivacyGuarantee(epsilon=0.5, delta=1e-6)


def make_log(known: str = "all", **metadata: Any) -> AdaptiveLog:
    rng = np.random.default_rng(4)
    share = rng.dirichlet([5.0, 5.0], size=ROUNDS)
    action = np.array([rng.choice(2, p=row) for row in share])
    arrays = LogArrays(
        action=action,
        reward=rng.normal(action, 1.0),
        propensity=None if known == "none" else share[np.arange(ROUNDS), action],
        propensities=share if known == "all" else None,
        context={"age": rng.normal(size=ROUNDS), "site": np.arange(ROUNDS) % 2},
    )
    return AdaptiveLog.from_arrays(arrays, arms=("a", "b"), **metadata)


LOG, CHOSEN, BARE = make_log(), make_log("chosen"), make_log("none")
RESULT = ArmMeans(LOG).fit()
REWARD, ACTION, SHARE = LOG.arrays.reward, LOG.arrays.action, LOG.arrays.propensities
assert SHARE is not None
BELOW_ALL = np.column_stack([np.full(ROUNDS, REWARD[arm == ACTION].mean()) for arm in (0, 1)])


def contrast(log: AdaptiveLog = LOG, **options: Any) -> Results:
    return Contrast(log, treatment="b", control="a").fit(**options)


def sequence(log: AdaptiveLog = LOG, *, arms: Any = None, **options: Any) -> Results:
    return ConfidenceSequence(log, arms=arms).fit(**options)


def value(policy: Any = "a", log: AdaptiveLog = LOG, **options: Any) -> Results:
    return PolicyValue(log, policy).fit(**options)


WRONG: list[tuple[str, Callable[[], Any], type[AdaptinfError], str]] = [
    ("a level", lambda: RESULT.conf_int(0.95), ParameterError, "0.05 gives 95% intervals"),
    ("a level in percent", lambda: RESULT.summary(95), ParameterError, "0.05 gives 95% intervals"),
    (
        "a level for a sequence",
        lambda: sequence(method="asymptotic", alpha=0.95),
        ParameterError,
        "0.05 gives",
    ),
    ("a level for a joint interval", lambda: RESULT.conf_int_simultaneous(0.9), ParameterError, "0.05 gives"),
    ("an unknown arm", lambda: ArmMeans(LOG, ["c"]), ParameterError, "no arm 'c'; the log has 'a', 'b'"),
    (
        "an arm against itself",
        lambda: Contrast(LOG, treatment="a", control="a"),
        ParameterError,
        "named more than once",
    ),
    ("a decay from the log", lambda: contrast(decay=LOG), ParameterError, "not fitted to the log"),
    (
        "a decay to be fitted",
        lambda: ArmMeans(LOG).fit(weights="two-point", decay="fit"),  # type: ignore[arg-type]
        ParameterError,
        "fixed before data collection and not fitted",
    ),
    (
        "a decay a round",
        lambda: ArmMeans(LOG).fit(decay=-np.log(SHARE.min(axis=1))),  # type: ignore[union-attr]
        ParameterError,
        "not fitted to the log",
    ),
    (
        "two-point weights alone",
        lambda: ArmMeans(LOG).fit(weights="two-point"),
        ParameterError,
        "require decay=, the exponent",
    ),
    (
        "an outcome model that knows the rewards",
        lambda: ArmMeans(LOG).fit(outcome=np.column_stack([REWARD, REWARD])),
        InvalidForLog,
        "Row t may use only rounds before t.*possible alternatives: outcome='running-mean'",
    ),
    (
        "an outcome model fitted on the whole log",
        lambda: ArmMeans(LOG).fit(outcome=BELOW_ALL),
        InvalidForLog,
        "mean over the whole log.*possible alternatives: outcome='running-mean'",
    ),
    (
        "an outcome model for ipw",
        lambda: ArmMeans(LOG).fit("ipw", outcome="running-mean"),
        ParameterError,
        "apply to aipw",
    ),
    (
        "weights without propensities",
        lambda: ArmMeans(BARE).fit(weights="sqrt"),
        InvalidForLog,
        wording(NEEDED) + ".*possible alternatives: alee",
    ),
    (
        "weights from the chosen arm's propensity",
        lambda: ArmMeans(CHOSEN).fit(weights="sqrt"),
        InvalidForLog,
        wording(EVERY_ONE_NEEDED) + ".*possible alternatives: aipw with uniform weights",
    ),
    (
        "weights of sample means",
        lambda: ArmMeans(LOG).fit("sample-mean", "sqrt"),
        ParameterError,
        "omit weights and decay, or choose ipw or aipw",
    ),
    (
        "snapshots that disagree",
        lambda: value(snapshots=PolicySnapshots([0], [np.array([0.5, 0.5])])),
        ParameterError,
        "check the rows at which batches start, and the order of the arms",
    ),
    (
        "cadr without snapshots",
        lambda: value(estimator="cadr"),
        InvalidForLog,
        wording(OTHER_CONTEXTS_UNKNOWN) + "; possible alternatives: snapshots=PolicySnapshots",
    ),
    (
        "weights for cadr",
        lambda: value(estimator="cadr", weights="uniform"),
        ParameterError,
        "its own weights: omit weights and contextual",
    ),
    (
        "betting on rewards without bounds",
        lambda: sequence(method="betting"),
        InvalidForLog,
        f"{BOUNDS_NEEDED()}.*reward_range=.*method='asymptotic'",
    ),
    (
        "a noise scale fitted for betting",
        lambda: sequence(method="betting", sigma=float(REWARD.std())),
        ParameterError,
        "sigma applies to the normal mixture",
    ),
    (
        "a floor fitted on the log",
        lambda: sequence(method="asymptotic", estimator="aipw", floor=float(SHARE.min())),  # type: ignore[union-attr]
        ParameterError,
        "fitted to the log, and a fitted floor is not a bound. Give the floor that the design guaranteed",
    ),
    (
        "a floor above the propensities",
        lambda: sequence(method="asymptotic", estimator="aipw", floor=0.9),
        ParameterError,
        "floor must hold in every round",
    ),
    (
        "batches that are not there",
        lambda: contrast(estimator="batched"),
        InvalidForLog,
        wording(NO_BATCHES) + ".*possible alternatives: aipw with uniform weights",
    ),
    (
        "batched arm means",
        lambda: ArmMeans(LOG).fit("batched"),
        ParameterError,
        "is for contrasts: use Contrast",
    ),
    ("rows above one", lambda: value(np.array([0.5, 0.6])), ParameterError, "do not sum to 1"),
    ("negative rows", lambda: value(np.array([1.5, -0.5])), ParameterError, "negative probabilities"),
    (
        "a policy of no arm",
        lambda: PolicyContrast(LOG, "z", baseline="a"),
        ParameterError,
        "not an arm of the log.*a policy is an arm",
    ),
    (
        "an unknown covariate",
        lambda: CATE.from_formula("~ height", LOG),
        ParameterError,
        "no covariate 'height'; the log's contexts are age, site",
    ),
    (
        "a formula with a response",
        lambda: CATE.from_formula("reward ~ age", LOG),
        ParameterError,
        "give only the covariates",
    ),
    ("groups by an unknown column", lambda: CATE(LOG, by="sex"), ParameterError, "the log has 'age', 'site'"),
    ("groups of single rounds", lambda: CATE(LOG, by="age"), ParameterError, "use fewer, larger groups"),
    (
        "group means although propensities move",
        lambda: CATE(LOG, by="site").fit("difference-in-means"),
        InvalidForLog,
        f"{wording(PROPENSITIES_VARY)}; possible alternatives: aipw",
    ),
    (
        "releases that are not there",
        lambda: CATE(LOG, by="site").fit("released"),
        InvalidForLog,
        "possible alternatives: aipw",
    ),
    (
        "exact tests of scores",
        lambda: ArmMeans(LOG).fit("aipw", test="exact"),
        InvalidForLog,
        "they apply to sample means; possible alternatives: test='t'",
    ),
    (
        "a correction that is not due",
        lambda: RESULT.conf_int_corrected(),
        InvalidForLog,
        "does not need a correction.*possible alternatives: pvalues",
    ),
    (
        "a correction by a guarantee with a delta",
        lambda: ArmMeans(make_log("none", guarantee=PRIVATE)).fit("sample-mean").conf_int_corrected(),
        InvalidForLog,
        "the log's guarantee does not allow one \\(see the notes\\)",
    ),
    (
        "a bootstrap without rows",
        lambda: RESULT.conf_int_simultaneous(method="bootstrap"),
        InvalidForLog,
        "fit with keep_scores=True",
    ),
    (
        "a hypothesis about an unknown term",
        lambda: RESULT.wald_test("a - c = 0"),
        ParameterError,
        "unknown term 'c'; the terms are 'a', 'b'",
    ),
    ("results without names", lambda: compare([RESULT]), ParameterError, "pass results by name"),
    ("an unknown adjustment", lambda: RESULT.adjust("tukey"), ParameterError, "must be 'holm' or 'bh'"),
    (
        "a method that is not valid",
        lambda: recommend(LOG).fit("sample-mean"),
        InvalidForLog,
        f"{BIASED()}; possible alternatives: aipw with uniform weights",
    ),
    (
        "a sequence for a stopped log that has no bounds",
        lambda: recommend(LOG, stopping="data-chosen").fit("aipw with sqrt weights"),
        InvalidForLog,
        wording(STOPPED_BY_DATA) + "; possible alternatives: asymptotic sequence",
    ),
    (
        "no horizon to simulate",
        lambda: stability(designs.UCB(), BernoulliArms([0.5, 0.5])),
        ParameterError,
        "pass horizon=",
    ),
    (
        "a horizon of no rounds",
        lambda: designs.UCB().run(BernoulliArms([0.5, 0.5]), horizon=0),
        ParameterError,
        "horizon must be a whole number of at least 1",
    ),
    (
        "propensities in percent",
        lambda: AdaptiveLog(
            pd.DataFrame({"arm": ["a", "b"], "y": [0.0, 1.0], "p": [50.0, 50.0]}),
            action="arm",
            reward="y",
            propensity="p",
        ),
        LogValidationError,
        "propensit.*1",
    ),
]


@pytest.mark.parametrize(
    ("use", "kind", "message"), [one[1:] for one in WRONG], ids=[one[0] for one in WRONG]
)
def test_a_wrong_use_says_what_to_do(use: Callable[[], Any], kind: type[AdaptinfError], message: str) -> None:
    with pytest.raises(kind, match=f"(?s){message}"):
        use()


def test_there_are_enough() -> None:
    assert len({name for name, *_ in WRONG}) == len(WRONG) >= 20


def test_floors_that_the_design_guaranteed() -> None:
    """Reached often, reached in the last round, or a little below the smallest propensity."""
    share = np.full((ROUNDS, 2), 0.5)
    share[:, 1] = np.where(np.arange(ROUNDS) % 3 == 0, 0.1, 0.6)
    share[:, 0] = 1.0 - share[:, 1]
    for rows, floor in ((share, 0.1), (np.vstack([share[1:3], share[:1]]), 0.1), (share[1:], 0.09)):
        action = np.arange(len(rows)) % 2
        arrays = LogArrays(
            action=action,
            reward=np.arange(len(rows)) % 5 / 4.0,
            propensity=rows[np.arange(len(rows)), action],
            propensities=rows,
        )
        log = AdaptiveLog.from_arrays(arrays, arms=("a", "b"), reward_range=(0.0, 1.0))
        assert np.isfinite(sequence(log, method="betting", estimator="aipw", floor=floor).estimate).all()


FRAME = pd.DataFrame({"arm": [1, 2]})


class OneColumn:
    classes_ = ("a", "b")

    def predict_proba(self, contexts: pd.DataFrame) -> Any:
        return np.full(len(contexts), 0.5)


ODD: list[tuple[Callable[[], Any], str]] = [
    (lambda: ArmMeans(LOG, arms=3), "ArmMeans: arms must be a list of labels, got 3"),  # type: ignore[arg-type]
    (lambda: ArmMeans(LOG, arms="green"), "ArmMeans: arms must be a list of labels; write ['green']"),
    (
        lambda: ArmMeans(LOG, arms=[["a"]]),
        "arms must be given by labels such as strings or numbers, got ['a']",
    ),
    (lambda: ArmMeans(LOG, arms=[np.array(["a", "b"])]), "arms must be given by labels"),
    (
        lambda: ArmMeans(LOG, arms=[pd.NA]),
        "arms must be given by labels such as strings or numbers, got <NA>",
    ),
    (lambda: recommend(LOG, arms="green"), "recommend: arms must be a list of labels; write ['green']"),
    (lambda: Contrast(LOG, treatment=["a"], control="b"), "Contrast: treatment must be given by labels"),
    (lambda: Contrast(LOG, treatment="a", control=FRAME), "numbers, got a DataFrame"),
    (lambda: ArmMeans(LOG).fit(["aipw"]), "ArmMeans.fit: estimator must be a string, got ['aipw']"),  # type: ignore[arg-type]
    (lambda: ArmMeans(LOG).fit(FRAME), "ArmMeans.fit: estimator must be a string, got a DataFrame"),  # type: ignore[arg-type]
    (lambda: contrast(estimator=FRAME), "Contrast.fit: estimator must be a string, got a DataFrame"),
    (lambda: contrast(weights=np.ones(3)), "weights must be a string, got array([1., 1., 1.])"),
    (lambda: ArmMeans(LOG).fit(test=FRAME), "test must be a string"),  # type: ignore[arg-type]
    (lambda: ArmMeans(LOG).fit(keep_scores="yes"), "keep_scores must be True, False"),  # type: ignore[arg-type]
    (lambda: contrast(keep_scores=2), "keep_scores must be True, False"),
    (lambda: CATE(LOG, by=None), "CATE: by must be a list of labels, got None"),  # type: ignore[arg-type]
    (lambda: CATE(LOG, by=3), "CATE: by must be a list of labels, got 3"),  # type: ignore[arg-type]
    (lambda: CATE(LOG, by=[["site"]]), "by must be given by labels"),  # type: ignore[list-item]
    (lambda: CATE(LOG, by="site", treatment=FRAME), "treatment must be given by labels"),
    (lambda: CATE(LOG, by="site", rounds="nocol"), "CATE: rounds: there is no column 'nocol'"),
    (lambda: CATE.from_formula("~ site", LOG, rounds="nocol"), "CATE: rounds: there is no column 'nocol'"),
    (lambda: CATE(LOG, by="site").fit(FRAME), "CATE.fit: estimator must be a string"),  # type: ignore[arg-type]
    (lambda: CATE(LOG, by="site").fit("aipw", pooled="yes"), "pooled must be True, False"),  # type: ignore[arg-type]
    (lambda: value(lambda contexts: 1), "one column per arm, got shape ()"),
    (lambda: value(OneColumn()), f"one column per arm, got shape ({ROUNDS},)"),
    (lambda: value(lambda: 1), "policy 'policy' failed on the contexts: TypeError: "),
    (
        lambda: value(lambda contexts: contexts["nope"]),
        "PolicyValue: policy 'policy' failed on the contexts: KeyError: 'nope'",
    ),
    (
        lambda: value(snapshots=PolicySnapshots([0], [lambda contexts: contexts["nope"]])),
        "PolicySnapshots: the policy of batch 0 failed on the contexts: KeyError: 'nope'",
    ),
]


@pytest.mark.parametrize(("use", "message"), ODD, ids=[message for _, message in ODD])
def test_odd_kinds_of_arguments_are_one_clear_error(use: Callable[[], Any], message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        use()
    assert message in str(caught.value)
    assert len(caught.value.problems) == 1


def test_the_error_of_a_policy_is_kept() -> None:
    with pytest.raises(ParameterError) as caught:
        value(lambda contexts: contexts["nope"])
    assert isinstance(caught.value.__cause__, KeyError)


def test_arms_may_come_from_an_iterator() -> None:
    model = ArmMeans(LOG, iter(["b", "a"]))  # type: ignore[arg-type]
    assert model.arms == ("b", "a")
    assert list(model.fit().params.index) == ["b", "a"]


@pytest.mark.parametrize("wrong", [None, [1, 0], {"arm": [1]}, pd.DataFrame({"arm": [1]})], ids=repr)
@pytest.mark.parametrize(
    "call",
    [
        lambda log: ai.ArmMeans(log),
        lambda log: ai.Contrast(log, treatment=1, control=0),
        lambda log: ai.CATE(log, by="group", treatment=1, control=0),
        lambda log: ai.CATE.from_formula("~ x", log, treatment=1, control=0),
        lambda log: ai.PolicyValue(log, "uniform"),
        lambda log: ai.PolicyContrast(log, 1, baseline=0),
        lambda log: ai.ConfidenceSequence(log),
        lambda log: ai.BinMeans(log),
        lambda log: ai.recommend(log),
    ],
)
def test_something_else_than_a_log(call: Callable[[Any], Any], wrong: Any) -> None:
    with pytest.raises(ParameterError, match=f"log must be an AdaptiveLog, got {type(wrong).__name__}"):
        call(wrong)
