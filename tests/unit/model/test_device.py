import os

import pytest
import torch
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.model.device import resolve_device, torch_settings


@each_row(("seen", "wanted", "device"), [
    (False, "auto", "cpu"), (False, "cpu", "cpu"), (True, "auto", "cuda"), (True, "cpu", "cpu"), (True, "cuda", "cuda"),
])  # fmt: skip
def test_auto_takes_a_gpu_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch, seen: bool, wanted: str, device: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: seen)
    assert resolve_device(wanted) == torch.device(device)  # type: ignore[arg-type]


def test_a_gpu_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(RecipeError, match=r"device = cuda, but torch finds no GPU here\. Install"):
        resolve_device("cuda")


@each_row("before", ["highest", "high"])
def test_products_are_rounded_to_tf32_only_on_request(before: str) -> None:
    """A notebook may have asked torch for it: a training in float32 is in float32 all the same."""
    untouched = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(before)
    try:
        with torch_settings(1, products="high"):
            assert torch.get_float32_matmul_precision() == "high"
        with torch_settings(1, products="medium"):
            assert torch.get_float32_matmul_precision() == "medium"
        with torch_settings(1):
            assert torch.get_float32_matmul_precision() == "highest"
        assert torch.get_float32_matmul_precision() == before
    finally:
        torch.set_float32_matmul_precision(untouched)


@each_row("before", [None, "7"])
def test_the_environment_is_left_as_it_was_found(before: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the user has set counts inside as well; what we set is gone when the block ends, also by an error."""
    names = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "0", "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    for name in names:
        if before is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, before)
    with pytest.raises(KeyError), torch_settings(1):
        assert {name: os.environ[name] for name in names} == (names if before is None else dict.fromkeys(names, before))
        raise KeyError
    assert [os.environ.get(name) for name in names] == [before, before]
    with torch_settings(1, keep_kernels=True, deterministic=False):
        assert [os.environ.get(name) for name in names] == [before, before], "nothing is asked of them"
