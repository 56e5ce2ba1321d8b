"""Contract of every format in the tuple of all formats; adding a format there tests it here."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from tests.contract.damage import MAGIC, cuts, facts_or_fault, flipped
from tests.unit.formats.samples import VOCABULARY, everything_of, same, sample

from bertwright.core.errors import DataError
from bertwright.examples.config import ImportedData, MaskingConfig
from bertwright.examples.instances import Instances, concatenate
from bertwright.formats.detect import detect
from bertwright.formats.errors import ShardError
from bertwright.formats.format import FileNumber, Format, Shape, Split
from bertwright.formats.imported.phase_files import find, find_tests
from bertwright.formats.known import FORMATS
from bertwright.formats.target import Target, file_name, folder_name

EXAMPLES, LENGTH, PREDICTIONS = 50, 32, 5
FOUND = sample(EXAMPLES, LENGTH, PREDICTIONS)

of_examples = pytest.mark.parametrize("each", FORMATS, ids=lambda each: each.kind)
variants = pytest.mark.parametrize(
    ("each", "compress"),
    [(each, compress) for each in FORMATS for compress in ((False, True) if each.compressible else (False,))],
    ids=lambda value: value.kind if isinstance(value, Format) else "compressed" if value else "plain",
)


def written(each: Format, folder: Path, blocks: list[Instances], static: bool = True, compress: bool = False) -> Path:
    file = folder / each.file_name(FileNumber("wiki", "training", 0, 1, compress))
    assert each.write(file, iter(blocks), Shape(LENGTH, PREDICTIONS, static), VOCABULARY) == sum(map(len, blocks))
    return file


def read(each: Format, file: Path) -> Instances:
    return concatenate(list(each.read(file, VOCABULARY)))


@variants
def test_what_is_written_is_recognised_and_reads_back(each: Format, compress: bool, tmp_path: Path) -> None:
    for static in (True,) if each.static_only else (True, False):
        (tmp_path / f"{static}").mkdir()
        reads_back(each, tmp_path / f"{static}", static, compress)


def reads_back(each: Format, folder: Path, static: bool, compress: bool) -> None:
    examples = sample(EXAMPLES, LENGTH, PREDICTIONS, masks=static)
    blocks = [examples.take(slice(0, 20)), examples.take(slice(20, 21)), examples.take(slice(21, None))]
    file = written(each, folder, blocks, static, compress)
    (found,) = detect(folder)
    shape = Shape(LENGTH, PREDICTIONS, static)
    assert (found.kind, found.shape, found.files) == (each.kind, shape, (file,))
    assert found.examples in (None, EXAMPLES) and found.trains
    assert not found.documents and not found.damaged and not found.mixed
    assert same(read(each, file), examples)


@of_examples
def test_the_same_examples_make_the_same_file(each: Format, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        written(each, tmp_path / name, [FOUND])
    assert everything_of(tmp_path / "one") == everything_of(tmp_path / "two")


@variants
def test_a_file_that_is_cut_off_is_damaged(each: Format, compress: bool, tmp_path: Path) -> None:
    file = written(each, tmp_path, [FOUND], compress=compress)
    whole = file.read_bytes()
    for cut in cuts(len(whole)):
        file.write_bytes(whole[:cut])
        with pytest.raises(ShardError):
            read(each, file)
        facts_or_fault(file)


@variants
def test_a_file_with_a_damaged_header_is_damaged_or_read(each: Format, compress: bool, tmp_path: Path) -> None:
    file = written(each, tmp_path, [FOUND], compress=compress)
    for at, damaged in flipped(file.read_bytes()):
        file.write_bytes(damaged)
        facts = facts_or_fault(file)
        assert at >= MAGIC or not facts, "the bytes by which it is known are not looked at"
        try:
            list(each.read(file, VOCABULARY))
        except ShardError as error:
            assert error.file == file


@of_examples
def test_damage_at_the_beginning_of_one_file_is_named_beside_whole_ones(each: Format, tmp_path: Path) -> None:
    names = [each.file_name(FileNumber("wiki", "training", number, 2)) for number in range(2)]
    for name in names:
        each.write(tmp_path / name, iter([FOUND]), Shape(LENGTH, PREDICTIONS, True), VOCABULARY)
    whole = (tmp_path / names[1]).read_bytes()
    for damaged in (b"", whole[:1], bytes([whole[0] ^ 0xFF]) + whole[1:]):
        (tmp_path / names[1]).write_bytes(damaged)
        (found,) = detect(tmp_path)
        assert found.files == (tmp_path / names[0],)
        assert [error.file for error in found.damaged] == [tmp_path / names[1]]


@of_examples
def test_a_write_that_fails_leaves_no_file(each: Format, tmp_path: Path) -> None:
    def blocks() -> Iterator[Instances]:
        yield FOUND
        raise RuntimeError("the source ends here")

    with pytest.raises(RuntimeError, match="the source ends here"):
        each.write(tmp_path / "new", blocks(), Shape(LENGTH, PREDICTIONS, True), VOCABULARY)
    assert not list(tmp_path.iterdir())


@of_examples
def test_examples_beyond_the_stated_sizes_are_refused(each: Format, tmp_path: Path) -> None:
    for length, predictions, unit in ((LENGTH - 1, PREDICTIONS, "tokens"), (LENGTH, PREDICTIONS - 1, "predictions")):
        with pytest.raises(DataError, match=f"Set a larger maximum of {unit}"):
            each.write(tmp_path / "new", iter([FOUND]), Shape(length, predictions, True), VOCABULARY)
        assert not list(tmp_path.iterdir())


@of_examples
def test_unknown_sizes_are_not_stated(each: Format, tmp_path: Path) -> None:
    if each.padded:
        return
    each.write(tmp_path / "new", iter([FOUND]), Shape(None, None, True), VOCABULARY)
    assert detect(tmp_path)[0].shape == Shape(None, None, True)


@of_examples
def test_two_phases_are_found_by_length_with_their_test_files(each: Format, tmp_path: Path) -> None:
    target, lengths = Target(each.kind), (LENGTH // 2, LENGTH)
    for length, split in product(lengths, get_args(Split)):
        file = tmp_path / f"seq_{length}" / folder_name(target, split) / file_name(target, "wiki", split, 0, 1)
        file.parent.mkdir(parents=True, exist_ok=True)
        each.write(file, iter([sample(9, length, PREDICTIONS)]), Shape(length, PREDICTIONS, True), VOCABULARY)
    if each.describe:
        each.describe(tmp_path)
    for length in lengths:
        own = tmp_path / f"seq_{length}"
        folders = {split: own / folder_name(target, split) for split in get_args(Split)}
        for path in (tmp_path, own, folders["training"]):
            phase = ImportedData(0, path, length, MaskingConfig(), False, None)
            training = find(phase)
            assert (training.folder, training.shape.length) == (folders["training"], length)
            assert [found.folder for found in find_tests(phase, training)] == [folders["test"]], path


@of_examples
def test_examples_without_masks_are_refused_where_it_says_so(each: Format, tmp_path: Path) -> None:
    without = sample(EXAMPLES, LENGTH, masks=False)
    if not each.static_only:
        written(each, tmp_path, [without], static=False)
        return
    with pytest.raises(DataError, match="masks"):
        written(each, tmp_path, [without], static=False)
    assert not list(tmp_path.iterdir())


@of_examples
def test_examples_without_a_label_are_refused_where_it_says_so(each: Format, tmp_path: Path) -> None:
    unlabelled = replace(FOUND, next_sentence_labels=np.full(EXAMPLES, -1, np.int8))
    if not each.pairs_only:
        assert same(read(each, written(each, tmp_path, [unlabelled])), unlabelled)
        return
    with pytest.raises(DataError, match="with a label"):
        written(each, tmp_path, [unlabelled])
    assert not list(tmp_path.iterdir())


@of_examples
def test_the_vocabulary_is_asked_for_where_it_says_so(each: Format, tmp_path: Path) -> None:
    file = written(each, tmp_path, [FOUND])
    if not each.reads_vocabulary:
        assert same(concatenate(list(each.read(file))), FOUND)
        return
    with pytest.raises(DataError, match="Give the vocabulary"):
        list(each.read(file))
    with pytest.raises(DataError, match="Give the vocabulary"):
        each.write(tmp_path / "new", iter([FOUND]), Shape(LENGTH, PREDICTIONS, True))
    assert [*tmp_path.iterdir()] == [file]


@of_examples
def test_ids_beyond_the_vocabulary_are_refused(each: Format, tmp_path: Path) -> None:
    file = written(each, tmp_path, [FOUND])
    with pytest.raises(ShardError):
        list(each.read(file, VOCABULARY[:100]))


@of_examples
def test_its_names_tell_training_from_test_and_one_file_from_another(each: Format, tmp_path: Path) -> None:
    target = Target(each.kind)
    for split in ("training", "test"):
        for number in range(2):
            file = tmp_path / folder_name(target, split) / file_name(target, "wiki", split, number, 2)
            file.parent.mkdir(exist_ok=True)
            assert not file.exists()
            each.write(file, iter([FOUND]), Shape(LENGTH, PREDICTIONS, True), VOCABULARY)
    before = detect(tmp_path)
    assert sorted((found.trains, len(found.files), found.incomplete) for found in before) == [
        (False, 2, None),
        (True, 2, None),
    ]
    if each.describe:
        each.describe(tmp_path)
    assert detect(tmp_path) == before, "what it writes beside the files is not taken for data"
