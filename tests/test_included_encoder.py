"""A model that includes its encoder: its files are copied wherever the model goes."""

from __future__ import annotations

import os
import pickle
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from emoglot import Model, ModelError, load
from emoglot.encoders import registry
from emoglot.encoders.registry import BUNDLED_NAME, load_encoder
from emoglot.files import walk_files


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return load(load().save(tmp_path_factory.mktemp("models") / "model"))


def test_files_as_old_as_time_can_be_pickled(model: Model) -> None:
    """Some installers date all files 1970, which a zip file cannot express."""
    for path in walk_files(model.encoder.folder):
        os.utime(path, (0, 0))
    assert pickle.loads(pickle.dumps(model)).predict("so happy") == model.predict("so happy")


def test_a_copy_of_a_read_only_folder_can_be_written(model: Model, tmp_path: Path) -> None:
    encoder = model.encoder.folder
    for path in (*walk_files(encoder), encoder):
        path.chmod(0o555)
    try:
        copy = model.save(tmp_path / "copy")
    finally:
        encoder.chmod(0o755)
    assert all(path.stat().st_mode & 0o200 for path in copy.rglob("*"))


def test_a_model_on_the_encoder_in_the_package_finds_it_in_another_environment(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = replace(model.state, includes_encoder=False)
    pickled = pickle.dumps(Model(state, load_encoder(BUNDLED_NAME)))
    monkeypatch.setattr(registry, "BUNDLED_MODEL", model.encoder.folder.parent)
    copy = pickle.loads(pickled)
    assert copy.encoder.folder == model.encoder.folder
    assert copy.predict("so happy") == model.predict("so happy")


def test_a_pickled_model_is_not_joined_with_another_encoder(model: Model) -> None:
    """As after an update of the package that brings another encoder."""
    state = replace(model.state, includes_encoder=False, encoder_fingerprint="of before")
    pickled = pickle.dumps(Model(state, load_encoder(BUNDLED_NAME)))
    with pytest.raises(ModelError, match="use the original encoder"):
        pickle.loads(pickled)


def test_files_that_were_replaced_are_not_saved_as_those_of_the_model(model: Model, tmp_path: Path) -> None:
    loaded = load(model.save(tmp_path / "model"))
    description = tmp_path / "model" / "encoder" / "encoder.json"
    content = description.read_text(encoding="utf-8")
    description.write_text(content.replace(model.encoder.fingerprint, "0" * 32), encoding="utf-8")
    with pytest.raises(ModelError, match="was removed or replaced after"):
        loaded.save(tmp_path / "copy")
    shutil.rmtree(tmp_path / "model")
    with pytest.raises(ModelError, match="was removed or replaced after"):
        loaded.save(tmp_path / "copy")
    assert not list(tmp_path.iterdir())
