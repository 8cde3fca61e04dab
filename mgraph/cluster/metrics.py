"""Add metrics to the Prometheus endpoints of Dask's scheduler and workers, where prometheus_client is installed.

Dask serves the registry of its process, so that a collector in it is all that is needed. A process may have several
workers: their metrics are summed.
"""

from __future__ import annotations

import importlib.util
import threading
import time
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mgraph.cluster.status import plugin_status, stored_objects

Families = Callable[[list[Any]], Iterator[Any]]


class CallCounts:
    """Count the calls that ranks of a worker have ended, their seconds and failures, by job."""

    def __init__(self) -> None:
        # A call that was aborted may end while the next one runs.
        self._lock = threading.Lock()
        # By metric, then job.
        self.totals: dict[str, dict[str, float]] = {name: defaultdict(float) for name in TOTALS}

    @contextmanager
    def counted(self, job: str) -> Iterator[None]:
        """Count a call when it ends."""
        started = time.perf_counter()
        failures = 1
        try:
            yield
            failures = 0
        finally:
            added = (1, time.perf_counter() - started, failures)
            with self._lock:
                for total, more in zip(self.totals.values(), added, strict=True):
                    total[job] += more


TOTALS = {
    "mgraph_calls": "Calls that ranks have ended",
    "mgraph_call_seconds": "Seconds of these calls",
    "mgraph_call_failures": "Calls of ranks that have failed",
}
_lock = threading.Lock()
# Those that are registered in this process, by what they collect.
_collectors: dict[Families, _Collector] = {}


class _Collector:
    """Collect the metrics of all plugins of a kind in this process."""

    def __init__(self, families: Families) -> None:
        self.plugins: weakref.WeakSet[Any] = weakref.WeakSet()
        self._families = families

    def collect(self) -> Iterator[Any]:
        return self._families(list(self.plugins))


def publish_metrics(plugin: Any, families: Families) -> None:
    """Publish the metrics of a plugin, if prometheus_client is installed."""
    if importlib.util.find_spec("prometheus_client") is None:
        return
    import prometheus_client

    with _lock:
        if families not in _collectors:
            _collectors[families] = _Collector(families)
            prometheus_client.REGISTRY.register(_collectors[families])
        _collectors[families].plugins.add(plugin)


def withdraw_metrics(plugin: Any) -> None:
    """Publish the metrics of a plugin no longer."""
    with _lock:
        for collector in _collectors.values():
            collector.plugins.discard(plugin)


def of_ranks(plugins: list[Any]) -> Iterator[Any]:
    """Yield the metrics of the ranks of workers."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    stored = [row for plugin in plugins for row in stored_objects(plugin)]
    counts = GaugeMetricFamily("mgraph_objects", "Graphs and results that ranks store", labels=["kind"])
    sizes = GaugeMetricFamily("mgraph_object_bytes", "Bytes of their arrays", labels=["kind"])
    for kind in ("graph", "result"):
        found = [row["bytes"] for row in stored if row["kind"] == kind]
        counts.add_metric([kind], len(found))
        sizes.add_metric([kind], sum(found))
    yield counts
    yield sizes
    for name, about in TOTALS.items():
        family = CounterMetricFamily(name, about, labels=["job"])
        totals = [dict(plugin.counts.totals[name]) for plugin in plugins]
        for job in sorted({job for total in totals for job in total}):
            family.add_metric([job], sum(total.get(job, 0.0) for total in totals))
        yield family


def of_scheduler(plugins: list[Any]) -> Iterator[Any]:
    """Yield the metrics of a scheduler."""
    from prometheus_client.core import GaugeMetricFamily

    found = [plugin_status(plugin) for plugin in plugins]
    states = [lease["state"] for each in found for lease in each["leases"]]
    leases = GaugeMetricFamily("mgraph_leases", "Calls that hold a lease, or wait for one", labels=["state"])
    for state in ("held", "kept", "waiting"):
        leases.add_metric([state], states.count(state))
    yield leases
    yield GaugeMetricFamily("mgraph_gangs", "Gangs", value=sum(len(each["gangs"]) for each in found))
