"""Metrics of the service for Prometheus, none of which concerns an arm, an outcome or a participant."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from adaptinf.errors import MissingDependencyError

try:
    from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.multiprocess import MultiProcessCollector
    from prometheus_client.registry import Collector
except ImportError as error:
    raise MissingDependencyError("a trial over HTTP", "prometheus-client", "serve") from error

SHARED = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable that names the folder in which workers add up their figures."""
MEDIA = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500)
NONE: Mapping[str, bool] = {}
_COUNTS = ("rounds", "horizon", "pending", "erased", "rows")


class Figures:
    """Counters and histograms of one service, added up over its workers."""

    def __init__(self) -> None:
        # Without further labels: requests by call would show how many participants have been enrolled, which
        # is told only to those who have a token.
        own = self._own = CollectorRegistry()
        self.answers = Counter("adaptinf_answers", "Answers by HTTP status", ["status"], registry=own)
        self.seconds = Histogram("adaptinf_seconds", "Time to an answer", buckets=_SECONDS, registry=own)
        self.group_seconds = Histogram(
            "adaptinf_group_seconds", "Time of a transaction", buckets=_SECONDS, registry=own
        )
        self.group_size = Histogram(
            "adaptinf_group_size", "Requests in a transaction", buckets=_SIZES, registry=own
        )
        self.failures = Counter("adaptinf_failures", "Failed transactions", ["kind"], registry=own)
        self.hook_failures = Counter(
            "adaptinf_webhook_failures", "Failed attempts to send a webhook", registry=own
        )
        self.unlogged = Counter("adaptinf_unlogged", "Lines omitted from the access log", registry=own)

    def text(self, status: Mapping[str, int | str] | None = None, alarms: Mapping[str, bool] = NONE) -> bytes:
        """All metrics in Prometheus' format, with counts and alarms of a trial if its status is given."""
        own = generate_latest(self._all())
        if status is None:
            return own
        counts = CollectorRegistry()
        counts.register(_Counts(status, alarms))
        return own + generate_latest(counts)

    def _all(self) -> CollectorRegistry:
        """The figures of this process, or the sums over all workers."""
        if SHARED not in os.environ:
            return self._own
        every = CollectorRegistry()
        MultiProcessCollector(every)  # type: ignore[no-untyped-call]
        return every


class _Counts(Collector):
    """Counts and alarms of a trial, which are the same in every worker and are not stored by any of them."""

    def __init__(self, status: Mapping[str, int | str], alarms: Mapping[str, bool]) -> None:
        self._status, self._alarms = status, alarms

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Each as a gauge."""
        for name in (name for name in _COUNTS if name in self._status):
            what = f"{name.capitalize()} of the trial"
            yield GaugeMetricFamily(f"adaptinf_trial_{name}", what, float(self._status[name]))
        opened = float(self._status["state"] == "open")
        yield GaugeMetricFamily("adaptinf_trial_open", "Whether participants can be assigned", opened)
        if self._alarms:
            told = GaugeMetricFamily("adaptinf_trial_alarm", "Whether an alarm is raised", labels=["alarm"])
            for name, raised in self._alarms.items():
                told.add_metric([name], float(raised))
            yield told
