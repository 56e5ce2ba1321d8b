"""NVIDIA's two phases in small, step by step: ours, a plain float64 restatement, and stock transformers in plain torch.

Twenty steps with the rules of the recipe `nvidia-large` (LAMB, square-root decay with its jump, masks of the originals,
moments handed over and bias correction started anew at the phase), without dropout, which nobody could repeat.
"""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from tests.conftest import Prepared
from tests.reference.nvidia_bert import NO_DECAY, lamb_of, losses, poly_warm_up
from tests.reference.padded import padded_inputs
from torch import Tensor

from bertwright import Recipe
from bertwright.core.stage_context import StageContext
from bertwright.model.batch import host_tensors
from bertwright.model.bert.config import BertModelConfig
from bertwright.model.interop.peer import peer_of
from bertwright.model.pretraining import PreTrainingModel
from bertwright.optim.schedule import PolySchedule, learning_rate
from bertwright.train.config import TrainConfig
from bertwright.train.run import run
from bertwright.train.settings.identity import Inputs, Settings
from bertwright.train.settings.phases import Phase, resolve_phases

NETWORK = {
    "vocab_size": 168, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "max_position_embeddings": 32, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
}  # fmt: skip
STEPS, LENGTHS, BATCHES = (12, 8), (16, 32), (24, 12)
RECIPE = Recipe.load("nvidia-large")
SEED = RECIPE.train.seed


class Followed(NamedTuple):
    """What each step of a training measured."""

    rates: list[float]
    mlm: list[float]
    nsp: list[float]


class Ours(NamedTuple):
    followed: Followed
    phases: list[Phase]
    network: PreTrainingModel
    """With the weights to begin with."""


def settings(folder: Path) -> Settings:
    """The recipe's rules at a size where float64 and a rectangle cost nothing."""
    (folder / "bert.json").write_text(json.dumps(NETWORK))
    kept = {"learning_rate", "warmup", "schedule", "masking"}
    phases = [
        phase.model_dump(include=kept) | {"length": length, "batch": batch, "steps": steps}
        for phase, length, batch, steps in zip(RECIPE.train.phases, LENGTHS, BATCHES, STEPS, strict=True)
    ]
    for phase in phases:
        phase["masking"]["max_predictions"] = 4
    training = {"phases": phases, "seed": SEED, "log_every": 1, "heldout_sequences": 2, "checkpoint_every": 50}
    return Settings(
        TrainConfig.model_validate({**training, "device": "cpu"}),
        BertModelConfig(config=folder / "bert.json"),
        RECIPE.optim,
    )


