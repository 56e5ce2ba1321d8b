import dataclasses
import random
from pathlib import Path

import numpy as np
import pytest
from tests.rows import each_row
from tests.unit.formats.references import rows_of, write_nvidia
from tests.unit.formats.samples import CLS, MASK, SEP, UNK, VOCABULARY, sample, token_documents
from tests.unit.formats.test_megatron import write_new

from bertwright.examples.instances import Instances
from bertwright.formats import lddl, repetitions
from bertwright.formats import statistics as module
from bertwright.formats.datasets import examples as datasets
from bertwright.formats.format import Shape
from bertwright.formats.megatron import write_documents
from bertwright.formats.repetitions import BottomK, row_hashes
from bertwright.formats.statistics import statistics
from bertwright.formats.tfrecord import examples as tfrecord


def folder_of(tmp_path, *shards):
    for number, found in enumerate(shards):
        write_nvidia(tmp_path / f"x_training_{number}.hdf5", rows_of(found), 32, 5)
    return tmp_path


def of(path, *arguments, **named):
    (found,) = statistics(path, *arguments, **named)["sets"]
    return found


def test_numbers_are_those_of_a_plain_count(tmp_path):
    shards = [sample(150, seed=1), sample(100, seed=2)]
    rows = [row for shard in shards for row in rows_of(shard)]
    found = of(folder_of(tmp_path, *shards), VOCABULARY)
    lengths = [len(row["ids"]) for row in rows]
    originals, kept, masked, predictions = [], 0, 0, 0
    for row in rows:
        whole = list(row["ids"])
        for position, label in zip(row["positions"], row["labels"], strict=True):
            kept += row["ids"][position] == label
            masked += row["ids"][position] == MASK
            predictions += 1
            whole[position] = label
        originals += whole
    assert found["examples"] == 250
    assert found["tokens"] == sum(lengths)
    assert found["fill"] == pytest.approx(sum(lengths) / 250 / 32)
    assert found["mask_rate"] == pytest.approx(predictions / sum(lengths))
    assert found["random_next"] == pytest.approx(sum(row["next"] for row in rows) / 250)
    assert found["unknown_rate"] == pytest.approx(originals.count(UNK) / len(originals))
    assert found["masks"] == {
        "mask_id": MASK,
        "mask": pytest.approx(masked / predictions),
        "kept": pytest.approx(kept / predictions),
        "replaced": pytest.approx(1 - (masked + kept) / predictions),
    }
    assert found["lengths"] == {
        f"up to {edge}": sum(edge - 4 < length <= edge for length in lengths) for edge in range(4, 33, 4)
    }
    assert found["faults"] == []
    assert of(tmp_path)["masks"] == found["masks"]  # [MASK] is found without a vocabulary
    assert of(tmp_path, limit=10)["examples"] == 20


def test_a_shard_written_twice_is_named(tmp_path):
    one, two = sample(100, seed=1), sample(100, seed=2)
    order = np.random.default_rng(5).permutation(100)
    (fault, share) = of(folder_of(tmp_path, one, two, one.take(order)))["faults"]
    assert fault == "x_training_2.hdf5 holds the same examples as x_training_0.hdf5"
    assert share == "50.0% of the examples, masks and all, occur in several shards"


def test_a_text_may_come_again_with_other_masks(tmp_path):
    """Several passes over the same text, dealt to shards at random."""
    texts = rows_of(sample(200, masks=False))
    draw = random.Random(3)
    for number in range(2):
        rows = []
        for text in texts:
            positions = sorted(draw.sample(range(1, len(text["ids"]) - 1), 4))
            ids = [MASK if i in positions else number for i, number in enumerate(text["ids"])]
            rows.append(text | {"ids": ids, "positions": positions, "labels": [text["ids"][i] for i in positions]})
        write_nvidia(tmp_path / f"x_training_{number}.hdf5", rows, 32, 5)
    assert of(tmp_path)["faults"] == []


