"""Parity of ModernBERT and DistilBERT with transformers on copied weights: states, logits, losses, every gradient."""

from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.reference.batches import random_batch
from tests.reference.kernels import KERNELS
from tests.reference.padded import padded_inputs
from tests.rows import each_row
from torch import Tensor
from torch.nn.functional import cross_entropy

from bertwright.model.config import Kernel, NetworkConfig
from bertwright.model.distilbert.network import DistilBertConfig
from bertwright.model.interop.peer import peer_of
from bertwright.model.modern.network import ModernConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.tasks.terms import cross_entropy_sum

pytestmark = pytest.mark.heavy

transformers = pytest.importorskip("transformers", reason="the extra 'hf' is not installed")

WIDE = {"vocab_size": 211, "max_position_embeddings": 128, "initializer_range": 0.1}
SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "cls_token_id": 1, "eos_token_id": 2, "sep_token_id": 2}


def modern(**more: Any) -> ModernConfig:
    numbers = {"hidden_size": 48, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 56}
    return ModernConfig(**{**WIDE, **numbers, "local_attention": 20, **more})


def distilbert(**more: Any) -> DistilBertConfig:
    numbers = {"dim": 48, "n_layers": 3, "n_heads": 4, "hidden_dim": 56, "dropout": 0.0, "attention_dropout": 0.0}
    return DistilBertConfig(**{**WIDE, **numbers, **more})


NETWORKS: dict[str, NetworkConfig] = {
    "modern": modern(),
    "modern, odd window": modern(local_attention=17, global_attn_every_n_layers=2, num_attention_heads=1),
    "modern, all global": modern(global_attn_every_n_layers=1, num_hidden_layers=2),
    "modern, the first alone global": modern(global_attn_every_n_layers=9, global_rope_theta=500.0),
    "modern, without decoder bias": modern(decoder_bias=False, local_rope_theta=300.0, norm_eps=1e-3),
    "distilbert": distilbert(),
    "distilbert, one wide head": distilbert(n_layers=1, n_heads=1, hidden_dim=200),
}
LENGTHS = {"ragged": [33, 5, 120, 5, 12, 1], "full": [48, 48, 48]}
"""Longer than the windows, and shorter."""


@pytest.fixture(autouse=True)
def exact_rotation(monkeypatch: pytest.MonkeyPatch) -> None:
    """transformers turns queries and keys in float32, also in a float64 network: here in the type that they have."""
    from transformers.models.modernbert import modeling_modernbert

    stock = modeling_modernbert.apply_rotary_pos_emb

    def both(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1) -> tuple[Tensor, Tensor]:
        if q.dtype != torch.float64:
            return stock(q, k, cos, sin, unsqueeze_dim=unsqueeze_dim)  # type: ignore[no-any-return]
        cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
        half = modeling_modernbert.rotate_half
        return q * cos + half(q) * sin, k * cos + half(k) * sin

    monkeypatch.setattr(modeling_modernbert, "apply_rotary_pos_emb", both)


def theirs(config: NetworkConfig, model: PreTrainingModel) -> Any:
    """Their network with our weights, in our type."""
    peer = peer_of(config)
    ids = SPECIAL if isinstance(config, ModernConfig) else {"pad_token_id": 0}
    settings = transformers.AutoConfig.for_model(**peer.config, **ids)
    network = getattr(transformers, peer.architecture)(settings)
    missing, unexpected = network.load_state_dict(peer.names.to_theirs(model.state_dict()), strict=False)
    assert set(missing) <= set(peer.names.tied) and not unexpected
    return network.to(next(model.parameters()).dtype)


