"""The terms of distillation against a restatement in float64 numpy, and where their gradients go."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.reference.batches import random_batch
from tests.reference.teachers import write_stock
from tests.rows import each_row
from torch import nn
from transformers import AutoModelForMaskedLM

from bertwright.core.errors import RecipeError
from bertwright.model.batch import PackedBatch
from bertwright.model.bert.network import BertConfig
from bertwright.model.config import NetworkConfig
from bertwright.model.distilbert.network import DistilBertConfig
from bertwright.model.modern.network import ModernConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.tasks.distillation.config import DistillationConfig
from bertwright.tasks.distillation.objective import Distillation, HiddenTerm, SoftTerm
from bertwright.tasks.members import task_of

V, H = 61, 24
SHARED = {"vocab_size": V, "max_position_embeddings": 32}


def bert(layers: int = 4, pairs: bool = False, width: int = H, rows: int = V) -> BertConfig:
    return BertConfig(
        **{**SHARED, "vocab_size": rows},
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=3,
        intermediate_size=40,
        hidden_dropout_prob=0.1,
        initializer_range=0.2,
        next_sentence=pairs,
    )


def distilbert(layers: int = 2) -> DistilBertConfig:
    return DistilBertConfig(**SHARED, dim=H, n_layers=layers, n_heads=3, hidden_dim=40, initializer_range=0.2)


def modern(layers: int = 4) -> ModernConfig:
    numbers = {"num_attention_heads": 3, "intermediate_size": 40, "local_attention": 8, "initializer_range": 0.2}
    return ModernConfig(**SHARED, hidden_size=H, num_hidden_layers=layers, **numbers)


def network(config: NetworkConfig, seed: int) -> PreTrainingModel:
    torch.manual_seed(seed)
    return PreTrainingModel(config)


def objective(tmp_path: Path, teacher: PreTrainingModel, student: PreTrainingModel, **keys: Any) -> Distillation:
    folder = write_stock(tmp_path / "teacher", teacher)
    built = task_of(DistillationConfig(teacher=folder, **keys)).build(student, "nsp")
    assert isinstance(built, Distillation)
    return built


def number(scalar: torch.Tensor | None) -> float:
    assert scalar is not None
    return float(scalar.detach())


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@each_row("dtype", [torch.float64, torch.float32, torch.bfloat16])
@each_row("temperature", [1.0, 2.0, 0.5])
def test_the_soft_term_is_cross_entropy_with_the_teacher(
    temperature: float, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertwright.tasks.terms._BLOCK", {True: 3 * V})  # several blocks, the last one smaller
    random = torch.Generator().manual_seed(1)
    logits, teachers = (4 * torch.randn(8, V, generator=random, dtype=torch.float64) for _ in range(2))
    logits, teachers = logits.to(dtype).requires_grad_(), teachers.to(dtype)
    weights = torch.tensor([1.0, 1, 0, 1, 1, 1, 0, 1])
    term = SoftTerm(logits, teachers, weights, temperature, share=1.0)
    (2.0 * term.loss_sum).backward()
    s, t, w = (x.detach().double().numpy() for x in (logits, teachers, weights))
    p, q = softmax(t / temperature), softmax(s / temperature)
    assert number(term.loss_sum) == pytest.approx(float(-(w * (p * np.log(q)).sum(-1)).sum()), rel=1e-6)
    expected = 2.0 * w[:, None] / temperature * (q - p)
    assert logits.grad is not None
    rough = {torch.float64: 1e-12, torch.float32: 1e-6, torch.bfloat16: 1e-2}[dtype]
    np.testing.assert_allclose(logits.grad.double().numpy(), expected, atol=rough)
    agreed = float((w * (s.argmax(-1) == t.argmax(-1))).sum())
    assert number(term.correct_sum) == agreed and number(term.weight_sum) == 6


def test_the_hidden_term_is_one_minus_the_cosine() -> None:
    random = torch.Generator().manual_seed(2)
    own, theirs = (
        [torch.randn(5, H, generator=random, dtype=torch.float64, requires_grad=True) for _ in range(2)]
        for _ in range(2)
    )
    weights = torch.tensor([1.0, 0, 1, 1, 1])
    term = HiddenTerm(own, [x.detach() for x in theirs], weights, share=1.0)
    losses = []
    for one, other in zip(own, theirs, strict=True):
        a, b = one.detach().numpy(), other.detach().numpy()
        losses.append(1 - (a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1))
    assert number(term.loss_sum) == pytest.approx(float((weights.numpy() * np.mean(losses, 0)).sum()), rel=1e-12)
    assert term.correct_sum is None and torch.autograd.gradcheck(
        lambda x: HiddenTerm([x, own[1].detach()], [y.detach() for y in theirs], weights, 1.0).loss_sum, (own[0],)
    )


def test_its_own_teacher_leaves_its_entropy_and_no_angle(tmp_path: Path) -> None:
    teacher = network(bert(4), seed=1)
    student = network(bert(4), seed=1).eval()
    distil, batch = objective(tmp_path, teacher, student, temperature=3.0), random_batch([9, 5, 12])
    terms = distil.terms(student, batch)
    p = softmax(student(batch)[0].detach().double().numpy() / 3.0)
    assert number(terms["soft"].loss_sum) == pytest.approx(float(-(p * np.log(p)).sum()), rel=1e-6)
    assert number(terms["soft"].correct_sum) == len(batch.labels)
    assert number(terms["hidden"].loss_sum) == pytest.approx(0, abs=1e-5)
    assert {name: term.share for name, term in terms.items()} == {"mlm": 2.0, "soft": 5.0 * 9, "hidden": 1.0}


def test_without_compared_layers_any_module_can_learn(tmp_path: Path) -> None:
    """As one that another runtime computes, which has no encoder."""

    class Exported(nn.Module):
        def __init__(self, inner: PreTrainingModel) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, batch: PackedBatch) -> Any:
            return self.inner(batch)

    student, batch = network(bert(2), seed=2).eval(), random_batch([9, 5, 12])
    distil = objective(tmp_path, network(bert(4), seed=1), student, hidden_weight=0)
    found, plain = distil.terms(Exported(student), batch), distil.terms(student, batch)
    assert found.keys() == plain.keys() == {"mlm", "soft"}
    assert all(number(found[name].loss_sum) == number(plain[name].loss_sum) for name in plain)


@each_row("teacher", [bert(4), bert(3, pairs=True), modern(), distilbert(3)])
@each_row("student", [bert(2), modern(2), distilbert(2)])
@each_row("kernel", ["sequences", "padded"])
def test_every_family_teaches_every_other(
    teacher: NetworkConfig, student: NetworkConfig, kernel: Any, tmp_path: Path
) -> None:
    """Logits and states of the teacher are those that transformers computes; the network alone has gradients."""
    model = network(student, seed=2)
    model.encoder.kernel = kernel
    distil, batch = objective(tmp_path, network(teacher, seed=1), model), random_batch([9, 5, 12])
    terms = distil.terms(model, batch)
    sum(term.share * term.loss_sum for term in terms.values()).backward()  # type: ignore[union-attr]
    assert all(p.grad is None and not p.requires_grad for p in distil.teacher.parameters())
    assert not distil.teacher.training and distil.teacher.encoder.kernel == kernel
    assert all(p.grad is not None for name, p in model.named_parameters())
    logits, states = theirs(tmp_path / "teacher", batch, pairs=isinstance(teacher, BertConfig))
    soft, hidden = terms["soft"], terms["hidden"]
    assert isinstance(soft, SoftTerm) and isinstance(hidden, HiddenTerm)
    torch.testing.assert_close(soft.teachers, logits, rtol=1e-4, atol=1e-4)
    spread = [-(-layer * teacher.num_hidden_layers // 2) for layer in (1, 2)]
    assert list(distil.layers.items()) == [(1, spread[0]), (2, spread[1])]
    for layer, found in zip(spread, hidden.teachers, strict=True):
        torch.testing.assert_close(found, states[layer], rtol=1e-4, atol=1e-4)
        assert not found.requires_grad


def theirs(folder: Path, batch: Any, pairs: bool) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Logits and states after each layer (0: embeddings) of the predicted tokens, as transformers computes them."""
    model = AutoModelForMaskedLM.from_pretrained(folder, attn_implementation="eager").eval()
    logits, states = [], []
    for start, end in zip(batch.cu_seqlens[:-1].tolist(), batch.cu_seqlens[1:].tolist(), strict=True):
        inputs = {"input_ids": batch.token_ids[None, start:end]}
        if pairs:
            inputs["token_type_ids"] = batch.segment_ids[None, start:end]
        places = [p - start for p in batch.prediction_positions.tolist() if start <= p < end]
        with torch.no_grad():
            out = model(**inputs, output_hidden_states=True)
        logits.append(out.logits[0, places])
        states.append([layer[0, places] for layer in out.hidden_states])
    return torch.cat(logits), [torch.cat(of_layer) for of_layer in zip(*states, strict=True)]