def test_one_random_stream_for_all_shards_is_seen(tmp_path):
    """Equal masks on different texts, in another order, as the published builder makes them."""
    one = sample(100, length=128, predictions=20, seed=1)
    tokens = one.token_ids.copy()
    tokens[tokens > 4] = 504 - tokens[tokens > 4]
    labels = (504 - one.labels).astype(np.int32)
    two = Instances(**(vars(one) | {"token_ids": tokens, "labels": labels}))
    order = np.random.default_rng(5).permutation(100)
    three = sample(100, length=128, predictions=20, seed=3)
    for number, found in enumerate((one, two.take(order), three)):
        write_nvidia(tmp_path / f"x_training_{number}.hdf5", rows_of(found), 128, 20)
    faults = of(tmp_path)["faults"]
    assert len(faults) == 1
    assert faults[0].endswith(
        "of the masks occur in several shards on different texts: all shards used the same random seed"
    )


def test_other_faults_are_reported(tmp_path):
    folder_of(tmp_path, sample(30, seed=1), sample(0), sample(20, seed=2))
    (tmp_path / "x_training_3.hdf5").write_bytes((tmp_path / "x_training_0.hdf5").read_bytes()[:5000])
    faults = of(tmp_path, VOCABULARY[:400], world=4)["faults"]
    assert "x_training_3.hdf5: cannot be read" in faults[0]
    assert faults[1:3] == [
        "x_training_1.hdf5 is empty",
        "3 files for 4 ranks: some ranks would read the same file",
    ]
    assert "ids are outside the vocabulary of 400 entries (the largest is 499)" in faults[3]


def test_examples_without_masks_have_no_mask_rate(tmp_path):
    found = sample(50, masks=False)
    lddl.write(tmp_path / "a.parquet", iter([found]), Shape(None, None, static=False), VOCABULARY)
    numbers = of(tmp_path, VOCABULARY)
    assert (numbers["mask_rate"], numbers["masks"], numbers["examples"]) == (None, None, 50)
    assert numbers["length"] == found.lengths.max()


def test_a_file_damaged_in_the_middle_is_a_fault(tmp_path):
    for number in range(2):
        file = tmp_path / f"data-0000{number}-of-00002.arrow"
        datasets.write(file, iter([sample(50, seed=number)]), Shape(None, None, static=True))
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])
    found = of(tmp_path)
    assert found["examples"] == 50
    assert "data-00001-of-00002.arrow" in found["faults"][0]


def test_row_hashes_know_order_and_boundaries():
    values, cu = np.array([1, 2, 2, 1, 1, 2]), np.array([0, 2, 4, 6, 6])
    one, two, three, empty = row_hashes(values, cu)
    assert one == three != two
    assert empty == 0


def test_a_sketch_keeps_little_and_finds_what_is_equal(monkeypatch):
    monkeypatch.setattr(repetitions, "KEPT", 1000)
    rng = np.random.default_rng(0)
    common = rng.integers(0, 2**64, 2000, np.uint64)
    found = BottomK(4)
    for number in range(4):
        found.begin_file()
        own = rng.integers(0, 2**64, 8000, np.uint64)
        keys = np.concatenate([common, own]) if number in (1, 3) else np.concatenate([own, own[:2000]])
        for start in range(0, 10_000, 777):
            found.add(keys[start : start + 777], np.full(len(keys[start : start + 777]), number, np.uint64))
    sampled, several, differing = found.repeated()
    assert 400 < sampled <= 1000
    assert several == differing
    assert abs(several / sampled - 2000 / 34_000) < 0.03


