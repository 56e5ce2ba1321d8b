"""The rules for memory and disk are as right as they say."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.reference.batches import random_batch
from tests.reference.teachers import write_stock
from tests.reference.unions import sections_of
from tests.rows import each_row
from tests.unit.model.conftest import make_batch
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

from bertwright import Recipe, RunFolder
from bertwright.check.machine import resources
from bertwright.check.machine.resources import disk, memory
from bertwright.check.recipe.data import sources
from bertwright.core.numbers import size_of
from bertwright.estimate.disk import run_bytes
from bertwright.model import dropout as dropouts
from bertwright.model.attention import padded
from bertwright.model.attention.kernel import bind
from bertwright.model.bert.config import BertModelConfig
from bertwright.model.config import Kernel, ModelConfig, NetworkConfig
from bertwright.model.encoder import recompute_layers
from bertwright.model.pretraining import PreTrainingModel
from bertwright.train.memory.kept_numbers import Kernels, Pass, layer_numbers
from bertwright.train.memory.rank_memory import Computing, training_bytes
from bertwright.train.settings.phase_config import PhaseConfig

pytestmark = pytest.mark.heavy

__all__ = ["make_batch"]  # a fixture
Load = Callable[..., Recipe]
Make = Callable[..., object]


def kept_for_backward(
    bert: NetworkConfig,
    kernel: Kernel,
    lengths: list[int],
    make_batch: Make,
    recompute: bool = False,
    autocast: bool = False,
) -> int:
    """Bytes, beside the weights, that a forward pass keeps; with `autocast` also copies of the weights."""
    torch.manual_seed(0)
    model = PreTrainingModel(bert, kernel).train()
    if recompute:
        recompute_layers(model.encoder)
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept: dict[int, torch.UntypedStorage] = {}

    def keep(tensor: torch.Tensor) -> None:
        # The graph is given nothing, as no backward pass follows: a tensor that knows its graph would never be freed.
        kept.setdefault(tensor.untyped_storage().data_ptr(), tensor.untyped_storage())

    batch = make_batch(bert, lengths)
    with (
        torch.autocast("cpu", torch.bfloat16, enabled=autocast),
        torch.autograd.graph.saved_tensors_hooks(keep, lambda nothing: nothing),
    ):
        logits, _ = model(batch)
        cross_entropy(logits, batch.labels)  # type: ignore[attr-defined]
    return sum(storage.nbytes() for place, storage in kept.items() if place not in weights)


each_family = each_row("family", sections_of(ModelConfig))
each_kernel = each_row("kernel", ["sequences", "padded"])
each_length = each_row("length", [64, 256])
each_attention_dropout = each_row("attention_dropout", [0.0, 0.1])
each_dropout = each_row("dropout", [0.0, 0.1])


def assert_three_more_layers(
    family: Any, dropouts: tuple[float, float], length: int, kernel: Kernel, kernels: Kernels, make_batch: Make
) -> None:
    """What three layers more keep, counted, is what the rule says of them; `dropouts`: of values, and of attention."""
    bert = family(size="tiny", dropout=dropouts[0], attention_dropout=dropouts[1]).resolve(1000)
    depth = "n_layers" if "n_layers" in type(bert).model_fields else "num_hidden_layers"
    bert = bert.model_copy(update={depth: 4})
    phase = PhaseConfig(length=length, batch=512 // length, learning_rate=1e-3, steps=1)
    shallow = bert.model_copy(update={depth: 1})
    for recompute in (False, True):
        computing = Computing(padded=kernel == "padded", recompute=recompute, kernels=kernels)
        # A token less in one row: rows that are all full need not be spread, and keep less than is reckoned with.
        rows = [length] * (phase.batch - 1) + [length - (kernel == "padded")]
        kept, one = (
            kept_for_backward(each, kernel, rows, make_batch, recompute, kernels.autocast) for each in (bert, shallow)
        )
        more = training_bytes(bert, phase, computing) - training_bytes(shallow, phase, computing)
        # Copies of weights are kept for the backward pass, unless the layers are computed again.
        weights = (16 + (computing.copies if recompute else 0)) * (bert.parameters - shallow.parameters)
        assert more - weights == pytest.approx(kept - one, rel=0.15), "three layers more"


@each_dropout
@each_attention_dropout
@each_length
@each_kernel
@each_family
def test_training_memory_follows_the_rule(
    family: Any, kernel: Kernel, length: int, attention_dropout: float, dropout: float, make_batch: Make
) -> None:
    assert_three_more_layers(family, (dropout, attention_dropout), length, kernel, Kernels(), make_batch)


@each_attention_dropout
@each_kernel
@each_family
def test_16_bit_training_memory_follows_the_rule(
    family: Any, kernel: Kernel, attention_dropout: float, make_batch: Make
) -> None:
    kernels = Kernels(autocast=True, half_stream=True, weighed=kernel == "sequences")
    assert_three_more_layers(family, (0.1, attention_dropout), 256, kernel, kernels, make_batch)


@each_attention_dropout
@each_dropout
@each_kernel
def test_memory_of_short_rows_beside_a_long_one(
    kernel: Kernel, dropout: float, attention_dropout: float, make_batch: Make
) -> None:
    """Most of the rectangle is padding there: what is kept for a place is another number than for a token."""
    bert = BertModelConfig(size="mini", dropout=dropout, attention_dropout=attention_dropout).resolve(1000)
    rows = [64, *[8] * 15]
    deep, shallow = (
        kept_for_backward(bert.model_copy(update={"num_hidden_layers": layers}), kernel, rows, make_batch)
        for layers in (3, 1)
    )
    read = Pass(len(rows), sum(rows), max(rows), sum(length**2 for length in rows))
    assert 4 * layer_numbers(bert, read, kernel == "padded") == pytest.approx((deep - shallow) / 2, rel=0.03)


@each_dropout
@each_row("autocast", [False, True])
@each_length
@each_family
def test_gpu_training_memory_follows_the_rule(
    family: Any, length: int, autocast: bool, dropout: float, make_batch: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what a GPU's kernels keep: attention with dropout is one kernel, which a CPU has only without dropout, and
    torch's dropout keeps a mask of bytes."""

    def fused(*tensors: torch.Tensor, dropout_p: float = 0.0, **mask: torch.Tensor) -> torch.Tensor:
        return scaled_dot_product_attention(*tensors, **mask)

    monkeypatch.setattr(padded, "scaled_dot_product_attention", fused)
    monkeypatch.setattr(dropouts, "drop", lambda x, p: torch.ops.aten.native_dropout(x, p, True)[0])
    kernels = Kernels(fused=True, autocast=autocast, half_stream=autocast)
    assert_three_more_layers(family, (dropout, 0.1), length, "padded", kernels, make_batch)


