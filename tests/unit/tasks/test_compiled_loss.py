"""Cross-entropy inside of a compiled network: its numbers, and that no tensor of its logits is made beside them."""

import re
from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from bertwright.tasks.terms import cross_entropy_sum
from bertwright.train.graph.packages import missing_compiler

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(bool(missing_compiler("cpu")), reason="torch.compile needs a C++ compiler"),
]
ROWS, CLASSES, WIDTH = 24, 4099, 16


class Loss(nn.Module):
    """A decoder and its loss, as a compiled region has them."""

    def __init__(self) -> None:
        super().__init__()
        self.decoder = nn.Linear(WIDTH, CLASSES)

    def forward(self, states: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=states.dtype == torch.float32):
            return cross_entropy_sum(self.decoder(states), labels, weights)


def test_a_compiled_loss_keeps_its_logits_once_in_their_precision() -> None:
    from torch._inductor.utils import run_fw_bw_and_get_code  # loads the compiler

    torch.manual_seed(0)
    model, states = Loss(), torch.randn(ROWS, WIDTH)
    labels, weights = torch.arange(ROWS) * 170, torch.arange(ROWS) % 3.0
    exact = deepcopy(model).double()
    expected = (cross_entropy(exact.decoder(states.double()), labels, reduction="none") * weights).sum()
    expected.backward()
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, dynamic=False)
    loss, codes = run_fw_bw_and_get_code(lambda: compiled(states, labels, weights))
    torch.testing.assert_close(loss.double(), expected, rtol=0.01, atol=0)
    for name, weight in model.named_parameters():
        gradient = exact.get_parameter(name).grad
        assert weight.grad is not None and gradient is not None
        assert float((weight.grad - gradient).norm() / gradient.norm()) < 0.01, name
    made = [re.findall(rf"empty_strided_cpu\(\({ROWS}, {CLASSES}\), [^)]*\), (\S+)\)", code) for code in codes]
    assert made == [["torch.bfloat16"], []], "the gradient is written over the logits"
