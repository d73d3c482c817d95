"""The pictures that a log and results draw of themselves: those of `adaptinf.plots`, which is above them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def drawn(picture: str, of: Any, ax: Axes | None, options: dict[str, Any]) -> Axes:
    """The axes with a picture of something, by the name of the picture."""
    # By the package's face, as a user does: pictures know what they draw, and not the other way round.
    import adaptinf

    axes: Axes = getattr(adaptinf.plots, picture)(of, ax, **options)
    return axes
