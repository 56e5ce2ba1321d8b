"""Arrow files of a Hugging Face `datasets` folder saved to disk (`Dataset.save_to_disk`), read only with pyarrow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from bertwright.core.errors import ArtifactError
from bertwright.core.files import read_json
from bertwright.core.work_split import WorkSplit
from bertwright.corpus.config import SourceConfig
from bertwright.corpus.errors import SourceError
from bertwright.corpus.sources.columns import arrow, damaged_table, rows, slice_pieces, wanted
from bertwright.corpus.sources.file import ExtractJob, File, Piece
from bertwright.corpus.sources.format import Article, SourceFormat

_STATE, _SPLITS = "state.json", "dataset_dict.json"


def matches(head: bytes) -> bool:
    """Whether the first bytes are the marker of a message of an Arrow stream."""
    return head.startswith(b"\xff\xff\xff\xff")


def data_files(folder: Path) -> list[Path] | None:
    """The files of the dataset saved in the folder; None if there is none."""
    return _data_files(folder) if any((folder / name).is_file() for name in (_STATE, _SPLITS)) else None


def _data_files(folder: Path) -> list[Path]:
    """The files of the dataset in order. Raises `SourceError` if there are several splits: one has to be named."""
    try:
        if (folder / _SPLITS).is_file():
            splits = list(read_json(folder / _SPLITS)["splits"])
            if len(splits) != 1:
                raise SourceError(
                    f"{folder} holds the splits {', '.join(splits)}. Give one of them, e.g. {folder / splits[0]}."
                )
            return _data_files(folder / splits[0])
        # Only the file name: an untrusted state.json must not lead out of the folder.
        return [folder / Path(entry["filename"]).name for entry in read_json(folder / _STATE)["_data_files"]]
    except (ArtifactError, KeyError, TypeError, IndexError) as error:
        raise SourceError(
            f"{folder} is not a data set written by save_to_disk: {error!r}. Save it again, or give its files."
        ) from error


def splits(
    file: File, config: SourceConfig, number: int, first: int, folder: Path, share: WorkSplit
) -> Iterator[Piece]:
    """Yield pieces that are runs of record batches."""
    with _batches(file.path) as (_, stream):
        sizes = [batch.nbytes for batch in stream]
    return slice_pieces(file, number, first, sizes, range(len(sizes) + 1))


def documents(job: ExtractJob, counts: Counter[str], state: dict[str, Any]) -> Iterator[Article]:
    """Yield the documents of the record batches of the piece; earlier batches are skipped without being read."""
    with _batches(job.file.path) as (schema, stream):
        wanted(job, schema)
        before = sum(batch.num_rows for batch in islice(stream, job.piece.start))
        yield from rows(job, islice(stream, job.piece.stop - job.piece.start), before, counts, state)


def columns(file: Path) -> list[str]:
    """The names of the file's columns."""
    with _batches(file) as (schema, _):
        return list(schema.names)


@contextmanager
def _batches(path: Path) -> Iterator[tuple[Any, Iterator[Any]]]:
    """The schema of an Arrow stream, and its record batches as views of the memory-mapped file."""
    pyarrow = arrow(path)
    try:
        # Memory-mapped, so that batches before a piece are skipped without being read.
        with pyarrow.memory_map(str(path)) as memory, pyarrow.ipc.open_stream(memory) as stream:
            yield stream.schema, iter(stream)
    except (pyarrow.ArrowException, OSError) as error:
        raise damaged_table(path, error) from error


FORMAT = SourceFormat(
    "datasets",
    matches,
    splits,
    documents,
    is_text=False,
    keys=frozenset({"text"}),
    columns=columns,
    data_files=data_files,
)
