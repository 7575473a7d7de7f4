"""The settings of the service, and the address it listens on."""

from __future__ import annotations

import socket
from dataclasses import fields
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from emoglot.errors import UsageError
from emoglot.serving.settings import Settings, variable
from tests.service import running


def test_every_setting_is_an_environment_variable():
    settings = Settings(port=81, log_texts=True, batch_wait=0.5, tokens="a,b")
    assert Settings.from_environment(settings.to_environment()) == settings
    assert {variable(item.name) for item in fields(Settings)} == set(settings.to_environment())
    assert Settings.from_environment({"EMOGLOT_PORT": "81"}) == Settings(port=81)


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"EMOGLOT_PORT": "http"}, "EMOGLOT_PORT must be of type int"),
        ({"EMOGLOT_PORT": "70000"}, "port must be in"),
        ({"EMOGLOT_LOG_TEXTS": "perhaps"}, "true or false"),
        ({"EMOGLOT_MAX_QUEUE": "10"}, "at least max_texts"),
        ({"EMOGLOT_TOKENS": " , "}, "got no token in ' , ': set a token, or leave it empty"),
    ],
)
def test_a_bad_setting_is_refused(environment, message):
    with pytest.raises(UsageError, match=message):
        Settings.from_environment(environment)


def test_a_port_in_use_or_a_missing_model_is_told(tmp_path, service):
    port = str(urlsplit(service.url).port)
    for options, message in ((["--port", port], "in use"), (["--model", str(tmp_path / "none")], "error: there is no")):
        with pytest.raises(AssertionError, match=message), running(tmp_path, *options):
            pass


def test_the_documentation_lists_every_setting():
    documented = (Path(__file__).parents[2] / "docs" / "service.md").read_text(encoding="utf-8")
    for item in fields(Settings):
        assert f"| `--{item.name.replace('_', '-')}` |" in documented
        assert item.metadata["help"] in documented


@pytest.mark.parametrize("host", ["127.0.0.1", "no-such-host.invalid"])
def test_an_address_that_can_not_be_had_is_told(host):
    from emoglot.serving.run import run

    told = pytest.raises(UsageError, match=f"cannot listen on {host}, port")
    with socket.create_server(("127.0.0.1", 0)) as taken, told:
        run(Settings(host=host, port=taken.getsockname()[1]))
