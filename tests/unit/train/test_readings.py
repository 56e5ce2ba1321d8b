"""In a step the host reads from the device once, at its end: losses and gradient norm together.

Counted on a CPU: what torch is asked that a GPU could not answer without being waited for.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from tests.reference.batches import random_batch
from tests.reference.kernels import KERNELS
from tests.reference.unions import sections_of
from tests.rows import each_row
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from bertwright.model.batch import PackedBatch
from bertwright.model.classifier import Classifier
from bertwright.model.config import Kernel, ModelConfig
from bertwright.model.encoder import recompute_layers
from bertwright.model.pretraining import PreTrainingModel
from bertwright.optim.config import AdamWConfig, OptimConfig
from bertwright.tasks.classification.objective import Classification
from bertwright.tasks.distillation.config import DistillationConfig
from bertwright.tasks.distillation.objective import Distillation
from bertwright.tasks.pretraining.objective import PreTraining
from bertwright.tasks.span.objective import Span
from bertwright.tasks.tagging.objective import Tagging
from bertwright.train.engine.single import Single
from bertwright.train.precision.config import Bf16Config, Fp16Config, Fp32Config
from bertwright.train.precision.precision import LowCopy, Precision
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.setup.trainee import Trainee
from bertwright.train.step import StepSettings, train_step

pytestmark = pytest.mark.heavy

WAITING = {"_local_scalar_dense", "is_nonzero", "nonzero", "masked_select", "equal", "unique", "repeat_interleave"}
"""What aten can only answer by numbers that lie on the device."""
INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_"}
"""What asks for `nonzero` where an index is of booleans."""
HANDED_OUT = {Tensor.tolist, Tensor.numpy, Tensor.cpu}
"""What brings numbers to the host beside aten."""
FOR_CPUS = {
    ("sequences.py", "__init__"),
    ("sequences.py", "_padded"),
    ("sequences.py", "_queries_of"),
    ("padded.py", "__init__"),
}
"""A kernel that is for CPUs reads the lengths, and another looks at them where that does not wait."""
SOURCE = Path(sys.modules["bertwright"].__file__ or "").parent

Place = tuple[str, str]


def place() -> Place:
    """File and function of the package that asked, or of torch where none did."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        if Path(frame.f_code.co_filename).is_relative_to(SOURCE):
            return Path(frame.f_code.co_filename).name, frame.f_code.co_name
        frame = frame.f_back
    return "torch", ""


class Aten(TorchDispatchMode):
    """Notes operations that wait."""

    def __init__(self, places: Counter[Place]) -> None:
        super().__init__()
        self.places = places

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if name in INDEXING:
            indices = [index for index in args[1] if index is not None]
            if any(index.dtype in (torch.bool, torch.uint8) for index in indices):
                self.places[place()] += 1
        elif name in WAITING:
            self.places[place()] += 1
        return func(*args, **(kwargs or {}))


class Methods(TorchFunctionMode):
    """Notes methods of tensors that hand out numbers."""

    def __init__(self, places: Counter[Place]) -> None:
        super().__init__()
        self.places = places

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in HANDED_OUT:
            self.places[place()] += 1
        return func(*args, **(kwargs or {}))


def readings(
    trained: Trainee, totals: dict[str, int], scale: float = 1.0, batches: Sequence[PackedBatch] = ()
) -> Counter[Place]:
    """Who read, and how often, in a step of two micro-batches that is not the first one."""
    batches = batches or [random_batch([9, 5, 20], seed) for seed in (1, 2)]
    train_step(trained, batches, totals, StepSettings(1e-3, 1, scale))
    places: Counter[Place] = Counter()
    with ExitStack() as both:
        for mode in (Aten, Methods):
            both.enter_context(mode(places))
        result = train_step(trained, iter(batches), totals, StepSettings(1e-3, 2, scale))
    assert result.applied
    return Counter({where: count for where, count in places.items() if where not in FOR_CPUS})


