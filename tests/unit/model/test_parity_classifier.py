"""Parity of sequence classifiers with transformers' on copied weights: logits, losses, every gradient, dropout."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.reference.batches import NUMBERS, random_batch
from tests.reference.kernels import KERNELS
from tests.reference.padded import padded_inputs
from tests.rows import each_row
from torch import Tensor

from bertwright.examples.batch import Batch
from bertwright.model.bert.network import BertConfig
from bertwright.model.classifier import Classifier
from bertwright.model.config import Kernel, NetworkConfig
from bertwright.model.distilbert.network import DistilBertConfig
from bertwright.model.family import Head
from bertwright.model.interop.peer import peer_of
from bertwright.model.modern.network import ModernConfig
from bertwright.tasks.classification.objective import Classification

transformers = pytest.importorskip("transformers", reason="the extra 'hf' is not installed")

WIDE = {"vocab_size": 61, "max_position_embeddings": 64, "initializer_range": 0.1}
CLASSES = ("no", "perhaps", "yes")
LENGTHS = [33, 5, 40, 2, 12, 1]


def network(family: str, labels: tuple[str, ...], head: Head = "sequence") -> NetworkConfig:
    if family == "bert":
        return BertConfig(**{**NUMBERS, **WIDE}, next_sentence=False, labels=labels, head=head)
    if family == "distilbert":
        numbers = {"dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 40, "dropout": 0.0, "attention_dropout": 0.0}
        return DistilBertConfig(**{**WIDE, **numbers}, labels=labels, head=head)
    wide = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40}
    return ModernConfig(**{**WIDE, **wide}, labels=labels, head=head)


families = pytest.mark.parametrize("family", ["bert", "distilbert", "modern"])
KINDS: dict[str, tuple[tuple[str, ...], Head]] = {
    "classes": (CLASSES, "sequence"),
    "number": (("score",), "sequence"),
    "several labels": (CLASSES, "several"),
}
kinds = pytest.mark.parametrize(("labels", "head"), KINDS.values(), ids=KINDS)


def theirs(config: NetworkConfig, model: Classifier) -> Any:
    """Their network with our weights, without dropout, which they have in the head also where the recipe says none."""
    peer = peer_of(config)
    settings = transformers.AutoConfig.for_model(**peer.config, **dict.fromkeys(peer.special_ids, 0))
    stock = getattr(transformers, peer.architecture)(settings)
    stock.load_state_dict(peer.names.to_theirs(model.state_dict()))
    return stock.to(next(model.parameters()).dtype).eval()


def labelled(labels: tuple[str, ...], head: Head) -> Batch[Tensor]:
    batch = random_batch(LENGTHS, seed=1)
    classes = torch.tensor([0, 2, 1, 1, 0, 2])
    if head == "several":
        marks = torch.tensor([[0, 0, 0], [1, 0, 1], [0, 1, 0], [1, 1, 1], [0, 1, 1], [1, 0, 0]])
        return Batch(**{**vars(batch), "sequence_labels": marks.float()})
    answers = classes if len(labels) > 1 else classes * 1.7 - 0.3
    return Batch(**{**vars(batch), "sequence_labels": answers})


@families
@kinds
@each_row("kernel", KERNELS)
def test_same_classifier(family: str, labels: tuple[str, ...], head: Head, kernel: Kernel) -> None:
    torch.manual_seed(3)
    config, batch = network(family, labels, head), labelled(labels, head)
    model = Classifier(config, kernel).eval()
    stock, names = theirs(config, model), peer_of(config).names
    inputs, _, _ = padded_inputs(batch, segments=family == "bert")
    expected = stock(**inputs, labels=batch.sequence_labels)
    expected.loss.backward()
    ((name, term),) = Classification(len(labels), head == "several").terms(model, batch).items()
    assert name == ("labels" if head == "several" else "classification" if len(labels) > 1 else "regression")
    loss = term.loss_sum / term.weight_sum
    loss.backward()
    torch.testing.assert_close(model(batch), expected.logits, rtol=0, atol=1e-5)
    torch.testing.assert_close(loss, expected.loss, rtol=0, atol=1e-5)
    gradients = names.to_ours({key: p.grad for key, p in stock.named_parameters()})
    assert gradients.keys() == model.state_dict().keys()
    for key, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, gradients[key], rtol=0, atol=1e-5, msg=lambda m, k=key: f"{k}: {m}")


@families
def test_a_saved_peer_comes_back_with_the_names_of_the_classes(family: str, tmp_path: Path) -> None:
    config = network(family, CLASSES)
    torch.manual_seed(4)
    model = Classifier(config)
    theirs(config, model).save_pretrained(tmp_path)
    stock = transformers.AutoModelForSequenceClassification.from_pretrained(str(tmp_path), local_files_only=True)
    assert stock.config.id2label == dict(enumerate(CLASSES)) and stock.config.label2id["yes"] == 2
    assert stock.config.problem_type == "single_label_classification"
    state = peer_of(config).names.to_ours(stock.state_dict())
    assert state.keys() == model.state_dict().keys()
    assert all(torch.equal(state[name], tensor) for name, tensor in model.state_dict().items())


@families
def test_the_head_drops_as_theirs_does_and_is_drawn_as_theirs(family: str) -> None:
    dropped = {"bert": {"hidden_dropout_prob": 0.3}, "distilbert": {"dropout": 0.3}, "modern": {}}[family]
    config = network(family, CLASSES).model_copy(update={**dropped, "initializer_range": 0.05})
    torch.manual_seed(5)
    model = Classifier(config)
    stock = theirs(config, model)
    drop = stock.drop if family == "modern" else stock.dropout
    assert drop.p == model.classification.dropout.p == {"bert": 0.3, "distilbert": 0.2, "modern": 0.0}[family]
    fresh = getattr(transformers, peer_of(config).architecture)(stock.config)
    spread = model.classification.classifier.weight.std()
    assert float(spread.detach()) == pytest.approx(float(fresh.classifier.weight.detach().std()), rel=0.35), (
        "72 numbers"
    )
    assert not model.classification.classifier.bias.any()
