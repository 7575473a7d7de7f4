"""The model card: what a model folder says about itself to people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def render(name: str, description: Mapping[str, Any]) -> str:
    """Write the card from the description that the folder also holds as JSON."""
    sections = [
        f"# {name}",
        _introduction(description),
        "## Use\n\n" + f'```python\nimport emoglot\n\nmodel = emoglot.load("{name}")\nmodel.predict(["…"])\n```',
        "## Quality\n\n" + _quality(description),
        "## Training data\n\n" + _data(description["training"]),
        "## Settings\n\n" + _settings(description["config"]),
    ]
    return "\n\n".join(sections) + "\n"


def _introduction(description: Mapping[str, Any]) -> str:
    labels = ", ".join(description["labels"])
    task = description["config"]["task"]
    encoder = description["encoder"]
    about = (
        f"Its encoder, `{encoder['name']}`, was trained together with its head and is part of this folder"
        if description["config"]["fine_tune"]["enabled"]
        else f"It reads token vectors of the frozen encoder `{encoder['name']}`, which is not part of this folder"
    )
    return (
        f"A {task} text classifier made by emoglot {description['emoglot']}. Labels: {labels}.\n\n"
        f"{about} (fingerprint `{encoder['fingerprint']}`)."
    )


def _quality(description: Mapping[str, Any]) -> str:
    metrics = description["metrics"]["overall"]
    lines = [
        f"Measured on {metrics['rows']} validation rows that chose the best epoch but neither weights nor thresholds, "
        "so slightly optimistic" + _about_wide(description["config"]) + ".",
        "",
        "| language | rows | macro-F1 | micro-F1 | Jaccard |",
        "|---|---|---|---|---|",
        *_language_rows(description["metrics"]),
        "",
        "| label | threshold | precision | recall | F1 | rows |",
        "|---|---|---|---|---|---|",
    ]
    thresholds = dict(zip(description["labels"], description["thresholds"], strict=True))
    for label, entry in metrics["per_class"].items():
        threshold = "never predicted" if thresholds[label] is None else f"{thresholds[label]:.3f}"
        figures = " | ".join(f"{100 * entry[key]:.1f}" for key in ("precision", "recall", "f1"))
        lines.append(f"| {_cell(label)} | {threshold} | {figures} | {entry['support']} |")
    return "\n".join(lines)


def _about_wide(config: Mapping[str, Any]) -> str:
    return "; the n-grams' logits were scaled on them too, which reads no label" if config["wide"]["enabled"] else ""


def _language_rows(metrics: Mapping[str, Any]) -> list[str]:
    rows = {**metrics["languages"], "all": metrics["overall"]}
    return [
        f"| {name} | {entry['rows']} | "
        + " | ".join(f"{100 * entry[key]:.1f}" for key in ("macro_f1", "micro_f1", "jaccard"))
        + " |"
        for name, entry in rows.items()
    ]


def _data(training: Mapping[str, Any]) -> str:
    lines = ["| part | rows | languages | fingerprint |", "|---|---|---|---|"]
    for part, summary in training["data"].items():
        languages = ", ".join(f"{code} {rows}" for code, rows in summary["languages"].items())
        lines.append(f"| {part} | {summary['rows']} | {_cell(languages)} | `{summary['fingerprint'][:16]}` |")
    lines += ["", f"Best epoch: {training['best_epoch']} of {training['epochs']}."]
    return "\n".join(lines)


def _settings(config: Mapping[str, Any]) -> str:
    flat = {"task": config["task"]}
    flat |= {f"{table}.{key}": value for table in config if table != "task" for key, value in config[table].items()}
    return "\n".join(f"- `{name}` = `{value}`" for name, value in flat.items())


def _cell(text: str) -> str:
    """Keep a bar in a name from ending its cell, and a line break from ending the table."""
    return " ".join(text.replace("|", r"\|").split())
