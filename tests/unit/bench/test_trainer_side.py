"""The Trainer's side: the same examples, the same network, and as many steps as it is told."""

from typing import Any

import pytest
from tests.rows import each_row
from tests.unit.bench.test_workload import SMALL

pytest.importorskip("accelerate", reason="the extra 'bench' is not installed")

import bertwright.bench.trainer_side as side
from bertwright.bench.bertwright_side import _build_trainee
from bertwright.bench.trainer_side import _Examples, _model, _tokenizer, trainer_side
from bertwright.bench.workload import VOCABULARY, WORKLOADS, Training, Workload, examples_of, loader_of

pytestmark = pytest.mark.heavy

ONE = Training(threads=1)
PHRASES = Workload("phrases", "tiny", 128, 4, "classes", (1, 1), (1, 64))
VARIED = Workload("of varied lengths", "tiny", 64, 4, "doc-sentences", (1, 6), (5, 9))


@each_row("padded", [True, False])
def test_it_has_our_examples_before_masking(padded: bool) -> None:
    rows, loader = _Examples(SMALL, padded), loader_of(SMALL)
    own = {
        tuple(example.token_ids.tolist()): example for example in examples_of(loader.batch(0, min(loader.total, 4096)))
    }
    assert len(rows) > 200
    for row in map(rows.__getitem__, range(len(rows))):
        read = sum(row["attention_mask"])
        example = own[tuple(row["input_ids"][:read])]
        assert row["token_type_ids"][:read] == example.segment_ids.tolist()
        assert row["next_sentence_label"] == example.label
        assert set(row["input_ids"][read:]) <= {0} and set(row["token_type_ids"][read:]) <= {0}
        lengths = {len(row[name]) for name in ("input_ids", "token_type_ids", "attention_mask")}
        assert lengths == {SMALL.length if padded else read}


def test_blocks_have_no_label_and_phrases_have_a_class() -> None:
    assert "next_sentence_label" not in _Examples(WORKLOADS["full-128"], padded=True)[0]
    rows = _Examples(PHRASES, padded=False)
    (batch,) = loader_of(PHRASES).step(0)
    own = {tuple(each.token_ids.tolist()): each.label for each in examples_of(batch)}
    found = [row for row in map(rows.__getitem__, range(len(rows))) if tuple(row["input_ids"]) in own]
    assert len(found) >= PHRASES.batch and all(own[tuple(row["input_ids"])] == row["labels"] for row in found)


@each_row("workload", [SMALL, WORKLOADS["full-128"], WORKLOADS["phrases-128"], WORKLOADS["modern-128"]])
def test_it_trains_a_network_of_our_size_and_dropout(workload: Any) -> None:
    asked = Training(threads=1, dropout=0.25, attention_dropout=0.125)
    model, own = _model(workload, asked), _build_trainee(workload, asked).model
    modern = workload.family == "modern"
    dropped = (
        ("mlp_dropout", "attention_dropout") if modern else ("hidden_dropout_prob", "attention_probs_dropout_prob")
    )
    assert [getattr(model.config, name) for name in dropped] == [0.25, 0.125]
    assert model.num_parameters() == pytest.approx(sum(each.numel() for each in own.parameters()), abs=1)
    assert ("ForPreTraining" in type(model).__name__) is workload.pairs
    assert ("ForSequenceClassification" in type(model).__name__) is bool(workload.labels)


def test_the_collators_special_tokens_are_ours(tmp_path: Any) -> None:
    tokenizer = _tokenizer(tmp_path)
    assert len(tokenizer) == VOCABULARY.size
    ids = tokenizer.pad_token_id, tokenizer.unk_token_id, tokenizer.cls_token_id, tokenizer.sep_token_id
    assert (*ids, tokenizer.mask_token_id) == (0, 1, 2, 3, 4)


@each_row("tuned", [False, True])
def test_the_requested_steps_are_timed(tuned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    widths: list[tuple[int, int, int]] = []

    class Noted(side.DataCollatorForLanguageModeling):  # type: ignore[misc, name-defined]
        def __call__(self, rows: Any, **other: Any) -> Any:
            batch = super().__call__(rows, **other)
            widths.append((*batch["input_ids"].shape, int(batch["attention_mask"].sum(1).max())))
            return batch

    monkeypatch.setattr(side, "DataCollatorForLanguageModeling", Noted)
    blocks = trainer_side(VARIED, ONE, tuned, 2)
    for _ in range(2):
        block = next(blocks)
        assert len(block) == 2 and all(step.seconds > 0 and step.processor_seconds > 0 for step in block)
        assert all(step.floor is None for step in block), "its operations are not ours to count"
    assert {rows for rows, _, _ in widths} == {VARIED.batch}
    assert all(width == (longest if tuned else VARIED.length) for _, width, longest in widths)
    assert all(longest < VARIED.length for _, _, longest in widths), "else a rectangle would show nothing"


@each_row("tuned", [False, True])
def test_phrases_are_padded_to_the_longest_of_their_batch(tuned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    widths: list[tuple[int, int]] = []

    class Noted(side.DataCollatorWithPadding):  # type: ignore[misc, name-defined]
        def __call__(self, rows: Any) -> Any:
            batch = super().__call__(rows)
            widths.append((batch["input_ids"].shape[1], int(batch["attention_mask"].sum(1).max())))
            return batch

    monkeypatch.setattr(side, "DataCollatorWithPadding", Noted)
    assert len(next(trainer_side(PHRASES, ONE, tuned, 2))) == 2
    assert widths and all(width == longest for width, longest in widths)
