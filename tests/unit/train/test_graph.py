"""A compiled network: one graph for all batches of a phase, and the losses and gradients of the network uncompiled."""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter, ValidationError
from tests.reference.batches import random_batch
from tests.reference.unions import sections_of
from tests.rows import each_row
from torch._dynamo.utils import counters

from bertwright import wrap_graph
from bertwright.core.artifact import Artifact
from bertwright.core.errors import MissingExtraError, RecipeError
from bertwright.examples.batch import MicroBatch
from bertwright.examples.padding import Room, in_rows
from bertwright.model.batch import packed
from bertwright.model.bert.config import BertModelConfig
from bertwright.model.classifier import Classifier
from bertwright.model.config import ModelConfig
from bertwright.model.dropout import Dropout
from bertwright.model.encoder import recompute_layers
from bertwright.model.pretraining import PreTrainingModel
from bertwright.tasks.classification.objective import Classification
from bertwright.tasks.distillation.objective import SoftTerm
from bertwright.tasks.pretraining.objective import PreTraining
from bertwright.tasks.span.objective import Span
from bertwright.tasks.tagging.objective import Tagging
from bertwright.tasks.terms import Term, loss_sums
from bertwright.train.graph import packages
from bertwright.train.graph.config import CompiledConfig, GraphConfig, OrtModuleConfig
from bertwright.train.graph.graph import compiled_losses, run_as
from bertwright.train.step import train_step

pytestmark = pytest.mark.heavy

Train = Callable[..., Artifact]
FAMILIES = sections_of(ModelConfig)
ROOM = Room(rows=4, length=32, sequences=8, predictions=32)
BATCHES = [[5, 9, 32], [32, 32, 32, 32], [4, 31, 20, 12]]
CPU = torch.device("cpu")


def drawn(lengths: list[int]) -> MicroBatch:
    batch = random_batch(lengths)
    return MicroBatch(**{name: value if name == "max_row" else value.numpy() for name, value in vars(batch).items()})


def loss_and_gradients(model: PreTrainingModel, batch: MicroBatch, losses: Any = loss_sums) -> list[torch.Tensor]:
    model.zero_grad()
    terms = PreTraining(model.nsp is not None).terms(model, packed(batch))
    loss = torch.stack(list(losses(terms).values())).sum()
    loss.backward()
    return [loss.detach(), *(p.grad for p in model.parameters() if p.grad is not None)]


