"""Requests share passes, without delay for one that is alone, and without harm to others."""

import asyncio
from collections.abc import Coroutine, Sequence
from itertools import chain
from threading import Event
from typing import Any

import pytest
from tests.processes import PATIENCE

from bertwright.serve.passes import FullError, Passes


class Doubling:
    """Doubles numbers, and notes the passes; waits in a pass until it is let go."""

    def __init__(self) -> None:
        self.passes: list[list[int]] = []
        self.go = Event()
        self.go.set()

    def double(self, some: Sequence[int]) -> list[int]:
        self.passes.append(list(some))
        assert self.go.wait(PATIENCE)
        if 13 in some:
            raise ValueError("13")
        return [2 * each for each in some]

    def negate(self, some: Sequence[int]) -> list[int]:
        self.passes.append(list(some))
        return [-each for each in some]


def run(passes: Passes, work: Coroutine[Any, Any, Any]) -> Any:
    async def both() -> Any:
        task = asyncio.create_task(passes.run())
        try:
            return await asyncio.wait_for(work, 30)
        finally:
            task.cancel()

    return asyncio.run(both())


async def until(passes: Passes, waiting: int) -> None:
    while passes.waiting != waiting:
        await asyncio.sleep(0.001)


def test_what_waits_is_computed_in_one_pass() -> None:
    model, passes = Doubling(), Passes(10)

    async def work() -> list[list[int]]:
        model.go.clear()
        asked = [asyncio.create_task(passes.compute(model.double, [n, n + 1], [1, 1])) for n in range(1, 9, 2)]
        await until(passes, 4)
        model.go.set()
        return await asyncio.gather(*asked)

    assert run(passes, work()) == [[2, 4], [6, 8], [10, 12], [14, 16]]
    # All were there when the first pass began.
    assert sorted(chain(*model.passes)) == list(range(1, 9)) and len(model.passes) <= 2


def test_a_long_request_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertwright.serve.passes._PASS_SECONDS", 0.0)  # as if the model were slow
    model, passes = Doubling(), Passes(10)

    async def work() -> None:
        model.go.clear()
        long = asyncio.create_task(passes.compute(model.double, list(range(100, 200)), [500] * 100))
        await until(passes, 1)
        while not model.passes:
            await asyncio.sleep(0.001)
        short = asyncio.create_task(passes.compute(model.double, [1], [5]))
        other = asyncio.create_task(passes.compute(model.negate, [1], [5]))
        await until(passes, 3)
        model.go.set()
        assert await short == [2] and await other == [-1]
        assert await long == [2 * n for n in range(100, 200)]

    run(passes, work())
    of = {number: index for index, some in enumerate(model.passes) for number in some}
    assert model.passes[0] == [100, 101, 102]
    # Both numbers 1 are in the next two passes, one of each method; the long request is finished after them.
    assert sum(1 in some for some in model.passes[1:3]) == 2 and of[199] > 10


def test_a_failing_request_fails_alone() -> None:
    model, passes = Doubling(), Passes(10)

    async def work() -> list[Any]:
        model.go.clear()
        asked = [asyncio.create_task(passes.compute(model.double, [n], [1])) for n in (1, 13, 2, 3)]
        await until(passes, 4)
        model.go.set()
        return await asyncio.gather(*asked, return_exceptions=True)

    found = run(passes, work())
    assert [found[0], found[2], found[3]] == [[2], [4], [6]] and isinstance(found[1], ValueError)


def test_a_request_that_is_given_up_is_not_computed() -> None:
    model, passes = Doubling(), Passes(10)

    async def work() -> None:
        model.go.clear()
        first = asyncio.create_task(passes.compute(model.double, [1], [1]))
        while not model.passes:
            await asyncio.sleep(0.001)
        gone = asyncio.create_task(passes.compute(model.double, [2], [1]))
        await until(passes, 2)
        gone.cancel()
        model.go.set()
        assert await first == [2]
        assert await passes.compute(model.double, [3], [1]) == [6]

    run(passes, work())
    assert model.passes == [[1], [3]]


def test_a_full_queue_refuses_and_serves_on() -> None:
    model, passes = Doubling(), Passes(2)

    async def work() -> None:
        model.go.clear()
        asked = [asyncio.create_task(passes.compute(model.double, [n], [1])) for n in (1, 2)]
        await until(passes, 2)
        with pytest.raises(FullError):
            await passes.compute(model.double, [3], [1])
        model.go.set()
        assert await asyncio.gather(*asked) == [[2], [4]]
        assert await passes.compute(model.double, [3], [1]) == [6]

    run(passes, work())
