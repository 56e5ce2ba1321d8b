"""The parts of one source: every piece extracted, and what they add up to."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertwright.core.files import read_json, sha256, write_json
from bertwright.core.log import Log
from bertwright.core.tasks import run_tasks
from bertwright.corpus.config import CorpusConfig
from bertwright.corpus.errors import MAX_DOCUMENT, SourceError
from bertwright.corpus.extract import extract
from bertwright.corpus.sources.articles import Job
from bertwright.corpus.sources.dump import PAGE, Header, parse_header
from bertwright.corpus.sources.file import Reader, Source
from bertwright.corpus.sources.pieces import Piece, ranges, spooled

_WAVE = 16
"""Pieces of 8 MiB per worker that are decoded ahead where a source can only be decoded from its beginning."""


@dataclass(frozen=True)
class Parts:
    """What became of one source."""

    paths: list[Path]
    """Its parts in source order, without suffix."""
    counts: Counter[str]
    facts: dict[str, Any]
    """What the manifest says of the source."""


def make_parts(config: CorpusConfig, source: Source, number: int, folder: Path, workers: int, log: Log) -> Parts:
    """Extract every piece of the source into `folder`; parts that are there already are left as they are."""
    header = read_header(source)
    _note_language(config, header, log)
    done = folder / f"{number:04d}.done.json"
    if not done.is_file():
        names = _extract(config, source, number, header, folder, workers, log)
        write_json(done, {"parts": names, "sha256": sha256(source.path)})  # about 1 GB/s: little beside it
    made = read_json(done)
    paths = [folder / name for name in made["parts"]]
    counts: Counter[str] = Counter()
    last, ended, lost = "", True, 0
    for path in paths:
        state = read_json(path.with_suffix(".json"))
        counts.update(state["counts"])
        last, ended, lost = state.get("last", last), state["ended"], state["lost_bytes"]
    if not last:
        raise _nothing_whole(source)
    if not ended:
        log.say(_what_was_lost(source, last, lost))
    return Parts(paths, counts, {
        "content": source.content,
        "name": header.name,
        "database": header.database,
        "base": header.base,
        "licence": config.licence or header.licence,
        "file_bytes": source.size,
        "sha256": made["sha256"],
        "cut": None if ended else {"after": last, "lost_bytes": lost},
    })  # fmt: skip


def read_header(source: Source) -> Header:
    """What the head of a dump says; empty for plain text."""
    if source.content == "text":
        return Header()
    head = bytearray()
    for block in Reader(source):
        head += block
        if (end := head.find(PAGE)) >= 0:
            return parse_header(bytes(head[:end]), source.path)
        if len(head) > MAX_DOCUMENT:
            break
    parse_header(bytes(head), source.path)
    raise _nothing_whole(source)


def _extract(
    config: CorpusConfig, source: Source, number: int, header: Header, folder: Path, workers: int, log: Log
) -> list[str]:
    """Run the task list of one source; returns the names of its parts in order."""
    done = 0

    def progress(step: int) -> None:
        nonlocal done
        done += step
        log.progress("corpus", done / 1e6, source.size / 1e6, "MB")

    names: list[str] = []
    for wave in _waves(source, number, folder, workers):
        run_tasks(extract, [Job(piece, source, header, config, folder) for piece in wave], workers, "corpus", progress)
        names += [piece.name for piece in wave]
    return names


def _waves(source: Source, number: int, folder: Path, workers: int) -> Iterator[list[Piece]]:
    """All pieces at once where the file can be cut, else some for every worker as they are decoded."""
    pieces = ranges(source, number)
    if pieces is not None:
        yield pieces
        return
    stream = spooled(source, number, folder)
    while wave := list(itertools.islice(stream, _WAVE * workers)):
        yield wave


def _note_language(config: CorpusConfig, header: Header, log: Log) -> None:
    names = {header.language, header.database.removesuffix("wiki").replace("_", "-")}
    if header.language and config.language not in names:
        log.say(f"corpus: the dump calls its language {header.language!r}; corpus.language is {config.language!r}")


def _what_was_lost(source: Source, last: str, lost: int) -> str:
    rest = f"{lost:,} bytes that begin another are left out" if lost else "what followed is missing"
    return f"corpus: {source.path.name} breaks off after {last}, as an interrupted download does: {rest}."


def _nothing_whole(source: Source) -> SourceError:
    kind = "page" if source.content == "dump" else "document"
    return SourceError(f"{source.path} has not one whole {kind}. Download it again.")
