"""Every precision and every graph of operations: refused here with what to set instead, or nearly the loss and the
gradients of float32 as it is written, for the same parameters."""

from typing import Any

import pytest
import torch
from tests.reference.batches import random_batch
from tests.reference.unions import sections_of
from torch import Tensor, nn

from bertwright.core.errors import MissingExtraError, RecipeError
from bertwright.model.bert.config import BertModelConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.tasks.pretraining.objective import PreTraining
from bertwright.train.graph.config import ChosenGraph
from bertwright.train.graph.graph import run_as
from bertwright.train.precision.config import PrecisionConfig
from bertwright.train.precision.precision import build_precision

CPU = torch.device("cpu")
PRECISIONS, GRAPHS = sections_of(PrecisionConfig), sections_of(ChosenGraph)


def kind_of(section: Any) -> str:
    return str(section.model_fields["kind"].default)


def network() -> PreTrainingModel:
    torch.manual_seed(0)
    section = BertModelConfig(size="tiny", dropout=0.0, attention_dropout=0.0, max_positions=32, initializer_range=0.1)
    return PreTrainingModel(section.resolve(61, True), "padded")


def loss(model: nn.Module) -> Tensor:
    terms = PreTraining(next_sentence=True).terms(model, random_batch([9, 5, 12])).values()
    return torch.stack([term.loss_sum.float() for term in terms]).sum()


def gradients(model: nn.Module) -> dict[str, Tensor]:
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


@pytest.fixture(scope="module")
def expected() -> tuple[Tensor, dict[str, Tensor]]:
    model = network()
    found = loss(model)
    found.backward()
    return found.detach(), gradients(model)


@pytest.mark.parametrize("section", PRECISIONS, ids=kind_of)
def test_a_precision_computes_nearly_the_loss_of_float32(
    section: Any, expected: tuple[Tensor, dict[str, Tensor]]
) -> None:
    slow = {"allow_slow": True} if "allow_slow" in section.model_fields else {}
    try:
        precision = build_precision(section(**slow), CPU)
    except MissingExtraError as error:
        pytest.skip(str(error))
    except RecipeError as error:
        assert str(error).startswith(f"train.precision = {kind_of(section)}, but ")
        assert "Set train.precision=" in str(error)
        return
    model = network()
    with precision.forward():
        found = loss(model)
    found.backward()
    torch.testing.assert_close(found.detach(), expected[0], rtol=0.01, atol=0)
    assert gradients(model).keys() == expected[1].keys()
    assert {gradient.dtype for gradient in gradients(model).values()} == {torch.float32}


@pytest.mark.parametrize("section", [s for s in PRECISIONS if "allow_slow" in s.model_fields], ids=kind_of)
def test_a_precision_that_is_slow_here_is_allowed_by_the_recipe_alone(section: Any) -> None:
    try:
        build_precision(section(), CPU)
    except RecipeError as error:
        assert "allow_slow" in str(error)


@pytest.mark.parametrize("section", GRAPHS, ids=kind_of)
def test_a_graph_computes_the_losses_and_gradients_of_the_network_as_it_is_written(
    section: Any, expected: tuple[Tensor, dict[str, Tensor]], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A compiler of machine code takes a minute.
    compiled = torch.compile
    monkeypatch.setattr(torch, "compile", lambda each, **more: compiled(each, backend="aot_eager", **more))
    torch._dynamo.reset()
    model = network()
    try:
        running = run_as(model, section(), CPU)
    except (MissingExtraError, RecipeError) as error:
        assert str(error).startswith(f"train.graph = {kind_of(section)} needs ")
        return
    assert {name: id(p) for name, p in running.named_parameters()} == {n: id(p) for n, p in model.named_parameters()}
    found = loss(running)
    found.backward()
    torch.testing.assert_close(found.detach(), expected[0], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(gradients(model), expected[1], rtol=1e-5, atol=1e-5)
