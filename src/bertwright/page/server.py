"""Pages for one person: a server on loopback that answers only who has its token.

    listener = listen(port=0)                       # bound, so that the address is known before anything is loaded
    run_server(guard(app, listener), listener, ready=print)

The address that is printed, `http://127.0.0.1:8765/#token=…`, has the token in its fragment, which a browser neither
sends nor logs. The page's script keeps it and sends `Authorization: Bearer …` with each request. Files of the page need
no token; what lies below one of `PRIVATE` does. A token that the user has given is not printed: the page asks for it.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import os
import secrets
import socket
import sys
import tempfile
import webbrowser
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import h11
import uvicorn
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from uvicorn.protocols.http.h11_impl import H11Protocol

from bertwright.core.errors import RecipeError
from bertwright.core.signals import stop_on_signals
from bertwright.page.markup import element, html, p

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]
"""An ASGI application."""

FIRST_PORT = 8765
PRIVATE = ("/v1/", "/metrics", "/watch/data/")
"""Beginnings of the paths that need the token."""
TOKEN_VARIABLE = "BERTWRIGHT_TOKEN"
_SHORTEST_TOKEN = 16
_SNAPS = Path("/snap/bin")
"""Where programs are that see files only in the home folder, and no hidden ones, such as Ubuntu's Firefox."""
_LONGEST_HEADER = 32 * 2**10
_REQUEST_SECONDS = 10.0
"""Time in which a client must have sent the header of a request, or the rest of one that is answered."""
_CONNECTIONS = 1000
"""More than these at once are answered 503, or than half of the files that the process may open."""
_FULL = 0.9
"""Share of these from which on a new connection takes the place of the one that has asked nothing for longest."""
_LEAVING_SECONDS = 3
"""What is being answered when the server is stopped may take so long."""
_HEADERS = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "object-src 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_TYPES = {401: "authentication_error", 429: "rate_limit_error", 500: "server_error", 503: "server_error"}


@dataclass(frozen=True)
class Listener:
    """Where a server listens, or will: its socket is bound."""

    socket: socket.socket
    host: str
    token: str
    own_token: bool
    """Whether the user has given the token, which then is not printed."""

    @property
    def port(self) -> int:
        """The port that was asked for, or found."""
        return int(self.socket.getsockname()[1])

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return _is_loopback(self.host)

    @property
    def address(self) -> str:
        """The address to open, with the token unless the user knows it."""
        name = socket.gethostname() if self.host in ("0.0.0.0", "::") else self.host
        name = f"[{name}]" if ":" in name else name
        return f"http://{name}:{self.port}/" + ("" if self.own_token else f"#token={self.token}")


def read_token(file: Path | None) -> str | None:
    """The token that the user has given, in a file or in the variable `BERTWRIGHT_TOKEN`; raises `RecipeError` if it
    is none."""
    where = f"--token-file {file}" if file else TOKEN_VARIABLE
    try:
        given = file.read_text(encoding="utf-8-sig") if file else os.environ.get(TOKEN_VARIABLE)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise RecipeError(f"{where} cannot be read ({why}). Give a file with one line, the token.") from None
    if given is None:
        return None
    token = given.strip()
    if len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise RecipeError(
            f"{where} has no token of at least {_SHORTEST_TOKEN} letters, digits and signs without spaces. Make one: "
            'python -c "import secrets; print(secrets.token_urlsafe())".'
        )
    return token


def listen(host: str = "127.0.0.1", port: int = 0, token: str | None = None) -> Listener:
    """Bind a socket; `port` 0 is the first free one from 8765, `token` None a random one.

    Raises `RecipeError` if the port is taken, or if other machines could reach the server and no token is given.
    """
    if token is None and not _is_loopback(host):
        raise RecipeError(
            f"--host {host} lets other machines in, so it needs a token that you give to who may use it: "
            f"--token-file FILE, or the variable {TOKEN_VARIABLE}."
        )
    return Listener(_bind(host, port), host, token or secrets.token_urlsafe(24), token is not None)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _bind(host: str, port: int) -> socket.socket:
    for tried in [port] if port else [*range(FIRST_PORT, FIRST_PORT + 100), 0]:
        try:
            family, kind, protocol, _, place = socket.getaddrinfo(host, tried, type=socket.SOCK_STREAM)[0]
            bound = socket.socket(family, kind, protocol)
        except (OSError, UnicodeError, OverflowError):
            raise RecipeError(f"--host {host} is no address of this machine. Give one, or leave it out.") from None
        try:
            if os.name == "posix":  # elsewhere, the option would let two servers share a port
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(place)
            # Binding alone would not show that another server, with the same option, listens here.
            bound.listen(2048)
            return bound
        except OSError as error:
            bound.close()
            if port:
                why = error.strerror or str(error)
                raise RecipeError(
                    f"cannot listen at {host}, port {port} ({why}). Give another --port, or leave it out."
                ) from None
    raise RecipeError(f"cannot listen at {host}. Give another --host, or leave it out.")


