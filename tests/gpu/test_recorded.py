"""Recorded passes on a GPU: replays compute what the pass computes, with other inputs, seeds and scales."""

from functools import partial
from typing import Any

import pytest
import torch
from tests.reference.batches import random_batch
from torch import Tensor

from bertwright.model.batch import PackedBatch, to_device
from bertwright.model.bert.config import BertModelConfig
from bertwright.model.dropout import seed_dropout
from bertwright.model.pretraining import PreTrainingModel
from bertwright.optim.config import AdamWConfig
from bertwright.tasks.pretraining.objective import PreTraining
from bertwright.train.engine.single import Single
from bertwright.train.graph.config import CompiledConfig
from bertwright.train.graph.graph import run_as
from bertwright.train.graph.recorded import Inputs, Pass, Scales, WrongRecordingError, record_cuda_graph
from bertwright.train.precision.config import Bf16Config, Fp32Config, PrecisionConfig
from bertwright.train.precision.precision import build_precision
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.setup.trainee import Trainee
from bertwright.train.step import run_pass

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU"),
    # What torch warns of differs by GPU and version: these tests ask for numbers.
    pytest.mark.filterwarnings("default::UserWarning:torch.*"),
]


def trainee_of(precision: PrecisionConfig, compiled: bool) -> Trainee:
    torch.manual_seed(0)
    device = torch.device("cuda")
    network = BertModelConfig(size="tiny", max_positions=32, initializer_range=0.1).resolve(61, True)
    model = PreTrainingModel(network, "padded").to(device).train()
    if compiled:
        run_as(model, CompiledConfig(), device)
    built = build_precision(precision, device)
    graph = {"graph": CompiledConfig()} if compiled else {}
    return Trainee(model, PreTraining(True), Single(model, AdamWConfig()), Ranks(), built, **graph)  # type: ignore[arg-type]


def inputs(lengths: list[int], numbers: list[float]) -> Inputs:
    batch: PackedBatch = to_device(random_batch(lengths), torch.device("cuda"))
    return Inputs(batch, torch.tensor(numbers, device="cuda"))


@pytest.mark.parametrize("compiled", [False, True], ids=["as written", "compiled"])
@pytest.mark.parametrize("precision", [Fp32Config(), Bf16Config()], ids=lambda config: config.kind)
def test_a_replay_is_the_pass_for_its_own_inputs_and_seed(precision: PrecisionConfig, compiled: bool) -> None:
    trainee = trainee_of(precision, compiled)
    own = Pass(
        partial(run_pass, trainee, trainee.network(), accuracy=True),
        trainee.engine.gradients(),  # type: ignore[attr-defined]
        partial(seed_dropout, torch.device("cuda"), 1),
    )
    names = ["mlm", "nsp"]
    recording = record_cuda_graph(own, names, inputs([5, 9, 32], [7.0, 3.0, 1.0]))
    for seed, given in enumerate([inputs([32, 5, 9], [9.0, 3.0, 1024.0]), inputs([9, 32, 5], [2.0, 1.0, 1.0])]):
        found: list[tuple[Any, ...]] = []
        for run in (recording.replay, partial(Inputs.run, own=own, names=names)):
            torch._foreach_zero_(own.gradients)
            seed_dropout(torch.device("cuda"), seed)
            found.append((run(given).clone(), [gradient.clone() for gradient in own.gradients]))
        torch.testing.assert_close(found[0], found[1], rtol=1e-3, atol=1e-3)


def test_what_a_recording_would_miss_is_found() -> None:
    gradient, calls = torch.zeros(3, device="cuda"), list[int]()

    def counting(batch: Any, scales: Scales) -> Tensor:
        calls.append(1)
        gradient.add_(len(calls))  # a number of the host, which a recording keeps
        return gradient.sum()[None]

    def reading(batch: Any, scales: Scales) -> Tensor:
        gradient.add_(float(scales.divisors["mlm"]))
        return gradient.sum()[None]

    for run, reason in ((counting, "differs from the pass"), (reading, "CUDA reports")):
        own = Pass(run, [gradient], lambda: None)
        with pytest.raises(WrongRecordingError, match=reason):
            record_cuda_graph(own, ["mlm"], inputs([5, 9], [7.0, 1.0]))
