"""The server's application: reads and checks requests, hands them to the models, and writes answers and errors."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails, to_json
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bertwright.core.errors import BertwrightError, memory_error
from bertwright.page.files import file_routes
from bertwright.page.server import refusal
from bertwright.serve.embeddings import EMBEDDINGS
from bertwright.serve.messages import PATTERNS, Models
from bertwright.serve.metrics import Metrics
from bertwright.serve.openapi import openapi
from bertwright.serve.operations import OPERATIONS, Asked, Operation, RefusedError
from bertwright.serve.passes import FullError, Passes
from bertwright.serve.served import Served

_PAGE = Path(__file__).with_name("talk")
_LOOK_SECONDS = 0.5
"""How often a request that waits is checked for a client that has gone."""


@dataclass(frozen=True)
class Limits:
    """What one request may take, and all of them."""

    bytes: int = 2**20
    """Of the body of a request."""
    seconds: float = 60.0
    """Until its answer."""
    body_seconds: float = 10.0
    """Until its body has arrived."""
    waiting: int = 256
    """Requests that wait; others are told to come again."""


def make_app(models: Sequence[Served], limits: Limits, others: Sequence[BaseRoute] = ()) -> Starlette:
    """The application of these models, the first of which is the default; `others` are further routes."""
    passes = Passes(limits.waiting, lambda *counts: metrics.count_pass(*counts))
    metrics, operations = Metrics(lambda: passes.waiting), (*OPERATIONS, EMBEDDINGS)
    document = openapi(operations)
    served = {model.name: model for model in models}

    @asynccontextmanager
    async def computing(app: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(passes.run())
        yield
        task.cancel()

    def answering(operation: Operation) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            body = await _body(request, limits)
            asked = operation.request.model_validate_json(body)
            model = _model(served, asked.model, operation)
            answered = await _unless_gone(request, operation.do(Asked(asked, model, passes)), limits.seconds)
            return json_response({"model": model.name, **answered})

        return answer

    async def list_models(request: Request) -> Response:
        return json_response(Models(object="list", data=[model.row for model in models]))

    async def health(request: Request) -> Response:
        return json_response({"status": "ok"})

    async def describe(request: Request) -> Response:
        return json_response(document)

    async def show_metrics(request: Request) -> Response:
        return metrics.response()

    routes = [
        *(Route(each.path, answering(each), methods=["POST"]) for each in operations),
        Route("/v1/models", list_models, methods=["GET"]),
        Route("/health", health, methods=["GET"]),
        Route("/metrics", show_metrics, methods=["GET"]),
        Route("/openapi.json", describe, methods=["GET"]),
    ]
    counted = partial(_Counted, paths={each.path for each in routes}, metrics=metrics)
    return Starlette(
        routes=[*routes, *file_routes(_PAGE), *others],
        lifespan=computing,
        exception_handlers=_HANDLERS,
        middleware=[Middleware(counted)],
    )


class _Counted:
    """The application, whose answers are counted; those at other paths together."""

    def __init__(self, app: ASGIApp, paths: Collection[str], metrics: Metrics) -> None:
        self.app, self.paths, self.metrics = app, paths, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin, path = time.perf_counter(), scope["path"] if scope["path"] in self.paths else "other"

        async def count(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.metrics.count_request(path, message["status"], time.perf_counter() - begin)
            await send(message)

        await self.app(scope, receive, count)


def json_response(value: Mapping[str, Any]) -> Response:
    """A value as JSON."""
    return Response(to_json(value, inf_nan_mode="null"), media_type="application/json")


async def _body(request: Request, limits: Limits) -> bytes:
    """The body of a request, if it is JSON by its header and not too large."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, "Send JSON, with Content-Type: application/json.")
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > limits.bytes:
        raise _too_large(limits)
    body = bytearray()

    async def read() -> bytes:
        async for part in request.stream():
            body.extend(part)
            if len(body) > limits.bytes:
                raise _too_large(limits)
        return bytes(body)

    try:
        return await asyncio.wait_for(read(), limits.body_seconds)
    except TimeoutError:
        raise HTTPException(408, f"The body did not arrive within {limits.body_seconds:g} seconds.") from None