@each_row("vocabulary", [VOCABULARY, None])
def test_special_ids_of_another_vocabulary_are_seen(tmp_path, vocabulary):
    """They came to light only when a run was to train on them."""
    found = sample(60)

    def faults(**ids):
        tokens = found.token_ids.copy()
        for name, (places, number) in {
            "cls": (found.cu_seqlens[:-1], ids.get("cls")),
            "sep": (found.cu_seqlens[1:] - 1, ids.get("sep")),
            "mask": (found.predicted[tokens[found.predicted] == MASK], ids.get("mask")),
        }.items():
            if name in ids:
                tokens[places] = number
        changed = dataclasses.replace(found, token_ids=tokens)
        tfrecord.write(tmp_path / "part-0", iter([changed]), Shape(32, 5, static=True))
        return statistics(tmp_path, vocabulary)["sets"][0]["faults"]

    assert not faults()
    some = np.where(np.arange(60) < 40, CLS, 9)
    if vocabulary is None:
        assert faults(cls=some) == ["examples begin with 2 different ids, but all should have the id of [CLS]"]
        assert not faults(cls=7, mask=8)
        return
    assert faults(cls=7) == [f"60 examples begin with id 7, not [CLS] ({CLS})"]
    assert faults(cls=some) == [f"20 examples begin with id 9, not [CLS] ({CLS})"]
    assert faults(sep=7) == [f"60 examples end with id 7, not [SEP] ({SEP})"]
    assert faults(mask=7) == [f"id 7 is at most predicted positions, not [MASK] ({MASK})"]


def test_the_split_follows_from_the_folder_too(tmp_path):
    for folder in ("train", "test"):
        (tmp_path / folder).mkdir()
        datasets.write(tmp_path / folder / "data-0.arrow", iter([sample(50)]), Shape(32, 5, static=True))
    found = {Path(each["folder"]).name: each for each in statistics(tmp_path)["sets"]}
    assert {name: each["split"] for name, each in found.items()} == {"train": "training", "test": "test"}
    assert {each["length"] for each in found.values()} == {32}


DOCUMENTS = [[[9] * 8, [10] * 9], [[UNK, 11]], [], [[]], [[12] * 600, [13], [14]]]


def numbers_of(folder, **arguments):
    (found,) = statistics(folder, **arguments)["sets"]
    return found


@each_row("at_once", [1, 1 << 20])
def test_documents_sentences_and_tokens_are_counted(tmp_path, monkeypatch, at_once):
    monkeypatch.setattr(module, "_AT_ONCE", at_once)
    write_new(tmp_path / "a", DOCUMENTS, np.uint16, 8)
    assert numbers_of(tmp_path, vocabulary=VOCABULARY) == {
        "folder": str(tmp_path),
        "kind": "megatron",
        "holds": "documents",
        "files": 1,
        "documents": 5,
        "empty": 2,
        "single": 2,
        "sentences": 7,
        "tokens": 621,
        "lengths": {
            "up to 8": 5, "up to 16": 1, "up to 32": 0, "up to 64": 0, "up to 128": 0, "up to 256": 0, "up to 512": 0,
            "longer": 1,
        },
        "largest_id": 14,
        "unknown_rate": 1 / 621,
        "faults": [],
    }  # fmt: skip
    some = numbers_of(tmp_path, limit=2)
    assert (some["documents"], some["tokens"], some["unknown_rate"]) == (2, 19, None)


def test_faults_are_named(tmp_path):
    for number in range(2):
        write_documents(tmp_path / f"{number}.idx", [token_documents([[[20 + i] * 9] for i in range(9)])], 500)
    write_documents(tmp_path / "2.idx", [token_documents([[[600, 601, MASK], [MASK]]])], 700)
    write_new(tmp_path / "3", [[[5]], [[6, -7]], [[8]]], np.int32, 4)
    assert [fault.replace(str(tmp_path), "") for fault in numbers_of(tmp_path, vocabulary=VOCABULARY)["faults"]] == [
        "damaged: /3.bin: a document from 0 to 2 has a negative id. Make or fetch this file again, or skip it with "
        "the option quarantine.",
        "2 ids are outside the vocabulary of 500 entries (the largest is 601)",
        "90.0% of the documents occur in several files",
        "[MASK] occurs 2 times",
    ]
