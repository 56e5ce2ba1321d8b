"""Regression 9: a quality measured on the training text.

NVIDIA DeepLearningExamples BERT @4733603 writes a share of the shards aside as "test", and run_pretraining.py opens
only files with "training" in their name: the number it ends with, `final_loss`, is the mean training loss since the
last logged step. ONNX Runtime's and the Hungarian recipe follow it (the latter sets nothing aside). A network that
learns its training text by heart looks perfect.

Here a document is held out by a hash of its text, so the choice survives a new dump and another sharding; no training
plan reads it; and it is scored during training and at the end under masks that are always the same. There is no
switch back: `examples.heldout_plans` must be greater than 0.
"""

import numpy as np
import torch
from tests.conftest import Prepared

from bertwright.corpus.heldout import is_heldout, text_hash
from bertwright.examples.config import MaskingConfig, MicroBatching, PlanSet
from bertwright.examples.loader import LoaderSettings
from bertwright.examples.planned import heldout_batches, open_loader
from bertwright.examples.store import Store
from bertwright.model.batch import packed
from bertwright.model.bert.network import BertConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.optim.config import AdamWConfig
from bertwright.tasks.objective import score
from bertwright.tasks.pretraining.objective import PreTraining
from bertwright.train.engine.single import Single
from bertwright.train.precision.config import Fp32Config
from bertwright.train.precision.precision import Precision
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.setup.trainee import Trainee
from bertwright.train.step import StepSettings, train_step

SETTINGS = LoaderSettings(
    32, MaskingConfig(max_predictions=5), global_batch=16, micro_batching=MicroBatching(16), seed=1, phase="0"
)
STEPS, LOG_FREQ = 100, 10
BERT = BertConfig(
    vocab_size=200, hidden_size=48, num_hidden_layers=1, num_attention_heads=2, intermediate_size=96,
    hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, max_position_embeddings=32,
)  # fmt: skip


def original(losses: list[float]) -> float:
    """`final_loss`: the mean over the last window of training steps."""
    return float(np.mean(losses[-LOG_FREQ:]))


def test_the_original_calls_learning_by_heart_a_success(prepared: Prepared) -> None:
    torch.manual_seed(0)
    model = PreTrainingModel(BERT)
    drawn = open_loader(prepared.examples, PlanSet(length=32), SETTINGS)
    batch, (predictions, pairs, *_) = [packed(b) for b in drawn.step(0)], drawn.counts(0)
    objective, totals = PreTraining(next_sentence=True), {"mlm": predictions, "nsp": pairs}
    engine = Single(model, AdamWConfig(weight_decay=0.01))
    trained = Trainee(model, objective, engine, Ranks(), Precision(Fp32Config(), torch.device("cpu")))
    losses = [train_step(trained, batch, totals, StepSettings(5e-3, 0)).losses["mlm"] for _ in range(STEPS)]
    heldout = score(objective, model, map(packed, heldout_batches(prepared.examples, 32, 5, 0.15, 16)))["mlm_loss"]
    assert heldout is not None and original(losses) < 0.1 < 3 < heldout


def test_no_training_document_is_held_out(prepared: Prepared) -> None:
    training, heldout = (set(Store.open(prepared.examples, split).hashes.tolist()) for split in ("train", "heldout"))
    assert training and heldout and not training & heldout


def test_the_choice_survives_new_text_and_another_order() -> None:
    documents = [[f"This is document {i}.", "It has two sentences."] for i in range(500)]
    hashes = np.array([text_hash(document) for document in documents], np.uint64)
    chosen = set(hashes[is_heldout(hashes, 0.1)].tolist())
    assert 30 <= len(chosen) <= 70
    newer = np.concatenate([np.array([text_hash(["A new one."])], np.uint64), hashes[::-1]])
    assert set(newer[is_heldout(newer, 0.1)].tolist()) - {int(newer[0])} == chosen


def test_the_masks_of_held_out_text_never_change(prepared: Prepared) -> None:
    """There is no seed, phase or rank to give; the size of the batch leaves no trace."""

    def masked(micro_batch: int) -> list[int]:
        return [i for b in heldout_batches(prepared.examples, 32, 5, 0.15, micro_batch) for i in b.token_ids.tolist()]

    assert masked(16) == masked(16) == masked(3)