def trained_as(family: Any, kernel: Kernel, optim: Any, precision: Any = None, recompute: bool = False) -> Trainee:
    torch.manual_seed(0)
    section = family(size="tiny", dropout=0.1, attention_dropout=0.1, max_positions=160)
    model = PreTrainingModel(section.resolve(61, family.takes_pairs), kernel).train()
    if recompute:
        recompute_layers(model.encoder)
    numbers = Precision(precision or Fp32Config(), torch.device("cpu"))
    low = LowCopy(model, numbers.weights) if numbers.weights else None
    objective = PreTraining(model.config.next_sentence)
    return Trainee(model, objective, Single(model, optim), Ranks(), numbers, low=low)


def totals_of(trained: Trainee) -> dict[str, int]:
    return dict.fromkeys(trained.objective.counted, 12)


ONCE = {("step.py", "train_step"): 1}


@each_row("optim", sections_of(OptimConfig))
@each_row("kernel", KERNELS)
@each_row("family", sections_of(ModelConfig))
def test_a_step_reads_once(family: Any, kernel: Kernel, optim: Any) -> None:
    trained = trained_as(family, kernel, optim())
    assert readings(trained, totals_of(trained)) == ONCE


@each_row("recompute", [False, True])
@each_row("precision", [Bf16Config(), Bf16Config(weights="bf16"), Fp16Config()])
@each_row("family", sections_of(ModelConfig))
def test_low_precision_or_recompute_resumes_bit_identical(family: Any, precision: Any, recompute: bool) -> None:
    trained = trained_as(family, "padded", AdamWConfig(), precision, recompute)
    assert readings(trained, totals_of(trained), scale=8.0) == ONCE


@each_row("kernel", KERNELS)
@each_row("precision", [Fp32Config(), Bf16Config(weights="bf16")])
@each_row("family", sections_of(ModelConfig))
def test_so_does_one_with_a_teacher(family: Any, precision: Any, kernel: Kernel) -> None:
    """All its terms are measured: of labels, of the teacher's probabilities and of its hidden states."""
    trained = trained_as(family, kernel, AdamWConfig(), precision)
    teacher = trained_as(family, kernel, AdamWConfig(), precision)
    network = teacher.low.network if teacher.low else teacher.model
    network.eval().requires_grad_(False)
    config = DistillationConfig(teacher=Path("teacher"), hidden_weight=1.0)
    layers = {number: number for number in range(1, network.config.num_hidden_layers + 1)}
    objective = Distillation(config, PreTraining(network.config.next_sentence), network, 61, layers)
    trained = replace(trained, objective=objective)
    assert totals_of(trained).keys() >= {"mlm", "soft", "hidden"}
    assert readings(trained, totals_of(trained)) == ONCE


@each_row("family", sections_of(ModelConfig))
@each_row(
    ("head", "objective"),
    [
        ("single", Classification(3)),
        ("several", Classification(3, several=True)),
        ("token", Tagging(cast(Any, None))),
        ("span", Span(8)),
    ],
)
def test_so_does_one_of_a_task_with_files(head: Any, objective: Any, family: Any) -> None:
    torch.manual_seed(0)
    network = family(size="tiny", max_positions=160).resolve(61, False)
    labels = ("a", "b") if head == "span" else ("a", "b", "c")
    model = Classifier(network.model_copy(update={"labels": labels, "head": head}), "padded").train()
    trained = Trainee(
        model, objective, Single(model, AdamWConfig()), Ranks(), Precision(Fp32Config(), torch.device("cpu"))
    )
    batches = list[Any]()
    for seed in (1, 2):
        batch = random_batch([9, 5, 20], seed)
        several = {"several": torch.rand(3, 3).round(), "span": torch.ones(3, 2, dtype=torch.int64)}
        labels_B = several.get(head, batch.sequence_labels)
        batches.append(replace(batch, sequence_labels=labels_B, labels=batch.labels % 3))
    assert readings(trained, totals_of(trained), batches=batches) == ONCE


def test_what_waits_is_counted() -> None:
    places: Counter[Place] = Counter()
    with Aten(places), Methods(places):
        x = torch.arange(4.0)
        asked: list[Any] = [lambda: float(x[0]), lambda: bool(x[1]), x.tolist, x.numpy, x.nonzero, lambda: x[x > 1]]
        for number, ask in enumerate(asked, 1):
            ask()
            assert places.total() == number
