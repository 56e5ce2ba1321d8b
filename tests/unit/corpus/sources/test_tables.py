"""Parquet and Arrow files, written with pyarrow and with Hugging Face `datasets` itself."""

import itertools
import json
import struct
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row
from tests.unit.corpus.sources.reading import Read

from bertwright.core.errors import MissingExtraError, RecipeError
from bertwright.corpus.errors import SourceError

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'bertwright[formats]'")
pq = pytest.importorskip("pyarrow.parquet")

ROWS: dict[str, list[Any]] = {
    "text": [f"{i}. híd\n\nElső {i}. sor.\nMásodik\0 sor." for i in range(500)],
    "title": [f"{i}. híd" for i in range(500)],
    "id": [str(1000 + i) for i in range(500)],
}
TEXTS = [[f"Első {i}. sor.", "Második sor."] for i in range(500)]


def save(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns or ROWS), path, row_group_size=100)
    return path


def save_arrow(path: Path, batch: int = 50, **columns: Any) -> Path:
    table = pa.table(columns or ROWS)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=batch)
    return path


@each_row("write", [save, save_arrow])
@each_row("piece_bytes", [1, 9_000, 2**23])
def test_rows_become_documents_whatever_the_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Any, piece_bytes: int
) -> None:
    monkeypatch.setattr("bertwright.corpus.sources.tables.PIECE_BYTES", piece_bytes)
    read = Read(write(tmp_path / "a"), tmp_path)
    assert (len(read.names) == 1) == (piece_bytes == 2**23)
    assert read.texts == TEXTS
    assert read.facts("id") == ROWS["id"] and read.facts("title") == ROWS["title"]
    assert read.counts["source_bytes"] == sum(len(text.encode()) for text in ROWS["text"])
    assert all(state["ended"] for state in read.states)


@each_row("write", [save, save_arrow])
def test_rows_without_facts_have_their_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Any) -> None:
    monkeypatch.setattr("bertwright.corpus.sources.tables.PIECE_BYTES", 100)
    read = Read(write(tmp_path / "a", body=["Egy.", None, "", "Három."] * 100, n=[1] * 400), tmp_path, text="body")
    assert read.texts[:4] == [["Egy."], [], [], ["Három."]]
    assert read.facts("id") == list(range(400))
    assert set(read.facts("source")) == {read.source.files[0].format}


@each_row("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
def test_every_kind_of_text_column(tmp_path: Path, kind: Any) -> None:
    for write in (save, save_arrow):
        read = Read(write(tmp_path / write.__name__, text=pa.array(["Egy.", "Egy."], pa.string()).cast(kind)), tmp_path)
        assert read.texts == [["Egy."], ["Egy."]]


@each_row("write", [save, save_arrow])
def test_wrong_columns(tmp_path: Path, write: Any) -> None:
    path = write(tmp_path / "a", text=[1, 2], body=["a", "b"], parts=[["a"], ["b"]], raw=[b"a", b"b"])
    with pytest.raises(SourceError, match="column 'text' holds int64, not text. Name a column of strings"):
        Read(path, tmp_path)
    with pytest.raises(SourceError, match="column 'parts' holds list<"):
        Read(path, tmp_path, text="parts")
    with pytest.raises(SourceError, match="column 'raw' holds binary"):
        Read(path, tmp_path, text="raw")
    with pytest.raises(
        SourceError, match="no column 'txt'; its columns are 'text', 'body', 'parts', 'raw'. Name the one"
    ):
        Read(path, tmp_path, text="txt")
    assert Read(path, tmp_path, text="body").texts == [["a"], ["b"]]


@each_row("write", [save, save_arrow])
def test_cut_and_damaged_files(tmp_path: Path, write: Any) -> None:
    path = write(tmp_path / "a")
    data = path.read_bytes()
    for size in (12, len(data) // 2):
        path.write_bytes(data[:size])
        with pytest.raises(SourceError, match=f"{path} is damaged or truncated .*again"):
            Read(path, tmp_path)
    if write is save:
        path.write_bytes(data[:30] + b"\xff" * 3000 + data[3030:])
        with pytest.raises(SourceError, match="damaged"):
            Read(path, tmp_path)


@each_row("write", [save, save_arrow])
def test_a_text_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Any) -> None:
    monkeypatch.setattr("bertwright.corpus.sources.tables.MAX_DOCUMENT", 1000)
    with pytest.raises(SourceError, match="no page or document ends within"):
        Read(write(tmp_path / "a", text=["x" * 1001]), tmp_path)


@each_row("write", [save, save_arrow])
def test_a_few_invalid_bytes_are_replaced_and_counted_and_many_are_refused(tmp_path: Path, write: Any) -> None:
    raw = pa.array([b"good"] * 299 + [b"bad \xff", b"good"], pa.binary())
    text = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
    found = Read(write(tmp_path / "a", text=text), tmp_path)
    assert found.texts[298:] == [["good"], ["bad \ufffd"], ["good"]] and found.counts["replaced_characters"] == 1
    raw = pa.array([b"b\xff\xfed"] * 300, pa.binary())
    text = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
    with pytest.raises(SourceError, match="is not UTF-8 between row 0 and (300|6): 600 bytes are no characters. Write"):
        Read(write(tmp_path / "a", text=text), tmp_path)


@each_row("offset", [-5, 2**30])
def test_offsets_that_lead_out_of_a_column_are_damage(tmp_path: Path, offset: int) -> None:
    """A negative length ended in a `SystemError`, a large one somewhere else in memory."""
    offsets = struct.pack("<4i", 0, 4, offset, 12)
    text = pa.Array.from_buffers(pa.string(), 3, [None, pa.py_buffer(offsets), pa.py_buffer("Egy.Két.Öt.".encode())])
    with pytest.raises(SourceError, match="damaged or truncated"):
        Read(save_arrow(tmp_path / "a", text=text), tmp_path)


def test_a_large_row_group_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertwright.corpus.sources.tables.PIECE_BYTES", 1000)
    monkeypatch.setattr("bertwright.corpus.sources.tables._ROWS", 7)
    for sizes in ([500], [3, 400, 90, 7], [1] * 20 + [480]):
        schema = pa.table(ROWS).schema
        with pq.ParquetWriter(tmp_path / "a", schema) as writer:
            for start, size in zip(itertools.accumulate([0, *sizes]), sizes, strict=False):
                writer.write_table(pa.table(ROWS).slice(start, size))
        read = Read(tmp_path / "a", tmp_path)
        assert len(read.names) > 10
        assert read.texts == TEXTS and read.facts("id") == ROWS["id"]


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "a")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'bertwright\[formats\]'"):
        Read(path, tmp_path)


