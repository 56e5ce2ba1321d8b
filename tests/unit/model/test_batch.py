from contextlib import nullcontext
from dataclasses import fields

import pytest
import torch
from tests.reference.batch_types import TYPES, types
from tests.rows import each_row
from tests.unit.model.conftest import MakeBatch
from torch import Tensor

from bertwright.examples.batch import Batch
from bertwright.model.batch import host_tensors, packed, packed_sequences
from bertwright.model.bert.network import BertConfig
from bertwright.model.config import Kernel
from bertwright.model.pretraining import PreTrainingModel
from bertwright.tasks.terms import cross_entropy_sum


def test_a_drawn_batch_becomes_tensors_of_the_same_types_and_values(tiny: BertConfig, make_batch: MakeBatch) -> None:
    batch = make_batch(tiny, [4, 9, 5])
    result = packed(batch.map(Tensor.numpy))
    assert result.max_row == 9
    for field in fields(Batch):
        if field.name != "max_row":
            tensor, expected = getattr(result, field.name), getattr(batch, field.name)
            assert tensor.dtype == expected.dtype and torch.equal(tensor, expected), field.name


def test_every_tensor_goes_to_the_device(tiny: BertConfig, make_batch: MakeBatch) -> None:
    moved = packed(make_batch(tiny, [4, 9]).map(Tensor.numpy), "meta")
    assert {getattr(moved, field.name).device.type for field in fields(Batch) if field.name != "max_row"} == {"meta"}
    assert moved.max_row == 9


def test_tensors_are_pinned_for_gpus_and_shared_on_cpus(
    tiny: BertConfig, make_batch: MakeBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = make_batch(tiny, [4, 9]).map(Tensor.numpy)
    pinned: list[Tensor] = []
    monkeypatch.setattr(Tensor, "pin_memory", lambda tensor: (pinned.append(tensor), tensor.clone())[1])
    entered: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "device", lambda device: (entered.append(device), nullcontext())[1])
    arrays = [field.name for field in fields(Batch) if field.name != "max_row"]
    own = host_tensors(drawn, torch.device("cpu"))
    assert not pinned and not entered
    assert all(getattr(own, name).data_ptr() == getattr(drawn, name).ctypes.data for name in arrays)
    theirs = host_tensors(drawn, torch.device("cuda", 1))
    assert len(pinned) == len(arrays) and entered == [torch.device("cuda", 1)]
    assert all(torch.equal(getattr(theirs, name), getattr(own, name)) for name in arrays)


@each_row("kernel", ["sequences", "padded"])
def test_an_empty_batch_gives_loss_and_gradients_of_zero(
    tiny: BertConfig, make_batch: MakeBatch, kernel: Kernel
) -> None:
    batch = make_batch(tiny, [])
    model = PreTrainingModel(tiny, kernel)
    mlm, nsp = model(batch)
    assert mlm.shape == (0, 61) and nsp.shape == (0, 2)
    loss = cross_entropy_sum(mlm, batch.labels, batch.weights)
    loss = loss + cross_entropy_sum(nsp, batch.sequence_labels, batch.sequence_weights)
    loss.backward()
    assert float(loss.detach()) == 0
    assert all(p.grad is None or not p.grad.any() for p in model.parameters())


def test_sequences_of_ids_become_a_batch_with_every_mask_predicted() -> None:
    batch = packed_sequences([([2, 9, 4], [7, 4, 3]), ([2, 5, 3], ())], mask=4)
    assert batch.token_ids.tolist() == [2, 9, 4, 7, 4, 3, 2, 5, 3]
    assert batch.position_ids.tolist() == [0, 1, 2, 3, 4, 5, 0, 1, 2]
    assert batch.segment_ids.tolist() == [0, 0, 0, 1, 1, 1, 0, 0, 0]
    assert (batch.cu_seqlens.tolist(), batch.max_row) == ([0, 6, 9], 6)
    assert batch.prediction_positions.tolist() == [2, 4]
    assert batch.labels.tolist() == [4, 4] and batch.weights.tolist() == [1, 1]
    assert batch.sequence_labels.tolist() == [0, 0] and batch.sequence_weights.tolist() == [1, 1]
    assert types(batch) == TYPES
