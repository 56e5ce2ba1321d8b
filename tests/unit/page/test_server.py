import asyncio
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import Queue

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from tests.processes import PATIENCE
from tests.rows import each_row
from tests.served import ask, served

from bertwright.core.errors import RecipeError
from bertwright.page import server
from bertwright.page.server import FIRST_PORT, listen, opened_browser, read_token


async def _page(request: Request) -> Response:
    return PlainTextResponse("page")


async def _data(request: Request) -> Response:
    return JSONResponse({"read": len(await request.body())})


def _app() -> Starlette:
    paths = ("/v1/data", "/metrics", "/watch/data/rows")
    return Starlette(routes=[Route("/", _page), *(Route(path, _data, methods=["GET", "POST"]) for path in paths)])


def test_what_is_private_needs_the_token_and_pages_do_not() -> None:
    with served(_app()) as listener:
        assert ask(listener, "/", authorization="").body == b"page"
        for path in ("/v1/data", "/metrics", "/watch/data/rows"):
            assert ask(listener, path).status == 200
            for given in ("", "Bearer", f"Bearer {listener.token}x", listener.token, "Bearer \xe9", "Basic eDp5"):
                refused = ask(listener, path, authorization=given)
                assert refused.status == 401 and refused.headers["www-authenticate"] == "Bearer"
                assert set(refused.json["error"]) == {"message", "type", "param", "code"}
        for path in ("//v1/data", "/./v1/data", "/V1/data", "/v1%2fdata", "/%76%31/data", "/x/../v1/data"):
            assert ask(listener, path, authorization="").status in (401, 404), path


def test_pages_of_others_neither_reach_the_server_nor_are_loaded_by_its_pages() -> None:
    with served(_app()) as listener:
        for host in ("127.0.0.1", "localhost", f"localhost:{listener.port}", "LOCALHOST:9000", "[::1]:80"):
            answer = ask(listener, "/", host=host)
            assert answer.status == 200
            assert "default-src 'self'" in answer.headers["content-security-policy"]
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "no-referrer"
            assert "access-control-allow-origin" not in answer.headers
        for host in ("evil.example", "127.0.0.1.evil.example", "evil.example:8765", "localhost.evil", ""):
            assert ask(listener, "/", host=host).status == 400, host


def test_the_address_has_the_token_where_it_is_neither_sent_nor_logged() -> None:
    listener, other = listen(), listen()
    given = listen(token="a token of mine".replace(" ", "-"))
    try:
        assert re.fullmatch(rf"http://127\.0\.0\.1:{listener.port}/#token=[\w-]{{32}}", listener.address)
        assert listener.port != other.port and min(listener.port, other.port) >= FIRST_PORT
        assert listener.token != other.token
        assert given.address == f"http://127.0.0.1:{given.port}/"
        with pytest.raises(RecipeError, match=rf"port {other.port} .* another --port"):
            listen(port=other.port)
    finally:
        for each in (listener, other, given):
            each.socket.close()


@each_row("host", ["0.0.0.0", "::", "192.0.2.1", "a.example", "127.0.0.1.example"])
def test_other_machines_are_let_in_only_with_a_token_of_the_user(host: str) -> None:
    with pytest.raises(RecipeError, match=r"--host .* needs a token .*--token-file.*BERTWRIGHT_TOKEN"):
        listen(host)


def test_a_token_is_read_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "token"
    monkeypatch.delenv("BERTWRIGHT_TOKEN", raising=False)
    assert read_token(None) is None
    monkeypatch.setenv("BERTWRIGHT_TOKEN", "sixteen-letters-or-more")
    assert read_token(None) == "sixteen-letters-or-more"
    file.write_text("another-one-of-a-file\n")
    assert read_token(file) == "another-one-of-a-file"
    file.write_bytes(b"\xef\xbb\xbfone-of-a-windows-editor\r\n")
    assert read_token(file) == "one-of-a-windows-editor"
    for text in ("", "short", "with spaces in it, many", "two-lines-of-a-file\nare-none", "ékezetes-betűkkel-sem"):
        file.write_text(text)
        with pytest.raises(RecipeError, match="token"):
            read_token(file)
    with pytest.raises(RecipeError, match="cannot be read"):
        read_token(tmp_path / "none")


def test_a_client_that_sends_no_whole_header_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_REQUEST_SECONDS", 0.3)
    with served(_app()) as listener, socket.create_connection(("127.0.0.1", listener.port), timeout=PATIENCE) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-")
        assert slow.recv(100) == b""
        connection = http.client.HTTPConnection("127.0.0.1", listener.port)
        for _ in range(3):
            connection.request("GET", "/")
            assert connection.getresponse().read() == b"page"
        connection.close()


