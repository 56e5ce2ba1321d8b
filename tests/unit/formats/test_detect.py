import shutil
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.rows import each_row
from tests.unit.formats.references import rows_of, write_nvidia, write_packed
from tests.unit.formats.samples import VOCABULARY, sample, token_documents

from bertwright.core.errors import DataError
from bertwright.examples.config import ImportedData, MaskingConfig
from bertwright.formats import lddl, megatron
from bertwright.formats.convert import Target, convert
from bertwright.formats.datasets import examples as datasets
from bertwright.formats.detect import detect, detect_tests
from bertwright.formats.errors import ShardError
from bertwright.formats.format import Kind, Shape
from bertwright.formats.imported.phase_files import describe_left_out, find, find_tests
from bertwright.formats.statistics import statistics
from bertwright.formats.tfrecord import examples as tfrecord


def tfrecords(folder, names, length=32, predictions=5):
    folder.mkdir(parents=True)
    for name in names:
        tfrecord.write(folder / name, iter([sample(3)]), Shape(length, predictions, static=True))


def test_a_folder_of_nvidias_has_a_training_and_a_test_set(tmp_path):
    folder = tmp_path / "hdf5_lower_case_1_seq_len_32" / "wiki"
    folder.mkdir(parents=True)
    for number in (10, 9, 0):
        write_nvidia(folder / f"wiki_training_{number}.hdf5", rows_of(sample(4)), 32, 5)
    write_nvidia(folder / "wiki_test_0.hdf5", rows_of(sample(2)), 32, 5)
    (folder / "README").write_text("words")
    test, training = detect(tmp_path)
    assert [file.name for file in training.files] == [f"wiki_training_{number}.hdf5" for number in (0, 9, 10)]
    assert (training.kind, training.examples, training.split) == ("hdf5", 12, "training")
    assert (test.examples, test.split) == (2, "test")
    assert training.shape == Shape(32, 5, static=True)
    assert training.incomplete is None
    assert detect(folder / "wiki_test_0.hdf5")[0].examples == 2


def test_the_hubs_names_of_files_say_what_is_not_for_training(tmp_path):
    for name in ("train-00000-of-00002", "train-00001-of-00002", "test-00000-of-00001", "validation-00000-of-00001"):
        lddl.write(tmp_path / f"{name}.parquet", iter([sample(3)]), Shape(32, 5, static=True), VOCABULARY)
    test, training = detect(tmp_path)
    assert [file.name for file in training.files] == [f"train-0000{number}-of-00002.parquet" for number in range(2)]
    assert training.trains and training.incomplete is None
    assert not test.trains and len(test.files) == 2


@each_row("name", ["dev", "val", "valid", "eval", "validation_matched", "test.clean"])
def test_no_other_split_is_trained_on(tmp_path, name):
    for folder, file in (("hub", f"{name}-00000-of-00001"), ("hub", "train_dev-00000-of-00001"), (name, "0")):
        (tmp_path / folder).mkdir(exist_ok=True)
        lddl.write(tmp_path / folder / f"{file}.parquet", iter([sample(3)]), Shape(32, 5, static=True), VOCABULARY)
    found = {(each.folder.name, each.files[0].name.split("-")[0]): each.trains for each in detect(tmp_path)}
    assert found == {("hub", name): False, ("hub", "train_dev"): True, (name, "0.parquet"): "." in name or "_" in name}


@each_row(
    ("folder", "file"),
    [
        ("eval_set_uncompressed", "part_0.hdf5"),
        ("eval_varlength", "part_eval_10k.hdf5"),
        ("data", "part_eval_10k.hdf5"),
    ],
)
def test_mlperfs_set_for_scores_is_not_trained_on(tmp_path, folder, file):
    for name in (f"2048_shards_uncompressed/part_{number:05}_of_02048.hdf5" for number in range(2)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_nvidia(tmp_path / name, rows_of(sample(4)), 32, 5)
    (tmp_path / folder).mkdir()
    write_nvidia(tmp_path / folder / file, rows_of(sample(2)), 32, 5)
    found = {each.folder.name: each.trains for each in detect(tmp_path)}
    assert found == {"2048_shards_uncompressed": True, folder: False}


def found_beside(path):
    return [(each.folder.name, [file.name for file in each.files]) for each in detect_tests(path, [], [])]


def test_what_is_for_testing_beside_the_training_data(tmp_path, monkeypatch):
    for split in ("train", "test", "dev", ".test", "extra"):
        tfrecords(tmp_path / "data" / split, ["part-0"])
    tests = [("dev", ["part-0"]), ("test", ["part-0"])]
    assert found_beside(tmp_path / "data" / "train") == found_beside(tmp_path / "data" / "train" / "part-0") == tests
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "train").symlink_to(tmp_path / "data" / "extra")
    tfrecords(tmp_path / "link" / "eval" / "seq_128", ["part-0"])
    assert found_beside(tmp_path / "link" / "train") == [("seq_128", ["part-0"])]
    monkeypatch.chdir(tmp_path / "data" / "train")
    assert found_beside(Path()) == found_beside(Path("part-0")) == tests


