"""Attention `auto` on a GPU: which kernels are timed, which is chosen, what is kept, and what all ranks use."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from tests.rows import each_row
from tests.unit.train.test_auto_precision import Says, job_like

from bertwright.core.artifact import Artifact
from bertwright.core.errors import MissingExtraError
from bertwright.core.log import Log
from bertwright.model.attention import triton, varlen
from bertwright.model.batch import PackedBatch, packed, packed_sequences
from bertwright.model.bert.network import BertConfig
from bertwright.model.config import NetworkConfig
from bertwright.model.modern.network import ModernConfig
from bertwright.train.graph.config import CompiledConfig
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.setup import build, choose_attention
from bertwright.train.setup.choose_attention import CALLS, Timed, choose, resolve_attention, time_kernels, to_time
from bertwright.train.state import State

Train = Callable[..., Artifact]
GPU = torch.device("cuda")
BERT = BertConfig(
    vocab_size=200, hidden_size=32, num_hidden_layers=3, num_attention_heads=4, intermediate_size=64,
    max_position_embeddings=32, hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.0,
)  # fmt: skip


def log() -> Log:
    return cast(Log, Says())


@pytest.fixture
def batch() -> PackedBatch:
    return packed_sequences([(list(range(5, 5 + length)), []) for length in (7, 12, 3, 12)], mask=6)


@pytest.fixture
def job(train: Train, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A training on a GPU on which all kernels work; `varlen` takes 3 ms a layer, `triton` 2 ms, `padded` 4 ms."""
    done = train()
    monkeypatch.setattr(varlen, "refusal", lambda *_: "")
    monkeypatch.setattr(triton, "refusal", lambda *_: "")
    monkeypatch.setattr(choose_attention, "to_time", lambda *_: None)
    monkeypatch.setattr(choose_attention, "packed", lambda *_: None)
    seconds = {"varlen": 3e-3, "triton": 2e-3, "padded": 4e-3}
    monkeypatch.setattr(
        choose_attention, "time_kernels", lambda kernels, *_: Timed({each: seconds[each] for each in kernels}, {})
    )
    monkeypatch.setattr(choose_attention, "is_deterministic", lambda config: config.deterministic is True)
    return replace(job_like(done), network=cast(NetworkConfig, BERT), out=done.path / "other")


def test_the_fastest_kernel_trains_and_is_recorded(job: Any) -> None:
    says = Says()
    found = resolve_attention(replace(job, choices={"precision_reason": "why"}), GPU, Ranks(), cast(Log, says))
    reason = "2 ms a layer, varlen 3 ms, padded 4 ms"
    assert found.config.attention == "triton"
    assert found.choices == {"precision_reason": "why", "attention_reason": reason}
    assert says.lines == [f"train: attention kernel triton: {reason} (train.attention can name one)"]


@each_row(
    ("seconds", "chosen"),
    [
        ({"triton": 3.0, "varlen": 2.0, "padded": 9.0}, "varlen"),
        ({"triton": 1.0, "varlen": 2.0, "padded": 0.95}, "triton"),
        ({"triton": 1.0, "varlen": 2.0, "padded": 0.9}, "padded"),
        ({"padded": 2.0}, "padded"),
    ],
)
def test_padding_must_be_a_tenth_faster(seconds: dict[Any, float], chosen: str) -> None:
    assert choose(Timed(seconds, {}))[0] == chosen


def test_a_deterministic_training_is_not_timed(job: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose_attention, "time_kernels", None)
    fixed = replace(job, config=job.config.model_copy(update={"deterministic": True}))
    found = resolve_attention(fixed, GPU, Ranks(), log())
    assert found.config.attention == "varlen" and found.choices["attention_reason"].startswith("not timed")


def test_what_fails_is_reported_and_not_chosen() -> None:
    assert choose(Timed({"padded": 2e-3}, {"triton": "CompilationError: at 3:4"})) == (
        "padded",
        "2 ms a layer, triton fails (CompilationError: at 3:4)",
    )
    kernel, reason = choose(Timed({}, {"padded": "OutOfMemoryError: 2 GB"}))
    assert (kernel, reason) == ("padded", "padded fails (OutOfMemoryError: 2 GB)")


def test_refused_kernels_are_not_timed(job: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any) -> str:
        raise MissingExtraError("needs torch 2.12 for windows")

    monkeypatch.setattr(varlen, "refusal", missing)
    assert resolve_attention(job, GPU, Ranks(), log()).choices["attention_reason"] == "2 ms a layer, padded 4 ms"
    monkeypatch.setattr(triton, "refusal", lambda *_: "supports heads whose width is a multiple of 8")
    monkeypatch.setattr(choose_attention, "time_kernels", None)
    alone = resolve_attention(job, GPU, Ranks(), log())
    assert alone.config.attention == "padded"
    assert alone.choices["attention_reason"] == "no other supports this network, precision and GPU"


def test_a_kernel_that_another_rank_lacks_is_left_out(job: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ranks, "any_of", lambda self, *_: [False, True, False])
    assert resolve_attention(job, GPU, Ranks(), log()).config.attention == "varlen"


def test_other_ranks_use_the_choice_of_the_first(job: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose_attention, "_resolve", None)
    monkeypatch.setattr(choose_attention, "text_of", lambda ranks, text: text or '["varlen", "1 ms a layer"]')
    second = cast(Ranks, SimpleNamespace(first=False, any_of=lambda *flags: list(flags)))
    says = Says()
    found = resolve_attention(job, GPU, second, cast(Log, says))
    assert (found.config.attention, found.choices["attention_reason"], says.lines) == ("varlen", "1 ms a layer", [])


