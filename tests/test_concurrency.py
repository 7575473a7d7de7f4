"""Work side by side comes back in order, and never too much of it is under way."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock

import numpy as np
import pytest

import emoglot
from emoglot.concurrency import in_order

WORDS = ["joy", "rain", "anger", "summer", "tears", "hope", "exam", "love", "rubbish", "gift", "night", "dog"]
TEXTS = [f"{one}, then {other}{'!' * (one < other)}" for one in WORDS for other in WORDS]


def test_results_come_in_order_and_few_are_under_way():
    started, given, most = 0, 0, 0
    lock = Lock()

    def work(number: int) -> int:
        time.sleep(0.002 * (number % 3))  # some overtake others
        return number * number

    with ThreadPoolExecutor(4) as pool:

        def submit(number: int) -> Future[int]:
            nonlocal started, most
            with lock:
                started += 1
                most = max(most, started - given)
            return pool.submit(work, number)

        for number, (item, result) in enumerate(in_order(submit, range(50), ahead=3)):
            assert (item, result) == (number, number * number)
            given += 1
    assert given == 50
    assert most == 4


def test_a_failure_is_raised_in_its_turn():
    with ThreadPoolExecutor(2) as pool:
        results = in_order(lambda divisor: pool.submit(lambda: 6 // divisor), [3, 2, 0, 1], ahead=2)
        assert [next(results), next(results)] == [(3, 2), (2, 3)]
        with pytest.raises(ZeroDivisionError):
            next(results)


@pytest.mark.parametrize("lanes", [2, 3])
def test_scores_do_not_depend_on_what_is_scored_beside_them(lanes, monkeypatch):
    monkeypatch.setattr("emoglot.encoders.features.available_cores", lambda: list(range(lanes)))
    monkeypatch.setattr("emoglot.inference.pipeline.CHUNK", 7)
    together = emoglot.load().predict_proba(TEXTS)
    monkeypatch.setattr("emoglot.encoders.features.available_cores", lambda: [0])
    model = emoglot.load()
    np.testing.assert_array_equal(together, model.predict_proba(TEXTS))
    alone = np.concatenate([model.predict_proba([text]) for text in TEXTS[:40]])
    np.testing.assert_array_equal(together[:40], alone)
    assert len({row.tobytes() for row in together}) > len(TEXTS) / 2  # or the order could not be seen
