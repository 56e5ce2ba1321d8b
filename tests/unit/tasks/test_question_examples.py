"""Windows of texts with their labels, compared with the tokenizer of transformers; and spans chosen from logits."""

import json
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.reference.teachers import SPECIALS
from tests.rows import each_row
from transformers import BertTokenizerFast

from bertwright.core.artifact import Artifact
from bertwright.core.errors import RecipeError
from bertwright.core.log import SILENT
from bertwright.core.stage_context import StageContext
from bertwright.examples.config import ExamplesConfig, ImportedData, MaskingConfig, PlanSet
from bertwright.examples.example_set import Selection
from bertwright.examples.run_tasks import Inputs
from bertwright.model.batch import PackedBatch, packed
from bertwright.tasks.span.config import SpanConfig, SpanFiles
from bertwright.tasks.span.examples import SpanExamples
from bertwright.tasks.span.objective import Span
from bertwright.tasks.span.run import run
from bertwright.tasks.span.task import SpanTask
from bertwright.tasks.span.windows import best_spans
from bertwright.vocab.config import VocabConfig
from bertwright.vocab.run import run as make_vocab

WORDS = ("ada", "met", "lo", "##vel", "##ace", "bab", "##bage", "in", "london", ".", "where", "?", "is", "old")
ENTRIES = (*SPECIALS, *WORDS)
TEXTS = ("Ada  met Bábbage in London.", "Lovelace met Ada. " * 5 + "London is old\u00ad.", "Old [SEP] London 東京.")
ANSWERS = ("Bábbage", "London", "東京")
STRIDE, QUERY = 4, 5


@pytest.fixture(scope="module")
def vocab(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    folder = tmp_path_factory.mktemp("vocab")
    (folder / "vocab.txt").write_text("\n".join(ENTRIES) + "\n", encoding="utf-8")
    return make_vocab(VocabConfig(file=folder / "vocab.txt", lower_case=True), None, folder / "vocab", SILENT)


def rows() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for text, answer in zip(TEXTS, ANSWERS, strict=True):
        answers = {"text": [answer], "answer_start": [text.index(answer)]}
        for question in ("Where?", "Where is old London? Where is Ada?"):
            found.append({"id": str(len(found)), "context": text, "question": question, "answers": answers})
        found.append({**found[-1], "id": str(len(found)), "answers": {"text": [], "answer_start": []}})
    return found


def make(vocab: Artifact, folder: Path, names: tuple[str, ...]) -> Artifact:
    (folder / "data").mkdir()
    for name in names:
        (folder / "data" / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows())), encoding="utf-8")
    data = ImportedData(0, folder / "data", 16, MaskingConfig(), quarantine=False, files=SpanFiles(STRIDE, QUERY))
    inputs = Inputs(None, vocab, (data,))
    return run(ExamplesConfig(heldout=0.5), (PlanSet(length=16),), inputs, StageContext(folder / "examples", SILENT))


