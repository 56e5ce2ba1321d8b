"""The endpoints of the Hugging Face hub that sending a model uses, on this machine, as its API is documented: creating
models, checking their cards, telling how each file is sent, large files by Git LFS, and commits."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import yaml
from tests.server import Quiet, listening

TOKEN = "hf_plantedPlantedPlantedPlanted"
"""The token that may write; it may stand in no output."""
LARGE = re.compile(r"\.(safetensors|onnx|gguf|bin)$")
"""Of the names that the hub's own .gitattributes keeps in Git LFS."""


@dataclass
class Repository:
    """A model: its commits, each the contents of its files by name."""

    private: bool
    commits: list[dict[str, bytes]] = field(default_factory=lambda: [{".gitattributes": b""}])

    @property
    def head(self) -> str:
        return sha(len(self.commits))


@dataclass
class Hub:
    """What is there and what was asked; tests change the first and read the second."""

    address: str
    models: dict[str, Repository] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    """The large files, by their SHA-256."""
    calls: list[str] = field(default_factory=list)
    damages: str = ""
    """The name of a file that the hub stores with another content."""
    refuses: dict[str, int] = field(default_factory=dict)
    """The status of the answer to a `METHOD path` that the expression matches; 0: the line is cut."""

    def answer(self, method: str, path: str, headers: Any, body: bytes) -> tuple[int, Any, dict[str, str]]:
        """Status, body and headers of an answer."""
        self.calls.append(f"{method} {path}")
        for pattern, status in self.refuses.items():
            if re.search(pattern, f"{method} {path}"):
                return status, {"error": "not now"}, {}
        if path.startswith("/lfs/"):  # signed by its address
            if hashlib.sha256(body).hexdigest() != path.removeprefix("/lfs/"):
                return 400, {"error": "another content"}, {}
            self.objects[path.removeprefix("/lfs/")] = body
            return 200, {}, {}
        if headers.get("Authorization") != f"Bearer {TOKEN}":
            return 401, {"error": "Invalid user token."}, {}
        asked = json.loads(body) if body.startswith(b"{") and "/commit/" not in path else body
        match path:
            case "/api/repos/create":
                return self._create(asked)
            case "/api/validate-yaml":
                wrong = faults(asked["content"])
                return (400 if wrong else 200), {"errors": [{"message": each} for each in wrong], "warnings": []}, {}
        if found := re.fullmatch(r"/(?:api/models/)?([\w.-]+/[\w.-]+?)(?:\.git)?((?:/.*)?)", path):
            return self._model(found[1], found[2], asked)
        return 404, {"error": "no such page"}, {}

    def _create(self, asked: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:
        name = f"{asked['organization']}/{asked['name']}"
        known = name in self.models
        self.models.setdefault(name, Repository(asked.get("visibility") == "private"))
        return (409 if known else 200), {"url": f"{self.address}/{name}"}, {}

    def _model(self, name: str, below: str, asked: Any) -> tuple[int, Any, dict[str, str]]:
        if name not in self.models:
            return 404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"}
        model = self.models[name]
        there = model.commits[-1]
        match below.split("/")[1:]:
            case [] | ["revision", "main"]:
                siblings = [{"rfilename": file} for file in there]
                return 200, {"id": name, "sha": model.head, "private": model.private, "siblings": siblings}, {}
            case ["preupload", _]:
                modes = [
                    {
                        "path": file["path"],
                        "uploadMode": "lfs" if LARGE.search(file["path"]) else "regular",
                        "shouldIgnore": False,
                        "oid": oid(file["path"], there[file["path"]]) if file["path"] in there else None,
                    }
                    for file in asked["files"]
                ]
                return 200, {"files": modes}, {}
            case ["info", "lfs", "objects", "batch"]:
                return 200, {"transfer": "basic", "objects": [self._object(each) for each in asked["objects"]]}, {}
            case ["commit", _]:
                return self._commit(name, model, [json.loads(line) for line in asked.splitlines()])
            case ["paths-info", revision]:
                commit = next(each for number, each in enumerate(model.commits, 1) if sha(number) == revision)
                return (
                    200,
                    [entry(file, commit[file]) for file in parse_qs(asked.decode())["paths"] if file in commit],
                    {},
                )
        return 404, {"error": "no such page"}, {}

    def _object(self, asked: dict[str, Any]) -> dict[str, Any]:
        there = asked["oid"] in self.objects
        return asked | ({} if there else {"actions": {"upload": {"href": f"{self.address}/lfs/{asked['oid']}"}}})

    def _commit(self, name: str, model: Repository, lines: list[dict[str, Any]]) -> tuple[int, Any, dict[str, str]]:
        head, *changes = lines
        assert head["key"] == "header" and head["value"]["summary"]
        if head["value"].get("parentCommit") not in (None, model.head):
            return 412, {"error": "A commit has happened since."}, {}
        files = dict(model.commits[-1])
        for change in changes:
            value = change["value"]
            files[value["path"]] = (
                self.objects[value["oid"]] if change["key"] == "lfsFile" else base64.b64decode(value["content"])
            )
        if self.damages in files:
            files[self.damages] += b"!"
        model.commits.append(files)
        return 200, {"commitUrl": f"{self.address}/{name}/commit/{model.head}", "commitOid": model.head}, {}


def sha(number: int) -> str:
    return f"{number:040}"


def oid(path: str, data: bytes) -> str:
    if LARGE.search(path):
        return hashlib.sha256(data).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def entry(path: str, data: bytes) -> dict[str, Any]:
    large = {"lfs": {"oid": oid(path, data), "size": len(data), "pointerSize": 134}} if LARGE.search(path) else {}
    return {"type": "file", "path": path, "size": len(data), "oid": oid("", data), **large}


def faults(card: str) -> list[str]:
    """What the hub refuses in a card, by its specification."""
    data = yaml.safe_load(card.split("---")[1])
    codes = data.get("language", [])
    wrong = [f'"{code}" must be a code of ISO 639' for code in codes if not re.fullmatch("[a-z]{2,3}", str(code))]
    wrong += ['"license" is required'] * ("license" not in data)
    wrong += [f'"{key}" must be a list' for key in ("tags", "datasets", "metrics") if isinstance(data.get(key), str)]
    for model in data.get("model-index", []):
        results = model["results"]
        wrong += ['"model-index" needs a name'] * (not model.get("name"))
        wrong += ['"dataset" needs type and name'] * (
            not all({"type", "name"} <= each["dataset"].keys() for each in results)
        )
    return wrong


@contextmanager
def serving() -> Iterator[Hub]:
    """A running hub without models, stopped at the end."""

    class Handler(Quiet):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Transfer-Encoding") == "chunked":
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
            status, said, headers = hub.answer(self.command, self.path.partition("?")[0], self.headers, body)
            if not status:
                self.close_connection = True
                return
            data = json.dumps(said).encode()
            self.send_response(status)
            for key, value in {**headers, "Content-Type": "application/json", "Content-Length": str(len(data))}.items():
                self.send_header(key, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_HEAD = do_PUT = do_POST = _answer

    with listening(Handler) as address:
        hub = Hub(address)
        yield hub
