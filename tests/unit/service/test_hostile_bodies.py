"""Whatever is sent, to any call, by any role: one clear answer, no 5xx, and a trial that is whole."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from served import Served

from adaptinf.service.bodies import Names
from adaptinf.service.problems import PROBLEMS
from adaptinf.service.roles import CALLS, ROLES

TEXTS = st.text(st.characters(), max_size=8)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | TEXTS
    | st.sampled_from(["p1", 1, 1.0, "A", "open"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
NEARLY = st.dictionaries(st.sampled_from(sorted(Names)), VALUES, min_size=1, max_size=3)
BODIES = NEARLY | st.lists(NEARLY, max_size=3) | VALUES
RAW = BODIES.map(lambda body: json.dumps(body).encode()) | st.binary(max_size=40)
KEYS = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=10)
FINE = {200, *(status for status, _ in PROBLEMS.values() if status < 500)}


@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(call=st.sampled_from(CALLS), role=st.sampled_from(ROLES), body=RAW, key=KEYS)
def test_every_body_has_one_answer(served: Served, call: Any, role: str, body: bytes, key: str) -> None:
    headers = served.headers(role, key)
    response = served.client.request(call.method, call.path, content=body, headers=headers)
    assert response.status_code in FINE, response.text
    assert (response.status_code == 403) == (role not in call.roles)
    if response.status_code != 200:
        assert response.json()["title"] == PROBLEMS[response.json()["code"]][1]
    assert served.trial.status().state in ("open", "paused")


def test_the_trial_is_whole_after_strange_requests(served: Served) -> None:
    for number, unit in enumerate(["\x00", "\u202e", "🎲", "a\nb", "'", '"', "\\", "NaN"]):
        assert served.assign({"unit": unit}, f"k{number}").json()["id"] == number + 1
    assert served.trial.verify().rounds == 8
