"""The HTTP application: routes, errors and headers around the service."""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import fastapi_offline
from fastapi import APIRouter, FastAPI, HTTPException, Request, Response
from fastapi.middleware.cors import CORSMiddleware
from fastapi.openapi.utils import get_openapi
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from pydantic import ValidationError
from pydantic_core import to_json
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from emoglot._version import __version__
from emoglot.errors import DataError, ModelError, UsageError
from emoglot.server.batcher import QueueFullError
from emoglot.server.glossary import glossary
from emoglot.server.metrics import Metrics
from emoglot.server.protocol import GONE, MAX_HEADERS, MAX_SECONDS
from emoglot.server.reports import make_page
from emoglot.server.schemas import (
    InvalidRequest,
    ModelResponse,
    PredictRequest,
    PredictResponse,
    Problem,
    request_schema,
)
from emoglot.server.service import Service
from emoglot.server.settings import Settings

PAGE = Path(__file__).parent / "page"
SWAGGER = Path(fastapi_offline.__file__).parent / "static"
_CLOSE = {"Connection": "close"}  # for whoever has not sent all and shall not
_NOBODY_WAITS = 499  # as nginx counts it; nobody sees it but the metrics
RETRY_AFTER = "1"  # second: a full queue of tweets is worked off in two or three
# Nothing from elsewhere, nothing inside pages of others. The documentation's own script sets styles in the markup.
_POLICY = "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
_DOCS_POLICY = f"{_POLICY}; style-src 'self' 'unsafe-inline'"

log = logging.getLogger("uvicorn.error")  # where the server's own messages go


def from_environment() -> FastAPI:
    """Make the application in a worker process."""
    return create_app(Settings.from_environment(os.environ))


def create_app(settings: Settings) -> FastAPI:
    """Make the application; its model is loaded when it starts."""
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, float]]:
        app.state.service = Service(settings, metrics)
        await app.state.service.start()
        description = _describe(app)
        app.openapi = lambda: description  # type: ignore[method-assign]  # as FastAPI's manual says
        yield {MAX_HEADERS: settings.max_headers, MAX_SECONDS: settings.max_seconds}
        await app.state.service.stop()

    app = FastAPI(
        title="emoglot",
        version=__version__,
        summary="Which emotions does a text carry?",
        lifespan=lifespan,
        docs_url=None,  # ours needs no other host
        redoc_url=None,
    )
    app.state.settings = settings
    app.state.metrics = metrics
    app.state.tokens = [token.strip().encode() for token in settings.tokens.split(",") if token.strip()]
    app.add_exception_handler(Exception, _fail)
    _add_api(app)
    _add_pages(app)
    app.add_middleware(_Frame, metrics=metrics, paths=frozenset(route.path for route in app.routes))  # type: ignore[attr-defined]
    if settings.origins:
        origins = [origin.strip() for origin in settings.origins.split(",")]
        app.add_middleware(CORSMiddleware, allow_origins=origins, allow_methods=["GET", "POST"], allow_headers=["*"])
    return app


def _check_token(request: Request) -> None:
    """Let in who knows a token, if there are any."""
    tokens = request.app.state.tokens
    if not tokens:
        return
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    # All are compared, so that the time taken tells nothing.
    matches = [hmac.compare_digest(given.strip().encode(), token) for token in tokens]
    if scheme.lower() != "bearer" or not any(matches):
        raise HTTPException(401, "a bearer token is needed", {"WWW-Authenticate": "Bearer", **_CLOSE})


_PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "Not a request that HTTP knows."},
    401: {"model": Problem, "description": "A bearer token is needed."},
    408: {"model": Problem, "description": "The request took too long to arrive."},
    413: {"model": Problem, "description": "The body, a text or the list of texts is too large."},
    422: {"model": InvalidRequest, "description": "A field breaks a rule."},
    503: {"model": Problem, "description": "Too many texts are waiting; Retry-After says when to ask again."},
}


_REPORT_PROBLEMS: dict[int | str, dict[str, Any]] = {
    **{code: _PROBLEMS[code] for code in (400, 401, 408, 413)},
    422: {"model": Problem, "description": "Not a table that can be reported on."},
    501: {"model": Problem, "description": "The extra `report` is not installed."},
}


