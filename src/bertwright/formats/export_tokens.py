"""The training documents of a token store, written in a format of documents; held-out ones are not among them."""

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
"""Documents in memory at a time."""


def export_documents(
    store: Store, destination: Path, target: DocumentFormat, name: str, files: int = 0, log: Log = SILENT
) -> dict[str, Any]:
    """Write the documents in their order into the new folder `destination`; the note that is kept there.

    They lie in `files` files of about equally many documents, or, with 0, in one for each corpus shard; fewer where one
    would be empty. A sentence above 65,535 tokens is several, as in the store.
    """
    total, starts = len(store.hashes), store.starts
    # A shard ends where a document does, so its end in tokens is found among their starts.
    edges = [total * i // files for i in range(files + 1)] if files else np.searchsorted(starts, store.shard_tokens)
    assert target.write, f"{target.kind} is only read"
    written: dict[str, int] = {}
    with atomic_folder(destination) as draft:
        # A shard whose documents are all held out would be a file without any.
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
