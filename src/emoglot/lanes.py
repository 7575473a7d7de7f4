"""Work side by side: the cores there are, and results in the order in which the work was given."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def available_cores() -> list[int]:
    """Number the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def side_by_side(work: Callable[[Item], Result], items: Iterable[Item], lanes: int) -> Iterator[tuple[Item, Result]]:
    """Yield each item with what `work` makes of it, in order, so many at a time in threads."""
    if lanes < 2:
        yield from ((item, work(item)) for item in items)
        return
    with ThreadPoolExecutor(lanes) as pool:
        yield from in_order(lambda item: pool.submit(work, item), items, ahead=lanes)


def in_order(
    submit: Callable[[Item], Future[Result]], items: Iterable[Item], ahead: int
) -> Iterator[tuple[Item, Result]]:
    """Give each item with its result, in order; at most `ahead` more are under way, so that memory is bounded."""
    waiting: deque[tuple[Item, Future[Result]]] = deque()
    for item in items:
        waiting.append((item, submit(item)))
        if len(waiting) > ahead:
            done, future = waiting.popleft()
            yield done, future.result()
    for done, future in waiting:
        yield done, future.result()
