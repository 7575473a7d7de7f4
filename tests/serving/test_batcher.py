"""The batcher alone, with a model that notes what it is given."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from emoglot.serving.batcher import Batcher, Item, QueueFullError


class TestBatcher:
    """The batcher alone, with a model that notes what it is given."""

    @staticmethod
    def run(score, ask, **options):
        async def both():
            batcher = Batcher(score, **{"budget": 10, "wait": 0.0, "limit": 100, "seconds": 60.0} | options)
            worker = asyncio.create_task(batcher.run())
            try:
                return await ask(batcher)
            finally:
                worker.cancel()
                batcher.close()

        return asyncio.run(both())

    @staticmethod
    def items(name: str, count: int) -> list[Item]:
        return [Item(f"{name}{number}", 1) for number in range(count)]

    def test_texts_of_many_requests_are_scored_together_within_the_budget(self):
        batches = []
        first = threading.Event()

        def score(items):
            first.wait(5)  # the first batch waits until all requests are there
            batches.append([item.text for item in items])
            return [item.text.upper() for item in items]

        async def ask(batcher):
            asked = [asyncio.create_task(batcher.submit(self.items(name, 5))) for name in "abcdef"]
            await asyncio.sleep(0.05)
            first.set()
            return await asyncio.gather(*asked)

        answers = self.run(score, ask)
        assert answers == [[f"{name.upper()}{number}" for number in range(5)] for name in "abcdef"]
        assert all(len(batch) <= 10 for batch in batches)
        assert len(batches) <= 5

    def test_a_small_request_does_not_wait_behind_a_large_one(self):
        order = []

        def score(items):
            time.sleep(0.005)
            return [item.text for item in items]

        async def ask(batcher):
            async def one(name, count):
                await batcher.submit(self.items(name, count))
                order.append(name)

            large = asyncio.create_task(one("large", 90))
            await asyncio.sleep(0.01)
            await one("small", 2)
            await large

        self.run(score, ask)
        assert order == ["small", "large"]

    def test_a_small_request_waits_for_one_long_text_only(self):
        batches = []
        begun, goes_on = threading.Event(), threading.Event()

        def score(items):
            batches.append([item.text for item in items])
            begun.set()
            goes_on.wait(5)  # the first batch waits until the small request is there
            return [item.text for item in items]

        async def ask(batcher):
            large = asyncio.create_task(batcher.submit([Item(f"long{number}", 25) for number in range(3)]))
            await asyncio.to_thread(begun.wait, 5)
            small = asyncio.create_task(batcher.submit(self.items("small", 2)))
            await asyncio.sleep(0.05)
            goes_on.set()
            return await asyncio.gather(large, small)

        answers = self.run(score, ask)
        assert answers == [["long0", "long1", "long2"], ["small0", "small1"]]
        assert batches == [["long0"], ["small0", "small1"], ["long1"], ["long2"]]

    def test_a_long_text_has_its_turn_among_many_small_requests(self):
        batches = []

        def score(items):
            time.sleep(0.005)
            batches.append([item.text for item in items])
            return [item.text for item in items]

        async def ask(batcher):
            async def keep_asking(name):
                for _ in range(20):
                    await batcher.submit(self.items(name, 5))

            crowd = [asyncio.create_task(keep_asking(name)) for name in "abc"]
            await asyncio.sleep(0.02)
            await batcher.submit([Item("long", 25)])
            await asyncio.gather(*crowd)

        self.run(score, ask)
        (place,) = [place for place, batch in enumerate(batches) if "long" in batch]
        assert place < 10

    def test_a_full_queue_refuses(self):
        async def ask(batcher):
            kept = asyncio.create_task(batcher.submit(self.items("a", 60)))
            await asyncio.sleep(0)
            with pytest.raises(QueueFullError):
                await batcher.submit(self.items("b", 60))
            assert len(await kept) == 60
            assert batcher.depth == 0
            return await batcher.submit(self.items("b", 60))

        assert len(self.run(lambda items: [item.text for item in items], ask)) == 60

    def test_a_text_that_breaks_the_model_breaks_its_own_request_only(self):
        def score(items):
            if any(item.text == "bad0" for item in items):
                raise ValueError("no")
            return [item.text for item in items]

        async def ask(batcher):
            return await asyncio.gather(
                *(batcher.submit(self.items(name, 2)) for name in ("good", "bad", "fine")), return_exceptions=True
            )

        good, bad, fine = self.run(score, ask)
        assert (good, fine) == (["good0", "good1"], ["fine0", "fine1"])
        assert isinstance(bad, ValueError)

    def test_what_a_gone_client_asked_is_not_scored(self):
        scored = []

        def score(items):
            time.sleep(0.01)
            scored.extend(item.text for item in items)
            return [item.text for item in items]

        async def ask(batcher):
            gone = asyncio.create_task(batcher.submit(self.items("gone", 90)))
            await asyncio.sleep(0.005)
            gone.cancel()
            assert await batcher.submit(self.items("here", 3)) == ["here0", "here1", "here2"]
            await asyncio.sleep(0.05)
            assert batcher.depth == 0

        self.run(score, ask)
        assert len([text for text in scored if text.startswith("gone")]) <= 10

    def test_a_light_request_waits_at_most_two_slices_of_a_heavy_one(self):
        slices = []

        def score(items):
            time.sleep(0.002)
            slices.append([item.text for item in items])
            return [item.text for item in items]

        async def ask(batcher):
            heavy = asyncio.create_task(batcher.submit(self.items("heavy", 400)))
            for _ in range(5):
                before = len(slices)
                await asyncio.sleep(0.005)
                began = len(slices)
                await batcher.submit(self.items("light", 1))
                assert len(slices) - began <= 2
                assert len(slices) > before
                assert not heavy.done()
            await heavy

        self.run(score, ask, limit=1000)
        assert max(map(len, slices)) <= 10

    def test_slices_shrink_until_they_take_no_longer_than_they_should(self):
        """Each text takes two milliseconds, a slice should take twenty, and the budget would allow a second."""
        slices = []

        def score(items):
            time.sleep(0.002 * len(items))
            slices.append(len(items))
            return [item.text for item in items]

        self.run(score, lambda batcher: batcher.submit(self.items("a", 500)), budget=500, limit=1000, seconds=0.02)
        assert slices[0] > 100
        assert all(size <= 20 for size in slices[6:])

    def test_slices_grow_up_to_the_budget_where_the_model_is_fast(self):
        slices = []

        def score(items):
            slices.append(sum(item.cost for item in items))
            return [item.text for item in items]

        items = [Item(f"a{number}", 64) for number in range(500)]
        self.run(score, lambda batcher: batcher.submit(items), budget=4096, limit=1000)
        assert slices[:3] == [1024, 2048, 4096]
        assert max(slices) == 4096
