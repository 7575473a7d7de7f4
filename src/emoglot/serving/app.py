"""The HTTP application: routes, errors and headers around the service."""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
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
from pydantic_core import from_json
from starlette.requests import ClientDisconnect

from emoglot._version import __version__
from emoglot.errors import DataError, ModelError, UsageError
from emoglot.inference.checks import MAX_LABELS
from emoglot.model import Model
from emoglot.serving.batcher import QueueFullError
from emoglot.serving.frame import HEADERS, POLICY, Frame
from emoglot.serving.glossary import glossary
from emoglot.serving.metrics import ServiceMetrics
from emoglot.serving.protocol import GONE, MAX_HEADERS, MAX_SECONDS
from emoglot.serving.reports import make_page
from emoglot.serving.schemas import (
    InvalidRequest,
    ModelResponse,
    PredictRequest,
    PredictResponse,
    Problem,
    request_schema,
)
from emoglot.serving.service import Service
from emoglot.serving.settings import Settings

PAGE = Path(__file__).parent / "page"
SWAGGER = Path(fastapi_offline.__file__).parent / "static"
_CLOSE = {"Connection": "close"}  # the rest of the request is not read
_NOBODY_WAITS = 499  # the status that nginx uses for a client that disconnected; only used in the metrics
_LONG_BODY = 2**16  # bytes; longer bodies are parsed in a thread
RETRY_AFTER = "1"  # seconds; a full queue of tweets is scored in two or three
# The script of the API documentation uses inline styles.
_DOCS_POLICY = f"{POLICY}; style-src 'self' 'unsafe-inline'"

log = logging.getLogger("uvicorn.error")  # the logger of the server


def from_environment() -> FastAPI:
    """Return the application of a worker process."""
    return create_app(Settings.from_environment(os.environ))


def create_app(settings: Settings, model: Model | None = None) -> FastAPI:
    """Return the application; by default it loads the model at start."""
    metrics = ServiceMetrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, float]]:
        app.state.service = Service(settings, metrics, model)
        await app.state.service.start()
        description = _describe(app)
        app.openapi = lambda: description  # type: ignore[method-assign]  # as in FastAPI's manual
        yield {MAX_HEADERS: settings.max_headers, MAX_SECONDS: settings.max_seconds}
        await app.state.service.stop()

    app = FastAPI(
        title="emoglot",
        version=__version__,
        summary="Which emotions does a text carry?",
        lifespan=lifespan,
        docs_url=None,  # FastAPI's own loads scripts from another host
        redoc_url=None,
    )
    app.state.settings = settings
    app.state.metrics = metrics
    app.state.tokens = [token.strip().encode() for token in settings.tokens.split(",") if token.strip()]
    app.add_exception_handler(Exception, _fail)
    app.add_exception_handler(ClientDisconnect, _note_leaving)
    _add_predict(app)
    _add_model_and_report(app)
    _add_probes(app)
    _add_pages(app)
    app.add_middleware(Frame, metrics=metrics, paths=frozenset(route.path for route in app.routes))  # type: ignore[attr-defined]
    if settings.origins:
        origins = [origin.strip() for origin in settings.origins.split(",")]
        app.add_middleware(CORSMiddleware, allow_origins=origins, allow_methods=["GET", "POST"], allow_headers=["*"])
    return app


def _check_token(request: Request) -> None:
    """Raise 401 for a request without one of the tokens, if there are any."""
    tokens = request.app.state.tokens
    if not tokens:
        return
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    # All are compared, so that the time does not depend on which one matches.
    matches = [hmac.compare_digest(given.strip().encode(), token) for token in tokens]
    if scheme.lower() != "bearer" or not any(matches):
        is_given = scheme.lower() == "bearer" and given.strip()
        reason = "the bearer token is wrong" if is_given else "a bearer token is needed"
        detail = f"{reason}: send Authorization: Bearer TOKEN"
        raise HTTPException(401, detail, {"WWW-Authenticate": "Bearer", **_CLOSE})


_PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "Not a valid HTTP request."},
    401: {"model": Problem, "description": "The bearer token is missing or wrong."},
    408: {"model": Problem, "description": "The request took too long to arrive."},
    413: {"model": Problem, "description": "The body, a text or the list of texts is too large."},
    422: {"model": InvalidRequest, "description": "A field breaks a rule."},
    503: {"model": Problem, "description": "Too many texts are waiting; see Retry-After."},
}


_REPORT_PROBLEMS: dict[int | str, dict[str, Any]] = {
    **{code: _PROBLEMS[code] for code in (400, 401, 408, 413)},
    422: {"model": Problem, "description": "The table cannot be reported on."},
    501: {"model": Problem, "description": "The extra `report` is not installed."},
}


