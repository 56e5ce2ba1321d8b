"""What waits for a model is computed together: texts of several requests in one pass.

A request that finds the model idle is computed at once. Those that arrive while it computes wait for the next pass, and
after a pass of several requests the next one waits a few milliseconds for as many again, because clients that have just
been answered ask once more. A pass takes texts of all requests in turn, so that a request of a thousand texts is no
obstacle for one of a single text. Everything is computed in one thread, while the event loop goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

Compute = Callable[[Sequence[Any]], Sequence[Any]]
"""A method of a model that answers several questions at once, in order; equal methods share passes."""
Observe = Callable[[int, int, float], None]
"""Called after each pass with its number of requests and of texts, and its seconds."""

COLLECTING = 0.004
"""Seconds after a pass in which the next one waits for as many requests."""
_PASS_SECONDS = 0.2
"""About what a pass of many texts takes, so that what arrives meanwhile does not wait for long."""
_FIRST_TOKENS, _FEWEST_TOKENS = 1024, 256
"""Tokens of the first pass of a kind, and of any later one at least."""


class FullError(Exception):
    """Too many requests wait."""


@dataclass(eq=False)
class _Job:
    """A request."""

    compute: Compute
    items: Sequence[Any]
    tokens: Sequence[int]
    """About the tokens of each item."""
    answer: asyncio.Future[list[Any]]
    alone: bool = False
    """Whether it shares no pass, because one that it shared has failed."""
    done: list[Any] = field(default_factory=list)
    """The answers to the first items."""


class Passes:
    """The requests that wait for models, and the thread that computes them."""

    def __init__(self, most: int, observe: Observe = lambda requests, texts, seconds: None) -> None:
        """At most `most` requests wait."""
        self.most, self._observe = most, observe
        self._waiting: list[_Job] = []
        self._arrived, self._enough = asyncio.Event(), asyncio.Event()
        self._expected = 0
        self._speeds: dict[Compute, float] = {}
        """Tokens per second of each method."""

    @property
    def waiting(self) -> int:
        """Requests that wait or are computed."""
        return len(self._waiting)

    async def compute(self, compute: Compute, items: Sequence[Any], tokens: Sequence[int]) -> list[Any]:
        """The answers to all items, which have about so many `tokens` each; raises `FullError`, or what `compute`
        raised. A task that is cancelled while it waits takes no further pass."""
        if len(self._waiting) >= self.most:
            raise FullError
        job = _Job(compute, items, tokens, asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        self._arrived.set()
        if len(self._waiting) >= self._expected:
            self._enough.set()
        return await job.answer

    async def run(self) -> None:
        """Compute what waits, until cancelled."""
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1, "model") as thread:
            while True:
                await self._arrived.wait()
                await self._collect()
                taken = self._take()
                if not taken:
                    self._arrived.clear()
                    continue
                compute = taken[0][0].compute
                items = [item for job, count in taken for item in job.items[len(job.done) :][:count]]
                begin = loop.time()
                try:
                    answers = await loop.run_in_executor(thread, compute, items)
                except Exception as error:
                    _fail([job for job, _ in taken], error)
                else:
                    self._give(taken, answers, loop.time() - begin)
                # What is not finished is behind what has arrived meanwhile.
                shared = {job for job, _ in taken}
                self._waiting.sort(key=shared.__contains__)
                self._waiting = [job for job in self._waiting if not job.answer.done()]
                self._expected = len(taken)

    async def _collect(self) -> None:
        """Wait for as many requests as the last pass had, but not for long."""
        if self._expected > 1:
            # Those that have just been answered are sent, and what their clients ask next is read.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        if len(self._waiting) < self._expected:
            self._enough.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._enough.wait(), COLLECTING)
        self._expected = 0

    def _take(self) -> list[tuple[_Job, int]]:
        """The requests of the next pass, and how many of the items of each."""
        self._waiting = [job for job in self._waiting if not job.answer.done()]
        if not self._waiting:
            return []
        first = self._waiting[0]
        same = [job for job in self._waiting if job.compute == first.compute and not job.alone]
        turn = [first] if first.alone else same
        left = max(self._speeds.get(first.compute, 0.0) * _PASS_SECONDS, _FEWEST_TOKENS)
        left = left if first.compute in self._speeds else _FIRST_TOKENS
        taken: dict[_Job, int] = {}
        while turn and left > 0:
            for job in turn:
                count = taken.get(job, 0)
                left -= job.tokens[len(job.done) + count]
                taken[job] = count + 1
                if left <= 0:
                    break
            turn = [job for job in turn if len(job.done) + taken.get(job, 0) < len(job.items)]
        return list(taken.items())

    def _give(self, taken: Sequence[tuple[_Job, int]], answers: Sequence[Any], seconds: float) -> None:
        """Give each request its answers."""
        begin, tokens, compute = 0, 0, taken[0][0].compute
        for job, count in taken:
            tokens += sum(job.tokens[len(job.done) :][:count])
            job.done += answers[begin : begin + count]
            begin += count
            if len(job.done) == len(job.items) and not job.answer.done():
                job.answer.set_result(job.done)
        speed = tokens / max(seconds, 1e-6)
        self._speeds[compute] = 0.8 * self._speeds.get(compute, speed) + 0.2 * speed
        self._observe(len(taken), begin, seconds)


def _fail(jobs: Sequence[_Job], error: Exception) -> None:
    """Of several requests that failed together, each is computed alone; one that was alone has failed."""
    for job in jobs:
        if len(jobs) > 1:
            job.alone = True
        elif not job.answer.done():
            job.answer.set_exception(error)
