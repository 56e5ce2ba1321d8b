"""Which files a phase with data in a format of the field trains on, and what they are known by."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bertwright.core.errors import DataError, RecipeError
from bertwright.core.files import sha256, sha256_of
from bertwright.corpus.sources.file import sampled_hash
from bertwright.examples.config import ImportedData
from bertwright.examples.masking_config import MaskingConfig
from bertwright.formats.errors import ShardError, reading
from bertwright.formats.format import Kind
from bertwright.formats.known import document_format_of
from bertwright.formats.recognise import FileSet, recognise


def find(data: ImportedData) -> FileSet:
    """The one training set at the phase's path that is made for its length, or does not say for which.

    Looks at the beginnings of files only. `RecipeError` where none or several fit, or where a setting has no meaning
    for them; `DataError` where nothing is recognised, or a file is damaged and `quarantine` is not set.
    """
    if not data.path.exists():
        raise RecipeError(
            f"{data.key}.data: {data.path} does not exist. Give an examples folder, or files of examples."
        )
    sets = recognise(data.path)
    # Some formats do not say for which length they are; then the path must name one set.
    fitting = [file_set for file_set in sets if file_set.trains and file_set.shape.length in (None, data.length)]
    if len(fitting) != 1:
        number = f"{len(fitting)} training sets" if fitting else "no training set"
        raise RecipeError(
            f"{data.key}.data: {data.path} has {number} for {data.key}.length={data.length}; found are "
            f"{'; '.join(map(_described, sets))}. Give the path of one that has this length, or change the length."
        )
    (training,) = fitting
    _refuse_faults(data, training)
    # A setting that would do nothing is refused, not ignored.
    if training.shape.static and data.masking != MaskingConfig():
        raise RecipeError(
            f"{data.key}.masking: the examples in {training.folder} have their masks already, so these settings would "
            "do nothing. Leave them out, or give examples without masks."
        )
    return training


def find_tests(data: ImportedData, training: FileSet) -> tuple[FileSet, ...]:
    """The sets beside `training` that are not for training and may be held out: of its length, or of none they say.

    NVIDIA's files with `test` in their names, and folders named `test`, `validation` or `eval`. Looks at the beginnings
    of files only. `DataError` where a file is damaged and `quarantine` is not set.
    """
    lengths = (None, data.length)
    sets = [test_set for test_set in recognise(data.path) if not test_set.trains and test_set.shape.length in lengths]
    fitting = tuple(test_set for test_set in sets if test_set.documents == training.documents)
    for file_set in fitting:
        _refuse_faults(data, file_set)
    return fitting


def known_by(data: ImportedData, training: FileSet, tests: Sequence[FileSet] = ()) -> dict[str, str]:
    """What the files of a phase are known by, as inputs of the examples artifact."""
    known = {data.input: content(training)}
    return known | ({data.test_input: sha256_of([content(test_set) for test_set in tests])} if tests else {})


def _refuse_faults(data: ImportedData, file_set: FileSet) -> None:
    if file_set.damaged and not data.quarantine:
        raise damaged(data, file_set.damaged[0])
    if file_set.documents and file_set.mixed:
        raise DataError(
            f"{data.key}.data: {file_set.mixed[0]} holds examples (rows begin and end alike), others running text. "
            "Keep them in folders of their own."
        )


def content(file_set: FileSet) -> str:
    """The quick identity of a set of files: of their contents in order, not of where they lie (see `sampled_hash`)."""
    files = files_of(file_set.files, file_set.kind)
    # The more files, the fewer blocks of each: a thousand files are not read for a fingerprint.
    blocks = max(4, 64 // len(files))
    return sha256_of([sampled_hash(file, blocks) for file in files])


def files_of(files: Sequence[Path], kind: Kind) -> list[Path]:
    """Some files of a set, and those that belong to them: Megatron's tokens lie beside their index."""
    documents = document_format_of(kind)
    return [*files, *(other for file in files if documents for other in documents.beside(file))]


def hash_of(file: Path) -> str:
    """The SHA-256 of a file that has been read, kept so that a later change of it can be found."""
    with reading(file):
        return sha256(file)


def damaged(data: ImportedData, error: ShardError) -> DataError:
    """What to raise for a damaged file that is not to be left out."""
    return DataError(
        f"{data.key}.data: {error.file}: {error.fault}. Make or fetch this file again, or leave damaged files out with "
        f"{data.key}.quarantine=true."
    )


def _described(file_set: FileSet) -> str:
    length = f"length {file_set.shape.length}" if file_set.shape.length else "length not said"
    kind = f"documents of {file_set.kind}" if file_set.documents else file_set.kind
    return f"{file_set.folder} ({kind}, {length}{'' if file_set.trains else ', not for training'})"
