"""Every row of `recommend` over a zoo of logs: what is valid runs, what is not is refused, and why."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from claims_said import says, wording

from adaptinf import designs
from adaptinf.claims import Claim, propensities, recommendations
from adaptinf.claims import contexts as context_claims
from adaptinf.claims.arms import arm_fits, sample_means, weighted_arms
from adaptinf.claims.effects.by_covariates import GROUPS_INSTEAD
from adaptinf.claims.effects.rounds_and_weights import MARK_THE_ROUNDS
from adaptinf.claims.policies import MEANS_OF_ARMS
from adaptinf.claims.sequences import GUARANTEED_FLOOR
from adaptinf.errors import AdaptinfWarning, InvalidForLog, ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.inference.arms.choice import arm_verdicts, default_estimator
from adaptinf.inference.arms.facts.sample_facts import length_ratio
from adaptinf.inference.arms.question import Question
from adaptinf.inference.contrasts import Contrasts
from adaptinf.inference.corrections.information_of_log import correction_for
from adaptinf.inference.effects.cate import CATE
from adaptinf.inference.policies.policy_models import PolicyValue
from adaptinf.inference.recommend.recommendation import recommend
from adaptinf.inference.recommend.table import Recommendation
from adaptinf.inference.sequences.confidence_sequence import ConfidenceSequence
from adaptinf.inference.validity.profile import profile_of
from adaptinf.inference.winners import Winner
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.simulation.environments import (
    BernoulliArms,
    FiniteContext,
    LinearArms,
    NormalArms,
)
from adaptinf.typing import VALIDITY_LABELS

ARMS = BernoulliArms([0.4, 0.6, 0.5])
TWO = BernoulliArms([0.4, 0.6])
GROUPS = FiniteContext([0.5, 0.5], [[0.3, 0.6], [0.7, 0.4]])
VECTORS = LinearArms(np.array([[0.3, 0.2], [0.1, 0.4]]))
ROUNDS = 800
PRIVATE = PrivacyGuarantee(epsilon=0.1)

DESIGNED: dict[str, tuple[designs.Design, Any]] = {
    "uniform": (designs.Uniform(), ARMS),
    "uniform in groups": (designs.Uniform(), GROUPS),
    "epsilon-greedy": (designs.EpsilonGreedy(exploration=0.2, batch_size=50), ARMS),
    "thompson": (designs.Thompson(floor=(1 / 3, 0.7), batch_size=20), ARMS),
    "thompson in groups": (designs.Thompson(floor=0.05, batch_size=20), GROUPS),
    "ucb": (designs.UCB(), ARMS),
    "ucb, normal rewards": (designs.UCB(), NormalArms([0.0, 1.0])),
    "private ucb": (designs.PrivateUCB(epsilon=0.1), ARMS),
    "private ucb, large epsilon": (designs.PrivateUCB(epsilon=5.0), ARMS),
    "mixture": (designs.Mixture(designs.PrivateUCB(epsilon=0.5), 0.2), ARMS),
    "elimination": (designs.SuccessiveElimination(), ARMS),
    "private elimination": (designs.PrivateSuccessiveElimination(epsilon=1.0, beta=0.9), TWO),
    "conse": (designs.ConSE(alpha=0.3), GROUPS),
    "dp-conse": (designs.DPConSE(epsilon=1.0, alpha=0.3), GROUPS),
    "linucb": (designs.LinUCB(noise_scale=0.5), VECTORS),
    "linpriv": (designs.LinPriv(epsilon=1.0, dimension=2), VECTORS),
}


def user_log(
    known: str = "all",
    *,
    rounds: int = 200,
    arms: int = 2,
    context: bool = False,
    binary: bool = True,
    batches: int | None = None,
    **metadata: Any,
) -> AdaptiveLog:
    rng = np.random.default_rng(rounds + arms)
    share = rng.dirichlet(np.full(arms, 5.0), size=rounds)
    action = np.array([rng.choice(arms, p=row) for row in share])
    reward = rng.binomial(1, 0.4 + 0.1 * action).astype(float) if binary else rng.normal(action, 1.0)
    arrays = LogArrays(
        action=action,
        reward=reward,
        propensity=None if known == "none" else share[np.arange(rounds), action],
        propensities=share if known == "all" else None,
        batch=None if batches is None else np.arange(rounds) * batches // rounds,
        context={"site": rng.integers(0, 2, rounds), "age": rng.normal(size=rounds)} if context else {},
    )
    return AdaptiveLog.from_arrays(arrays, arms=tuple("abcdef"[:arms]), **metadata)


GIVEN: dict[str, Callable[[], AdaptiveLog]] = {
    "every propensity": lambda: user_log(),
    "every propensity, bounded": lambda: user_log(reward_range=(0.0, 1.0)),
    "chosen arm's": lambda: user_log("chosen", reward_range=(0.0, 1.0)),
    "chosen arm's, contexts": lambda: user_log("chosen", context=True),
    "no propensities": lambda: user_log("none", reward_range=(0.0, 1.0)),
    "no propensities, contexts": lambda: user_log("none", context=True),
    "no propensities, fixed": lambda: user_log("none", feedback_rounds=0),
    "estimated": lambda: user_log(propensity_status="estimated"),
    "estimated, contexts": lambda: user_log(propensity_status="estimated", context=True),
    "batches": lambda: user_log(batches=4, binary=False),
    "batches without an arm": lambda: user_log("none", rounds=60, batches=30),
    "guarantee": lambda: user_log("none", reward_guarantee=PRIVATE, guarantee=PRIVATE),
    "guarantee, normal": lambda: user_log("none", binary=False, guarantee=PRIVATE, reward_guarantee=PRIVATE),
    "one arm": lambda: user_log("none", arms=1),
    "one round": lambda: user_log("none", rounds=1),
    "one round with propensities": lambda: user_log(rounds=1, reward_range=(0.0, 1.0)),
    "contexts": lambda: user_log(context=True, reward_range=(0.0, 1.0)),
}
ZOO = [*DESIGNED, *GIVEN]


@cache
def log_of(name: str) -> AdaptiveLog:
    if name in GIVEN:
        return GIVEN[name]()
    design, environment = DESIGNED[name]
    seed = 2 if name == "thompson" else 1  # with 1, an arm has too few rewards for a standard error
    return design.run(environment, 4000 if "conse" in name else ROUNDS, rng=seed)


def tables(log: AdaptiveLog) -> Iterator[tuple[str, Recommendation]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptinfWarning)
        yield "arm-means", recommend(log)
        if log.n_arms > 1:
            pair = {"treatment": log.arms[1], "control": log.arms[0]}
            yield "contrast", recommend(log, "contrast", **pair)
            yield "contrasts", recommend(log, "contrasts", control=log.arms[0])
            yield "winner", recommend(log, "winner")
            by = [name for name in log.context if name in ("site", "feature")]
            if by:
                yield "cate", recommend(log, "cate", by=by[0], **pair)
                yield "cate", recommend(log, "cate", formula=f"~ C({by[0]})", **pair)
        yield "policy-value", recommend(log, "policy-value", policy=log.arms[0])


def quietly(call: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptinfWarning)
        return call()


@pytest.mark.parametrize("name", ZOO)
def test_valid_rows_run_and_the_others_are_refused(name: str) -> None:
    log = log_of(name)
    for _, table in tables(log):
        order = [one.verdict.valid for one in table.methods]
        assert order == sorted(order, reverse=True)
        for one in table.methods:
            verdict, fit = one.verdict, table.fit
            assert verdict.label in VALIDITY_LABELS
            assert verdict.reason
            if verdict.valid:
                # Sample means of arms that nothing moved assume nothing of the log.
                assert verdict.assumes or (name == "uniform" and verdict.name == "sample-mean")
                result = quietly(partial(fit, verdict.name))
                assert np.isfinite(result.estimate).any() or result.notes
                continue
            assert not verdict.assumes
            with pytest.raises(InvalidForLog):
                table.fit(verdict.name)
            if verdict.baseline:
                notes = " ".join(quietly(one.run).notes)
                assert "not valid" in notes or "invalid under adaptive assignment" in notes
            elif "corrected" in verdict.name:
                with pytest.raises(InvalidForLog):
                    quietly(one.run).conf_int_corrected()
            else:
                with pytest.raises((InvalidForLog, ParameterError)) as caught:
                    one.run()
                assert isinstance(caught.value, InvalidForLog) or "decay=" in str(caught.value)


@pytest.mark.parametrize("name", ZOO)
def test_the_calls_are_what_is_run(name: str) -> None:
    """The text of a call, evaluated, gives the numbers of `fit`."""
    log = log_of(name)
    names = {"log": log, "ArmMeans": ArmMeans, "Contrast": Contrast, "CATE": CATE}
    names |= {"PolicyValue": PolicyValue, "ConfidenceSequence": ConfidenceSequence}
    names |= {"Contrasts": Contrasts, "Winner": Winner}
    for _, table in tables(log):
        for one in [one for one in table.methods if one.verdict.valid][:2]:
            text = one.call.replace("from_formula(log, ", "from_formula(log=log, ")
            written = quietly(lambda text=text: eval(text, names))
            np.testing.assert_array_equal(written.estimate, quietly(one.run).estimate)


@pytest.mark.parametrize("name", ZOO)
def test_fit_takes_the_first_of_its_class(name: str) -> None:
    log = log_of(name)
    for target, table in tables(log):
        own = {"arm-means": "ArmMeans(", "contrast": "Contrast(", "policy-value": "PolicyValue("}.get(target)
        first = [one for one in table.methods if own and one.verdict.valid and one.call.startswith(own)]
        if own is None or (target == "policy-value" and not first):
            continue
        pair = {} if target != "contrast" else {"treatment": log.arms[1], "control": log.arms[0]}
        pair = pair if target != "policy-value" else {"policy": log.arms[0]}
        kinds = {"arm-means": ArmMeans, "contrast": Contrast, "policy-value": PolicyValue}
        model = kinds[target](log, **pair)
        if not first:
            with pytest.raises(InvalidForLog, match=wording(context_claims.BY_DESIGN)):
                model.fit()
            continue
        default = quietly(model.fit)
        chosen = quietly(first[0].run)
        np.testing.assert_array_equal(default.estimate, chosen.estimate)
        assert (default.estimator, default.weights) == (chosen.estimator, chosen.weights)


ADVICE = (
    MARK_THE_ROUNDS(),
    GROUPS_INSTEAD(),
    MEANS_OF_ARMS(),
    "an analysis of only the randomised rounds",
    "AdaptiveOLS(log, arm=...), ",
    context_claims.WITHIN_BIN(),
    context_claims.RELEASED_BINS(),
    "AdaptiveLog(..., reward_range=)",
    "AdaptiveLog(..., about={'context_free': True})",
    "a log with a reward_range",
    "a log without reward_range, with method='asymptotic'",
    GUARANTEED_FLOOR(),
    "logged contexts (context=)",
    "snapshots=PolicySnapshots",
    "snapshots='context-free', if",
    "a policy that assigns only arms",
    "recommend with another target=",
    "other rounds (rounds=)",
    "other arms",
    "arms=[...]",
    "a mask of the last rounds",
)


GROUPS_BY = context_claims.WITHIN_GROUPS(contexts="")


def alternative(log: AdaptiveLog, target: str, one: Any, way: str) -> Callable[[], Any] | None:
    """The call that an alternative names; None where it is advice on the data."""
    if way.startswith(ADVICE):
        return None
    pair = {"treatment": log.arms[1], "control": log.arms[0]} if log.n_arms > 1 else {}
    arms: Any = Contrast(log, **pair) if target == "contrast" else ArmMeans(log)
    if target in ("contrasts", "winner"):
        arms = Contrasts(log, control=log.arms[0]) if target == "contrasts" else Winner(log)
    if way == arm_fits.BASELINE(name="sample-mean", where="under adaptivity"):
        return lambda: arms.fit("sample-mean")
    if way.startswith("test="):
        return lambda: arms.fit("sample-mean", **eval(f"dict({way})"))
    if way.startswith(GROUPS_BY):
        return lambda: CATE(log, by=way.removeprefix(GROUPS_BY), **pair).fit()
    if one.call.startswith("ConfidenceSequence"):
        base = {"target": target}
        base |= pair if target == "contrast" else {}
        base |= {"policy": log.arms[0]} if target == "policy-value" else {}
        sequence = ConfidenceSequence(log, **base)
        if "sigma=" in way:
            return lambda: sequence.fit("normal-mixture", estimator="sample-mean", sigma=1.0)
        arguments = {"method": one.verdict.arguments["method"], **eval(f"dict({way})")}
        return lambda: sequence.fit(**arguments)
    if target == "cate":
        model = CATE(log, by="feature" if "feature" in log.context else "site", **pair)
        calls = {
            "difference-in-means": {"estimator": "difference-in-means"},
            "difference-in-means with pooled=False": {"estimator": "difference-in-means"},
            "aipw": {"estimator": "aipw"},
            "aipw with uniform weights": {"estimator": "aipw", "weights": "uniform"},
            "released": {"estimator": "released"},
        }
        if way == "uniform weights":
            return lambda: CATE.from_formula("~ 1", log, **pair).fit("uniform")
        return lambda: model.fit(**calls[way])
    if target == "policy-value" and way.startswith("weights='uniform'"):
        return lambda: PolicyValue(log, log.arms[0]).fit(weights="uniform")
    codes = np.arange(log.n_arms) if target in ("arm-means", "winner") else np.array([1, 0])
    question = Question(profile_of(log), codes, contrast=target in ("contrast", "contrasts"))
    named = {verdict.name: verdict for verdict in arm_verdicts(question)}
    return lambda: arms.fit(**named[way].arguments)


@pytest.mark.parametrize("name", ZOO)
def test_every_alternative_that_a_refusal_names_works(name: str) -> None:
    log = log_of(name)
    for target, table in tables(log):
        for one in table.methods:
            if one.verdict.valid or one.verdict.baseline:
                continue
            try:
                one.run()
            except InvalidForLog as error:
                for way in error.alternatives:
                    call = alternative(log, target, one, way)
                    if call is not None:
                        quietly(call)
            except ParameterError:
                pass


class TestOrder:
    def test_known_propensities_come_first(self) -> None:
        for name in ("thompson", "every propensity"):
            assert recommend(log_of(name)).best.verdict.name == "aipw with joint weights"
            rows = [one.verdict.name for one in recommend(log_of(name)).methods if one.verdict.valid]
            assert rows.index("aipw with sqrt weights") > rows.index("aipw with uniform weights")
        table = recommend(log_of("every propensity"), decay=0.7).methods
        given = next(one for one in table if one.verdict.name == "aipw with two-point weights")
        assert (
            given.call
            == "ArmMeans(log).fit(estimator='aipw', weights='two-point', decay=0.7, stationary=True)"
        )

    def test_without_them_alee(self) -> None:
        for name in ("ucb", "no propensities", "estimated"):
            assert recommend(log_of(name)).best.verdict.name == "alee", name

    def test_the_chosen_arms_propensity(self) -> None:
        """Uniform weights come before ALEE, but where propensities are tiny or rewards have heavy tails."""
        assert recommend(log_of("chosen arm's")).best.verdict.name == "aipw with uniform weights"
        rng = np.random.default_rng(3)
        base = log_of("chosen arm's").arrays
        for reward, least, first in (
            (rng.normal(size=200), 0.1, "aipw with uniform weights"),
            (100.0 * base.reward, 0.1, "aipw with uniform weights"),
            (rng.choice([-1.0, 1.0], 200) * np.exp(2.0 * np.abs(rng.normal(size=200))), 0.1, "alee"),
            (np.exp(2.0 * rng.normal(size=200)), 0.1, "aipw with uniform weights"),
            (rng.normal(size=200), 5e-4, "alee"),
        ):
            propensity = np.where(np.arange(200) == 7, least, base.propensity)
            arrays = LogArrays(action=base.action, reward=reward, propensity=propensity)
            log = AdaptiveLog.from_arrays(arrays, arms=("a", "b"))
            assert recommend(log).best.verdict.name == first
            assert recommend(log, "contrast").best.verdict.name == first
        contexts = recommend(log_of("chosen arm's, contexts")).best.verdict
        assert contexts.name == "aipw with uniform weights"
        assert says(contexts.warning, propensities.UNSETTLED)
        assert recommend(log_of("estimated, contexts")).best.verdict.name == "aipw with uniform weights"

    def test_contexts_that_may_move_propensities(self) -> None:
        """Weights made from propensities that follow contexts would reweight the contexts."""
        table = {one.verdict.name: one.verdict for one in recommend(log_of("contexts")).methods}
        assert recommend(log_of("contexts")).best.verdict.name == "aipw with uniform weights"
        assert "contexts" not in "; ".join(table["aipw with sqrt weights"].assumes)
        assert recommend(log_of("thompson in groups")).best.verdict.name == "aipw with joint weights"

    def test_a_design_that_does_not_adapt(self) -> None:
        assert recommend(log_of("no propensities, fixed")).best.verdict.name == "sample-mean"
        assert recommend(log_of("no propensities, fixed")).fit().correction is None

    @pytest.mark.parametrize(
        ("epsilon", "place", "claim"),
        [
            (0.01, "first", sample_means.GUARANTEED),
            (0.3, "later", sample_means.LONG),
            (5.0, "last", sample_means.VACUOUS),
        ],
    )
    def test_max_information_is_weighed_against_alee(self, epsilon: float, place: str, claim: Claim) -> None:
        guarantee = PrivacyGuarantee(epsilon=epsilon)
        log = user_log("none", rounds=1000, guarantee=guarantee, reward_guarantee=guarantee)
        methods = [one for one in recommend(log).methods if one.verdict.valid]
        names = [one.verdict.name for one in methods]
        where = names.index("sample-mean with corrected columns")
        assert (where == 0) == (place == "first")
        assert (where == len(names) - 1) == (place == "last")
        assert says(methods[where].verdict.reason, claim)
        assert default_estimator(log).estimator == ("sample-mean" if place == "first" else "alee")

    def test_the_ratio_is_that_of_the_intervals(self) -> None:
        """For normal intervals of one standard deviation, up to that of ALEE being its own arm's."""
        log = log_of("guarantee")
        correction = correction_for(log)
        assert correction is not None
        means = ArmMeans(log).fit("sample-mean", test="normal")
        alee = ArmMeans(log).fit("alee")
        corrected = means.conf_int_corrected().to_numpy() @ [-1.0, 1.0]
        lengths = corrected / (alee.conf_int().to_numpy() @ [-1.0, 1.0])
        assert length_ratio(Question(profile_of(log), np.array([0, 1])), correction) == pytest.approx(
            lengths.max(), rel=1e-6
        )

    def test_stopping_that_the_data_chose(self) -> None:
        table = recommend(log_of("thompson"), stopping="data-chosen")
        assert table.best.verdict.name == "betting sequence on sample means"
        assert all("sequence" in one.verdict.name for one in table.methods if one.verdict.valid)
        with pytest.raises(
            InvalidForLog,
            match=wording(recommendations.STOPPED_BY_DATA) + "; possible alternatives: betting sequence",
        ):
            table.fit("aipw with sqrt weights")

    def test_small_propensities_are_a_caution(self) -> None:
        assert "about 90% at 1,000" in recommend(log_of("thompson")).best.verdict.warning
        assert recommend(log_of("uniform")).best.verdict.warning == ""

    def test_nothing_is_valid(self) -> None:
        table = recommend(log_of("linucb"))
        with pytest.raises(
            InvalidForLog, match="any method for arm-means.*" + wording(context_claims.BY_DESIGN)
        ):
            table.fit()
        assert "none is valid" in repr(table)
        assert "none is valid" in str(table)


