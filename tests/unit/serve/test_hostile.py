"""Clients that are slow, gone, too many, or mad leave the server serving."""

import http.client
import json
import random
import socket
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from tests.processes import PATIENCE
from tests.served import Answered, ask, served

from bertwright.page.server import Listener
from bertwright.serve.app import Limits, make_app
from bertwright.serve.served import Served

BLANK = {"text": "An old [MASK]."}
FIELDS = (
    "text", "top", "model", "query", "texts", "word", "pair", "words", "question", "context", "choices", "input",
    "encoding_format", "dimensions", "role", "user",
)  # fmt: skip
NEARLY: dict[str, dict[str, Any]] = {
    "/v1/fill-mask": {"text": "An old [MASK].", "top": 3},
    "/v1/alternatives": {"text": "An old mill", "top": 3},
    "/v1/tokenize": {"text": ["An old mill"]},
    "/v1/encode": {"text": "An old mill", "role": "query"},
    "/v1/similar": {"query": "An old", "texts": ["mill", "river"], "top": 1},
    "/v1/neighbours": {"word": "river", "top": 2},
    "/v1/classify": {"text": ["An old", "mill"], "pair": ["mill", "x"], "model": "classifier"},
    "/v1/tag": {"words": ["An", "old"], "model": "tagger"},
    "/v1/answer": {"question": "Where?", "context": "By the river.", "model": "answerer"},
    "/v1/choose": {"text": "An old", "choices": ["mill", "river"], "model": "chooser"},
    "/v1/embeddings": {"input": ["An old", "mill"], "encoding_format": "base64"},
}
MODELS = ("masked", "classifier", "several", "tagger", "answerer", "chooser", "bare")


def serves(listener: Listener) -> None:
    assert ask(listener, "/v1/fill-mask", BLANK).status == 200


def bodies(seed: int, number: int) -> Iterator[tuple[str, bytes]]:
    """Paths with bodies: bytes, JSON of any shape, and JSON that is nearly right."""
    drawn = random.Random(seed)
    alphabet = 'aábűß [MASK]中𝔘🦊\u0301\u200b\ufeff\u0000\n\t"\\/{}[]:,0-9e+'

    def text() -> str:
        return "".join(drawn.choice(alphabet) for _ in range(drawn.choice([0, 1, 5, 40, 300])))

    def value(depth: int = 0) -> Any:
        kind = drawn.randrange(9 if depth < 3 else 6)
        plain = (
            None,
            True,
            drawn.randint(-5, 10 ** drawn.randint(0, 30)),
            drawn.random() * 1e9,
            text(),
            "[MASK] " + text(),
        )
        if kind < 6:
            return plain[kind]
        if kind < 8:
            return [value(depth + 1) for _ in range(drawn.randrange(4))]
        return {drawn.choice(FIELDS): value(depth + 1) for _ in range(drawn.randrange(4))}

    for _ in range(number):
        path, kind = drawn.choice(list(NEARLY)), drawn.randrange(4)
        if kind == 0:
            yield path, drawn.randbytes(drawn.choice([0, 1, 20, 2000]))
            continue
        some = {drawn.choice(FIELDS): value() for _ in range(drawn.randrange(5))}
        if kind > 1:
            # What is right but for one field, which often is a text and may be right, too.
            some = {**NEARLY[path]}
            name = drawn.choice([*some, "model"])
            some[name] = drawn.choice([value(), text(), [text()], f"[MASK]{text()}", *MODELS])
        body = json.dumps(some, ensure_ascii=drawn.random() < 0.5).encode()
        if kind == 3:
            place = drawn.randrange(len(body))
            body = body[:place] + drawn.randbytes(1) + body[place + drawn.randrange(2) :]
        yield path, body


@pytest.mark.parametrize("number", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_random_bodies_are_answered_or_refused(listener: Listener, number: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", listener.port, timeout=PATIENCE)
    statuses = set()
    headers = {"Authorization": f"Bearer {listener.token}", "Content-Type": "application/json"}
    for path, body in bodies(number, number):
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        content = json.loads(answer.read())
        assert answer.status in (200, 400, 404, 422), (path, body, content)
        assert answer.status == 200 or set(content["error"]) == {"message", "type", "param", "code"}
        statuses.add(answer.status)
    connection.close()
    assert statuses == {200, 400, 404, 422}
    serves(listener)


def raw(listener: Listener, head: str) -> socket.socket:
    """A connection on which this has been sent."""
    connection = socket.create_connection(("127.0.0.1", listener.port), timeout=PATIENCE)
    token = f"Authorization: Bearer {listener.token}\r\nContent-Type: application/json\r\n"
    connection.sendall(f"{head}Host: localhost\r\n{token}".encode())
    return connection


def test_clients_that_are_killed_leave_it_serving(listener: Listener) -> None:
    body = json.dumps({"text": ["[MASK] " + "a " * 50] * 50}).encode()
    for sent in (b"", b"Content-Length: 1000\r\n\r\n{", f"Content-Length: {len(body)}\r\n\r\n".encode() + body):
        for _ in range(5):
            connection = raw(listener, "POST /v1/fill-mask HTTP/1.1\r\n")
            connection.sendall(sent)
            # Closed with a reset, as that of a process that was killed with unread data.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
    serves(listener)


def test_a_slow_body_is_given_up(models: dict[str, Served]) -> None:
    with served(make_app([models["masked"]], Limits(body_seconds=0.2))) as listener:
        with raw(listener, "POST /v1/fill-mask HTTP/1.1\r\n") as slow:
            slow.sendall(b"Content-Length: 100\r\n\r\n{")
            serves(listener)
            assert slow.recv(1000).startswith(b"HTTP/1.1 408")
        serves(listener)


def test_a_body_without_a_length_is_cut_off(models: dict[str, Served]) -> None:
    with served(make_app([models["masked"]], Limits(bytes=1000))) as listener:
        with raw(listener, "POST /v1/fill-mask HTTP/1.1\r\n") as endless:
            endless.sendall(b"Transfer-Encoding: chunked\r\n\r\n" + b"400\r\n" + b"a" * 1024 + b"\r\n")
            assert endless.recv(1000).startswith(b"HTTP/1.1 413")
        serves(listener)


def test_a_full_queue_says_when_to_come_again(models: dict[str, Served], monkeypatch: pytest.MonkeyPatch) -> None:
    model, begun, go = models["masked"], Event(), Event()
    probabilities = model.encoder.mask_probabilities

    def slowly(*given: Any) -> Any:
        begun.set()
        assert go.wait(PATIENCE)
        return probabilities(*given)

    monkeypatch.setattr(model.encoder, "mask_probabilities", slowly)
    with served(make_app([model], Limits(waiting=2))) as listener, ThreadPoolExecutor(8) as threads:

        def asked() -> Answered:
            return ask(listener, "/v1/fill-mask", BLANK)

        first = [threads.submit(asked)]
        assert begun.wait(PATIENCE)
        first.append(threads.submit(asked))
        until = time.monotonic() + PATIENCE
        while "bertwright_waiting_requests 2.0" not in ask(listener, "/metrics").body.decode():
            assert time.monotonic() < until
        refused = [each.result() for each in [threads.submit(asked) for _ in range(5)]]
        assert [each.status for each in refused] == [503] * 5
        assert all(each.headers["retry-after"] == "1" for each in refused)
        assert ask(listener, "/health").status == 200
        go.set()
        assert [each.result().status for each in first] == [200, 200]
        assert asked().status == 200