@each_row("packed", [False, True])
@each_row("kernel", KERNELS)
@each_row("lengths", LENGTHS)
@each_row("name", NETWORKS)
@each_row(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_same_network(
    name: str, lengths: str, kernel: Kernel, packed: bool, dtype: torch.dtype, tolerance: float
) -> None:
    torch.manual_seed(3)
    config, batch = NETWORKS[name], random_batch(LENGTHS[lengths], 1, 211)
    model = PreTrainingModel(config, kernel).to(dtype)
    peer, names = theirs(config, model), peer_of(config).names
    inputs, labels, mask = padded_inputs(batch, segments=False)
    expected = peer(**inputs, labels=labels, output_hidden_states=True)
    # Theirs is computed in float32, whatever the network is.
    exact = cross_entropy(expected.logits.flatten(0, 1), labels.flatten())
    their_loss = exact if dtype == torch.float64 else expected.loss
    their_loss.backward()
    if packed:  # two sequences a row
        bounds = [0, *accumulate(LENGTHS[lengths])]
        rows = sorted({*bounds[::2], bounds[-1]})
        longest = max(b - a for a, b in pairwise(rows))
        batch = replace(batch, cu_rows=torch.tensor(rows, dtype=torch.int32), max_row=longest)
    mlm, nsp = model(batch)
    assert nsp is None
    loss = cross_entropy_sum(mlm, batch.labels, batch.weights) / len(batch.labels)
    loss.backward()

    def close(ours: Tensor, other: Tensor, what: str) -> None:
        torch.testing.assert_close(ours, other, rtol=0, atol=tolerance, msg=lambda m: f"{what}: {m}")

    last = peer.base_model(**inputs).last_hidden_state
    close(model.encoder(batch), last[mask], "hidden states")
    close(mlm, expected.logits[labels != -100], "MLM logits")
    close(loss, their_loss, "loss")
    gradients = names.to_ours({name: p.grad for name, p in peer.named_parameters()})
    assert gradients.keys() == model.state_dict().keys()
    for parameter_name, parameter in model.named_parameters():
        close(parameter.grad, gradients[parameter_name], f"gradient of {parameter_name}")


@each_row("name", ["modern", "modern, without decoder bias", "distilbert"])
def test_a_saved_peer_comes_back(name: str, tmp_path: Path) -> None:
    """Our tensors -> their folder -> our tensors: nothing changes."""
    from safetensors.torch import load_file

    config = NETWORKS[name]
    model = PreTrainingModel(config)
    theirs(config, model).save_pretrained(tmp_path)
    state = peer_of(config).names.to_ours(load_file(tmp_path / "model.safetensors"))
    assert state.keys() == model.state_dict().keys()
    assert all(torch.equal(state[name], tensor) for name, tensor in model.state_dict().items())


@each_row("name", ["modern", "distilbert"])
def test_segments_are_not_read(name: str) -> None:
    model, batch = PreTrainingModel(NETWORKS[name]).eval(), random_batch([9, 20], 1, 211)
    other = replace(batch, segment_ids=1 - batch.segment_ids)
    with torch.inference_mode():
        assert torch.equal(model(batch)[0], model(other)[0])


def test_dropout_stands_where_theirs_does() -> None:
    """Which modules drop, with which probability: their training mode draws other numbers than ours."""
    config = modern(embedding_dropout=0.1, mlp_dropout=0.2, attention_dropout=0.3)
    model = PreTrainingModel(config)
    peer = theirs(config, model)
    assert peer.model.embeddings.drop.p == model.encoder.embeddings.dropout.p == 0.1
    for their, our in zip(peer.model.layers, model.encoder.layers, strict=True):
        assert their.mlp.drop.p == our.feed_forward.dropout.p == 0.2
        assert their.attn.out_drop.p == our.attention.dropout.p == 0.3
        assert their.attn.attention_dropout == our.attention.attention_dropout == 0.3
    small = distilbert(dropout=0.1, attention_dropout=0.2)
    model = PreTrainingModel(small)
    peer = theirs(small, model)
    assert peer.distilbert.embeddings.dropout.p == model.encoder.embeddings.dropout.p == 0.1
    for their, our in zip(peer.distilbert.transformer.layer, model.encoder.layers, strict=True):
        assert their.ffn.dropout.p == our.feed_forward.dropout.p == 0.1
        assert their.attention.dropout.p == our.attention.attention_dropout == 0.2
        assert our.attention.dropout.p == 0.0, "theirs has none behind attention"


def test_first_weights_are_drawn_as_theirs() -> None:
    """The spread and the furthest value of every tensor; their embedding's is the decoder's, too."""
    config = modern(vocab_size=2000, hidden_size=96, intermediate_size=144, initializer_range=0.05)
    torch.manual_seed(1)
    model = PreTrainingModel(config)
    ours = model.state_dict()
    stock = transformers.ModernBertForMaskedLM(transformers.AutoConfig.for_model(**peer_of(config).config, **SPECIAL))
    drawn = peer_of(config).names.to_ours(stock.state_dict())
    for name, tensor in ours.items():
        assert float(tensor.std()) == pytest.approx(float(drawn[name].std()), rel=0.03, abs=1e-9), name
        assert float(tensor.abs().max()) == pytest.approx(float(drawn[name].abs().max()), rel=0.02, abs=1e-9), name
    small = distilbert(dim=96, hidden_dim=144, vocab_size=2000)
    model = PreTrainingModel(small)
    stock = transformers.DistilBertForMaskedLM(transformers.AutoConfig.for_model(**peer_of(small).config))
    drawn = peer_of(small).names.to_ours(stock.state_dict())
    for name, tensor in model.state_dict().items():
        assert float(tensor.std()) == pytest.approx(float(drawn[name].std()), rel=0.03, abs=1e-9), name
