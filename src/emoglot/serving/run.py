"""Run the application with uvicorn, in one process or several."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import socket
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

import uvicorn
from uvicorn.supervisors import multiprocess

from emoglot.errors import UsageError
from emoglot.serving.app import create_app
from emoglot.serving.metrics import SHARED_FOLDER
from emoglot.serving.protocol import GRACE, LimitedProtocol
from emoglot.serving.service import load_model
from emoglot.serving.settings import Settings


def run(settings: Settings) -> None:
    """Serve until a signal arrives; then answer all accepted requests."""
    # Load the model here first, since errors in uvicorn or a worker would print a traceback.
    _check_address(settings.host, settings.port)
    model = load_model(settings)
    if settings.workers == 1:
        # uvicorn ends the process with the signal that it received, which systemd counts as success.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        server = Server(uvicorn.Config(create_app(settings, model), **_options(settings)))
        with suppress(KeyboardInterrupt):
            server.run()
        return
    del model  # every worker loads its own
    # Workers read the settings from the environment; a model of the hub is looked up only once.
    local = replace(settings, model=str(settings.model_folder or ""))
    os.environ.update(local.to_environment())
    # Metrics of several processes are added up in a folder.
    with tempfile.TemporaryDirectory(prefix="emoglot-") as folder:
        os.environ[SHARED_FOLDER] = folder
        config = uvicorn.Config("emoglot.serving.app:from_environment", factory=True, **_options(settings))
        Workers(config, [config.bind_socket()]).run()


class Server(uvicorn.Server):
    """Answers all clients that had connected when it was told to end.

    uvicorn resets connections that wait in the queue of the system at that moment. One that asyncio has accepted, but
    not passed on yet, would not learn of the end and be kept alive.
    """

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept what waits in the queue and close the listening sockets, then let all connections finish."""
        waiting = [one for server in self.servers for listener in server.sockets for one in _waiting(listener)]
        for server in self.servers:
            server.close()
        for connection in waiting:
            await asyncio.get_running_loop().connect_accepted_socket(self._protocol, connection)
        await asyncio.sleep(GRACE)  # until all of them are among the connections of uvicorn
        await super().shutdown(sockets)

    def _protocol(self) -> LimitedProtocol:
        return LimitedProtocol(self.config, self.server_state, self.lifespan.state)


def _waiting(listener: socket.socket) -> Iterator[socket.socket]:
    """Accept all connections in the queue of the system."""
    with listener.dup() as own:  # asyncio's has no accept()
        own.setblocking(False)
        while True:
            try:
                yield own.accept()[0]
            except OSError:  # usually BlockingIOError: the queue is empty
                return


class Worker(multiprocess.Process):
    """A worker process of uvicorn, with our server."""

    @property
    def server(self) -> Server:
        """The server of this process."""
        if self._server is None:
            self._server = Server(self.config)
        return cast(Server, self._server)


class Workers(multiprocess.Multiprocess):
    """Worker processes whose listening socket is closed before they end.

    uvicorn keeps it open in the parent: clients could still connect while the workers finish, and would be reset.
    """

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket]) -> None:
        multiprocess.Process = Worker  # type: ignore[misc]  # the only way to choose what is started
        super().__init__(config, sockets)

    def terminate_all(self) -> None:
        """Close the listening socket, then let the workers finish."""
        for listener in self.sockets:
            listener.close()
        super().terminate_all()


def _options(settings: Settings) -> dict[str, Any]:
    return {
        "host": settings.host,
        "port": settings.port,
        "workers": settings.workers,
        "http": LimitedProtocol,
        "access_log": settings.access_log,
        "server_header": False,
        "ws": "none",
        # A request may take max_seconds to arrive, and again to be answered.
        "timeout_graceful_shutdown": math.ceil(2 * settings.max_seconds) + 1,
    }


def _check_address(host: str, port: int) -> None:
    """Raise an error for an address that is in use or not of this machine."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        raise UsageError(
            f"the service cannot listen on {host}, port {port}: {error.strerror}; choose another --host or --port"
        ) from error
