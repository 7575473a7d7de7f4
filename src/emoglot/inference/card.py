"""The model card: the README.md of a model folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from emoglot.config import flat
from emoglot.inference.description import ModelDescription

_HUB_METADATA = """---
library_name: emoglot
pipeline_tag: text-classification
tags:
- emotion
---

"""


def render_card(name: str, description: ModelDescription) -> str:
    """Return the card of a model as Markdown, made from its description."""
    sections = [
        f"# {name}",
        _introduction(description),
        "## Use\n\n" + f'```python\nimport emoglot\n\nmodel = emoglot.load("{name}")\nmodel.predict(["…"])\n```',
        "## Quality\n\n" + _quality(description),
        "## Training data\n\n" + _data(description.training),
        "## Settings\n\n" + "\n".join(f"- `{name}` = `{value}`" for name, value in flat(description.config).items()),
    ]
    return "\n\n".join(sections) + "\n"


def render_hub_card(name: str, description: ModelDescription) -> str:
    """Return the card with the metadata for the Hugging Face hub."""
    return _HUB_METADATA + render_card(name, description)


def _introduction(description: ModelDescription) -> str:
    encoder = description.encoder
    about = (
        f"Its encoder, `{encoder.name}`, was trained together with its head and is part of this folder"
        if description.config["fine_tune"]["enabled"]
        else f"It reads token vectors of the frozen encoder `{encoder.name}`, which is not part of this folder"
    )
    return (
        f"A {description.config['task']} text classifier made by emoglot {description.emoglot}. "
        f"Labels: {', '.join(description.labels)}.\n\n"
        f"{about} (fingerprint `{encoder.fingerprint}`)."
    )


def _quality(description: ModelDescription) -> str:
    metrics = description.metrics.overall
    about_wide = "; the logits of the n-grams were also scaled on them, without their labels"
    lines = [
        f"Measured on {metrics.rows} validation rows that chose the best epoch but neither weights nor thresholds, "
        f"so the figures are slightly optimistic{about_wide if description.config['wide']['enabled'] else ''}.",
        "",
        "| language | rows | macro-F1 | micro-F1 | Jaccard |",
        "|---|---|---|---|---|",
    ]
    for name, entry in {**description.metrics.languages, "all": metrics}.items():
        lines.append(f"| {name} | {entry.rows} | {_percents(entry.macro_f1, entry.micro_f1, entry.jaccard)} |")
    lines += ["", "| label | threshold | precision | recall | F1 | rows |", "|---|---|---|---|---|---|"]
    thresholds = dict(zip(description.labels, description.thresholds, strict=True))
    for label, own in metrics.per_class.items():
        threshold = "never predicted" if (value := thresholds[label]) is None else f"{value:.3f}"
        figures = _percents(own.precision, own.recall, own.f1)
        lines.append(f"| {_cell(label)} | {threshold} | {figures} | {own.support} |")
    return "\n".join(lines)


def _percents(*shares: float) -> str:
    return " | ".join(f"{100 * share:.1f}" for share in shares)


def _data(training: Mapping[str, Any]) -> str:
    lines = ["| part | rows | languages | fingerprint |", "|---|---|---|---|"]
    for part, summary in training["data"].items():
        languages = ", ".join(f"{code} {rows}" for code, rows in summary["languages"].items())
        lines.append(f"| {part} | {summary['rows']} | {_cell(languages)} | `{summary['fingerprint'][:16]}` |")
    lines += ["", f"Best epoch: {training['best_epoch']} of {training['epochs']}."]
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Return a name for a table cell: with escaped bars and without line breaks."""
    return " ".join(text.replace("|", r"\|").split())