def test_a_client_that_goes_on_sending_after_its_answer_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_REQUEST_SECONDS", 0.3)
    with (
        served(_app()) as listener,
        socket.create_connection(("127.0.0.1", listener.port), timeout=PATIENCE) as endless,
    ):
        endless.sendall(b"POST /v1/data HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")
        assert endless.recv(10_000).startswith(b"HTTP/1.1 401")
        with pytest.raises(OSError, match=r"[Rr]eset|[Bb]roken|[Aa]borted"):
            for _ in range(1000):
                endless.sendall(b"x")
                time.sleep(0.02)


def test_many_idle_connections_of_one_client_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that have asked nothing for longest are left; who is being answered is not."""
    monkeypatch.setattr(server, "_CONNECTIONS", 40)
    answering, go_on = threading.Event(), threading.Event()

    async def slow(request: Request) -> Response:
        answering.set()
        while not go_on.is_set():
            await asyncio.sleep(0.01)
        return PlainTextResponse("slow")

    app = _app()
    app.routes.append(Route("/slow", slow))
    with served(app) as listener, ExitStack() as stack, ThreadPoolExecutor(1) as pool:

        def connect(sent: bytes = b"") -> socket.socket:
            made = stack.enter_context(socket.create_connection(("127.0.0.1", listener.port), timeout=PATIENCE))
            made.sendall(sent)
            return made

        waits = pool.submit(ask, listener, "/slow")
        try:
            assert answering.wait(PATIENCE)
            half = b"POST /v1/data HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
            half += listener.token.encode() + b"\r\nContent-Length: 9\r\n\r\nx"
            for sent in (b"", b"GET / HTTP/1.1\r\nHost:", half):
                idle = [connect(sent) for _ in range(100)]
                for _ in range(3):
                    assert ask(listener, "/").body == b"page"
                with pytest.raises(OSError, match=r"[Rr]eset|[Aa]borted"):
                    assert idle[0].recv(1) == b"", "the first of them is left"
                    raise ConnectionResetError("reset")
        finally:
            go_on.set()
        assert waits.result(30).body == b"slow"


def test_connections_leave_files_for_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    for limit, most in ((256, 128), (1024, 512), (10**6, 1000), (resource.RLIM_INFINITY, 1000)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, limit=limit: (limit, limit))
        assert server._most_connections() == most


_PROGRAM = """
import sys
from starlette.applications import Starlette
from bertwright.core.signals import end_on_signals
from bertwright.page.server import guard, listen, run_server
listener = listen()
with end_on_signals(process_ends=True):
    run_server(guard(Starlette(), listener), listener, lambda address: print(address, flush=True))
"""


@each_row("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(number: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", _PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdout and program.stderr
        assert b"#token=" in program.stdout.readline()
        program.send_signal(number)
        assert program.wait(PATIENCE) == 0
        assert program.stderr.read() == b""


def test_a_browser_gets_the_address_in_a_file_that_is_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Queue[str] = Queue()  # in another thread
    monkeypatch.setattr("webbrowser.open", asked.put)
    monkeypatch.setattr("webbrowser.get", lambda: None)  # as if there was one
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    with opened_browser(True) as open_it:
        open_it("http://127.0.0.1:8765/#token=abc")
        address = asked.get(timeout=PATIENCE)
        file = Path(address.removeprefix("file://"))
        assert "#token=abc" in file.read_text() and "token" not in address
        assert os.stat(file.parent).st_mode & 0o077 == 0
    assert not file.exists()
    # Where browsers come as snaps, they see what is in the home folder and not hidden, and another /tmp.
    home, snaps = tmp_path / "home", tmp_path / "snaps"
    for folder in (home, snaps):
        folder.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(server, "_SNAPS", snaps)
    with opened_browser(True) as open_it:
        open_it("http://127.0.0.1:8765/#token=abc")
        file = Path(asked.get(timeout=PATIENCE).removeprefix("file://"))
        assert file.parent.parent == home and not file.parent.name.startswith(".")
        assert os.stat(file.parent).st_mode & 0o077 == 0
    assert not list(home.iterdir())
    monkeypatch.delenv("DISPLAY")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    for wanted in (True, False):
        with opened_browser(wanted) as open_it:
            open_it("http://127.0.0.1:8765/")
    assert asked.empty()
