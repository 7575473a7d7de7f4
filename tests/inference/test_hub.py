"""Models on the Hugging Face hub, against a small hub on loopback: no test touches the network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from emoglot import load
from emoglot.errors import MissingExtraError, ModelError, UsageError
from emoglot.inference.hub import find_model, is_hub_name
from emoglot.model import Model
from tests.inference.hub_server import Hub, Repository, running_hub

TEXTS = ["I am so happy", "Estoy furioso!!!", ""]
NOWHERE = "http://127.0.0.1:9"  # nothing listens on the port of the discard protocol
LOAD = (
    "import emoglot, json, sys\n"
    "options = json.loads(sys.argv[2])\n"
    "try: print(json.dumps(emoglot.load(sys.argv[1], **options).predict_proba(sys.argv[3:]).tolist()))\n"
    "except emoglot.EmoglotError as error: print(type(error).__name__, error)\n"
)
PUSH = (
    "import emoglot, json, sys\n"
    "options = json.loads(sys.argv[3])\n"
    "try: print(emoglot.load(sys.argv[1]).push_to_hub(sys.argv[2], **options))\n"
    "except emoglot.EmoglotError as error: print(type(error).__name__, error)\n"
)


@pytest.fixture
def hub() -> Iterator[Hub]:
    with running_hub() as running:
        yield running


def run(code: str, *arguments: str, home: Path, endpoint: str, **variables: str) -> str:
    """Run code as a user with a home and a hub of their own, and return what it prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    environment |= {"HF_HOME": str(home / "hf"), "EMOGLOT_CACHE": str(home / "emoglot"), "HF_ENDPOINT": endpoint}
    environment |= {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1", **variables}
    command = [sys.executable, "-c", code, *arguments]
    finished = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=home)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.strip()


def scores(name: str, *, home: Path, endpoint: str, variables: dict[str, str] | None = None, **options: str) -> str:
    return run(LOAD, name, json.dumps(options), *TEXTS, home=home, endpoint=endpoint, **(variables or {}))


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def expected(model: Model) -> str:
    return json.dumps(model.predict_proba(TEXTS).tolist())


