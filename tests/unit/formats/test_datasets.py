import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.rows import each_row
from tests.unit.formats.references import rows_of
from tests.unit.formats.samples import CLS, SEP, VOCABULARY, same, sample

from bertwright.examples.instances import concatenate
from bertwright.formats import parquet_checks
from bertwright.formats.datasets import examples as datasets
from bertwright.formats.datasets.documents import open_rows
from bertwright.formats.detect import detect
from bertwright.formats.errors import ShardError
from bertwright.formats.format import Shape

pytestmark = pytest.mark.heavy

library = pytest.importorskip("datasets", reason="the library whose folders are read")
RUNS = ("input_ids", "token_type_ids", "labels")


def columns(found, padded=False):
    """What a tokenising script hands to `datasets`."""
    table = {"input_ids": [], "token_type_ids": [], "labels": [], "attention_mask": [], "next_sentence_label": []}
    for row in rows_of(found):
        pad = 32 - len(row["ids"]) if padded else 0
        labels = dict(zip(row["positions"], row["labels"], strict=True))
        table["input_ids"].append(row["ids"] + [0] * pad)
        table["token_type_ids"].append(row["segments"] + [0] * pad)
        table["labels"].append([labels.get(i, -100) for i in range(len(row["ids"]))] + [-100] * pad)
        table["attention_mask"].append([1] * len(row["ids"]) + [0] * pad)
        table["next_sentence_label"].append(row["next"])
    return table


@each_row("padded", [True, False])
def test_a_saved_data_set_is_read(tmp_path, padded):
    found = sample(3000)
    made = library.Dataset.from_dict(columns(found, padded) | {"text": ["x"] * 3000})
    made.save_to_disk(str(tmp_path / "saved"), num_shards=2)
    files = sorted((tmp_path / "saved").glob("*.arrow"))
    assert sum(datasets.facts(file).examples for file in files) == 3000
    assert datasets.facts(files[0]).shape == Shape(None, None, static=True)
    assert same(concatenate([block for file in files for block in datasets.read(file, VOCABULARY)]), found)


def test_caches_beside_a_saved_dataset_are_ignored(tmp_path):
    """`map` writes a changed copy into the folder, `shuffle` and `filter` write indices."""
    library.Dataset.from_dict(columns(sample(50))).save_to_disk(str(tmp_path / "saved"))
    saved = library.load_from_disk(str(tmp_path / "saved"))
    saved.map(lambda row: {"size": len(row["input_ids"])})
    saved.shuffle(seed=1).filter(lambda row: len(row["input_ids"]) > 15)
    assert len(list((tmp_path / "saved").glob("*.arrow"))) > 2
    (found,) = detect(tmp_path / "saved")
    assert [file.name for file in found.files] == ["data-00000-of-00001.arrow"]
    assert found.examples == 50 and not found.damaged
    (tmp_path / "saved" / "state.json").write_text("[" * 100_000)
    assert len(detect(tmp_path / "saved")) > 0, "files that a hostile list does not name count as data"


def test_lists_of_a_declared_length_are_read(tmp_path):
    found = sample(70)
    table = columns(found, padded=True)
    runs = library.Sequence(library.Value("int32"), length=32)
    kinds = library.Features(dict.fromkeys(table, runs) | {"next_sentence_label": library.Value("int64")})
    library.Dataset.from_dict(table, kinds).save_to_disk(str(tmp_path / "saved"))
    (file,) = (tmp_path / "saved").glob("*.arrow")
    assert same(concatenate(list(datasets.read(file, VOCABULARY))), found)


def test_ids_alone_are_one_segment_without_masks_or_label(tmp_path):
    found = sample(100, masks=False)
    library.Dataset.from_dict({"input_ids": columns(found)["input_ids"]}).save_to_disk(str(tmp_path))
    (file,) = tmp_path.glob("*.arrow")
    (read,) = datasets.read(file)
    assert not datasets.facts(file).shape.static
    assert np.array_equal(read.token_ids, found.token_ids)
    assert read.second.tolist() == read.lengths.tolist() == found.lengths.tolist()
    assert set(read.next_sentence_labels) == {-1}
    assert not len(read.labels)


@each_row("masks", [True, False])
def test_the_library_reads_what_is_written(tmp_path, masks):
    found = sample(200, masks=masks)
    file = tmp_path / "data-00000-of-00001.arrow"
    parts = iter([found.take(slice(0, 30)), found.take(slice(30, None))])
    assert datasets.write(file, parts, Shape(None, None, masks)) == 200
    table = columns(found)
    read = library.Dataset.from_file(str(file))
    for key in ("input_ids", "token_type_ids", "next_sentence_label", *(["labels"] if masks else [])):
        assert read[key][:] == table[key]
    assert ("labels" in read.column_names) == masks
    assert same(concatenate(list(datasets.read(file, VOCABULARY))), found)


