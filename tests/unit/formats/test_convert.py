import json
import os

import pytest
from tests.rows import each_row
from tests.unit.formats.references import rows_of, write_nvidia
from tests.unit.formats.samples import VOCABULARY, everything_of, same, sample, token_documents

from bertwright.core.errors import DataError, RecipeError, system_error
from bertwright.core.files import read_json, sha256_of
from bertwright.examples.instances import concatenate
from bertwright.formats import lddl, megatron
from bertwright.formats.convert import Target, convert
from bertwright.formats.datasets import examples as datasets
from bertwright.formats.detect import detect
from bertwright.formats.errors import ShardError
from bertwright.formats.format import Shape
from bertwright.formats.hdf5 import padded as hdf5
from bertwright.formats.known import FORMATS, format_of
from bertwright.formats.statistics import statistics
from bertwright.formats.tfrecord import examples as tfrecord

KINDS = [each.kind for each in FORMATS]


@pytest.fixture
def source(tmp_path):
    """Two training shards and one for tests, as NVIDIA's builder leaves them."""
    folder = tmp_path / "source"
    folder.mkdir()
    for number in range(2):
        write_nvidia(folder / f"w_training_{number}.hdf5", rows_of(sample(40, seed=number)), 32, 5)
    write_nvidia(folder / "w_test_0.hdf5", rows_of(sample(15, seed=9)), 32, 5)
    return folder


class Heard:
    """A log that keeps what is said."""

    def __init__(self):
        self.said = []

    def say(self, message):
        self.said.append(message)

    def progress(self, *_):
        pass

    def record(self, row):
        pass


def examples_of(folder):
    sets = {found.split if found.folder.name != "test" else "test": found for found in detect(folder)}
    return {
        split: concatenate([block for file in found.files for block in format_of(found.kind).read(file, VOCABULARY)])
        for split, found in sets.items()
    }


@pytest.mark.parametrize("kind", KINDS)
def test_there_and_back_is_byte_equal(tmp_path, source, kind):
    """From HDF5 to every format and back: the same examples there, the same bytes here."""
    convert(source, tmp_path / "w", Target("hdf5"))
    note = convert(tmp_path / "w", tmp_path / "there", Target(kind), VOCABULARY)
    assert note["examples"] == 95
    assert note == json.loads((tmp_path / "there" / "conversion.json").read_bytes())
    before, after = examples_of(source), examples_of(tmp_path / "there")
    assert set(before) == set(after)
    assert all(same(before[split], after[split]) for split in before)
    if kind != "hdf5":
        convert(tmp_path / "there" / "test", tmp_path / "back", Target("hdf5", 32, 5), VOCABULARY)
        assert (tmp_path / "back" / "back_test_0.hdf5").read_bytes() == (tmp_path / "w" / "w_test_0.hdf5").read_bytes()
    else:
        convert(tmp_path / "there", tmp_path / "b" / "w", Target("hdf5", 32, 5), VOCABULARY)
        back = everything_of(tmp_path / "b" / "w")
        assert {name: data for name, data in back.items() if name.endswith("5")} == {
            name: data for name, data in everything_of(tmp_path / "w").items() if name.endswith("5")
        }


@pytest.mark.parametrize("name", ["test", "validation", "dev"])
def test_folders_and_nvidias_names_say_what_is_not_for_training(tmp_path, source, name):
    """Its trainer takes every file with "training" in its name; for the others a folder says it, and one is enough."""

    def made(folder, kind, source):
        convert(tmp_path / source, tmp_path / folder, Target(kind, 32, 5))
        return sorted(file for file in everything_of(tmp_path / folder) if file != "conversion.json")

    parts = [f"train/part-0000{number}-of-00002" for number in range(2)]
    assert made("a", "tfrecord", "source") == ["test/part-00000-of-00001", *parts]
    (tmp_path / "a" / "test").rename(tmp_path / "a" / name)
    named = sorted([f"{name}/b_test_0.hdf5", "train/b_training_0.hdf5", "train/b_training_1.hdf5"])
    assert made("b", "hdf5", "a") == named
    assert made("c", "tfrecord", "b") == sorted([f"{name}/part-00000-of-00001", *parts])
    assert made("d/b", "hdf5", "b") == named
    varlen = [f"{name}/part_00000_of_00001.hdf5", *(f"train/part_0000{number}_of_00002.hdf5" for number in range(2))]
    assert made("e", "hdf5-varlen", "b") == sorted(varlen)
    splits = {found.folder.name: found.trains for found in detect(tmp_path / "e")}
    assert splits == {name: False, "train": True}


def test_two_files_that_would_become_one_are_refused(tmp_path):
    (tmp_path / "a" / "train").mkdir(parents=True)
    for folder in (tmp_path / "a", tmp_path / "a" / "train"):
        write_nvidia(folder / "w_training_0.hdf5", rows_of(sample(3)), 32, 5)
    with pytest.raises(DataError, match=r"would both become train/.* in .*b\. Rename the folder of"):
        convert(tmp_path / "a", tmp_path / "b", Target("tfrecord", 32, 5), VOCABULARY)
    assert not (tmp_path / "b").exists()


