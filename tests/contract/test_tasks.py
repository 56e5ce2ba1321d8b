"""Every task: its network has the heads that it learns, its objective the terms that it declares, its scores are means
over all items, and people are told of them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest
import torch
from tests.reference.batches import NUMBERS, random_batch
from tests.reference.teachers import write_stock
from tests.reference.unions import sections_of

from bertwright.examples.example_set import StepCounts
from bertwright.model.batch import PackedBatch
from bertwright.model.bert.config import BertModelConfig
from bertwright.model.bert.network import BertConfig
from bertwright.model.model import Model, build_model
from bertwright.model.pretraining import PreTrainingModel
from bertwright.tasks.config import TaskConfig
from bertwright.tasks.members import TASKS, task_of, task_of_sealed
from bertwright.tasks.objective import Objective, judged_by, score
from bertwright.tasks.terms import Counted
from bertwright.train.state import State

MEMBERS = sections_of(TaskConfig)
BATCHES = [random_batch([9, 5, 12], seed=1), random_batch([7, 7, 4], seed=2)]


class Built(NamedTuple):
    settings: Any
    objective: Objective
    model: Model

    def batches(self) -> list[PackedBatch]:
        """Batches with labels that the network has."""
        return [_labelled(batch, self.model) for batch in BATCHES]


def _labelled(batch: PackedBatch, model: Model) -> PackedBatch:
    labels = model.config.labels
    if model.config.head == "span":
        return replace(batch, sequence_labels=torch.stack([batch.sequence_labels, batch.sequence_labels + 1], 1))
    if model.config.head == "choice":  # all sequences are the choices of one question
        numbers = torch.arange(len(batch.sequence_labels))
        return replace(batch, sequence_labels=torch.stack([numbers + 1, numbers == 1], 1).long())
    if model.config.head == "vector":  # an anchor, its positive, and negatives of that
        numbers = torch.arange(len(batch.sequence_labels)) + 1
        return replace(batch, sequence_labels=torch.stack([numbers, torch.ones_like(numbers), numbers], 1))
    return replace(batch, labels=batch.labels % len(labels)) if model.config.head == "token" and labels else batch


Build = Callable[[Any], Built]


@pytest.fixture
def built(tmp_path: Path) -> Build:
    """`built(config)`: the settings of a task, with a teacher or labels if it needs them, its objective, and its
    network."""

    def build(config: Any) -> Built:
        torch.manual_seed(1)
        needed = {"teacher": tmp_path / "teacher"} if "teacher" in config.model_fields else {}
        for folder in needed.values():
            write_stock(folder, PreTrainingModel(BertConfig(**NUMBERS)))
        torch.manual_seed(0)
        names = {"labels": ("no", "yes"), "entities": ("PER", "LOC")}
        given = {key: value for key, value in names.items() if key in config.model_fields}
        settings = config(**needed, **given)
        network = settings.network(BertModelConfig(size="tiny"), NUMBERS["vocab_size"], True)
        heads = {"next_sentence": network.next_sentence, "labels": network.labels, "head": network.head}
        model = build_model(BertConfig(**(NUMBERS | heads))).double()
        return Built(settings, task_of(settings).build(model, "nsp"), model)

    return build


@pytest.mark.parametrize("config", MEMBERS)
def test_its_terms_have_the_names_and_counts_that_it_says(config: Any, built: Build) -> None:
    made = built(config)
    _, objective, model = made
    assert objective.counted and set(objective.counted.values()) <= set(get_args(Counted))
    for batch in made.batches():
        terms = objective.terms(model, batch)
        assert terms.keys() == objective.counted.keys()
        sequences = 1 if model.config.head in ("choice", "vector") else len(batch.sequence_labels)
        counts = StepCounts(len(batch.labels), sequences, len(batch.token_ids))
        for name, what in objective.counted.items():
            assert float(terms[name].weight_sum) == getattr(counts, what)
            right = terms[name].correct_sum
            assert right is None or 0 <= float(right) <= getattr(counts, what)
            assert terms[name].share >= 0
            assert terms[name].loss_sum.shape == () and float(terms[name].loss_sum.detach()) > 0


@pytest.mark.parametrize("config", MEMBERS)
def test_it_has_finite_gradients_and_an_empty_batch_has_none(config: Any, built: Build) -> None:
    made = built(config)
    _, objective, model = made
    for batch, learns in ((made.batches()[0], True), (_labelled(random_batch([]), model), False)):
        model.zero_grad()
        sum(term.loss_sum for term in objective.terms(model, batch).values()).backward()  # type: ignore[union-attr]
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        assert all(bool(g.isfinite().all()) for g in gradients)
        assert any(bool(g.any()) for g in gradients) == learns


@pytest.mark.parametrize("config", MEMBERS)
def test_its_scores_are_means_over_all_batches(config: Any, built: Build) -> None:
    made = built(config)
    _, objective, model = made
    batches = made.batches()
    both, parts = score(objective, model, batches), [score(objective, model, [batch]) for batch in batches]
    held_out = {name: value for name, value in both.items() if value is not None}
    assert State(heldout=held_out).judged == both[judged_by(objective)], "checkpoints are compared by the first term"
    for name, what in objective.counted.items():
        weights = [part[what] or 0 for part in parts]
        mean = sum((part[f"{name}_loss"] or 0) * w for part, w in zip(parts, weights, strict=True)) / sum(weights)
        assert both[f"{name}_loss"] == pytest.approx(mean) and both[what] == sum(weights)
        assert 0 <= (both.get(f"{name}_accuracy") or 0) <= 1


@pytest.mark.parametrize("config", MEMBERS)
def test_every_head_of_its_network_is_learned(config: Any, built: Build) -> None:
    made = built(config)
    _, objective, model = made
    sum(term.loss_sum for term in objective.terms(model, made.batches()[0]).values()).backward()  # type: ignore[union-attr]
    idle = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    # What is added to the scores of all choices changes nothing; transformers' class has this bias, too.
    constant = ["classification.classifier.bias"] if model.config.head == "choice" else []
    assert idle == constant, "only weight decay would change them"


@pytest.mark.parametrize("config", MEMBERS)
def test_a_sealed_training_names_its_task(config: Any, built: Build) -> None:
    settings = built(config).settings
    sealed = task_of_sealed({"train": {"objective": settings.model_dump(mode="json")}})
    assert type(sealed) is type(task_of(settings)) and type(sealed) in TASKS


@pytest.mark.parametrize("config", MEMBERS)
def test_people_are_told_of_scores_taken_in_training(config: Any, built: Build) -> None:
    made = built(config)
    settings, objective, model = made
    section = task_of(settings).section
    scores = {f"heldout_{name}": value for name, value in score(objective, model, made.batches()).items()}
    row = {
        "total_steps": 7,
        "phase": 0,
        "step": 7,
        **scores,
        **{k.removeprefix("heldout_"): v for k, v in scores.items()},
    }
    found, taken = section.last([row])
    assert found is row and any(value is not None for value in taken.values())
    baselines = dict.fromkeys(("unigram_loss", "most_common_token_accuracy"), 4.0)
    charts = section.curves([row], taken | baselines, [])
    assert charts and all(chart.title and chart.explanation for chart in charts)
    assert {each.key for each in section.compared} >= taken.keys()
    assert section.name("BERT", {}).startswith("BERT") and section.pipeline and section.purpose.endswith(".")
