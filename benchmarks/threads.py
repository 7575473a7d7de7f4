"""Measures how much parallel trainings slow each other down: one and two processes, with one and two threads each.

    python -m benchmarks.threads

Each process trains for one epoch on a quarter of the rows of `benchmarks.training`. The time is measured from when all
are ready until the last has finished.
"""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.synchronize import Barrier

import numpy as np
import torch

from benchmarks.training import DIM, ROWS, make_labelled
from emoglot.config import Config
from emoglot.training.trainer import HeadLearner, Trainer

SHARE = 4


def work(threads: int, ready: Barrier, done: Barrier) -> None:
    torch.set_num_threads(threads)
    labelled = make_labelled().select(np.arange(0, ROWS, SHARE))
    trainer = Trainer(HeadLearner(Config(), DIM), labelled, Config(), torch.device("cpu"))
    trainer.start()
    ready.wait()
    trainer.run_epoch(number=1)
    done.wait()


def seconds(processes: int, threads: int) -> float:
    context = multiprocessing.get_context("spawn")
    ready, done = context.Barrier(processes + 1), context.Barrier(processes + 1)
    workers = [context.Process(target=work, args=(threads, ready, done)) for _ in range(processes)]
    for worker in workers:
        worker.start()
    ready.wait()
    began = time.perf_counter()
    done.wait()
    took = time.perf_counter() - began
    for worker in workers:
        worker.join()
    return took


def main() -> None:
    print("| processes | threads of each | seconds | trainings a minute |\n|---|---|---|---|")
    for processes, threads in ((1, 1), (1, 2), (2, 1), (2, 2)):
        took = seconds(processes, threads)
        print(f"| {processes} | {threads} | {took:.1f} | {60 * processes / took:.1f} |", flush=True)


if __name__ == "__main__":
    main()
