import pytest
import torch
from tests.reference.sequences import sequences
from tests.rows import each_row

from bertwright.core.errors import DataError
from bertwright.model.attention.padded import Padded
from bertwright.model.attention.sequences import Sequences
from bertwright.model.config import kernel_for


def test_one_call_per_distinct_length() -> None:
    mixed, sorted_by_length = Sequences(sequences([3, 7, 3, 0, 7, 2])), Sequences(sequences([7, 7, 2, 3, 3]))
    assert mixed.runs == [(1, 2), (2, 3), (2, 7)] and mixed.order is not None
    assert sorted_by_length.runs == [(2, 7), (1, 2), (2, 3)] and sorted_by_length.order is None


def test_a_gpu_is_not_kept_waiting_for_lengths() -> None:
    assert kernel_for("cpu") == "sequences" and kernel_for("cuda") == "padded"


@each_row("kernel", [Padded, Sequences])
def test_attention_drops_weights_without_bias(kernel: type[Padded] | type[Sequences]) -> None:
    """With v = 1 every output is the sum of the kept weights / (1 - p): 1 on average, and not always 1."""
    torch.manual_seed(0)
    q = torch.randn(400, 2, 8)
    out = kernel(sequences([200, 200]))(q, q * 0, torch.ones(400, 2, 8), 0.25)
    assert abs(float(out.mean()) - 1) < 0.01
    assert float(out.std()) > 0.02


def test_padded_refuses_a_sequence_longer_than_its_rows() -> None:
    with pytest.raises(DataError, match="a row of 9 tokens in a batch with max_row = 8"):
        Padded(sequences([3, 9], slack=-1))
