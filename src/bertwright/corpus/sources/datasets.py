"""Arrow files of a Hugging Face `datasets` folder saved to disk (`Dataset.save_to_disk`), read only with pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from bertwright.core.errors import ArtifactError
from bertwright.core.files import read_json
from bertwright.corpus.errors import SourceError
from bertwright.corpus.sources.columns import arrow, table_format

_STATE, _SPLITS = "state.json", "dataset_dict.json"


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


@dataclass(frozen=True)
class ArrowTable:
    """An open Arrow stream; its slices are record batches, as views of the memory-mapped file."""

    schema: Any
    stream: Iterator[Any]

    def slices(self) -> tuple[list[int], range]:
        """As `Table.slices`."""
        sizes = [batch.nbytes for batch in self.stream]
        return sizes, range(len(sizes) + 1)

    def batches(self, start: int, stop: int, columns: list[str]) -> tuple[int, Iterator[Any]]:
        """As `Table.batches`; earlier batches are skipped without being read."""
        before = sum(batch.num_rows for batch in islice(self.stream, start))
        return before, islice(self.stream, stop - start)


@contextmanager
def open_stream(path: Path) -> Iterator[ArrowTable]:
    """Open an Arrow stream with pyarrow."""
    pyarrow = arrow(path)
    # Memory-mapped, so that batches before a piece are skipped without being read.
    with pyarrow.memory_map(str(path)) as memory, pyarrow.ipc.open_stream(memory) as stream:
        yield ArrowTable(stream.schema, iter(stream))


# The marker with which a message of an Arrow stream begins.
FORMAT = table_format("datasets", b"\xff\xff\xff\xff", open_stream, data_files=data_files)
