"""The product with the vocabulary, by columns and as one, beside torch's linear map and its gradients."""

from typing import Any

import pytest
import torch
from tests.reference.unions import sections_of
from tests.rows import each_row
from torch import Tensor
from torch.nn.functional import linear
from torch.utils.flop_counter import FlopCounterMode

from bertwright.model import pretraining
from bertwright.model.config import ModelConfig
from bertwright.model.pretraining import MaskedTokenHead, decode


def inputs(vocabulary: int, dtype: torch.dtype, biased: bool) -> list[Tensor | None]:
    random = torch.Generator().manual_seed(vocabulary)
    shapes = [(7, 12), (vocabulary, 12), (vocabulary,)]
    drawn = [torch.randn(shape, generator=random, dtype=dtype).requires_grad_() for shape in shapes]
    return [*drawn[:2], drawn[2] if biased else None]


@each_row("biased", [True, False])
@each_row("dtype", [torch.float32, torch.float64])
@each_row("vocabulary", [1, 61, 512, 513, 1030, 1536])
def test_logits_and_gradients_are_those_of_a_linear_map(vocabulary: int, dtype: torch.dtype, biased: bool) -> None:
    given = inputs(vocabulary, dtype, biased)
    direction = torch.randn(7, vocabulary, generator=torch.Generator().manual_seed(1), dtype=dtype)
    learnt = [x for x in given if x is not None]
    found, expected = decode(*given), linear(*given)  # type: ignore[arg-type]
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
    gradients = (torch.autograd.grad((out * direction).sum(), learnt) for out in (found, expected))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-5)


@each_row(("vocabulary", "by_columns"), [(30_522, True), (30_528, False), (8_003, True), (8_000, False)])
def test_rows_that_begin_within_a_cache_line_are_computed_by_columns(
    vocabulary: int, by_columns: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    states, embeddings = torch.zeros(3, 4), torch.zeros(vocabulary, 4)
    monkeypatch.setattr(pretraining, "linear", lambda *given: None)
    assert (decode(states, embeddings, None) is not None) == by_columns


@each_row("asked", [{0}, {1}, {0, 1}])
def test_a_gradient_that_nobody_asks_for_is_not_computed(asked: set[int]) -> None:
    given = inputs(61, torch.float32, True)
    chosen = [x if number in asked or x is None else x.detach() for number, x in enumerate(given)]
    logits = decode(*chosen)  # type: ignore[arg-type]
    with FlopCounterMode(display=False) as counter:
        logits.backward(torch.ones_like(logits))  # type: ignore[no-untyped-call]
    assert counter.get_total_flops() == len(asked) * 2 * 7 * 12 * 61
    assert {number for number, x in enumerate(given) if x is not None and x.grad is not None} == asked


def test_a_batch_without_predictions_has_no_logits() -> None:
    assert decode(torch.zeros(0, 4), torch.ones(61, 4), torch.ones(61)).shape == (0, 61)


@each_row("family", sections_of(ModelConfig))
def test_low_precision_keeps_its_product(family: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under autocast the states are in low precision, although the embeddings are not."""
    head = MaskedTokenHead(family(size="tiny").resolve(61))
    monkeypatch.setattr(pretraining, "_ByColumns", None)
    with torch.autocast("cpu", torch.bfloat16):
        assert head(torch.ones(3, 128), torch.ones(61, 128)).dtype == torch.bfloat16
    assert head.bfloat16()(*(torch.ones(n, 128).bfloat16() for n in (3, 61))).dtype == torch.bfloat16
