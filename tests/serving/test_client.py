"""The clients, against the real service and against other servers."""

from __future__ import annotations

import asyncio
import gc
import inspect
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

import emoglot
from emoglot.errors import DataError, EmoglotError
from tests.service import TEXTS


def test_the_client_stands_in_for_a_model(service, local):
    with emoglot.Client(service.url) as client:
        assert client.labels == local.labels
        assert client.thresholds == local.thresholds
        many = [f"{text} {number}" for number in range(30) for text in TEXTS]  # more than one request
        assert [found.labels for found in client.predict(many)] == [found.labels for found in local.predict(many)]
        np.testing.assert_allclose(client.predict_proba(many), local.predict_proba(many), atol=1e-6)
        assert client.predict_proba([]).shape == (0, len(local.labels))
        assert [token.token for token in client.explain(TEXTS[0])] == [token.token for token in local.explain(TEXTS[0])]
        languages = ["en", "es"] * 3
        assert [found.labels for found in client.predict(TEXTS, languages)] == [
            found.labels for found in local.predict(TEXTS, languages)
        ]
        for torn in ("so happy \ud83d", "\udc00", "a \ud800 b"):
            assert client.predict([torn]) == pytest.approx(local.predict([torn]))
            assert [token.token for token in client.explain(torn)] == [token.token for token in local.explain(torn)]
        missing = ["es", None, float("nan")]
        assert [found.labels for found in client.predict(TEXTS[:3], missing)] == [
            found.labels for found in local.predict(TEXTS[:3], missing)
        ]
        for either in (client, local):
            with pytest.raises(DataError, match="a language must be a code such as 'en', got 7"):
                either.predict(["a"], [7])
        with pytest.raises(DataError, match="5000 characters"):
            client.predict(["a" * 6000])
        assert client.predict(TEXTS[0]) == client.predict([TEXTS[0]])[0]
        for either in (client, local):
            with pytest.raises(DataError, match="put it in a list"):
                either.predict_proba("not a list")
        with pytest.raises(DataError, match="one for each text"):
            client.predict(["a"], ["en", "es"])


def test_a_client_whose_service_is_not_there_says_so():
    with pytest.raises(EmoglotError, match="cannot be reached"):
        emoglot.Client("http://127.0.0.1:9", retries=0).predict(["a"])
    with pytest.raises(DataError, match="must begin with http"):
        emoglot.Client("127.0.0.1:8000")
    with pytest.raises(DataError, match="is not the address of a service"):
        emoglot.Client("http://127.0.0.1:port")
    with pytest.raises(DataError, match="ASCII"):
        emoglot.Client("http://127.0.0.1:9", token="s3cret”")
    with pytest.raises(DataError, match="retries must be 0 or more, got -1"):
        emoglot.Client("http://127.0.0.1:9", retries=-1)


def test_the_asynchronous_client_answers_like_the_other(service, local):
    async def ask() -> None:
        async with emoglot.AsyncClient(service.url) as client:
            assert await client.labels() == local.labels
            assert await client.thresholds() == local.thresholds
            one, many = await asyncio.gather(client.predict(TEXTS[0], "en"), client.predict(TEXTS * 20, precision=0.9))
            assert one.labels == local.predict(TEXTS[0], "en").labels
            assert [found.labels for found in many] == [
                found.labels for found in local.predict(TEXTS * 20, precision=0.9)
            ]
            np.testing.assert_allclose(await client.predict_proba(TEXTS), local.predict_proba(TEXTS), atol=1e-6)
            tokens = await client.explain(TEXTS[0])
            assert [token.token for token in tokens] == [token.token for token in local.explain(TEXTS[0])]
        with pytest.raises(EmoglotError, match="cannot be reached"):
            await emoglot.AsyncClient("http://127.0.0.1:9", retries=0).predict("a")

    asyncio.run(ask())


def test_the_asynchronous_client_works_in_several_event_loops(service, local):
    client = emoglot.AsyncClient(service.url)
    wanted = local.predict(TEXTS[0]).labels
    for _ in range(3):
        assert asyncio.run(client.predict(TEXTS[0])).labels == wanted
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(lambda text: asyncio.run(client.predict(text)).labels, TEXTS))
    assert found == [prediction.labels for prediction in local.predict(TEXTS)]

    async def close_and_ask() -> None:
        await client.close()
        await client.predict("a")

    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(close_and_ask())
    gc.collect()  # a connection that was left open would be a ResourceWarning, which is an error here


def members(kind: type) -> list[str]:
    return [name for name in vars(kind) if not name.startswith("_")]


def parameters(function: object) -> list[tuple[object, ...]]:
    """Return the names, kinds and defaults of the parameters of a function."""
    return [(item.name, item.kind, item.default) for item in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize(
    ("protocol", "kind"),
    [
        (emoglot.Predictor, emoglot.Model),
        (emoglot.Predictor, emoglot.Client),
        (emoglot.AsyncPredictor, emoglot.AsyncClient),
    ],
)
def test_a_model_and_its_clients_can_be_used_in_each_other_s_place(protocol, kind):
    """mypy checks the types, in client.py; here is that names and parameters are the same."""
    assert members(protocol) == members(emoglot.Predictor) == members(emoglot.AsyncPredictor)
    for name in members(protocol):
        wanted, found = getattr(protocol, name), getattr(kind, name)
        if isinstance(wanted, property):
            assert isinstance(found, property)
            continue
        assert inspect.iscoroutinefunction(found) == (protocol is emoglot.AsyncPredictor)
        if name != "predict":  # whose signature is in its overloads
            assert parameters(found) == parameters(wanted)
        else:
            assert parameters(found) == parameters(emoglot.Model.predict)


def test_a_client_without_its_extra_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx2", None)
    for kind in (emoglot.Client, emoglot.AsyncClient):
        with pytest.raises(emoglot.MissingExtraError, match=r"pip install 'emoglot\[client\]'"):
            kind("http://127.0.0.1:9")


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (413, b"<html>too large</html>", DataError, "answered 413: '<html>too large"),
        (500, b"", EmoglotError, "answered 500"),
        (400, b'{"detail":["a"]}', EmoglotError, "answered 400"),
        (200, b'{"ok": true}', EmoglotError, "is not a service"),
        (200, b"[1]", EmoglotError, "is not a service"),
        (200, b"hello", EmoglotError, "is not a service"),
    ],
)
def test_a_client_tells_what_something_else_answers(status, body, kind, message):
    class Other(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *given):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Other) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with emoglot.Client(f"http://127.0.0.1:{server.server_port}", retries=0) as client, pytest.raises(kind) as told:
            client.predict(["a"])
        server.shutdown()
    assert message in str(told.value)
