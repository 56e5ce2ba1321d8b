"""One optimizer step: what dropout, the sum over micro-batches and a gradient that is not finite do."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from weakref import ref

import pytest
import torch
from tests.unit.model.conftest import make_batch, tiny
from torch.nn.functional import cross_entropy

from bertwright.model.batch import PackedBatch
from bertwright.model.bert.network import BertConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.optim.config import AdamWConfig
from bertwright.tasks.pretraining.objective import PreTraining
from bertwright.tasks.terms import Term
from bertwright.train.engine.single import Single
from bertwright.train.precision.config import Fp32Config
from bertwright.train.precision.precision import Precision
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.setup.trainee import Trainee
from bertwright.train.step import StepResult, StepSettings, train_step

__all__ = ["make_batch", "tiny"]  # fixtures
MakeBatch = Callable[..., PackedBatch]
LENGTHS = ([5, 9, 3], [7, 4], [12])


@pytest.fixture
def step(tiny: BertConfig) -> Callable[..., tuple[StepResult, PreTrainingModel]]:
    """`step(batches, dropout=..., rank=..., key=...)`: one step of a fresh network; its result and the network."""

    def take(
        batches: list[PackedBatch],
        dropout: float = 0.0,
        rank: int = 0,
        key: int = 1,
        learning_rate: float = 1e-2,
        max_grad_norm: float = 1.0,
        accuracy: bool = False,
        totals: dict[str, int] | None = None,
        loss_limit: float = math.inf,
    ) -> tuple[StepResult, PreTrainingModel]:
        torch.manual_seed(0)
        model = PreTrainingModel(tiny.model_copy(update={"hidden_dropout_prob": dropout})).train()
        totals = totals or {
            "mlm": sum(len(b.labels) for b in batches),
            "nsp": sum(len(b.sequence_labels) for b in batches),
        }
        engine = Single(model, AdamWConfig(max_grad_norm=max_grad_norm))
        objective, ranks = PreTraining(next_sentence=True), Ranks(rank=rank)
        trained = Trainee(model, objective, engine, ranks, Precision(Fp32Config(), torch.device("cpu")))
        update = StepSettings(learning_rate, key, accuracy=accuracy, loss_limit=loss_limit)
        return train_step(trained, batches, totals, update), model

    return take


def weights(model: PreTrainingModel) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_the_losses_are_means_over_the_global_batch(tiny: BertConfig, make_batch: MakeBatch, step: Any) -> None:
    batches = [make_batch(tiny, lengths, seed) for seed, lengths in enumerate(LENGTHS)]
    result, _ = step(batches, learning_rate=0.0)
    torch.manual_seed(0)
    model = PreTrainingModel(tiny).double()
    mlm, nsp = zip(*(model(batch) for batch in batches), strict=True)
    mlm_loss = cross_entropy(torch.cat(mlm), torch.cat([b.labels for b in batches]))
    nsp_loss = cross_entropy(torch.cat(nsp), torch.cat([b.sequence_labels for b in batches]))
    (mlm_loss + nsp_loss).backward()
    norm = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]).norm()
    assert result.losses["mlm"] == pytest.approx(mlm_loss.item(), rel=1e-5)
    assert result.losses["nsp"] == pytest.approx(nsp_loss.item(), rel=1e-5)
    assert result.grad_norm == pytest.approx(norm.item(), rel=1e-5) and result.applied


def test_accuracies_are_counted_on_request_only(tiny: BertConfig, make_batch: MakeBatch, step: Any) -> None:
    batches = [make_batch(tiny, lengths, seed) for seed, lengths in enumerate(LENGTHS)]
    torch.manual_seed(0)
    model = PreTrainingModel(tiny)
    right = {"mlm": 0, "nsp": 0}
    for number, batch in enumerate(batches):
        mlm_PV, nsp_B2 = model(batch)
        guesses_P = mlm_PV.argmax(-1)
        # Made right in all but every third place, so the share is neither 0 nor 1.
        labels_P = torch.where(torch.arange(len(guesses_P)) % 3 > 0, guesses_P, batch.labels)
        batches[number] = replace(batch, labels=labels_P)
        right["mlm"] += sum(int(a) == int(b) for a, b in zip(guesses_P, labels_P, strict=True))
        right["nsp"] += sum(
            int(row[1] > row[0]) == int(b) for row, b in zip(nsp_B2, batch.sequence_labels, strict=True)
        )
    (counted, one), (plain, other) = (step(batches, accuracy=accuracy) for accuracy in (True, False))
    totals = {"mlm": sum(len(b.labels) for b in batches), "nsp": sum(map(len, LENGTHS))}
    assert 0 < right["mlm"] < totals["mlm"]
    assert counted.accuracies == {name: pytest.approx(right[name] / totals[name]) for name in totals}
    assert plain == replace(counted, accuracies={}) and torch.equal(weights(one), weights(other))


def test_dropout_is_a_function_of_step_micro_step_and_rank(tiny: BertConfig, make_batch: MakeBatch, step: Any) -> None:
    batch = make_batch(tiny, [9, 12])
    seen = {
        (key, rank): step([batch], dropout=0.3, key=key, rank=rank, learning_rate=0.0)[0].losses["mlm"]
        for key in (1, 2)
        for rank in (0, 1)
    }
    assert len(set(seen.values())) == 4, "another step or another rank drops other elements"
    assert step([batch], dropout=0.3, key=1, rank=0, learning_rate=0.0)[0].losses["mlm"] == seen[1, 0]
    once, twice = (step([batch] * n, dropout=0.3, learning_rate=0.0)[0].losses["mlm"] for n in (1, 2))
    assert once != twice, "the second micro-batch drops other elements than the first"


@pytest.mark.parametrize("bad", [float("inf"), float("nan")])
def test_a_gradient_that_is_not_finite_drops_the_step(
    tiny: BertConfig, make_batch: MakeBatch, step: Any, bad: float
) -> None:
    batch = make_batch(tiny, [9, 12])
    poisoned = replace(batch, weights=torch.full_like(batch.weights, bad))
    result, model = step([batch, poisoned])
    _, untouched = step([batch], learning_rate=0.0)
    assert not result.applied
    assert torch.equal(weights(model), weights(untouched))


@pytest.mark.parametrize("bad", [float("inf"), float("nan")])
@pytest.mark.parametrize("accuracy", [False, True])
def test_a_loss_that_is_not_finite_drops_the_step(
    bad: float, accuracy: bool, tiny: BertConfig, make_batch: MakeBatch, step: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch, right = make_batch(tiny, [9, 12]), Term.loss_sum.fget
    assert right is not None
    _, untouched = step([batch], learning_rate=0.0)
    monkeypatch.setattr(Term, "loss_sum", property(lambda term: right(term) + bad))
    result, model = step([batch], accuracy=accuracy)
    assert math.isfinite(result.grad_norm) and not math.isfinite(result.loss) and not result.applied
    assert torch.equal(weights(model), weights(untouched))


def test_a_loss_above_its_limit_drops_the_step(tiny: BertConfig, make_batch: MakeBatch, step: Any) -> None:
    """The loss is that which is differentiated: of all terms, each with its share."""
    batches = [make_batch(tiny, lengths, seed) for seed, lengths in enumerate(LENGTHS)]
    result, moved = step(batches, accuracy=True)
    assert result.loss == pytest.approx(sum(result.losses.values()), rel=1e-6) and result.loss > 4
    assert step(batches, loss_limit=result.loss)[0].applied
    dropped, model = step(batches, loss_limit=0.999 * result.loss)
    _, untouched = step(batches, learning_rate=0.0)
    assert not dropped.applied and torch.equal(weights(model), weights(untouched))
    assert not torch.equal(weights(moved), weights(untouched))


def test_a_rank_without_sequences_takes_part_in_the_sum(step: Any, tiny: BertConfig, make_batch: MakeBatch) -> None:
    result, model = step([], max_grad_norm=0.0)
    assert result == StepResult({"mlm": None, "nsp": None}, 0.0, True)
    assert all(p.grad is not None and not p.grad.any() for p in model.parameters())


def test_a_term_without_predictions_has_no_loss_and_no_accuracy(
    step: Any, tiny: BertConfig, make_batch: MakeBatch
) -> None:
    whole = make_batch(tiny, [9, 12])
    none = slice(0)
    empty = replace(
        whole,
        prediction_positions=whole.prediction_positions[none],
        labels=whole.labels[none],
        weights=whole.weights[none],
    )
    (result, _), (expected, _) = (step([batch], accuracy=True) for batch in (empty, whole))
    assert result.losses == {"mlm": None, "nsp": expected.losses["nsp"]}
    assert result.accuracies == {"mlm": None, "nsp": expected.accuracies["nsp"]}
    assert result.applied and not result.empty and result.loss == pytest.approx(expected.losses["nsp"], rel=1e-6)
    assert not expected.empty and step([], accuracy=True)[0].empty


def test_every_forward_pass_is_counted(
    tiny: BertConfig, make_batch: MakeBatch, step: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By which the watchdog tells a long step from a device that hangs."""
    counted: list[int] = []
    monkeypatch.setattr(Ranks, "count_pass", lambda ranks: counted.append(ranks.rank))
    step([make_batch(tiny, lengths) for lengths in LENGTHS], rank=3)
    assert counted == [3, 3, 3]


def test_a_micro_batch_is_brought_when_its_turn_comes(tiny: BertConfig, make_batch: MakeBatch, step: Any) -> None:
    """Of accumulated ones as much memory is taken as of the one that computes, the next one, and one being drawn."""
    alive: list[int] = []
    brought: list[Any] = []

    def one_by_one() -> Iterator[PackedBatch]:
        for seed in range(5):
            batch = make_batch(tiny, [9, 12], seed)
            brought.append(ref(batch))
            alive.append(sum(each() is not None for each in brought))
            yield batch
            del batch

    step(one_by_one(), totals={"mlm": 4, "nsp": 4})
    assert len(alive) == 5 and max(alive) <= 3


def test_the_learning_rate_is_the_one_of_this_step(step: Any, tiny: BertConfig, make_batch: MakeBatch) -> None:
    batch = make_batch(tiny, [9, 12])
    (_, still), (_, slow), (_, fast) = (step([batch], learning_rate=rate) for rate in (0.0, 1e-3, 2e-3))
    slow_move, fast_move = (weights(m) - weights(still) for m in (slow, fast))
    torch.testing.assert_close(fast_move, 2 * slow_move, rtol=1e-3, atol=1e-7)