def test_unlabelled_pairs_have_the_ignored_label(tmp_path):
    transformers = pytest.importorskip("transformers", reason="the extra 'hf' is not installed")
    from torch.nn.utils.rnn import pad_sequence

    found = sample(20)
    found.next_sentence_labels[::2] = -1
    file = tmp_path / "data-00000-of-00001.arrow"
    datasets.write(file, iter([found]), Shape(None, None, static=True))
    rows = library.Dataset.from_file(str(file)).with_format("torch")[:]
    batch = {name: pad_sequence(list(rows[name]), True, -100 * (name == "labels")) for name in RUNS}
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    model = transformers.BertForPreTraining(transformers.BertConfig(vocab_size=len(VOCABULARY), **sizes))
    assert model(**batch, next_sentence_label=rows["next_sentence_label"]).loss.isfinite()
    assert same(concatenate(list(datasets.read(file, VOCABULARY))), found)
    library.Dataset.from_dict(columns(found)).save_to_disk(str(tmp_path / "older"))
    (older,) = (tmp_path / "older").glob("*.arrow")
    assert set(library.Dataset.from_file(str(older))["next_sentence_label"]) == {-1, 0, 1}
    assert same(concatenate(list(datasets.read(older, VOCABULARY))), found)


def test_rows_are_documents_without_padding_and_special_tokens(tmp_path):
    rows = [[2, 7, 8, 3, 0], [2, 9, 3, 0, 0], [2, 3, 0, 0, 0]]
    columns = {"input_ids": rows, "attention_mask": [[int(i > 0) for i in row] for row in rows]}
    with_specials = [[[2, 7, 8, 3]], [[2, 9, 3]], [[2, 3]]]
    for special, expected in ((False, with_specials), (True, [[[7, 8]], [[9]], [[]]])):
        if special:
            columns["special_tokens_mask"] = [[int(i in (0, 2, 3)) for i in row] for row in rows]
        folder = tmp_path / str(special)
        library.Dataset.from_dict(columns).save_to_disk(str(folder))
        (file,) = folder.glob("*.arrow")
        documents = open_rows(file).read(0, 3)
        assert as_lists(documents) == expected
        assert as_lists(open_rows(file).read(1, 2)) == expected[1:2]


def as_lists(documents):
    """Documents of one sentence."""
    assert documents.counts.tolist() == [1] * len(documents.lengths)
    return [[part.tolist()] for part in np.split(documents.ids, np.cumsum(documents.lengths)[:-1])]


@each_row(
    ("rows", "documents"),
    [
        ([[2, 7, 8, 3], [2, 9, 3]], False),
        ([[2, 7, 8, 3], [2, 9, 4]], True),
        ([[2, 7, 8, 3], [4, 9, 3]], True),
        ([[2, 7, 2], [2, 9, 2]], True),
        ([[2, 7, 2, 3], [2, 9, 3]], True),
        ([[2, 7, 2, 3], *[[2, 9, 3]] * 200], False),
        ([[2, 7, 8, 3], [], [2, 9, 3]], False),
        ([[2, 7, 8, 3]], None),
        ([], None),
    ],
)
def test_examples_begin_and_end_alike(tmp_path, rows, documents):
    column = pa.array(rows, pa.list_(pa.int32()))
    stream(tmp_path / "f.arrow", input_ids=column)
    assert datasets.facts(tmp_path / "f.arrow").documents is documents
    for name in ("labels", "next_sentence_label"):
        stream(tmp_path / "f.arrow", input_ids=column, **{name: column})
        assert datasets.facts(tmp_path / "f.arrow").documents is False


def stream(file, **columns):
    table = pa.table(columns)
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)


@each_row(
    ("columns", "fault"),
    [
        ({"input_ids": [[1, 2]], "labels": [[-100]]}, "labels is not as long"),
        ({"input_ids": [[1, None]]}, "gaps"),
        ({"input_ids": [None]}, "gaps|integers"),
        ({"input_ids": [["a"]]}, "not lists of integers"),
        ({"input_ids": [[1, 2]], "attention_mask": [[0, 1]]}, "not ones followed by zeros"),
        ({"input_ids": [[1, 2, 3]], "token_type_ids": [[0, 1, 0]]}, "segment ids"),
        ({"input_ids": [[5], []]}, "example 1: its length"),
        ({"input_ids": [[1, 2]], "labels": [[4, -100]]}, "not between"),
        ({"input_ids": [[1, 500]]}, "outside the vocabulary"),
        ({"input_ids": [[1, 2]], "next_sentence_label": [None]}, "gaps"),
    ],
)
def test_invalid_rows_are_named(tmp_path, columns, fault):
    stream(tmp_path / "f.arrow", **columns)
    with pytest.raises(ShardError, match=fault):
        list(datasets.read(tmp_path / "f.arrow", VOCABULARY))


def test_text_is_not_tokenised(tmp_path):
    stream(tmp_path / "f.arrow", text=["a"])
    with pytest.raises(ShardError, match="not tokenised"):
        datasets.facts(tmp_path / "f.arrow")


