"""Recorded passes: when a pass is recorded, and that a replay reads and writes the tensors of the recording alone.

A replay here runs the pass again, on those tensors. That a replay by CUDA does the same is tested on a GPU.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from tests.reference.batches import random_batch
from tests.rows import each_row
from tests.unit.train.conftest import PHASES
from torch import Tensor

from bertwright.core.artifact import Artifact
from bertwright.core.files import sha256
from bertwright.core.log import SILENT, Silent
from bertwright.model.bert.config import BertModelConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.optim.config import AdamWConfig
from bertwright.train.config import TrainConfig
from bertwright.train.engine.single import Single
from bertwright.train.graph.recorded import (
    Inputs,
    Pass,
    Recorder,
    Recording,
    Scales,
    WrongRecordingError,
    build_recorder,
    copy_inputs,
)

Train = Callable[..., Artifact]


class Lines(Silent):
    def __init__(self) -> None:
        self.said = list[str]()

    def say(self, message: str) -> None:
        self.said.append(message)


@dataclass(frozen=True)
class Again:
    own: Pass
    names: list[str]
    inputs: Inputs

    def replay(self, given: Inputs) -> Tensor:
        copy_inputs(self.inputs, given)
        return self.inputs.run(self.own, self.names)


def recorded(own: Pass, names: list[str], given: Inputs) -> Recording:
    return Again(own, names, Inputs(given.batch.map(Tensor.clone), given.numbers.clone()))


def refused(own: Pass, names: list[str], given: Inputs) -> Recording:
    raise WrongRecordingError("a replay differs from the pass itself by 3.0%")


def engine() -> Single:
    network = BertModelConfig(size="tiny", max_positions=32).resolve(61, False)
    return Single(PreTrainingModel(network), AdamWConfig())


@pytest.mark.heavy
@pytest.mark.parametrize("record", [recorded, refused])
def test_replays_train_as_the_passes_themselves(
    train: Train, record: Callable[..., Recording], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two phases of packed rows, in which every step is replayed but the first."""
    phase = {"batch": 12, "micro_batch": 2, "learning_rate": 1e-3, "steps": 6, "packing": True}
    settings: dict[str, Any] = {"phases": [{**phase, "length": n} for n in (16, 32)], "log_every": 1}
    compiled = torch.compile
    monkeypatch.setattr(torch, "compile", lambda each, **more: compiled(each, backend="aot_eager", **more))
    plain = train("plain", graph="compiled", **settings)
    recordings, lines = list[Recording](), Lines()

    def record_and_count(*given: Any) -> Recording:
        recordings.append(record(*given))
        return recordings[-1]

    monkeypatch.setattr(
        "bertwright.train.setup.build.build_recorder",
        lambda _, engine, *more: Recorder(engine, lines, record_and_count),
    )
    replayed = train("replayed", graph="compiled", **settings)
    assert len(recordings) == (2 if record is recorded else 0)
    assert sum("not replayed as a CUDA graph" in line for line in lines.said) == (record is refused)
    rows = [
        [json.loads(line) for line in done.file("metrics.jsonl").read_text().splitlines()] for done in (plain, replayed)
    ]
    for one, other in zip(*rows, strict=True):
        assert {key: one[key] for key in ("batch", "mlm_loss", "mlm_accuracy", "grad_norm")} == {
            key: other[key] for key in ("batch", "mlm_loss", "mlm_accuracy", "grad_norm")
        }
    assert len({sha256(done.path / "model" / "model.safetensors") for done in (plain, replayed)}) == 1


def test_a_pass_is_recorded_in_the_second_step_that_begins_with_its_shape() -> None:
    seen = list[tuple[float, ...]]()

    def run(batch: Any, scales: Scales) -> Tensor:
        seen.append((float(scales.divisors["mlm"]), float(scales.loss)))
        return torch.zeros(2)

    recorder = Recorder(engine(), Lines(), recorded)
    short, long = random_batch([3, 4]), random_batch([9, 9])

    def begin(batch: Any, total: int, scale: float) -> bool:
        recorder.begin_step(run, lambda: None, batch, Scales({"mlm": total}, scale))
        return recorder.replay(batch, Scales({"mlm": total}, scale)) is not None

    assert [begin(batch, 1, 1.0) for batch in (short, long, short, short, short)] == [False, False, False, True, True]
    seen.clear()
    assert recorder.replay(long, Scales({"mlm": 7})) is None and not seen
    assert recorder.replay(short, Scales({"mlm": 7}, 4096.0)) is not None
    assert seen == [(7.0, 4096.0)], "a replay has the numbers of its step"
    assert [begin(batch, 1, 1.0) for batch in (long, long, short)] == [False, True, False]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@each_row(
    "changed",
    [{}, {"graph": "eager"}, {"checkpoint_activations": True}, {"graph": {"kind": "compiled", "cuda_graphs": False}}],
)
def test_compiled_passes_are_recorded_on_one_gpu(changed: dict[str, Any], device: str) -> None:
    config = TrainConfig.model_validate({"phases": PHASES, "graph": "compiled", **changed})
    made = build_recorder(config, engine(), torch.device(device), SILENT)
    assert (made is not None) == (device == "cuda" and not changed)