class TestStability:
    def test_what_designs_say(self) -> None:
        stable, unstable = profile_of(log_of("ucb")).stability, profile_of(log_of("thompson")).stability
        assert stable is not None
        assert unstable is not None
        assert (stable.stable, unstable.stable) == (True, False)
        assert stable.source
        assert unstable.condition
        assert profile_of(log_of("linucb")).stability is None
        assert profile_of(log_of("mixture")).stability is None
        assert designs.UCB(width=1.9).traits.stability is None

    @pytest.mark.parametrize(
        ("name", "label"),
        [("ucb", "asymptotic"), ("thompson", "not valid"), ("no propensities", "not valid")],
    )
    def test_sample_means(self, name: str, label: str) -> None:
        found = {one.verdict.name: one.verdict for one in recommend(log_of(name)).methods}
        assert found["sample-mean"].label == label

    @pytest.mark.parametrize(("variation", "best"), [(0.02, "sample-mean"), (0.4, "alee")])
    def test_re_simulated_counts_decide(self, variation: float, best: str) -> None:
        table = recommend(log_of("ucb"), stability=variation)
        assert table.best.verdict.name == best
        reason = {x.verdict.name: x for x in table.methods}["sample-mean"].verdict.reason
        assert says(reason, sample_means.VARIATION, variation=variation)
        assert "Arm counts" in str(table)


