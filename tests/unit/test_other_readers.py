"""Other programs' own readers on what `convert` writes: they take the training examples, all of them and no others."""

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.reference import lddl, mlperf
from tests.rows import each_row
from tests.unit.formats.references import rows_of

from bertwright.cli.conversion import ConvertOptions, convert
from bertwright.examples.instances import Instances, concatenate
from bertwright.examples.planned import open_heldout
from bertwright.examples.plans import Plans
from bertwright.examples.store import Store
from bertwright.formats.detect import detect
from bertwright.formats.known import format_of
from bertwright.formats.target import Target, shares
from bertwright.pipeline.run_folder import RunFolder
from bertwright.vocab.load import read_vocabulary

datasets = pytest.importorskip("datasets", reason="the library whose folders are written")


@pytest.fixture
def entries(trained: Path) -> list[str]:
    return read_vocabulary(trained / "vocab" / "vocab.txt")


@pytest.fixture
def examples(trained: Path, tmp_path: Path) -> dict[str, list[dict[str, Any]]]:
    """The training and the held-out examples of the run, by way of NVIDIA's HDF5."""
    convert(trained, tmp_path / "plain", Target("hdf5"), ConvertOptions(files=1))
    sets = {found.split: found for found in detect(tmp_path / "plain")}
    return {
        split: with_labels(concatenate(list(format_of("hdf5").read(*found.files)))) for split, found in sets.items()
    }


def with_labels(found: Instances, nothing: int = -1) -> list[dict[str, Any]]:
    """Rows with a label at every position, `nothing` where none is predicted."""
    rows = rows_of(found)
    for row in rows:
        labels = dict(zip(row.pop("positions"), row["labels"], strict=True))
        row["labels"] = [labels.get(i, nothing) for i in range(len(row["ids"]))]
    return rows


def counted(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(str(sorted(row.items())) for row in rows)


@pytest.mark.parametrize("files", [1, 2, 3, 4, 8])
def test_lddls_loader_takes_the_training_folder_and_the_held_out_one(
    trained: Path, entries: list[str], examples: dict[str, list[dict[str, Any]]], tmp_path: Path, files: int
) -> None:
    note = convert(trained, tmp_path / "out", Target("lddl"), ConvertOptions(files=files))
    left_out = 0
    for split, folder in (("training", "train"), ("test", "test")):
        whole = counted(examples[split])
        read = lddl.loaded(tmp_path / "out" / "seq_16" / folder, entries)
        assert not counted(read) - whole
        assert len(read) >= len(examples[split]) - 1
        left_out += len(examples[split]) - len(read)
        count = len(list((tmp_path / "out" / "seq_16" / folder).iterdir()))
        assert count == max(2, files) if split == "training" else count == 2
        assert lddl.per_epoch(tmp_path / "out" / "seq_16" / folder) > len(read) - count
    assert note["left_out"] == left_out
    with pytest.raises(AssertionError, match=r"files of n and n \+ 1 examples"):
        lddl.loaded(tmp_path / "out", entries)  # never trained on together


def test_shares_are_of_n_and_n_plus_one_for_lddl_and_even_for_the_others() -> None:
    for total in range(40):
        for files in range(1, 12):
            sizes = np.diff(shares(Target("lddl"), total, files))
            others = np.diff(shares(Target("tfrecord"), total, files))
            assert others.sum() == total and len(others) == min(files, total) and (others > 0).all()
            assert (sizes > 0).all() and total - 1 <= sizes.sum() <= total
            if total > 2:
                assert sizes.min() + 1 == sizes.max() and len(sizes) <= max(2, files)


def test_mlperfs_sampler_finds_training_and_evaluation_apart(
    trained: Path, examples: dict[str, list[dict[str, Any]]], tmp_path: Path
) -> None:
    convert(trained, tmp_path / "out", Target("hdf5-varlen"), ConvertOptions(files=3))
    folder = tmp_path / "out" / "seq_16"
    files = mlperf.training_files(folder / "train")
    assert [file.name for file in files] == [f"part_0000{number}_of_00003.hdf5" for number in range(3)]
    assert not mlperf.training_files(folder)

    def padded(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        width = {"ids": 0, "segments": 0, "labels": 0}
        made = []
        for row in rows:
            pad = [0] * (16 - len(row["ids"]))
            labels = [max(label, 0) for label in row["labels"]]
            one: dict[str, Any] = {name: [*(labels if name == "labels" else row[name]), *pad] for name in width}
            made.append({**one, "mask": [1] * len(row["ids"]) + pad, "next": row["next"]})
        return made

    assert counted([row for file in files for row in mlperf.read(file, 16)]) == counted(padded(examples["training"]))
    held = mlperf.evaluation(folder / "test", 10, 16)
    assert held == padded(examples["test"])[:10]


@each_row(("total", "most"), [(100, 7), (49, 47), (10, 10), (61, 60), (1009, 1000), (5, 9)])
def test_mlperfs_evaluation_examples_are_those_of_its_script(
    prepared: Any, total: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounded as there: 49 examples, 47 of them: the division of floats and that of integers differ."""
    monkeypatch.setattr(Plans, "sizes", np.array([total]))
    rows = open_heldout(prepared.examples, 16, 2, 0.15, most).rows.tolist()
    assert rows == (mlperf.picked(total, most) if most < total else list(range(total)))


def test_the_library_datasets_opens_what_is_written_both_ways(
    trained: Path, examples: dict[str, list[dict[str, Any]]], tmp_path: Path
) -> None:
    convert(trained, tmp_path / "out", Target("datasets"), ConvertOptions(files=2))
    saved = datasets.load_from_disk(str(tmp_path / "out" / "seq_16"))
    loaded = datasets.load_dataset(str(tmp_path / "out" / "seq_16"), cache_dir=str(tmp_path / "cache"))
    for found in (saved, loaded):
        assert set(found) == {"train", "test"}
        for split, name in (("train", "training"), ("test", "test")):
            rows = [
                {"ids": r["input_ids"], "segments": r["token_type_ids"], "next": r["next_sentence_label"]}
                | {"labels": [max(label, -1) for label in r["labels"]]}
                for r in found[split]
            ]
            assert counted(rows) == counted(examples[name])
    again = tmp_path / "again"
    convert(trained, again, Target("datasets"), ConvertOptions(files=2))
    prints = [
        datasets.load_from_disk(str(folder / "seq_16" / "train"))._fingerprint for folder in (again, tmp_path / "out")
    ]
    assert prints[0] == prints[1] != saved["test"]._fingerprint


@pytest.mark.slow
def test_megatron_core_reads_the_documents(trained: Path, tmp_path: Path) -> None:
    """Its package takes many seconds to import."""
    library = pytest.importorskip("megatron.core.datasets.indexed_dataset", reason="megatron-core is not installed")
    convert(trained, tmp_path / "out", Target("megatron"), ConvertOptions(files=2))
    store = Store.open(RunFolder(trained).artifact("examples"))
    bounds, found = np.cumsum([0, *store.sentences]), []
    for index in sorted((tmp_path / "out").glob("*.idx")):
        read = library.IndexedDataset(str(index.with_suffix("")))
        ends = read.document_indices.tolist()
        sentences = [read[i].tolist() for i in range(len(read))]
        found += [sentences[a:b] for a, b in itertools.pairwise(ends)]
    sentences = [store.tokens[a:b].tolist() for a, b in itertools.pairwise(bounds)]
    assert [sentence for document in found for sentence in document] == sentences
    assert [len(document) for document in found] == np.diff(store.documents).tolist()