def refusal(status: int, message: str, param: str | None = None, code: str | None = None) -> JSONResponse:
    """An error as OpenAI's API gives it, `param` the field that is wrong."""
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    error = {"message": message, "type": kind, "param": param, "code": code}
    return JSONResponse({"error": error}, status, headers={"www-authenticate": "Bearer"} if status == 401 else None)


def guard(app: App, listener: Listener) -> App:
    """The application behind the checks: requests to `PRIVATE` paths without the token are refused, and on loopback
    those for another host's name, with which pages of others could reach it (DNS rebinding). All answers get headers
    that let a page load nothing from elsewhere."""
    expected = f"Bearer {listener.token}".encode()
    hosts = {"127.0.0.1", "localhost", "[::1]", listener.host, f"[{listener.host}]"} if listener.loopback else None

    def refused(scope: MutableMapping[str, Any]) -> JSONResponse | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if hosts is not None and name not in hosts:
            return refusal(400, "This server is reached as 127.0.0.1 or localhost only.", code="wrong_host")
        if not scope["path"].startswith(PRIVATE):
            return None
        given = headers.get("authorization", "").encode("latin-1")
        if hmac.compare_digest(given, expected):
            return None
        return refusal(401, "Send the token: Authorization: Bearer TOKEN.", code="invalid_api_key")

    async def guarded(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        await (refused(scope) or app)(scope, receive, send_with_headers)

    return guarded


def run_server(
    app: App,
    listener: Listener,
    ready: Callable[[str], None] = lambda address: None,
    stop: Callable[[], bool] | None = None,
) -> None:
    """Serve until a signal, such as that of Ctrl-C, or until `stop` gives True. `ready` is called with the address
    once it is answered."""
    config = uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=_most_connections(),
        timeout_graceful_shutdown=_LEAVING_SECONDS,
        h11_max_incomplete_event_size=_LONGEST_HEADER,
    )
    with stop_on_signals() as signalled:
        server = _Server(config, lambda: ready(listener.address), stop or signalled)
        asyncio.run(server.serve(sockets=[listener.socket]))


def _most_connections() -> int:
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return _CONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _CONNECTIONS if files == resource.RLIM_INFINITY else min(_CONNECTIONS, files // 2)


class _Server(uvicorn.Server):
    """uvicorn's, ended by bertwright's handling of signals instead of its own."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None], stop: Callable[[], bool]) -> None:
        super().__init__(config)
        self._ready, self._stop = ready, stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def on_tick(self, counter: int) -> bool:
        self.should_exit = self.should_exit or self._stop()
        return await super().on_tick(counter)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Protocol(H11Protocol):
    """uvicorn's, but a client is left that does not send the header of its request in time, or sends more of a body
    than was read for the answer; and where there are many connections, the one that has asked nothing for longest."""

    _deadline: asyncio.TimerHandle | None = None
    _quiet_since = 0.0
    """When it was made, or its last request was answered."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._quiet_since = self.loop.time()
        self._deadline = self.loop.call_later(_REQUEST_SECONDS, self.transport.abort)
        if len(self.connections) > _FULL * (self.limit_concurrency or _CONNECTIONS):
            self._make_room()

    def on_response_complete(self) -> None:
        self._quiet_since = self.loop.time()
        super().on_response_complete()

    def _make_room(self) -> None:
        """Leave the connection that has sent no whole header for longest; if all have, no whole body."""
        asking = (h11.IDLE, h11.SEND_BODY)
        others = [each for each in self.connections if isinstance(each, _Protocol) and each is not self]
        idle = [each for each in others if each.conn.their_state in asking and not each.transport.is_closing()]
        if idle:
            longest = min(idle, key=lambda each: (asking.index(each.conn.their_state), each._quiet_since))
            longest.transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        waits = self.conn.their_state is h11.IDLE or self.conn.our_state is h11.DONE
        if not waits:
            self._forget_deadline()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(_REQUEST_SECONDS, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_deadline()
        super().connection_lost(exc)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def has_browser() -> bool:
    """Whether a page can be shown to the user: the program runs on the user's own screen, and not on one far away."""
    there = sys.platform in ("darwin", "win32") or "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
    if not there or "SSH_CONNECTION" in os.environ:
        return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


@contextmanager
def opened_browser(wanted: bool) -> Iterator[Callable[[str], None]]:
    """Yield what opens an address in the user's browser, if it is `wanted` and there is one on this screen.

    The browser is given a file that only the user can read, which leads to the address: other users of the machine see
    the words of a command, and the token would be among them. The file is removed after the block.
    """
    if not wanted or not has_browser():
        yield lambda address: None
        return
    home = os.path.expanduser("~")
    place = home if _SNAPS.is_dir() and os.access(home, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="bertwright-", dir=place, ignore_cleanup_errors=True) as folder:
        file = Path(folder) / "page.html"

        def open_it(address: str) -> None:
            head = element("head", element("meta", http_equiv="refresh", content=f"0; url={address}"))
            file.write_text(html(element("html", head, element("body", p("bertwright"))), style=""), encoding="utf-8")
            # Some browsers are programs of the terminal, and return only at their end.
            Thread(target=webbrowser.open, args=(file.as_uri(),), daemon=True).start()

        yield open_it
