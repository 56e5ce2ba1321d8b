"""The contrastive loss beside its formula in numpy, and beside the losses of sentence-transformers; and the search of
held-out positives beside a plain one."""

import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.reference.batches import NUMBERS
from tests.reference.teachers import write_stock
from tests.rows import each_row

from bertwright.model.batch import packed_sequences
from bertwright.model.bert.network import BertConfig
from bertwright.model.vectors import VectorModel
from bertwright.tasks.embedding import objective as module
from bertwright.tasks.embedding.config import EmbeddingConfig
from bertwright.tasks.embedding.embedding_scores import candidates, scores_of, search
from bertwright.tasks.embedding.objective import Contrast

PAIRS = 8


def labels_of(negatives: int, groups: list[int], texts: dict[tuple[int, int], int]) -> torch.Tensor:
    """[S, 3] of pairs with these groups and as many negatives each; `texts` names equal texts by pair and place."""
    return torch.tensor(
        [
            (place + 1, group, texts.get((pair, place), 100 + 10 * pair + place))
            for pair, group in enumerate(groups)
            for place in range(2 + negatives)
        ]
    )


def plain_loss(vectors: NDArray[np.float64], labels: NDArray[np.int64], settings: EmbeddingConfig) -> float:
    """The mean loss, pair by pair."""
    total, sizes = 0.0, {vectors.shape[1], *settings.dimensions}
    starts = [row for row in range(len(labels)) if labels[row, 0] == 1]
    group = {row: labels[row, 1] for row in range(len(labels))}
    text = {row: labels[row, 2] for row in range(len(labels))}
    for size in sizes:
        unit = [v[:size] / math.sqrt(sum(v[:size] ** 2)) for v in vectors]
        for a in starts:
            own = a + 1
            right = {text[r] for r in range(len(labels)) if group[r] == group[a] and labels[r, 0] <= 2}
            right |= {text[b + 1] for b in starts if text[b] == text[a]}
            rows = [own] + [r for r in range(len(labels)) if labels[r, 0] >= 2 and r != own]
            # A negative may have the text of another anchor's positive, but none that is right here.
            of_anchor = {b + 1 for b in starts if text[b] == text[a]}
            strict = {text[r] for r in range(len(labels)) if group[r] == group[a] and labels[r, 0] <= 2}
            kept = [own] + [r for r in rows[1:] if text[r] not in strict and r not in of_anchor]
            cosines = [float(unit[a] @ unit[r]) / settings.temperature for r in kept]
            forward = math.log(sum(map(math.exp, cosines))) - cosines[0]
            if settings.symmetric:
                others = [b for b in starts if b != a and text[b] not in strict and text[b + 1] != text[own]]
                cosines = [float(unit[own] @ unit[b]) / settings.temperature for b in [a, *others]]
                forward = (forward + math.log(sum(map(math.exp, cosines))) - cosines[0]) / 2
            total += forward
    return total / len(starts)


EQUAL = {(0, 1): 5, (3, 1): 5, (1, 0): 6, (4, 0): 6, (2, 2): 5, (5, 2): 6}
"""Two pairs with the same positive, two with the same anchor, and negatives with these texts."""