@each_row(
    ("device", "last", "kernel"),
    [
        ("cuda:0 NVIDIA H100", "varlen", "varlen"),
        ("cuda:0 NVIDIA H100", "padded", "padded"),
        ("cuda:0 NVIDIA H100", "sequences", "triton"),
        ("cpu", "padded", "triton"),
    ],
)
def test_a_resumed_run_keeps_its_kernel_on_a_gpu(
    device: str, last: str, kernel: str, job: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = State(sessions=({"device": device, "attention": last},))
    monkeypatch.setattr(choose_attention, "newest_state", lambda *_: state)
    found = resolve_attention(job, GPU, Ranks(), log())
    assert found.config.attention == kernel
    assert (found.choices["attention_reason"] == "as at the last start") == (kernel == last)


@each_row(("attention", "device"), [("auto", "cpu"), ("padded", "cuda")])
def test_nothing_is_timed_on_a_cpu_or_if_named(attention: str, device: str, job: Any) -> None:
    named = replace(job, config=job.config.model_copy(update={"attention": attention}))
    assert resolve_attention(named, torch.device(device), Ranks(), log()) is named


def test_windows_count_by_their_layers(batch: PackedBatch, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 4 layers 2 are global; passes take 1 and 3 seconds by turns, after a first round that is not counted."""
    network = ModernConfig(
        vocab_size=200, hidden_size=32, num_hidden_layers=4, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=32, local_attention=4, global_attn_every_n_layers=3,
    )  # fmt: skip
    assert [window is None for window in network.windows] == [True, False, False, True]
    seconds, windows = iter([100.0, 100.0, *[1.0, 3.0] * 9]), list[Any]()
    monkeypatch.setattr(choose_attention, "bind", lambda kernel, batch, window: windows.append(window))
    timed = time_kernels(["padded"], network, batch, torch.float32, lambda call: next(seconds))
    assert timed == Timed({"padded": 2.0}, {}) and windows == []


def test_long_passes_are_timed_once(batch: PackedBatch) -> None:
    seconds = iter([2.0, 2.0, 5.0])
    timed = time_kernels(["padded"], BERT, batch, torch.float32, lambda call: next(seconds))
    assert timed.seconds == {"padded": 2.0} and list(seconds) == [5.0], "to warm up, then for more than a second"


def test_a_kernel_that_fails_is_not_tried_again(batch: PackedBatch) -> None:
    tried = list[int]()

    def timer(call: Callable[[], object]) -> float:
        tried.append(len(tried))
        if len(tried) == 1:
            raise RuntimeError("\nout of resources: shared memory\nRequired: 1")
        return 1e-3

    timed = time_kernels(["varlen", "padded"], BERT, batch, torch.float32, timer)
    assert timed == Timed({"padded": 1e-3}, {"varlen": "RuntimeError: out of resources: shared memory"})
    assert len(tried) == 1 + 8


@each_row("dtype", [torch.float32, torch.bfloat16])
def test_passes_of_kernels_are_timed_on_a_cpu(dtype: torch.dtype, batch: PackedBatch) -> None:
    given = list[Sequence[torch.Tensor]]()

    def timer(call: Callable[[], object]) -> float:
        given.append(cast(Sequence[torch.Tensor], call()))
        return 1e-3

    timed = time_kernels(["sequences", "padded"], BERT, batch, dtype, timer)
    assert timed == Timed({"sequences": 1e-3, "padded": 1e-3}, {})
    assert {(tuple(grad.shape), grad.dtype) for grads in given for grad in grads} == {((34, 4, 8), dtype)}
    for one, other in zip(*given[:2], strict=True):
        torch.testing.assert_close(one, other, rtol=0.05, atol=0.02)


@each_row("graph", ["eager", "compiled"])
@each_row("micro_batch", [4, "auto"])
def test_batches_to_time_have_the_shape_of_training(
    graph: str, micro_batch: Any, train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = list[tuple[Any, Any]]()

    def note(job: Any, *_: Any) -> Any:
        fixed = job.config.model_copy(update={"graph": CompiledConfig()})
        some = replace(job, config=fixed) if graph == "compiled" else job
        monkeypatch.setattr(choose_attention, "_NUMBERS", 2**25)
        whole = to_time(some, State(), 1)
        monkeypatch.setattr(choose_attention, "_NUMBERS", 16 * 16 * 2)
        seen.append((whole, to_time(some, State(), 1)))
        return job

    monkeypatch.setattr(build, "resolve_attention", note)
    phase = {"length": 16, "batch": 8, "micro_batch": micro_batch, "learning_rate": 1e-2, "steps": 1}
    train(f"{graph}-{micro_batch}", phases=[phase])
    ((whole, part),) = seen
    assert len(whole.cu_rows) - 1 == (4 if micro_batch == 4 else 8) and len(part.cu_rows) - 1 == 2
    if graph == "compiled":
        assert whole.max_row == 16 and len(part.token_ids) == 32
    packed(part)


def test_calls_are_timed_several_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    event = SimpleNamespace(record=lambda: None, synchronize=lambda: None, elapsed_time=lambda other: 1e3)
    monkeypatch.setattr(torch.cuda, "Event", lambda **_: event)
    calls = list[int]()
    assert choose_attention._seconds_on_gpu(lambda: calls.append(1)) == 1 / CALLS and len(calls) == CALLS


def test_a_training_on_a_cpu_has_no_reason(train: Train, tmp_path: Path) -> None:
    (session,) = train().counts["sessions"]
    assert session["attention"] == "sequences" and "attention_reason" not in session
