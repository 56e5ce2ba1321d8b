"""The exams that the files of a folder make, and probes of one word in a sentence."""

from pathlib import Path

import numpy as np
import pytest
from tests.conftest import SHARED
from tests.rows import each_row
from tests.unit.exams.conftest import Folder

from bertwright.core.errors import DataError, RecipeError
from bertwright.exams.folder import exams_in, probes_in
from bertwright.exams.minimal_pairs import MinimalPairs
from bertwright.exams.probe import Probe
from bertwright.model.text_encoder import Encoder

SINGLE = "the cat sat\tcat\t1\tnoun\na dog ran\tran\t2\tverb\nthe dog sat\tdog\t1\tnoun\n"
PAIRS = "sentence_good\tsentence_bad\nthe cat\tcat the\n"


def write(folder: Path, *names: str, text: str = SINGLE) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@each_row(
    "names, found",
    [
        (["en-train.conllu", "en-dev.conllu", "en-test.conllu"], [("en-train.conllu", "en-test.conllu")]),
        (["en-ud-dev.conllu", "en-ud-test.conllu"], [("en-ud-dev.conllu", "en-ud-test.conllu")]),
        (["train.tsv", "devel.tsv"], [("train.tsv", "devel.tsv")]),
        (["case/train.tsv", "case/test.tsv", "tense/train.tsv", "tense/validation.tsv"],
         [("case/train.tsv", "case/test.tsv"), ("tense/train.tsv", "tense/validation.tsv")]),
    ],
)  # fmt: skip
def test_splits_are_found_by_name(names: list[str], found: list[tuple[str, str]], tmp_path: Path) -> None:
    write(tmp_path, *names)
    probes = [probe for probe in probes_in(tmp_path) if isinstance(probe, Probe)]
    assert [(str(p.train.relative_to(tmp_path)), str(p.test.relative_to(tmp_path))) for p in probes] == found


def test_pairs_are_found_by_their_columns(tmp_path: Path) -> None:
    write(tmp_path, "blimp.tsv", text=PAIRS)
    write(tmp_path, "case/train.tsv", "case/test.tsv")
    pairs, probe = exams_in(tmp_path)
    assert (pairs, probe.title) == (MinimalPairs(name="blimp", data=tmp_path / "blimp.tsv"), "case")


def test_labelled_texts_are_no_tagged_words(tmp_path: Path) -> None:
    write(tmp_path, "sst2/train.tsv", "sst2/test.tsv", text="sentence\tlabel\nthe cat sat\t1\na dog ran\t0\n")
    write(tmp_path, "rte/train.jsonl", "rte/test.jsonl", text='{"text": "the cat", "label": "a"}\n')
    write(tmp_path, "bad/train.jsonl", "bad/test.jsonl", text="{")
    write(tmp_path, "pos/train.tsv", "pos/test.tsv", text="the\tDET\ncat\tNOUN\n\na\tDET\ndog\tNOUN\n")
    write(tmp_path, "ner/train.jsonl", "ner/test.jsonl", text='{"tokens": ["the", "cat"], "tags": ["O", "O"]}\n')
    assert [probe.title for probe in probes_in(tmp_path)] == ["ner", "pos"]


def test_exams_of_a_folder_have_different_names(tmp_path: Path) -> None:
    """A table has a row for each name."""
    names = ["ud/en-dev.conllu", "ud/en-test.conllu", "ud/hu-dev.conllu", "ud/hu-test.conllu"]
    write(tmp_path, *names, "case/train.tsv", "case/test.tsv")
    assert [exam.title for exam in probes_in(tmp_path)] == ["case", "ud/en.conllu", "ud/hu.conllu"]
    write(tmp_path, "en/verbs.tsv", "de/verbs.tsv", "nouns.tsv", text=PAIRS)
    assert [exam.title for exam in exams_in(tmp_path)][:3] == ["de/verbs.tsv", "en/verbs.tsv", "nouns"]


@each_row("name", ["readme.txt", "train.tsv"])
def test_folders_without_exams_are_refused(name: str, tmp_path: Path) -> None:
    write(tmp_path, name)
    with pytest.raises(RecipeError, match="has no files to probe with"):
        exams_in(tmp_path)
    with pytest.raises(RecipeError, match="is not a folder"):
        exams_in(tmp_path / "absent")


def test_single_words_have_the_states_of_their_sentences(
    tmp_path: Path, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "train.tsv", "test.tsv")
    monkeypatch.setattr("bertwright.exams.probe._AT_ONCE", 2)
    encoder = Encoder(folder("bert"))
    states = encoder.word_states([["the", "cat", "sat"], ["a", "dog", "ran"], ["the", "dog", "sat"]])[:, [1, 5, 7]]
    given: list[np.ndarray] = []

    def probe(train: tuple[np.ndarray, np.ndarray], test: np.ndarray, classes: int) -> np.ndarray:
        given.append(train[0])
        assert (train[1].tolist(), classes) == ([0, 1, 0], 2)
        return np.array([0, 1, 1])

    monkeypatch.setattr("bertwright.exams.probe.probe", probe)
    scores = list(Probe(train=tmp_path / "train.tsv", test=tmp_path / "test.tsv").take(encoder))
    np.testing.assert_allclose(np.stack(given), states, atol=1e-6)
    assert [score.name for score in scores] == ["layer 0", "layer 1", "layer 2", "layer 3", "best layer"]
    assert {(score.value, score.chance) for score in scores} == {(2 / 3, 2 / 3)}


@each_row(
    "text, message",
    [
        (SINGLE + "the cat sat\tdog\t1\tnoun\n", r"train.tsv:4: word 1 of the sentence is not 'dog'"),
        (SINGLE + "the cat sat\n", r"train.tsv:4 has not the columns sentence, word, its number and tag"),
    ],
)
def test_damaged_rows_are_named(text: str, message: str, tmp_path: Path, folder: Folder) -> None:
    write(tmp_path, "train.tsv", text=text)
    write(tmp_path, "test.tsv")
    with pytest.raises(DataError, match=message):
        list(Probe(train=tmp_path / "train.tsv", test=tmp_path / "test.tsv").take(Encoder(folder("bert"))))


def test_published_morphology_probes_are_found() -> None:
    folder = SHARED / "data" / "eval" / "hu_morph_probes"
    if not folder.is_dir():
        pytest.skip(f"{folder} is absent")
    assert [probe.title for probe in probes_in(folder)] == sorted(
        path.name for path in folder.iterdir() if path.is_dir()
    )
