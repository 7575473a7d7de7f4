"""The pages, the probes, the metrics and the log."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

import pytest

from emoglot.emotions import EMOTIONS
from tests.service import connect, results_of


@pytest.mark.parametrize(
    "path",
    ["/page/../app.py", "/page/%2e%2e/app.py", "/page/..%2fapp.py", "/page//etc/passwd", "/swagger/../../x", "/page/"],
)
def test_no_path_leads_out_of_the_page_folder(service, path):
    with connect(service) as client:
        client.sendall(f"GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n".encode())
        answer = client.makefile("rb").read()
    assert b"HTTP/1.1 404" in answer[:20]


def test_what_is_asked_is_not_reflected(service):
    attack = "<script>alert(1)</script>"
    for response in (
        service.ask(f"/{attack}"),
        service.ask("/v1/predict", {"text": 1, attack: 1}),
        service.ask("/v1/predict", {"text": attack, "threshold": {attack: 1}}),
    ):
        assert "text/html" not in response.headers["content-type"]
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'self'" in response.headers["content-security-policy"]


def test_pages_and_probes(service):
    assert b"<html" in service.ask("/").data
    assert service.ask("/docs").status == 200
    assert service.ask("/swagger/swagger-ui-bundle.js").status == 200
    glossary = service.ask("/emotions")
    assert glossary.headers["content-type"].startswith("text/html")
    assert all(escape(emotion.definition) in glossary.data.decode() for emotion in EMOTIONS)
    assert b"<script" not in glossary.data
    assert service.ask("/healthz").json() == {"status": "alive"}
    assert service.ask("/readyz").json() == {"status": "ready"}
    assert service.ask("/v1/predict").status == 405


@pytest.mark.parametrize("path", ["/", "/page/icon.svg", "/healthz", "/v1/model"])
def test_head_has_the_headers_of_get_and_no_body(service, path):
    with connect(service) as client:
        client.sendall(f"HEAD {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n".encode())
        headers, _, body = client.makefile("rb").read().partition(b"\r\n\r\n")
    found = service.ask(path)
    assert headers.startswith(b"HTTP/1.1 200")
    assert f"content-length: {len(found.data)}".encode() in headers
    assert body == b""


def test_every_status_is_documented(service):
    page = (Path(__file__).parents[2] / "docs" / "service.md").read_text(encoding="utf-8")
    table = page.partition("| status | when |")[2].partition("\n\n")[0]
    cells = [row.split("|")[1] for row in table.splitlines() if "|" in row]
    documented = {int(status) for cell in cells for status in re.findall(r"\d{3}", cell)}
    described = service.ask("/openapi.json").json()["paths"]
    answered = {
        int(status) for path in described.values() for method in path.values() for status in method["responses"]
    }
    asked = {service.ask("/nothing").status, service.ask("/v1/predict").status}
    assert documented >= answered | asked | {500}


def test_metrics_count_requests_texts_characters_and_batches(service):
    def figures() -> dict[str, float]:
        lines = service.ask("/metrics").data.decode().splitlines()
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}

    before = figures()
    results_of(service.ask("/v1/predict", {"texts": ["one two", "three"]}))
    after = figures()
    grown = {name: value - before.get(name, 0) for name, value in after.items()}
    assert grown["emoglot_texts_total"] == 2
    assert grown["emoglot_characters_total"] == len("one two" + "three")
    assert grown["emoglot_batch_texts_sum"] == 2
    assert grown['emoglot_requests_total{path="/v1/predict",status="200"}'] == 1
    assert grown['emoglot_request_seconds_count{path="/v1/predict"}'] == 1


def test_paths_that_do_not_exist_are_counted_together(service):
    for number in range(3):
        service.ask(f"/no/such/{number}")
    assert b"/no/such" not in service.ask("/metrics").data


def test_no_text_is_logged(service):
    results_of(service.ask("/v1/predict", {"text": "my secret diary"}))
    assert "secret" not in service.log.read_text(encoding="utf-8")