def test_a_name_that_is_not_utf8_is_converted(tmp_path):
    (tmp_path / "a").mkdir()
    name = tmp_path / "a" / os.fsdecode(b"m\xe1_training_0.hdf5")
    write_nvidia(name, rows_of(sample(3)), 32, 5)
    note = convert(tmp_path / "a", tmp_path / "b", Target("tfrecord", 32, 5), VOCABULARY)
    assert read_json(tmp_path / "b" / "conversion.json") == note and sha256_of(note)


@each_row("first", KINDS)
@each_row("second", KINDS)
def test_every_pair_of_formats_keeps_the_examples(tmp_path, first, second):
    found = sample(20)
    (tmp_path / "a").mkdir()
    format_of(first).write(tmp_path / "a" / "x", iter([found]), Shape(32, 5, static=True), VOCABULARY)
    convert(tmp_path / "a", tmp_path / "b", Target(second, 32, 5), VOCABULARY)
    assert same(examples_of(tmp_path / "b")["training"], found)


def test_phases_keep_their_folders_and_gzip_is_a_choice(tmp_path):
    for name, length, room in (("seq_128", 32, 5), ("seq_512", 64, 9)):
        (tmp_path / "a" / name).mkdir(parents=True)
        hdf5.write(tmp_path / "a" / name / "x_training_0.hdf5", iter([sample(9)]), Shape(length, room, static=True))
    convert(tmp_path / "a", tmp_path / "b", Target("tfrecord", compress=True))
    names = {name for name in everything_of(tmp_path / "b") if name != "conversion.json"}
    assert names == {"seq_128/train/part-00000-of-00001.gz", "seq_512/train/part-00000-of-00001.gz"}
    assert [found.shape.length for found in detect(tmp_path / "b")] == [32, 64]


def test_a_damaged_shard_is_an_error_or_in_quarantine(tmp_path, source):
    damaged = source / "w_training_1.hdf5"
    with open(damaged, "r+b") as handle:
        handle.seek(damaged.stat().st_size - 3000)
        handle.write(bytes(2000))
    before = everything_of(source)
    with pytest.raises(ShardError, match="w_training_1.hdf5"):
        convert(source, tmp_path / "out", Target("tfrecord"))
    assert not (tmp_path / "out").exists()
    log = Heard()
    note = convert(source, tmp_path / "out", Target("tfrecord"), quarantine=True, log=log)
    assert [entry["file"] for entry in note["quarantined"]] == [str(damaged)]
    assert note["examples"] == 55
    assert any("w_training_1.hdf5" in message for message in log.said)
    assert detect(tmp_path / "out" / "train")[0].incomplete == "1 of 2 parts"
    assert everything_of(source) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "source"]


