"""Contextual bandit logs in Vowpal Wabbit's text format: one action per line, or multi-line examples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any

import pandas as pd

from adaptinf.errors import ParameterError
from adaptinf.files import as_path
from adaptinf.formats.dsjson import unknown_names
from adaptinf.formats.transport import log_of, names_problems, numbered_lines
from adaptinf.formats.vw_events import Form, form_problems
from adaptinf.formats.vw_lines import Example, examples_of
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import refuse


def read_vw(
    path: str | PathLike[str],
    *,
    action_id: str | None = None,
    context: Iterable[str] | None = None,
    arms: Sequence[Any] | None = None,
    slot: int | None = None,
    reward_range: tuple[float, float] | None = None,
) -> AdaptiveLog:
    r"""Read a Vowpal Wabbit text file: ``--cb``, ``--cb_adf``, or one slot of ``--ccb_explore_adf``.

    Parameters
    ----------
    path : path
        Lines with an action, its cost and its probability, joined by colons, a bar, and features; or
        multi-line examples with one action per line and a blank line between examples.
    action_id : str, optional
        Namespace whose text names an action, such as ``"Action"`` for ``Action article=news``. By default,
        the label of an action is its number (``--cb``), or its position in the example, counted from 1, which
        is correct only if every example lists the same actions in the same order.
    context : iterable of str, optional
        Shared features to keep, such as ``"User.age"``, which is 0 if an example lacks it; or the text before
        ``=``, such as ``"User.city"`` for ``User city=Rome``, as labels. By default, all features that every
        example has are kept.
    arms : sequence of labels, optional
        All actions, if ``--cb`` included actions that were never played.
    slot : int, optional
        Slot of a conditional bandit, counted from 1: the log contains its choices only.
    reward_range : (float, float), optional
        Smallest and largest possible reward, that is, minus the cost.

    Returns
    -------
    AdaptiveLog
        A log with one round per example, in the order of the file. The reward is minus the cost. The
        propensity is that of the action that was played; such files do not contain those of the other
        actions.

    Raises
    ------
    ParameterError
        If the file cannot be read as UTF-8 text, or a feature is unknown.
    LogValidationError
        If examples are invalid (the message lists every problem; row 0 is the first): no label, labels for
        several actions, slates, continuous actions, or actions other than those of the first example.

    Notes
    -----
    As with `read_dsjson`, the log has ``'context_free': False`` if features that are not contexts of the log
    vary between examples, and each slot forms a separate log. If a slot's label has the probabilities of
    several actions, only that of the first, which was played, is used.

    References
    ----------
    Vowpal Wabbit wiki, "Contextual Bandit algorithms" and "Conditional Contextual Bandit".

    Examples
    --------
    >>> import adaptinf as ai
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "log.vw"
    >>> _ = path.write_text("1:-1:0.8 |User age:30\n2:0.5:0.2 |User age:41\n")
    >>> ai.formats.read_vw(path).frame
       t  action  reward  propensity  User.age
    0  1       1     1.0         0.8      30.0
    1  2       2    -0.5         0.2      41.0
    """
    names = None if context is None else [context] if isinstance(context, str) else list(context)
    problems = [] if names is None else names_problems("context", names)
    refuse("read_vw", problems + form_problems(Form(slot=slot)))
    place = as_path("read_vw", "path", path)
    lines = list(numbered_lines(place, "read_vw"))
    if not lines:
        raise ParameterError("read_vw", [f"{place} contains no examples"])
    with log_of(str(place)):
        examples = examples_of(lines, action_id, slot)
        columns = _contexts(examples, names)
        if clash := {"action", "reward", "propensity"} & set(columns):
            raise ParameterError("read_vw", [f"{place}: features must not be called {', '.join(clash)}"])
        log = AdaptiveLog(
            pd.DataFrame(
                {
                    "action": [example.played for example in examples],
                    "reward": [-example.cost for example in examples],
                    "propensity": [example.chance for example in examples],
                    **columns,
                }
            ),
            action="action",
            reward="reward",
            propensity="propensity",
            context=list(columns),
            arms=arms if arms is not None else examples[0].actions or None,
            reward_range=reward_range,
            about={"context_free": False if _hides_features(examples, set(columns)) else None},
        )
    return log.read_from(f"Vowpal Wabbit file {place.name}", [])


def _contexts(examples: list[Example], names: list[str] | None) -> dict[str, list[Any]]:
    """Columns for the features that were requested, or that every example has."""
    labels = [_labels(example) for example in examples]
    known = dict.fromkeys(name for example in examples for name in example.features)
    named = dict.fromkeys(name for found in labels for name in found)
    if names is None:
        plain = [name for name in known if all(name in example.features for example in examples)]
        names = [name for name in named if name not in known and all(name in found for found in labels)]
        names = [*(name for name in plain if name.partition("=")[0] not in names), *names]
    refuse("read_vw", unknown_names("event", names, [*known, *named]))
    return {
        name: [example.features.get(name, 0.0) for example in examples]
        if name in known
        else [found.get(name) for found in labels]
        for name in names
    }


def _labels(example: Example) -> dict[str, str]:
    """Labels of features ``text=label``, by text, if the text occurs only once in an example."""
    pairs = [name.partition("=")[::2] for name in example.features if "=" in name]
    names = [name for name, _ in pairs]
    return {name: label for name, label in pairs if names.count(name) == 1}


def _hides_features(examples: list[Example], kept: set[str]) -> bool:
    """Whether features that the policy may have used but the log lacks vary between examples."""
    seen = [
        (
            sorted(example.hidden),
            {
                name: value
                for name, value in example.features.items()
                if name not in kept and name.partition("=")[0] not in kept
            },
        )
        for example in examples
    ]
    return any(each != seen[0] for each in seen)
