"""Each rule between sections: the combination that it refuses, and its nearest neighbours, which it accepts."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter
from tests.rows import each_row

from bertwright.contradictions.sections import (
    clipped_before_judged,
    missing_without_corpus,
    one_segment,
    pairs_unseen,
    too_many_ranks,
    unsupported_by_graph,
    unsupported_by_kernels,
    unsupported_by_sharding,
    without_kernel,
    wrong_groups,
    wrong_lengths,
)
from bertwright.core.artifact import MANIFEST
from bertwright.examples.config import ExamplesConfig
from bertwright.model.bert.network import BertConfig
from bertwright.model.config import ModelConfig
from bertwright.model.distilbert.network import DistilBertConfig
from bertwright.optim.config import OptimConfig
from bertwright.train.config import TrainConfig
from bertwright.vocab.config import VocabConfig

PHASE = {"length": 16, "batch": 8, "learning_rate": 1e-3, "steps": 3}
MODEL: Any = TypeAdapter(ModelConfig)
OPTIM: Any = TypeAdapter(OptimConfig)
NETWORK = {
    "vocab_size": 40,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
}


def train(*phases: dict[str, Any], **keys: Any) -> TrainConfig:
    """Training of one phase for each dictionary, which replaces keys of `PHASE`; `keys` are of `[train]`."""
    return TrainConfig.model_validate({"phases": [{**PHASE, **phase} for phase in phases or ({},)], **keys})


def model(**keys: Any) -> ModelConfig:
    return MODEL.validate_python({"size": "tiny", **keys})


def optim(**keys: Any) -> OptimConfig:
    return OPTIM.validate_python({"kind": "adamw", **keys})


def keys(mistakes: Any) -> list[str]:
    return [key for key, _ in mistakes]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder that is not one of the project's."""
    (tmp_path / "files").mkdir()
    return tmp_path / "files"


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """A folder that has a manifest."""
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / MANIFEST).write_text("{}")
    return tmp_path / "ours"


def test_without_a_corpus_vocabulary_and_data_are_required(files: Path, ours: Path) -> None:
    vocab = VocabConfig(file=files / "vocab.txt")
    assert keys(missing_without_corpus(vocab, train({"data": files}, {"data": files}))) == []
    assert keys(missing_without_corpus(VocabConfig(), train({"data": files}))) == ["vocab.file"]
    found = missing_without_corpus(vocab, train({"data": files}, {}, {"data": ours}))
    assert keys(found) == ["train.phases.1.data", "train.phases.2.data"]


@each_row(
    ("lengths", "scored", "positions", "wrong"),
    [
        ((16, 32), 0, 32, []),
        ((16, 32), 16, 32, []),
        ((16, 33), 0, 32, ["train.phases.1.length"]),
        ((16, 32), 24, 32, ["evaluate.length"]),
        ((40, 16, 40), 0, 32, ["train.phases.0.length", "train.phases.2.length"]),
        # Held out are sequences of the phases' lengths; 48 is of no phase, and longer than the model reads.
        ((16, 32), 48, 32, ["evaluate.length", "evaluate.length"]),
    ],
)
def test_lengths_fit_the_positions_and_the_phases(
    lengths: tuple[int, ...], scored: int, positions: int, wrong: list[str]
) -> None:
    assert keys(wrong_lengths(train(*({"length": n} for n in lengths)), scored, positions)) == wrong


def test_valid_lengths_are_listed_once_and_in_order() -> None:
    ((_, text),) = wrong_lengths(train({"length": 32}, {"length": 16}, {"length": 32}), 24, 512)
    assert "[16, 32]" in text


@each_row("kind", ["modern", "distilbert"])
def test_pairs_need_a_family_with_segments(kind: str) -> None:
    for plan in ("next-sentence", "sentence-order"):
        assert keys(pairs_unseen(model(kind=kind), ExamplesConfig(plan=plan))) == ["model.kind"]  # type: ignore[arg-type]
        assert not keys(pairs_unseen(model(), ExamplesConfig(plan=plan)))  # type: ignore[arg-type]
    assert not keys(pairs_unseen(model(kind=kind), ExamplesConfig(plan="doc-sentences")))


