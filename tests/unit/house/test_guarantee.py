"""Privacy guarantees: validation, composition, and what implies what."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from adaptinf.errors import GuaranteeError, ParameterError
from adaptinf.guarantee import PrivacyGuarantee, parallel, sequential

BESIDE = partial(parallel, over="participants")


def test_defaults_are_pure_reward_level_central_and_standard() -> None:
    guarantee = PrivacyGuarantee(0.5)
    assert (guarantee.epsilon, guarantee.delta) == (0.5, 0.0)
    assert (guarantee.unit, guarantee.model, guarantee.notion) == ("reward", "central", "standard")
    assert guarantee.reasons == ()
    assert guarantee.is_pure


def test_numbers_become_floats_and_lists_become_tuples() -> None:
    guarantee = PrivacyGuarantee(epsilon=np.int64(1), delta=np.float32(0.5), reasons=["one"])  # type: ignore[arg-type]
    assert type(guarantee.epsilon) is float
    assert type(guarantee.delta) is float
    assert guarantee.reasons == ("one",)
    assert hash(guarantee) == hash(PrivacyGuarantee(1.0, 0.5, reasons=("one",)))


@pytest.mark.parametrize("epsilon", [-0.1, math.nan, "0.5", None, True])
def test_epsilon_out_of_range_is_refused(epsilon: object) -> None:
    with pytest.raises(ParameterError, match="epsilon must be"):
        PrivacyGuarantee(epsilon)  # type: ignore[arg-type]


@pytest.mark.parametrize("delta", [-1e-9, 1.0000001, math.inf, math.nan])
def test_delta_out_of_range_is_refused(delta: float) -> None:
    with pytest.raises(ParameterError, match="delta must be between 0 and 1"):
        PrivacyGuarantee(1.0, delta=delta)


def test_every_problem_is_listed_at_once() -> None:
    with pytest.raises(ParameterError) as caught:
        PrivacyGuarantee(-1, 2, "person", "remote", "vague", "because", 0)  # type: ignore[arg-type]
    assert len(caught.value.problems) == 7
    for name in ("epsilon", "delta", "unit", "model", "notion", "reasons", "rounds"):
        assert any(problem.startswith(name) for problem in caught.value.problems)


def test_infinite_epsilon_or_positive_delta_is_not_pure() -> None:
    assert not PrivacyGuarantee(math.inf).is_pure
    assert not PrivacyGuarantee(1.0, delta=1e-12).is_pure


def test_sequential_adds_epsilon_and_delta() -> None:
    whole = sequential(*[PrivacyGuarantee(0.1, 0.01, reasons=("a",)) for _ in range(10)])
    assert whole.epsilon == 1.0
    assert whole.delta == pytest.approx(0.1, rel=1e-15)
    assert whole.reasons == ("a",)
    assert PrivacyGuarantee(0.3).compose(
        PrivacyGuarantee(0.4), PrivacyGuarantee(0.5)
    ).epsilon == pytest.approx(1.2)


def test_sequential_caps_delta_at_one_and_keeps_infinity() -> None:
    whole = PrivacyGuarantee(math.inf, 0.7).compose(PrivacyGuarantee(1.0, 0.7))
    assert whole.epsilon == math.inf
    assert whole.delta == 1.0


def test_parallel_takes_the_maximum_of_each() -> None:
    both = parallel(
        PrivacyGuarantee(0.5, 1e-6, reasons=("a", "b")),
        PrivacyGuarantee(0.2, 1e-3, reasons=("b", "c")),
        over="participants",
    )
    assert (both.epsilon, both.delta) == (0.5, 1e-3)
    assert both.reasons == ("a", "b", "c")


def test_one_guarantee_composes_to_itself() -> None:
    guarantee = PrivacyGuarantee(0.5, 0.1, "record", "local", "anticipating", ("why",))
    assert (
        sequential(guarantee)
        == BESIDE(guarantee)
        == guarantee.compose()
        == guarantee.postprocess()
        == guarantee
    )


@pytest.mark.parametrize("combine", [sequential, BESIDE])
@pytest.mark.parametrize(
    ("field", "value"), [("unit", "record"), ("model", "local"), ("notion", "anticipating"), ("rounds", 3)]
)
def test_mixed_guarantees_are_refused_by_field(combine, field: str, value: object) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(GuaranteeError, match=f"differ in {field} ") as caught:
        combine(PrivacyGuarantee(1.0), PrivacyGuarantee(1.0, **{field: value}))  # type: ignore[arg-type]
    assert str(value) in str(caught.value)
    others = {"unit", "model", "notion", "rounds"} - {field}
    assert not any(f"{other} (" in str(caught.value) for other in others)


def test_all_differing_fields_are_named() -> None:
    with pytest.raises(GuaranteeError, match=r"differ in unit .*, model .*, notion"):
        sequential(PrivacyGuarantee(1.0), PrivacyGuarantee(1.0, 0.0, "record", "local", "anticipating"))


@pytest.mark.parametrize("combine", [sequential, BESIDE])
def test_nothing_to_compose_is_an_error(combine) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ParameterError, match="at least one"):
        combine()


def test_reward_level_follows_from_standard_guarantees_only() -> None:
    reward = PrivacyGuarantee(0.5, 1e-6, reasons=("why",))
    assert reward.reward_level() is reward
    assert PrivacyGuarantee(0.5, 1e-6, "record", reasons=("why",)).reward_level() == reward
    assert PrivacyGuarantee(0.5, unit="record", notion="anticipating").reward_level() is None
    assert PrivacyGuarantee(0.5, unit="reward", notion="anticipating").reward_level() is None


@pytest.mark.parametrize("epsilon", [0.0, 0.1, math.inf])
def test_json_round_trip(epsilon: float) -> None:
    guarantee = PrivacyGuarantee(epsilon, 1e-7, "record", "local", "anticipating", ("one", "two"), 4)
    text = json.dumps(guarantee.to_dict(), allow_nan=False)
    assert PrivacyGuarantee.from_dict(json.loads(text)) == guarantee


def test_from_dict_names_missing_and_unknown_fields() -> None:
    with pytest.raises(ParameterError) as caught:
        PrivacyGuarantee.from_dict({"eps": 1.0})
    assert len(caught.value.problems) == 2
    with pytest.raises(ParameterError, match="unit must be"):
        PrivacyGuarantee.from_dict({"epsilon": 1.0, "unit": "person"})


@pytest.mark.parametrize(
    ("guarantee", "text"),
    [
        (PrivacyGuarantee(0.5), "epsilon = 0.5, pure, per reward, central, standard"),
        (PrivacyGuarantee(1, 1e-5, "record"), "epsilon = 1, delta = 1e-05, per record, central, standard"),
        (
            PrivacyGuarantee(math.inf, 0.0, "record", "local", "anticipating"),
            "epsilon = inf, no guarantee, per record, local, anticipating",
        ),
        (
            PrivacyGuarantee(0.5).group(4),
            "epsilon = 2, pure, per person with at most 4 rounds (reward), central, standard",
        ),
    ],
)
def test_str_says_it_all(guarantee: PrivacyGuarantee, text: str) -> None:
    assert str(guarantee) == text


@pytest.mark.parametrize("over", ["epochs", "participants", "arms", "contexts"])
def test_parallel_is_told_what_settles_the_partition(over: str) -> None:
    assert parallel(PrivacyGuarantee(0.5), PrivacyGuarantee(0.2), over=over).epsilon == 0.5


def test_parallel_without_a_partition_or_over_an_unknown_one_is_refused() -> None:
    with pytest.raises(TypeError, match="over"):
        parallel(PrivacyGuarantee(0.5))  # type: ignore[call-arg]
    with pytest.raises(ParameterError, match="over must be"):
        parallel(PrivacyGuarantee(0.5), over="groups")


@pytest.mark.parametrize(
    ("guarantee", "over", "told"),
    [
        (PrivacyGuarantee(1.0, unit="record"), "contexts", r"epsilon = 1\.7 .*two largest"),
        (PrivacyGuarantee(1.0, unit="record"), "arms", "context in a record may determine its arm"),
        (PrivacyGuarantee(1.0, 1e-6), "arms", "requires delta = 0"),
        (PrivacyGuarantee(1.0).group(2), "epochs", "a person with several rounds may contribute to"),
    ],
)
def test_partitions_that_do_not_qualify_are_refused(
    guarantee: PrivacyGuarantee, over: str, told: str
) -> None:
    assert parallel(guarantee, over=over) == guarantee  # one mechanism is entered by every record
    other, third = (replace(guarantee, epsilon=epsilon) for epsilon in (0.7, 0.2))
    with pytest.raises(GuaranteeError, match=told):
        parallel(third, guarantee, other, over=over)


def test_counts_by_a_private_context_cost_the_two_largest() -> None:
    """Exact: one record leaves a group and enters another, and both noisy counts move."""
    epsilons = (1.0, 0.7, 0.2)
    loss = sum(sorted(epsilons)[-2:])  # of the outcome (-infinity, infinity): each count tells all it can
    counts, moved = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
    far = np.array([-50.0, 50.0, 0.0])
    ratio = sum(
        epsilon * (abs(at - b) - abs(at - a))
        for epsilon, at, a, b in zip(epsilons, far, moved, counts, strict=True)
    )
    assert ratio == pytest.approx(loss)
    assert ratio > max(epsilons)
