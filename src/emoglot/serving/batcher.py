"""The batcher: scores texts of several requests together, in slices, and returns answers in the order of texts."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Generic, TypeVar

Answer = TypeVar("Answer")

# Target time of a slice. A light request beside a heavy one waits only for the current slice, so it is still answered
# within a fraction of a second.
SLICE_SECONDS = 0.1
FIRST_BUDGET = 1024  # the initial cost of a slice, while the speed is unknown; every full slice may double it


class QueueFullError(Exception):
    """Raised when more texts would be waiting than allowed."""


@dataclass(frozen=True)
class Item:
    """A text with its cost, about one unit per token, and other arguments of the scoring function."""

    text: str
    cost: int
    question: Any = None


class _Turn(IntEnum):
    """The order of requests: those without a text in the last slice first, then new ones, then the others."""

    PASSED_OVER = 0
    NEW = 1
    SERVED = 2


@dataclass
class _Job(Generic[Answer]):
    """A request: its waiting texts, and its answers so far."""

    waiting: deque[Item]
    future: asyncio.Future[list[Answer]]
    answers: list[Answer] = field(default_factory=list)
    texts: int = 0
    turn: _Turn = _Turn.NEW


class Batcher(Generic[Answer]):
    """Collects texts while the model is busy, and passes it the next slice when it is free.

    A single client is served immediately. Large requests take turns with others, slice by slice. The maximum cost of a
    slice is adapted to the time that slices take, up to a limit.
    """

    def __init__(
        self,
        score: Callable[[Sequence[Item]], Sequence[Answer]],
        *,
        budget: int,
        wait: float,
        limit: int,
        seconds: float = SLICE_SECONDS,
        on_batch: Callable[[Sequence[Item], float], None] = lambda items, seconds: None,
        on_depth: Callable[[int], None] = lambda depth: None,
    ) -> None:
        """Score slices with `score`, in a separate thread.

        `budget` is the highest cost of a slice, `wait` the seconds to wait for more texts while there are several
        requests, `limit` the maximum number of waiting texts, `seconds` the target time of a slice.
        """
        self._score = score
        self._highest = budget
        self._budget = min(budget, FIRST_BUDGET)
        self._seconds = seconds
        self._wait = wait
        self._limit = limit
        self._on_batch = on_batch
        self._on_depth = on_depth
        self._jobs: list[_Job[Answer]] = []
        self._arrival = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "scoring")
        self.depth = 0  # number of texts that wait or are being scored

    async def submit(self, items: Sequence[Item]) -> list[Answer]:
        """Return the answers for some texts, in order."""
        if not items:
            return []
        if self.depth + len(items) > self._limit:
            raise QueueFullError
        job = _Job[Answer](deque(items), asyncio.get_running_loop().create_future(), texts=len(items))
        self._change_depth(len(items))
        self._jobs.append(job)
        self._arrival.set()
        try:
            return await job.future
        finally:  # also if the client has disconnected: its waiting texts are not scored
            self._change_depth(-len(items))

    def _change_depth(self, by: int) -> None:
        self.depth += by
        self._on_depth(self.depth)

    async def run(self) -> None:
        """Score slices until cancelled."""
        loop = asyncio.get_running_loop()
        crowd = False
        while True:
            await self._arrival.wait()
            if crowd and self._wait:
                await asyncio.sleep(self._wait)
            batch = self._take()
            crowd = len({id(job) for job, _ in batch}) > 1
            if not self._jobs:
                self._arrival.clear()
            if not batch:
                continue
            items = [item for _, item in batch]
            began = loop.time()
            answers = await loop.run_in_executor(self._thread, self._try, items)
            seconds = loop.time() - began
            self._adapt(sum(item.cost for item in items), seconds)
            self._on_batch(items, seconds)
            _deliver(batch, answers)

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False)

    def _adapt(self, cost: int, seconds: float) -> None:
        """Adapt the budget to the target time of a slice; small slices are ignored."""
        if cost >= self._budget / 2 or seconds > self._seconds:
            factor = min(2.0, max(0.5, self._seconds / max(seconds, 1e-6)))
            self._budget = min(self._highest, max(1, int(self._budget * factor)))

    def _try(self, items: Sequence[Item]) -> list[Answer | Exception]:
        """Score a slice; if that fails, score every text separately, so that a text can only fail its own request."""
        try:
            return list(self._score(items))
        except Exception as error:  # raised in the request of this text
            return [error] if len(items) == 1 else [answer for item in items for answer in self._try([item])]

    def _take(self) -> list[tuple[_Job[Answer], Item]]:
        """Return the next slice: a share of the budget for each request in turn, until the budget is used.

        A text that exceeds the rest of the budget is the first of the next slice.
        """
        jobs = [job for job in self._jobs if not job.future.done()]  # the clients of the others have disconnected
        queue = deque(sorted(jobs, key=lambda job: job.turn))
        share = max(1, self._budget // max(1, len(jobs)))
        batch: list[tuple[_Job[Answer], Item]] = []
        left = self._budget
        for job in jobs:
            job.turn = _Turn.PASSED_OVER
        while queue and left > 0:
            job, own = queue.popleft(), 0
            while job.waiting and own < share and (job.waiting[0].cost <= left or not batch):
                item = job.waiting.popleft()
                batch.append((job, item))
                own += max(1, item.cost)
                left -= max(1, item.cost)
                job.turn = _Turn.SERVED
            if own >= share:
                queue.append(job)
        self._jobs = [job for job in jobs if job.waiting]
        return batch


def _deliver(batch: Sequence[tuple[_Job[Answer], Item]], answers: Sequence[Answer | Exception]) -> None:
    for (job, _), answer in zip(batch, answers, strict=True):
        if job.future.done():
            continue
        if isinstance(answer, Exception):
            job.future.set_exception(answer)
            continue
        job.answers.append(answer)
        if len(job.answers) == job.texts:
            job.future.set_result(job.answers)
