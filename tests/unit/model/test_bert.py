from dataclasses import replace

import torch
from tests.rows import each_row
from tests.unit.model.conftest import MakeBatch
from torch import Tensor

from bertwright.model.batch import PackedBatch
from bertwright.model.bert.network import BertConfig
from bertwright.model.config import Kernel
from bertwright.model.pretraining import PreTrainingModel
from bertwright.tasks.terms import cross_entropy_sum


def loss_and_gradients(model: PreTrainingModel, batch: PackedBatch) -> tuple[Tensor, dict[str, Tensor]]:
    model.zero_grad()
    mlm, nsp = model(batch)
    loss = cross_entropy_sum(mlm, batch.labels, batch.weights)
    if nsp is not None:
        loss = loss + cross_entropy_sum(nsp, batch.sequence_labels, batch.sequence_weights)
    loss.backward()
    return loss.detach(), {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def pad(batch: PackedBatch, tokens: int, sequences: int, predictions: int) -> PackedBatch:
    """The static form: one padding sequence at the tail, then empty ones, and predictions that count nothing."""

    def grown(x: Tensor, size: int, value: int) -> Tensor:
        return torch.cat([x, x.new_full((size - len(x),), value)])

    tail = tokens - len(batch.token_ids)
    return PackedBatch(
        token_ids=grown(batch.token_ids, tokens, 0),
        position_ids=torch.cat([batch.position_ids, torch.arange(tail)]),
        segment_ids=grown(batch.segment_ids, tokens, 0),
        cu_seqlens=grown(batch.cu_seqlens, sequences + 1, tokens),
        cu_rows=grown(batch.cu_rows, sequences + 1, tokens),
        max_row=max(batch.max_row, tail),
        prediction_positions=grown(batch.prediction_positions, predictions, 0),
        labels=grown(batch.labels, predictions, 0),
        weights=grown(batch.weights, predictions, 0),
        sequence_labels=grown(batch.sequence_labels, sequences, 0),
        sequence_weights=grown(batch.sequence_weights, sequences, 0),
    )


@each_row("kernel", ["sequences", "padded"])
def test_static_padding_changes_neither_loss_nor_gradients(
    tiny: BertConfig, make_batch: MakeBatch, kernel: Kernel
) -> None:
    torch.manual_seed(0)
    model = PreTrainingModel(tiny, kernel).double()
    batch = make_batch(tiny, [7, 12, 3, 7])
    loss, gradients = loss_and_gradients(model, batch)
    static_loss, static_gradients = loss_and_gradients(model, pad(batch, tokens=40, sequences=8, predictions=16))
    torch.testing.assert_close(static_loss, loss, rtol=1e-13, atol=0)
    assert gradients.keys() == static_gradients.keys() == dict(model.named_parameters()).keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(static_gradients[name], gradient, rtol=0, atol=1e-13, msg=name)


def test_kernels_train_alike(tiny: BertConfig, make_batch: MakeBatch) -> None:
    torch.manual_seed(0)
    model = PreTrainingModel(tiny).double()
    batch = make_batch(tiny, [5, 30, 5, 11, 1, 30])
    loss, gradients = loss_and_gradients(model, batch)
    model.bert.kernel = "padded"
    padded_loss, padded_gradients = loss_and_gradients(model, batch)
    torch.testing.assert_close(padded_loss, loss, rtol=1e-13, atol=0)
    for name, gradient in gradients.items():
        torch.testing.assert_close(padded_gradients[name], gradient, rtol=0, atol=1e-12, msg=name)


def test_a_sequence_does_not_see_its_neighbours(tiny: BertConfig, make_batch: MakeBatch) -> None:
    model = PreTrainingModel(tiny).double().eval()
    batch = make_batch(tiny, [6, 9, 6])
    other = replace(batch, token_ids=torch.cat([batch.token_ids[:6], (batch.token_ids[6:] + 1) % tiny.vocab_size]))
    first, second = model.bert(batch), model.bert(other)
    torch.testing.assert_close(first[:6], second[:6], rtol=0, atol=1e-13)
    assert (first[6:] - second[6:]).abs().min(dim=1).values.max() > 0


def test_the_seed_decides_the_weights_and_they_start_as_they_should(tiny: BertConfig) -> None:
    def build(seed: int) -> dict[str, Tensor]:
        torch.manual_seed(seed)
        return PreTrainingModel(tiny).state_dict()

    one, again, other = build(1), build(1), build(2)
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert not torch.equal(one["bert.embeddings.token.weight"], other["bert.embeddings.token.weight"])
    for name, weights in one.items():
        if name.endswith("norm.weight"):
            assert torch.equal(weights, torch.ones_like(weights)), name
        elif name.endswith("bias"):
            assert torch.equal(weights, torch.zeros_like(weights)), name
        elif weights.numel() > 500:
            assert abs(float(weights.std()) / 0.02 - 1) < 0.1, name


def test_dropout_works_in_training_only(tiny: BertConfig, make_batch: MakeBatch) -> None:
    config = tiny.model_copy(update={"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1})
    model, batch = PreTrainingModel(config, "padded"), make_batch(tiny, [6, 9])
    assert not torch.equal(model(batch)[0], model(batch)[0])
    model.eval()
    assert torch.equal(model(batch)[0], model(batch)[0])


def test_without_next_sentence_there_is_no_pooler(tiny: BertConfig, make_batch: MakeBatch) -> None:
    model = PreTrainingModel(tiny.model_copy(update={"next_sentence": False}))
    logits, nsp = model(make_batch(tiny, [6, 9]))
    assert logits.shape == (4, 61) and nsp is None
    assert not [name for name in model.state_dict() if "pooler" in name or "nsp" in name]