class TestPrinting:
    def test_every_form(self) -> None:
        table = recommend(log_of("private ucb"))
        text, frame = str(table), table.frame
        assert list(frame) == ["method", "label", "length", "call", "reason", "assumes", "warning"]
        assert len(frame) == len(table.methods)
        for name in frame["method"]:
            assert name in text
        assert "First choice   ArmMeans(log).fit(estimator=" in text
        assert "epsilon = 0.1" in text
        summary = table.summary()
        assert summary.as_markdown().count("\n| ") == len(frame) + len(table.facts) + 5
        assert "<td>" in table._repr_html_()
        assert r"\begin{tabular}" in summary.as_latex()

    def test_notes_are_shared(self) -> None:
        table = recommend(log_of("ucb"))
        assert len(table.explain().notes) < len(table.methods) / 2
        assert all(one.verdict.reason[1:] in " ".join(table.explain().notes) for one in table.methods)

    @pytest.mark.parametrize("name", ["ucb", "thompson", "epsilon-greedy"])
    def test_at_most_six_lines_are_under_the_table(self, name: str) -> None:
        table = recommend(log_of(name))
        below = str(table).rpartition("==\n")[2].splitlines()
        cautions = [line for label, text in table.summary().lines if label == "Caution" for line in (text,)]
        assert len(below) <= 6 or cautions
        assert max(map(len, str(table).splitlines())) <= 80
        assert below[-1].split() == ["More", "recommend(...).explain()"]
        assert table.summary().notes == ()