def test_unnamed_folders_are_not_test_data(tmp_path):
    """A folder `test` belongs to one called `train`, and to no other data."""
    for name in ("wiki", "test", "training.old"):
        tfrecords(tmp_path / name, ["part-0"])
    for name in ("wiki", "wiki/part-0", "test", "training.old"):
        assert found_beside(tmp_path / name) == []
    (tmp_path / "new" / "test").mkdir(parents=True)
    tfrecords(tmp_path / "new" / "train", ["part-0"])
    (tmp_path / "new" / "test" / "notes").write_text("words")
    assert found_beside(tmp_path / "new" / "train") == []


def test_mlperfs_set_for_scores_is_found_beside_its_shards(tmp_path):
    for name in ("2048_shards_uncompressed", "eval_set_uncompressed"):
        tfrecords(tmp_path / name, ["part-0"])
    assert found_beside(tmp_path / "2048_shards_uncompressed") == [("eval_set_uncompressed", ["part-0"])]
    assert found_beside(tmp_path / "eval_set_uncompressed") == []


def test_files_for_testing_beside_one_file(tmp_path):
    names = ("train-00000-of-00001", "test-00000-of-00001", "dev-00000-of-00001")
    tfrecords(tmp_path / "hub", names)
    tfrecords(tmp_path / "hub" / "below", names)
    assert found_beside(tmp_path / "hub" / names[0]) == [("hub", [names[2], names[1]])]
    assert found_beside(tmp_path / "hub") == []


def test_damaged_files_for_testing_are_named(tmp_path):
    for split in ("train", "test"):
        tfrecords(tmp_path / split, ["part-0"])
    broken = tmp_path / "test" / "part-0"
    broken.write_bytes(broken.read_bytes()[:40])
    phase = ImportedData(0, tmp_path / "train", 32, MaskingConfig(), False, None)
    told = rf"train.phases.0.data: {broken}: .* No such file in .*/test can .* set train.phases.0.quarantine=true"
    with pytest.raises(DataError, match=told):
        find_tests(phase, find(phase))
    # Left out on request, but never replaced by a share of the training examples.
    quarantined = replace(phase, quarantine=True)
    with pytest.raises(
        DataError, match=rf"no test file in or beside .*train can be read; the first: {broken}: .* move them"
    ):
        find_tests(quarantined, find(quarantined))
    tfrecords(tmp_path / "other", ["part-1"])
    (tmp_path / "other" / "part-1").rename(tmp_path / "test" / "part-1")
    (found,) = find_tests(quarantined, find(quarantined))
    assert [file.name for file in found.files] == ["part-1"] and found.damaged[0].file == broken


WRITERS = {
    "hdf5": lambda file: write_nvidia(file, rows_of(sample(4)), 32, 5),
    "hdf5-varlen": lambda file: write_packed(file, rows_of(sample(4)), 2),
    "tfrecord": lambda file: tfrecord.write(file, iter([sample(4)]), Shape(32, 5, static=True)),
    "lddl": lambda file: lddl.write(file, iter([sample(4)]), Shape(32, 5, static=True), VOCABULARY),
    "datasets": lambda file: datasets.write(file, iter([sample(4)]), Shape(32, 5, static=True)),
    "megatron": lambda file: megatron.write_documents(file, [token_documents([[[1, 2]]] * 7)], 500),
}
ENDINGS = {"hdf5": "hdf5", "hdf5-varlen": "h5", "lddl": "parquet", "datasets": "arrow", "megatron": "idx"}


def written(kind, folder):
    """Two files of a format in a new folder."""
    folder.mkdir(parents=True, exist_ok=True)
    ending = f".{ENDINGS[kind]}" if kind in ENDINGS else ""
    files = [folder / f"part-{number}{ending}" for number in range(2)]
    for file in files:
        WRITERS[kind](file)
    return files


