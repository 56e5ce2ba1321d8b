"""Bias and GELU by our own kernel."""

import pytest
import torch
from tests.kernels.interpreted.numbers import assert_the_same, draw
from tests.rows import each_row

from bertwright.model.kernels import gelu
from bertwright.model.kernels.gelu import bias_gelu, plain_bias_gelu


@each_row("dtype", [torch.float32, torch.float16, torch.bfloat16])
@each_row("rows, columns", [(1, 3), (5, 300)])
def test_bias_and_gelu(monkeypatch: pytest.MonkeyPatch, rows: int, columns: int, dtype: torch.dtype) -> None:
    monkeypatch.setattr(gelu, "_PROGRAMS", 2)  # each sums over several rows
    assert_the_same(bias_gelu, plain_bias_gelu, [draw(rows, columns, dtype=dtype) * 2, draw(columns, dtype=dtype)])


def test_nothing_has_no_values() -> None:
    assert bias_gelu(torch.zeros(0, 8), torch.zeros(8)).shape == (0, 8)


@pytest.mark.filterwarnings("ignore::UserWarning:torch.*")
def test_its_operator_is_registered_as_torch_requires() -> None:
    torch.library.opcheck(bias_gelu, (draw(3, 8).requires_grad_(), draw(8).requires_grad_()))
