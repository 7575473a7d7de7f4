"""A page of somebody else that asks the service, as docs/howto/integrations.md shows it."""

from __future__ import annotations

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from tests.integrations.test_howto import example
from tests.service import running
from tests.serving.page.browsing import HAPPY, Page


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_) -> None: ...


def test_a_page_of_another_origin_asks_the_service(browser, downloads, model, tmp_path):
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=tmp_path)) as site:
        origin = f"http://127.0.0.1:{site.server_port}"
        Thread(target=site.serve_forever, daemon=True).start()
        with running(tmp_path, "--origins", origin) as service:
            code = example("A web page").replace("http://127.0.0.1:8000", service.url)
            (tmp_path / "front.html").write_text(code, encoding="utf-8")
            browser.get(f"{origin}/front.html")
            page = Page(browser, service.url, downloads)
            page["text"].send_keys(HAPPY, "\t")
            page.wait(lambda: page["emotions"].text == ", ".join(model.predict(HAPPY).labels))
        site.shutdown()