def test_a_compressed_stream_is_refused_before_it_unfolds(tmp_path):
    """`datasets` does not compress; 20 kB could be gigabytes."""
    for name, kind in (("input_ids", pa.int32()), ("other", pa.dictionary(pa.int32(), pa.string()))):
        ids = pa.array([[CLS, *[7] * 30_000, SEP]] * 9, pa.list_(pa.int32()))
        other = pa.array(["x" * 30_000] * 9).dictionary_encode() if pa.types.is_dictionary(kind) else ids
        batch = pa.record_batch([ids, other], ["input_ids", "other"])
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_stream(tmp_path / name, batch.schema, options=options) as out:
            out.write_batch(batch)
        before = pa.default_memory_pool().max_memory()
        with pytest.raises(ShardError, match="it is compressed, which is not supported"):
            datasets.facts(tmp_path / name)
        assert pa.default_memory_pool().max_memory() == before


def test_long_examples_are_read_in_several_blocks(tmp_path):
    """Whatever the batches of the file: memory goes by tokens."""
    found = sample(300, length=8000, predictions=1000)
    datasets.write(tmp_path / "f", iter([found]), Shape(None, None, static=True))
    blocks = list(datasets.read(tmp_path / "f"))
    assert len(blocks) > 1 and max(len(block.token_ids) for block in blocks) < 2**20 + 8000
    assert same(concatenate(blocks), found)


@each_row("padded", [True, False])
def test_examples_in_parquet_are_read_as_those_in_arrow(tmp_path, padded):
    """As the hub keeps them; one row group and several."""
    found = sample(300)
    made = library.Dataset.from_dict(columns(found, padded) | {"text": ["x"] * 300})
    for size in (40, 1000):
        made.to_parquet(str(tmp_path / "train-00000-of-00001.parquet"), batch_size=size)
        (read,) = detect(tmp_path)
        assert (read.kind, read.documents, read.shape, read.examples) == (
            "datasets",
            False,
            Shape(None, None, True),
            300,
        )
        assert same(concatenate(list(datasets.read(read.files[0], VOCABULARY))), found)


def test_token_ids_in_parquet_are_running_text(tmp_path):
    """They were taken for LDDL's word pieces that lacked their columns."""
    rows = [[5 + (7 * row + i) % 90 for i in range(20 + row % 30)] for row in range(200)]
    library.Dataset.from_dict({"input_ids": rows, "n": [1] * 200}).to_parquet(
        str(tmp_path / "0000.parquet"), batch_size=60
    )
    (found,) = detect(tmp_path)
    assert (found.kind, found.documents, found.examples) == ("datasets", True, 200)
    documents = open_rows(found.files[0])
    read = [documents.read(*piece) for piece in documents.pieces(500)]
    assert len(read) > 5 and [len(row) for row in rows] == np.concatenate([block.lengths for block in read]).tolist()
    assert np.concatenate([block.ids for block in read]).tolist() == [number for row in rows for number in row]


@each_row("group", [37, 1000])
def test_parquet_text_is_decoded_once_for_any_pieces(tmp_path, monkeypatch, group):
    """Each piece decoded the file from its beginning."""
    rows = [[5 + (7 * row + i) % 90 for i in range(20 + row % 30)] for row in range(200)]
    pq.write_table(pa.table({"input_ids": rows}), tmp_path / "a.parquet", row_group_size=group)
    documents = open_rows(tmp_path / "a.parquet")
    pieces = documents.pieces(500)
    monkeypatch.setattr(parquet_checks, "_AT_ONCE", 200)  # several batches in a piece
    decoded, real = [], pq.ParquetFile.iter_batches

    def counting(self, *words, **options):
        for batch in real(self, *words, **options):
            decoded.append(len(batch))
            yield batch

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", counting)
    read = [documents.read(*piece) for piece in pieces]
    assert len(read) > 5 and sum(decoded) == len(rows)
    assert np.concatenate([block.ids for block in read]).tolist() == [number for row in rows for number in row]
    decoded.clear()
    for first, stop in (pieces[4], pieces[1], pieces[6], pieces[-1]):
        block = documents.read(first, stop)
        assert block.lengths.tolist() == [len(row) for row in rows[first:stop]]
        assert block.ids.tolist() == [number for row in rows[first:stop] for number in row]
    assert sum(decoded) < 2 * len(rows) + group % len(rows)


def test_a_file_that_is_replaced_between_two_pieces_is_read_anew(tmp_path):
    for value in (7, 8):
        pq.write_table(pa.table({"input_ids": [[value] * 30] * 40}), tmp_path / "new.parquet")
        (tmp_path / "new.parquet").rename(tmp_path / "a.parquet")
        documents = open_rows(tmp_path / "a.parquet")
        assert set(documents.read(0, 10).ids.tolist()) == {value}
    assert set(documents.read(10, 40).ids.tolist()) == {8}


def test_a_small_parquet_file_cannot_unfold_to_any_size(tmp_path):
    """Kilobytes that would take minutes and gigabytes."""
    rows = pa.array([[7] * 30_000]).take(pa.array(np.zeros(2000, int)))
    pq.write_table(pa.table({"input_ids": rows}), tmp_path / "a.parquet", compression="zstd")
    assert (tmp_path / "a.parquet").stat().st_size < 100_000
    with pytest.raises(
        ShardError, match="it decompresses to 60,000,000 values of input_ids from .* bytes, more than any text"
    ):
        datasets.facts(tmp_path / "a.parquet")
