"""Every network family: kernels agree, packing changes nothing, all weights are trained, counted, decayed and saved."""

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.reference.batches import random_batch
from tests.reference.kernels import KERNELS
from tests.reference.unions import sections_of
from torch.nn.functional import cross_entropy
from torch.utils.flop_counter import FlopCounterMode

from bertwright.core.errors import ArtifactError, RecipeError
from bertwright.model.attention.kernel import Attend, bind
from bertwright.model.attention.sequences import Sequences
from bertwright.model.batch import PackedBatch
from bertwright.model.classifier import Classifier
from bertwright.model.config import NETWORKS, PEERS, Kernel, ModelConfig, has_row_per_entry, without_peer
from bertwright.model.flops import STEP, forward_flops, step_flops
from bertwright.model.interop.peer import peer_of
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.saved import load_model, load_network, save_model
from bertwright.optim.by_name import decays, matrices_of

FAMILIES = sections_of(ModelConfig)
LENGTHS = [9, 5, 130, 5]
"""One is longer than the window of the families that have one."""
VOCABULARY = 61
families = pytest.mark.parametrize("family", FAMILIES, ids=lambda section: section.model_fields["kind"].default)
with_and_without = pytest.mark.parametrize(
    ("family", "next_sentence"),
    [(family, pairs) for family in FAMILIES for pairs in ((True, False) if family.takes_pairs else (False,))],
    ids=lambda value: value if isinstance(value, bool) else value.model_fields["kind"].default,
)


def built(
    family: Any, next_sentence: bool | None = None, kernel: Kernel = "padded", size: str = "tiny"
) -> PreTrainingModel:
    """The family's network of this size without dropout; it has a next-sentence head unless unsupported or disabled."""
    torch.manual_seed(0)
    section = family(size=size, dropout=0.0, attention_dropout=0.0, max_positions=160, initializer_range=0.1)
    return PreTrainingModel(
        section.resolve(VOCABULARY, family.takes_pairs if next_sentence is None else next_sentence), kernel
    )


def test_every_network_can_be_chosen() -> None:
    assert [type(family(size="tiny").resolve(VOCABULARY)) for family in FAMILIES] == list(NETWORKS)
    # A name that is no field would let a start differ in nothing.
    assert all(network.may_differ <= network.model_fields.keys() for network in NETWORKS)


@families
@pytest.mark.parametrize("kernel", KERNELS)
def test_hidden_states_are_the_same_with_every_kernel_and_however_sequences_are_packed(
    family: Any, kernel: Kernel
) -> None:
    model, batch = built(family).double().eval(), random_batch(LENGTHS)
    rows = torch.tensor([0, 14, 149], dtype=torch.int32)
    packed = replace(batch, cu_rows=rows, max_row=135)
    with torch.inference_mode():
        expected = model.encoder(batch)
        assert expected.shape == (sum(LENGTHS), model.config.hidden_size)
        model.encoder.kernel = kernel
        for each in (batch, packed):
            torch.testing.assert_close(model.encoder(each), expected, rtol=0, atol=1e-12)