def test_one_segment_embedding_is_too_few_for_pairs(files: Path) -> None:
    """Whether files of examples hold pairs is known only once they are read."""
    pairs, single = ExamplesConfig(), ExamplesConfig(plan="doc-sentences")
    one, two = (BertConfig(**NETWORK, type_vocab_size=number) for number in (1, 2))
    given = train({"data": files})
    assert keys(one_segment(model(), one, train(), pairs)) == ["model.config"]
    assert keys(one_segment(model(), one, given, single)) == ["model.config"]
    assert not keys(one_segment(model(), one, train(), single))
    assert not keys(one_segment(model(), two, given, pairs))
    ((_, with_pairs),), ((_, without),) = (one_segment(model(), one, given, each) for each in (pairs, single))
    assert "examples.plan" in with_pairs and "examples.plan" not in without, "it is no remedy where it is set already"
    other = DistilBertConfig(vocab_size=40, dim=8, n_layers=1, n_heads=2, hidden_dim=16)
    assert not keys(one_segment(model(), other, train(), pairs)), "`pairs_unseen` refuses these"


SEQUENCES = {"attention": "sequences"}
HIDDEN = {"objective": {"kind": "distillation", "teacher": "teacher"}}
SOFT = {"objective": {"kind": "distillation", "teacher": "teacher", "hidden_weight": 0}}
PACKED = {"packing": True}


@each_row("graph", ["compiled", "ortmodule"])
@each_row(
    ("phase", "settings", "wrong"),
    [
        ({}, {}, []),
        ({}, SEQUENCES, ["train.attention"]),
        ({}, {"attention": "padded"}, []),
        ({}, HIDDEN, ["train.objective.hidden_weight"]),
        ({}, SOFT, []),
        ({**PACKED, "micro_batch": 1}, {}, []),
        ({"micro_batch": 0}, {}, []),
    ],
)
def test_a_graph_of_fixed_shapes_needs_passes_of_one_shape(
    graph: str, phase: dict[str, Any], settings: dict[str, Any], wrong: list[str]
) -> None:
    assert keys(unsupported_by_graph(train(phase, graph=graph, **settings), model())) == wrong
    assert keys(unsupported_by_graph(train(phase, graph="eager", **settings), model())) == []


def test_a_compiled_network_gets_full_rows_and_an_exported_one_does_not() -> None:
    phases = ({}, PACKED, {**PACKED, "micro_batch": "auto"}, {"micro_tokens": 64})
    assert keys(unsupported_by_graph(train(*phases, graph="compiled"), model())) == []
    assert keys(unsupported_by_graph(train(*phases, graph="ortmodule"), model())) == [
        "train.phases.1.micro_batch",
        "train.phases.2.micro_batch",
        "train.phases.3.micro_tokens",
    ]


@each_row(
    ("settings", "wrong"),
    [
        ({"precision": "bf16"}, "train.precision"),
        ({"precision": "tf32"}, "train.precision"),
        ({"attention": "varlen"}, "train.attention"),
        ({"attention": "triton"}, "train.attention"),
        ({"kernels": "triton"}, "train.kernels"),
        ({"device": "cuda"}, "train.device"),
        ({"checkpoint_activations": True}, "train.checkpoint_activations"),
        ({"objective": {"kind": "classification", "task": "cola"}}, "train.objective"),
    ],
)
def test_onnx_runtime_refuses_what_a_compiled_graph_accepts(settings: dict[str, Any], wrong: str) -> None:
    assert keys(unsupported_by_graph(train(graph="ortmodule", **settings), model())) == [wrong]
    assert keys(unsupported_by_graph(train(graph="compiled", **settings), model())) == []


def test_our_own_kernels_need_biases_of_products() -> None:
    for kernels, wrong in (("torch", []), ("triton", ["train.kernels"])):
        assert keys(unsupported_by_kernels(train(kernels=kernels), model(kind="modern"))) == wrong
        assert keys(unsupported_by_kernels(train(kernels=kernels), model(kind="distilbert"))) == []


def test_onnx_runtime_needs_biases_in_layer_norms() -> None:
    found = {
        kind: keys(unsupported_by_graph(train(graph="ortmodule"), model(kind=kind))) for kind in ("bert", "distilbert")
    }
    assert found == {"bert": [], "distilbert": []}
    assert keys(unsupported_by_graph(train(graph="ortmodule"), model(kind="modern"))) == ["model.kind"]
    assert keys(unsupported_by_graph(train(graph="compiled"), model(kind="modern"))) == []


