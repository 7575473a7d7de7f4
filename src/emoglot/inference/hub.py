"""Models on the Hugging Face hub: download one by name and revision, upload a model folder."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from emoglot.encoders.store import cache_folder
from emoglot.errors import LONGEST_REASON, ModelError, UsageError, needs_extra, reason_of
from emoglot.files import folder_in_the_making, is_folder
from emoglot.inference.description import DESCRIPTION_FILE, LANGUAGES_FILE
from emoglot.inference.folder import ENCODER_FOLDER, FILES

# Names of repositories on the hub: letters, digits, ".", "_" and "-", with a letter or digit at either end.
_NAME = re.compile(r"\w(?:[\w.-]{0,94}\w)?/\w(?:[\w.-]{0,94}\w)?", re.ASCII)
_ENCODER_FILES = f"{ENCODER_FOLDER}/*"


def is_hub_name(name: str | os.PathLike[str]) -> bool:
    """Return whether a name has the form user/model, so that the hub may have it."""
    return _NAME.fullmatch(_spelling(name)) is not None


def find_model(name: str | os.PathLike[str], *, revision: str | None = None, token: str | bool | None = None) -> Path:
    """Return the folder of a model: a local folder, else a model of the hub, which is downloaded if it is not cached.

    `revision` is a branch, a tag or a commit of the hub; a downloaded commit is not looked up again.
    """
    if is_folder(name):
        if revision is not None:
            raise UsageError(
                f"a revision is only for models of the Hugging Face hub, got {revision!r} for the local folder {name}: "
                "leave it out, or load from another working directory"
            )
        return Path(name)
    if not is_hub_name(name):
        shown = os.fspath(name)[:LONGEST_REASON]
        raise ModelError(
            f"there is no model folder {shown}, and it is not a name of the Hugging Face hub such as user/model: "
            f"train one with `emoglot train --out {shown}`"
        )
    return _download(_spelling(name), revision, token)


def model_name(folder: Path) -> str:
    """Return the name to show for a model folder: its own, or user/model if it was downloaded."""
    folder = folder.resolve()
    return folder.parent.name.replace("--", "/", 1) if is_download(folder) else folder.name


def is_download(folder: Path) -> bool:
    """Return whether a model folder was downloaded from the hub."""
    return folder.resolve().parent.parent == _downloads().resolve()


def upload_folder(
    folder: Path, name: str, *, private: bool | None, token: str | bool | None, revision: str | None, message: str
) -> str:
    """Upload a model folder to the hub in one commit, and return the URL of the commit."""
    if not is_hub_name(name):
        raise UsageError(f"the name of a model on the Hugging Face hub must have the form user/model, got {name!r}")
    huggingface_hub = _import_hub()
    api = huggingface_hub.HfApi(token=token)
    with _one_sentence(name, revision):
        api.create_repo(name, private=private, exist_ok=True)
        if revision is not None:
            api.create_branch(name, branch=revision, exist_ok=True)
        commit = api.upload_folder(
            repo_id=name,
            folder_path=folder,
            revision=revision,
            commit_message=message,
            delete_patterns=[_ENCODER_FILES, LANGUAGES_FILE],  # files of the replaced model
        )
    return str(commit.commit_url)


def _download(name: str, revision: str | None, token: str | bool | None) -> Path:
    huggingface_hub = _import_hub()
    with _one_sentence(name, revision):
        patterns = [*FILES, _ENCODER_FILES]
        snapshot = Path(
            huggingface_hub.snapshot_download(name, revision=revision, token=token, allow_patterns=patterns)
        )
    if not (snapshot / DESCRIPTION_FILE).is_file():
        raise ModelError(
            f"{name} on the Hugging Face hub is not an emoglot model: it has no {DESCRIPTION_FILE}; if it is an "
            f"encoder, train a model on it with `emoglot train --encoder {name}`"
        )
    return _without_links(snapshot, _downloads() / name.replace("/", "--") / snapshot.name)


def _downloads() -> Path:
    """Return the folder of downloaded models: one per model, with a folder per commit."""
    return cache_folder() / "models"


def _without_links(snapshot: Path, folder: Path) -> Path:
    """Return a folder of regular files with the content of a snapshot, which consists of symbolic links."""
    if (folder / DESCRIPTION_FILE).is_file():
        return folder
    with folder_in_the_making(folder) as draft:
        shutil.copytree(snapshot, draft, copy_function=_link_or_copy, dirs_exist_ok=True)
    return folder


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(os.path.realpath(source), target)  # needs no disk space
    except OSError:  # another file system, or one without hard links
        shutil.copyfile(source, target)


@contextmanager
def _one_sentence(name: str, revision: str | None) -> Iterator[None]:
    """Turn the errors of huggingface_hub into a ModelError of one sentence."""
    from huggingface_hub import errors

    try:
        yield
    except errors.GatedRepoError as error:
        raise ModelError(
            f"{name} on the Hugging Face hub requires access by its owner: request access there, then pass token=…"
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise ModelError(
            f"there is no model {name}: it is not a local folder, and the Hugging Face hub has no public model of that "
            "name: check the spelling, or pass token=…"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise ModelError(
            f"{name} on the Hugging Face hub has no revision {revision!r}: use a branch, a tag or a full commit id"
        ) from error
    except errors.LocalEntryNotFoundError as error:
        raise ModelError(
            f"there is no local folder {name}, the Hugging Face hub cannot be reached, and its cache on this machine "
            "does not have the model: check the network and HF_HUB_OFFLINE, or use a model folder"
        ) from error
    except Exception as error:  # also errors of the HTTP library, which differ between versions
        raise ModelError(f"the Hugging Face hub did not serve {name}: {reason_of(error)}; try again later") from error


def _spelling(name: str | os.PathLike[str]) -> str:
    """Return a name with forward slashes, which a Path may have converted."""
    return name.as_posix() if isinstance(name, Path) else os.fspath(name)


def _import_hub() -> Any:
    with needs_extra("hub", "a model of the Hugging Face hub"):
        import huggingface_hub
    return huggingface_hub
