"""Phases that train on running text that others have tokenised: folders of Hugging Face `datasets`."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.rows import each_row
from tests.unit.formats.test_imported_data import Notes, data, prepared, without_masks
from tests.unit.formats.test_imported_tokens import WITHOUT_CHANCE, facts_of, flat, loaders_of, nested, saved, store_of

from bertwright.cli.conversion import ConvertOptions, convert
from bertwright.cli.describe import Examples, describe
from bertwright.core.errors import DataError
from bertwright.core.files import sha256
from bertwright.examples.batch import batch_hash
from bertwright.examples.store import Store
from bertwright.formats.detect import detect
from bertwright.formats.imported import documents
from bertwright.formats.target import Target
from bertwright.pipeline.run_folder import RunFolder
from bertwright.vocab.load import read_vocabulary

library = pytest.importorskip("datasets", reason="the library whose folders are read")
Rows = list[list[int]]


@pytest.fixture(scope="module")
def own(two_phases: Path) -> RunFolder:
    return RunFolder(two_phases.parent / "own")


@pytest.fixture(scope="module")
def texts(own: RunFolder) -> Rows:
    """The training documents of the run, as rows of ids."""
    return [flat(document) for document in nested(Store.open(own.artifact("examples")))]


def rows(folder: Path, ids: Rows, shards: int = 1, **columns: Any) -> Path:
    """A folder that the library has saved."""
    library.Dataset.from_dict({"input_ids": ids, **columns}).save_to_disk(str(folder), num_shards=shards)
    return folder


@each_row("stretch", [1 << 20, 300])
def test_rows_of_running_text_are_documents_of_one_sentence(
    two_phases: Path, texts: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stretch: int
) -> None:
    """Drawn from as Megatron's documents without sentences are, to the bit."""
    monkeypatch.setattr(documents, "STRETCH", stretch)
    padded = [row + [0] * (i % 3) for i, row in enumerate(texts)]
    mask = [[1] * len(row) + [0] * (i % 3) for i, row in enumerate(texts)]
    source = rows(tmp_path / "rows", padded, 2, attention_mask=mask, token_type_ids=[[0] * len(row) for row in padded])
    other = saved(tmp_path / "megatron", [[row] for row in texts])
    notes = Notes()
    theirs = prepared(two_phases, tmp_path / "run", *data([source] * 2), *WITHOUT_CHANCE, log=notes)
    megatron = prepared(two_phases, tmp_path / "other", *data([other] * 2), *WITHOUT_CHANCE)
    hashes = [{"file": file.name, "sha256": sha256(file)} for file in sorted(source.glob("*.arrow"))]
    assert facts_of(theirs)["files"] == hashes
    assert nested(store_of(theirs)) == [[row] for row in texts] and facts_of(theirs)["kind"] == "datasets"
    assert any(f"is {len(texts):,} documents of {len(texts):,} sentences" in each for each in notes.said)
    assert not any("held out here; this cannot be checked" in each for each in notes.said)
    for mine, reference in zip(loaders_of(theirs), loaders_of(megatron), strict=True):
        assert mine.examples.sizes == reference.examples.sizes
        for step in (0, 7):
            assert list(map(batch_hash, mine.step(step))) == list(map(batch_hash, reference.step(step)))


def test_special_tokens_that_the_rows_tell_of_are_taken_out(
    own: RunFolder, two_phases: Path, texts: Rows, tmp_path: Path
) -> None:
    """Blocks of transformers' run_mlm.py: [CLS] text [SEP] one after another, cut every so many tokens."""
    special = Store.open(own.artifact("examples")).vocabulary
    whole = [number for text in texts for number in (special.cls, *text, special.sep)]
    blocks = [whole[i : i + 50] for i in range(0, len(whole), 50)]
    marks = [[int(number in (special.cls, special.sep)) for number in block] for block in blocks]
    source = rows(tmp_path / "blocks", blocks, special_tokens_mask=marks)
    folder = prepared(two_phases, tmp_path / "run", *data([source] * 2), *WITHOUT_CHANCE)
    found = [flat(document) for document in nested(store_of(folder))]
    assert [number for row in found for number in row] == [number for text in texts for number in text]
    bare = rows(tmp_path / "bare", blocks)
    with pytest.raises(DataError, match=r"contain the ids of \[PAD\], \[CLS\], \[SEP\] or \[MASK\]"):
        prepared(two_phases, tmp_path / "run", *data([bare] * 2), *WITHOUT_CHANCE)


def test_rows_make_no_pairs(two_phases: Path, texts: Rows, tmp_path: Path) -> None:
    source = rows(tmp_path / "rows", texts)
    with pytest.raises(
        DataError, match=r"have only one sentence, but examples.plan=next-sentence .*full-sentences, or"
    ):
        prepared(two_phases, tmp_path / "run", *data([source] * 2))


def test_examples_of_another_vocabulary_are_not_taken_for_text(
    own: RunFolder, two_phases: Path, texts: Rows, tmp_path: Path
) -> None:
    """Rows that all begin with one id and end with another are examples, whatever [CLS] is here."""
    special = Store.open(own.artifact("examples")).vocabulary
    source = rows(tmp_path / "rows", [[special.unk, *text[:9], special.mask] for text in texts])
    assert not detect(source)[0].documents
    message = rf"example 0 begins with id {special.unk}, not \[CLS\] .*another vocabulary"
    with pytest.raises(DataError, match=message):
        prepared(two_phases, tmp_path / "run", *data([source] * 2), *WITHOUT_CHANCE)


