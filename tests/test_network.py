"""What docs/security.md promises of the network and of files, watched from outside: no telemetry, no lookup."""

from __future__ import annotations

import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
import urllib3

from emoglot.encoders.onnxruntime import TELEMETRY_SWITCH, import_onnxruntime
from tests.test_package import SOURCE

ROOT = Path(__file__).parent.parent
CALLS = "%network,open,openat,creat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,symlink,symlinkat"
# Variables that switch onnxruntime's telemetry off without us.
HIDDEN = (TELEMETRY_SWITCH, "ORT_RUNNING_UNIT_TESTS", "CI", "GITHUB_ACTIONS", "TF_BUILD")
ADDRESS = re.compile(r'inet_(?:addr\(|pton\(AF_INET6, )"([^"]+)"')
LOOPBACK = re.compile(r"127\.\d+\.\d+\.\d+|::1|::ffff:127\.\d+\.\d+\.\d+")
# Devices, and the semaphores of multiprocessing, which are names in memory.
NOT_FILES = re.compile(r"/dev/(null|tty|shm/.*)|/proc/.*")


def _why_not_traced() -> str:
    if shutil.which("strace") is None:
        return "needs strace: apt install strace"
    tried = subprocess.run(["strace", "-f", "-qq", "-o", os.devnull, "true"], capture_output=True, check=False)
    return "strace may not trace here" if tried.returncode else ""


traced = pytest.mark.skipif(bool(_why_not_traced()), reason=_why_not_traced() or "-")