@each_row(
    ("negatives", "groups", "texts", "more"),
    [
        (0, list(range(PAIRS)), {}, {}),
        (2, list(range(PAIRS)), {}, {"symmetric": True}),
        (1, [0, 1, 0, 2, 3, 3, 4, 5], {}, {"dimensions": (4, 7), "symmetric": True}),
        (1, list(range(PAIRS)), EQUAL, {"symmetric": True}),
        (1, [0, 1, 0, 2, 3, 3, 4, 5], EQUAL, {"dimensions": (3,), "temperature": 0.5}),
    ],
)
@pytest.mark.parametrize("block", [1 << 24, 20])
def test_the_loss_is_that_of_its_formula(
    negatives: int, groups: list[int], texts: Any, more: Any, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BLOCK", block)
    settings, labels = EmbeddingConfig(**more), labels_of(negatives, groups, texts)
    vectors = torch.randn(len(labels), 12, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    vectors.requires_grad_()
    term = Contrast(settings).compare(vectors, labels, torch.ones(len(labels)))["contrast"]
    wanted = plain_loss(vectors.detach().numpy(), labels.numpy(), settings)
    assert float(term.loss_sum.detach()) / PAIRS == pytest.approx(wanted, rel=1e-12)
    assert float(term.weight_sum) == PAIRS
    term.loss_sum.backward()
    assert vectors.grad is not None and bool(vectors.grad.isfinite().all())


def test_padding_changes_nothing() -> None:
    labels = labels_of(1, list(range(PAIRS)), {})
    vectors = torch.randn(len(labels), 12, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    plain = Contrast(EmbeddingConfig(symmetric=True)).compare(vectors, labels, torch.ones(len(labels)))["contrast"]
    padded = Contrast(EmbeddingConfig(symmetric=True)).compare(
        torch.cat([vectors, vectors.new_zeros(3, 12)]),
        torch.cat([labels, labels.new_zeros(3, 3)]),
        torch.cat([torch.ones(len(labels)), torch.zeros(3)]),
    )["contrast"]
    assert float(padded.loss_sum) == pytest.approx(float(plain.loss_sum), rel=1e-12)
    assert (float(padded.weight_sum), float(padded.correct_sum or 0)) == (PAIRS, float(plain.correct_sum or 0))


@pytest.mark.parametrize("kind", ["plain", "cached", "symmetric", "matryoshka", "cached matryoshka"])
def test_loss_and_gradients_are_those_of_sentence_transformers(kind: str, tmp_path: Path) -> None:
    sentence_transformers = pytest.importorskip(
        "sentence_transformers", reason="the extra 'sentence-transformers' is not installed"
    )
    from sentence_transformers.sentence_transformer import losses

    torch.manual_seed(0)
    ours = VectorModel(BertConfig(**NUMBERS, next_sentence=False, head="vector"))
    folder = write_stock(tmp_path / "hf", ours)
    types = {"": "Transformer", "1_Pooling": "Pooling"}
    rows = [
        {"idx": number, "name": f"{number}", "path": path, "type": f"sentence_transformers.models.{name}"}
        for number, (path, name) in enumerate(types.items())
    ]
    (folder / "modules.json").write_text(json.dumps(rows))
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": NUMBERS["hidden_size"], "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    theirs = sentence_transformers.SentenceTransformer(str(folder), device="cpu")
    texts = random.Random(1)
    columns = [[[2, *texts.choices(range(5, 61), k=texts.randint(2, 6)), 3] for _ in range(PAIRS)] for _ in range(3)]
    columns = columns[: 2 if kind == "symmetric" else 3]
    features = []
    for column in columns:
        longest = max(map(len, column))
        ids = torch.tensor([[*each, *[0] * (longest - len(each))] for each in column])
        mask = torch.tensor([[1] * len(each) + [0] * (longest - len(each)) for each in column])
        features.append({"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids)})
    symmetric = {"directions": ("query_to_doc", "doc_to_query"), "partition_mode": "per_direction"}
    more = symmetric if kind == "symmetric" else {}
    if kind.startswith("cached"):
        loss = losses.CachedMultipleNegativesRankingLoss(theirs, mini_batch_size=3, **more)
    else:
        loss = losses.MultipleNegativesRankingLoss(theirs, **more)
    sizes = (8, 12) if "matryoshka" in kind else ()
    if sizes:
        loss = losses.MatryoshkaLoss(theirs, loss, [NUMBERS["hidden_size"], *sizes])
    their_loss = loss(features, torch.empty(0))
    their_loss.backward()
    settings = EmbeddingConfig(temperature=0.05, symmetric=kind == "symmetric", dimensions=sizes)
    batch = packed_sequences([(column[pair], []) for pair in range(PAIRS) for column in columns], mask=-1)
    labels = labels_of(len(columns) - 2, list(range(PAIRS)), {})
    term = Contrast(settings).compare(ours(batch), labels, batch.sequence_weights)["contrast"]
    (term.loss_sum / PAIRS).backward()
    assert float(term.loss_sum.detach()) / PAIRS == pytest.approx(float(their_loss.detach()), rel=1e-5)
    found = dict(theirs[0].auto_model.named_parameters())
    for own, other in (("embeddings.token.weight", "embeddings.word_embeddings.weight"),
                       ("layers.0.attention.query.weight", "encoder.layer.0.attention.self.query.weight")):  # fmt: skip
        gradient, wanted = ours.get_parameter(f"bert.{own}").grad, found[other].grad
        assert gradient is not None and wanted is not None
        torch.testing.assert_close(gradient, wanted, rtol=1e-4, atol=1e-6)


def test_positives_are_searched_among_all_but_those_that_are_right_too() -> None:
    labels = labels_of(1, [0, 1, 0, 2, 3, 3, 4, 5], EQUAL).numpy()
    vectors = np.random.default_rng(1).normal(size=(len(labels), 6))
    vectors[2 * 3 + 1] = vectors[0 * 3 + 1]  # the positive of another pair of its group
    found = search(vectors, labels)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    compared = []
    for pair in range(PAIRS):
        anchor, own = 3 * pair, 3 * pair + 1
        texts = {int(labels[3 * other + 1, 2]): 3 * other + 1 for other in range(PAIRS)[::-1]}
        alike = [
            int(labels[3 * other + 1, 2])
            for other in range(PAIRS)
            if labels[3 * other, 1] == labels[anchor, 1] or labels[3 * other, 2] == labels[anchor, 2]
        ]
        others = [row for text, row in texts.items() if text not in alike]
        compared.append(1 + len(others))
        cosines = [float(unit[anchor] @ unit[row]) for row in others]
        own_cosine = float(unit[anchor] @ unit[texts[int(labels[own, 2])]])
        assert found.ranks[pair] == 1 + sum(cosine >= own_cosine for cosine in cosines)
        assert found.cosines[pair].tolist() == pytest.approx([own_cosine, max(cosines)])
        assert 3 * int(found.nearest[pair]) + 1 == others[int(np.argmax(cosines))]
    anchors = np.arange(PAIRS) * 3
    counted = candidates(labels[anchors, 2], labels[anchors + 1, 2], labels[anchors, 1])
    assert counted.tolist() == compared
    scores = scores_of(vectors, labels, [6, 2])
    assert scores["recall_at_1"] == (found.ranks == 1).mean() and scores["mrr"] == pytest.approx(
        (1 / found.ranks).mean()
    )
    assert scores["sizes"]["2"]["recall_at_10"] == (search(vectors[:, :2], labels).ranks <= 10).mean()


def test_equal_vectors_find_nothing() -> None:
    labels = labels_of(0, list(range(PAIRS)), {}).numpy()
    assert scores_of(np.ones((len(labels), 4)), labels, [4])["recall_at_1"] == 0
    assert scores_of(np.full((len(labels), 4), np.nan), labels, [4])["recall_at_1"] is None
