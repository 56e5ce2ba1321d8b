from dataclasses import fields
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tests.unit.model.conftest import MakeBatch

from bertwright.model.attention import Kernel
from bertwright.model.batch import PackedBatch, packed, packed_sequences
from bertwright.model.bert import BertForPreTraining
from bertwright.model.config import BertConfig
from bertwright.model.losses import mlm_loss_sum, nsp_loss_sum


def as_arrays(batch: PackedBatch) -> SimpleNamespace:
    names = [field.name for field in fields(batch) if field.name != "max_row"]
    return SimpleNamespace(**{name: getattr(batch, name).numpy() for name in names})


def test_packed_restores_types_and_measures_the_longest_sequence(tiny: BertConfig, make_batch: MakeBatch) -> None:
    batch = make_batch(tiny, [4, 9, 5])
    arrays = as_arrays(batch)
    arrays.token_ids = arrays.token_ids.astype(np.uint16)
    arrays.token_ids.flags.writeable = False  # as memory-mapped stores give them
    result = packed(arrays)
    assert result.max_row == 9
    for field in fields(batch):
        if field.name != "max_row":
            tensor, expected = getattr(result, field.name), getattr(batch, field.name)
            assert tensor.dtype == expected.dtype and torch.equal(tensor, expected), field.name


@pytest.mark.parametrize("kernel", ["sequences", "padded"])
def test_an_empty_batch_gives_loss_and_gradients_of_zero(tiny: BertConfig, kernel: Kernel) -> None:
    names = [field.name for field in fields(PackedBatch) if field.name not in ("max_row", "cu_seqlens", "cu_rows")]
    bounds = {"cu_seqlens": np.array([0]), "cu_rows": np.array([0])}
    batch = packed(SimpleNamespace(**bounds, **{name: np.array([]) for name in names}))
    model = BertForPreTraining(tiny, kernel)
    mlm, nsp = model(batch)
    assert mlm.shape == (0, 61) and nsp.shape == (0, 2)
    loss = mlm_loss_sum(mlm, batch.labels, batch.weights)
    loss = loss + nsp_loss_sum(nsp, batch.next_sentence_labels, batch.sequence_weights)
    loss.backward()
    assert float(loss.detach()) == 0
    assert all(p.grad is None or not p.grad.any() for p in model.parameters())


def test_to_moves_every_tensor(tiny: BertConfig, make_batch: MakeBatch) -> None:
    moved = make_batch(tiny, [4, 9]).to("meta")
    assert {getattr(moved, field.name).device.type for field in fields(moved) if field.name != "max_row"} == {"meta"}
    assert moved.max_row == 9


def test_sequences_of_ids_become_a_batch_with_every_mask_predicted() -> None:
    batch = packed_sequences([([2, 9, 4], [7, 4, 3]), ([2, 5, 3], ())], mask=4)
    assert batch.token_ids.tolist() == [2, 9, 4, 7, 4, 3, 2, 5, 3]
    assert batch.position_ids.tolist() == [0, 1, 2, 3, 4, 5, 0, 1, 2]
    assert batch.segment_ids.tolist() == [0, 0, 0, 1, 1, 1, 0, 0, 0]
    assert (batch.cu_seqlens.tolist(), batch.max_row) == ([0, 6, 9], 6)
    assert batch.prediction_positions.tolist() == [2, 4]
    assert batch.labels.tolist() == [4, 4] and batch.weights.tolist() == [1, 1]
    assert batch.next_sentence_labels.tolist() == [0, 0] and batch.sequence_weights.tolist() == [1, 1]
    repacked = packed(as_arrays(batch))
    for field in fields(batch):
        if field.name != "max_row":
            assert getattr(repacked, field.name).dtype == getattr(batch, field.name).dtype, field.name
