"""Pairs of a text and each choice, compared with the tokenizer of transformers; and their loss and scores, with
transformers' classes and with a plain restatement."""

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import matthews_corrcoef
from tests.reference.kernels import KERNELS
from tests.reference.padded import padded_inputs
from tests.reference.teachers import SPECIALS
from tests.rows import each_row
from tests.unit.model.test_parity_classifier import families, network, theirs
from transformers import BertTokenizerFast

from bertwright.core.artifact import Artifact
from bertwright.core.log import SILENT
from bertwright.core.stage_context import StageContext
from bertwright.examples.config import ExamplesConfig, ImportedData, MaskingConfig, MicroBatching, PlanSet
from bertwright.examples.example_set import Selection
from bertwright.examples.loader import Loader, LoaderSettings
from bertwright.examples.padding import Room, in_rows, with_room
from bertwright.examples.run_tasks import Inputs
from bertwright.model.batch import PackedBatch, packed
from bertwright.model.classifier import Classifier
from bertwright.model.config import Kernel
from bertwright.model.interop.peer import peer_of
from bertwright.tasks.choice.choice_scores import scores_of
from bertwright.tasks.choice.config import ChoiceFiles
from bertwright.tasks.choice.examples import ChoiceExamples
from bertwright.tasks.choice.layout import Layout
from bertwright.tasks.choice.objective import Choice
from bertwright.tasks.choice.run import run
from bertwright.tasks.choice.scores import by_chance
from bertwright.vocab.config import VocabConfig
from bertwright.vocab.run import run as make_vocab

ENTRIES = (*SPECIALS, "ada", "met", "lo", "##vel", "##ace", "bab", "##bage", "in", "london", ".", "where", "?", "old")
TEXTS = ("Ada met Bábbage in London.", "Lovelace met Ada. " * 4, "Old [SEP] London 東京.", "Ada.")
CHOICES = ("Lovelace", "in old London . " * 5, "\u00ad", "met Ada ?", "old")


@pytest.fixture(scope="module")
def vocab(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    folder = tmp_path_factory.mktemp("vocab")
    (folder / "vocab.txt").write_text("\n".join(ENTRIES) + "\n", encoding="utf-8")
    return make_vocab(VocabConfig(file=folder / "vocab.txt", lower_case=True), None, folder / "vocab", SILENT)


def questions() -> list[dict[str, Any]]:
    """Some with two choices, some with more, one of which has no tokens."""
    return [
        {"context": text, "question": "Where ?" if k % 2 else "", "choices": CHOICES[k:], "label": n % (5 - k)}
        for n, text in enumerate(TEXTS)
        for k in range(4)
    ]


@pytest.fixture(scope="module")
def examples(vocab: Artifact, tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    folder = tmp_path_factory.mktemp("choices")
    for name in ("train", "dev"):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, questions())), encoding="utf-8")
    own = ChoiceFiles(Layout(first=0))
    data = ImportedData(0, folder, 16, MaskingConfig(), quarantine=False, files=own)
    inputs = Inputs(None, vocab, (data,))
    return run(ExamplesConfig(), (PlanSet(length=16),), inputs, StageContext(folder / "examples", SILENT))


@each_row("length", [5, 12, 16, 64])
def test_pairs_are_those_of_transformers(length: int, examples: Artifact, vocab: Artifact) -> None:
    tokenizer = BertTokenizerFast(str(vocab.file("tokenizer.json")), tokenizer_file=str(vocab.file("tokenizer.json")))
    found = ChoiceExamples.open(examples, "heldout", length)
    every = Selection.of(np.arange(len(questions())))
    batch = found.batch(every)
    texts = [(each["context"], f"{each['question']} {choice}") for each in questions() for choice in each["choices"]]
    expected = tokenizer([a for a, _ in texts], [b for _, b in texts], truncation="longest_first", max_length=length)
    bounds = list(pairwise(batch.cu_seqlens.tolist()))
    assert [batch.token_ids[a:b].tolist() for a, b in bounds] == expected["input_ids"]
    assert [batch.segment_ids[a:b].tolist() for a, b in bounds] == expected["token_type_ids"]
    labels = [[k + 1, k == each["label"]] for each in questions() for k in range(len(each["choices"]))]
    assert batch.sequence_labels.tolist() == labels
    assert found.lengths(every).sum() == len(batch.token_ids) and found.counts(every).sequences == len(questions())
    counted = examples.counts["train"]["sequences"].get(f"{length}", {"longest": found.lengths(every).max()})
    assert counted["longest"] == found.lengths(every).max()


def batches_of(examples: Artifact, micro_batch: int) -> list[PackedBatch]:
    settings = LoaderSettings(16, MaskingConfig(), 16, MicroBatching(micro_batch), seed=1, phase="0")
    return [packed(batch) for batch in Loader(ChoiceExamples.open(examples, "train", 16), settings).step(0)]


