"""The HTTP protocol of uvicorn, with limits on the headers of a request and an answer to every complete request.

uvicorn limits neither the size of headers nor the time they take, nor the time in which a client reads its answers. It
does not answer a client that closes its half of the connection, drops complete requests that are followed by garbage,
and loses the body of a request to upgrade the connection, such as one of `curl --http2`. Besides the callbacks of
asyncio and httptools, the class below uses `cycle`, `pipeline`, `flow`, `url`, `headers`, `send_400_response`,
`on_response_complete` and `_unset_keepalive_if_required` of uvicorn. These are not public, so pyproject.toml limits the
version; `tests/serving/test_connections.py` checks the behaviour.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Sized

import httptools
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# The state of the application has the limits; that of a request has a future that is done when its client disconnects.
# Asking the protocol for this in a task would take a tenth of the time of a short text.
MAX_HEADERS, MAX_SECONDS, GONE = "max_headers", "max_seconds", "gone"

SLOWEST_READER = 2**20  # bytes of its answers that a client must read within MAX_SECONDS, if there are so many
GRACE = 0.2  # seconds to wait for bytes in transit
_RESPONSE = b"HTTP/1.1 %s\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
_PROBE = b"HTTP/1.1 100 Continue\r\n\r\n"  # HTTP/1.1 clients must accept it before the answer


class _Flow(FlowControl):
    """Reads nothing more while a request waits for the answers to earlier ones.

    uvicorn reads on after each answer, so that a client could send requests faster than they are answered.
    """

    def __init__(self, transport: asyncio.Transport, pipeline: Sized) -> None:
        super().__init__(transport)
        self._pipeline = pipeline

    def resume_reading(self) -> None:
        if not self._pipeline:
            super().resume_reading()


class LimitedProtocol(HttpToolsProtocol):
    """One connection. If nothing more can be read, complete requests are answered before it is closed."""

    _timer: asyncio.TimerHandle | None = None  # while waiting for headers
    _reader_timer: asyncio.TimerHandle | None = None  # while waiting for the client to read
    _in_headers = False
    _header_bytes = 0  # in chunks that contain only headers
    _parsed_bytes = 0  # of complete headers
    _unanswered = 0  # requests whose headers are complete
    _is_ending = False  # nothing more is read
    _last_words = b""  # what is sent after the last answer
    _is_shutting_down = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self.flow = _Flow(transport, self.pipeline)
        transport.set_write_buffer_limits(0)  # `pause_writing` is called whenever an answer waits for its client
        self._gone = self.loop.create_future()
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Report that the client has disconnected."""
        self._stop_waiting()
        self._stop_waiting_for_reader()
        self._gone.set_result(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received data; reject headers that are too large."""
        if self._is_ending:
            return
        # A request that begins within this chunk is counted from the next chunk on, since its position is not known.
        self._header_bytes += len(data) if self._in_headers else 0
        self._feed(data)
        # uvicorn stops its idle timer at any byte, even if no request begins.
        is_idle = self.cycle is not None and self.cycle.response_complete and self.timeout_keep_alive_task is None
        if is_idle and self._timer is None and not self.transport.is_closing():
            self._await_headers()
        if self._in_headers and self._header_bytes > self.app_state[MAX_HEADERS]:
            self._refuse_headers()

    def _feed(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as error:
            if self._is_upgrade():
                self._parse_without_upgrade(data[error.args[0] :])
            else:  # CONNECT
                self.send_400_response("this method is not supported")
        except httptools.HttpParserError:
            self.logger.warning("Invalid HTTP request received.")
            self.send_400_response("Invalid HTTP request received.")

    def _is_upgrade(self) -> bool:
        return bool(self.parser.should_upgrade()) and self.parser.get_method() != b"CONNECT"

    def _parse_without_upgrade(self, rest: bytes) -> None:
        """Parse a request again without its header `upgrade`, which a server may ignore: the parser skips the body."""
        lines = [b"%s %s HTTP/1.1" % (self.parser.get_method(), self.url)]
        lines += [b"%s: %s" % header for header in self.headers if header[0] != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as in uvicorn
        self._feed(b"\r\n".join([*lines, b"", b""]) + rest)

    def eof_received(self) -> bool:  # type: ignore[override]  # as asyncio allows
        """Answer complete requests: the client may have closed only its half of the connection."""
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
        """Reject headers that are too large, even in one chunk."""
        self._parsed_bytes += len(name) + len(value)
        if self._parsed_bytes > self.app_state[MAX_HEADERS]:
            raise ValueError("the headers are too large")  # stops the parser, and uvicorn sends a 400
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Stop the timer; the application limits the body."""
        if self._is_upgrade():
            return
        self._in_headers = False
        self._stop_waiting()
        super().on_headers_complete()
        self._unanswered += 1
        self.cycle.keep_alive = self.cycle.keep_alive and not self._is_shutting_down

    def on_message_complete(self) -> None:
        """Resume reading, which a large body pauses; otherwise a disconnect would not be noticed."""
        if self._is_upgrade():
            return
        super().on_message_complete()
        self.flow.resume_reading()

    def on_response_complete(self) -> None:
        """Close the connection after the last answer, if nothing more can be read."""
        self._unanswered -= 1
        if self._is_ending and not self._unanswered:
            self._close()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer invalid HTTP with 400, after the answers to earlier requests."""
        if self._parsed_bytes > self.app_state[MAX_HEADERS]:
            self._refuse_headers()
        else:
            self._refuse(b"400 Bad Request", msg)

    def pause_writing(self) -> None:
        """Wait for the client to read."""
        super().pause_writing()
        self._await_reader()

    def resume_writing(self) -> None:
        """Stop waiting: the client has read everything."""
        self._stop_waiting_for_reader()
        super().resume_writing()

    def shutdown(self) -> None:
        """Close an idle connection after reading requests in transit."""
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

    def _await_reader(self) -> None:
        unread = self.transport.get_write_buffer_size()
        self._reader_timer = self.loop.call_later(self.app_state[MAX_SECONDS], self._check_reader, unread)

    def _stop_waiting_for_reader(self) -> None:
        if self._reader_timer:
            self._reader_timer.cancel()
            self._reader_timer = None

    def _check_reader(self, before: int) -> None:
        """Disconnect a client that does not read its answers, which would stay in memory."""
        if self.transport.get_write_buffer_size() > before - SLOWEST_READER:
            self.transport.abort()
        else:
            self._await_reader()

    def _give_up(self) -> None:
        if self.flow.read_paused:  # the client was not slow
            self._await_headers()
        else:
            seconds = self.app_state[MAX_SECONDS]
            self._refuse(b"408 Request Timeout", f"a request must arrive within {seconds:g} seconds")

    def _refuse_headers(self) -> None:
        size = self.app_state[MAX_HEADERS]
        self._refuse(b"431 Request Header Fields Too Large", f"the headers of a request may have at most {size} bytes")

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
            self._unanswered -= 1  # the rest of its body will not arrive
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
        """Close the connection if the probe failed: then the client has closed all of it, not only its half."""
        if not self.transport.is_closing():
            connection = self.transport.get_extra_info("socket")
            if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                self.transport.abort()