def test_too_much_memory_is_an_error_and_doubt_a_warning(
    load: Load, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    recipe = load()
    needed = training_bytes(recipe.network(), recipe.train.phases[0], Computing())
    for there, level in ((2 * needed, "ok"), (0.7 * needed, "warning"), (0.3 * needed, "error")):
        monkeypatch.setattr(resources, "memory_size", lambda there=there: int(there))
        (verdict,) = memory(recipe, ["train"])
        assert verdict.level == level and f"about {size_of(needed)} of memory" in verdict.text
        assert not verdict.remedy or verdict.remedy.startswith("Lower train.phases.0.micro_batch")
    monkeypatch.setattr(resources, "memory_size", lambda: 1000)
    (verdict,) = memory(load("train.phases.0.micro_batch=0", "train.phases.0.micro_tokens=1024"), ["train"])
    assert verdict.remedy.startswith("Lower train.phases.0.micro_tokens, set")
    own = "train.phases.0.micro_batch=auto"
    (verdict,) = memory(load(own), ["train"])
    assert verdict.remedy == "Set train.checkpoint_activations=true, or choose a smaller model.size."
    (verdict,) = memory(load(own, "train.checkpoint_activations=true"), ["train"])
    assert verdict.remedy == "Choose a smaller model.size."
    written = sum(run_bytes(recipe, 1e6).values())
    for free, level in ((2 * written, "ok"), (0.7 * written, "warning"), (0.3 * written, "error")):
        monkeypatch.setattr(resources, "disk_free", lambda out, free=free: int(free))
        (verdict,) = disk(recipe, tmp_path, ["corpus", "examples", "train", "export"], 1e6)
        assert verdict.level == level and " are free" in verdict.text


@each_row(("averaging", "copies"), [("ema", 1), ('{kind="last", count=3, every=1}', 3)])
def test_averages_take_room_in_memory_and_in_every_checkpoint(
    load: Load, averaging: str, copies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, averaged = load(), load(f"train.averaging={averaging}")
    parameters = plain.network().parameters
    checkpoints = plain.train.keep_checkpoints + 2 + len(plain.train.phases)
    more = run_bytes(averaged, None)["train"] - run_bytes(plain, None)["train"]
    assert more == 4 * copies * parameters * checkpoints
    # The text has gigabytes, in which a small network's are not seen.
    monkeypatch.setattr(resources, "_memory_verdict", lambda *asked: asked[2])
    assert [*memory(averaged, ["train"])] == [needed + 4 * copies * parameters for needed in memory(plain, ["train"])]


def test_a_teacher_takes_room_beside_the_network(load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More for one that is larger, by its weights and by what a forward pass of it holds at a time."""
    monkeypatch.setattr(resources, "_memory_verdict", lambda *asked: asked[2])
    (plain,) = memory(load(), ["train"])
    for size in ("tiny", "mini"):
        model = PreTrainingModel(BertModelConfig(size=size).resolve(160, False))
        folder = write_stock(tmp_path / size, model)
        objective = f'{{kind="distillation", hidden_weight=0, teacher="{folder}"}}'
        recipe = load(f"train.objective={objective}")
        (beside,) = memory(recipe, ["train"])
        # What one layer would keep bounds what it holds at a time without a backward pass.
        held = kept_by_a_layer(model, [16] * 4)
        more = beside - plain
        weights, logits = 4 * model.config.parameters, 4 * 2 * 160 * 4 * recipe.train.phases[0].masking.most(16)
        assert weights + logits < more < weights + logits + 2 * held


def kept_by_a_layer(model: PreTrainingModel, lengths: list[int]) -> int:
    """Bytes that a forward pass of the first layer keeps, its weights among them."""
    kept: list[int] = []

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(4 * tensor.numel())
        return tensor

    attend = bind("sequences", random_batch(lengths, vocab_size=160))
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model.encoder.layers[0](torch.zeros(sum(lengths), model.config.hidden_size), attend)  # type: ignore[attr-defined]
    return sum(kept)


def test_a_run_takes_about_as_much_disk_as_forecast(load: Load, trained: Path) -> None:
    recipe, folder = load(), RunFolder(trained)
    text, _ = sources(recipe.corpus)
    forecast = run_bytes(recipe, text)
    for stage in ("corpus", "examples"):
        used = folder.artifact(stage).manifest["disk"]
        # However short it is, a sorted run begins with where each prefix of a hash begins.
        assert used["bytes"] + used["scratch_bytes"] < 3 * forecast[stage] + 500_000
    checkpoint = next((trained / "train" / "checkpoints").glob("step-*"))
    tensors = sum(p.stat().st_size for p in checkpoint.iterdir() if p.suffix == ".safetensors")
    assert 0 < tensors - 12 * recipe.network().parameters < 20_000, "beside the heads of the files"