def _add_api(app: FastAPI) -> None:
    settings: Settings = app.state.settings
    described = APIRouter()

    @described.post(
        "/v1/predict",
        response_model=PredictResponse,
        responses=_PROBLEMS,
        openapi_extra={"requestBody": request_schema()},
        summary="Say which emotions texts carry",
    )
    async def predict(request: Request) -> Response:
        _check_token(request)
        asked = _parse(await _read_body(request, settings), settings)
        if settings.log_texts:
            log.info("texts: %s", asked.all_texts())
        try:
            answer = await _awaited(app.state.service.predict(asked), request, settings.max_seconds)
        except _GoneError:
            return Response(status_code=_NOBODY_WAITS)
        except QueueFullError:
            raise _busy("too many texts are waiting: ask again later") from None
        except asyncio.TimeoutError:
            raise _busy("the answer took too long: ask again later, or for fewer texts") from None
        except DataError as error:
            raise _invalid(["threshold"], str(error)) from error
        except UsageError as error:
            raise _invalid(["language"], str(error)) from error
        except ModelError as error:  # a model without a table of precision and recall
            raise _invalid(["recall" if asked.precision is None else "precision"], str(error)) from error
        return Response(to_json(answer), media_type="application/json")

    # FastAPI describes it, but Starlette calls it: its own way there is several layers longer.
    app.state.described = described.routes
    app.add_route("/v1/predict", predict, methods=["POST"], include_in_schema=False)

    @app.get("/v1/model", response_model=ModelResponse, responses={401: _PROBLEMS[401]}, summary="Describe the model")
    async def model(request: Request) -> ModelResponse:
        _check_token(request)
        service: Service = app.state.service
        return service.describe()

    @app.post(
        "/v1/report",
        response_class=HTMLResponse,
        responses=_REPORT_PROBLEMS,
        openapi_extra={"requestBody": {"required": True, "content": {"text/csv": {"schema": {"type": "string"}}}}},
        summary="Make a report of a scored table",
    )
    async def report(
        request: Request, name: str = "texts.csv", time: str | None = None, group: str | None = None
    ) -> HTMLResponse:
        _check_token(request)
        table = await _read_body(request, settings)
        return HTMLResponse(await make_page(table, name, time, group, settings.model_folder))

    @app.get("/healthz", response_model=dict[str, str], summary="The process lives")
    async def healthz() -> dict[str, str]:
        return {"status": "alive"}

    @app.get("/readyz", response_model=dict[str, str], responses={503: _PROBLEMS[503]}, summary="Requests are answered")
    async def readyz() -> dict[str, str]:
        if not app.state.service.ready:
            raise _busy("not ready")
        return {"status": "ready"}

    @app.get("/metrics", include_in_schema=False)
    async def metrics(request: Request) -> Response:
        _check_token(request)
        return Response(app.state.metrics.render(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _describe(app: FastAPI) -> dict[str, Any]:
    """Describe the API, with what only the model and the settings know: labels and limits."""
    settings: Settings = app.state.settings
    routes = [*app.state.described, *app.routes]
    description = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=routes)
    body = description["paths"]["/v1/predict"]["post"]["requestBody"]["content"]["application/json"]
    fields = body["schema"]["properties"]
    fields["threshold"]["propertyNames"] = {"enum": list(app.state.service.labels)}
    fields["text"]["maxLength"] = fields["texts"]["items"]["maxLength"] = settings.max_characters
    fields["texts"]["maxItems"] = settings.max_texts
    if app.state.tokens:
        description["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        description["security"] = [{"token": []}]
    return description


def _add_pages(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    async def index() -> FileResponse:
        return FileResponse(PAGE / "index.html")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> FileResponse:
        return FileResponse(PAGE / "docs.html", headers={"content-security-policy": _DOCS_POLICY})

    @app.get("/emotions", include_in_schema=False)
    async def emotions() -> HTMLResponse:
        return HTMLResponse(glossary())

    app.mount("/page", StaticFiles(directory=PAGE), name="page")
    app.mount("/swagger", StaticFiles(directory=SWAGGER), name="swagger")


async def _read_body(request: Request, settings: Settings) -> bytes:
    """Read the body of a request, but neither without end nor for ever."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > settings.max_body:
        raise _too_large(settings)
    try:
        return await asyncio.wait_for(_receive(request, settings), settings.max_seconds)
    except asyncio.TimeoutError:
        reason = f"a request must arrive within {settings.max_seconds:g} seconds"
        raise HTTPException(408, reason, _CLOSE) from None


async def _receive(request: Request, settings: Settings) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > settings.max_body:
            raise _too_large(settings)
    return bytes(body)


class _GoneError(Exception):
    """Nobody waits for the answer any more."""


async def _awaited(work: Coroutine[Any, Any, dict[str, Any]], request: Request, seconds: float) -> dict[str, Any]:
    """Give the answer, or stop working on it when the client has gone, or it takes too long."""
    answering = asyncio.create_task(work)
    gone = request.scope["state"][GONE]
    try:
        done, _ = await asyncio.wait((answering, gone), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if answering in done:
            return answering.result()
        raise _GoneError if gone in done else asyncio.TimeoutError
    finally:
        answering.cancel()


def _too_large(settings: Settings) -> HTTPException:
    return HTTPException(413, f"the body of a request may have {settings.max_body} bytes", _CLOSE)


def _parse(body: bytes, settings: Settings) -> PredictRequest:
    try:
        asked = PredictRequest.model_validate_json(body)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        raise HTTPException(422, [{"loc": p["loc"], "msg": p["msg"], "type": p["type"]} for p in problems]) from error
    texts = asked.all_texts()
    if len(texts) > settings.max_texts:
        raise HTTPException(413, f"a request may have {settings.max_texts} texts, got {len(texts)}")
    for index, text in enumerate(texts):
        if len(text) > settings.max_characters:
            raise HTTPException(
                413, f"a text may have {settings.max_characters} characters, got {len(text)} in text {index}"
            )
    return asked


async def _fail(request: Request, error: Exception) -> Response:
    """Answer as always, though it is a fault of ours; what it was is in the log."""
    return JSONResponse({"detail": "the service failed"}, 500, headers=_HEADERS)


def _busy(message: str) -> HTTPException:
    return HTTPException(503, message, {"Retry-After": RETRY_AFTER})


def _invalid(loc: list[str], message: str) -> HTTPException:
    return HTTPException(422, [{"loc": loc, "msg": message, "type": "value_error"}])


class _Frame:
    """Around every answer: its security headers, and what the metrics want to know of it."""

    def __init__(self, app: ASGIApp, metrics: Metrics, paths: frozenset[str]) -> None:
        self._app = app
        self._metrics = metrics
        self._paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Only paths that exist are told apart, or anybody could fill the memory with counters.
        path = scope["path"] if scope["path"] in self._paths else "other"
        status = 500
        began = time.perf_counter()

        async def send_framed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                present = {name for name, _ in message["headers"]}
                added = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                message["headers"] = [*message["headers"], *(item for item in added if item[0] not in present)]
            await send(message)

        try:
            await self._app(scope, receive, send_framed)
        finally:
            self._metrics.requests.labels(path, str(status)).inc()
            self._metrics.seconds.labels(path).observe(time.perf_counter() - began)
