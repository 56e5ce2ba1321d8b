"""What the names of files say about files that are missing: `-of-500`, or a gap in their numbers.

Detects what is in a folder of training data: the sets of files, their formats, and what is missing or damaged.

Formats are detected from the content, never from names. The files in a folder form one set (NVIDIA's `…_test_<i>`
files and the hub's `test-<i>-of-<n>` or `dev-<i>-of-<n>` files form a separate one), so `seq_128/` and `seq_512/` of
Intel's data are two sets. Files of two shapes in one folder are also two sets.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from bertwright.core.errors import DataError
from bertwright.core.files import folders_below
from bertwright.formats.errors import NotExamplesError, ShardError
from bertwright.formats.format import OTHER_SPLITS, TRAINING_SPLITS, DocumentFile, FileInfo, Kind, Shape, Split
from bertwright.formats.known import DOCUMENT_FORMATS, FORMATS, document_format_of

_OF = re.compile(r"[-_]of[-_]([0-9]+)")
_NUMBER = re.compile(r"(.*?)([0-9]+)(\D*)")
"""The last number of a name without its ending, with what is before and after it."""


def parts_of(files: Sequence[Path]) -> int | None:
    """Return the number of files that there should be, if their names end in `-of-<number>`."""
    return max((int(named[1]) for file in files if (named := _OF.search(file.name))), default=None)


def missing_parts(files: Sequence[Path], beside: Iterable[Path]) -> tuple[int, ...]:
    """Return the numbers, in order, that are missing between those of `files` and of the files `beside` them, whose
    names differ only in the last number.

    Empty if more are missing than there are: such numbers are dates or sizes.
    """
    numbers = defaultdict[tuple[Path, str, str], set[int]](set)
    for file in (*files, *beside):
        series, number = _split_number(file)
        numbers[series].add(number)
    missing = set[int]()
    for series in {_split_number(file)[0] for file in files}:
        there = numbers[series]
        if max(there) - min(there) < 2 * len(there):
            missing |= {*range(min(there), max(there))} - there
    return tuple(sorted(missing))


def _split_number(file: Path) -> tuple[tuple[Path, str, str], int]:
    """Return what the names of a series have in common, and the number of the file in it; 0 without a number."""
    before, number, after = named.groups() if (named := _NUMBER.fullmatch(file.stem)) else (file.stem, "0", "")
    return (file.parent, before, after + file.suffix), int(number)


_TEST = re.compile(rf"_test_\d+\.|(?:^|_)eval_\d+k\b|^(?:{'|'.join(OTHER_SPLITS)})(?:[._]\w+)?-\d+-of-\d+")
"""Names of test files: NVIDIA's, MLPerf's (`part_eval_10k.hdf5`), and those of datasets on the Hugging Face hub, such
as `validation_matched-00000-of-00001.parquet`."""


_MLPERF = "eval_"
"""How MLPerf's folders with the set for scores begin."""

_NAMED = 5
"""Maximum number of missing files to name."""


