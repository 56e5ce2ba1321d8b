"""A network whose layers use our own kernels: gradients, scoring, dropout, low precision and torch.compile."""

from copy import deepcopy

import pytest
import torch
from tests.reference.batches import random_batch
from tests.rows import each_row
from torch import Tensor, nn

from bertwright.model.bert.config import BertModelConfig
from bertwright.model.distilbert.config import DistilBertModelConfig
from bertwright.model.layers import use_kernels
from bertwright.model.pretraining import PreTrainingModel
from bertwright.tasks.terms import cross_entropy_sum

BATCH = random_batch([5, 3])


def network(family: type[BertModelConfig | DistilBertModelConfig], dropout: float) -> PreTrainingModel:
    torch.manual_seed(0)
    section = family(size="tiny", dropout=dropout, attention_dropout=0.0, max_positions=16, initializer_range=0.1)
    return PreTrainingModel(section.resolve(61, False), "padded")


def loss_of(model: nn.Module, low: bool = False) -> Tensor:
    torch.manual_seed(3)  # of the dropout
    with torch.autocast("cpu", torch.bfloat16, enabled=low):
        return cross_entropy_sum(model(BATCH)[0], BATCH.labels, BATCH.weights)


def gradients(model: nn.Module, low: bool = False) -> Tensor:
    grads = torch.autograd.grad(loss_of(model, low), list(model.parameters()))
    return torch.cat([gradient.double().flatten() for gradient in grads])


@each_row("low, tolerance", [(False, 1e-5), (True, 0.05)])
@each_row("family", [BertModelConfig, DistilBertModelConfig])
def test_gradients_are_those_of_torch_in_float64(
    family: type[BertModelConfig | DistilBertModelConfig], low: bool, tolerance: float
) -> None:
    model = network(family, dropout=0.0)
    exact = gradients(deepcopy(model).double())
    use_kernels(model, "triton")
    assert float((gradients(model, low) - exact).norm() / exact.norm()) < tolerance


def test_dropout_differentiates_what_it_computed() -> None:
    """Along the gradient, where another mask in the backward pass would give another slope; scoring drops nothing."""
    model = network(BertModelConfig, dropout=0.3)
    plain = deepcopy(model).eval()
    use_kernels(model, "triton")
    torch.testing.assert_close(loss_of(model.eval()), loss_of(plain), rtol=1e-5, atol=0)
    model.train()
    assert loss_of(model).item() != loss_of(plain).item()
    direction = gradients(model)
    direction /= direction.norm()
    losses = []
    with torch.no_grad():
        start = nn.utils.parameters_to_vector(model.parameters())
        for step in (1e-3, -1e-3):
            nn.utils.vector_to_parameters((start.double() + step * direction).float(), model.parameters())
            losses.append(float(loss_of(model)))
        nn.utils.vector_to_parameters(start, model.parameters())
    assert (losses[0] - losses[1]) / 2e-3 == pytest.approx(float(gradients(model) @ direction), rel=0.02)


def test_a_compiler_passes_them_in_one_graph() -> None:
    model = network(BertModelConfig, dropout=0.0)
    use_kernels(model, "triton")
    expected = gradients(model)
    torch._dynamo.reset()
    for layer in model.encoder.layers:
        layer.compile(fullgraph=True, dynamic=False, backend="aot_eager")
    torch.testing.assert_close(gradients(model), expected, rtol=1e-4, atol=1e-6)
