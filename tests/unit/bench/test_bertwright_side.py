"""Our side: the steps of a run, with the floor of each."""

import numpy as np
import pytest
import torch
from tests.rows import each_row
from tests.unit.bench.test_workload import SMALL

import bertwright.bench.bertwright_side as side
from bertwright.bench.bertwright_side import _build_trainee, bertwright_side
from bertwright.bench.workload import Step, Training, loader_of
from bertwright.model.flops import STEP, forward_flops
from bertwright.model.pretraining import PreTrainingModel
from bertwright.train.monitor.throughput import Throughput
from bertwright.train.setup.trainee import Trainee
from bertwright.train.step import StepSettings, train_step

pytestmark = pytest.mark.heavy

ONE = Training(threads=1)


def test_the_requested_steps_run_in_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[list[int]] = []

    def noted(trained: Trainee, batches: object, *rest: object) -> object:
        kept = list(batches)  # type: ignore[call-overload]
        drawn.append(kept[0].token_ids.tolist())
        return train_step(trained, iter(kept), *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(side, "train_step", noted)
    take = bertwright_side(SMALL, ONE)
    first, second = take(2), take(3)
    assert (len(first), len(second)) == (2, 3)
    assert all(step.seconds > 0 and step.processor_seconds > 0 for step in (*first, *second))
    loader = loader_of(SMALL)
    assert drawn == [loader.step(number)[0].token_ids.tolist() for number in range(5)], "no batch twice, none left out"


def test_the_weights_move(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Trainee] = []
    monkeypatch.setattr(side, "_build_trainee", lambda *given: kept.append(_build_trainee(*given)) or kept[-1])
    take = bertwright_side(SMALL, ONE)
    before = {name: tensor.clone() for name, tensor in kept[0].model.state_dict().items()}
    take(1)
    moved = {name for name, tensor in kept[0].model.state_dict().items() if not torch.equal(tensor, before[name])}
    assert moved == before.keys(), "every tensor: with pairs the pooler too"


def test_dropout_is_as_requested() -> None:
    model = _build_trainee(SMALL, Training(dropout=0.25, attention_dropout=0.125)).model
    assert isinstance(model, PreTrainingModel) and model.training
    config = model.config
    assert (config.hidden_dropout_prob, config.attention_probs_dropout_prob) == (0.25, 0.125)
    assert model.encoder.kernel == "sequences" and model.nsp is not None


def test_attention_dropout_is_applied() -> None:
    """The same weights and batch give another loss with it, and the same one without."""
    (batch,) = loader_of(SMALL).step(0)
    losses = {}
    for rate in (0.0, 0.5):
        for key in (1, 2):
            trained = _build_trainee(SMALL, Training(threads=1, dropout=0.0, attention_dropout=rate))
            counts = {"mlm": batch.counts.predictions, "nsp": batch.counts.sequences}
            result = train_step(trained, iter([trained.read(batch, None)]), counts, StepSettings(1e-4, key))  # type: ignore[arg-type]
            losses[rate, key] = result.losses["mlm"]
    assert losses[0.0, 1] == losses[0.0, 2]
    assert len(set(losses.values())) == 3


@each_row("speed", [1e9, 4e9])
def test_the_floor_is_the_operations_at_matmul_speed(speed: float, monkeypatch: pytest.MonkeyPatch) -> None:
    def meter(model: PreTrainingModel, *_: object) -> Throughput:
        return Throughput(model.config, torch.device("cpu"), speed)

    monkeypatch.setattr(side, "measure_throughput", meter)
    loader, config = loader_of(SMALL), _build_trainee(SMALL, ONE).model.config
    for number, step in enumerate(bertwright_side(SMALL, ONE)(3)):
        (batch,) = loader.step(number)
        lengths = np.diff(batch.cu_seqlens)
        flops = STEP * forward_flops(config, lengths, len(batch.labels))
        assert step.floor == pytest.approx(flops / speed)


def test_the_floor_is_measured_before_each_block(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def meter(model: PreTrainingModel, *_: object) -> Throughput:
        asked.append(torch.get_num_threads())
        return Throughput(model.config, torch.device("cpu"), 1e9)

    monkeypatch.setattr(side, "measure_throughput", meter)
    before = torch.get_num_threads()
    take = bertwright_side(SMALL, Training(threads=2))
    take(1), take(1)
    assert asked == [2, 2] and torch.get_num_threads() == before


def test_a_real_floor_is_below_the_step() -> None:
    (step,) = bertwright_side(SMALL, ONE)(1)
    assert isinstance(step, Step) and step.floor is not None and 0 < step.floor < 100 * step.seconds


def test_products_are_computed_in_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    from bertwright.estimate.machine_facts import bf16_units

    if not bf16_units():
        pytest.skip("this processor has no unit for bfloat16")
    seen = []

    def meter(model: PreTrainingModel, precision: object, *_: object) -> Throughput:
        with precision.forward():  # type: ignore[attr-defined]
            seen.append(torch.ones(1, 1).mm(torch.ones(1, 1)).dtype)
        return Throughput(model.config, torch.device("cpu"), 1e9)

    monkeypatch.setattr(side, "measure_throughput", meter)
    bertwright_side(SMALL, Training("bf16", 1))(1), bertwright_side(SMALL, ONE)(1)
    assert seen == [torch.bfloat16, torch.float32]
