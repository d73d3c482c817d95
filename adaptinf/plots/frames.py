"""A plot and its numbers: the plot shows a tidy frame, which users can also draw elsewhere."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

import pandas as pd

P = ParamSpec("P")
Q = ParamSpec("Q")
Drawn = TypeVar("Drawn", covariant=True)
Numbers = Callable[Concatenate[list[str], Q], pd.DataFrame]
"""Function that creates a frame, and accepts earlier problems, so that one error lists everything."""


class Picture(Protocol[P, Q, Drawn]):
    """A plotting function, with the numbers that it draws as its `frame`."""

    __name__: str
    frame: Callable[Q, pd.DataFrame]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Drawn:
        """Draw."""
        ...


def draws(numbers: Numbers[Q]) -> Callable[[Callable[P, Drawn]], Picture[P, Q, Drawn]]:
    """Attach to a plotting function the function that computes its numbers, as `frame`."""

    def with_frame(picture: Callable[P, Drawn]) -> Picture[P, Q, Drawn]:
        @functools.wraps(numbers)
        def frame(*args: Q.args, **kwargs: Q.kwargs) -> pd.DataFrame:
            return numbers([], *args, **kwargs)

        given = inspect.signature(numbers)
        named: Any = picture
        frame.__name__, frame.__qualname__ = "frame", f"{named.__name__}.frame"
        frame.__dict__["__signature__"] = given.replace(parameters=list(given.parameters.values())[1:])
        named.frame = frame
        return cast(Picture[P, Q, Drawn], named)

    return with_frame
