"""The HTTP protocol of uvicorn, with an end to the headers of a request, in bytes and in time."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# The application's state says how many bytes and seconds; that of a request has a future that is done when nobody waits
# for its answer any more. To ask the protocol for that in a task would take a tenth of the time of a short text.
MAX_HEADERS, MAX_SECONDS, GONE = "max_headers", "max_seconds", "gone"

_RESPONSE = b"HTTP/1.1 %s\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"


class LimitedProtocol(HttpToolsProtocol):
    """Counts what comes in before the body, and how long that takes."""

    _timer: asyncio.TimerHandle | None = None  # while headers are awaited
    _in_headers = True
    _received = 0  # bytes of chunks that came while the headers were not complete
    _size = 0  # of the headers that are

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Await the first request."""
        super().connection_made(transport)
        self._gone = self.loop.create_future()
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Await nothing more."""
        self._stop_waiting()
        self._gone.set_result(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Refuse a header without an end: the parser gives one only when it is whole."""
        self._received += len(data)
        super().data_received(data)
        # A byte ends uvicorn's patience with an idle connection, though it may begin no request.
        is_idle = self.cycle is not None and self.cycle.response_complete and self.timeout_keep_alive_task is None
        if is_idle and self._timer is None and not self.transport.is_closing():
            self._await_headers()
        if not self._in_headers:
            self._received = 0
        elif self._received > self.app_state[MAX_HEADERS] and not self.transport.is_closing():
            size = self.app_state[MAX_HEADERS]
            self._refuse(b"431 Request Header Fields Too Large", b"the headers of a request may have %d bytes" % size)

    def on_message_begin(self) -> None:
        """Count anew."""
        self._in_headers, self._size = True, 0
        if self._timer is None:
            self._await_headers()
        super().on_message_begin()
        self.scope["state"][GONE] = self._gone

    def on_header(self, name: bytes, value: bytes) -> None:
        """Refuse too many headers."""
        self._size += len(name) + len(value)
        if self._size > self.app_state[MAX_HEADERS]:
            raise ValueError("the headers are too large")  # which uvicorn answers with 400
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Let the body come, which the application counts."""
        self._in_headers = False
        self._stop_waiting()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Read on: a large body stops that, and then nobody would notice that the client leaves."""
        super().on_message_complete()
        self.flow.resume_reading()

    def _await_headers(self) -> None:
        self._timer = self.loop.call_later(self.app_state[MAX_SECONDS], self._give_up)

    def _stop_waiting(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            seconds = f"{self.app_state[MAX_SECONDS]:g}".encode()
            self._refuse(b"408 Request Timeout", b"a request must arrive within %s seconds" % seconds)

    def _refuse(self, status: bytes, reason: bytes) -> None:
        message = b'{"detail":"%s"}' % reason
        self.transport.write(_RESPONSE % (status, len(message), message))
        self.transport.close()
