"""The metrics of the service, for Prometheus."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from emoglot.serving.batcher import Item

# With several workers, each writes to this folder, and the one that is asked adds up; read when prometheus_client is
# imported.
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"

_LATENCIES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class ServiceMetrics:
    """All counters of one process."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        self.requests = Counter("emoglot_requests", "Requests answered.", ("path", "status"), registry=registry)
        self.seconds = Histogram(
            "emoglot_request_seconds", "Time to answer a request.", ("path",), buckets=_LATENCIES, registry=registry
        )
        self.texts = Counter("emoglot_texts", "Texts scored.", registry=registry)
        self.characters = Counter("emoglot_characters", "Characters of the texts scored.", registry=registry)
        self.batch_size = Histogram("emoglot_batch_texts", "Texts scored together.", buckets=_SIZES, registry=registry)
        self.batch_seconds = Histogram(
            "emoglot_batch_seconds", "Time to score a batch.", buckets=_LATENCIES, registry=registry
        )
        self._depth = Gauge(
            "emoglot_queue_texts", "Texts waiting or being scored.", registry=registry, multiprocess_mode="livesum"
        )

    def on_batch(self, items: Sequence[Item], seconds: float) -> None:
        """Count a scored batch."""
        self.texts.inc(len(items))
        self.characters.inc(sum(len(item.text) for item in items))
        self.batch_size.observe(len(items))
        self.batch_seconds.observe(seconds)

    def on_depth(self, depth: int) -> None:
        """Record the length of the queue."""
        self._depth.set(depth)

    def render(self) -> bytes:
        """Return all metrics in Prometheus' text format, including those of other workers."""
        if SHARED_FOLDER not in os.environ:
            return generate_latest(self._registry)
        _forget_the_dead(Path(os.environ[SHARED_FOLDER]))
        everybody = CollectorRegistry()
        MultiProcessCollector(everybody)  # type: ignore[no-untyped-call]
        return generate_latest(everybody)


def _forget_the_dead(folder: Path) -> None:
    """Remove the queue length of workers that were killed, which could not set it to 0."""
    for path in folder.glob("gauge_live*_*.db"):
        process = int(path.stem.rpartition("_")[2])
        try:
            os.kill(process, 0)  # signal 0 only checks that the process exists
        except ProcessLookupError:
            mark_process_dead(process)  # type: ignore[no-untyped-call]
