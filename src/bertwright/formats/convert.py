"""Converts examples from one format to another, file by file, as far as the source has the necessary information."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertwright.core.errors import DataError
from bertwright.core.files import make_folder, write_json
from bertwright.core.log import SILENT, Log
from bertwright.formats.columns import MAX_LENGTH
from bertwright.formats.detect import FileSet, detect
from bertwright.formats.errors import ShardError
from bertwright.formats.format import SPLITS, Kind, Shape, Split
from bertwright.formats.known import format_of, holds_examples
from bertwright.formats.target import Target, atomic_folder, file_name, folder_name
from bertwright.formats.vocabulary_fit import refuse_misfits

NOTE = "conversion.json"


def convert(
    source: Path,
    destination: Path,
    target: Target,
    vocabulary: Sequence[str] | None = None,
    quarantine: bool = False,
    log: Log = SILENT,
) -> dict[str, Any]:
    """Convert every file of `source` to `target` in the new folder `destination`; returns the note stored there.

    Sets of files (such as two phases) become folders of the same names. The destination appears only once everything is
    written. A damaged file raises an error that names it; with `quarantine` it is left out, reported in the log and
    listed in the note (`conversion.json`). The source is not modified. Raises `DataError` when the source lacks what
    the target needs.
    """
    left_out = list[ShardError]()
    sets = detect(source, left_out)
    tasks = [task for file_set in sets for task in _tasks(file_set, source, destination, target, vocabulary)]
    left_out += [error for file_set in sets for error in file_set.damaged]
    # The beginnings of the files already show this damage, so fail now and not after hours of writing.
    if left_out and not quarantine:
        raise left_out[0]
    # Files of two such sets would get the same names in the destination.
    if len({(file_set.folder, file_set.split) for file_set in sets}) < len(sets):
        raise DataError(
            f"{source} has files of several formats or lengths in one folder. Move one of them to a separate folder."
        )
    if twice := [name for name, times in Counter(task.name for task in tasks).items() if times > 1]:
        one, other, *_ = (task.file for task in tasks if task.name == twice[0])
        raise DataError(
            f"{one} and {other} would both become {twice[0]} in {destination}. Rename the folder of one of them, or "
            "convert them separately."
        )
    refuse_misfits(sets, vocabulary)
    with atomic_folder(destination) as draft:
        written = _write(tasks, draft, target, vocabulary, left_out if quarantine else None, log)
        # Last, because the description lists the files.
        if describe := target.format.describe:
            describe(draft)
        note = _note(source, target, written, left_out, [file_set for file_set in sets if file_set.incomplete], log)
        write_json(draft / NOTE, note)
    return note


@dataclass(frozen=True)
class _Task:
    """One file to convert."""

    file: Path
    kind: Kind
    name: str
    """Path inside the destination."""
    shape: Shape


def _tasks(
    file_set: FileSet, source: Path, destination: Path, target: Target, vocabulary: Sequence[str] | None
) -> list[_Task]:
    shape = _shape(file_set, target, vocabulary)
    folder = Path() if source.is_file() else file_set.folder.relative_to(source)
    split: Split = "training" if file_set.trains else "test"
    # A separate folder for each split: LDDL's loader reads everything below a folder, including held-out examples.
    if file_set.folder.name not in SPLITS:
        folder /= folder_name(target, split)
    names = [file_name(target, destination.name, split, n, len(file_set.files)) for n in range(len(file_set.files))]
    return [
        _Task(file, file_set.kind, str(folder / name), shape) for file, name in zip(file_set.files, names, strict=True)
    ]


def _write(
    tasks: list[_Task],
    draft: Path,
    target: Target,
    vocabulary: Sequence[str] | None,
    left_out: list[ShardError] | None,
    log: Log,
) -> dict[str, Any]:
    """Write the files; returns entries by name. Damaged files are added to `left_out`, or raise if it is None."""
    written: dict[str, Any] = {}
    for done, task in enumerate(tasks, start=1):
        make_folder((draft / task.name).parent)
        blocks = format_of(task.kind).read(task.file, vocabulary)
        try:
            # Blocks are read lazily while they are written, so damage to the source surfaces here.
            examples = target.format.write(draft / task.name, blocks, task.shape, vocabulary)
            written[task.name] = {"source": str(task.file), "examples": examples}
        except ShardError as error:
            if left_out is None:
                raise
            left_out.append(error)
        log.progress("convert", done, len(tasks), "files")
    return written


def _shape(file_set: FileSet, target: Target, vocabulary: Sequence[str] | None) -> Shape:
    """Return the shape to write. Raises `DataError` when the source or the arguments lack what the target needs."""
    from_to = f"{file_set.folder} cannot become {target.kind}"
    if file_set.documents:
        raise DataError(
            f"{from_to}: it holds token documents, not finished examples (pairs, masks). Train on the files "
            "directly (phase.data)."
        )
    if not holds_examples(target.kind):
        raise DataError(
            f"{from_to}: it holds examples, but {target.kind.capitalize()}'s files hold token documents. Convert a "
            "run folder: its training documents become such files."
        )
    if not file_set.shape.static and target.format.static_only:
        raise DataError(
            f"{from_to}: its examples have no masks. Export examples with masks from the token store instead."
        )
    if file_set.mixed:
        raise DataError(
            f"{from_to}: {file_set.mixed[0].name} has {'no masks' if file_set.shape.static else 'masks'}, unlike "
            f"{file_set.files[0].name}. Put files with and without masks in separate folders."
        )
    pieces = [
        known_format.kind.upper()
        for known_format in (format_of(file_set.kind), target.format)
        if known_format.reads_vocabulary
    ]
    if vocabulary is None and pieces:
        raise DataError(
            f"{from_to} without a vocabulary: {pieces[0]} holds word pieces, the other format holds ids. Give "
            "the vocab.txt."
        )
    length = target.length or file_set.shape.length
    predictions = target.predictions or file_set.shape.predictions
    if target.format.padded:
        _check_room(from_to, length, predictions)
    return Shape(length, predictions, file_set.shape.static)


def _check_room(from_to: str, length: int | None, predictions: int | None) -> None:
    """Reject padding of unknown size, or of a size that no reader accepts."""
    if not (length and predictions):
        raise DataError(
            f"{from_to} without length and predictions: its files do not state them. Give both, e.g. 128 and 20."
        )
    if not predictions <= length <= MAX_LENGTH:
        raise DataError(
            f"{from_to} with room for {length:,} tokens and {predictions:,} predictions: at most {MAX_LENGTH:,} "
            "tokens are supported, and no more predictions than tokens. Give smaller values."
        )


def _note(
    source: Path,
    target: Target,
    written: dict[str, Any],
    left_out: list[ShardError],
    incomplete: list[FileSet],
    log: Log,
) -> dict[str, Any]:
    # Every file was damaged; an empty folder would look like success.
    if not written:
        raise left_out[0]
    if not any(entry["examples"] for entry in written.values()):
        raise DataError(f"{source} holds no example, so there is nothing to convert. Give a folder of complete files.")
    for error in left_out:
        log.say(f"convert: skipped {error}")
    for name, entry in written.items():
        if not entry["examples"]:
            log.say(f"convert: {entry['source']} holds no example, and so does {name}")
    for file_set in incomplete:
        log.say(f"convert: {file_set.folder} is incomplete: {file_set.incomplete} were found")
    return {
        "source": str(source),
        "kind": target.kind,
        "examples": sum(entry["examples"] for entry in written.values()),
        "files": written,
        "quarantined": [{"file": str(error.file), "fault": error.fault} for error in left_out],
        "incomplete": {str(file_set.folder): file_set.incomplete for file_set in incomplete},
    }
