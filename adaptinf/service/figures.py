"""Figures of the service for Prometheus, none of which concerns an arm, an outcome or a participant."""

from __future__ import annotations

from collections.abc import Mapping

from adaptinf.errors import MissingDependencyError

try:
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
except ImportError as error:
    raise MissingDependencyError("a trial over HTTP", "prometheus-client", "serve") from error

MEDIA = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500)
NONE: Mapping[str, bool] = {}
_COUNTS = ("rounds", "horizon", "pending", "erased", "rows")


class Figures:
    """Counters and histograms of one service."""

    def __init__(self) -> None:
        # Without further labels: requests by call would show how many participants have been enrolled, which
        # is told only to those who have a token.
        own = self._own = CollectorRegistry()
        self.answers = Counter("adaptinf_answers", "Answers by HTTP status", ["status"], registry=own)
        self.seconds = Histogram("adaptinf_seconds", "Time to an answer", buckets=_SECONDS, registry=own)
        self.group_seconds = Histogram(
            "adaptinf_group_seconds", "Time of a transaction", buckets=_SECONDS, registry=own
        )
        self.group_size = Histogram("adaptinf_group_size", "Requests in one", buckets=_SIZES, registry=own)
        self.failures = Counter("adaptinf_failures", "Transactions that failed", ["kind"], registry=own)
        self.hook_failures = Counter(
            "adaptinf_webhook_failures", "Attempts to send a webhook that failed", registry=own
        )
        self.unlogged = Counter("adaptinf_unlogged", "Lines of the access log left out", registry=own)

    def text(self, status: Mapping[str, int | str] | None = None, alarms: Mapping[str, bool] = NONE) -> bytes:
        """All figures in Prometheus' format, with counts and alarms of a trial if its status is given."""
        if status is None:
            return generate_latest(self._own)
        counts = CollectorRegistry()
        for name in (name for name in _COUNTS if name in status):
            gauge = Gauge(f"adaptinf_trial_{name}", f"{name.capitalize()} of the trial", registry=counts)
            gauge.set(int(status[name]))
        opened = Gauge("adaptinf_trial_open", "Whether participants are assigned", registry=counts)
        opened.set(status["state"] == "open")
        if alarms:
            told = Gauge("adaptinf_trial_alarm", "Whether an alarm is raised", ["alarm"], registry=counts)
            for name, raised in alarms.items():
                told.labels(name).set(raised)
        return generate_latest(self._own) + generate_latest(counts)
