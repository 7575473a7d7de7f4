"""A small hub on loopback: what huggingface_hub asks to create, fill, list and read repositories of models."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

Files = dict[str, bytes]
_REPOSITORY = r"(?P<name>[^/]+/[^/]+)"


@dataclass
class Repository:
    """The commits of a repository, and the branches that point to them."""

    private: bool = False
    commits: dict[str, Files] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)

    def commit(self, files: Files, branch: str = "main") -> str:
        content = json.dumps([len(self.commits), *sorted(files)]).encode() + b"".join(files.values())
        sha = hashlib.sha1(content).hexdigest()
        self.commits[sha] = dict(files)
        self.branches[branch] = sha
        return sha

    def resolve(self, revision: str) -> str | None:
        sha = self.branches.get(revision, revision)
        return sha if sha in self.commits else None


@dataclass
class Hub:
    """What the server knows, and what it was asked."""

    address: str = ""
    repositories: dict[str, Repository] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, format: str, *arguments: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = unquote(urlsplit(self.path).path)
        self.hub.requests.append(f"{self.command} {path}")
        if token := self.headers.get("Authorization"):
            self.hub.tokens.add(token)
        for pattern, answer in _ROUTES:
            if match := re.fullmatch(pattern, f"{self.command} {path}"):
                return answer(self, **match.groupdict())
        return self.refuse("EntryNotFound")

    def send(self, value: Any, status: int = 200, **headers: str) -> None:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name.replace("_", "-"), text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def refuse(self, code: str, status: int = 404) -> None:
        self.send({"error": code}, status, X_Error_Code=code, X_Error_Message=code)

    def at(self, name: str, revision: str) -> tuple[Repository, str] | None:
        """Return the repository and the commit of a revision, or answer that there is none."""
        repository = self.hub.repositories.get(name)
        if repository is None:
            self.refuse("RepoNotFound")
            return None
        sha = repository.resolve(revision)
        if sha is None:
            self.refuse("RevisionNotFound")
            return None
        return repository, sha


def _create(handler: _Handler) -> None:
    asked = json.loads(handler.body)
    name = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else asked["name"]
    if name in handler.hub.repositories:
        return handler.send({"error": "already exists", "url": f"{handler.hub.address}/{name}"}, 409)
    handler.hub.repositories[name] = repository = Repository(
        private=asked.get("private") or asked.get("visibility") == "private"
    )
    repository.commit({".gitattributes": b""})
    return handler.send({"url": f"{handler.hub.address}/{name}", "name": name, "id": "1"})


def _branch(handler: _Handler, name: str, branch: str) -> None:
    repository = handler.hub.repositories[name]
    repository.branches[branch] = repository.branches["main"]
    handler.send({})


def _info(handler: _Handler, name: str, revision: str = "main") -> None:
    if found := handler.at(name, revision):
        repository, sha = found
        siblings = [{"rfilename": path} for path in repository.commits[sha]]
        handler.send({"id": name, "modelId": name, "sha": sha, "siblings": siblings, "private": repository.private})


def _tree(handler: _Handler, name: str, revision: str) -> None:
    if found := handler.at(name, revision):
        repository, sha = found
        files = repository.commits[sha].items()
        handler.send([{"type": "file", "path": path, "size": len(data), "oid": _etag(data)} for path, data in files])


def _file(handler: _Handler, name: str, revision: str, path: str) -> None:
    if found := handler.at(name, revision):
        repository, sha = found
        data = repository.commits[sha].get(path)
        if data is None:
            return handler.refuse("EntryNotFound")
        return handler.send(data, ETag=f'"{_etag(data)}"', X_Repo_Commit=sha, Accept_Ranges="bytes")
    return None


def _preupload(handler: _Handler, name: str, revision: str) -> None:
    paths = [file["path"] for file in json.loads(handler.body)["files"]]
    files = [{"path": path, "uploadMode": "regular", "shouldIgnore": False} for path in paths]
    handler.send({"files": files})


def _commit(handler: _Handler, name: str, revision: str) -> None:
    repository = handler.hub.repositories[name]
    files = dict(repository.commits[repository.branches[revision]])
    for line in handler.body.splitlines():
        item = json.loads(line)
        if item["key"] == "file":
            files[item["value"]["path"]] = base64.b64decode(item["value"]["content"])
        elif item["key"] == "deletedFile":
            del files[item["value"]["path"]]
    sha = repository.commit(files, revision)
    handler.send({"success": True, "commitOid": sha, "commitUrl": f"{handler.hub.address}/{name}/commit/{sha}"})


def _etag(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()


_ROUTES = [
    (r"POST /api/repos/create", _create),
    (r"POST /api/validate-yaml", lambda handler: handler.send({"errors": [], "warnings": []})),
    (rf"POST /api/models/{_REPOSITORY}/branch/(?P<branch>.+)", _branch),
    (rf"POST /api/models/{_REPOSITORY}/preupload/(?P<revision>.+)", _preupload),
    (rf"POST /api/models/{_REPOSITORY}/commit/(?P<revision>.+)", _commit),
    (rf"GET /api/models/{_REPOSITORY}", _info),
    (rf"GET /api/models/{_REPOSITORY}/revision/(?P<revision>.+)", _info),
    (rf"GET /api/models/{_REPOSITORY}/tree/(?P<revision>[^/]+)", _tree),
    (rf"(?:GET|HEAD) /{_REPOSITORY}/resolve/(?P<revision>[^/]+)/(?P<path>.+)", _file),
]


@contextmanager
def running_hub() -> Iterator[Hub]:
    """Serve an empty hub on loopback."""
    hub = Hub()
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    hub.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
