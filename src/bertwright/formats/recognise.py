"""What lies in a folder of training data: the sets of files in it, their format, and what is missing or damaged.

Formats are recognised by content, never by name. Files in one folder form one set (NVIDIA's `…_test_<i>` files and the
hub's `test-<i>-of-<n>` one of their own), so `seq_128/` and `seq_512/` of Intel's data are two; so are files of two
shapes in one folder.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from bertwright.core.errors import DataError
from bertwright.formats.documents import DocumentFile
from bertwright.formats.errors import ShardError
from bertwright.formats.format import OTHER_SPLITS, Facts, Kind, Shape, Split
from bertwright.formats.known import DOCUMENT_FORMATS, FORMATS, document_format_of

_PARTS = re.compile(r"[-_]of[-_](\d+)")
_TEST = re.compile(rf"_test_\d+\.|^(?:{'|'.join(OTHER_SPLITS)})-\d+-of-\d+")
"""NVIDIA's names of files for testing, and the hub's of data sets."""


@dataclass(frozen=True)
class FileSet:
    """One set of files of one format: what a training phase can read."""

    folder: Path
    split: Split
    kind: Kind
    shape: Shape
    """Of its first file."""
    files: tuple[Path, ...]
    """Whole files, in natural order."""
    documents: bool
    """Whether it holds tokenised documents, not examples."""
    mixed: tuple[Path, ...]
    """Those with masks where the first has none, or the other way round; beside documents, those with examples."""
    damaged: tuple[ShardError, ...]
    """Files that belong to it but cannot be read, as far as their beginning tells."""
    examples: int | None
    """Examples in the whole files; None when only reading tells."""
    parts: int | None
    """Parts there should be, where names end in `-of-<parts>`."""

    @property
    def trains(self) -> bool:
        """Whether it is there to be trained on: files and folders named after another split are not."""
        return self.split == "training" and self.folder.name not in OTHER_SPLITS

    @property
    def incomplete(self) -> str | None:
        """Such as "12 of 500 parts"; None when nothing is known to be missing."""
        whole = len(self.files)
        return f"{whole:,} of {self.parts:,} parts" if self.parts and whole < self.parts else None


def recognise(path: Path) -> tuple[FileSet, ...]:
    """The sets of files in `path` (a folder or one file), shortest examples first.

    `DataError` when there is none; a single damaged file is its `ShardError`.
    """
    files = [path] if path.is_file() else _data_below(path)
    facts: dict[Path, Facts] = {}
    faults: dict[Path, ShardError] = {}
    for file in files:
        try:
            if said := facts_of(file):
                facts[file] = said
        except ShardError as error:
            faults[file] = error
    # An empty or damaged file is of no format; by its name it belongs to those beside it.
    families = {_family(file) for file in facts}
    for file in files:
        if file not in facts and file not in faults and _family(file) in families:
            faults[file] = ShardError(file, "it is empty" if not file.stat().st_size else "its beginning is damaged")
    if not facts:
        for fault in faults.values():
            raise fault
        kinds = ", ".join(get_args(Kind))
        raise DataError(f"{path} holds no training data in a known format. Known are {kinds}.")
    return _sets(facts, faults)


def facts_of(file: Path) -> Facts | None:
    """What `file` says of itself by the format that knows it; None when none does."""
    for facts in [known.facts for known in FORMATS] + [known.facts for known in DOCUMENT_FORMATS if known.facts]:
        if said := facts(file):
            return said
    return None


def open_documents(file: Path, kind: Kind) -> DocumentFile:
    """A file of a set of tokenised documents."""
    documents = document_format_of(kind)
    assert documents, f"no format of documents is called {kind}"
    return documents.open(file)


def _sets(facts: dict[Path, Facts], faults: dict[Path, ShardError]) -> tuple[FileSet, ...]:
    members: dict[tuple[Path, Split, Kind, int | None, int | None], list[Path]] = defaultdict(list)
    for file, said in facts.items():
        # Of two lengths in one folder a phase trains on one, so these are two sets.
        members[file.parent, _split(file), said.kind, said.shape.length, said.shape.predictions].append(file)
    sets = []
    for (folder, split, kind, _, _), files in members.items():
        damaged = [error for file, error in faults.items() if (file.parent, _split(file)) == (folder, split)]
        counts = [facts[file].examples for file in files]
        # One file of running text makes it a set of text: the others are told of, not trained on as text.
        documents = any(facts[file].documents for file in files)
        parts = [int(named[1]) for file in files if (named := _PARTS.search(file.name))]
        sets.append(
            FileSet(
                folder=folder,
                split=split,
                kind=kind,
                shape=facts[files[0]].shape,
                files=tuple(files),
                documents=documents,
                mixed=tuple(file for file in files if _unlike(facts[file], facts[files[0]], documents)),
                damaged=tuple(damaged),
                examples=None if None in counts else sum(count or 0 for count in counts),
                parts=max(parts, default=None),
            )
        )
    return tuple(
        sorted(sets, key=lambda file_set: (file_set.shape.length or 0, _natural(file_set.folder), file_set.split))
    )


def _unlike(file: Facts, first: Facts, documents: bool) -> bool:
    return file.documents is False if documents else file.shape.static != first.shape.static


def _split(file: Path) -> Split:
    return "test" if _TEST.search(file.name) else "training"


def _data_below(folder: Path) -> list[Path]:
    """What may be data, in natural order: without hidden ones, Dask's `_metadata`, Spark's `_temporary`."""
    names = ((file, file.relative_to(folder).parts) for file in folder.rglob("*") if file.is_file())
    # What an interrupted conversion left lies in a hidden folder, and is no data.
    files = iter([file for file, parts in names if not any(part.startswith((".", "_")) for part in parts)])
    for known in FORMATS:
        # The results that `map` keeps beside a saved data set were trained on as further examples.
        files = known.data_files(files)
    return sorted(files, key=_natural)


def _natural(path: Path) -> list[tuple[int, int, str]]:
    """Sorts numbers in names by their value."""
    # Tuples of one form, because numbers and texts cannot be compared.
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in re.split(r"([0-9]+)", str(path))]


def _family(file: Path) -> tuple[Path, str]:
    """Files whose names differ in numbers alone belong together."""
    return file.parent, re.sub(r"\d+", "0", file.name)
