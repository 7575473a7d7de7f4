"""Runs the application with uvicorn, in one process or several."""

from __future__ import annotations

import math
import os
import socket
import tempfile
from contextlib import nullcontext

import uvicorn

from emoglot.errors import UsageError
from emoglot.model import load
from emoglot.server.metrics import SHARED_FOLDER
from emoglot.server.protocol import LimitedProtocol
from emoglot.server.settings import Settings


def run(settings: Settings) -> None:
    """Serve until a signal comes; then no request that was accepted is lost."""
    # What is no good is told in a sentence, before uvicorn or a worker stumbles over it.
    _check_address(settings.host, settings.port)
    load(settings.model_folder, encoder=settings.encoder or None)
    os.environ.update(settings.to_environment())  # worker processes read it there
    # One process needs no folder for the metrics of all, and would leave it: uvicorn ends it by the signal that it got.
    with tempfile.TemporaryDirectory() if settings.workers > 1 else nullcontext() as folder:
        if folder is not None:
            os.environ[SHARED_FOLDER] = folder
        uvicorn.run(
            "emoglot.server.app:from_environment",
            factory=True,
            host=settings.host,
            port=settings.port,
            workers=settings.workers,
            http=LimitedProtocol,
            access_log=settings.access_log,
            server_header=False,
            ws="none",
            # Whoever was let in may still send for as long as any, and be answered for as long.
            timeout_graceful_shutdown=math.ceil(2 * settings.max_seconds) + 1,
        )


def _check_address(host: str, port: int) -> None:
    """Refuse an address that is taken, or not ours."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        raise UsageError(
            f"the service can't listen on {host}, port {port}: {error.strerror}; give another --host or --port"
        ) from error
