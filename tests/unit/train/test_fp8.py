"""Float8: refused with the reason where it cannot be, imitated on a processor where torchao is installed."""

import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from tests.reference.batches import NUMBERS, random_batch
from tests.rows import each_row
from tests.unit.train.conftest import MODEL
from tests.unit.train.test_precision import StopsAt, rows, weights

from bertwright import Recipe
from bertwright.check.machine.computing import precision
from bertwright.check.recipe import packages as recipe_packages
from bertwright.check.recipe.packages import packages
from bertwright.core.artifact import Artifact
from bertwright.core.errors import Interrupted, MissingExtraError, RecipeError
from bertwright.estimate import machine_facts
from bertwright.estimate.machine_facts import TorchBuild
from bertwright.model.bert.network import BertConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.train.precision import precision as applied
from bertwright.train.precision.config import Fp8Config
from bertwright.train.precision.precision import build_precision

Train = Callable[..., Artifact]
CPU, GPU = torch.device("cpu"), torch.device("cuda")
FP8 = {"kind": "fp8", "allow_slow": True}
INSTALLED = find_spec("torchao") is not None
needs_torchao = pytest.mark.skipif(not INSTALLED, reason="torchao is not installed")
if INSTALLED:
    with warnings.catch_warnings():  # here warnings are errors, and loading it warns
        warnings.simplefilter("ignore")
        import_module("torchao.float8")


def test_a_processor_is_refused_unless_slowness_is_allowed() -> None:
    with pytest.raises(RecipeError, match=r"fp8, but a CPU can only emulate .*allow_slow=true"):
        build_precision(Fp8Config(), CPU)


@each_row(("capability", "said"), [((8, 6), r"8\.6, .*=bf16"), ((7, 0), r"7\.0, .*=fp16")])
def test_a_gpu_without_float8_is_refused(
    capability: tuple[int, int], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    with pytest.raises(RecipeError, match=rf"this GPU has compute capability {said}"):
        build_precision(Fp8Config(), GPU)


@pytest.mark.parametrize("device", [CPU, GPU], ids=["cpu", "gpu"])
def test_without_torchao_the_extra_is_named(device: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applied, "find_spec", lambda name: None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    with pytest.raises(MissingExtraError, match=r"torchao, which is not installed: pip install 'bertwright\[fp8\]'"):
        build_precision(Fp8Config(allow_slow=True), device)


def test_a_check_of_the_recipe_says_both(load: Callable[..., Recipe], monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = load("train.precision=fp8")
    monkeypatch.setattr(recipe_packages, "find_spec", lambda name: None if name == "torchao" else name)
    monkeypatch.setattr(machine_facts, "torch_build", lambda: TorchBuild("2.13.0+cpu", False))
    (missing,) = packages(recipe, ["train"])
    assert missing.level == "error" and "pip install 'bertwright[fp8]'" in missing.text
    (refused,) = precision(recipe, ["train"])
    assert refused.level == "error" and "a CPU can only emulate it" in refused.text
    assert not list(packages(recipe, ["corpus"])), "nothing is trained"


@needs_torchao
def test_only_linear_layers_are_converted_and_names_stay() -> None:
    model = PreTrainingModel(
        BertConfig(**{**NUMBERS, "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 40})
    )
    names, tensors = list(model.state_dict()), [p.data_ptr() for p in model.parameters()]
    applied.to_float8(model, emulate=True)
    assert list(model.state_dict()) == names and [p.data_ptr() for p in model.parameters()] == tensors
    converted = {name for name, module in model.named_modules() if "Float8" in type(module).__name__}
    parts = ("query", "key", "value", "output")
    layers = [f"bert.layers.{layer}.attention.{part}" for layer in (0, 1) for part in parts]
    assert converted == set(layers), "40 is no multiple of 16"
    exact = PreTrainingModel(model.config)
    exact.load_state_dict(model.state_dict())
    mine, theirs = (each.eval()(random_batch([9, 5]))[0] for each in (model, exact))
    assert 0 < float(((mine - theirs).norm() / theirs.norm()).detach()) < 0.1


@needs_torchao
@pytest.mark.parametrize("settings", [{}, {"checkpoint_activations": True}], ids=["kept", "recomputed"])
def test_emulated_fp8_learns_like_float32_and_resumes(train: Train, settings: Any) -> None:
    full, low = train("full"), train("low", precision=FP8, **settings)
    for one, other in zip(rows(full), rows(low), strict=True):
        assert other["mlm_loss"] == pytest.approx(one["mlm_loss"], rel=0.02)
    assert rows(full)[0]["mlm_loss"] != rows(low)[0]["mlm_loss"]
    assert {tensor.dtype for tensor in weights(low).values()} == {torch.float32}
    with pytest.raises(Interrupted):
        train("disturbed", precision=FP8, log=StopsAt(4), **settings)
    continued = weights(train("disturbed", precision=FP8, **settings))
    assert all(torch.equal(tensor, continued[name]) for name, tensor in weights(low).items())
    assert MODEL["hidden_size"] % applied.MULTIPLE == 0