def test_a_layer_map_selects_the_compared_layers(tmp_path: Path) -> None:
    teacher, student, batch = network(bert(4), 1), network(bert(3), 2), random_batch([9, 12])
    config = DistillationConfig(teacher=write_stock(tmp_path / "teacher", teacher), layers=(0, 1, 4))
    distil = task_of(config).build(student, "nsp")
    assert isinstance(distil, Distillation) and distil.layers == {2: 1, 3: 4}
    assert list(distil.counted) == list(distil.terms(student, batch)) == ["mlm", "soft", "hidden"]
    for keys, names in (
        ({"hidden_weight": 0}, ["mlm", "soft"]),
        ({"soft_weight": 0}, ["mlm", "hidden"]),
        ({"mlm_weight": 0}, ["mlm", "soft", "hidden"]),
    ):
        distil = task_of(DistillationConfig(teacher=tmp_path / "teacher", **keys)).build(student, "nsp")
        assert list(distil.counted) == list(distil.terms(student, batch)) == names
    narrow = network(bert(2, width=12), 3)
    distil = task_of(DistillationConfig(teacher=tmp_path / "teacher", hidden_weight=0)).build(narrow, "nsp")
    assert list(distil.terms(narrow, batch)) == ["mlm", "soft"]


def test_pairs_keep_their_term_by_its_name(tmp_path: Path) -> None:
    student, batch = network(bert(2, pairs=True), 2), random_batch([9, 12])
    config = DistillationConfig(teacher=write_stock(tmp_path / "t", network(bert(4), 1)), pair_weight=0.5)
    distil = task_of(config).build(student, "sop")
    assert list(distil.counted.items()) == [
        ("mlm", "predictions"), ("sop", "pairs"), ("soft", "predictions"), ("hidden", "predictions"),
    ]  # fmt: skip
    terms = distil.terms(student, batch)
    assert terms["sop"].share == 0.5 and number(terms["sop"].weight_sum) == 2
    assert config.next_sentence(True) and not config.next_sentence(False)
    assert not DistillationConfig(teacher=tmp_path / "t", pair_weight=0).next_sentence(True)


def test_shared_layers_have_no_states_to_compare(tmp_path: Path) -> None:
    student, folder = network(bert(2), 2), write_stock(tmp_path / "teacher", network(bert(4), 1))
    encoder: Any = student.encoder
    del encoder.layers
    with pytest.raises(RecipeError, match=r"hidden_weight: a BERT of the family bert has no separate layers .* to 0"):
        task_of(DistillationConfig(teacher=folder)).build(student, "nsp")
    task_of(DistillationConfig(teacher=folder, hidden_weight=0)).build(student, "nsp")


def test_rows_that_pad_either_vocabulary_are_no_answers(tmp_path: Path) -> None:
    student, batch = network(bert(2, rows=64), 2), random_batch([9, 12])
    folder = write_stock(tmp_path / "teacher", network(bert(4), 1))
    (folder / "vocab.txt").write_text("".join(f"w{number}\n" for number in range(50)))
    distil = task_of(DistillationConfig(teacher=folder)).build(student, "nsp")
    soft = distil.terms(student, batch)["soft"]
    assert isinstance(soft, SoftTerm) and soft.logits.shape == soft.teachers.shape == (4, 50)
