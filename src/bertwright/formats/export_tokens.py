"""Writes the training documents of a token store, without the held-out ones, in a document format."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bertwright.core.files import write_json
from bertwright.core.log import SILENT, Log
from bertwright.examples.store import Store
from bertwright.formats.atomic_write import atomic_folder
from bertwright.formats.convert import NOTE
from bertwright.formats.documents import DocumentFormat, TokenDocuments

_AT_ONCE = 4096
"""Number of documents in memory at a time."""


def export_documents(
    store: Store, destination: Path, target: DocumentFormat, name: str, files: int = 0, log: Log = SILENT
) -> dict[str, Any]:
    """Write the documents in order into the new folder `destination`; returns the note stored there.

    Writes `files` files with about the same number of documents each or, with 0, one file per corpus shard; files that
    would be empty are omitted. A sentence of more than 65,535 tokens is split into several, as in the store.
    """
    total, starts = len(store.hashes), store.starts
    # A shard ends where a document ends, so its end in tokens is found among the document starts.
    edges = [total * i // files for i in range(files + 1)] if files else np.searchsorted(starts, store.shard_tokens)
    assert target.write, f"{target.kind} can only be read, not written"
    written: dict[str, int] = {}
    with atomic_folder(destination) as draft:
        # `unique`, because a shard whose documents are all held out would become an empty file.
        for number, (first, stop) in enumerate(pairwise(np.unique(edges).tolist())):
            file = f"{name}_{number:05}{target.suffix}"
            written[file] = target.write(draft / file, _blocks(store, first, stop), store.vocabulary.size)
            log.progress("convert", stop, total, "documents")
        note = {"kind": target.kind, "documents": total, "vocabulary": store.vocabulary.hash, "files": written}
        write_json(draft / NOTE, note)
    return note


def _blocks(store: Store, first: int, stop: int) -> Iterator[TokenDocuments]:
    for begin in range(first, stop, _AT_ONCE):
        end = min(begin + _AT_ONCE, stop)
        bounds = store.documents[begin : end + 1].astype(np.int64)
        yield TokenDocuments(
            store.tokens[int(store.starts[begin]) : int(store.starts[end])],
            store.sentences[bounds[0] : bounds[-1]].astype(np.int64),
            np.diff(bounds),
        )
