"""Every family of networks: kernels agree, packing changes nothing, all is trained, counted, decayed and saved."""

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from tests.reference.batches import NUMBERS, random_batch

from bertwright.model.config import NETWORKS, Kernel
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.saved import load_model, save_model
from bertwright.optim.groups import decays

LENGTHS = [9, 5, 12, 5]
families = pytest.mark.parametrize("family", NETWORKS, ids=lambda network: network.family)
heads = pytest.mark.parametrize("next_sentence", [True, False])


def built(family: Any, next_sentence: bool = True, kernel: Kernel = "padded") -> PreTrainingModel:
    torch.manual_seed(0)
    return PreTrainingModel(family(**NUMBERS, next_sentence=next_sentence), kernel)


@families
@pytest.mark.parametrize("kernel", get_args(Kernel))
def test_hidden_states_are_the_same_with_every_kernel_and_however_sequences_are_packed(
    family: Any, kernel: Kernel
) -> None:
    model, batch = built(family).double().eval(), random_batch(LENGTHS)
    rows = torch.tensor([0, 14, 31], dtype=torch.int32)
    packed = replace(batch, cu_rows=rows, max_row=17)
    with torch.inference_mode():
        expected = model.encoder(batch)
        assert expected.shape == (sum(LENGTHS), NUMBERS["hidden_size"])
        model.encoder.kernel = kernel
        for each in (batch, packed):
            torch.testing.assert_close(model.encoder(each), expected, rtol=0, atol=1e-12)


@families
@pytest.mark.parametrize("kernel", get_args(Kernel))
def test_states_that_are_read_alone_are_those_of_all_with_their_gradients(family: Any, kernel: Kernel) -> None:
    model, batch = built(family, kernel=kernel).double().eval(), random_batch(LENGTHS)
    read_N = torch.tensor([3, 30, 0, 9, 13])
    some, every = model.encoder(batch, read_N), model.encoder(batch).index_select(0, read_N)
    torch.testing.assert_close(some, every, rtol=0, atol=1e-12)
    direction = torch.randn(some.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    weights = [p for name, p in model.named_parameters() if name.startswith(family.family) and "pooler" not in name]
    alone, of_all = (torch.autograd.grad((states * direction).sum(), weights) for states in (some, every))
    for one, other in zip(alone, of_all, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-11)


@families
@heads
def test_every_tensor_is_trained_and_counted(family: Any, next_sentence: bool) -> None:
    model = built(family, next_sentence)
    mlm_PV, nsp_B2 = model(random_batch(LENGTHS))
    assert mlm_PV.shape == (8, NUMBERS["vocab_size"]) and (nsp_B2 is None) != next_sentence
    total = mlm_PV.square().sum() + (0 if nsp_B2 is None else nsp_B2.square().sum())
    total.backward()
    assert [name for name, p in model.named_parameters() if p.grad is None] == []
    assert sum(p.numel() for p in model.parameters()) == model.config.parameters


@families
def test_the_tied_embedding_is_the_encoders(family: Any) -> None:
    model = built(family)
    assert model.encoder.token_weight.shape == (NUMBERS["vocab_size"], NUMBERS["hidden_size"])
    assert all(name.partition(".")[0] in (family.family, "mlm", "nsp") for name in model.state_dict())


@families
def test_the_rule_of_weight_decay_understands_its_names(family: Any) -> None:
    for name, parameter in built(family).named_parameters():
        assert decays(name) == (parameter.dim() > 1), name


@families
@heads
def test_it_is_saved_and_loaded_to_the_bit(family: Any, next_sentence: bool, tmp_path: Path) -> None:
    model = built(family, next_sentence)
    save_model(tmp_path / "model", model.config, model.state_dict())
    loaded = load_model(tmp_path / "model")
    assert type(loaded.config) is type(model.config) and loaded.config == model.config
    assert loaded.state_dict().keys() == model.state_dict().keys()
    assert all(torch.equal(loaded.state_dict()[name], tensor) for name, tensor in model.state_dict().items())
