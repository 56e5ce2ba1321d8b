"""torch's attention for sequences of any length on a GPU: the numbers of the padded rule, windows, a training."""

import json
from inspect import signature
from pathlib import Path

import pytest
import torch
from tests.conftest import Prepared
from tests.golden.training.settings import train
from tests.reference.sequences import sequences
from torch.nn.attention.varlen import varlen_attn

from bertwright.model.attention.kernel import bind

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU"),
    # What torch warns of differs by GPU and version: these tests ask for numbers.
    pytest.mark.filterwarnings("default::UserWarning:torch.*"),
]
LENGTHS = [150, 9, 65, 66, 129, 1, 0, 200]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("window", [None, 16, 128])
def test_outputs_and_gradients_are_those_of_the_padded_rule(dtype: torch.dtype, window: int | None) -> None:
    if window is not None and "window_size" not in signature(varlen_attn).parameters:
        pytest.skip("this torch has no windows there")
    batch = sequences(LENGTHS).map(lambda tensor: tensor.cuda())
    random = torch.Generator("cuda").manual_seed(0)
    shape = (sum(LENGTHS), 4, 64)
    qkv = [torch.randn(shape, device="cuda", generator=random).to(dtype).requires_grad_() for _ in range(3)]
    direction = torch.randn(shape, device="cuda", generator=random)
    found = bind("varlen", batch, window)(*qkv, 0.0)
    exact = [x.detach().double().requires_grad_() for x in qkv]
    expected = bind("padded", batch, window)(*exact, 0.0)
    tolerance = 2e-2 if dtype == torch.bfloat16 else 3e-3
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=tolerance)
    gradients = torch.autograd.grad((found * direction).sum(), qkv)
    wanted = torch.autograd.grad((expected * direction).sum(), exact)
    for one, other in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=0, atol=10 * tolerance)


@pytest.mark.parametrize("graph", ["eager", "compiled"])
def test_training_with_it_follows_training_padded(prepared: Prepared, tmp_path: Path, graph: str) -> None:
    settings = {"device": "cuda", "precision": "bf16"}
    data = (prepared.examples, prepared.vocab)
    padded = train("adamw-sequences", *data, tmp_path / "padded", attention="padded", **settings)
    varlen = train("adamw-sequences", *data, tmp_path / "varlen", attention="varlen", graph=graph, **settings)
    rows = [
        [json.loads(line) for line in (done.path / "metrics.jsonl").read_text().splitlines()]
        for done in (padded, varlen)
    ]
    for one, other in zip(*rows, strict=True):
        assert one["batch"] == other["batch"]
        assert other["mlm_loss"] == pytest.approx(one["mlm_loss"], rel=0.05)