def _too_large(limits: Limits) -> HTTPException:
    return HTTPException(413, f"The body is larger than {limits.bytes:,} bytes. Send fewer texts at once.")


def _model(served: Mapping[str, Served], name: str | None, operation: Operation) -> Served:
    """The model that is asked, or the first that can do that; `RefusedError` if there is none."""
    able = {each: model for each, model in served.items() if operation.task in model.tasks}
    if name is None and able:
        return next(iter(able.values()))
    if name in able:
        return able[name]
    names = ", ".join(able) or "none"
    which = f"no model here does {operation.task}" if name is None else f"there is no model {name!r}"
    if name in served:
        which = f"{name} does not do {operation.task}"
    raise RefusedError(f"{which}. Models that do: {names}.", "model", 404, "model_not_found")


async def _unless_gone(request: Request, work: Awaitable[Any], seconds: float) -> Any:
    """The result of the work, which is given up when the client has gone, or after some seconds."""
    task = asyncio.ensure_future(work)
    until = time.monotonic() + seconds
    try:
        while not task.done():
            await asyncio.wait((task,), timeout=min(_LOOK_SECONDS, max(until - time.monotonic(), 0)))
            if not task.done() and await request.is_disconnected():
                raise ClientDisconnect
            if not task.done() and time.monotonic() >= until:
                raise HTTPException(
                    504, f"There was no answer within {seconds:g} seconds. Send fewer or shorter texts."
                )
        return task.result()
    finally:
        task.cancel()


async def _refuse_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = error.detail
    if error.status_code in (404, 405):
        detail = (
            f"There is nothing to {request.method} at {request.scope['path']}. /openapi.json says what can be asked."
        )
    answer = refusal(error.status_code, detail)
    answer.headers.update(error.headers or {})
    return answer


async def _refuse_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, ValidationError)
    errors = error.errors(include_url=False, include_input=False)
    # Of a text, or a list of texts, each alternative has an error: that of the other type says nothing.
    said = next((each for each in errors if not each["type"].endswith("_type")), errors[0])
    return refusal(400 if said["type"] == "json_invalid" else 422, _message(said), _param(said))


def _message(said: ErrorDetails) -> str:
    first, *rest = said["loc"] or ("",)
    where = ".".join(map(str, (first, *(place for place in rest if isinstance(place, int)))))
    message = said["msg"].removeprefix("Value error, ")
    if said["type"] == "string_pattern_mismatch":
        message = PATTERNS[said["ctx"]["pattern"]]
    return f"{where}: {message}" if where else message


def _param(said: ErrorDetails) -> str | None:
    return str(said["loc"][0]) if said["loc"] else None


async def _refuse_named(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return refusal(error.status, str(error), error.param, error.code)


async def _refuse_full(request: Request, error: Exception) -> Response:
    answer = refusal(503, "Too many requests wait. Come again in a second.", code="full")
    answer.headers["retry-after"] = "1"
    return answer


async def _forget(request: Request, error: Exception) -> Response:
    # Nobody reads it.
    return Response(status_code=499)


async def _refuse_failed(request: Request, error: Exception) -> Response:
    """An error of the model; of any other error, the server writes the traceback to its log."""
    known = error if isinstance(error, BertwrightError) else memory_error(error)
    return refusal(500, str(known) if known else "The server failed; its log says why.")


_HANDLERS: Mapping[Any, Any] = {
    HTTPException: _refuse_http,
    ValidationError: _refuse_invalid,
    RefusedError: _refuse_named,
    FullError: _refuse_full,
    ClientDisconnect: _forget,
    BertwrightError: _refuse_failed,
    Exception: _refuse_failed,
}