@pytest.fixture
def as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is traced runs as it is written: a compiler of machine code takes a minute."""
    compiled = torch.compile
    monkeypatch.setattr(torch, "compile", lambda each, **more: compiled(each, backend="aot_eager", **more))
    compiled_losses.cache_clear()
    torch._dynamo.reset()
    counters.clear()


REGIONS = {"bert": 7, "distilbert": 5, "modern": 7}
"""Embeddings, an inner and the last layer, masked-token head and losses; in BERT the pooler and the second head, too,
and in ModernBERT the first layer, which has no norm, and the last norm."""


@pytest.mark.parametrize("again", [False, True], ids=["kept", "computed again"])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda section: section.model_fields["kind"].default)
def test_each_region_is_one_graph_for_all_batches(family: Any, again: bool, as_written: None) -> None:
    """Each is traced whole, which fails at anything that would wait for the host."""
    torch.manual_seed(0)
    section = family(size="tiny", dropout=0.0, attention_dropout=0.0, max_positions=32, initializer_range=0.1)
    network = section.resolve(61, family.takes_pairs)
    network = network.model_copy(update={"n_layers" if hasattr(network, "n_layers") else "num_hidden_layers": 6})
    plain = PreTrainingModel(network, "padded")
    traced = copy.deepcopy(plain)
    run_as(traced, CompiledConfig(), CPU)
    if again:
        recompute_layers(traced.encoder)
    for lengths in BATCHES:
        ours, theirs = (
            loss_and_gradients(plain, drawn(lengths)),
            loss_and_gradients(traced, in_rows(drawn(lengths), ROOM), compiled_losses()),
        )
        for one, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
    assert counters["stats"]["unique_graphs"] == REGIONS[network.family]
    traced.eval()
    with torch.no_grad():
        traced(packed(drawn([3, 7])))
    assert counters["stats"]["unique_graphs"] == REGIONS[network.family], "scoring runs as it is written"


@each_row("family", FAMILIES)
@each_row(
    ("head", "objective"),
    [
        ("single", Classification(3)),
        ("several", Classification(3, several=True)),
        ("token", Tagging(cast(Any, None))),
        ("span", Span(8)),
    ],
)
def test_tasks_with_files_learn_the_same_compiled(head: Any, objective: Any, family: Any, as_written: None) -> None:
    torch.manual_seed(0)
    section = family(size="tiny", dropout=0.0, attention_dropout=0.0, max_positions=32, initializer_range=0.1)
    labels = ("a", "b") if head == "span" else ("a", "b", "c")
    network = section.resolve(61, False).model_copy(update={"labels": labels, "head": head})
    plain = Classifier(network, "padded").train()
    for module in plain.modules():  # the classifier of a DistilBERT has a dropout of its own
        if isinstance(module, Dropout):
            module.p = 0.0
    traced = copy.deepcopy(plain)
    run_as(traced, CompiledConfig(), CPU)
    for number, lengths in enumerate(BATCHES):
        batch, random = drawn(lengths), np.random.default_rng(number)
        several = {
            "several": random.integers(2, size=(len(lengths), 3)).astype(np.float32),
            "span": np.ones((len(lengths), 2), np.int64),
        }
        labels_B = several.get(head, random.integers(3, size=len(lengths)))
        batch = replace(
            batch, sequence_labels=labels_B, sequence_weights=np.ones(len(lengths), np.float32), labels=batch.labels % 3
        )
        found = []
        for model, given, losses in ((plain, batch, loss_sums), (traced, in_rows(batch, ROOM), compiled_losses())):
            model.zero_grad()
            loss = torch.stack(list(losses(objective.terms(model, packed(given))).values())).sum()
            loss.backward()
            found.append([loss.detach(), *(p.grad for p in model.parameters() if p.grad is not None)])
        for one, other in zip(*found, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_compiled_losses_and_their_gradients_are_those_of_eager(dtype: torch.dtype, as_written: None) -> None:
    torch.manual_seed(0)
    labels, weights = torch.randint(50, (9,)), torch.rand(9)
    found = []
    for losses in (loss_sums, compiled_losses()):
        logits = torch.randn(9, 50, generator=torch.Generator().manual_seed(1)).to(dtype).requires_grad_()
        teachers = torch.randn(9, 50, generator=torch.Generator().manual_seed(2)).to(dtype)
        terms = {"mlm": Term(logits, labels, weights), "soft": SoftTerm(logits, teachers, weights, 2.0, 1.0)}
        sums = list(losses(terms).values())
        torch.stack(sums).sum().backward()
        found.append([*(each.detach() for each in sums), logits.grad])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-2 if dtype != torch.float32 else 1e-5, atol=1e-5)


def test_nothing_is_compiled_after_the_first_step_of_a_phase(
    train: Train, as_written: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """200 steps of packed rows in two phases, scored in between."""
    graphs = list[int]()

    def step(*given: Any) -> Any:
        result = train_step(*given)
        graphs.append(counters["stats"]["unique_graphs"])
        return result

    monkeypatch.setattr("bertwright.train.run.train_step", step)
    phase = {"batch": 12, "micro_batch": 2, "learning_rate": 1e-3, "steps": 100, "packing": True}
    train(phases=[{**phase, "length": 16}, {**phase, "length": 32}], graph="compiled", evaluate_every=20)
    assert len(graphs) == 200
    each = REGIONS["bert"] - 1  # its only layer is the last
    assert graphs[:100] == [each] * 100, "one graph for each region"
    # Regions whose inputs have the same shape in both phases, such as the pooler's, keep theirs.
    assert set(graphs[100:]) == {graphs[100]} and each < graphs[100] <= 2 * each


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_the_compiler_respects_earlier_determinism(mode: int) -> None:
    if missing := packages.missing_compiler("cpu"):
        pytest.skip(f"nothing is compiled without {missing}")
    before, told = torch.get_deterministic_debug_mode(), torch._inductor.config.deterministic
    try:
        torch.set_deterministic_debug_mode(mode)  # which tells the compiler nothing, as where it is not loaded
        torch._inductor.config.deterministic = mode == 0
        section = BertModelConfig(size="tiny", max_positions=32)
        run_as(PreTrainingModel(section.resolve(61, True), "padded"), CompiledConfig(), CPU)
        assert torch._inductor.config.deterministic is (mode > 0)
        assert torch.get_deterministic_debug_mode() == mode
    finally:
        torch.set_deterministic_debug_mode(before)
        torch._inductor.config.deterministic = told


@pytest.mark.slow
@pytest.mark.parametrize("packing", [False, True])
def test_compiled_training_has_the_losses_of_eager_training(train: Train, packing: bool) -> None:
    phases = [{"length": 32, "batch": 16, "micro_batch": 4, "learning_rate": 1e-2, "steps": 6, "packing": packing}]
    settings = {"phases": phases, "dropout": 0.0, "attention": "padded", "log_every": 1}
    eager, compiled = (train(kind, graph=kind, **settings) for kind in ("eager", "compiled"))
    rows = [
        [json.loads(line) for line in (done.path / "metrics.jsonl").read_text().splitlines()]
        for done in (eager, compiled)
    ]
    for one, other in zip(*rows, strict=True):
        assert one["batch"] == other["batch"], "padding counts for nothing"
        for key in ("mlm_loss", "grad_norm"):
            assert other[key] == pytest.approx(one[key], rel=1e-4)
    assert compiled.counts["sessions"][0]["graph"] == "compiled"


def test_every_region_is_whole_and_of_fixed_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    found = list[dict[str, Any]]()
    monkeypatch.setattr(torch, "compile", lambda function, **settings: found.append(settings))
    network = BertModelConfig(size="tiny", max_positions=32).resolve(61, False)
    run_as(PreTrainingModel(network, "padded"), CompiledConfig(), CPU)
    assert len(found) > 2 and all(each == {"fullgraph": True, "dynamic": False} for each in found)


def test_what_is_not_compiled_has_no_graphs_to_record() -> None:
    with pytest.raises(ValidationError, match=r"eager\.cuda_graphs\s+Extra inputs are not permitted"):
        TypeAdapter(GraphConfig).validate_python({"kind": "eager", "cuda_graphs": True})


def test_without_a_compiler_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("CC", "CXX"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(packages.shutil, "which", lambda name: None)
    with pytest.raises(RecipeError, match=r"train\.graph = compiled needs a C\+\+ compiler \(g\+\+\)\. Install it"):
        run_as(torch.nn.Linear(2, 2), CompiledConfig(), CPU)
    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    with pytest.raises(RecipeError, match=r"needs Triton.*train\.graph=eager"):
        run_as(torch.nn.Linear(2, 2), CompiledConfig(), torch.device("cuda"))


@each_row(
    ("device", "environment", "programs", "header", "missing"),
    [
        ("cuda", {}, {"gcc"}, True, ""),
        ("cuda", {}, {"clang"}, True, ""),
        ("cuda", {}, {"g++"}, True, "a C compiler (gcc or clang)"),
        ("cuda", {"CC": "icx"}, {"gcc"}, True, "a C compiler (icx)"),
        ("cuda", {"CC": "icx"}, {"icx"}, True, ""),
        ("cuda", {}, {"gcc"}, False, "Python's header file {header} (Debian: python3-dev)"),
        ("cpu", {}, {"g++"}, True, ""),
        ("cpu", {}, {"gcc", "clang++"}, True, "a C++ compiler (g++)"),
        ("cpu", {"CXX": "icpx"}, {"icpx"}, True, ""),
        ("cpu", {}, {"g++"}, False, "Python's header file {header} (Debian: python3-dev)"),
    ],
)
def test_what_a_compiler_needs_is_that_of_its_device(
    device: str,
    environment: dict[str, str],
    programs: set[str],
    header: bool,
    missing: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """As Triton's `runtime/build.py` and torch's `_inductor/cpp_builder.py` look for them."""
    for variable in ("CC", "CXX"):
        monkeypatch.delenv(variable, raising=False)
    for variable, program in environment.items():
        monkeypatch.setenv(variable, program)
    path = tmp_path / "Python.h"
    if header:
        path.touch()
    monkeypatch.setattr(packages, "find_spec", lambda name: object())
    monkeypatch.setattr(packages.shutil, "which", lambda name: name if name in programs else None)
    monkeypatch.setattr(packages, "python_header", lambda: path)
    assert packages.missing_compiler(device) == missing.format(header=path)


class Small(torch.nn.Module):
    """A network of somebody else's."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.inner, self.output = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.output(torch.tanh(self.inner(x)))


