"""Parity with transformers on copied weights: hidden states, logits, losses and gradients."""

from typing import Any

import pytest
import torch
from tests.reference.kernels import KERNELS
from tests.reference.padded import padded_inputs
from tests.rows import each_row
from tests.unit.model.conftest import MakeBatch
from torch import Tensor

from bertwright.model.bert.network import BertConfig
from bertwright.model.config import Kernel
from bertwright.model.interop.bert import NAMES, hf_config
from bertwright.model.interop.peer import peer_of
from bertwright.model.pretraining import PreTrainingModel
from bertwright.tasks.terms import cross_entropy_sum

transformers = pytest.importorskip("transformers", reason="the extra 'hf' is not installed")

SHAPES = {
    "tiny": {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 512},
    "narrow heads": {"hidden_size": 96, "num_hidden_layers": 3, "num_attention_heads": 12, "intermediate_size": 200},
    "one head": {"hidden_size": 40, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 24},
}
LENGTHS = {"ragged": [33, 5, 64, 5, 17, 1], "full": [48, 48, 48]}


def config_of(shape: str, **more: Any) -> BertConfig:
    sizes = {"vocab_size": 499, "max_position_embeddings": 64, "initializer_range": 0.1}
    return BertConfig(**sizes, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **SHAPES[shape], **more)


def theirs(config: BertConfig, model: PreTrainingModel) -> Any:
    settings = hf_config(config)
    network = getattr(transformers, peer_of(config).architecture)(transformers.BertConfig(**settings))
    tied = {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"}
    missing, unexpected = network.load_state_dict(NAMES.to_theirs(model.state_dict()), strict=False)
    assert set(missing) <= tied and not unexpected
    return network.to(next(model.parameters()).dtype)


@each_row("kernel", KERNELS)
@each_row("lengths", LENGTHS)
@each_row("shape", SHAPES)
@each_row(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_same_network(
    make_batch: MakeBatch, shape: str, lengths: str, kernel: Kernel, dtype: torch.dtype, tolerance: float
) -> None:
    torch.manual_seed(3)
    config = config_of(shape)
    model = PreTrainingModel(config, kernel).to(dtype)
    peer, batch = theirs(config, model), make_batch(config, LENGTHS[lengths])
    inputs, labels, mask = padded_inputs(batch)
    expected = peer(**inputs, labels=labels, next_sentence_label=batch.sequence_labels, output_hidden_states=True)
    expected.loss.backward()
    mlm, nsp = model(batch)
    mlm_loss = cross_entropy_sum(mlm, batch.labels, batch.weights) / len(batch.labels)
    loss = mlm_loss + cross_entropy_sum(nsp, batch.sequence_labels, batch.sequence_weights) / len(nsp)
    loss.backward()

    def close(ours: Tensor, other: Tensor, what: str) -> None:
        torch.testing.assert_close(ours, other, rtol=0, atol=tolerance, msg=lambda m: f"{what}: {m}")

    close(model.bert(batch), expected.hidden_states[-1][mask], "hidden states")
    close(mlm, expected.prediction_logits[labels != -100], "MLM logits")
    close(nsp, expected.seq_relationship_logits, "NSP logits")
    close(loss, expected.loss, "loss")
    gradients = NAMES.to_ours({name: p.grad for name, p in peer.named_parameters()})
    assert gradients.keys() == model.state_dict().keys()
    for name, parameter in model.named_parameters():
        close(parameter.grad, gradients[name], f"gradient of {name}")


@each_row("kernel", KERNELS)
def test_same_network_without_next_sentence(make_batch: MakeBatch, kernel: Kernel) -> None:
    torch.manual_seed(4)
    config = config_of("tiny", next_sentence=False)
    model = PreTrainingModel(config, kernel)
    batch = make_batch(config, LENGTHS["ragged"])
    inputs, labels, _ = padded_inputs(batch)
    expected = theirs(config, model)(**inputs, labels=labels)
    mlm, _ = model(batch)
    torch.testing.assert_close(mlm, expected.logits[labels != -100], rtol=0, atol=1e-5)
    loss = cross_entropy_sum(mlm, batch.labels, batch.weights) / len(batch.labels)
    torch.testing.assert_close(loss, expected.loss, rtol=0, atol=1e-5)


def test_a_saved_peer_comes_back_and_ours_loads_there(tmp_path: Any) -> None:
    """Their folder -> our tensors -> their folder: nothing changes."""
    from safetensors.torch import load_file

    torch.manual_seed(5)
    config = config_of("one head")
    model = PreTrainingModel(config)
    theirs(config, model).save_pretrained(tmp_path)
    state = NAMES.to_ours(load_file(tmp_path / "model.safetensors"))
    assert state.keys() == model.state_dict().keys()
    assert all(torch.equal(state[name], tensor) for name, tensor in model.state_dict().items())
