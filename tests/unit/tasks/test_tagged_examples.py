"""Examples of tagged words: what a batch holds, compared with the tokenizer of transformers."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.reference.teachers import SPECIALS
from transformers import BertTokenizerFast

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError, DataError, RecipeError
from bertwright.core.log import SILENT
from bertwright.core.stage_context import StageContext
from bertwright.examples.config import ExamplesConfig, ImportedData, MaskingConfig, PlanSet
from bertwright.examples.example_set import Selection
from bertwright.examples.problems import Problems
from bertwright.examples.run_tasks import Inputs
from bertwright.tasks.tagging.config import TaggedFiles, TaggingConfig
from bertwright.tasks.tagging.examples import TaggedExamples
from bertwright.tasks.tagging.run import run
from bertwright.vocab.config import VocabConfig
from bertwright.vocab.run import run as make_vocab

ENTRIES = (*SPECIALS, "ada", "lo", "##vel", "##ace", "met", "bab", "##bage", "in", ".", "x")
SENTENCES = [
    (["Ada", "Lovelace", "met", "Babbage", "."], ["B-PER", "I-PER", "O", "B-PER", "O"]),
    (["in", "\u00ad", "Lovelace"], ["O", "O", "B-LOC"]),
    (["unknownword", "met", "x"], ["V", "O", "O"]),
]
FILES = TaggedFiles(("O", "B-PER", "I-PER", "B-LOC", "I-LOC"), "iob2", "", "")


def write(path: Path, sentences: list[tuple[list[str], list[str]]]) -> None:
    lines = ["\n".join(f"{w}\t{t}" for w, t in zip(*sentence, strict=True)) for sentence in sentences]
    path.write_text("\n\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def vocab(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    folder = tmp_path_factory.mktemp("vocab")
    (folder / "vocab.txt").write_text("\n".join(ENTRIES) + "\n", encoding="utf-8")
    return make_vocab(VocabConfig(file=folder / "vocab.txt", lower_case=True), None, folder / "vocab", SILENT)


@pytest.fixture(scope="module")
def examples(vocab: Artifact, tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    folder = tmp_path_factory.mktemp("tagged")
    (folder / "data").mkdir()
    write(folder / "data" / "train.conll", SENTENCES * 4)
    write(folder / "data" / "dev.conll", SENTENCES)
    data = ImportedData(0, folder / "data", 16, MaskingConfig(), quarantine=False, files=FILES)
    inputs = Inputs(None, vocab, (data,))
    return run(ExamplesConfig(), (PlanSet(length=16),), inputs, StageContext(folder / "examples", SILENT))


def batch(examples: Artifact, length: int) -> tuple[TaggedExamples, list[list[int]], list[tuple[int, int]]]:
    """The held-out set, its sequences, and the position and label of each prediction, in order."""
    found = TaggedExamples.open(examples, "heldout", length)
    made = found.batch(Selection.of(np.arange(found.sizes[0])))
    bounds = made.cu_seqlens.tolist()
    sequences = [made.token_ids[a:b].tolist() for a, b in pairwise(bounds)]
    starts: NDArray[np.int64] = np.searchsorted(made.cu_seqlens, made.prediction_positions, side="right") - 1
    within = made.prediction_positions - made.cu_seqlens[starts]
    return found, sequences, list(zip(within.tolist(), made.labels.tolist(), strict=True))


def test_ids_and_places_are_those_of_transformers(examples: Artifact, vocab: Artifact) -> None:
    theirs = BertTokenizerFast(str(vocab.file("tokenizer.json")), tokenizer_file=str(vocab.file("tokenizer.json")))
    _, sequences, predictions = batch(examples, 16)
    expected: list[tuple[int, int]] = []
    for (words, tags), sequence in zip(SENTENCES, sequences, strict=True):
        # transformers drops a word without pieces, and with it the place of its tag.
        shown = [word if word != "\u00ad" else "[UNK]" for word in words]
        encoding = theirs(shown, is_split_into_words=True)
        assert encoding["input_ids"] == sequence
        first: dict[int, int] = {}
        for place, word in enumerate(encoding.word_ids()):
            if word is not None:
                first.setdefault(word, place)
        expected += [(first[i], FILES.tags.index(tag)) for i, tag in enumerate(tags) if tag in FILES.tags]
    assert predictions == expected


def test_a_long_sentence_is_divided_between_words(examples: Artifact) -> None:
    found, sequences, predictions = batch(examples, 6)
    assert max(map(len, sequences)) <= 6
    assert len(sequences) > len(SENTENCES)
    tags = [FILES.tags.index(tag) for _, tags in SENTENCES for tag in tags if tag in FILES.tags]
    assert [label for _, label in predictions] == tags
    whole = [i for s in batch(examples, 64)[1] for i in s if i not in (2, 3)]
    assert [i for s in sequences for i in s if i not in (2, 3)] == whole
    assert found.lengths(Selection.of(np.arange(found.sizes[0]))).tolist() == list(map(len, sequences))


def test_a_word_longer_than_a_phase_is_cut(examples: Artifact) -> None:
    _, sequences, predictions = batch(examples, 3)
    assert {len(sequence) for sequence in sequences} == {3}
    assert {place for place, _ in predictions} == {1}


def test_counts_name_the_tags_and_the_constant_answer(examples: Artifact) -> None:
    counts = examples.counts
    assert counts["labels"] == list(FILES.tags)
    assert counts["train"]["classes"] == [24, 8, 4, 4, 0]
    assert counts["heldout"]["majority_label"] == "O"
    assert counts["heldout"]["majority"] == pytest.approx(0.6)
    assert counts["heldout"]["repeated"] == 3


def test_only_columns_are_written(examples: Artifact) -> None:
    names = {name for name in examples.names("labelled/") if "train" in name}
    assert names == {f"labelled/train.{name}" for name in ("tokens", "words", "pieces", "labels")}


def test_parts_know_their_sentence(examples: Artifact) -> None:
    found = TaggedExamples.open(examples, "heldout", 6)
    assert found.parts[:, 0].tolist() == sorted(found.parts[:, 0].tolist())
    for sentence, (words, _) in enumerate(SENTENCES):
        own = found.parts[found.parts[:, 0] == sentence]
        assert int((own[:, 2] - own[:, 1]).sum()) == len(words)


def test_other_examples_are_refused(examples: Artifact) -> None:
    from bertwright.examples.labelled.data import Labelled

    with pytest.raises(ArtifactError, match=r"no examples of the kind that train\.objective needs"):
        Labelled.open(examples, "train")


def test_entities_are_converted_and_faults_counted(tmp_path: Path) -> None:
    write(tmp_path / "a.conll", [(["a", "b", "c"], ["I-PER", "I-PER", "V"]), (["d"], ["B-ORG"])] + SENTENCES * 9)
    problems = Problems()
    bioes = TaggedFiles(("O", "B-PER", "E-PER", "S-PER", "S-LOC"), "bioes", "", "")
    sentences = list(bioes.read(tmp_path / "a.conll", problems))
    assert sentences[0].tags == ["B-PER", "E-PER", "V"]
    assert list(problems.sentences())[:2] == [
        "1 tags break the scheme iob2 and are repaired, the first in line 1: 'a' I-PER",
        "11 words have a tag that is not learned, the first in line 1: 'c' V",
    ]


@pytest.mark.parametrize(
    ("tags", "said"),
    [
        (("O", "B-PERSON", "I-PERSON"), "the training words have only O, so there is nothing to learn"),
        (("B-PERSON", "I-PERSON"), "no held-out word has one of the tags B-PERSON, I-PERSON"),
    ],
)
def test_types_by_other_names_are_refused(tags: tuple[str, ...], said: str, vocab: Artifact, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    write(tmp_path / "data" / "train.conll", SENTENCES * 4)
    write(tmp_path / "data" / "dev.conll", SENTENCES)
    files = TaggedFiles(tags, "iob2", "", "")
    data = ImportedData(0, tmp_path / "data", 16, MaskingConfig(), quarantine=False, files=files)
    with pytest.raises(DataError, match=said):
        run(
            ExamplesConfig(),
            (PlanSet(length=16),),
            Inputs(None, vocab, (data,)),
            StageContext(tmp_path / "examples", SILENT),
        )


def test_settings_without_meaning_are_refused() -> None:
    for values, said in (
        ({}, "give exactly one of entities"),
        ({"entities": ("PER",), "tags": ("NOUN",)}, "give exactly one of entities"),
        ({"entities": ("PER", "PER")}, "contains a name twice"),
        ({"tags": ("NOUN",), "scheme": "bioes"}, "leave it out"),
        ({"tags": ("O", "B-PER")}, "give the types of entities"),
    ):
        with pytest.raises(RecipeError, match=said):
            TaggingConfig(**values)