def test_keys_without_meaning_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        RecipeError, match="lines = 'wrapped' applies only to plain text, but .* is parquet. Remove the key"
    ):
        Read(save(tmp_path / "a"), tmp_path, lines="wrapped")
    (tmp_path / "a.txt").write_text("Szöveg.")
    with pytest.raises(RecipeError, match="text = 'body' names a key or column, but .* is text"):
        Read(tmp_path / "a.txt", tmp_path, text="body")


def saved_dataset(folder: Path, names: list[str]) -> Path:
    """A folder as `Dataset.save_to_disk` writes it."""
    folder.mkdir(parents=True)
    for i, name in enumerate(names):
        save_arrow(folder / Path(name).name, text=[f"{i}. szöveg."])
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))
    return folder


def test_a_folder_that_datasets_saved(tmp_path: Path) -> None:
    folder = saved_dataset(tmp_path / "a", ["data-00001-of-00002.arrow", "data-00000-of-00002.arrow"])
    save_arrow(folder / "cache-123.arrow", text=["Nem ide való."])
    assert Read(folder, tmp_path).texts == [["0. szöveg."], ["1. szöveg."]]


def test_several_splits_have_to_be_chosen_from(tmp_path: Path) -> None:
    for split in ("train", "test"):
        saved_dataset(tmp_path / "a" / split, ["data-00000-of-00001.arrow"])
    (tmp_path / "a" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with pytest.raises(SourceError, match=f"holds the splits train, test. Give one of them, e.g. {tmp_path}/a/train"):
        Read(tmp_path / "a", tmp_path)
    assert len(Read(tmp_path / "a" / "train", tmp_path).texts) == 1
    (tmp_path / "a" / "dataset_dict.json").write_text('{"splits": ["test"]}')
    assert len(Read(tmp_path / "a", tmp_path).texts) == 1


@each_row("state", ["", "[]", "{}", '{"_data_files": [5]}'])
def test_a_folder_that_only_looks_like_a_data_set(tmp_path: Path, state: str) -> None:
    (tmp_path / "state.json").write_text(state)
    with pytest.raises(SourceError, match="not a data set written by save_to_disk: .*Save it again"):
        Read(tmp_path, tmp_path)


def test_names_of_files_do_not_lead_out_of_the_folder(tmp_path: Path) -> None:
    save_arrow(tmp_path / "secret.arrow")
    folder = saved_dataset(tmp_path / "a", ["../secret.arrow"])
    assert Read(folder, tmp_path).source.files[0].path == folder / "secret.arrow"


@pytest.mark.filterwarnings("ignore")
def test_the_real_datasets_library(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="the datasets library is not installed")
    made = datasets.Dataset.from_dict(ROWS)
    made.save_to_disk(str(tmp_path / "one"), num_shards=3)
    datasets.DatasetDict({"train": made, "test": made}).save_to_disk(str(tmp_path / "two"))
    made.to_parquet(str(tmp_path / "a.parquet"))
    made.filter(lambda row: int(row["id"]) < 1010).save_to_disk(str(tmp_path / "few"))
    for path in ("one", "two/train", "a.parquet"):
        assert Read(tmp_path / path, tmp_path).texts == TEXTS, path
    assert len(Read(tmp_path / "one", tmp_path).source.files) == 3
    assert Read(tmp_path / "few", tmp_path).texts == TEXTS[:10]
