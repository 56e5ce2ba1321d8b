"""The files of a page, each at its name: those of its folder, and those in `shared/`, which belong to all pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route

SHARED = Path(__file__).with_name("shared")
# Not guessed from the system's table, in which scripts may be plain text, which browsers then do not run.
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def file_routes(folder: Path) -> list[BaseRoute]:
    """The routes of a page's files; that of HTML is at the root."""
    files = [file for file in (*sorted(folder.iterdir()), *sorted(SHARED.iterdir())) if file.suffix in _TYPES]
    return [Route("/" if file.suffix == ".html" else f"/{file.name}", _giving(file)) for file in files]


def _giving(file: Path) -> Callable[[Request], Awaitable[Response]]:
    async def give(request: Request) -> Response:
        return FileResponse(file, media_type=_TYPES[file.suffix])

    return give
