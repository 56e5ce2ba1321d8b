"""`Encoder.classify` of pairs and `Encoder.tag` give what training computes from the same texts."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.reference.teachers import SPECIALS

from bertwright.core.errors import RecipeError
from bertwright.examples.example_set import Selection
from bertwright.examples.labelled.data import Labelled, LabelledExamples
from bertwright.examples.vocabulary import Vocabulary
from bertwright.model.batch import packed
from bertwright.model.bert.config import BertModelConfig
from bertwright.model.classifier import Classifier
from bertwright.model.family import Head
from bertwright.model.text_encoder import Encoder
from bertwright.tasks.choice.examples import ChoiceColumns, ChoiceExamples
from bertwright.tasks.tagging.examples import TaggedColumns, TaggedExamples
from bertwright.vocab.split import build_tokenizer
from bertwright.vocab.tokenizer import Tokenizer

ENTRIES = [*SPECIALS, "a", "b", "##c", "d"]
POSITIONS = 8


def encoder(head: Head, labels: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> Encoder:
    """An encoder of random weights that takes eight tokens."""
    torch.manual_seed(7)
    config = BertModelConfig(size="tiny", max_positions=POSITIONS, initializer_range=0.3)
    model = Classifier(config.resolve(len(ENTRIES), False, labels, head)).eval()
    tokenizer = Tokenizer(build_tokenizer(ENTRIES, lower_case=True, strip_accents=True))
    monkeypatch.setattr("bertwright.model.text_encoder.load_model", lambda path, device: model)
    monkeypatch.setattr("bertwright.model.text_encoder.load_tokenizer", lambda path: tokenizer)
    return Encoder(Path("anywhere"))


def vocabulary() -> Vocabulary:
    ids = range(len(SPECIALS))
    return Vocabulary("", len(ENTRIES), *ids, unused=(), continues=(ENTRIES.index("##c"),))


PAIRS = [("a b", "d"), ("a bc a bc a", "d d"), ("d", "bc bc bc bc"), ("a a a a", "d d d d"), ("a", "")]


def test_pairs_are_cut_and_classified_as_in_training(monkeypatch: pytest.MonkeyPatch) -> None:
    one = encoder("sequence", ("no", "yes"), monkeypatch)
    flat, counts = one.tokenizer.encode_texts([text for pair in PAIRS for text in pair])
    first, second = counts.reshape(-1, 2).astype(np.uint32).T
    labelled = Labelled(flat, first, second, np.zeros(len(PAIRS), np.float32))
    begins = np.cumsum(labelled.lengths) - labelled.lengths
    examples = LabelledExamples(labelled, begins, POSITIONS, True, 2, vocabulary())
    with torch.inference_mode():
        wanted = one.model(packed(examples.batch(Selection.of(np.arange(len(PAIRS)))))).softmax(-1)
    found = one.classify(PAIRS, batch=2)
    np.testing.assert_allclose([[each["no"], each["yes"]] for each in found], wanted.numpy(), atol=1e-5)


QUESTIONS = [("a b", ["d", "bc bc"]), ("a bc a bc a", ["d d d d d d", "a", "\u00ad", "bc"]), ("", ["a", "d"])]


def test_choices_are_scored_as_in_training(monkeypatch: pytest.MonkeyPatch) -> None:
    one = encoder("choice", ("choice",), monkeypatch)
    texts = [text for context, choices in QUESTIONS for text in (context, *choices)]
    flat, counts = one.tokenizer.encode_texts(texts)
    numbers = np.array([len(choices) for _, choices in QUESTIONS], np.uint16)
    contexts = np.cumsum(numbers + 1) - numbers - 1
    pieces = counts.astype(np.uint32)
    columns = ChoiceColumns(flat, pieces[contexts], numbers, np.delete(pieces, contexts), np.zeros(3, np.uint16))
    batch = packed(ChoiceExamples(columns, POSITIONS, vocabulary()).batch(Selection.of(np.arange(3))))
    with torch.inference_mode():
        logits = one.model(batch)[:, 0].split(numbers.tolist())
    for found, wanted in zip(one.choose(QUESTIONS, batch=2), logits, strict=True):
        np.testing.assert_allclose(found, wanted.softmax(-1).numpy(), atol=1e-5)
    assert one.choose([]) == []


SENTENCES = [["a", "bc", "d"], ["a", "bc", "bc", "a", "bc", "d", "a"], [], ["\u00ad", "a"], ["a" + "c" * 9, "d"]]


def test_words_are_tagged_as_in_training(monkeypatch: pytest.MonkeyPatch) -> None:
    one = encoder("token", ("X", "Y", "Z"), monkeypatch)
    found = one.tag(SENTENCES, batch=2)
    assert [len(tags) for tags in found] == [len(sentence) for sentence in SENTENCES]
    words = [word for sentence in SENTENCES for word in sentence]
    flat, pieces = one.tokenizer.encode_texts(words)
    flat = np.insert(flat, np.cumsum(pieces)[pieces == 0], one.tokenizer.ids("[UNK]"))
    counts = np.array([len(sentence) for sentence in SENTENCES], np.uint32)
    columns = TaggedColumns(flat, counts, np.maximum(pieces, 1).astype(np.uint16), np.zeros(len(words), np.int16))
    examples = TaggedExamples(columns, POSITIONS, vocabulary())
    with torch.inference_mode():
        logits = one.model(packed(examples.batch(Selection.of(np.arange(sum(examples.sizes))))))
    best = logits.softmax(-1).max(-1)
    labels = [one.model.config.labels[i] for i in best.indices.tolist()]
    assert [tag for tags in found for tag, _ in tags] == labels
    np.testing.assert_allclose([p for tags in found for _, p in tags], best.values.numpy(), atol=1e-5)


def test_other_models_neither_classify_nor_tag(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RecipeError, match="does not tag words"):
        encoder("sequence", ("no", "yes"), monkeypatch).tag([["a"]])
    with pytest.raises(RecipeError, match="no classes of texts"):
        encoder("token", ("X", "Y"), monkeypatch).classify(["a"])
    with pytest.raises(RecipeError, match="does not choose answers"):
        encoder("sequence", ("no", "yes"), monkeypatch).choose([("a", ["a", "d"])])
    with pytest.raises(RecipeError, match="give a list of texts"):
        encoder("choice", ("choice",), monkeypatch).choose([("a", "d")])
    with pytest.raises(RecipeError, match="give a list of words"):
        encoder("token", ("X", "Y"), monkeypatch).tag(["a b"])