@each_row("broken", [lambda whole: whole[:40], lambda whole: b"", lambda whole: bytes(500)])
@each_row("kind", get_args(Kind))
def test_folder_without_readable_file_is_an_error(tmp_path, kind, broken):
    written(kind, tmp_path / "data" / "good" / "train")
    for split in ("train", "test"):
        lost = written(kind, tmp_path / "data" / "lost" / split)
        for file in lost:
            file.write_bytes(broken(file.read_bytes()))
        phase = ImportedData(0, tmp_path / "data", 32, MaskingConfig(), False, None)
        quarantined = replace(phase, quarantine=True)
        refused = rf"{lost[0]}: .* No such file in {lost[0].parent} can be read, .* train.phases.0.quarantine=true"
        with pytest.raises(DataError, match=refused):
            find_tests(phase, find(phase))
        with pytest.raises(ShardError, match=str(lost[0])):
            detect(tmp_path / "data")
        assert [fault.split(":")[0] for fault in statistics(tmp_path / "data", VOCABULARY)["unreadable"]] == [
            str(file) for file in lost
        ]
        found = find(quarantined)
        assert len(found.files) == 2
        if split == "train":
            assert [error.file for error in found.damaged] == lost and not find_tests(quarantined, found)
        else:
            assert "lost/test/part-0" in describe_left_out(quarantined, found)
            with pytest.raises(DataError, match=rf"no test file in or beside .* can be read; the first: {lost[0]}"):
                find_tests(quarantined, found)
        shutil.rmtree(tmp_path / "data" / "lost")


def test_unreadable_test_files_are_an_error(tmp_path):
    names = {"wiki_training_0.hdf5": True, "wiki_training_1.hdf5": True, "wiki_test_0.hdf5": False}
    for name in names:
        write_nvidia(tmp_path / name, rows_of(sample(4)), 32, 5)
    lost = tmp_path / "wiki_test_0.hdf5"
    for broken in (lost.read_bytes()[:900], b"", bytes(500)):
        lost.write_bytes(broken)
        for path in (tmp_path, tmp_path / "wiki_training_0.hdf5"):
            phase = ImportedData(0, path, 32, MaskingConfig(), False, None)
            with pytest.raises(DataError, match=str(lost)):
                find_tests(phase, find(phase))


def test_text_beside_examples_is_not_damaged(tmp_path):
    written("datasets", tmp_path / "tokens")
    (tmp_path / "texts").mkdir()
    pq.write_table(pa.table({"text": ["a"]}), tmp_path / "texts" / "a.parquet")
    (found,) = detect(tmp_path)
    assert found.folder.name == "tokens"


def test_intels_folders_are_two_phases_with_missing_parts(tmp_path):
    tfrecords(tmp_path / "seq_512", [f"part-{number:05}-of-00500" for number in range(12)], 64, 10)
    tfrecords(tmp_path / "seq_128", [f"part-{number:05}-of-00002_128" for number in range(2)])
    first, second = detect(tmp_path)
    assert (first.folder.name, first.shape.length, first.incomplete) == ("seq_128", 32, None)
    assert (second.folder.name, second.shape.length) == ("seq_512", 64)
    assert second.incomplete == "12 of 500 parts"
    assert second.examples is None


@each_row(
    ("names", "told"),
    [
        (("c_training_0.hdf5", "c_training_2.hdf5"), "2 of 3 parts (1 is missing)"),
        (("part.1.parquet_0", "part.2.parquet_0", "part.5.parquet_0"), "3 of 5 parts (3, 4 are missing)"),
        (("part.1.parquet_0", "part.3.parquet_1"), None),
        (("part-08", "part-09", "part-10"), None),
        (("wiki-20200101", "wiki-20200201"), None),
        (("train", "more"), None),
        (("part-00000-3f0e-c000.parquet", "part-00002-3f0e-c000.parquet"), None),
        ([f"s{number}" for number in range(0, 18, 2)], "9 of 17 parts (1, 3, 5, 7, 9, ... are missing)"),
    ],
)
def test_a_gap_in_the_numbers_of_files_is_named(names, told, tmp_path):
    tfrecords(tmp_path / "a", names)
    (found,) = detect(tmp_path)
    assert found.incomplete == told


def test_files_of_another_length_or_damaged_ones_fill_a_gap(tmp_path):
    folder = tmp_path / "a"
    tfrecords(folder, ["part-0", "part-2", "part-4"])
    tfrecord.write(folder / "part-1", iter([sample(3)]), Shape(64, 10, static=True))
    (folder / "part-3").write_bytes(b"")
    assert [found.incomplete for found in detect(tmp_path)] == [None, None]


def test_leftovers_of_a_conversion_are_not_data(tmp_path):
    """Nor is anything else in a hidden folder or one such as Spark's `_temporary`."""
    tfrecords(tmp_path / "a", ["part-0"])
    for name in (".b.1234.draft", "_temporary"):
        tfrecords(tmp_path / "a" / name, ["part-0"])
    (found,) = detect(tmp_path / "a")
    assert found.folder == tmp_path / "a"
    tfrecords(tmp_path / ".cache" / "_data", ["part-0"])
    assert detect(tmp_path / ".cache" / "_data")[0].kind == "tfrecord"


