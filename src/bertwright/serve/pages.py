"""The page of the server: the files in `talk/`, each at its name, and talk.html at the root."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route

TALK = Path(__file__).with_name("talk")
# Not guessed from the system's table, in which scripts may be plain text, which browsers then do not run.
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def page_routes() -> list[BaseRoute]:
    """The routes of the page's files."""
    files = [file for file in sorted(TALK.iterdir()) if file.suffix in _TYPES]
    return [Route("/" if file.name == "talk.html" else f"/{file.name}", _giving(file)) for file in files]


def _giving(file: Path) -> Callable[[Request], Awaitable[Response]]:
    async def give(request: Request) -> Response:
        return FileResponse(file, media_type=_TYPES[file.suffix])

    return give