@dataclass(frozen=True)
class FileSet:
    """A set of files of one format, which a training phase can read."""

    folder: Path
    split: Split
    kind: Kind
    shape: Shape
    """Shape of the first file."""
    files: tuple[Path, ...]
    """The valid files, in natural order."""
    documents: bool
    """Whether it holds tokenised documents, not examples."""
    mixed: tuple[Path, ...]
    """Files that have masks when the first has none, or the reverse; in a set of documents, files with examples."""
    damaged: tuple[ShardError, ...]
    """Files that belong to the set but cannot be read, as far as their beginnings show."""
    examples: int | None
    """Number of examples in the valid files; None when only reading them shows it."""
    parts: int | None
    """Expected number of files, if names end in `-of-<parts>`."""
    missing: tuple[int, ...]
    """Numbers without a file between those of the files, in order."""
    tests: tuple[FileSet, ...] = ()
    """Sets found in the same place that are not for training, if this one was chosen for training."""
    unreadable_tests: tuple[ShardError, ...] = ()
    """Files of such sets of which no file can be read."""

    @property
    def trains(self) -> bool:
        """Whether the set is for training; files and folders named after another split are not, nor are MLPerf's
        `eval_set_uncompressed` and `eval_varlength`."""
        return _is_for_training(self.folder, self.split)

    @property
    def incomplete(self) -> str | None:
        """How much is present, such as "12 of 500 parts"; None when nothing is known to be missing."""
        whole = len(self.files)
        if self.parts and whole < self.parts:
            return f"{whole:,} of {self.parts:,} parts"
        if not self.missing:
            return None
        named = ", ".join(map(str, self.missing[:_NAMED])) + (", ..." if len(self.missing) > _NAMED else "")
        verb = "are" if len(self.missing) > 1 else "is"
        return f"{whole:,} of {whole + len(self.damaged) + len(self.missing):,} parts ({named} {verb} missing)"


def detect(path: Path, unreadable: list[ShardError] | None = None) -> tuple[FileSet, ...]:
    """Return the sets of files in `path` (a folder or one file), shortest examples first.

    Raises `DataError` when there is none, and `ShardError` when all files of a folder are damaged, because its
    content is then unknown; with `unreadable` they are added to it, unless no other file can be read either.
    """
    damaged: list[ShardError] = [] if unreadable is None else unreadable
    sets = _find_sets([path] if path.is_file() else _data(path, folders_below(path)), damaged)
    if damaged and (unreadable is None or not sets):
        raise damaged[0]
    if not sets:
        kinds = ", ".join(get_args(Kind))
        raise DataError(f"{path} holds no training data in a known format. Known formats: {kinds}.")
    return sets


def detect_tests(path: Path, training: Sequence[Path], unreadable: list[ShardError]) -> tuple[FileSet, ...]:
    """Return the sets next to the files `training` at `path` (a folder or one file) whose names say that they are not
    for training; none of them is in a folder `path`.

    These are test files in the folder of a file, folders of other splits next to a folder `train` or `training`, and
    MLPerf's `eval_…` next to any folder. Files of folders of which no file can be read are added to `unreadable`.
    """
    # Not resolved: a link stands where it is, not where it leads.
    folder, files = Path(os.path.abspath(path)), list[Path]()
    if path.is_file():
        folder = folder.parent
        files = [file for file in _data(folder, [folder]) if _split(file) == "test" and file.name != path.name]
    for other in sorted(folder.parent.iterdir()):
        of_split = folder.name in TRAINING_SPLITS and other.name in OTHER_SPLITS
        if other != folder and (of_split or other.name.startswith(_MLPERF)) and other.is_dir():
            files += _data(other, folders_below(other))
    return _find_sets(files, unreadable, training)


def is_for_training(file: Path) -> bool:
    """Whether the names of `file` and its folder say that it is for training."""
    return _is_for_training(file.parent, _split(file))


def _is_for_training(folder: Path, split: Split) -> bool:
    other = folder.name in OTHER_SPLITS or folder.name.startswith(_MLPERF)
    return split == "training" and not other


def _find_sets(files: Sequence[Path], unreadable: list[ShardError], like: Sequence[Path] = ()) -> tuple[FileSet, ...]:
    """Return the sets of `files`; those in a place of which no file can be read are added to `unreadable`. They may be
    known by their resemblance to the data files `like`."""
    facts: dict[Path, FileInfo] = {}
    faults: dict[Path, ShardError] = {}
    for file in files:
        try:
            if info := file_info(file):
                facts[file] = info
        except ShardError as error:
            faults[file] = error
    faults |= _of_no_format([file for file in files if file not in facts and file not in faults], [*facts, *like])
    found = {_place(file) for file in facts}
    lost = [fault for file, fault in faults.items() if _place(file) not in found]
    if facts:
        # Text that is not tokenised is no set beside others, but it is not damaged either.
        lost = [fault for fault in lost if not isinstance(fault, NotExamplesError)]
    unreadable += lost
    return _sets(facts, faults)


