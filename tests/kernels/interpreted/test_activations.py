"""Bias and GELU, GeGLU, and the rotation of queries and keys by our own kernels."""

import pytest
import torch
from tests.kernels.interpreted.numbers import assert_the_same, draw
from tests.rows import each_row

from bertwright.model.kernels import gelu
from bertwright.model.kernels.gelu import bias_gelu, geglu, plain_bias_gelu, plain_geglu
from bertwright.model.kernels.rotary import plain_rotate, rotate, rotate_pair
from bertwright.model.modern import rotary

DTYPES = [torch.float32, torch.float16, torch.bfloat16]


@each_row("dtype", DTYPES)
@each_row("rows, columns", [(1, 3), (5, 300)])
def test_bias_and_gelu(monkeypatch: pytest.MonkeyPatch, rows: int, columns: int, dtype: torch.dtype) -> None:
    monkeypatch.setattr(gelu, "_PROGRAMS", 2)  # each sums over several rows
    assert_the_same(bias_gelu, plain_bias_gelu, [draw(rows, columns, dtype=dtype) * 2, draw(columns, dtype=dtype)])


@each_row("dtype", DTYPES)
@each_row("rows, columns", [(1, 2), (4, 600)])
def test_geglu(rows: int, columns: int, dtype: torch.dtype) -> None:
    assert_the_same(geglu, plain_geglu, [draw(rows, columns, dtype=dtype) * 2])


@each_row("dtype", DTYPES)
@each_row("width", [2, 24, 64])
def test_rotation_of_queries_and_keys(width: int, dtype: torch.dtype) -> None:
    angles = rotary.rotation(torch.tensor([0, 1, 2, 0, 1000]), width, 10_000.0)
    inputs = [draw(5, 3, width, dtype=dtype, seed=seed) for seed in range(2)]
    assert_the_same(lambda q, k: rotate(q, k, *angles), lambda q, k: plain_rotate(q, k, *angles), inputs)
    for one, x in zip(rotate(*inputs, *angles), inputs, strict=True):
        torch.testing.assert_close(one, rotary.rotate(x, angles))


def test_nothing_has_no_values() -> None:
    assert bias_gelu(torch.zeros(0, 8), torch.zeros(8)).shape == (0, 8) and geglu(torch.zeros(0, 8)).shape == (0, 4)


@pytest.mark.filterwarnings("ignore::UserWarning:torch.*")
def test_their_operators_are_registered_as_torch_requires() -> None:
    torch.library.opcheck(bias_gelu, (draw(3, 8).requires_grad_(), draw(8).requires_grad_()))
    torch.library.opcheck(geglu, (draw(3, 8).requires_grad_(),))
    pair = (draw(3, 2, 8).requires_grad_() for _ in range(2))
    torch.library.opcheck(rotate_pair, (*pair, draw(3, 4), draw(3, 4), False))