@pytest.fixture(scope="module")
def ours(prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Ours:
    folder = tmp_path_factory.mktemp("nvidia")
    chosen = settings(folder)
    done = run(chosen, Inputs(prepared.examples, prepared.vocab), StageContext(folder / "train"))
    rows: list[dict[str, Any]] = [json.loads(line) for line in done.file("metrics.jsonl").read_text().splitlines()]
    steps = [row for row in rows if "learning_rate" in row]
    columns = ("learning_rate", "mlm_loss", "nsp_loss")
    torch.manual_seed(SEED)
    network = PreTrainingModel(chosen.model.resolve(160))
    phases = resolve_phases(chosen.train, prepared.examples, prepared.vocab)
    return Ours(Followed(*([row[name] for row in steps] for name in columns)), phases, network)


def batches(phases: list[Phase]) -> Iterator[tuple[Phase, int, dict[str, Tensor], Tensor, Tensor]]:
    """Each step's batch as [B, S] inputs, labels with -100 where nothing is masked, and labels of pairs."""
    for phase in phases:
        for step in range(phase.steps):
            (batch,) = phase.loader.step(step)
            packed = host_tensors(batch, torch.device("cpu"))
            inputs, labels, _ = padded_inputs(packed)
            yield phase, step, inputs, labels, packed.sequence_labels


def rate_of(phase: Phase, step: int) -> float:
    recipe = RECIPE.train.phases[phase.index]
    return poly_warm_up(step, phase.schedule_steps, recipe.warmup, recipe.learning_rate)


def restated(start: Ours) -> Followed:
    """The same steps by the plain restatement, all in float64."""
    theirs = peer_of(start.network.config).names.to_theirs(start.network.state_dict())
    lamb = lamb_of({name: tensor.double() for name, tensor in theirs.items()})
    both = losses(NETWORK["num_attention_heads"], NETWORK["num_hidden_layers"])
    followed = Followed([], [], [])
    for phase, step, inputs, labels, next_labels in batches(start.phases):
        lamb.step = step  # phase 2 sets it to 0 and keeps the moments
        weights = {name: torch.from_numpy(array).requires_grad_() for name, array in lamb.weights.items()}
        mlm, nsp = both(weights, inputs, labels, next_labels)
        (mlm + nsp).backward()
        rate = rate_of(phase, step)
        lamb.update({name: tensor.grad.numpy() for name, tensor in weights.items()}, rate)  # type: ignore[union-attr]
        for column, value in zip(followed, (rate, mlm.item(), nsp.item()), strict=True):
            column.append(value)
    return followed


def stock(start: Ours) -> Followed:
    """The same steps by transformers' network and loss, in float64, with LAMB written out in plain torch."""
    from transformers import BertConfig, BertForPreTraining

    peer = peer_of(start.network.config)
    network = BertForPreTraining(BertConfig(**peer.config, attn_implementation="eager")).double().train()
    tensors = peer.names.to_theirs({name: tensor.double() for name, tensor in start.network.state_dict().items()})
    network.load_state_dict(tensors, strict=False)
    network.tie_weights()
    named = dict(network.named_parameters())
    assert set(named) == set(tensors)
    moments = {name: (torch.zeros_like(p), torch.zeros_like(p)) for name, p in named.items()}
    followed = Followed([], [], [])
    for phase, step, inputs, labels, next_labels in batches(start.phases):
        network.zero_grad()
        out = network(**inputs)
        mlm = torch.nn.functional.cross_entropy(out.prediction_logits.flatten(0, 1), labels.flatten())
        loss = network(**inputs, labels=labels, next_sentence_label=next_labels).loss
        loss.backward()
        rate = rate_of(phase, step)
        with torch.no_grad():
            plain_lamb(named, moments, step + 1, rate)
        for column, value in zip(followed, (rate, mlm.item(), (loss - mlm).item()), strict=True):
            column.append(value)
    return followed


def plain_lamb(named: dict[str, Tensor], moments: dict[str, tuple[Tensor, Tensor]], step: int, rate: float) -> None:
    """One update by NVIDIA's rule: the norm of all gradients bounded by 1, then a trust ratio where there is decay."""
    gradients = {name: p.grad for name, p in named.items() if p.grad is not None}
    norm = torch.stack([gradient.norm() for gradient in gradients.values()]).norm()
    for name, gradient in gradients.items():
        p, (m, v) = named[name], moments[name]
        bounded = gradient / norm.clamp(min=1.0)
        m.mul_(0.9).add_(bounded, alpha=0.1)
        v.mul_(0.999).addcmul_(bounded, bounded, value=0.001)
        decay = 0.0 if any(part in name for part in NO_DECAY) else 0.01
        update = (m / (1 - 0.9**step)) / ((v / (1 - 0.999**step)).sqrt() + 1e-6) + decay * p
        ratio = p.norm() / update.norm() if decay and p.norm() > 0 and update.norm() > 0 else 1.0
        p -= rate * ratio * update


@pytest.mark.parametrize("theirs", [restated, stock])
def test_twenty_steps_of_both_phases_are_nvidias(theirs: Any, ours: Ours) -> None:
    expected = theirs(ours)
    assert len(expected.mlm) == sum(STEPS) == 20
    assert ours.followed.rates == pytest.approx(expected.rates, rel=1e-12, abs=0)
    for name in ("mlm", "nsp"):
        found, wanted = (np.array(getattr(each, name)) for each in (ours.followed, expected))
        assert np.abs(found - wanted).max() < 1e-6 * wanted.max(), (name, np.abs(found - wanted).max())
    assert expected.mlm[-1] < expected.mlm[0] - 0.1, "twenty steps that learned nothing would agree by chance"


def test_the_jump_of_the_schedule_is_among_the_steps(ours: Ours) -> None:
    """After the warm-up a rate without the jump would be a tenth higher, and the last update of a phase has rate 0."""
    first, second = ours.followed.rates[: STEPS[0]], ours.followed.rates[STEPS[0] :]
    phase = RECIPE.train.phases[0]
    after = math.ceil(phase.warmup * STEPS[0]) - 1
    without = learning_rate(PolySchedule(), after, STEPS[0], phase.warmup * STEPS[0], phase.learning_rate)
    assert first[after] < 0.9 * without
    assert first[-1] == second[-1] == 0.0
