"""The examples of docs/howto/integrations.md, each run as a program of its own."""

from __future__ import annotations

import re
import shutil
from importlib.metadata import entry_points

import pytest

from tests.docs_blocks import ROOT, Session

PAGE = ROOT / "docs" / "howto" / "integrations.md"


def example(title: str) -> str:
    """Return the code under a heading of the page."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
    return re.search(r"^```\w+\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)[1]


@pytest.fixture
def run(tmp_path):
    """Run an example, with more lines after it, and return what it printed."""
    session = Session(tmp_path / "session")

    def run_example(title: str, more: str = "") -> str:
        (session.folder / "example.py").write_text(example(title) + more, encoding="utf-8")
        return session.run_command("python example.py")

    run_example.folder = session.folder
    return run_example


def test_pandas(run):
    pytest.importorskip("pandas")
    assert re.search(r"^forum +0\.\d+", run("pandas and polars"), re.MULTILINE)


def test_spacy(run):
    pytest.importorskip("spacy", reason="SPACY IS NOT TESTED: pip install 'emoglot[spacy]'")
    if not entry_points(group="spacy_factories", name="emoglot"):
        pytest.skip("emoglot was installed before it had a component of spaCy: pip install --editable .")
    assert run("spaCy").splitlines() == ["('joy',) positive", "() neutral"]


def test_duckdb(run):
    pytest.importorskip("duckdb", reason="DUCKDB IS NOT TESTED: pip install duckdb")
    pytest.importorskip("pyarrow")
    assert re.search(r"│ forum +│ +0\.\d+ │", run("DuckDB"))


def test_spark(run):
    pytest.importorskip("pyspark", reason="SPARK IS NOT TESTED: pip install pyspark")
    if shutil.which("java") is None:
        pytest.skip("SPARK IS NOT TESTED: it needs Java")
    assert re.search(r"\|\[[a-z, ]*\bjoy\b[a-z, ]*\]", run("Spark"))


def test_a_task_of_a_scheduler_can_be_run_again(run):
    day = run.folder / "incoming" / "2026-01-31"
    day.mkdir(parents=True)
    (day / "a.csv").write_text("text\nso happy\nso,sad\n", encoding="utf-8")
    (day / "b.csv").write_text("text\nI am furious\n", encoding="utf-8")
    printed = run("Airflow, cron and other schedulers", "\n\nscore_day('2026-01-31')\nscore_day('2026-01-31')\n")
    assert printed.count("1 of 3 rows could not be scored") == 2
    scored = (run.folder / "scored" / "2026-01-31.csv").read_text(encoding="utf-8").splitlines()
    assert [line.split(",")[0] for line in scored] == ["text", "so happy", "I am furious"]
    with pytest.raises(AssertionError, match="exit code 3"):
        run("Airflow, cron and other schedulers", "\n\nscore_day('2026-02-01')\n")