@each_row(
    ("attention", "precision", "dropout", "wrong"),
    [
        ("varlen", "fp32", None, 1),
        ("varlen", "tf32", None, 1),
        ("varlen", "bf32", None, 1),
        ("varlen", "bf16", None, 0),
        ("varlen", "fp16", 0.0, 0),
        ("varlen", "bf16", 0.1, 1),
        ("varlen", "fp32", 0.1, 2),
        ("triton", "bf16", 0.1, 0),
        ("triton", "fp32", 0.1, 0),
        ("padded", "fp32", 0.1, 0),
        ("auto", "fp32", 0.1, 0),
    ],
)
def test_varlen_needs_half_precision_and_no_dropout(
    attention: str, precision: str, dropout: float | None, wrong: int
) -> None:
    network = model(attention_dropout=dropout).resolve(40)
    found = without_kernel(train(attention=attention, precision=precision), network)
    assert keys(found) == ["train.attention"] * wrong


def test_varlen_checks_the_dropout_of_a_config_file() -> None:
    """`model.attention_dropout` is not set there."""
    network = BertConfig(**{**NETWORK, "hidden_size": 16})
    ((key, text),) = without_kernel(train(attention="varlen", precision="bf16"), network)
    assert key == "train.attention" and "that of [model] is 0.1; set model.attention_dropout=0, or train." in text


@each_row(
    ("kernel", "hidden", "heads", "right"),
    [
        *(("varlen", *row) for row in [(64, 8, True), (768, 12, True), (512, 2, True), (528, 2, False)]),
        *(("varlen", *row) for row in [(40, 2, False), (36, 9, False)]),
        *(("triton", *row) for row in [(64, 8, True), (256, 2, True), (272, 2, False), (40, 2, False)]),
    ],
)
def test_the_kernels_for_gpus_take_heads_of_some_widths(kernel: str, hidden: int, heads: int, right: bool) -> None:
    size = {"hidden_size": hidden, "num_attention_heads": heads, "attention_probs_dropout_prob": 0.0}
    network = BertConfig(**{**NETWORK, **size})
    found = list(without_kernel(train(attention=kernel, precision="bf16"), network))
    assert keys(found) == ([] if right else ["train.attention"])
    assert right or f"those of [model] are {hidden // heads} wide; set train.attention=padded" in found[0][1]
    assert not keys(without_kernel(train(attention="padded", precision="bf16"), network))


ZERO3 = {"kind": "deepspeed", "stage": 3}
LOW = {"kind": "bf16", "weights": "bf16"}
LAMB = {"kind": "lamb"}
CLIP = {"kind": "lamb", "clip_before_reduction": True}


@each_row(
    ("engine", "settings", "optimizer", "wrong"),
    [
        ("fsdp", {}, {}, []),
        ("deepspeed", {}, {}, []),
        ("zero", {"averaging": "ema", "precision": LOW, "graph": "compiled"}, CLIP, []),
        # An average of weights needs entire weights: fsdp and stage 3 shard them, stages 1 and 2 do not.
        ("fsdp", {"averaging": "ema"}, {}, ["train.averaging"]),
        ("fsdp", {"averaging": {"kind": "last", "every": 2}}, {}, ["train.averaging"]),
        (ZERO3, {"averaging": "ema"}, {}, ["train.averaging"]),
        ({"kind": "deepspeed", "stage": 2}, {"averaging": "ema"}, {}, []),
        (ZERO3, {}, {}, []),
        # DeepSpeed keeps the float32 weights of fp16 as shards.
        ("deepspeed", {"averaging": "ema", "precision": "fp16"}, {}, ["train.averaging"]),
        ("deepspeed", {"precision": "fp16"}, {}, []),
        ("fsdp", {"precision": "bf16"}, {}, []),
        ("fsdp", {"precision": LOW}, {}, ["train.precision"]),
        ("deepspeed", {"precision": LOW}, {}, ["train.precision"]),
        ("fsdp", {"graph": "compiled"}, {}, ["train.graph"]),
        ("fsdp", {}, LAMB, []),
        ("deepspeed", {}, LAMB, ["optim.kind"]),
        ("deepspeed", {}, {"kind": "muon"}, ["optim.kind"]),
        ("fsdp", {}, CLIP, ["optim.clip_before_reduction"]),
        ("zero", {"compare_ranks_every": 5}, {}, []),
        ("fsdp", {"compare_ranks_every": 5}, {}, ["train.compare_ranks_every"]),
        ("deepspeed", {"compare_ranks_every": 5}, {}, ["train.compare_ranks_every"]),
        ("fsdp", {"compare_ranks_every": 0}, {}, []),
        ("fsdp", {"compare_ranks_every": 1000}, {}, []),
    ],
)
def test_sharding_engines_refuse_what_needs_full_tensors(
    engine: Any, settings: dict[str, Any], optimizer: dict[str, Any], wrong: list[str]
) -> None:
    found = list(unsupported_by_sharding(train(engine=engine, **settings), optim(**optimizer)))
    assert keys(found) == wrong
    assert all("train.engine=zero" in text for _, text in found)


