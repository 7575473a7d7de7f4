"""The batcher: texts of many requests are scored together, and every request gets its own answers in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class QueueFullError(Exception):
    """So many texts are waiting that one more would wait too long."""


@dataclass(frozen=True)
class Item:
    """A text, how many tokens it has, its language if it was named, and whether its words are to be weighed."""

    text: str
    tokens: int
    language: str | None = None
    explain: bool = False


@dataclass
class _Job(Generic[Answer]):
    """A request: the texts that still wait, and the answers so far."""

    waiting: deque[Item]
    future: asyncio.Future[list[Answer]]
    answers: list[Answer] = field(default_factory=list)
    texts: int = 0


class Batcher(Generic[Answer]):
    """Collects texts while the model is busy, and gives it the next batch when it is not.

    One client alone is served at once. Large requests take turns with others, so that nobody waits behind them.
    """

    def __init__(
        self,
        score: Callable[[Sequence[Item]], Sequence[Answer]],
        *,
        budget: int,
        wait: float,
        limit: int,
        on_batch: Callable[[Sequence[Item], float], None] = lambda items, seconds: None,
        on_depth: Callable[[int], None] = lambda depth: None,
    ) -> None:
        """Take the function that scores a batch, in a thread of its own; its token budget; and the longest queue."""
        self._score = score
        self._budget = budget
        self._wait = wait
        self._limit = limit
        self._on_batch = on_batch
        self._on_depth = on_depth
        self._jobs: deque[_Job[Answer]] = deque()
        self._arrival = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "scoring")
        self.depth = 0  # texts that wait or are being scored

    async def submit(self, items: Sequence[Item]) -> list[Answer]:
        """Give the answers for some texts, in order."""
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
        finally:  # also when the client is gone: what still waits is not scored
            self._change_depth(-len(items))

    def _change_depth(self, by: int) -> None:
        self.depth += by
        self._on_depth(self.depth)

    async def run(self) -> None:
        """Work until cancelled."""
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
            self._on_batch(items, loop.time() - began)
            _deliver(batch, answers)

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False)

    def _try(self, items: Sequence[Item]) -> list[Answer | Exception]:
        """Score a batch; if that fails, every text alone, so that one bad text is nobody else's trouble."""
        try:
            return list(self._score(items))
        except Exception as error:  # whatever it is, it is the client's to know
            return [error] if len(items) == 1 else [answer for item in items for answer in self._try([item])]

    def _take(self) -> list[tuple[_Job[Answer], Item]]:
        """Take texts in turns: of each request a share of the budget, then of the next, until the budget is used."""
        batch: list[tuple[_Job[Answer], Item]] = []
        left = self._budget
        waiting = sum(1 for job in self._jobs if not job.future.done())
        share = max(1, self._budget // max(1, waiting))
        while self._jobs and left > 0:
            job = self._jobs.popleft()
            if job.future.done():  # the client is gone
                continue
            own = 0
            while job.waiting and left > 0 and own < share:
                item = job.waiting.popleft()
                batch.append((job, item))
                own += max(1, item.tokens)
                left -= max(1, item.tokens)
            if job.waiting:
                self._jobs.append(job)
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