@pytest.fixture(scope="module")
def examples(vocab: Artifact, tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    return make(vocab, tmp_path_factory.mktemp("questions"), ("train", "dev"))


@each_row("length", [13, 16, 24, 64])
def test_windows_and_labels_are_those_of_transformers(length: int, examples: Artifact, vocab: Artifact) -> None:
    theirs = BertTokenizerFast(str(vocab.file("tokenizer.json")), tokenizer_file=str(vocab.file("tokenizer.json")))
    found = SpanExamples.open(examples, "heldout", length)
    batch = found.batch(Selection.of(np.arange(found.sizes[0])))
    bounds = list(pairwise(batch.cu_seqlens.tolist()))
    ours = [(batch.token_ids[a:b].tolist(), batch.segment_ids[a:b].tolist()) for a, b in bounds]
    expected: list[Any] = []
    labels: list[list[int]] = []
    texts: list[str] = []
    for row in rows():
        asked = theirs(row["question"], add_special_tokens=False)["input_ids"][:QUERY]
        cut = theirs(row["question"], return_offsets_mapping=True, add_special_tokens=False)["offset_mapping"]
        question = row["question"][: cut[len(asked) - 1][1]]
        encoding = theirs(
            question,
            row["context"],
            truncation="only_second",
            max_length=length,
            stride=STRIDE,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
        for k, ids in enumerate(encoding["input_ids"]):
            expected.append((ids, encoding["token_type_ids"][k]))
            labels.append(_labels(row, encoding["offset_mapping"][k], encoding.sequence_ids(k)))
            texts.append(row["context"])
    assert ours == expected
    assert batch.sequence_labels.tolist() == labels
    assert any(map(any, labels)) and not all(map(any, labels))
    assert found.lengths(Selection.of(np.arange(found.sizes[0]))).tolist() == [len(ids) for ids, _ in ours]
    assert max(len(ids) for ids, _ in ours) <= length


def _labels(row: dict[str, Any], offsets: list[tuple[int, int]], parts: list[int | None]) -> list[int]:
    """The first and the last token of the answer, as transformers' run_qa finds them."""
    if not row["answers"]["text"]:
        return [0, 0]
    begin = row["answers"]["answer_start"][0]
    end = begin + len(row["answers"]["text"][0])
    inside = [i for i, part in enumerate(parts) if part == 1]
    if not inside or offsets[inside[0]][0] > begin or offsets[inside[-1]][1] < end:
        return [0, 0]
    return [
        max(i for i in inside if offsets[i][0] <= begin),
        min(i for i in inside if offsets[i][1] >= end),
    ]


def test_characters_of_tokens_give_back_the_answer(examples: Artifact) -> None:
    columns = SpanExamples.open(examples, "heldout", 16).columns
    offsets, known = columns.offsets.reshape(-1, 2), json.loads(columns.texts.tobytes())
    for number, (first, last) in enumerate(columns.answers.reshape(-1, 2).tolist()):
        answers = known["questions"][number]["answers"]
        begin = int(columns.passage_begins[columns.passages[number]])
        text = known["contexts"][columns.passages[number]]
        found = [text[offsets[begin + first, 0] : offsets[begin + last, 1]]] if first >= 0 else []
        assert found == answers


def test_counts_name_never_answering(examples: Artifact) -> None:
    assert examples.counts["heldout"]["majority"] == pytest.approx(1 / 3)
    assert examples.counts["heldout"]["majority_label"] == "no answer"
    assert examples.counts["heldout"]["repeated"] == 9


def test_questions_about_a_text_are_held_out_together(vocab: Artifact, tmp_path: Path) -> None:
    made = make(vocab, tmp_path, ("train",))
    texts = []
    for split in ("train", "heldout"):
        columns = SpanExamples.open(made, split, 16).columns  # type: ignore[arg-type]
        assert len(columns) and len(columns) % 3 == 0
        texts.append(set(json.loads(columns.texts.tobytes())["contexts"]))
    assert not texts[0] & texts[1]


def test_best_spans_are_those_of_a_search_through_all() -> None:
    logits = np.random.default_rng(4).normal(size=(15, 2))
    every = [(logits[a, 0] + logits[b, 1], a, b) for a, b in product(range(15), repeat=2) if a <= b < a + 6]
    found = list(best_spans(logits, 6))
    assert [each[1:] for each in found] == [each[1:] for each in sorted(every, reverse=True)[:20]]
    assert [each[0] for each in found] == pytest.approx(sorted((each[0] for each in every), reverse=True)[:20])
    assert list(best_spans(np.zeros((0, 2)), 6)) == []


def test_loss_is_the_cross_entropy_within_each_sequence(examples: Artifact) -> None:
    found = SpanExamples.open(examples, "heldout", 16)
    batch = packed(found.batch(Selection.of(np.arange(found.sizes[0]))))
    logits = torch.randn(len(batch.token_ids), 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))

    class Fixed(torch.nn.Module):
        def forward(self, batch: PackedBatch) -> torch.Tensor:
            return logits

    terms = Span(30).terms(Fixed(), batch)
    for k, name in enumerate(("start", "end")):
        wanted = sum(
            float(torch.nn.functional.cross_entropy(logits[a:b, k], label))
            for (a, b), label in zip(pairwise(batch.cu_seqlens.tolist()), batch.sequence_labels[:, k], strict=True)
        )
        assert float(terms[name].loss_sum) == pytest.approx(wanted)
        assert terms[name].share == 0.5


def test_a_phase_without_room_for_a_window_is_refused(vocab: Artifact) -> None:
    task: Any = SpanTask(SpanConfig())
    task.check(None, [384, 196], vocab)
    with pytest.raises(RecipeError, match=r"a length of 195 has no room .* Set a length above 195"):
        task.check(None, [384, 195], vocab)