def _of_no_format(others: Sequence[Path], data: Sequence[Path]) -> dict[Path, ShardError]:
    """Return a fault for each of `others`, files of no known format, that belongs to the `data` files.

    An empty or damaged file has no detectable format. Beside files of its split, its name shows whether it belongs to
    them; elsewhere, such as in `test` next to `train`, its ending does, or without an ending its name.
    """
    found, families = {_place(file) for file in data}, {(file.parent, _family(file)) for file in data}
    endings = {file.suffix or _family(file) for file in data}
    return {
        file: ShardError(file, "its beginning is damaged" if file.stat().st_size else "it is empty")
        for file in others
        if (file.parent, _family(file)) in families
        or (_place(file) not in found and (file.suffix or _family(file)) in endings)
    }


def file_info(file: Path) -> FileInfo | None:
    """Return the facts of `file` from the first format that recognises it; None when none does."""
    for facts in [known.facts for known in FORMATS] + [known.facts for known in DOCUMENT_FORMATS if known.facts]:
        if info := facts(file):
            return info
    return None


def open_documents(file: Path, kind: Kind) -> DocumentFile:
    """Open a file of a set of tokenised documents."""
    documents = document_format_of(kind)
    assert documents, f"not a format of documents: {kind}"
    return documents.open(file)


def _sets(facts: dict[Path, FileInfo], faults: dict[Path, ShardError]) -> tuple[FileSet, ...]:
    members: dict[tuple[Path, Split, Kind, int | None, int | None], list[Path]] = defaultdict(list)
    for file, info in facts.items():
        # A phase trains on one length, so files of two lengths in one folder are two sets.
        members[file.parent, _split(file), info.kind, info.shape.length, info.shape.predictions].append(file)
    sets = []
    for (folder, split, kind, _, _), files in members.items():
        damaged = [error for file, error in faults.items() if _place(file) == (folder, split)]
        counts = [facts[file].examples for file in files]
        # A single file of running text makes it a set of text; files with examples are reported as `mixed`.
        documents = any(facts[file].documents for file in files)
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
                parts=parts_of(files),
                missing=missing_parts(files, [*facts, *faults]),
            )
        )
    return tuple(
        sorted(sets, key=lambda file_set: (file_set.shape.length or 0, _natural(file_set.folder), file_set.split))
    )


def _unlike(file: FileInfo, first: FileInfo, documents: bool) -> bool:
    return file.documents is False if documents else file.shape.static != first.shape.static


def _place(file: Path) -> tuple[Path, Split]:
    """Return what the files of a set have in common."""
    return file.parent, _split(file)


def _split(file: Path) -> Split:
    return "test" if _TEST.search(file.name) else "training"


def _data(folder: Path, within: Iterable[Path]) -> list[Path]:
    """Return the files in folders `within` one that may be data, in natural order; skips hidden ones, Dask's
    `_metadata`, Spark's `_temporary`."""
    found = (file for below in within for file in below.iterdir() if file.is_file())
    names = ((file, file.relative_to(folder).parts) for file in found)
    # An interrupted conversion leaves a hidden folder, which is not data.
    files = iter([file for file, parts in names if not any(part.startswith((".", "_")) for part in parts)])
    for known in FORMATS:
        # Without this, results that `map` caches next to a saved dataset were used as additional training examples.
        files = known.data_files(files)
    return sorted(files, key=_natural)


def _natural(path: Path) -> list[tuple[int, int, str]]:
    """Sort key that orders numbers in names by value."""
    # Tuples of the same types, because numbers and strings cannot be compared.
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in re.split(r"([0-9]+)", str(path))]


def _family(file: Path) -> str:
    """Return a key for files that belong together: those whose names differ only in numbers."""
    return re.sub(r"\d+", "0", file.name)
