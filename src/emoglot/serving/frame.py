"""Adds security headers and metrics to every answer."""

from __future__ import annotations

import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from emoglot.serving.metrics import ServiceMetrics

# Nothing is loaded from other hosts, and the page is not shown inside other pages.
POLICY = "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


class Frame:
    """Middleware that adds security headers to every answer and counts it in the metrics."""

    def __init__(self, app: ASGIApp, metrics: ServiceMetrics, paths: frozenset[str]) -> None:
        self._app = app
        self._metrics = metrics
        self._paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and its answer back with headers."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Unknown paths are counted as one, else requests could fill the memory with counters.
        path = scope["path"] if scope["path"] in self._paths else "other"
        # FastAPI does not answer HEAD: it is handled as GET, and the server omits the body.
        asked = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
        status = 500
        began = time.perf_counter()

        async def send_framed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                present = {name for name, _ in message["headers"]}
                added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *(item for item in added if item[0] not in present)]
            await send(message)

        try:
            await self._app(asked, receive, send_framed)
        finally:
            self._metrics.requests.labels(path, str(status)).inc()
            self._metrics.seconds.labels(path).observe(time.perf_counter() - began)
