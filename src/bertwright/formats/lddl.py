"""Parquet files of NVIDIA's LDDL (lddl/dask/bert/pretrain.py): word pieces as text, with static masks or without masks.

Columns: A and B (pieces joined by spaces, after masking), is_random_next, num_tokens; with static masks also
masked_lm_positions (the bytes of a .npy file of uint16) and masked_lm_labels (pieces). Files of one length range, named
`….parquet_<bin>`, also have bin_id. An example is [CLS] A [SEP] B [SEP]. A vocabulary maps pieces to ids.

A column that repeats one text takes almost no space in the file, but gigabytes as a list of texts. So text columns stay
dictionary-encoded (indices into the distinct texts) until their lengths are known to fit `num_tokens`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.errors import DataError
from bertwright.core.files import atomic_file
from bertwright.examples.instances import Instances, Ints, stretches
from bertwright.formats.columns import MAX_LENGTH, Place, Ragged, check_instances, instances_of, must_fit
from bertwright.formats.errors import NotExamplesError, ShardError, package, reading
from bertwright.formats.format import FileInfo, Format, Shape
from bertwright.formats.parquet_checks import check_groups, check_tokens, is_parquet

TEXTS, POSITIONS = ("A", "B", "masked_lm_labels"), "masked_lm_positions"
_AT_ONCE = 2**18
"""Approximate maximum number of tokens split at once."""
_SHORT = 64
"""Bytes that a piece may have with any vocabulary, so that a wrong vocabulary is detected by its unknown pieces."""
_HEAD = 1024
"""Maximum number of bytes before the values in a .npy file; numpy writes 128."""


def pieces(place: Place, batch: Any, longest: int) -> list[tuple[int, int]]:
    """Return ranges [start, stop) of the rows of `batch` that are safe to split at once.

    `longest`: number of bytes of the longest vocabulary entry. Raises `ShardError` for a column with another type, with
    nulls, or with more bytes than the tokens of an example can have.
    """
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        kind = column.type.value_type if package("pyarrow").types.is_dictionary(column.type) else column.type
        if not any(fits(kind) for fits in _kinds(name)):
            raise ShardError(place.file, f"{name} holds {kind}")
        if column.null_count:
            row = place.first_row + column.is_null().to_pylist().index(True)
            raise ShardError(place.file, f"example {row:,} has no {name}")
    tokens: Ints = batch.column("num_tokens").to_numpy(zero_copy_only=False).astype(np.int64)
    for name in (*TEXTS, POSITIONS):
        if name in batch.schema.names:
            # Each token takes a piece and the blank after it.
            room = 2 * tokens + _HEAD if name == POSITIONS else (max(longest, _SHORT) + 1) * tokens
            # An absurd num_tokens allows nothing; otherwise it would allow any text.
            _must_fit(place, name, batch.column(name), np.where(tokens > MAX_LENGTH, 0, room))
    return stretches(tokens, _AT_ONCE)


def _must_fit(place: Place, name: str, column: Any, room: Ints) -> None:
    # Measure only the distinct texts: as a plain list, kilobytes that repeat one text took gigabytes.
    sizes = package("pyarrow.compute").binary_length(column.dictionary).to_numpy()[column.indices.to_numpy()]
    if len(wrong := np.flatnonzero(sizes > room)):
        row = int(wrong[0])
        fault = (
            f"example {place.first_row + row:,} has {sizes[row]:,} bytes of {name}, too many for the value of "
            "num_tokens"
        )
        raise ShardError(place.file, fault)


def _kinds(name: str) -> tuple[Callable[[Any], bool], ...]:
    """Return predicates for the types that the column `name` may have."""
    types = package("pyarrow").types
    if name == POSITIONS:
        return types.is_binary, types.is_large_binary
    return (types.is_string, types.is_large_string) if name in TEXTS else (types.is_boolean, types.is_integer)


_VERSION_1 = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(rb"\{'descr': '<u2', 'fortran_order': False, 'shape': \((\d+),\), \} *\n")


def read_positions(place: Place, row: int, stored: bytes) -> NDArray[np.uint16]:
    """Parse the positions [P] of a row; raises `ShardError` for anything but a one-dimensional array of uint16."""
    # Not numpy's own reader: it takes any type and shape, and a file from elsewhere could ask it for any memory.
    size = int.from_bytes(stored[8:10], "little")
    header = _HEADER.fullmatch(stored[10 : 10 + size]) if stored[:8] == _VERSION_1 else None
    values = stored[10 + size :]
    if header is None or int(header[1]) * 2 != len(values):
        raise ShardError(
            place.file, f"example {place.first_row + row:,}: masked_lm_positions is not an array of uint16"
        )
    return np.frombuffer(values, "<u2")


def store_positions(positions: NDArray[np.integer]) -> bytes:
    """The content of a .npy file with these positions [P]."""
    text = f"{{'descr': '<u2', 'fortran_order': False, 'shape': ({len(positions)},), }}"
    header = text.ljust(117).encode() + b"\n"
    return b"".join([_VERSION_1, len(header).to_bytes(2, "little"), header, positions.astype("<u2").tobytes()])


_COLUMNS = ("A", "B", "is_random_next", "num_tokens")
_MASKS = (POSITIONS, "masked_lm_labels")
_BLOCK = 4096


def facts(file: Path) -> FileInfo | None:
    """As `Format.facts`."""
    if not is_parquet(file):
        return None
    with reading(file), package("pyarrow.parquet").ParquetFile(file, memory_map=True) as parquet:
        names = parquet.schema_arrow.names
    if "input_ids" in names and not set(TEXTS) & set(names):
        return None  # the file holds ids, not pieces
    with _open(file) as parquet:
        static = _MASKS[0] in _columns(parquet)
        shape = Shape.from_metadata(file, parquet.metadata.metadata or {}, static)
        return FileInfo("lddl", shape, parquet.metadata.num_rows)


def read(file: Path, vocabulary: Sequence[str] | None = None) -> Iterator[Instances]:
    """As `Format.read`. The vocabulary is required, and a piece outside it raises `ShardError`."""
    ids = _ids(file, vocabulary)
    longest = max(len(entry.encode()) for entry in ids)
    names = _columns(_open(file))
    with reading(file), _open(file, [name for name in names if name in (*TEXTS, POSITIONS)]) as parquet:
        first = tokens = 0
        for batch in parquet.iter_batches(_BLOCK, columns=names):
            batch.validate(full=True)
            stretches = pieces(Place(file, first, vocabulary), batch, longest)
            tokens += sum(batch.column("num_tokens").to_pylist())
            check_tokens(file, tokens)
            for start, stop in stretches:
                yield _decode(Place(file, first + start, vocabulary), batch.slice(start, stop - start), ids)
            first += len(batch)
        if first != parquet.metadata.num_rows:
            raise ShardError(file, f"{parquet.metadata.num_rows:,} rows are declared, but {first:,} were found")


def write(file: Path, blocks: Iterator[Instances], shape: Shape, vocabulary: Sequence[str] | None = None) -> int:
    """As `Format.write`. The vocabulary is required. Only pairs [CLS] A [SEP] B [SEP] with a label can be written."""
    ids = _ids(file, vocabulary)
    entries = np.array(list(ids), object)
    pa = package("pyarrow")
    fields = [("A", pa.string()), ("B", pa.string()), ("is_random_next", pa.bool_()), ("num_tokens", pa.uint16())]
    fields += [("masked_lm_positions", pa.binary()), ("masked_lm_labels", pa.string())] if shape.static else []
    schema = pa.schema(fields, shape.metadata)
    written = 0
    with (
        atomic_file(file) as temporary,
        package("pyarrow.parquet").ParquetWriter(
            temporary, schema, compression="snappy", write_page_checksum=True
        ) as writer,
    ):
        for block in blocks:
            must_fit(block, file, written, shape.length, shape.predictions)
            columns = _encode(file, written, block, ids, entries)
            arrays = [pa.array(columns[name], kind) for name, kind in fields]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
            written += len(block)
    return written


def _ids(file: Path, vocabulary: Sequence[str] | None) -> dict[str, int]:
    if vocabulary is None:
        raise DataError(f"{file}: this format holds word pieces, not ids. Give the vocabulary with which it was made.")
    return {entry: number for number, entry in enumerate(vocabulary)}


def _open(file: Path, as_indices: Sequence[str] = ()) -> Any:
    with reading(file):
        parquet = package("pyarrow.parquet").ParquetFile(
            file, memory_map=True, page_checksum_verification=True, read_dictionary=as_indices
        )
    if missing := [name for name in _columns(parquet) if name not in parquet.schema_arrow.names]:
        kind = NotExamplesError if missing == _columns(parquet) else ShardError
        raise kind(file, f"it lacks the columns {', '.join(missing)}: it is not an LDDL file")
    check_groups(file, parquet)
    return parquet


def _columns(parquet: Any) -> list[str]:
    """Return the columns to read; includes both mask columns if the file has at least one of them."""
    return [*_COLUMNS, *([] if set(_MASKS).isdisjoint(parquet.schema_arrow.names) else _MASKS)]


def _decode(place: Place, rows_of_file: Any, ids: dict[str, int]) -> Instances:
    batch = rows_of_file.to_pydict()
    pairs = [(a.split(), b.split()) for a, b in zip(batch["A"], batch["B"], strict=True)]
    rows = [["[CLS]", *a, "[SEP]", *b, "[SEP]"] for a, b in pairs]
    tokens = _numbers(place, rows, ids)
    lengths, firsts = tokens[1], np.array([len(a) + 2 for a, _ in pairs], np.int64)
    if len(wrong := np.flatnonzero(lengths != np.array(batch["num_tokens"], np.int64))):
        row = wrong[0]
        raise ShardError(place.file, f"example {place.first_row + row:,} has {lengths[row]:,} tokens, not num_tokens")
    segments = np.tile([0, 1], len(rows)).repeat(np.stack([firsts, lengths - firsts], 1).ravel())
    positions = [read_positions(place, row, stored) for row, stored in enumerate(batch.get(_MASKS[0], []))]
    labels = _numbers(place, [text.split() for text in batch.get(_MASKS[1], [])], ids)
    counts = np.array([len(run) for run in positions], np.int64) if positions else np.zeros(len(rows), np.int64)
    if positions and len(wrong := np.flatnonzero(counts != labels[1])):
        raise ShardError(
            place.file, f"example {place.first_row + wrong[0]:,}: the numbers of labels and positions differ"
        )
    flat = np.concatenate(positions).astype(np.int64) if positions else np.zeros(0, np.int64)
    return instances_of(place, tokens, segments, (flat, counts), labels[0], np.array(batch["is_random_next"], np.int64))


def _numbers(place: Place, rows: list[list[str]], ids: dict[str, int]) -> Ragged:
    flat = [piece for row in rows for piece in row]
    try:
        numbers = np.fromiter(map(ids.__getitem__, flat), np.int64, len(flat))
    except KeyError as error:
        # The pieces are text, so an unknown piece reveals another vocabulary.
        fault = f"from example {place.first_row:,} on: the vocabulary has no piece {error.args[0]!r}"
        raise ShardError(place.file, f"{fault}, so the file was made with another vocabulary") from None
    return numbers, np.fromiter(map(len, rows), np.int64, len(rows))


def _encode(file: Path, first: int, block: Instances, ids: dict[str, int], entries: Any) -> dict[str, list[Any]]:
    begin, end, second = block.cu_seqlens[:-1], block.cu_seqlens[1:], block.cu_seqlens[:-1] + block.second
    _must_be_pairs(file, first, block, ids)
    check_instances(block, file, first, len(ids))
    pieces, labels = entries[block.token_ids], entries[block.labels]
    cu = block.cu_predictions
    spans = list(pairwise(cu))
    return {
        "A": [_join(file, pieces[b + 1 : s - 1]) for b, s in zip(begin, second, strict=True)],
        "B": [_join(file, pieces[s : e - 1]) for s, e in zip(second, end, strict=True)],
        "is_random_next": (block.next_sentence_labels == 1).tolist(),
        "num_tokens": block.lengths.tolist(),
        "masked_lm_positions": [store_positions(block.positions[b:e]) for b, e in spans],
        "masked_lm_labels": [_join(file, labels[b:e]) for b, e in spans],
    }


def _must_be_pairs(file: Path, first: int, block: Instances, ids: dict[str, int]) -> None:
    tokens, begin, end = block.token_ids, block.cu_seqlens[:-1], block.cu_seqlens[1:]
    sep = ids.get("[SEP]", -1)
    pair = (block.second >= 2) & (block.second < block.lengths)
    pair &= (tokens[begin] == ids.get("[CLS]", -1)) & (tokens[end - 1] == sep)
    pair &= tokens[begin + block.second - 1] == sep
    if not pair.all():
        raise DataError(
            f"{file}: example {first + int(np.argmin(pair)):,} is not [CLS] A [SEP] B [SEP]. LDDL supports only that "
            "form. Use the vocabulary of the examples, or another format."
        )
    if len(unlabelled := np.flatnonzero(block.next_sentence_labels < 0)):
        raise DataError(
            f"{file}: example {first + int(unlabelled[0]):,} has no next-sentence label, but LDDL supports only pairs "
            "with a label. Use another format."
        )


def _join(file: Path, pieces: Any) -> str:
    text = " ".join(pieces)
    if len(text.split()) != len(pieces):
        raise DataError(
            f"{file}: a vocabulary entry contains a space, which LDDL does not support. Use another format."
        )
    return text


FORMAT = Format(
    "lddl",
    facts,
    read,
    write,
    lambda file: f"shard-{file.number}.parquet",
    pairs_only=True,
    reads_vocabulary=True,
    unequal_files=True,
)
