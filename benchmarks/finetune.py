"""Compares fine-tuning and prediction with `e5-small` with the transformers library, for the same network and batches.

    python -m benchmarks.finetune --data DIR [--steps 40] [--texts 1000]

DIR contains `semeval2018-ec`. Install `e5-small` (`emoglot encoders install e5-small`) and accelerate, which
`transformers.Trainer` needs. Each method runs in its own process with all cores, one after another, on the same tweets:
in training the first batches of 32 of one seed, in prediction tweets of the dev files in order.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

BATCH = 32
WARM_UP_STEPS = 3
MODEL, TEXTS = "model", "texts.json"


def tweets(data: Path, part: str) -> Any:
    from emoglot.data.dataset import concatenate
    from emoglot.data.registry import read

    return concatenate(read(path) for path in sorted(data.glob(f"semeval2018-ec/*-{part}.txt")))


def our_steps(precision: str) -> Callable[[Path, int, Path], float]:
    """Return the seconds per step of `emoglot train --fine-tune`."""

    def measure(data: Path, steps: int, root: Path) -> float:
        import torch

        from emoglot.config import Config
        from emoglot.encoders.registry import load_trainable
        from emoglot.text.normalise import normalise_text
        from emoglot.training.finetune import FineTuner, read_inputs
        from emoglot.training.part import Part
        from emoglot.training.trainer import Trainer

        training = tweets(data, "train")
        config = Config.for_fine_tuning().override({"fine_tune.precision": precision})
        encoder = load_trainable("e5-small")
        texts = [normalise_text(text) for text in training.texts]
        labelled = Part(training, texts, read_inputs(encoder, texts, config, None, None))
        trainer = Trainer(FineTuner(encoder, config), labelled, config, torch.device("cpu"))
        trainer.start()
        return timed_steps(lambda after_step: trainer.run_epoch(1, lambda *_: after_step()), steps)

    return measure


class EnoughError(Exception):
    """Ends a training after a number of steps."""


def timed_steps(run: Callable[[Callable[[], None]], Any], steps: int) -> float:
    """Run until the given number of steps is over, and return the seconds of each but the first few."""
    moments: list[float] = []

    def after_step() -> None:
        moments.append(time.perf_counter())
        if len(moments) == WARM_UP_STEPS + steps:
            raise EnoughError

    with contextlib.suppress(EnoughError):
        run(after_step)
    return (moments[-1] - moments[WARM_UP_STEPS - 1]) / steps


def trainer_steps(*, train_embeddings: bool) -> Callable[[Path, int, Path], float]:
    """Return the seconds per step of `transformers.Trainer`, with or without training the token embeddings."""

    def measure(data: Path, steps: int, root: Path) -> float:
        import torch
        from transformers import (
            AutoModelForSequenceClassification,
            AutoTokenizer,
            DataCollatorWithPadding,
            Trainer,
            TrainerCallback,
            TrainingArguments,
        )

        from emoglot.encoders.store import encoder_folder
        from emoglot.text.normalise import normalise_text

        folder = encoder_folder("e5-small")
        training = tweets(data, "train")
        tokenizer = AutoTokenizer.from_pretrained(folder)
        network = AutoModelForSequenceClassification.from_pretrained(
            folder, num_labels=len(training.labels), problem_type="multi_label_classification"
        )
        if not train_embeddings:
            network.get_input_embeddings().requires_grad_(False)
        rows = [
            {"input_ids": ids, "labels": targets.astype(np.float32)}
            for ids, targets in zip(
                tokenizer([normalise_text(text) for text in training.texts], truncation=True, max_length=128)[
                    "input_ids"
                ],
                training.targets,
                strict=True,
            )
        ]

        def run(after_step: Callable[[], None]) -> None:
            class Watch(TrainerCallback):
                def on_step_end(self, *_: Any, **__: Any) -> None:
                    after_step()

            arguments = TrainingArguments(
                output_dir=str(root / "trainer"),
                per_device_train_batch_size=BATCH,
                num_train_epochs=1,
                use_cpu=True,
                report_to=[],
                save_strategy="no",
                disable_tqdm=True,
            )
            Trainer(
                model=network,
                args=arguments,
                train_dataset=rows,
                data_collator=DataCollatorWithPadding(tokenizer),
                callbacks=[Watch()],
            ).train()

        torch.manual_seed(0)
        return timed_steps(run, steps)

    return measure


def our_answers(texts: list[str], root: Path) -> Callable[[], Any]:
    """Return a function that predicts with a fine-tuned model in int8."""
    import emoglot

    model = emoglot.load(root / MODEL)
    return lambda: model.predict_proba(texts)


def pipeline_answers(batch: int) -> Callable[[list[str], Path], Callable[[], Any]]:
    """Return a method that predicts with a transformers pipeline of the same network."""

    def prepare(texts: list[str], root: Path) -> Callable[[], Any]:
        from transformers import AutoModelForSequenceClassification, AutoTokenizer, TextClassificationPipeline

        from emoglot.encoders.store import encoder_folder

        folder = encoder_folder("e5-small")
        network = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=11)
        classify = TextClassificationPipeline(model=network, tokenizer=AutoTokenizer.from_pretrained(folder))
        return lambda: classify(texts, batch_size=batch, top_k=None, function_to_apply="sigmoid", truncation=True)

    return prepare


TRAINING: dict[str, Callable[[Path, int, Path], float]] = {
    "emoglot train --fine-tune": our_steps("float32"),
    "emoglot train --fine-tune --set fine_tune.precision=bfloat16": our_steps("bfloat16"),
    "transformers.Trainer, embeddings frozen": trainer_steps(train_embeddings=False),
    "transformers.Trainer as it is": trainer_steps(train_embeddings=True),
}
PREDICTION: dict[str, Callable[[list[str], Path], Callable[[], Any]]] = {
    "emoglot, int8": our_answers,
    "transformers pipeline, one text a call": pipeline_answers(1),
    f"transformers pipeline, batches of {BATCH}": pipeline_answers(BATCH),
}


def make_model(root: Path, data: Path) -> None:
    """Fine-tune for a few steps; speed does not depend on the quality of weights."""

    rows = tweets(data, "dev").select(np.arange(0, 2000, 16))
    from emoglot.config import Config
    from emoglot.training.train import train_model

    model = train_model("e5-small", rows, config=Config.for_fine_tuning(), quantize="int8")
    model.save(root / MODEL)


def measure(way: str, data: Path, steps: int, root: Path) -> None:
    """Print one number; runs in its own process."""
    if way in TRAINING:
        print(TRAINING[way](data, steps, root))
        return
    answer = PREDICTION[way](json.loads((root / TEXTS).read_text()), root)
    began = time.perf_counter()
    answer()
    print(time.perf_counter() - began)


def run_apart(way: str, data: Path, steps: int, root: Path) -> float:
    command = [sys.executable, "-m", "benchmarks.finetune", "--way", way, "--data", str(data)]
    command += ["--steps", str(steps), "--root", str(root)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    return float(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--way", choices=[*TRAINING, *PREDICTION, MODEL], help=argparse.SUPPRESS)
    parser.add_argument("--root", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.way == MODEL:
        make_model(arguments.root, arguments.data)
        print(0)
    elif arguments.way:
        measure(arguments.way, arguments.data, arguments.steps, arguments.root)
    else:
        report(arguments.data, arguments.steps, arguments.texts)


def report(data: Path, steps: int, count: int) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        dev = tweets(data, "dev").texts
        chosen = np.random.default_rng(0).permutation(len(dev))[:count]
        (root / TEXTS).write_text(json.dumps([dev[row] for row in chosen]))
        print("| training | seconds a step of 32 tweets | ratio |\n|---|---|---|")
        took = {way: run_apart(way, data, steps, root) for way in TRAINING}
        ours = took[next(iter(TRAINING))]
        for way, seconds in took.items():
            print(f"| {way} | {seconds:.2f} | {seconds / ours:.2f} |", flush=True)
        run_apart(MODEL, data, steps, root)
        print("\n| prediction | texts/s | ratio |\n|---|---|---|")
        rates = {way: count / run_apart(way, data, steps, root) for way in PREDICTION}
        for way, rate in rates.items():
            print(f"| {way} | {rate:.0f} | {rates[next(iter(PREDICTION))] / rate:.2f} |", flush=True)


if __name__ == "__main__":
    main()