def test_a_norm_that_ranks_have_clipped_is_not_judged() -> None:
    guard = {"spike": 10}
    ((key, text),) = clipped_before_judged(train(guard=guard), optim(**CLIP), 2)
    assert key == "train.guard.spike" and text == (
        "judges the norm of the summed gradient, but with optim.clip_before_reduction each of 2 ranks clips its part "
        "first, so that norm is at most optim.max_grad_norm 1; set train.guard.loss_spike instead, or leave one of the "
        "two out"
    )
    for config, optimizer, ranks in (
        (train(guard=guard), CLIP, 1),
        (train(guard=guard), LAMB, 2),
        (train(guard=guard), {}, 2),
        (train(guard={"loss_spike": 2}), CLIP, 2),
    ):
        assert not keys(clipped_before_judged(config, optim(**optimizer), ranks))


def test_micro_batch_auto_is_refused_with_sharding() -> None:
    phases: tuple[dict[str, Any], ...] = ({"micro_batch": 4}, {"micro_batch": "auto"})
    assert keys(unsupported_by_sharding(train(*phases, engine="fsdp"), optim())) == ["train.phases.1.micro_batch"]
    assert keys(unsupported_by_sharding(train(*phases, engine="ddp"), optim())) == []


def test_the_key_of_a_pattern_is_split_from_its_message() -> None:
    network = BertConfig(**NETWORK)
    assert keys(wrong_groups(optim(groups=[{"pattern": "*.bias", "weight_decay": 0}]), network)) == []
    ((key, text),) = wrong_groups(optim(groups=[{"pattern": "no.such", "weight_decay": 0}]), network)
    assert key == "optim.groups.0.pattern" and text.startswith("'no.such'")


@each_row(
    ("phase", "ranks", "wrong"),
    [
        ({"batch": 8}, 8, []),
        ({"batch": 8}, 9, ["train.phases.0.batch"]),
        ({"batch": 8, "micro_batch": 2}, 4, []),
        ({"batch": 8, "micro_batch": 2}, 5, ["train.phases.0.batch"]),
        ({"batch": 8, "micro_batch": "auto"}, 8, []),
        ({"batch": 8, "batch_warmup": [[0, 4], [2, 8]]}, 4, []),
        ({"batch": 8, "batch_warmup": [[0, 4], [2, 8]]}, 5, ["train.phases.0.batch_warmup"]),
    ],
)
def test_each_rank_has_at_least_one_micro_batch_of_every_step(
    phase: dict[str, Any], ranks: int, wrong: list[str]
) -> None:
    assert keys(too_many_ranks(train(phase), ranks)) == wrong


def test_the_product_of_micro_batch_and_ranks_is_reported() -> None:
    ((_, text),) = too_many_ranks(train({"batch": 8, "micro_batch": 3}), 4)
    assert text.startswith("8 ") and "3 x 4 ranks = 12" in text
    ((_, text),) = too_many_ranks(train({"batch": 8}), 11)
    assert text.startswith("8 ") and "11 ranks = 11" in text and " x " not in text


def test_the_engine_for_one_process_refuses_several() -> None:
    assert keys(too_many_ranks(train(engine="single"), 2)) == ["train.engine"]
    assert keys(too_many_ranks(train(engine="single"), 1)) == []