@pytest.mark.parametrize(
    ("target", "arguments", "message"),
    [
        ("means", {}, "target must be one of 'arm-means'"),
        ("arm-means", {"policy": "a"}, "policy does not apply to target='arm-means'"),
        ("policy-value", {}, "requires policy="),
        ("cate", {}, "requires by="),
        ("cate", {"by": "site", "formula": "~ site"}, "not both"),
        ("arm-means", {"stopping": "maybe"}, "stopping must be one of 'fixed', 'data-chosen'"),
        ("arm-means", {"stability": "yes"}, "a result of audit.stability"),
        ("arm-means", {"stability": math.nan}, "stability"),
        ("arm-means", {"decay": "fit"}, "fixed before data collection"),
        ("arm-means", {"arms": ["z"]}, "there is no arm 'z'"),
        ("contrast", {"treatment": "z", "control": "a"}, "there is no arm 'z'"),
    ],
)
def test_wrong_arguments(target: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        recommend(log_of("contexts"), target, **arguments)


def test_the_decay_that_the_design_states_serves_projections_too() -> None:
    log = user_log(design=designs.Thompson(floor=(0.1, 0.2)).record(), context=True)
    rows = recommend(log, "cate", formula="~ age").frame.set_index("method")
    assert rows.loc["projection with two-point weights", "label"] == "asymptotic"


def test_a_decaying_exploration_is_a_floor_that_falls() -> None:
    env = BernoulliArms([0.4, 0.6])
    log = designs.EpsilonGreedy(exploration=1.0, decay=0.5).run(env, horizon=300, rng=1)
    table = {one.verdict.name: one for one in recommend(log).methods}
    found = table["aipw with two-point weights"].run()
    assert says(found.notes, weighted_arms.TWO_POINT_DECAY, decay=0.5)
    steady = designs.EpsilonGreedy(exploration=0.2).run(env, horizon=300, rng=1)
    assert (
        "not valid" in recommend(steady).frame.set_index("method").loc["aipw with two-point weights", "label"]
    )


def test_what_is_recommended_does_not_call_itself_naive() -> None:
    log = log_of("ucb")
    table = recommend(log, stability=0.02)
    assert table.best.verdict.name == "sample-mean"
    result = table.fit()
    assert says(result.notes, sample_means.VARIATION, variation=0.02)
    assert not says(result.notes, sample_means.NAIVE)
    assert result.validity == "asymptotic"
    plain = ArmMeans(log).fit("sample-mean")
    assert says(plain.notes, sample_means.LONG_RUNS)
    assert plain.validity == "asymptotic"
    assert ArmMeans(log_of("thompson")).fit("sample-mean").validity == "not valid"


def test_an_unknown_method() -> None:
    with pytest.raises(ParameterError, match="there is no method 'wald'; available"):
        recommend(log_of("uniform")).fit("wald")


def test_the_records_of_mixtures_name_both_designs() -> None:
    record = designs.Mixture(designs.LinUCB(), 0.2).record()
    log = user_log("all", design=record)
    verdicts = {one.verdict.name: one.verdict for one in recommend(log).methods}
    assert says(verdicts["alee"].reason, context_claims.BY_DESIGN, design="Mixture over LinUCB")
    assert verdicts["aipw with uniform weights"].valid
    assert says(verdicts["aipw with sqrt weights"].reason, weighted_arms.MIXES_CONTEXTS)
    with pytest.raises(
        InvalidForLog,
        match=wording(weighted_arms.MIXES_CONTEXTS) + ("; possible alternatives: aipw with uniform"),
    ):
        ArmMeans(log).fit(weights="sqrt")


def test_weights_by_propensities_that_follow_contexts_are_biased() -> None:
    """Two contexts, one arm drawn with .9 or .1: the mean is 1/2, the sqrt-weighted limit 3/4.

    Weights by the propensities of the round before are right, whether the log has the contexts or not.
    """
    rng = np.random.default_rng(5)
    site = rng.integers(0, 2, 20_000)
    share = np.where(site == 1, 0.9, 0.1)
    action = (rng.random(20_000) < share).astype(np.int64)
    for context in ({"site": site}, {}):
        arrays = LogArrays(
            action=action,
            reward=site.astype(float),
            propensity=np.where(action == 1, share, 1 - share),
            propensities=np.column_stack([1 - share, share]),
            context=context,
        )
        log = AdaptiveLog.from_arrays(arrays, arms=("a", "b"))
        wrong = AdaptiveLog.from_arrays(arrays, arms=("a", "b"), context_free=True)
        assert ArmMeans(log, ["b"]).fit().estimate[0] == pytest.approx(0.5, abs=0.02)
        assert ArmMeans(log, ["b"]).fit("aipw", "sqrt").estimate[0] == pytest.approx(0.5, abs=0.02)
        assert ArmMeans(wrong, ["b"]).fit("aipw", "sqrt").estimate[0] == pytest.approx(0.75, abs=0.02)
        policy = PolicyValue(wrong, "b").fit(weights="stable-variance", contextual=False)
        assert policy.estimate[0] == pytest.approx(0.75, abs=0.02)
    lagged = PolicyValue(log, "b").fit(stationary=True)
    assert lagged.weights == "stable-variance, non-contextual"
    assert lagged.estimate[0] == pytest.approx(0.5, abs=0.02)