@families
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_is_bound_once_to_a_batch_for_each_window_not_in_every_layer(
    family: Any, kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Binding computes indices for all tokens and may wait for the device (docs/decisions/0004)."""
    model, bound = built(family, kernel=kernel, size="mini"), list[int | None]()

    def counted(kernel: Kernel, batch: PackedBatch, window: int | None = None) -> Attend:
        bound.append(window)
        return bind(kernel, batch, window)

    monkeypatch.setattr(sys.modules[type(model.encoder).__module__], "bind", counted)
    assert model.config.num_hidden_layers > 1
    with torch.inference_mode():
        model(random_batch(LENGTHS))
    assert Counter(bound) == Counter(set(model.config.windows))


@families
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_sequence_does_not_see_its_neighbours(family: Any, kernel: Kernel) -> None:
    model, batch = built(family, kernel=kernel).double().eval(), random_batch(LENGTHS)
    alone = random_batch(LENGTHS)
    first = slice(0, LENGTHS[0])
    changed = replace(batch, token_ids=batch.token_ids.clone())
    changed.token_ids[LENGTHS[0] :] = alone.token_ids[LENGTHS[0] :].flip(0)
    with torch.inference_mode():
        torch.testing.assert_close(model.encoder(changed)[first], model.encoder(batch)[first], rtol=0, atol=1e-12)


@families
@pytest.mark.parametrize("kernel", KERNELS)
def test_states_that_are_read_alone_are_those_of_all_with_their_gradients(family: Any, kernel: Kernel) -> None:
    model, batch = built(family, kernel=kernel).double().eval(), random_batch(LENGTHS)
    read_N = torch.tensor([3, 147, 0, 9, 13])
    some, every = model.encoder(batch, read_N), model.encoder(batch).index_select(0, read_N)
    torch.testing.assert_close(some, every, rtol=0, atol=1e-12)
    direction = torch.randn(some.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    prefix = f"{model.config.family}."
    weights = [p for name, p in model.named_parameters() if name.startswith(prefix) and "pooler" not in name]
    alone, of_all = (torch.autograd.grad((states * direction).sum(), weights) for states in (some, every))
    for one, other in zip(alone, of_all, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-11)


@families
def test_after_attention_the_last_layer_works_on_what_is_read_alone(family: Any) -> None:
    """Counts the rows that linear layers receive, since the results alone would not show it."""
    model, batch = built(family).eval(), random_batch(LENGTHS)
    rows: list[int] = []
    # All called modules, in order: the last linear layer of an encoder follows attention.
    for module in model.get_submodule(model.config.family).modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_hook(lambda module, given, out: rows.append(len(given[0])))
    model.encoder(batch, torch.tensor([3, 0, 9]))
    assert rows[0] == sum(LENGTHS) and rows[-3:] == [3, 3, 3], "attention's output and both maps behind it"


@with_and_without
def test_every_tensor_is_trained_and_counted(family: Any, next_sentence: bool) -> None:
    model = built(family, next_sentence)
    mlm_PV, nsp_B2 = model(random_batch(LENGTHS))
    assert mlm_PV.shape == (8, VOCABULARY) and (nsp_B2 is None) != next_sentence
    total = mlm_PV.square().sum() + (0 if nsp_B2 is None else nsp_B2.square().sum())
    total.backward()
    assert [name for name, p in model.named_parameters() if p.grad is None] == []
    assert sum(p.numel() for p in model.parameters()) == model.config.parameters
    # The order matters too: an engine distributes tensors to ranks by it.
    assert list(model.config.tensors.items()) == [(name, tuple(p.shape)) for name, p in model.named_parameters()]


@families
def test_tensors_that_stack_several_matrices_are_declared(family: Any) -> None:
    """A matrix maps between the widths of the network; Muon updates each by itself."""
    network = family(size="tiny").resolve(VOCABULARY)
    shapes = [matrices_of(name, shape, network.fused) for name, shape in network.tensors.items()]
    sides = {side for matrices in shapes for matrix in matrices for side in matrix}
    assert sides == {network.hidden_size, network.intermediate_size}


@families
@pytest.mark.parametrize("kernel", KERNELS)
def test_in_bfloat16_it_trains_about_alike(family: Any, kernel: Kernel) -> None:
    """Matrix products in bfloat16 as in training: no dtype mismatch, and nothing is NaN."""
    model, batch, gradients = built(family, kernel=kernel), random_batch(LENGTHS), []
    for enabled in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            mlm_PV, _ = model(batch)
        loss = cross_entropy(mlm_PV.float(), batch.labels)
        weights = [p for name, p in model.named_parameters() if not name.startswith("nsp") and "pooler" not in name]
        gradients.append(torch.cat([g.flatten() for g in torch.autograd.grad(loss, weights)]))
    assert float((gradients[1] - gradients[0]).norm() / gradients[0].norm()) < 0.05


@families
def test_the_tied_embedding_is_the_encoders(family: Any) -> None:
    model = built(family)
    assert model.encoder.token_weight.shape == (VOCABULARY, model.config.hidden_size)
    assert all(name.partition(".")[0] in (model.config.family, "mlm", "nsp") for name in model.state_dict())
    loss = model(random_batch(LENGTHS))[0].logsumexp(-1).sum()
    (gradient,) = torch.autograd.grad(loss, [model.encoder.token_weight])
    assert (gradient.abs().sum(-1) > 0).all(), "entries that are no input are trained by the decoder"


@families
def test_the_rule_of_weight_decay_understands_its_names(family: Any) -> None:
    for name, parameter in built(family).named_parameters():
        assert decays(name) == (parameter.dim() > 1), name


@families
def test_the_seed_decides_its_weights(family: Any) -> None:
    one, same = built(family).state_dict(), built(family).state_dict()
    assert all(torch.equal(same[name], tensor) for name, tensor in one.items())
    matrices = [tensor for tensor in one.values() if tensor.dim() > 1]
    assert all(float(tensor.std()) > 0 for tensor in matrices)


@with_and_without
def test_it_is_saved_and_loaded_to_the_bit(family: Any, next_sentence: bool, tmp_path: Path) -> None:
    model = built(family, next_sentence)
    save_model(tmp_path / "model", model.config, model.state_dict())
    loaded = load_model(tmp_path / "model")
    assert type(loaded.config) is type(model.config) and loaded.config == model.config
    assert loaded.state_dict().keys() == model.state_dict().keys()
    assert all(torch.equal(loaded.state_dict()[name], tensor) for name, tensor in model.state_dict().items())
    batch = random_batch(LENGTHS)
    with torch.inference_mode():
        torch.testing.assert_close(loaded.eval()(batch)[0], model.eval()(batch)[0], rtol=0, atol=1e-5)


@with_and_without
def test_the_operations_of_a_step_are_those_that_torch_counts(
    family: Any, next_sentence: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = family(size="tiny", dropout=0.0, attention_dropout=0.5, max_positions=160)
    model = PreTrainingModel(section.resolve(VOCABULARY, next_sentence), "sequences").train()
    lengths = [9, 5, 60, 5]  # within every window, so no kernel multiplies more than it needs
    batch = random_batch(lengths)

    def counted() -> tuple[int, int]:
        # With dropout this kernel uses the formula, whose products torch counts on any device.
        with FlopCounterMode(display=False) as counter:
            logits = [logits for logits in model(batch) if logits is not None]
            forward = counter.get_total_flops()
            torch.stack([each.logsumexp(-1).sum() for each in logits]).sum().backward()
        return forward, counter.get_total_flops()

    read_alone, _ = counted()
    monkeypatch.setattr(Sequences, "reading", lambda self, read_N: self)
    forward, step = counted()
    assert forward_flops(model.config, np.array(lengths), len(batch.labels)) == forward
    assert step == STEP * forward == step_flops(model.config, np.array(lengths), len(batch.labels))
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(has_row_per_entry(name))
    assert counted()[1] == step_flops(model.config, np.array(lengths), len(batch.labels), only_rows=True)
    # It takes the queries of the read tokens alone; a ModernBERT projects all of them.
    assert (read_alone < forward) == (model.config.windows[-1] is None)


@families
def test_attention_in_a_window_counts_the_pairs_that_are_seen(family: Any) -> None:
    config, lengths = built(family, False).config, [1, 0, 64, 65, 66, 130, 150]
    before, after = config.layer_products
    expected = 2 * sum(lengths) * (config.num_hidden_layers * (before + after) - after)
    for window in config.windows:
        for n in lengths:
            away = np.abs(np.arange(n)[:, None] - np.arange(n))
            expected += 4 * config.hidden_size * int((away <= (n if window is None else window // 2)).sum())
    assert forward_flops(config, np.array(lengths), 0) == expected


@families
def test_a_network_has_a_peer_with_a_name_for_each_tensor_or_is_refused_by_name(family: Any) -> None:
    model = built(family)
    if missing := without_peer(model.config):
        with pytest.raises(RecipeError, match=rf"model\.kind = {model.config.family}.*--until evaluate"):
            peer_of(model.config)
        assert model.config.family not in PEERS and ", ".join(PEERS) in missing
    else:
        names = peer_of(model.config).names
        assert names.to_ours(names.to_theirs(model.state_dict())).keys() == model.state_dict().keys()


@families
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_classifier_is_trained_counted_decayed_and_saved(
    family: Any, kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sequences, "reading", lambda self, read_N: self)  # operations count the queries of all tokens
    torch.manual_seed(0)
    section = family(size="tiny", dropout=0.0, attention_dropout=0.5 if kernel == "sequences" else 0.0)
    config = section.resolve(VOCABULARY, labels=("no", "perhaps", "yes"), next_sentence=False)
    model = Classifier(config, kernel).train()
    lengths = [9, 5, 60, 5]
    batch = random_batch(lengths)
    with FlopCounterMode(display=False) as counter:
        logits = model(batch)
    assert logits.shape == (4, 3)
    if kernel == "sequences":  # with dropout this kernel uses the formula, whose products torch counts
        assert forward_flops(config, np.array(lengths), 0) == counter.get_total_flops()
    logits.logsumexp(-1).sum().backward()
    assert [name for name, p in model.named_parameters() if p.grad is None] == []
    assert list(config.tensors.items()) == [(name, tuple(p.shape)) for name, p in model.named_parameters()]
    assert all(decays(name) == (p.dim() > 1) for name, p in model.named_parameters())
    save_model(tmp_path / "model", config, model.state_dict())
    loaded = load_network(tmp_path / "model")
    assert loaded.config == config and isinstance(loaded, Classifier)
    assert all(torch.equal(loaded.state_dict()[name], tensor) for name, tensor in model.state_dict().items())
    with pytest.raises(ArtifactError, match=r"is a classifier \(no, perhaps, yes\), without the head"):
        load_model(tmp_path / "model")
