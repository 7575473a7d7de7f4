"""`emoglot languages`: a table, JSON, and damaged evidence."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path

from emoglot.evaluation.evidence import Language, write_languages
from tests.cli.harness import MODEL, Run, check_error


def test_languages(run: Run, model_folder: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(model_folder, tmp_path / "model"))
    check_error(run("languages", "--model", folder), MODEL, "has no languages.json")
    listed = [
        Language("sw", "Swahili", False, 0.457, 1200, 0.61, 300),
        Language("gn", "Guarani", True, None, 0, 0.3, 9),
    ]
    write_languages(listed, folder)
    assert json.loads(run("languages", "--model", folder, "--json").out) == [asdict(language) for language in listed]
    shown = run("languages", "--model", folder)
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in shown.out.splitlines() if "│" in line]
    assert ["sw", "Swahili", "46", "1200", "0.61", "300", ""] in cells
    assert ["gn", "Guarani", "", "", "0.30", "9", "weak"] in cells
    assert "2 languages, 1 of them weak" in shown.err
    wrong = json.dumps([asdict(listed[0]) | {"labelled_rows": "many"}])
    for content, reason in (
        ('[{"code": "sw"}]', "is damaged"),
        (wrong, "labelled_rows must be a whole number, got 'many'"),
        ("[" * 10**5, "JSON"),
    ):
        (folder / "languages.json").write_text(content, encoding="utf-8")
        check_error(run("languages", "--model", folder), MODEL, "languages.json", reason)