def losses(model: torch.nn.Module, steps: int = 3) -> list[float]:
    """A training loop of somebody else's."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    found = []
    for step in range(steps):
        x = torch.randn(16, 4, generator=torch.Generator().manual_seed(step))
        loss = (model(x) - x.sum(-1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_wrap_graph_runs_a_foreign_training_loop(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Traced as ever; what is traced runs as it is written where nothing is to be compiled, which takes long."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend))
    expected, plain, model = losses(Small()), Small(), Small()
    assert wrap_graph(plain, "eager") is plain
    torch._dynamo.reset()
    counters.clear()
    compiled = wrap_graph(model, "compiled")
    assert losses(compiled) == pytest.approx(expected, rel=1e-5) and counters["stats"]["unique_graphs"] == 1
    assert compiled.state_dict().keys() == Small().state_dict().keys()
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), compiled.parameters(), strict=True))


def test_a_graph_that_cannot_be_had_is_never_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RecipeError, match=r"forward of Sequential is torch's own, which is not compiled\. Put the m"):
        wrap_graph(torch.nn.Sequential(Small()), "compiled")
    with pytest.raises(RecipeError, match=r"no graph 'onnx'\. Use one of eager, compiled, ortmodule\."):
        wrap_graph(Small(), "onnx")  # type: ignore[arg-type]
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(packages.shutil, "which", lambda name: None)
    with pytest.raises(RecipeError, match=r"the graph compiled needs a C\+\+ compiler \(g\+\+\)\. Install it, or use"):
        wrap_graph(Small(), "compiled")
    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    with pytest.raises(
        MissingExtraError, match=r"needs ONNX Runtime's training package \(onnxruntime-training-cpu 1\."
    ):
        wrap_graph(Small(), "ortmodule")
    with pytest.raises(MissingExtraError, match=r"train\.graph = ortmodule needs .*make ort-env.*train\.graph=eager"):
        run_as(Small(), OrtModuleConfig(), CPU)


def test_the_extension_that_is_built_here_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "training" / "ortmodule" / "torch_cpp_extensions"
    found = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(packages, "find_spec", lambda name: found)
    assert "onnxruntime-training" in packages.missing_ortmodule(), "a package that computes and does not train"
    folder.mkdir(parents=True)
    assert packages.missing_ortmodule().startswith("the extension of torch")
    (folder / "aten_op_executor.so").touch()
    assert packages.missing_ortmodule() == ""
