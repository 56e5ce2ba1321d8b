"""Regression 7: a token's weight in the loss depended on its neighbours.

NVIDIA DeepLearningExamples BERT @4733603, run_pretraining.py: the loss of a micro-batch is the mean over its own masked
tokens, and gradients are averaged over micro-batches and ranks. A masked token in a micro-batch with few of them
weighs more than one in a micro-batch with many, so the same global batch, cut differently, trains differently.

Here the micro-batch loss is the sum divided by the counts of the whole global batch, and gradients are added: the cut
changes only the order of summation. There is no switch back.
"""

import pytest
import torch
from tests.conftest import Prepared

from bertwright.examples.config import MaskingConfig, MicroBatching, PlanSet
from bertwright.examples.loader import Loader, LoaderSettings
from bertwright.examples.planned import open_loader
from bertwright.model.batch import packed
from bertwright.model.bert.network import BertConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.optim.config import AdamWConfig
from bertwright.tasks.pretraining.objective import PreTraining
from bertwright.tasks.terms import cross_entropy_sum
from bertwright.train.engine.single import Single
from bertwright.train.precision.config import Fp32Config
from bertwright.train.precision.precision import Precision
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.setup.trainee import Trainee
from bertwright.train.step import StepSettings, train_step

GLOBAL_BATCH = 32
BERT = BertConfig(
    vocab_size=200, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
    hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, max_position_embeddings=32,
)  # fmt: skip


@pytest.fixture
def model() -> PreTrainingModel:
    torch.manual_seed(0)
    return PreTrainingModel(BERT).double()


def loader(prepared: Prepared, micro_batch: int) -> Loader:
    settings = LoaderSettings(
        32, MaskingConfig(max_predictions=5), GLOBAL_BATCH, MicroBatching(micro_batch), seed=1, phase="0"
    )
    return open_loader(prepared.examples, PlanSet(length=32), settings)


def gradient(model: PreTrainingModel) -> torch.Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def original(model: PreTrainingModel, drawn: Loader) -> tuple[float, torch.Tensor]:
    """The masked-token loss and the gradient: means of micro-batches, averaged."""
    model.zero_grad()
    batches, reported = [packed(batch) for batch in drawn.step(0)], 0.0
    for batch in batches:
        mlm_PV, nsp_B2 = model(batch)
        assert nsp_B2 is not None
        labels, weights = batch.sequence_labels, batch.sequence_weights
        mlm = cross_entropy_sum(mlm_PV, batch.labels, batch.weights) / len(batch.labels)
        nsp = cross_entropy_sum(nsp_B2, labels, weights) / len(weights)
        ((mlm + nsp) / len(batches)).backward()  # type: ignore[no-untyped-call]
        reported += float(mlm.detach()) / len(batches)
    return reported, gradient(model)


def ours(model: PreTrainingModel, drawn: Loader) -> tuple[float, torch.Tensor]:
    predictions, pairs, *_ = drawn.counts(0)
    objective, engine = PreTraining(next_sentence=True), Single(model, AdamWConfig(max_grad_norm=0.0))
    trained = Trainee(model, objective, engine, Ranks(), Precision(Fp32Config(), torch.device("cpu")))
    batches, totals = [packed(batch) for batch in drawn.step(0)], {"mlm": predictions, "nsp": pairs}
    result = train_step(trained, batches, totals, StepSettings(0.0, 0))
    return result.losses["mlm"], gradient(model)


def apart(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).norm() / b.norm())


def test_the_micro_batches_predict_different_numbers_of_tokens(prepared: Prepared) -> None:
    assert len({len(batch.labels) for batch in loader(prepared, 4).step(0)}) > 1


def test_uncut_the_original_and_ours_agree(prepared: Prepared, model: PreTrainingModel) -> None:
    theirs, mine = original(model, loader(prepared, GLOBAL_BATCH)), ours(model, loader(prepared, GLOBAL_BATCH))
    assert theirs[0] == pytest.approx(mine[0], rel=1e-12)
    assert apart(theirs[1], mine[1]) < 1e-12


@pytest.mark.parametrize("micro_batch", [1, 4, 16])
def test_cut_the_original_trains_differently_and_ours_does_not(
    prepared: Prepared, model: PreTrainingModel, micro_batch: int
) -> None:
    loss, whole = ours(model, loader(prepared, GLOBAL_BATCH))
    their_loss, theirs = original(model, loader(prepared, micro_batch))
    our_loss, mine = ours(model, loader(prepared, micro_batch))
    assert apart(theirs, whole) > 1e-3
    assert abs(their_loss / loss - 1) > 1e-6
    assert apart(mine, whole) < 1e-12
    assert our_loss == pytest.approx(loss, rel=1e-12)
