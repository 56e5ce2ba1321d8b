"""HDF5 as NVIDIA's create_pretraining_data.py writes it: six padded matrices, static masks.

NVIDIA's DeepLearningExamples, ONNX Runtime's training examples and Intel's models read the same six keys and types.
Such a file contains no vocabulary, version or attributes. Predictions end at the first position 0; everything after it
is 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from bertwright.core.errors import DataError
from bertwright.examples.instances import Instances
from bertwright.formats.columns import (
    Place,
    before_sentinel,
    check_widths,
    instances_of_padded,
    must_fit,
    padded_columns,
)
from bertwright.formats.errors import ShardError
from bertwright.formats.format import FileInfo, Format, Provenance, Shape, Split
from bertwright.formats.hdf5.reader import Mapped, dataset, integers, is_hdf5, open_hdf5
from bertwright.formats.hdf5.writer import Column, new_hdf5

DTYPES = {
    "input_ids": "<i4",
    "input_mask": "|i1",
    "segment_ids": "|i1",
    "masked_lm_positions": "<i4",
    "masked_lm_ids": "<i4",
    "next_sentence_labels": "|i1",
}
_BLOCK = 2**20
"""Maximum number of elements of input_ids read at once."""
_FIRST = 128
"""Minimum number of examples read first."""


def facts(file: Path) -> FileInfo | None:
    """As `Format.facts`."""
    if not is_hdf5(file):
        return None
    with open_hdf5(file) as handle:
        # MLPerf's files have the same keys except this one.
        if "input_mask" not in handle:
            return None
        rows, length = dataset(file, handle, "input_ids", 2).shape
        predictions = dataset(file, handle, "masked_lm_positions", 2).shape[1]
    return FileInfo("hdf5", Shape(int(length), int(predictions), static=True), int(rows))


def read(file: Path, vocabulary: Sequence[str] | None = None) -> Iterator[Instances]:
    """As `Format.read`."""
    with open_hdf5(file) as handle, Mapped(file) as mapped:
        columns = {key: integers(mapped, handle, key, 1 if key == "next_sentence_labels" else 2) for key in DTYPES}
        rows, length = columns["input_ids"].shape
        predictions = columns["masked_lm_positions"].shape[1]
        # Check the declared shapes before memory is allocated for a block.
        _check_shapes(file, {key: column.shape for key, column in columns.items()}, rows, length, predictions)
        for start, stop in _blocks(rows, length, columns["input_ids"].chunks):
            block = {key: column.rows(start, stop) for key, column in columns.items()}
            place = Place(file, start, vocabulary)
            counts = before_sentinel(place, block["masked_lm_positions"], block["masked_lm_ids"])
            yield instances_of_padded(place, block, counts)


def write(file: Path, blocks: Iterator[Instances], shape: Shape, vocabulary: Sequence[str] | None = None) -> int:
    """As `Format.write`; the vocabulary is not needed."""
    length, predictions = shape.length, shape.predictions
    if not length or not predictions or not shape.static:
        raise DataError(
            f"{file}: NVIDIA's HDF5 needs a length, a maximum number of predictions, and masks; {shape} was given."
        )
    widths: dict[str, int | None] = dict.fromkeys(DTYPES, length)
    widths |= {"masked_lm_positions": predictions, "masked_lm_ids": predictions, "next_sentence_labels": None}
    written = 0
    with new_hdf5(file) as (handle, sink):
        columns = {key: Column(handle, key, dtype, widths[key]) for key, dtype in DTYPES.items()}
        for block in blocks:
            must_fit(block, file, written, length, predictions)
            for key, rows in padded_columns(block, length, predictions).items():
                columns[key].append(rows)
            written += len(block)
            # Report a full disk now, not after all examples have been drawn.
            sink.check()
        for column in columns.values():
            column.finish()
    return written


def _check_shapes(file: Path, shapes: dict[str, tuple[int, ...]], rows: int, length: int, predictions: int) -> None:
    check_widths(file, length, predictions)
    widths = {"masked_lm_positions": (predictions,), "masked_lm_ids": (predictions,), "next_sentence_labels": ()}
    for key, shape in shapes.items():
        expected = (rows, *widths.get(key, (length,)))
        if shape != expected:
            raise ShardError(file, f"{key} has the shape {shape}, but the other datasets imply {expected}")


def _blocks(rows: int, length: int, chunks: tuple[int, ...] | None) -> Iterator[tuple[int, int]]:
    """Yield ranges of examples to read at once: complete chunks, so that each is decompressed only once."""
    # Limit by tokens: in a hostile file, rows may have the maximum length.
    most = max(1, _BLOCK // length)
    chunk = min(chunks[0], most) if chunks else 1
    step = max(most // chunk, 1) * chunk
    # The first block is small, because `check` reads only that one.
    first = min(-(-_FIRST // chunk) * chunk, step)
    return pairwise(sorted({0, *range(first, rows, step), rows}))


def nvidia_folder(provenance: Provenance) -> str:
    """Return a folder name in NVIDIA's style, such as
    `hdf5_lower_case_1_seq_len_128_max_pred_20_masked_lm_prob_0.15_random_seed_12345_dupe_factor_5`.

    NVIDIA's builder lower-cases and strips accents regardless of the folder name. Here `lower_case_1` means that both
    were done and `lower_case_0` that neither was; a vocabulary that does only one gets a name that says so
    (`lower_case_1_accents_kept`, `lower_case_0_accents_stripped`). No known loader reads the folder's name.
    """
    case = f"lower_case_{int(provenance.lower_case)}"
    if provenance.lower_case != provenance.strip_accents:
        case += "_accents_stripped" if provenance.strip_accents else "_accents_kept"
    return (
        f"hdf5_{case}_seq_len_{provenance.length}_max_pred_{provenance.predictions}"
        f"_masked_lm_prob_{provenance.mask_rate}_random_seed_{provenance.seed}_dupe_factor_{provenance.passes}"
    )


def nvidia_file(name: str, split: Split, number: int) -> str:
    """Return a file name such as `wikicorpus_hu_training_0.hdf5`. NVIDIA's trainer takes the files with "training" in
    their names."""
    return f"{name}_{split}_{number}.hdf5"


FORMAT = Format(
    "hdf5",
    facts,
    read,
    write,
    lambda file: nvidia_file(file.name, file.split, file.number),
    padded=True,
    static_only=True,
    split_folders=False,
    # As in NVIDIA's scripts: the name of the dataset is a subfolder.
    set_folder=lambda made: f"{nvidia_folder(made)}/{made.name}",
)
