"""The HTTP protocol of uvicorn, with limits on the headers of a request and an answer to every complete request.

uvicorn limits neither the size of headers nor the time they take. It does not answer a client that closes its half of
the connection, and it drops complete requests that are followed by garbage. Besides the callbacks of asyncio and
httptools, the class below uses `cycle`, `pipeline`, `flow`, `send_400_response` and `on_response_complete` of uvicorn.
These are not public, hence the range of versions in pyproject.toml; `tests/serving/test_connections.py` checks others.
"""

from __future__ import annotations

import asyncio
import json
import socket

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# The application's state holds the limits; that of a request has a future that is done when nobody waits for its answer
# any more. To ask the protocol for that in a task would take a tenth of the time of a short text.
MAX_HEADERS, MAX_SECONDS, GONE = "max_headers", "max_seconds", "gone"

GRACE = 0.2  # seconds for bytes that are already on their way
_RESPONSE = b"HTTP/1.1 %s\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
_PROBE = b"HTTP/1.1 100 Continue\r\n\r\n"  # which any client of HTTP/1.1 must expect before the answer


class LimitedProtocol(HttpToolsProtocol):
    """One connection. Where nothing more can be read from it, what is complete is answered before it is closed."""

    _timer: asyncio.TimerHandle | None = None  # while headers are awaited
    _in_headers = False
    _header_bytes = 0  # in pieces that hold nothing else
    _parsed_bytes = 0  # of complete headers
    _unanswered = 0  # requests whose headers are complete
    _is_ending = False  # nothing more is read
    _last_words = b""  # what is sent after the last answer
    _is_shutting_down = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._gone = self.loop.create_future()
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Report that nobody waits for answers any more."""
        self._stop_waiting()
        self._gone.set_result(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what came in, and refuse headers that do not end."""
        if self._is_ending:
            return
        # A request that begins in the middle of this piece is counted from the next one on: no positions are known.
        self._header_bytes += len(data) if self._in_headers else 0
        super().data_received(data)
        # A byte ends uvicorn's patience with an idle connection, though it may begin no request.
        is_idle = self.cycle is not None and self.cycle.response_complete and self.timeout_keep_alive_task is None
        if is_idle and self._timer is None and not self.transport.is_closing():
            self._await_headers()
        if self._in_headers and self._header_bytes > self.app_state[MAX_HEADERS]:
            self._refuse_headers()

    def eof_received(self) -> bool:  # type: ignore[override]  # as asyncio allows
        """Answer what is complete: the client may have closed its half of the connection only."""
        self._end()
        if not self._unanswered:
            return False
        is_waiting = not self.pipeline and not self.cycle.response_started
        if is_waiting and self.cycle.scope["http_version"] == "1.1":
            self.transport.write(_PROBE)
            self.loop.call_later(GRACE, self._close_if_gone)
        return True

    def on_message_begin(self) -> None:
        """Count the headers of a request from 0."""
        self._in_headers, self._header_bytes, self._parsed_bytes = True, 0, 0
        if self._timer is None:
            self._await_headers()
        super().on_message_begin()
        self.scope["state"][GONE] = self._gone

    def on_header(self, name: bytes, value: bytes) -> None:
        """Refuse too many headers, also where they come in one piece."""
        self._parsed_bytes += len(name) + len(value)
        if self._parsed_bytes > self.app_state[MAX_HEADERS]:
            raise ValueError("the headers are too large")  # at which the parser stops, and uvicorn sends a 400
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Let the body come, which the application counts."""
        self._in_headers = False
        self._stop_waiting()
        super().on_headers_complete()
        self._unanswered += 1
        self.cycle.keep_alive = self.cycle.keep_alive and not self._is_shutting_down

    def on_message_complete(self) -> None:
        """Read on: a large body stops that, and then nobody would notice that the client leaves."""
        super().on_message_complete()
        if not self.pipeline:
            self.flow.resume_reading()

    def on_response_complete(self) -> None:
        """Close the connection after the last answer, if nothing more can be read."""
        self._unanswered -= 1
        if self._is_ending and not self._unanswered:
            self._close()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, after the answers to what was."""
        if self._parsed_bytes > self.app_state[MAX_HEADERS]:
            self._refuse_headers()
        else:
            self._refuse(b"400 Bad Request", msg)

    def shutdown(self) -> None:
        """Close an idle connection, but not before a request that has been sent is read."""
        self._is_shutting_down = True
        if self._unanswered:
            super().shutdown()
        else:
            self.loop.call_later(GRACE, self._close_if_idle)

    def _await_headers(self) -> None:
        self._timer = self.loop.call_later(self.app_state[MAX_SECONDS], self._give_up)

    def _stop_waiting(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        if self.flow.read_paused:  # it was not the client that was slow
            self._await_headers()
        else:
            seconds = self.app_state[MAX_SECONDS]
            self._refuse(b"408 Request Timeout", f"a request must arrive within {seconds:g} seconds")

    def _refuse_headers(self) -> None:
        size = self.app_state[MAX_HEADERS]
        self._refuse(b"431 Request Header Fields Too Large", f"the headers of a request may have {size} bytes")

    def _refuse(self, status: bytes, reason: str) -> None:
        message = json.dumps({"detail": reason}, separators=(",", ":")).encode()
        self._end(_RESPONSE % (status, len(message), message))

    def _end(self, last_words: bytes = b"") -> None:
        """Read nothing more; close the connection when all complete requests are answered."""
        if self._is_ending or self.transport.is_closing():
            return
        self._is_ending, self._last_words = True, last_words
        self._stop_waiting()
        if self._unanswered and self.cycle.more_body and not self.cycle.response_complete:
            self._unanswered -= 1  # the rest of its body will never come
            if self.pipeline:
                self.pipeline.popleft()
        if not self._unanswered:
            self._close()

    def _close(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(self._last_words)
            self.transport.close()

    def _close_if_idle(self) -> None:
        if not self._unanswered and not self._in_headers:
            self._close()

    def _close_if_gone(self) -> None:
        """Look whether the probe was refused: then the client has closed the connection, and not its half only."""
        if not self.transport.is_closing():
            connection = self.transport.get_extra_info("socket")
            if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                self.transport.abort()
