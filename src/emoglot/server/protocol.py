"""The HTTP protocol of uvicorn, with an end to the headers of a request."""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEADERS = "max_headers"  # the application's state says how many bytes

_RESPONSE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n"
    b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
)


class LimitedProtocol(HttpToolsProtocol):
    """Counts what comes in before the body."""

    _in_headers = True
    _received = 0  # bytes of chunks that came while the headers were not complete
    _size = 0  # of the headers that are

    def data_received(self, data: bytes) -> None:
        """Refuse a header without an end: the parser gives one only when it is whole."""
        self._received += len(data)
        super().data_received(data)
        if not self._in_headers:
            self._received = 0
        elif self._received > self.app_state[MAX_HEADERS] and not self.transport.is_closing():
            self._refuse()

    def on_message_begin(self) -> None:
        """Count anew."""
        self._in_headers, self._size = True, 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Refuse too many headers."""
        self._size += len(name) + len(value)
        if self._size > self.app_state[MAX_HEADERS]:
            raise ValueError("the headers are too large")  # which uvicorn answers with 400
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Let the body come, which the application counts."""
        self._in_headers = False
        super().on_headers_complete()

    def _refuse(self) -> None:
        message = b'{"detail":"the headers of a request may have %d bytes"}' % self.app_state[MAX_HEADERS]
        self.transport.write(_RESPONSE % (len(message), message))
        self.transport.close()
