"""Sentences with a gap: which are asked, what stands in the gap, and the best answers, in any script."""

from typing import Any

import numpy as np
import pytest
import torch
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.examples.store import Store
from bertwright.model.bert.network import BertConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.tasks.pretraining.questions import (
    BEST,
    LONGEST,
    SHORTEST,
    answer,
    cloze_question,
    heldout_questions,
    readable,
)
from bertwright.vocab.entries import SPECIALS
from bertwright.vocab.split import build_tokenizer
from bertwright.vocab.tokenizer import Tokenizer

WORDS = ["híd", "молоко", "עברית", "東", "京", "हिन्दी", "the", "river", "##s", ",", ".", "a", "7"]
ENTRIES = [*SPECIALS, *WORDS]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(build_tokenizer(ENTRIES, lower_case=False, strip_accents=False))


class Sentences(Store):
    """A store of sentences given as entries."""

    def __init__(self, *sentences: str) -> None:
        ids = [[ENTRIES.index(word) for word in sentence.split()] for sentence in sentences]
        given: dict[str, Any] = {
            "tokens": np.array([i for line in ids for i in line], np.uint16),
            "sentences": np.array([len(line) for line in ids], np.uint16),
        }
        for name, value in given.items():
            object.__setattr__(self, name, value)


@each_row("word", ["híd", "молоко", "עברית", "हिन्दी"])
def test_a_gap_is_a_token_in_any_script_and_keeps_its_word(tokenizer: Tokenizer, word: str) -> None:
    question = cloze_question(f"the [MASK={word}] .", tokenizer, 16)
    assert question.gold == word and question.text == "the [MASK] ."
    assert [ENTRIES[i] for i in question.ids] == ["[CLS]", "the", "[MASK]", ".", "[SEP]"]


def test_the_word_of_a_gap_is_written_as_the_vocabulary_writes_it() -> None:
    small = Tokenizer(build_tokenizer(ENTRIES, lower_case=True, strip_accents=False))
    assert cloze_question("the [MASK=Híd] .", small, 16).gold == "híd"
    assert cloze_question("the [MASK=Rivers] .", small, 16).gold == "rivers"


def test_a_gap_may_stand_alone_first_or_last(tokenizer: Tokenizer) -> None:
    for line, words in (("[MASK]", []), ("[MASK] river", ["river"]), ("river[MASK]", ["river"])):
        ids = [ENTRIES[i] for i in cloze_question(line, tokenizer, 16).ids]
        assert [word for word in ids if word not in SPECIALS] == words and ids.count("[MASK]") == 1


def test_a_line_is_read_whole_or_refused_by_its_length(tokenizer: Tokenizer) -> None:
    assert len(cloze_question("[MASK] river river", tokenizer, 5).ids) == 5
    with pytest.raises(RecipeError, match=r"'\[MASK\] river river' has 5 tokens, but the model reads 4. Shorten it"):
        cloze_question("[MASK] river river", tokenizer, 4)


def test_questions_are_about_words_of_two_characters(tokenizer: Tokenizer) -> None:
    """No part of a longer word, no punctuation, number or single letter: a person could not guess those."""
    store = Sentences("a 7 river ##s , a 7 , .", "a 7 the ##s , a 7 , . молоко")
    (question,) = heldout_questions(store, tokenizer, 5, 64)
    assert question.gold == "молоко" and question.source == "held-out"


def test_questions_about_ideographs_are_single(tokenizer: Tokenizer) -> None:
    """BERT sets each apart, so a vocabulary has no longer entry of them."""
    asked = heldout_questions(Sentences("a 7 , 東 . , a", ", . 京 , 7 a ."), tokenizer, 5, 64)
    assert {question.gold for question in asked} == {"東", "京"}


def test_sentences_too_short_too_long_or_unknown_are_left_out(tokenizer: Tokenizer) -> None:
    short, long = "river " * (SHORTEST - 1), "river " * (LONGEST + 1)
    assert heldout_questions(Sentences(short, long, "river [UNK] river river river river"), tokenizer, 5, 64) == []
    fitting = heldout_questions(Sentences(short + "river", long[6:]), tokenizer, 5, 64)
    assert sorted(len(question.ids) for question in fitting) == [SHORTEST + 2, LONGEST + 2]
    assert len(heldout_questions(Sentences(short + "river", long[6:]), tokenizer, 5, 20)) == 1, "of 20 positions"


def test_questions_are_limited_and_reproducible(tokenizer: Tokenizer) -> None:
    store = Sentences(*(["the river , the river ."] * 30))
    asked = heldout_questions(store, tokenizer, 4, 64)
    assert len(asked) == 4 and asked == heldout_questions(store, tokenizer, 4, 64)
    assert heldout_questions(store, tokenizer, 0, 64) == []
    assert heldout_questions(Sentences(), tokenizer, 4, 64) == []


@each_row("training", [True, False])
def test_answers_are_words_and_the_model_is_unchanged(tokenizer: Tokenizer, training: bool) -> None:
    config = BertConfig(
        vocab_size=len(ENTRIES) + 9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8,
        max_position_embeddings=16, hidden_dropout_prob=0.5,
    )  # fmt: skip
    torch.manual_seed(3)
    model = PreTrainingModel(config).train(training)
    with torch.no_grad():
        model.mlm.bias[len(ENTRIES) :] = 50.0  # rows that only pad the embedding
    questions = [cloze_question(line, tokenizer, 16) for line in ("the [MASK=river] .", "[MASK]")]
    answers = answer(model, questions, tokenizer)
    assert model.training is training
    assert answers == answer(model, questions, tokenizer), "no dropout"
    assert [(line["text"], line["gold"]) for line in answers] == [("the [MASK] .", "river"), ("[MASK]", None)]
    for line in answers:
        assert len(line["top"]) == BEST and {guess["token"] for guess in line["top"]} <= set(ENTRIES)
        chances = [guess["probability"] for guess in line["top"]]
        assert chances == sorted(chances, reverse=True)


def test_no_questions_have_no_answers(tokenizer: Tokenizer) -> None:
    assert answer(None, [], tokenizer) == []  # type: ignore[arg-type]


@each_row("text", ["", " ", "東京", "a  b", "( [MASK] )"])
def test_text_without_certain_blanks_stays(text: str) -> None:
    assert readable(text).replace(" ", "") == text.replace(" ", "")
