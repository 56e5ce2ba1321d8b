"""The page's files, and what it asks for: small answers with a tag, by which an unchanged one is not sent again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic_core import to_json
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from bertwright.page.files import file_routes
from bertwright.watch.corpus import CorpusExamples
from bertwright.watch.rows import AXES, View
from bertwright.watch.run import Run, runs_of
from bertwright.watch.vocabulary import Vocabulary

_WIDEST, _MOST_KEYS, _MOST_PAGES = 4096, 100, 10**6


def watch_routes(folders: Sequence[Path]) -> list[BaseRoute]:
    """The page of the runs in these folders, at /watch/; also of runs that do not exist yet."""
    return [Mount("/watch", Starlette(routes=_routes(folders), middleware=[Middleware(GZipMiddleware)]))]


def watch_app(folders: Sequence[Path]) -> Starlette:
    """An application with this page alone."""
    # A browser keeps the fragment of the address, which has the token.
    home = Route("/", lambda request: RedirectResponse("watch/"))
    return Starlette(routes=[home, *watch_routes(folders)])


def _routes(folders: Sequence[Path]) -> list[BaseRoute]:
    watched = _Watched(runs_of(list(folders)))
    asked: dict[str, Callable[[Request], Any]] = {
        "state": watched.state,
        "curves": watched.curves,
        "row": watched.row,
        "guesses": watched.guesses,
        "log": watched.log,
        "corpus": watched.corpus,
        "dropped": watched.dropped,
        "sentences": watched.sentences,
        "vocabulary": watched.vocabulary,
        "entries": watched.entries,
    }
    return [
        *(Route(f"/data/{name}", _tagged(answer)) for name, answer in asked.items()),
        *file_routes(Path(__file__).with_name("page")),
    ]


def _tagged(answer: Callable[[Request], Any]) -> Callable[[Request], Response]:
    """Answer with JSON and its tag; 304 to a request that has it. Runs on a thread."""

    def respond(request: Request) -> Response:
        body = to_json(answer(request), inf_nan_mode="null")  # a damaged file may have a number beyond those of floats
        headers = {"etag": f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"', "cache-control": "no-cache"}
        # The middleware that compresses it marks a tag as weak.
        if request.headers.get("if-none-match", "").removeprefix("W/") == headers["etag"]:
            return Response(status_code=304, headers=headers)
        return Response(body, media_type="application/json", headers=headers)

    return respond


class _Watched:
    """The answers, of several runs; each method gives one as JSON values."""

    def __init__(self, runs: list[Run]) -> None:
        self.runs = runs
        self._texts: dict[tuple[str, str], Any] = {}
        """Examples and vocabularies that were read, by the run and what made them."""

    def state(self, request: Request) -> Any:
        return {"runs": [run.state() for run in self.runs]}

    def curves(self, request: Request) -> Any:
        ask, run = request.query_params, self._run(request)
        axis = ask.get("axis", AXES[0])
        keys = [key for key in ask.get("keys", "").split(",") if key][:_MOST_KEYS]
        known = None
        if "rows" in ask:
            known = _integer(ask.get("generation")), _integer(ask["rows"]), _number(ask.get("size"), 0.0)
        with run.lock:
            low, high = run.rows.extent(axis)
            begin, end = _number(ask.get("begin"), low), _number(ask.get("end"), high)
            width = min(max(_integer(ask.get("width"), 500), 1), _WIDEST)
            return run.rows.reduce(View(axis, begin, max(begin, end), width, keys, known))

    def row(self, request: Request) -> Any:
        run, ask = self._run(request), request.query_params
        with run.lock:
            return run.rows.row(run.rows.at(ask.get("axis", AXES[0]), _number(ask.get("at"), 0.0)))

    def guesses(self, request: Request) -> Any:
        ask = request.query_params
        return self._run(request).guesses(_integer(ask.get("begin")), _integer(ask.get("stride"), 1))

    def log(self, request: Request) -> Any:
        return self._run(request).log(_page(request))

    def corpus(self, request: Request) -> Any:
        manifest = self._run(request).manifest("corpus")
        counts = manifest.get("counts")
        return {"counts": counts if isinstance(counts, dict) else {}, "seconds": manifest.get("seconds")}

    def dropped(self, request: Request) -> Any:
        examples = self._made(self._run(request), "corpus", CorpusExamples)
        return examples.dropped(request.query_params.get("reason", ""), _page(request))

    def sentences(self, request: Request) -> Any:
        examples = self._made(self._run(request), "corpus", CorpusExamples)
        return examples.sentences(request.query_params.get("kind", ""), _page(request))

    def vocabulary(self, request: Request) -> Any:
        run = self._run(request)
        return self._made(run, "vocab", _vocabulary).table() | {"counts": run.manifest("vocab").get("counts", {})}

    def entries(self, request: Request) -> Any:
        ask = request.query_params
        words = self._made(self._run(request), "vocab", _vocabulary)
        return words.page(ask.get("script", ""), _integer(ask.get("length")), ask.get("find", ""), _page(request))

    def _run(self, request: Request) -> Run:
        number = _integer(request.query_params.get("run"))
        if not 0 <= number < len(self.runs):
            raise HTTPException(404)
        return self.runs[number]

    def _made(self, run: Run, stage: str, read: Callable[[Path], Any]) -> Any:
        """What was read of a stage, until the stage is made anew."""
        key, made = (str(run.path), stage), str(run.manifest(stage).get("fingerprint"))
        if key not in self._texts or self._texts[key][0] != made:
            self._texts[key] = made, read(run.path / stage)
        return self._texts[key][1]


def _vocabulary(folder: Path) -> Vocabulary:
    return Vocabulary(folder / "vocab.txt")


def _page(request: Request) -> int:
    return min(max(_integer(request.query_params.get("page")), 0), _MOST_PAGES)


def _integer(text: str | None, otherwise: int = 0) -> int:
    try:
        return int(text or otherwise)
    except ValueError:
        return otherwise


def _number(text: str | None, otherwise: float) -> float:
    try:
        value = float(text or otherwise)
    except ValueError:
        return otherwise
    return value if abs(value) < 1e300 else otherwise  # nan compares as false
