"""Parquet files of NVIDIA's LDDL (lddl/dask/bert/pretrain.py): word pieces as text, with static masks or without masks.

Columns: A and B (pieces joined by spaces, after masking), is_random_next, num_tokens; with static masks also
masked_lm_positions (the bytes of a .npy file of uint16) and masked_lm_labels (pieces). Files of one length range, named
`….parquet_<bin>`, also have bin_id. An example is [CLS] A [SEP] B [SEP]. A vocabulary maps pieces to ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bertwright.core.errors import DataError
from bertwright.core.files import atomic_file
from bertwright.examples.instances import Instances
from bertwright.formats.columns import Place, Ragged, checked, instances_of, must_fit
from bertwright.formats.errors import NotExamplesError, ShardError, package, reading
from bertwright.formats.format import FileInfo, FileNumber, Format, Shape
from bertwright.formats.lddl.columns import POSITIONS, TEXTS, pieces, read_positions, store_positions
from bertwright.formats.parquet_checks import check_groups, check_tokens, is_parquet

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
                yield _decoded(Place(file, first + start, vocabulary), batch.slice(start, stop - start), ids)
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
            columns = _encoded(file, written, block, ids, entries)
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


def _decoded(place: Place, rows_of_file: Any, ids: dict[str, int]) -> Instances:
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


def _encoded(file: Path, first: int, block: Instances, ids: dict[str, int], entries: Any) -> dict[str, list[Any]]:
    begin, end, second = block.cu_seqlens[:-1], block.cu_seqlens[1:], block.cu_seqlens[:-1] + block.second
    _must_be_pairs(file, first, block, ids)
    checked(block, file, first, len(ids))
    pieces, labels = entries[block.token_ids], entries[block.labels]
    cu = block.cu_predictions
    spans = list(pairwise(cu))
    return {
        "A": [_joined(file, pieces[b + 1 : s - 1]) for b, s in zip(begin, second, strict=True)],
        "B": [_joined(file, pieces[s : e - 1]) for s, e in zip(second, end, strict=True)],
        "is_random_next": (block.next_sentence_labels == 1).tolist(),
        "num_tokens": block.lengths.tolist(),
        "masked_lm_positions": [store_positions(block.positions[b:e]) for b, e in spans],
        "masked_lm_labels": [_joined(file, labels[b:e]) for b, e in spans],
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


def _joined(file: Path, pieces: Any) -> str:
    text = " ".join(pieces)
    if len(text.split()) != len(pieces):
        raise DataError(
            f"{file}: a vocabulary entry contains a space, which LDDL does not support. Use another format."
        )
    return text


def _file_name(file: FileNumber) -> str:
    return f"shard-{file.number}.parquet"


FORMAT = Format("lddl", facts, read, write, _file_name, pairs_only=True, reads_vocabulary=True, unequal_files=True)