def _add_predict(app: FastAPI) -> None:
    settings: Settings = app.state.settings
    described = APIRouter()
    parsing = asyncio.Semaphore(1)  # a long body can become ten times as large in memory

    @described.post(
        "/v1/predict",
        response_model=PredictResponse,
        responses=_PROBLEMS,
        openapi_extra={"requestBody": request_schema()},
        summary="Predict the emotions of texts",
    )
    async def predict(request: Request) -> Response:
        _check_token(request)
        body = await _read_body(request, settings)
        if len(body) > _LONG_BODY:
            async with parsing:
                asked = await asyncio.to_thread(_parse, body, settings)
        else:
            asked = _parse(body, settings)
        if settings.log_texts:
            log.info("texts: %s", asked.all_texts())
        try:
            answer = await _awaited(app.state.service.predict(asked), request, settings.max_seconds)
        except _GoneError:
            return Response(status_code=_NOBODY_WAITS)
        except QueueFullError:
            raise _busy("too many texts are waiting: try again later") from None
        except asyncio.TimeoutError:
            raise _busy("the answer took too long: try again later, or with fewer texts") from None
        except DataError as error:
            raise _invalid(["threshold"], str(error)) from error
        except UsageError as error:
            raise _invalid(["language"], str(error)) from error
        except ModelError as error:  # a model without a table of precision and recall
            raise _invalid(["recall" if asked.precision is None else "precision"], str(error)) from error
        return Response(answer, media_type="application/json")

    # FastAPI documents this route, but Starlette calls it, which is faster.
    app.state.described = described.routes
    app.add_route("/v1/predict", predict, methods=["POST"], include_in_schema=False)


def _add_model_and_report(app: FastAPI) -> None:
    settings: Settings = app.state.settings

    @app.get("/v1/model", response_model=ModelResponse, responses={401: _PROBLEMS[401]}, summary="Describe the model")
    async def model(request: Request) -> ModelResponse:
        _check_token(request)
        service: Service = app.state.service
        return service.description

    @app.post(
        "/v1/report",
        response_class=HTMLResponse,
        responses=_REPORT_PROBLEMS,
        openapi_extra={"requestBody": {"required": True, "content": {"text/csv": {"schema": {"type": "string"}}}}},
        summary="Create a report of a scored table",
    )
    async def report(
        request: Request,
        name: str = "texts.csv",
        time: str | None = None,
        group: str | None = None,
        date_format: str | None = None,
        text: str | None = None,
    ) -> HTMLResponse:
        _check_token(request)
        table = await _read_body(request, settings)
        columns = {"time": time, "group": group, "text": text}
        options = {**columns, "date_format": date_format, "model": settings.model_folder}
        return HTMLResponse(await make_page(table, name, options))


def _add_probes(app: FastAPI) -> None:
    @app.get("/healthz", response_model=dict[str, str], summary="Check that the process is alive")
    async def healthz() -> dict[str, str]:
        return {"status": "alive"}

    @app.get(
        "/readyz",
        response_model=dict[str, str],
        responses={503: _PROBLEMS[503]},
        summary="Check that requests are answered",
    )
    async def readyz() -> dict[str, str]:
        if not app.state.service.ready:
            raise _busy("not ready")
        return {"status": "ready"}

    @app.get("/metrics", include_in_schema=False)
    async def metrics(request: Request) -> Response:
        _check_token(request)
        return Response(app.state.metrics.render(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _describe(app: FastAPI) -> dict[str, Any]:
    """Return the description of the API, with the labels of the model and the limits of the settings."""
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
    """Return the body of a request, limited in bytes and in time."""
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
    """Raised when the client has disconnected."""


async def _awaited(work: Coroutine[Any, Any, bytes], request: Request, seconds: float) -> bytes:
    """Return the answer; cancel it if the client disconnects or it takes too long."""
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
    return HTTPException(413, f"the body of a request may have at most {settings.max_body} bytes", _CLOSE)


def _parse(body: bytes, settings: Settings) -> PredictRequest:
    try:
        found = from_json(body)
    except ValueError as error:
        raise _invalid([], f"Invalid JSON: {error}", "json_invalid") from error
    _check_sizes(found, settings)
    try:
        asked = PredictRequest.model_validate(found)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        raise HTTPException(422, [{"loc": p["loc"], "msg": p["msg"], "type": p["type"]} for p in problems]) from error
    for index, text in enumerate(asked.all_texts()):
        if len(text) > settings.max_characters:
            raise HTTPException(
                413, f"a text may have at most {settings.max_characters} characters, got {len(text)} in text {index}"
            )
    return asked


def _check_sizes(found: Any, settings: Settings) -> None:
    """Raise an error for too many texts or fields, each of which could be a problem: the answer lists all problems."""
    if not isinstance(found, dict):
        raise _invalid([], 'a request must be a JSON object, such as {"text": "so happy"}')
    texts = found.get("texts")
    if isinstance(texts, list) and len(texts) > settings.max_texts:
        raise HTTPException(413, f"a request may have at most {settings.max_texts} texts, got {len(texts)}")
    for loc, value in (([], found), (["threshold"], found.get("threshold"))):
        if isinstance(value, dict) and len(value) > MAX_LABELS:
            raise _invalid(loc, f"an object may have at most {MAX_LABELS} fields, got {len(value)}")


async def _note_leaving(request: Request, error: Exception) -> Response:
    """Count a client that disconnected before its request was complete."""
    log.debug("a client disconnected before its request to %s was complete", request.url.path)
    return Response(status_code=_NOBODY_WAITS)


async def _fail(request: Request, error: Exception) -> Response:
    """Return the answer for an unexpected error, which uvicorn logs."""
    return JSONResponse({"detail": "the service failed"}, 500, headers=HEADERS)


def _busy(message: str) -> HTTPException:
    return HTTPException(503, message, {"Retry-After": RETRY_AFTER})


def _invalid(loc: list[str], message: str, kind: str = "value_error") -> HTTPException:
    return HTTPException(422, [{"loc": loc, "msg": message, "type": kind}])