@pytest.fixture
def published(hub: Hub, trained: Model, model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two commits of user/model, the second with other thresholds and another bias; returns their ids."""
    assert trained.state.wide
    wide = replace(trained.state.wide, bias=trained.state.wide.bias + 1)
    other = trained.with_state(replace(trained.state, wide=wide)).save(tmp_path_factory.mktemp("other") / "model")
    hub.repositories["user/model"] = repository = Repository()
    return [repository.commit(files_of(folder)) for folder in (model_folder, other)]


def test_a_revision_is_pinned(hub: Hub, published: list[str], trained: Model, tmp_path: Path) -> None:
    first = scores("user/model", revision=published[0], home=tmp_path, endpoint=hub.address)
    newest = scores("user/model", home=tmp_path, endpoint=hub.address)
    assert first == expected(trained)
    assert newest != first
    assert newest == scores("user/model", revision=published[1], home=tmp_path, endpoint=hub.address)


def test_the_second_load_is_from_the_cache(hub: Hub, published: list[str], trained: Model, tmp_path: Path) -> None:
    options = {"home": tmp_path, "revision": published[0]}
    assert scores("user/model", endpoint=hub.address, **options) == expected(trained)
    asked = len(hub.requests)
    assert scores("user/model", endpoint=NOWHERE, **options) == expected(trained)
    assert scores("user/model", endpoint=NOWHERE, variables={"HF_HUB_OFFLINE": "1"}, **options) == expected(trained)
    assert len(hub.requests) == asked


def test_what_is_in_the_cache_is_regular_files(hub: Hub, published: list[str], tmp_path: Path) -> None:
    scores("user/model", revision=published[0], home=tmp_path, endpoint=hub.address)
    folder = tmp_path / "emoglot" / "models" / "user--model" / published[0]
    assert files_of(folder) == hub.repositories["user/model"].commits[published[0]]
    assert not any(path.is_symlink() for path in folder.rglob("*"))


def test_only_the_files_of_a_model_are_downloaded(hub: Hub, published: list[str], tmp_path: Path) -> None:
    repository = hub.repositories["user/model"]
    repository.commit(repository.commits[published[0]] | {"pytorch_model.bin": b"pickle", "run.py": b"code"})
    scores("user/model", home=tmp_path, endpoint=hub.address)
    asked = " ".join(hub.requests)
    assert "weights.safetensors" in asked
    assert "pytorch_model.bin" not in asked
    assert "run.py" not in asked


def test_a_pushed_model_is_loaded_back(hub: Hub, trained: Model, model_folder: Path, tmp_path: Path) -> None:
    options = json.dumps({"private": True, "token": "hf_secret"})
    address = run(PUSH, str(model_folder), "user/mine", options, home=tmp_path, endpoint=hub.address)
    repository = hub.repositories["user/mine"]
    assert repository.private
    assert hub.tokens == {"Bearer hf_secret"}
    assert address == f"{hub.address}/user/mine/commit/{repository.branches['main']}"
    assert scores("user/mine", home=tmp_path, endpoint=hub.address) == expected(trained)
    card = repository.commits[repository.branches["main"]]["README.md"].decode()
    assert card.startswith("---\nlibrary_name: emoglot\n")
    assert 'emoglot.load("user/mine")' in card


def test_a_push_to_a_branch_leaves_the_main_one(
    hub: Hub, published: list[str], trained: Model, model_folder: Path, tmp_path: Path
) -> None:
    options = json.dumps({"revision": "trial"})
    printed = run(PUSH, str(model_folder), "user/model", options, home=tmp_path, endpoint=hub.address)
    assert printed.endswith(hub.repositories["user/model"].branches["trial"])
    assert hub.repositories["user/model"].branches["main"] == published[1]
    assert scores("user/model", revision="trial", home=tmp_path, endpoint=hub.address) == expected(trained)


def test_a_push_removes_files_of_the_model_before(hub: Hub, model_folder: Path, tmp_path: Path) -> None:
    hub.repositories["user/model"] = repository = Repository()
    repository.commit({"encoder/model.onnx": b"old", "languages.json": b"[]", "notes.md": b"mine"})
    assert "/commit/" in run(PUSH, str(model_folder), "user/model", "{}", home=tmp_path, endpoint=hub.address)
    left = repository.commits[repository.branches["main"]].keys()
    assert left == files_of(model_folder).keys() | {"notes.md"}


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "user/unknown",
            {},
            "ModelError there is no model user/unknown: it is not a local folder, and the Hugging Face",
        ),
        ("user/model", {"revision": "v9"}, "ModelError user/model on the Hugging Face hub has no revision 'v9'"),
        (
            "user/other",
            {},
            "ModelError user/other on the Hugging Face hub is not an emoglot model: it has no model.json",
        ),
        ("user", {}, "ModelError there is no model folder user, and it is not a name of the Hugging Face hub such as"),
        (
            "a/b/c",
            {},
            "ModelError there is no model folder a/b/c, and it is not a name of the Hugging Face hub such as",
        ),
    ],
)
def test_a_name_without_a_model(
    name: str, options: dict[str, str], message: str, hub: Hub, published: list[str], tmp_path: Path
) -> None:
    hub.repositories["user/other"] = Repository()
    hub.repositories["user/other"].commit({"config.json": b"{}"})
    printed = scores(name, home=tmp_path, endpoint=hub.address, **options)
    assert printed.startswith(message)
    assert "\n" not in printed


def test_without_a_network(tmp_path: Path) -> None:
    printed = scores("user/model", home=tmp_path, endpoint=NOWHERE)
    assert printed.startswith("ModelError there is no local folder user/model, the Hugging Face hub cannot be reached")
    assert "check the network and HF_HUB_OFFLINE" in printed
    assert "\n" not in printed


def test_a_push_without_a_network(model_folder: Path, tmp_path: Path) -> None:
    printed = run(PUSH, str(model_folder), "user/model", "{}", home=tmp_path, endpoint=NOWHERE)
    assert printed.startswith("ModelError the Hugging Face hub did not serve user/model:")
    assert "\n" not in printed


def test_the_command_line_accepts_the_same_names(hub: Hub, published: list[str], tmp_path: Path) -> None:
    code = "import sys; from emoglot.cli import main; sys.exit(main())"
    arguments = ("predict", "--model", "user/model", "--json", "so happy")
    printed = run(code, *arguments, home=tmp_path, endpoint=hub.address)
    assert set(json.loads(printed)["scores"]) == {"anger", "fear", "joy", "love", "sadness"}


def test_a_downloaded_model_keeps_its_name_in_the_service_and_in_reports(
    hub: Hub, published: list[str], tmp_path: Path
) -> None:
    code = (
        "from emoglot.report.evidence import read_evidence\n"
        "from emoglot.serving.metrics import ServiceMetrics\n"
        "from emoglot.serving.service import Service\n"
        "from emoglot.serving.settings import Settings\n"
        "from pathlib import Path\n"
        "print(Service(Settings(model='user/model'), ServiceMetrics()).name, read_evidence(Path('user/model')).name)"
    )
    assert run(code, home=tmp_path, endpoint=hub.address).split() == ["user/model", "user/model"]


def test_a_local_folder_wins(trained: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained.save(tmp_path / "user" / "model")
    monkeypatch.chdir(tmp_path)
    np.testing.assert_array_equal(load("user/model").predict_proba(TEXTS), trained.predict_proba(TEXTS))
    with pytest.raises(UsageError, match="got 'v1' for the local folder user/model: leave it out"):
        load("user/model", revision="v1")
    with pytest.raises(UsageError, match="a revision is only for models of the Hugging Face hub"):
        load(revision="v1")


@pytest.mark.parametrize("name", ["user/model", "a/b", "Some-User_1/model.v1-x"])
def test_names_of_the_hub(name: str) -> None:
    assert is_hub_name(name)
    assert is_hub_name(Path(name))


@pytest.mark.parametrize(
    "name", ["model", "/user/model", "./model", "../model", "a/../b", "user/", "~/model", "user/modèle", "a/b\n", ""]
)
def test_names_that_the_hub_can_not_have(name: str) -> None:
    assert not is_hub_name(name)


def test_a_path_above_the_working_directory_is_never_asked_for() -> None:
    with pytest.raises(ModelError, match="there is no model folder"):
        find_model("../nobody-has-this")


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, trained: Model) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r"needs 'huggingface_hub'.*pip install 'emoglot\[hub\]'"):
        load("user/model")
    with pytest.raises(MissingExtraError, match=r"pip install 'emoglot\[hub\]'"):
        trained.push_to_hub("user/model")


def test_what_can_not_be_pushed(trained: Model) -> None:
    with pytest.raises(UsageError, match="must have the form user/model, got 'model'"):
        trained.push_to_hub("model")

    class Elsewhere(type(trained.encoder)):  # type: ignore[misc]
        name = "/home/me/encoder"

    with pytest.raises(UsageError, match="this one needs the folder '/home/me/encoder'"):
        Model(trained.state, Elsewhere()).push_to_hub("user/model")
