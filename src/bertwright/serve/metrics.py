"""Numbers of a running server, in the format of Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.responses import Response

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)
_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Metrics:
    """The metrics of one application."""

    def __init__(self, waiting: Callable[[], int]) -> None:
        """`waiting` gives the requests that wait."""
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "bertwright_requests", "Requests that were answered.", ("path", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "bertwright_request_seconds",
            "From the header of a request to its answer.",
            ("path",),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._passes = Histogram(
            "bertwright_pass_seconds", "Passes of a model.", buckets=_SECONDS, registry=self._registry
        )
        self._of_pass = Histogram(
            "bertwright_pass_requests", "Requests in a pass.", buckets=_COUNTS, registry=self._registry
        )
        self._texts = Counter("bertwright_texts", "Texts that models have read.", registry=self._registry)
        gauge = Gauge("bertwright_waiting_requests", "Requests that wait or are computed.", registry=self._registry)
        gauge.set_function(waiting)

    def count_request(self, path: str, status: int, seconds: float) -> None:
        """Count a request; `path` is one of the server's own, whatever the client has asked for."""
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def count_pass(self, requests: int, texts: int, seconds: float) -> None:
        """Count a pass of a model."""
        self._passes.observe(seconds)
        self._of_pass.observe(requests)
        self._texts.inc(texts)

    def response(self) -> Response:
        """All metrics."""
        return Response(generate_latest(self._registry), headers={"content-type": CONTENT_TYPE_LATEST})