@families
@each_row("kernel", KERNELS)
def test_same_loss_and_gradients_as_transformers(family: str, kernel: Kernel, examples: Artifact) -> None:
    """Theirs takes one question at a time here, because its batches must have equally many choices."""
    torch.manual_seed(3)
    config = network(family, ("choice",)).model_copy(update={"head": "choice"})
    model = Classifier(config, kernel).double().eval()
    stock, names = theirs(config, model), peer_of(config).names
    (batch,) = batches_of(examples, 16)
    inputs, _, _ = padded_inputs(batch, segments=family == "bert")
    starts = [*np.flatnonzero(batch.sequence_labels[:, 0] == 1).tolist(), len(batch.sequence_labels)]
    loss = torch.zeros(())
    for a, b in pairwise(starts):
        right = batch.sequence_labels[a:b, 1].argmax()
        found = stock(**{name: values[None, a:b] for name, values in inputs.items()}, labels=right[None])
        (found.loss / 16).backward()
        loss = loss + found.loss.detach() / 16
    (term,) = Choice().terms(model, batch).values()
    ours = term.loss_sum / term.weight_sum
    ours.backward()
    torch.testing.assert_close(ours.detach(), loss, rtol=0, atol=1e-9)
    gradients = names.to_ours({key: p.grad for key, p in stock.named_parameters()})
    for key, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, gradients[key], rtol=0, atol=1e-9, msg=lambda m, k=key: f"{k}: {m}")


def restated(scores: np.ndarray[Any, Any], batch: PackedBatch) -> tuple[float, int]:
    """The summed loss of the questions of a batch, and how many are answered right, one question after another."""
    loss, right, number = 0.0, 0, 0
    labels = batch.sequence_labels.tolist()
    while number < len(labels):
        end = number + 1
        while end < len(labels) and labels[end][0] > 1:
            end += 1
        (label,) = [k for k in range(number, end) if labels[k][1]]
        loss += float(np.log(np.exp(scores[number:end]).sum()) - scores[label])
        right += int(scores[number:end].argmax()) == label - number
        number = end
    return loss, right


class Given(torch.nn.Module):
    """Scores that a test gives."""

    def __init__(self, scores: torch.Tensor) -> None:
        super().__init__()
        self.scores = scores

    def forward(self, batch: PackedBatch) -> torch.Tensor:
        return self.scores[:, None]


@each_row("dtype, near", [(torch.float64, 1e-9), (torch.float32, 1e-5), (torch.bfloat16, 1e-2), (torch.float16, 1e-3)])
def test_the_loss_is_that_of_each_question(dtype: torch.dtype, near: float, examples: Artifact) -> None:
    """Also in micro-batches, none of which divides a question, and with padding among the choices."""
    generator = torch.Generator().manual_seed(1)
    for micro_batch in (16, 3, 1):
        total, loss, right = 0.0, 0.0, 0
        for batch in batches_of(examples, micro_batch):
            scores = torch.randn(len(batch.sequence_labels), generator=generator).to(dtype)
            (term,) = Choice().terms(Given(scores), batch).values()
            expected = restated(scores.double().numpy(), batch)
            assert float(term.loss_sum) == pytest.approx(expected[0], rel=near)
            assert float(term.correct_sum or 0) == expected[1]
            total, loss, right = total + float(term.weight_sum), loss + expected[0], right + expected[1]
        assert total == 16 and loss > 0


def test_padding_changes_no_loss(examples: Artifact) -> None:
    settings = LoaderSettings(16, MaskingConfig(), 5, MicroBatching(5), seed=1, phase="0")
    loader = Loader(ChoiceExamples.open(examples, "train", 16), settings)
    (drawn,) = loader.step(0)
    rows = 5 * loader.examples.most_sequences
    padded = packed(in_rows(drawn, Room(rows, 16, 2 * rows, 1)))
    batch, real = packed(drawn), padded.sequence_labels[:, 0] > 0
    scores = torch.randn(len(batch.sequence_labels), dtype=torch.float64)
    among = torch.randn(len(real), dtype=torch.float64).masked_scatter(real, scores)
    (term,), (other,) = (Choice().terms(Given(s), b).values() for s, b in ((scores, batch), (among, padded)))
    assert float(term.loss_sum) == pytest.approx(float(other.loss_sum)) and term.weight_sum == other.weight_sum
    empty = packed(with_room(loader.examples.batch(Selection.of(np.arange(0))), 1, 1))
    (nothing,) = Choice().terms(Given(torch.zeros(1)), empty).values()
    assert float(nothing.loss_sum) == 0.0 == float(nothing.weight_sum)


def test_scores_are_those_of_a_plain_restatement() -> None:
    random = np.random.default_rng(2)
    found = [random.normal(size=size) for size in random.integers(2, 6, 200)]
    right = np.array([random.integers(len(scores)) for scores in found])
    scores = scores_of(found, right)
    guessed = [int(each.argmax()) for each in found]
    assert scores["accuracy"] == np.mean([guess == label for guess, label in zip(guessed, right, strict=True)])
    assert scores["matthews"] == pytest.approx(matthews_corrcoef(right, guessed))
    losses = [-np.log(np.exp(each)[label] / np.exp(each).sum()) for each, label in zip(found, right, strict=True)]
    assert scores["choice_loss"] == pytest.approx(np.mean(losses))
    assert scores["answered"] == {f"choice {k + 1}": guessed.count(k) for k in range(5)}
    assert by_chance({**scores, "chance": 0.3, "sequences": 200}) and not by_chance(
        {"accuracy": 0.6, "chance": 0.5, "sequences": 400}
    )
    for value in (np.nan, np.inf):
        broken = scores_of([np.array([value, 1.0])], np.array([0]))
        assert broken == {"choice_loss": None, "accuracy": None, "matthews": None}
