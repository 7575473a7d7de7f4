"""Run the application with uvicorn, in one process or several."""

from __future__ import annotations

import math
import os
import signal
import socket
import tempfile
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from emoglot.errors import UsageError
from emoglot.serving.app import create_app
from emoglot.serving.metrics import SHARED_FOLDER
from emoglot.serving.protocol import LimitedProtocol
from emoglot.serving.service import load_model
from emoglot.serving.settings import Settings


def run(settings: Settings) -> None:
    """Serve until a signal comes; then every request that was accepted is answered."""
    # Errors are found here, and not by uvicorn or a worker, which would show a traceback.
    _check_address(settings.host, settings.port)
    model = load_model(settings)
    if settings.workers == 1:
        # uvicorn ends the process by the signal that it got, which systemd takes for success.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        uvicorn.run(create_app(settings, model), **_options(settings))
        return
    del model  # every worker loads its own
    os.environ.update(settings.to_environment())  # where workers read it
    # Metrics of several processes are added up in a folder.
    with tempfile.TemporaryDirectory(prefix="emoglot-") as folder:
        os.environ[SHARED_FOLDER] = folder
        config = uvicorn.Config("emoglot.serving.app:from_environment", factory=True, **_options(settings))
        Workers(config, [config.bind_socket()]).run()


class Workers(Multiprocess):
    """Worker processes whose listening socket is closed before they end.

    uvicorn leaves it open in the parent: clients would still be connected while the workers finish, and reset after.
    """

    def terminate_all(self) -> None:
        """Refuse new connections, then let the workers finish."""
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
        # A request that has begun may take as long to arrive as any, and as long to be answered.
        "timeout_graceful_shutdown": math.ceil(2 * settings.max_seconds) + 1,
    }


def _check_address(host: str, port: int) -> None:
    """Raise an error for an address that is in use, or not of this machine."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        raise UsageError(
            f"the service cannot listen on {host}, port {port}: {error.strerror}; choose another --host or --port"
        ) from error
