"""Scores against a plain restatement in float64 numpy, from the logits alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.unit.model.conftest import MakeBatch, make_batch, tiny

from bertwright.model.batch import PackedBatch
from bertwright.model.bert.network import BertConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.tasks import objective as scores
from bertwright.tasks.objective import Scores
from bertwright.tasks.pretraining.objective import PreTraining

__all__ = ["make_batch", "tiny"]  # fixtures


def score(model: PreTrainingModel, batches: list[PackedBatch]) -> Scores:
    return scores.score(PreTraining(model.config.next_sentence), model, batches)


def restated(
    logits: list[torch.Tensor], labels: list[torch.Tensor], weights: list[torch.Tensor]
) -> tuple[float, float]:
    """Weighted means of -log softmax(logits)[label] and of argmax == label over all rows of all batches."""
    total = loss = right = 0.0
    for batch in zip(logits, labels, weights, strict=True):
        for row, label, weight in zip(*(x.double().numpy() for x in batch), strict=True):
            log_p = row - row.max() - np.log(np.exp(row - row.max()).sum())
            loss -= weight * log_p[int(label)]
            right += weight * (row.argmax() == int(label))
            total += weight
    return loss / total, right / total


@pytest.fixture
def batches(tiny: BertConfig, make_batch: MakeBatch) -> list[PackedBatch]:
    """Two batches of unlike sizes; in the first, one sequence and some predictions count nothing."""
    first, second = make_batch(tiny, [9, 4, 12], seed=1), make_batch(tiny, [30], seed=2)
    weights = torch.tensor([1.0, 1.0, 0.0, 0.0, 1.0, 1.0])
    return [replace(first, weights=weights, sequence_weights=torch.tensor([1.0, 0.0, 1.0])), second]


def test_scores_are_weighted_means_over_everything(tiny: BertConfig, batches: list[PackedBatch]) -> None:
    torch.manual_seed(3)
    model = PreTrainingModel(wide(tiny)).eval()
    with torch.inference_mode():
        mlm, nsp = zip(*(model(batch) for batch in batches), strict=True)
    found = score(model, batches)
    mlm_loss, mlm_accuracy = restated(list(mlm), [b.labels for b in batches], [b.weights for b in batches])
    nsp_labels, nsp_weights = [b.sequence_labels for b in batches], [b.sequence_weights for b in batches]
    nsp_loss, nsp_accuracy = restated(list(nsp), nsp_labels, nsp_weights)
    assert found["mlm_loss"] == pytest.approx(mlm_loss, rel=1e-6)
    assert found["mlm_accuracy"] == pytest.approx(mlm_accuracy)
    assert found["nsp_loss"] == pytest.approx(nsp_loss, rel=1e-6)
    assert found["nsp_accuracy"] == pytest.approx(nsp_accuracy)
    assert (found["predictions"], found["pairs"]) == (6, 3)


def wide(config: BertConfig) -> BertConfig:
    """The same network with larger weights: its guesses differ from row to row."""
    return config.model_copy(update={"initializer_range": 0.5})


def test_right_guesses_are_counted(tiny: BertConfig, batches: list[PackedBatch]) -> None:
    torch.manual_seed(3)
    model = PreTrainingModel(wide(tiny)).eval()
    with torch.inference_mode():
        guesses = [model(batch) for batch in batches]
    best = [
        replace(batch, labels=mlm.argmax(-1), sequence_labels=nsp.argmax(-1))
        for batch, (mlm, nsp) in zip(batches, guesses, strict=True)
    ]
    assert (score(model, best)["mlm_accuracy"], score(model, best)["nsp_accuracy"]) == (1, 1)
    labels = best[1].labels.clone()
    labels[0] = (labels[0] + 1) % tiny.vocab_size
    assert score(model, [best[0], replace(best[1], labels=labels)])["mlm_accuracy"] == pytest.approx(5 / 6)


def test_what_was_not_measured_is_none_and_not_zero(
    tiny: BertConfig, batches: list[PackedBatch], make_batch: MakeBatch
) -> None:
    without_head = score(PreTrainingModel(tiny.model_copy(update={"next_sentence": False})), batches)
    assert without_head.keys() == {"mlm_loss", "mlm_accuracy", "predictions"}
    assert without_head["mlm_loss"] is not None and without_head["predictions"] == 6
    model = PreTrainingModel(tiny)
    single = score(
        model, [replace(batch, sequence_weights=torch.zeros_like(batch.sequence_weights)) for batch in batches]
    )
    assert (single["nsp_loss"], single["nsp_accuracy"], single["pairs"]) == (None, None, 0)
    nothing = score(model, [])
    assert [*nothing.values()] == [None, None, None, None, 0, 0]
    empty = make_batch(tiny, [])
    assert score(model, [empty]) == nothing


def test_scoring_drops_nothing_and_leaves_the_mode(tiny: BertConfig, batches: list[PackedBatch]) -> None:
    model = PreTrainingModel(tiny.model_copy(update={"hidden_dropout_prob": 0.5})).train()
    assert score(model, batches) == score(model, batches)
    assert model.training
