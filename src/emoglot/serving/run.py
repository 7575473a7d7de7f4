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
    """Serve until a signal arrives; then answer all accepted requests."""
    # Load the model here first, since errors in uvicorn or a worker would print a traceback.
    _check_address(settings.host, settings.port)
    model = load_model(settings)
    if settings.workers == 1:
        # uvicorn ends the process with the signal that it received, which systemd counts as success.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        uvicorn.run(create_app(settings, model), **_options(settings))
        return
    del model  # every worker loads its own
    os.environ.update(settings.to_environment())  # workers read the settings from there
    # Metrics of several processes are added up in a folder.
    with tempfile.TemporaryDirectory(prefix="emoglot-") as folder:
        os.environ[SHARED_FOLDER] = folder
        config = uvicorn.Config("emoglot.serving.app:from_environment", factory=True, **_options(settings))
        Workers(config, [config.bind_socket()]).run()


class Workers(Multiprocess):
    """Worker processes whose listening socket is closed before they end.

    uvicorn keeps it open in the parent: clients could still connect while the workers finish, and would be reset.
    """

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
