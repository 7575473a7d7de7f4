"""The notebooks in examples/ run from the first cell to the last."""

from __future__ import annotations

import json
import os

import pytest

from tests.docs_blocks import ROOT

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, monkeypatch):
    nbformat = pytest.importorskip("nbformat", reason="NOTEBOOKS ARE NOT TESTED: pip install nbclient ipykernel")
    nbclient = pytest.importorskip("nbclient", reason="NOTEBOOKS ARE NOT TESTED: pip install nbclient ipykernel")
    pytest.importorskip("ipykernel", reason="NOTEBOOKS ARE NOT TESTED: pip install nbclient ipykernel")
    pytest.importorskip("pandas")
    paths = filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(path.parent)}}).execute()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert all(not cell["outputs"] for cell in cells if cell["cell_type"] == "code")
