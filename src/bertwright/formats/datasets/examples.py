"""Files of a tokenised dataset of Hugging Face `datasets`: Arrow streams (`save_to_disk`), or Parquet (its hub).

`input_ids` holds the complete sequence with its special tokens. Optional: `attention_mask` (where it ends),
`token_type_ids` (segments), `labels` (original ids at predicted positions, -100 elsewhere: static masks) and
`next_sentence_label` (as in transformers' BertForPreTraining, with -100 for no label; -1 is read as the same). Other
columns are not read. Rows of running text are token documents, not examples; the module `documents` distinguishes and
reads them.

`load_from_disk` requires these files in addition to the Arrow files:

    seq_128/dataset_dict.json            the splits
    seq_128/train/state.json             the files of a split, in order, and a fingerprint of their content
    seq_128/train/dataset_info.json      nothing that the Arrow files do not say
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bertwright.core.files import MAX_JSON, atomic_file, read_bytes, sha256, sha256_of, write_json
from bertwright.core.json_values import parse_json
from bertwright.examples.instances import Instances, ends, stretches
from bertwright.formats.columns import Place, instances_of, must_fit
from bertwright.formats.datasets.documents import open_rows
from bertwright.formats.datasets.rows import (
    CONTINUED,
    aligned_values,
    find_padding,
    lengths_of,
    list_values,
    open_batches,
    whole_numbers,
)
from bertwright.formats.errors import package, reading
from bertwright.formats.format import SPLITS, FileInfo, Format, Shape
from bertwright.formats.parquet_checks import is_parquet

# torch's cross entropy ignores this label, so `transformers` uses it for positions without a prediction and for pairs
# without a label.
NOT_PREDICTED = -100
_AT_ONCE = 2**20
"""Approximate maximum number of tokens decoded at once."""
_LABEL = "next_sentence_label"


def without_caches(files: Iterable[Path]) -> Iterator[Path]:
    """Yield `files` without caches of `datasets`: Arrow files next to a saved dataset that its `state.json` does not
    list. `map` caches its results there, and `shuffle` its indices.
    """
    # Read `state.json` once per folder.
    listed = cache(_saved_files)
    return (file for file in files if file.suffix != ".arrow" or not (of := listed(file.parent)) or file.name in of)


def _saved_files(folder: Path) -> frozenset[str]:
    """Return the files of the dataset saved in `folder`; empty if it does not list them."""
    try:
        state = parse_json(read_bytes(folder / "state.json", MAX_JSON))
        return frozenset(entry["filename"] for entry in state["_data_files"])
    # Other programs write this file; if it is missing or damaged, all files count as data.
    except (OSError, ValueError, KeyError, TypeError):
        return frozenset()


def facts(file: Path) -> FileInfo | None:
    """As `Format.facts`."""
    with reading(file), open(file, "rb") as handle:
        # An Arrow stream has no magic number, but its first message begins with this marker.
        if handle.read(len(CONTINUED)) != CONTINUED and not is_parquet(file):
            return None
    rows = open_rows(file)
    with open_batches(file) as stream:
        names, stated = stream.schema.names, stream.schema.metadata or {}
    static = "labels" in names
    # Only examples have these columns.
    documents = False if static or _LABEL in names else rows.are_text()
    return FileInfo("datasets", Shape.from_metadata(file, stated, static), len(rows.lengths), documents)


def read(file: Path, vocabulary: Sequence[str] | None = None) -> Iterator[Instances]:
    """As `Format.read`. Without `token_type_ids`, a row is a single segment; without `next_sentence_label`, it has no
    label."""
    first = 0
    with open_batches(file) as stream:
        for batch in stream:
            batch.validate(full=True)
            # Split by tokens, not by rows, which may be long.
            for start, stop in stretches(lengths_of(Place(file, first, None), batch, "input_ids"), _AT_ONCE):
                block = batch.slice(start, stop - start)
                yield _decode(Place(file, first, vocabulary), block)
                first += len(block)


def write(file: Path, blocks: Iterator[Instances], shape: Shape, vocabulary: Sequence[str] | None = None) -> int:
    """As `Format.write`, with one record batch per block. `datasets.Dataset.from_file` and `load_dataset("arrow")` can
    read the file. The vocabulary is not needed.
    """
    pa = package("pyarrow")
    lists = pa.list_(pa.int32())
    fields = [("input_ids", lists), ("token_type_ids", pa.list_(pa.int8())), (_LABEL, pa.int64())]
    schema = pa.schema([*fields, ("labels", lists)] if shape.static else fields, shape.metadata)
    written = 0
    with (
        atomic_file(file) as temporary,
        pa.OSFile(str(temporary), "wb") as sink,
        pa.ipc.new_stream(sink, schema) as out,
    ):
        for block in blocks:
            must_fit(block, file, written, shape.length, shape.predictions)
            of_pairs = block.next_sentence_labels.astype(np.int64)
            of_pairs[of_pairs < 0] = NOT_PREDICTED
            labels = np.full(len(block.token_ids), NOT_PREDICTED, np.int32)
            labels[block.predicted] = block.labels
            columns = {"input_ids": block.token_ids, "token_type_ids": block.segment_ids, "labels": labels}
            offsets = pa.array(block.cu_seqlens, pa.int32())
            arrays = [
                pa.array(of_pairs, pa.int64())
                if field.name == _LABEL
                else pa.ListArray.from_arrays(offsets, pa.array(columns[field.name]))
                for field in schema
            ]
            out.write_batch(pa.record_batch(arrays, schema=schema))
            written += len(block)
    return written


def describe_folders(folder: Path) -> None:
    """Write the metadata of every folder of Arrow files in or below `folder`, and of their parents with the splits."""
    # Without these files, `load_from_disk` opened nothing, or only the held-out rows.
    saved = sorted({file.parent for file in folder.rglob("*.arrow")})
    for split in saved:
        files = sorted(split.glob("*.arrow"))
        state: dict[str, Any] = {
            "_data_files": [{"filename": file.name} for file in files],
            # `datasets` keys its caches by the fingerprint: hash the content, so that caches never match other files.
            "_fingerprint": sha256_of([sha256(file) for file in files])[:16],
            "_format_columns": None,
            "_format_kwargs": {},
            "_format_type": None,
            "_output_all_columns": False,
            "_split": split.name if split.name in SPLITS else None,
        }
        write_json(split / "state.json", state)
        write_json(split / "dataset_info.json", {"citation": "", "description": "", "homepage": "", "license": ""})
    for parent in sorted({split.parent for split in saved if split.name in SPLITS}):
        names = [split.name for split in saved if split.parent == parent and split.name in SPLITS]
        write_json(parent / "dataset_dict.json", {"splits": names})


def _decode(place: Place, batch: Any) -> Instances:
    names = batch.schema.names
    ids, whole = list_values(place, batch, "input_ids")
    kept, lengths = find_padding(place, batch, whole)
    cu_seqlens = ends(lengths)
    segments = (
        aligned_values(place, batch, "token_type_ids", whole)[kept] if "token_type_ids" in names else 0 * ids[kept]
    )
    labels = aligned_values(place, batch, "labels", whole)[kept] if "labels" in names else 0 * ids[kept] + NOT_PREDICTED
    predicted = np.flatnonzero(labels != NOT_PREDICTED)
    rows = np.searchsorted(cu_seqlens, predicted, side="right") - 1
    of_pairs = whole_numbers(place, batch, _LABEL) if _LABEL in names else np.full(len(lengths), NOT_PREDICTED)
    return instances_of(
        place,
        (ids[kept], lengths),
        segments,
        (predicted - cu_seqlens[rows], np.bincount(rows, minlength=len(lengths)).astype(np.int64)),
        labels[predicted],
        np.where(of_pairs == NOT_PREDICTED, -1, of_pairs),
    )


FORMAT = Format(
    "datasets",
    facts,
    read,
    write,
    lambda file: f"data-{file.of}.arrow",
    data_files=without_caches,
    describe=describe_folders,
)