@dataclass(frozen=True)
class Watched:
    """A command that runs under strace in a home of its own."""

    folder: Path

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        for name in ("home", "tmp", "out"):
            (self.folder / name).mkdir()
        kept = {name: value for name, value in os.environ.items() if name not in HIDDEN and "CACHE" not in name}
        own = {"HOME": str(self.folder / "home"), "TMPDIR": str(self.folder / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"}
        strace = ["strace", "-f", "-qq", "-y", "-s", "300", "-e", f"trace={CALLS}", "-o", str(self.folder / "trace")]
        return subprocess.Popen(
            [*strace, sys.executable, *map(str, arguments)],
            env=kept | own,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def calls(self) -> list[str]:
        """List the system calls that succeeded."""
        lines = (self.folder / "trace").read_text(encoding="utf-8", errors="replace").splitlines()
        return [line for line in lines if " = -1 " not in line]

    def addresses(self) -> set[str]:
        """Return the addresses of other machines that any call names, of connections that failed, too."""
        found = ADDRESS.findall((self.folder / "trace").read_text(encoding="utf-8", errors="replace"))
        return {address for address in found if not LOOPBACK.fullmatch(address)}

    def looked_up(self) -> list[str]:
        """List the calls by which a resolver begins to look up a name."""
        return [line for line in self.calls() if "resolv.conf" in line or "htons(53)" in line]

    def written(self) -> set[str]:
        """Return what was opened for writing, made or moved."""
        is_writing = re.compile(r"O_(WRONLY|RDWR|CREAT)|(creat|mkdir|rename|link)(at2?)?\(")
        paths: set[str] = set()
        for line in filter(is_writing.search, self.calls()):
            _, _, arguments = line.partition("(")
            place = re.search(r"(?:AT_FDCWD|\d+)<([^>]*)>", arguments)
            paths |= {str(Path(place[1] if place else "/") / name) for name in re.findall(r'"([^"]*)"', arguments)}
        return {path for path in paths if not NOT_FILES.fullmatch(path)}


def check_silent(watched: Watched, *folders: str) -> None:
    """No lookup, no other machine, and no file outside of these folders; nothing in the home."""
    assert watched.looked_up() == []
    assert watched.addresses() == set()
    allowed = tuple(str(watched.folder / name) for name in folders)
    assert {path for path in watched.written() if not path.startswith(allowed)} == set()
    assert list((watched.folder / "home").iterdir()) == []


@traced
def test_predict_is_silent(tmp_path):
    watched = Watched(tmp_path)
    process = watched.start("-m", "emoglot", "predict", "What a wonderful day")
    told, _ = process.communicate(timeout=120)
    assert process.returncode == 0, told
    assert "joy" in told
    check_silent(watched, "tmp")


@traced
def test_score_is_silent_in_all_its_processes(tmp_path):
    (tmp_path / "in.csv").write_text("text\nso happy\nso sad\n", encoding="utf-8")
    watched = Watched(tmp_path)
    arguments = ("score", tmp_path / "in.csv", tmp_path / "out" / "out.csv", "--jobs", 2)
    process = watched.start("-m", "emoglot", *arguments)
    told, _ = process.communicate(timeout=180)
    assert process.returncode == 0, told
    check_silent(watched, "out", "tmp")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["out.csv"]
    assert list((tmp_path / "tmp").iterdir()) == []


@traced
def test_the_service_is_silent(tmp_path):
    pytest.importorskip("uvicorn")
    watched = Watched(tmp_path)
    process = watched.start("-m", "emoglot", "serve", "--port", 0)
    assert process.stdout is not None
    try:
        address = next(found[1] for line in process.stdout if (found := re.search(r"running on (http://\S+)", line)))
        answer = urllib3.request("POST", f"{address}/v1/predict", json={"texts": ["so happy"]}, retries=False)
        assert answer.status == 200, answer.data
        time.sleep(1)  # what is sent in the background begins soon after the model is loaded
    finally:
        _end_traced(process, watched)
    check_silent(watched, "tmp")
    assert list((tmp_path / "tmp").iterdir()) == []


def _end_traced(process: subprocess.Popen[str], watched: Watched) -> None:
    """End the service itself: strace, when it is asked to end, would let it run on."""
    first = (watched.folder / "trace").read_text(encoding="utf-8", errors="replace").split(maxsplit=1)[0]
    os.kill(int(first), signal.SIGTERM)
    process.communicate(timeout=60)


@traced
def test_the_watch_sees_what_the_tests_above_look_for(tmp_path):
    """A datagram socket that is connected sends nothing; the address is one that no machine has."""
    code = (
        "import pathlib, socket; pathlib.Path.home().joinpath('.cache').mkdir(); "
        "pathlib.Path.home().joinpath('.cache', 'file').write_text('x'); pathlib.Path('/etc/resolv.conf').read_text(); "
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('192.0.2.1', 53))"
    )
    watched = Watched(tmp_path)
    told, _ = watched.start("-c", code).communicate(timeout=60)
    assert told == ""
    assert "192.0.2.1" in watched.addresses()
    assert {"openat", "connect"} <= {re.split(r"[ (]+", line)[1] for line in watched.looked_up()}
    cache = tmp_path / "home" / ".cache"
    assert watched.written() == {str(cache), str(cache / "file")}


def _names_onnxruntime(path: Path) -> bool:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""] if node.level == 0 else []
        else:
            continue
        if any(name.partition(".")[0] == "onnxruntime" for name in names):
            return True
    return 'import_module("onnxruntime' in path.read_text(encoding="utf-8")


def test_one_module_imports_onnxruntime():
    folders = (SOURCE, ROOT / "benchmarks", ROOT / "examples", ROOT / "recipes")
    files = [path for folder in folders for path in folder.rglob("*.py")]
    assert [path for path in files if _names_onnxruntime(path)] == [SOURCE / "encoders" / "onnxruntime.py"]


@pytest.mark.parametrize("given", [None, "0", ""])
def test_a_variable_that_the_user_has_set_is_kept(given, monkeypatch):
    """With a stand-in for onnxruntime: a test must not send what the package does not."""
    calls: list[str] = []
    stand_in = ModuleType("onnxruntime")
    stand_in.disable_telemetry_events = lambda: calls.append(os.environ[TELEMETRY_SWITCH])
    monkeypatch.setitem(sys.modules, "onnxruntime", stand_in)
    monkeypatch.setenv(TELEMETRY_SWITCH, given or "")
    if given is None:
        monkeypatch.delenv(TELEMETRY_SWITCH)
    assert import_onnxruntime() is stand_in
    assert import_onnxruntime() is stand_in
    assert os.environ[TELEMETRY_SWITCH] == ("1" if given is None else given)
    assert calls == (["1"] if given is None else [])
