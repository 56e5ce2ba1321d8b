"""Every objective: its terms have the declared names, its means cover all items, and every weight is learned."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.reference.batches import NUMBERS, random_batch
from tests.reference.teachers import write_stock
from tests.reference.unions import sections_of

from bertwright.examples.loader import StepCounts
from bertwright.model.bert.network import BertConfig
from bertwright.model.model import Model, build_model
from bertwright.model.pretraining import PreTrainingModel
from bertwright.objectives.config import ObjectiveConfig
from bertwright.objectives.objective import Objective, build_objective, judged_by
from bertwright.objectives.scores import score
from bertwright.train.state import State

OBJECTIVES = sections_of(ObjectiveConfig)
BATCHES = [random_batch([9, 5, 12], seed=1), random_batch([7, 7], seed=2)]


Build = Callable[[Any], tuple[Objective, Model]]


@pytest.fixture
def built(tmp_path: Path) -> Build:
    """`built(config)`: the objective of a section, with a teacher or labels if it needs them, and its network."""

    def build(config: Any) -> tuple[Objective, Model]:
        torch.manual_seed(1)
        needed = {"teacher": tmp_path / "teacher"} if "teacher" in config.model_fields else {}
        for folder in needed.values():
            write_stock(folder, PreTrainingModel(BertConfig(**NUMBERS)))
        torch.manual_seed(0)
        labels = {"labels": ("no", "yes")} if "labels" in config.model_fields else {}
        model = build_model(BertConfig(**NUMBERS, **labels)).double()
        return build_objective(config(**needed, **labels), model), model

    return build


@pytest.mark.parametrize("config", OBJECTIVES)
def test_its_terms_have_the_names_and_counts_that_it_says(config: Any, built: Build) -> None:
    objective, model = built(config)
    assert objective.counted and set(objective.counted.values()) <= set(StepCounts._fields)
    for batch in BATCHES:
        terms = objective.terms(model, batch)
        assert terms.keys() == objective.counted.keys()
        sequences = len(batch.sequence_labels)
        counts = StepCounts(len(batch.labels), sequences, len(batch.token_ids), sequences)
        for name, what in objective.counted.items():
            assert float(terms[name].weight_sum) == getattr(counts, what)
            right = terms[name].right_sum
            assert right is None or 0 <= float(right) <= getattr(counts, what)
            assert terms[name].share >= 0
            assert terms[name].loss_sum.shape == () and float(terms[name].loss_sum.detach()) > 0


@pytest.mark.parametrize("config", OBJECTIVES)
def test_it_has_finite_gradients_and_an_empty_batch_has_none(config: Any, built: Build) -> None:
    objective, model = built(config)
    for batch, learns in ((BATCHES[0], True), (random_batch([]), False)):
        model.zero_grad()
        sum(term.loss_sum for term in objective.terms(model, batch).values()).backward()  # type: ignore[union-attr]
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        assert all(bool(g.isfinite().all()) for g in gradients)
        assert any(bool(g.any()) for g in gradients) == learns


@pytest.mark.parametrize("config", OBJECTIVES)
def test_its_scores_are_means_over_all_batches(config: Any, built: Build) -> None:
    objective, model = built(config)
    both, parts = score(objective, model, BATCHES), [score(objective, model, [batch]) for batch in BATCHES]
    held_out = {name: value for name, value in both.items() if value is not None}
    assert State(heldout=held_out).judged == both[judged_by(objective)], "checkpoints are compared by the first term"
    for name, what in objective.counted.items():
        weights = [part[what] or 0 for part in parts]
        mean = sum((part[f"{name}_loss"] or 0) * w for part, w in zip(parts, weights, strict=True)) / sum(weights)
        assert both[f"{name}_loss"] == pytest.approx(mean) and both[what] == sum(weights)
        assert 0 <= (both.get(f"{name}_accuracy") or 0) <= 1
