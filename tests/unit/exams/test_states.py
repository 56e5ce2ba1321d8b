"""The states of words, pseudo-likelihoods and masked words against transformers' own forward passes."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.reference.teachers import write_stock
from tests.unit.exams.conftest import ENTRIES, Folder, config_of
from transformers import AutoModel, AutoModelForMaskedLM, AutoModelForPreTraining

from bertwright.exams.masked_words import masked_scores
from bertwright.exams.next_sentence import answers
from bertwright.exams.perplexity import Perplexity
from bertwright.exams.pseudo_likelihood import Phrase, phrase_likelihoods, pseudo_likelihoods
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.text_encoder import Encoder

SENTENCES = [["the", "cats", "sat"], ["a", "dogting", "ran", "on", "mat", "."], ["house"], ["unheard", "cat"]]
IDS = [[5, 6, 10, 8], [15, 7, 11, 9, 12, 13, 16], [14], [1, 6]]
LAST = [[0, 2, 3], [0, 2, 3, 4, 5, 6], [0], [0, 1]]
"""The index of each word's last piece."""
FAMILIES = ("bert", "distilbert", "modern")


def with_ends(ids: list[int]) -> torch.Tensor:
    return torch.tensor([[2, *ids, 3]])


@pytest.mark.parametrize("family", FAMILIES)
def test_word_states_are_those_of_transformers(family: str, folder: Folder) -> None:
    their = AutoModel.from_pretrained(folder(family), attn_implementation="eager").eval()
    states = Encoder(folder(family)).word_states(SENTENCES)
    with torch.inference_mode():
        outputs = [their(with_ends(ids), output_hidden_states=True) for ids in IDS]
    for layer in range(4):
        wanted = [each.hidden_states[layer][0, 1:][places].numpy() for each, places in zip(outputs, LAST, strict=True)]
        np.testing.assert_allclose(states[layer], np.concatenate(wanted), atol=2e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_pseudo_likelihoods_are_those_of_transformers(family: str, folder: Folder) -> None:
    their = AutoModelForMaskedLM.from_pretrained(folder(family), attn_implementation="eager").eval()
    found = pseudo_likelihoods(Encoder(folder(family)), [" ".join(words) for words in SENTENCES])
    for number, ids in enumerate(IDS):
        total = 0.0
        for place, piece in enumerate(ids):
            masked, end = list(ids), place + 1
            while end < len(ids) and ENTRIES[ids[end]].startswith("##"):
                end += 1
            masked[place:end] = [4] * (end - place)
            with torch.inference_mode():
                total += float(their(with_ends(masked)).logits[0, place + 1].log_softmax(-1)[piece])
        assert found.sums[number] == pytest.approx(total, abs=1e-3)
    assert found.pieces.tolist() == [len(ids) for ids in IDS]


@pytest.mark.parametrize("family", FAMILIES)
def test_phrases_are_scored_as_by_transformers(family: str, folder: Folder) -> None:
    """A plain loop: one forward pass for each piece of the phrase, the later ones masked."""
    their = AutoModelForMaskedLM.from_pretrained(folder(family), attn_implementation="eager").eval()
    phrases = [Phrase("the", "cats sat", "on a mat"), Phrase("", "dogting", "ran"), Phrase("a house", "on", "")]
    parts = [([5], [6, 10, 8], [12, 15, 13]), ([], [7, 11], [9]), ([15, 14], [12], [])]
    found = phrase_likelihoods(Encoder(folder(family)), phrases)
    for number, (before, text, after) in enumerate(parts):
        total = 0.0
        for place, piece in enumerate(text):
            masked = [*before, *text[:place], *[4] * (len(text) - place), *after]
            with torch.inference_mode():
                log_p = their(with_ends(masked)).logits[0, 1 + len(before) + place].log_softmax(-1)
            total += float(log_p[piece])
        assert found.sums[number] == pytest.approx(total, abs=1e-3)
    assert found.pieces.tolist() == [3, 2, 1]


def test_a_long_sentence_keeps_its_phrase(folder: Folder) -> None:
    encoder = Encoder(folder("bert"))
    room = encoder.model.config.max_position_embeddings - 2
    long = " ".join(["house"] * 60)
    found = phrase_likelihoods(encoder, [Phrase(long, "cat", long), Phrase("", "cat", long), Phrase(long, "cat", "")])
    half = " ".join(["house"] * (room // 2))
    rest = " ".join(["house"] * (room - 1 - room // 2))
    short = phrase_likelihoods(encoder, [Phrase(rest, "cat", half), Phrase("", "cat", f"{half} {rest}")])
    assert found.pieces.tolist() == [1, 1, 1]
    assert found.sums[0] == pytest.approx(short.sums[0], abs=1e-4)
    assert found.sums[1] == pytest.approx(short.sums[1], abs=1e-4)


def test_next_sentences_are_those_of_transformers(tmp_path: Path) -> None:
    torch.manual_seed(3)
    path = write_stock(tmp_path / "bert", PreTrainingModel(config_of("bert", next_sentence=True)), ENTRIES)
    (path / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    their = AutoModelForPreTraining.from_pretrained(path, attn_implementation="eager").eval()
    texts = [" ".join(words) for words in SENTENCES]
    pairs = [(a, b) for a in texts for b in texts]
    found = answers(Encoder(path), pairs)
    wanted = []
    for a in IDS:
        for b in IDS:
            ids, segments = [2, *a, 3, *b, 3], [*[0] * (len(a) + 2), *[1] * (len(b) + 1)]
            with torch.inference_mode():
                logits = their(torch.tensor([ids]), token_type_ids=torch.tensor([segments])).seq_relationship_logits
            wanted.append(int(logits.argmax()) == 0)
    assert found.tolist() == wanted
    assert 0 < sum(wanted) < len(wanted)


def test_perplexities_follow_from_likelihoods(folder: Folder) -> None:
    encoder, texts = Encoder(folder("bert")), [" ".join(words) for words in SENTENCES]
    of_piece, of_word = Perplexity(texts=tuple(texts)).take(encoder)
    total = -float(pseudo_likelihoods(encoder, texts).sums.sum())
    assert of_piece.value == pytest.approx(np.exp(total / sum(map(len, IDS))))
    assert of_word.value == pytest.approx(np.exp(total / sum(map(len, SENTENCES))))
    assert of_piece.interval is not None
    assert of_piece.interval[0] < of_piece.value < of_piece.interval[1]


def test_a_literal_mask_in_a_sentence_is_scored_as_a_piece(folder: Folder) -> None:
    found = pseudo_likelihoods(Encoder(folder("bert")), ["[MASK] cat"])
    assert found.pieces.tolist() == [2]
    assert np.isfinite(found.sums).all()


def test_masked_words_are_counted_by_what_is_shown(folder: Folder) -> None:
    encoder = Encoder(folder("bert"))
    texts = [f"the cat sat on a mat . the word{i % 43} ran" for i in range(400)]
    scores = masked_scores(encoder, texts)
    # 15 % of ten pieces, [CLS] and [SEP], rounded as in training.
    assert scores["predictions"] == 400 * 2
    assert scores == masked_scores(encoder, texts)
    # With random weights the loss is not below that of guessing among all entries.
    assert np.log(len(ENTRIES)) - 0.1 < scores["mlm_loss"] < np.log(len(ENTRIES)) + 1
    assert set(scores) >= {"masked_loss", "random_loss", "kept_loss", "bits_per_character", "commonest_answer"}


def test_masked_scores_agree_with_their_definition(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A head that answers with the shown piece is always right where it is kept, and never where it is masked."""
    encoder = Encoder(folder("bert"))

    def copy(batch: object) -> tuple[torch.Tensor, None]:
        shown = batch.token_ids[batch.prediction_positions]  # type: ignore[attr-defined]
        return torch.nn.functional.one_hot(shown, len(ENTRIES)).float() * 50, None

    monkeypatch.setattr(encoder.model, "forward", copy)
    scores = masked_scores(encoder, ["the cat sat on a mat . the dog ran"] * 300)
    assert scores["kept_accuracy"] == 1.0
    assert scores["masked_accuracy"] == 0.0
    shares: NDArray[np.float64] = np.array([scores["kept_accuracy"], scores["mlm_accuracy"]])
    assert shares[1] == pytest.approx(0.1, abs=0.05)
    assert scores["commonest_answer"] == pytest.approx(0.8, abs=0.08)
