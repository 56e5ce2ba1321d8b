"""Applications served on loopback in a thread, by the server of the pages."""

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, NamedTuple

from tests.processes import PATIENCE

from bertwright.page.server import App, Listener, guard, listen, run_server


class Answered(NamedTuple):
    """What a server has answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@contextmanager
def served(app: App) -> Iterator[Listener]:
    """Serve the application behind `guard` until the end of the block."""
    listener, started, ended = listen(), Event(), Event()

    def run() -> None:
        run_server(guard(app, listener), listener, lambda address: started.set(), ended.is_set)

    thread = Thread(target=run, daemon=True)
    thread.start()
    try:
        assert started.wait(PATIENCE), "the server has not started"
        yield listener
    finally:
        ended.set()
        thread.join(PATIENCE)
    assert not thread.is_alive(), "the server has not ended"


def ask(listener: Listener, path: str, body: Any = None, method: str = "", **headers: str) -> Answered:
    """Ask with the token, unless `authorization` is given; a `body` that is no bytes is sent as JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", listener.port, timeout=PATIENCE)
    sent = {
        "authorization": f"Bearer {listener.token}",
        **{key.replace("_", "-"): value for key, value in headers.items()},
    }
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
        sent.setdefault("content-type", "application/json")
    try:
        connection.request(method or ("GET" if body is None else "POST"), path, body, sent)
        answer = connection.getresponse()
        return Answered(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
    finally:
        connection.close()
