"""The model card: what it tells people, and that a model works without it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from emoglot import load
from emoglot.inference.folder import ModelState, write_model
from emoglot.model import Model
from tests.hostile.folders import put
from tests.inference.altered import TEXTS


def test_the_card(trained: Model, model_folder: Path) -> None:
    text = (model_folder / "README.md").read_text(encoding="utf-8")
    metrics = trained.metrics.overall
    assert text.startswith("# tiny-model\n")
    for label, entry in metrics.per_class.items():
        threshold = trained.thresholds[label]
        shown = "never predicted" if math.isinf(threshold) else f"{threshold:.3f}"
        assert f"| {label} | {shown} | {100 * entry.precision:.1f} |" in text
    for name, entry in {**trained.metrics.languages, "all": metrics}.items():
        assert f"| {name} | {entry.rows} | {100 * entry.macro_f1:.1f} | {100 * entry.micro_f1:.1f} |" in text
    assert f"Measured on {metrics.rows} validation rows" in text
    assert "the frozen encoder `tiny`" in text
    assert "- `head.hidden` = `8`" in text
    data = json.loads((model_folder / "model.json").read_text(encoding="utf-8"))["training"]["data"]
    for part, summary in data.items():
        languages = ", ".join(f"{code} {rows}" for code, rows in summary["languages"].items())
        assert f"| {part} | {summary['rows']} | {languages} |" in text
        assert summary["fingerprint"][:16] in text


def test_a_bar_in_a_label_does_not_break_the_card(state: ModelState, tmp_path: Path) -> None:
    rename = {name: "joy|love" if name == "joy" else name for name in state.labels}
    labels, overall = tuple(rename.values()), state.metrics.overall
    per_class = {rename[name]: entry for name, entry in overall.per_class.items()}
    metrics = replace(state.metrics, overall=replace(overall, per_class=per_class))
    write_model(replace(state, labels=labels, metrics=metrics), tmp_path / "model", "0")
    lines = (tmp_path / "model" / "README.md").read_text(encoding="utf-8").splitlines()
    (row,) = [line for line in lines if line.startswith("| joy")]
    assert row.replace(r"\|", "").count("|") == 7
    assert load(tmp_path / "model").labels == labels


@pytest.mark.parametrize("is_recorded", [False, True])
def test_the_card_may_be_edited(is_recorded: bool, folder: Path) -> None:
    if is_recorded:  # as earlier versions did
        put(folder, "README.md", (folder / "README.md").read_bytes())
    with (folder / "README.md").open("a", encoding="utf-8") as card:
        card.write("\nTrained on our own reviews.\n")
    assert load(folder).labels


def test_the_card_is_for_people_only(folder: Path, trained: Model) -> None:
    (folder / "README.md").unlink()
    np.testing.assert_array_equal(load(folder).predict_proba(TEXTS), trained.predict_proba(TEXTS))
