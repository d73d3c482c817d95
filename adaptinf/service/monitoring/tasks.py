"""Background tasks: the checks that raise alarms, and the webhooks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from adaptinf.service.figures import Figures
from adaptinf.service.monitoring.alarms import Watch
from adaptinf.service.monitoring.webhooks import Hook
from adaptinf.service.settings import Settings
from adaptinf.service.writer import Writer


@asynccontextmanager
async def watched(writer: Writer, figures: Figures, settings: Settings) -> AsyncIterator[None]:
    """Raise alarms and send webhooks until the service stops."""
    hooks = [Hook(writer, figures, one) for one in settings.webhooks]
    for hook in hooks:
        await hook.begin()
    runs = [hook.run() for hook in hooks]
    if settings.alarms is not None:
        runs.append(Watch(writer, figures, settings.alarms).run())
    tasks = [asyncio.create_task(run) for run in runs]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
