"""The other cleaners, run as programs of an environment of their own, and their results kept for the next run.

wikiextractor is under the AGPL and mwparserfromhell needs a compiler where there is no wheel: neither is a dependency.
`Peers(folder)` makes `folder` a virtual environment with both when it is not one yet (from the package index).
"""

from __future__ import annotations

import gzip
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .pages import Wiki

PACKAGES = ("wikiextractor==3.1.0", "mwparserfromhell==0.7.2")
_MARKUP = Path(__file__).with_name("markup.py")


class Peers:
    """wikiextractor and mwparserfromhell in the environment at `folder`, which is made if need be."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._python = folder / "bin" / "python"
        done = folder / "peers.txt"
        if not done.is_file() or done.read_text() != "\n".join(PACKAGES):
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            subprocess.run([self._python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True, stdout=sys.stderr)
            done.write_text("\n".join(PACKAGES))

    def texts(self, wiki: Wiki) -> dict[int, str]:
        """wikiextractor's text of each article: one process, templates expanded, entities as characters."""

        def extract() -> list[str]:
            with tempfile.NamedTemporaryFile(suffix=".xml") as file:
                file.write(wiki.xml)
                file.flush()
                module: list[str | Path] = [self._python, "-m", "wikiextractor.WikiExtractor"]
                options = ["--json", "--processes", "1", "--html-safe", "", "--quiet", "-o", "-"]
                return _run([*module, *options, file.name], "")

        found = {int(page["id"]): page["text"] for page in self._kept("wikiextractor", PACKAGES[0], wiki, extract)}
        return {page.id: found.get(page.id, "") for page in wiki.articles}

    def markup(self, wiki: Wiki) -> dict[int, dict[str, Any]]:
        """What `markup.py` says about each article, mwparserfromhell's text with it."""

        def parse() -> list[str]:
            lines = [wiki.hidden, *({"id": page.id, "text": page.text} for page in wiki.articles)]
            return _run([self._python, str(_MARKUP)], "\n".join(map(json.dumps, lines)))

        return {page["id"]: page for page in self._kept("markup", PACKAGES[1] + _MARKUP.read_text(), wiki, parse)}

    def _kept(self, name: str, version: str, wiki: Wiki, make: Callable[[], list[str]]) -> list[dict[str, Any]]:
        """The JSON lines `make` gives, from an earlier run where one saw the same pages and the same version."""
        key = hashlib.sha256(version.encode() + wiki.xml).hexdigest()[:16]
        path = self._folder / f"{name}-{wiki.name}-{key}.jsonl.gz"
        if not path.is_file():
            print(f"{wiki.name}: {name} ...", file=sys.stderr, flush=True)
            fresh = path.with_suffix(".new")
            fresh.write_bytes(gzip.compress("".join(make()).encode(), 3))
            fresh.replace(path)
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]


def _run(command: Sequence[str | Path], stdin: str) -> list[str]:
    done = subprocess.run(command, input=stdin.encode(), stdout=subprocess.PIPE, check=True)
    return [line + "\n" for line in done.stdout.decode().split("\n") if line.startswith("{")]