def test_damaged_members_are_listed_beside_the_whole_ones(tmp_path):
    tfrecords(tmp_path / "a", [f"part-0000{number}-of-00005" for number in range(5)])
    (tmp_path / "a" / "part-00001-of-00005").write_bytes(b"")
    (tmp_path / "a" / "part-00003-of-00005").write_bytes(b"\0" * 500)
    (tmp_path / "a" / "notes").write_bytes(b"")
    (found,) = detect(tmp_path)
    assert len(found.files) == 3
    faults = {error.file.name: error.fault for error in found.damaged}
    assert faults == {"part-00001-of-00005": "it is empty", "part-00003-of-00005": "its beginning is damaged"}
    assert found.incomplete == "3 of 5 parts"


def test_one_missing_part_is_counted(tmp_path):
    tfrecords(tmp_path / "a", [f"part-0000{number}-of-00005" for number in range(4)])
    (found,) = detect(tmp_path)
    assert found.incomplete == "4 of 5 parts"


def test_every_format_is_known_by_content(tmp_path):
    found = sample(6)
    for name in ("varlen", "lddl", "datasets", "megatron"):
        (tmp_path / name).mkdir()
    write_packed(tmp_path / "varlen" / "a", rows_of(found), 2)
    lddl.write(tmp_path / "lddl" / "part.0.parquet_1", iter([found]), Shape(None, None, static=True), VOCABULARY)
    datasets.write(tmp_path / "datasets" / "b", iter([found]), Shape(None, None, static=False))
    megatron.write_documents(tmp_path / "megatron" / "c.idx", [token_documents([[[1, 2]]] * 7)], 500)
    sets = {found.folder.name: found for found in detect(tmp_path)}
    assert {name: found.kind for name, found in sets.items()} == {
        "varlen": "hdf5-varlen",
        "lddl": "lddl",
        "datasets": "datasets",
        "megatron": "megatron",
    }
    assert {name: found.examples for name, found in sets.items()} == {
        "varlen": None,
        "lddl": 6,
        "datasets": 6,
        "megatron": 7,
    }
    assert [found.shape.static for found in sets.values()] == [False, True, False, True]


def test_unknown_and_incomplete_data_are_errors(tmp_path):
    (tmp_path / "text").write_text("words")
    with pytest.raises(DataError, match="no training data in a known format"):
        detect(tmp_path)
    with pytest.raises(DataError, match="no training data"):
        detect(tmp_path / "missing")
    (tmp_path / "broken").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    with pytest.raises(ShardError, match="broken: cannot be read"):
        detect(tmp_path)


def test_hidden_files_and_dask_metadata_are_not_data(tmp_path):
    tfrecords(tmp_path / "a", ["part-0", ".part-1.tmp", "_metadata"])
    assert [file.name for file in detect(tmp_path)[0].files] == ["part-0"]


def test_text_in_arrow_is_not_examples(tmp_path):
    table = pa.table({"text": ["a"]})
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    with pytest.raises(ShardError, match="not tokenised"):
        detect(tmp_path)


def test_files_of_two_lengths_in_one_folder_are_two_sets(tmp_path):
    tfrecords(tmp_path / "a", ["part-00000-of-00002"])
    tfrecord.write(tmp_path / "a" / "part-00001-of-00002", iter([sample(4)]), Shape(64, 9, static=True))
    first, second = detect(tmp_path)
    assert [(each.shape.length, len(each.files)) for each in (first, second)] == [(32, 1), (64, 1)]
    with pytest.raises(DataError, match="several formats or lengths in one folder"):
        convert(tmp_path, tmp_path / "out", Target("hdf5"))


def test_a_folder_that_a_link_leads_to_holds_data(tmp_path):
    tfrecords(tmp_path / "disk" / "part", ["part-0", "part-1"])
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "seq_32").symlink_to(tmp_path / "disk" / "part")
    (found,) = detect(tmp_path / "data")
    assert found.folder == tmp_path / "data" / "seq_32" and len(found.files) == 2
    (tmp_path / "data" / "seq_32").rename(tmp_path / "data" / "newest")
    tfrecords(tmp_path / "data" / "seq_32", ["part-0"])
    (tmp_path / "data" / "same").symlink_to("seq_32")
    assert sorted(found.folder.name for found in detect(tmp_path / "data")) == ["newest", "seq_32"]
