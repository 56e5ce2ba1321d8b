"""Finds the files that a phase with external data trains on, and computes their identity."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bertwright.core.errors import DataError, RecipeError
from bertwright.core.files import sha256, sha256_of
from bertwright.core.numbers import pluralize
from bertwright.corpus.sources.file import sampled_hash
from bertwright.examples.config import ImportedData, MaskingConfig
from bertwright.formats.detect import FileSet, detect, detect_tests, is_for_training
from bertwright.formats.errors import ShardError, reading
from bertwright.formats.format import Kind
from bertwright.formats.known import document_format_of

PhaseFiles = Sequence[tuple[ImportedData, FileSet]]
"""The phases with external data, and the training files of each."""

_NAMED = 10
"""Maximum number of files to list by name."""


def find(data: ImportedData) -> FileSet:
    """Return the only training set at the phase's path that is for its length, or that does not state a length.

    Reads only the beginnings of files. Raises `RecipeError` if none or several sets fit, or if a setting has no effect
    on them; `DataError` if nothing is recognised, or if a file is damaged and `quarantine` is not set.
    """
    if not data.path.exists():
        raise RecipeError(
            f"{data.key}.data: {data.path} does not exist. Give an examples folder, or files of examples."
        )
    unreadable = list[ShardError]()
    sets = detect(data.path, unreadable)
    # Some formats do not state their length; then the path must name a single set.
    fitting = [file_set for file_set in sets if file_set.trains and file_set.shape.length in (None, data.length)]
    if len(fitting) != 1:
        number = f"{len(fitting)} training sets" if fitting else "no training set"
        raise RecipeError(
            f"{data.key}.data: {data.path} has {number} for {data.key}.length={data.length}; found: "
            f"{'; '.join(map(_describe, sets))}. Give the path of one set with this length, or change the length."
        )
    (training,) = fitting
    lost = tuple(error for error in unreadable if is_for_training(error.file))
    _refuse_unreadable(data, lost)
    training = replace(training, damaged=(*training.damaged, *lost))
    _refuse_faults(data, training)
    # A setting without effect is rejected, not ignored.
    if training.shape.static and data.masking != MaskingConfig():
        raise RecipeError(
            f"{data.key}.masking: the examples in {training.folder} already have masks, so these settings would "
            "have no effect. Remove them, or give examples without masks."
        )
    return replace(
        training,
        tests=tuple(file_set for file_set in sets if not file_set.trains),
        unreadable_tests=tuple(error for error in unreadable if error not in lost),
    )


def find_tests(data: ImportedData, training: FileSet) -> tuple[FileSet, ...]:
    """Return the sets next to `training`, as `find` returns it, that are not for training and may be held out:
    of its length, or of unstated length. They are in the phase's path or beside it (`…/train` and `…/test`).

    These are NVIDIA's files with `test` in their names, and folders, or files of the hub, that are named after another
    split than the training one. Raises `DataError` if a file is damaged and `quarantine` is not set, or
    if none of them can be read.
    """
    unreadable = [*training.unreadable_tests]
    beside = detect_tests(data.path, training.files, unreadable)
    _refuse_unreadable(data, unreadable)
    sets = [test_set for test_set in (*training.tests, *beside) if test_set.shape.length in (None, data.length)]
    fitting = tuple(test_set for test_set in sets if test_set.documents == training.documents)
    if unreadable and not fitting:
        # Without it, examples that the scores were not meant for would be held out instead.
        raise DataError(
            f"{data.key}.data: no test file in or beside {data.path} can be read; the first: {unreadable[0].file}: "
            f"{unreadable[0].fault}. Make or fetch the files again, or move them to another folder."
        )
    for file_set in fitting:
        _refuse_faults(data, file_set)
    return fitting


def describe_left_out(data: ImportedData, training: FileSet) -> str:
    """Return a sentence that lists the files next to `training` that are not for training; empty if there are none."""
    if not (training.tests or training.unreadable_tests):
        return ""
    return f"{data.key}.data: not trained on: {list_files(data, training.tests, training.unreadable_tests)}"


def list_files(data: ImportedData, sets: Sequence[FileSet], unreadable: Sequence[ShardError] = ()) -> str:
    """Return how many files `sets` and `unreadable` have, and their names, relative to the phase's folder."""
    folder = data.path if data.path.is_dir() else data.path.parent
    files = [file for file_set in sets for file in file_set.files]
    files += [error.file for error in (*(error for file_set in sets for error in file_set.damaged), *unreadable)]
    names = [os.path.relpath(file, folder) for file in files]
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"{pluralize(len(names), 'file')} for testing ({', '.join(names[:_NAMED])}{more})"


def known_by(data: ImportedData, training: FileSet, tests: Sequence[FileSet] = ()) -> dict[str, str]:
    """Return the content hashes of a phase's files, as inputs of the examples artifact."""
    known = {data.input: content(training)}
    return known | ({data.test_input: sha256_of([content(test_set) for test_set in tests])} if tests else {})


def _refuse_faults(data: ImportedData, file_set: FileSet) -> None:
    if file_set.damaged and not data.quarantine:
        raise damage_error(data, file_set.damaged[0])
    if file_set.documents and file_set.mixed:
        raise DataError(
            f"{data.key}.data: {file_set.mixed[0]} holds examples (all rows begin and end with the same ids), other "
            "files hold running text. Put them in separate folders."
        )


def _refuse_unreadable(data: ImportedData, unreadable: Sequence[ShardError]) -> None:
    if unreadable and not data.quarantine:
        first = unreadable[0]
        raise DataError(
            f"{data.key}.data: {first.file}: {first.fault}. No such file in {first.file.parent} can be read, so what "
            "they are is unknown. Make or fetch them again, or move them to another folder, or set "
            f"{data.key}.quarantine=true to skip damaged files."
        )


def content(file_set: FileSet) -> str:
    """Return a quick identity of a set of files: of sampled contents in order, not of paths (see `sampled_hash`)."""
    files = files_of(file_set.files, file_set.kind)
    # The more files, the fewer blocks of each, so that a fingerprint does not have to read a thousand files.
    blocks = max(4, 64 // len(files))
    return sha256_of([sampled_hash(file, blocks) for file in files])


def files_of(files: Sequence[Path], kind: Kind) -> list[Path]:
    """Return `files` and their companion files: Megatron stores the tokens next to their index."""
    documents = document_format_of(kind)
    return [*files, *(other for file in files if documents for other in documents.beside(file))]


def hash_of(file: Path) -> str:
    """Return the SHA-256 of a file that has been read; it is stored so that a later change can be detected."""
    with reading(file):
        return sha256(file)


def damage_error(data: ImportedData, error: ShardError) -> DataError:
    """Return the error to raise for a damaged file that must not be left out."""
    return DataError(
        f"{data.key}.data: {error.file}: {error.fault}. Make or fetch this file again, or set "
        f"{data.key}.quarantine=true to skip damaged files."
    )


def _describe(file_set: FileSet) -> str:
    length = f"length {file_set.shape.length}" if file_set.shape.length else "length not stated"
    kind = f"documents of {file_set.kind}" if file_set.documents else file_set.kind
    return f"{file_set.folder} ({kind}, {length}{'' if file_set.trains else ', not for training'})"
