"""A web server on this machine whose connections break when a test says so."""

import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server:
    """Serves `files` (path to bytes); what it does wrong is set by the attributes."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.files: dict[str, bytes] = {}
        self.ranges = True
        self.breaks: list[int] = []
        """Of the next answers, the bytes after which the connection breaks; answers after these are whole."""
        self.status = 0
        """If set, the answer to everything."""
        self.tag = '"1"'
        self.asked: list[tuple[str, int]] = []
        """(path, first byte) of every request."""
        self.agents: set[str] = set()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        path = handler.path.partition("?")[0].lstrip("/")
        wanted = re.match(r"bytes=(\d+)-", handler.headers.get("Range", "") if self.ranges else "")
        start = int(wanted[1]) if wanted else 0
        self.asked.append((path, start))
        self.agents.add(handler.headers.get("User-Agent", ""))
        data = self.files.get(path)
        if self.status or data is None or start > len(data):
            handler.send_error(self.status or (404 if data is None else 416))
            return
        handler.send_response(206 if wanted else 200)
        handler.send_header("Content-Length", str(len(data) - start))
        if self.tag:
            handler.send_header("ETag", self.tag)
        handler.end_headers()
        stop = start + self.breaks.pop(0) if self.breaks else len(data)
        handler.wfile.write(data[start:stop])


class Quiet(BaseHTTPRequestHandler):
    """Answers without a line in the terminal."""

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def listening(handler: type[Quiet], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Have requests answered on loopback; gives the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    # A client may keep its connection, whose thread must not be waited for.
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def serving() -> Iterator[Server]:
    """A running server, stopped at the end."""

    class Handler(Quiet):
        def do_GET(self) -> None:
            server.answer(self)

    with listening(Handler) as address:
        server = Server(address)
        yield server
