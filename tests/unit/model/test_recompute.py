"""Checkpointed activations: the same gradients to the bit, dropout included, for a fraction of what is kept."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from tests.reference.batches import random_batch
from tests.reference.kernels import KERNELS
from tests.reference.unions import sections_of
from tests.rows import each_row

from bertwright.model.config import Kernel, ModelConfig
from bertwright.model.encoder import recompute_layers
from bertwright.model.pretraining import PreTrainingModel
from bertwright.tasks.pretraining.objective import PreTraining

pytestmark = pytest.mark.heavy

LENGTHS = [9, 5, 130, 5, 40]
FAMILIES = pytest.mark.parametrize(
    "family", sections_of(ModelConfig), ids=lambda section: section.model_fields["kind"].default
)
LOW = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}


def network(family: Any, kernel: Kernel, recompute: bool) -> PreTrainingModel:
    torch.manual_seed(0)
    section = family(size="tiny", dropout=0.3, attention_dropout=0.2, max_positions=160)
    model = PreTrainingModel(section.resolve(61, family.takes_pairs), kernel).train()
    if recompute:
        recompute_layers(model.encoder)
    return model


@contextmanager
def kept(model: PreTrainingModel) -> Iterator[list[int]]:
    """How many bytes, beside the weights, are kept for backward: the list's only number, when all is over."""
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    storages: dict[int, torch.UntypedStorage] = {}
    total: list[int] = []

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storages.setdefault(tensor.untyped_storage().data_ptr(), tensor.untyped_storage())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        yield total
    total.append(sum(storage.nbytes() for place, storage in storages.items() if place not in weights))


def gradients(model: PreTrainingModel, low: torch.dtype | None) -> tuple[list[torch.Tensor], torch.Tensor, int]:
    """Of every parameter; the next draw of torch's generator, and the bytes that were kept."""
    batch, objective = random_batch(LENGTHS), PreTraining(model.config.next_sentence)
    torch.manual_seed(7)
    with kept(model) as bytes_kept, torch.autocast("cpu", dtype=low or torch.bfloat16, enabled=low is not None):
        losses = [term.loss_sum for term in objective.terms(model, batch).values()]
    torch.stack(losses).sum().backward()  # type: ignore[no-untyped-call]
    found = [p.grad for p in model.parameters() if p.grad is not None]
    assert len(found) == len(list(model.parameters()))
    return found, torch.rand(8), bytes_kept[0]


@FAMILIES
@each_row("kernel", KERNELS)
@each_row("low", LOW)
def test_gradients_are_the_same_to_the_bit_and_less_is_kept(family: Any, kernel: Kernel, low: str) -> None:
    plain, drawn, all_bytes = gradients(network(family, kernel, recompute=False), LOW[low])
    again, drawn_again, few_bytes = gradients(network(family, kernel, recompute=True), LOW[low])
    assert all(torch.equal(one, other) for one, other in zip(plain, again, strict=True))
    assert torch.equal(drawn, drawn_again), "the second pass leaves the generator where the first one left it"
    assert few_bytes < 0.75 * all_bytes, "the smallest networks have one layer, whose rows of logits are kept too"


@FAMILIES
def test_recomputing_keeps_tensor_names(family: Any) -> None:
    plain, model = (network(family, "sequences", recompute) for recompute in (False, True))
    assert model.state_dict().keys() == plain.state_dict().keys()
    with torch.inference_mode():
        one, other = (each.eval()(random_batch(LENGTHS))[0] for each in (plain, model))
    assert torch.equal(one, other)
