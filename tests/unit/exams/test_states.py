"""The states of words, pseudo-likelihoods and masked words against transformers' own forward passes."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.unit.exams.conftest import ENTRIES, Folder
from transformers import AutoModel, AutoModelForMaskedLM

from bertwright.exams.masked_words import masked_scores
from bertwright.exams.pseudo_likelihood import pseudo_likelihoods
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