def test_write_error_names_the_destination_file(tmp_path, monkeypatch):
    """The hidden folder that is filled first is gone when the error is read."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    tfrecord.write(tmp_path / "a" / "b" / "part-0", iter([sample(9)]), Shape(32, 5, static=True))
    file = tmp_path / "out" / "b" / "out_training_0.hdf5"
    with pytest.raises(DataError, match=rf"^{file}: .*the maximum is 8") as told:
        convert(tmp_path / "a", tmp_path / "out", Target("hdf5", 8, 2))
    assert type(told.value) is DataError

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(DataError, match=rf"^cannot write {file}: No space left"):
        convert(tmp_path / "a", tmp_path / "out", Target("hdf5"))
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_all_files_damaged_is_an_error_in_quarantine_too(tmp_path):
    (tmp_path / "a").mkdir()
    lddl.write(tmp_path / "a" / "x", iter([sample(9)]), Shape(None, None, static=True), VOCABULARY)
    with pytest.raises(ShardError, match="no piece"):
        convert(tmp_path / "a", tmp_path / "b", Target("hdf5", 32, 5), VOCABULARY[:30], quarantine=True)
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("length", [250, 256])
def test_a_name_that_is_too_long_must_be_shorter(length, tmp_path, source):
    with pytest.raises((DataError, OSError)) as told:
        convert(source, tmp_path / ("n" * length), Target("tfrecord"))
    error = told.value if isinstance(told.value, DataError) else system_error(told.value)
    assert "File name too long. Give a shorter name" in str(error)


def test_gap_in_file_numbers_is_reported(tmp_path, source):
    (source / "w_training_1.hdf5").rename(source / "w_training_2.hdf5")
    log = Heard()
    note = convert(source, tmp_path / "out", Target("tfrecord"), log=log)
    assert f"convert: {source} is incomplete: 2 of 3 parts (1 is missing) were found" in log.said
    assert note["incomplete"] == {str(source): "2 of 3 parts (1 is missing)"}
    (faults,) = [found["faults"] for found in statistics(source)["sets"] if found["split"] == "training"]
    assert "only 2 of 3 parts (1 is missing) were found" in faults


@pytest.mark.parametrize("quarantine", [False, True])
@pytest.mark.parametrize(
    ("other", "says"),
    [
        (VOCABULARY[:400], "has id 49\\d, but the vocabulary has 400 entries"),
        (["[CLS]", "[PAD]", "[UNK]", *VOCABULARY[3:]], r"15 examples begin with id 2, not \[CLS\] \(0\)"),
    ],
)
def test_the_vocabulary_must_be_that_of_the_examples(tmp_path, source, other, says, quarantine):
    with pytest.raises(DataError, match=rf"w_test_0\.hdf5:? {says}\. .*give their vocab\.txt"):
        convert(source, tmp_path / "out", Target("lddl"), other, quarantine=quarantine)
    assert not (tmp_path / "out").exists()


def test_missing_information_of_the_source_is_reported(tmp_path, source):
    dynamic, tokens = tmp_path / "dynamic", tmp_path / "tokens"
    for folder in (dynamic, tokens):
        folder.mkdir()
    plain = sample(9, masks=False)
    lddl.write(dynamic / "x", iter([plain]), Shape(None, None, static=False), VOCABULARY)
    megatron.write_documents(tokens / "x.idx", [token_documents([[[1]]])], 500)
    out = tmp_path / "out"
    for kind in ("hdf5", "hdf5-varlen", "tfrecord"):
        with pytest.raises(DataError, match="no masks. Export examples with masks"):
            convert(dynamic, out, Target(kind, 32, 5), VOCABULARY)
    with pytest.raises(DataError, match="token documents"):
        convert(tokens, out, Target("hdf5"))
    with pytest.raises(DataError, match="token documents"):
        convert(source, out, Target("megatron"))
    with pytest.raises(DataError, match=r"Give the vocab\.txt"):
        convert(source, out, Target("lddl"))
    varlen = tmp_path / "varlen"
    varlen.mkdir()
    format_of("hdf5-varlen").write(varlen / "a.hdf5", iter([sample(9)]), Shape(None, None, static=True))
    with pytest.raises(DataError, match="Give both"):
        convert(varlen, out, Target("tfrecord"))
    with pytest.raises(RecipeError, match="already exists"):
        convert(source, source, Target("tfrecord"))
    convert(dynamic, out, Target("datasets"), VOCABULARY)
    assert same(examples_of(out)["training"], plain)


def test_two_formats_in_one_folder_are_not_mixed_up(tmp_path):
    found = sample(5)
    tfrecord.write(tmp_path / "a", iter([found]), Shape(32, 5, static=True))
    datasets.write(tmp_path / "b", iter([found]), Shape(None, None, static=True))
    with pytest.raises(DataError, match="several formats or lengths in one folder"):
        convert(tmp_path, tmp_path / "out", Target("hdf5", 32, 5))


@each_row("masks", [(True, False), (False, True)])
def test_files_with_and_without_masks_are_not_mixed_up(tmp_path, masks):
    """Those without would silently predict nothing."""
    (tmp_path / "a").mkdir()
    for number, static in enumerate(masks):
        file = tmp_path / "a" / f"data-0000{number}-of-00002.arrow"
        datasets.write(file, iter([sample(5, masks=static)]), Shape(None, None, static))
    (found,) = detect(tmp_path / "a")
    assert [file.name for file in found.mixed] == ["data-00001-of-00002.arrow"]
    with pytest.raises(DataError, match="data-00001-of-00002.arrow has (no )?masks, unlike .*separate folders"):
        convert(tmp_path / "a", tmp_path / "out", Target("datasets"))
    (facts,) = statistics(tmp_path / "a")["sets"]
    assert any("only some files have masks" in fault for fault in facts["faults"])


@pytest.mark.parametrize("room", [(40_000, 5), (32, 90)])
def test_no_more_room_is_made_than_is_read(tmp_path, source, room):
    with pytest.raises(DataError, match="Give smaller values"):
        convert(source, tmp_path / "out", Target("tfrecord", *room))


def test_missing_and_empty_files_are_reported(tmp_path):
    (tmp_path / "a").mkdir()
    shape = Shape(32, 5, static=True)
    hdf5.write(tmp_path / "a" / "x_training_0.hdf5", iter([]), shape)
    with pytest.raises(DataError, match=r"a holds no example, so there is nothing to convert"):
        convert(tmp_path / "a", tmp_path / "out", Target("tfrecord"))
    assert not (tmp_path / "out").exists()
    hdf5.write(tmp_path / "a" / "x_training_1.hdf5", iter([sample(4)]), shape)
    log = Heard()
    convert(tmp_path / "a", tmp_path / "out", Target("datasets"), log=log)
    assert any("x_training_0.hdf5 holds no example" in message for message in log.said)
    tfrecord.write(tmp_path / "part-00001-of-00003", iter([sample(4)]), shape)
    log = Heard()
    note = convert(tmp_path / "part-00001-of-00003", tmp_path / "one", Target("hdf5"), log=log)
    assert any("is incomplete: 1 of 3 parts were found" in message for message in log.said)
    assert list(note["incomplete"].values()) == ["1 of 3 parts"]