@pytest.mark.parametrize("first", ["examples", "text"])
def test_examples_and_running_text_are_not_one_set(
    own: RunFolder, two_phases: Path, texts: Rows, tmp_path: Path, first: str
) -> None:
    special = Store.open(own.artifact("examples")).vocabulary
    framed = [[special.cls, *text[:9], special.sep] for text in texts]
    folder = tmp_path / "mixed"
    for number, ids in enumerate([framed, texts] if first == "examples" else [texts, framed]):
        (file,) = rows(tmp_path / str(number), ids).glob("*.arrow")
        folder.mkdir(exist_ok=True)
        file.rename(folder / f"data-{number:05}-of-00002.arrow")
    name = f"data-0000{int(first == 'text')}-of-00002.arrow"
    with pytest.raises(
        DataError, match=rf"{name} holds examples .*, other files hold running text. Put .* separate folders"
    ):
        prepared(two_phases, tmp_path / "run", *data([folder] * 2), *WITHOUT_CHANCE)
    (numbers,) = describe(folder)["set"]
    assert any(f"{name} holds examples" in fault for fault in numbers["faults"])


def test_a_file_of_one_row_goes_with_the_others(two_phases: Path, texts: Rows, tmp_path: Path) -> None:
    """One row does not tell what it is, and none does not either."""
    source, extra = rows(tmp_path / "rows", texts[:-1]), rows(tmp_path / "one", texts[-1:])
    next(extra.glob("*.arrow")).rename(source / "data-00001-of-00001.arrow")
    with pa.OSFile(str(source / "data-00002-of-00001.arrow"), "wb") as sink:
        pa.ipc.new_stream(sink, pa.schema([("input_ids", pa.list_(pa.int32()))])).close()
    (source / "state.json").unlink()
    folder = prepared(two_phases, tmp_path / "run", *data([source] * 2), *WITHOUT_CHANCE)
    assert nested(store_of(folder)) == [[row] for row in texts]


@each_row("books", [[300_000], [300_000, 9], [200_000, 150_000]])
def test_a_row_may_be_a_book(texts: Rows, tmp_path: Path, books: list[int]) -> None:
    """The rows that are compared are then fewer than two."""
    ids = [number for text in texts for number in text]
    (found,) = detect(rows(tmp_path / "books", [(ids * 60)[:length] for length in books]))
    assert found.documents and found.examples == len(books)


def test_damaged_row_files_are_skipped_on_request(two_phases: Path, texts: Rows, tmp_path: Path) -> None:
    source = rows(tmp_path / "rows", texts, 2)
    _, last = sorted(source.glob("*.arrow"))
    schema = pa.schema([("input_ids", pa.list_(pa.int32()))])
    with pa.OSFile(str(last), "wb") as sink, pa.ipc.new_stream(sink, schema) as out:
        out.write_batch(pa.record_batch([pa.array(texts[:9], schema[0].type)], schema=schema))
        out.write_batch(pa.record_batch([pa.array([[5, -1], [7]], schema[0].type)], schema=schema))
    keys = [f"train.phases.{i}.quarantine=true" for i in range(2)]
    options = [*data([source] * 2), *WITHOUT_CHANCE]
    with pytest.raises(DataError, match=rf"{last.name}: row 9 has a negative id.*quarantine=true"):
        prepared(two_phases, tmp_path / "run", *options)
    folder = prepared(two_phases, tmp_path / "run", *options, *keys)
    assert [each["file"] for each in facts_of(folder)["quarantined"]] == [last.name]
    assert 0 < len(nested(store_of(folder))) < len(texts)


def test_inspect_and_convert_say_what_it_is(own: RunFolder, two_phases: Path, texts: Rows, tmp_path: Path) -> None:
    vocabulary = own.path / "vocab" / "vocab.txt"
    source = rows(tmp_path / "rows", texts, 2)
    (found,) = detect(source)
    assert found.documents and found.kind == "datasets" and found.examples == len(texts)
    (numbers,) = describe(source, examples=Examples(vocabulary))["set"]
    assert numbers["holds"] == "documents" and numbers["kind"] == "datasets" and not numbers["faults"]
    assert numbers["documents"] == numbers["single"] == len(texts) and numbers["tokens"] == sum(map(len, texts))
    with pytest.raises(DataError, match="token documents, not finished .*. Train on the files directly"):
        convert(source, tmp_path / "out", Target("lddl"), ConvertOptions(vocabulary=vocabulary))
    convert(own.path, tmp_path / "examples", Target("datasets"), ConvertOptions(files=1))
    made = next(path for path in (tmp_path / "examples").iterdir() if path.is_dir())
    bare = without_masks(made, tmp_path / "bare", read_vocabulary(vocabulary))
    assert not detect(bare)[0].documents
    assert {each["holds"] for each in describe(bare)["set"]} == {"examples"}
