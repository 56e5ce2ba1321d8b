from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import zstandard
from tests.rows import each_row

from bertwright.core import rng
from bertwright.core.artifact import Artifact, build
from bertwright.core.config import Identity
from bertwright.core.errors import RecipeError
from bertwright.core.files import read_json, write_atomic
from bertwright.core.log import SILENT
from bertwright.core.stage_context import StageContext
from bertwright.evaluate.config import EvaluateConfig, Inputs
from bertwright.evaluate.run import identity, run
from bertwright.examples.config import ExamplesConfig, PlanSet
from bertwright.examples.frequencies import token_counts
from bertwright.examples.planned import heldout_batches
from bertwright.examples.run import run as make_examples
from bertwright.examples.run_tasks import Inputs as ExamplesInputs
from bertwright.examples.store import Store
from bertwright.model.batch import packed_sequences
from bertwright.model.bert.network import BertConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.saved import load_network, save_model
from bertwright.tasks.pretraining.questions import readable
from bertwright.tasks.pretraining.scores import baselines, bits_per_character, entry_lengths, majority
from bertwright.tasks.pretraining.vectors import mean_of_cosines
from bertwright.tasks.pretraining.verdict import untrained
from bertwright.vocab.config import VocabConfig
from bertwright.vocab.run import run as make_vocab
from bertwright.vocab.tokenizer import load_tokenizer

LENGTH = 48
WHO = ("A molnár", "The miller", "A halász", "The fisher", "Az erdész")
DOES = ("lát egy", "sees an", "keres egy", "finds an")
WHAT = ("öreg hidat", "old bridge", "árvíztűrő tükröt", "empty boat", "apró házat")


def _document(number: int) -> str:
    draw = rng.below(rng.key("documents", number), np.arange(15), 60).tolist()
    parts = zip(draw[0::3], draw[1::3], draw[2::3], strict=True)
    return "\n".join(f"{WHO[a % 5]} {DOES[b % 4]} {WHAT[c % 5]} ma, {number}." for a, b, c in parts)


class Made:
    """The inputs of the stage, made once for all tests of this file."""

    def __init__(self, folder: Path, next_sentence: bool = True) -> None:
        def shard(draft: Path) -> dict[str, object]:
            (draft / "shards").mkdir()
            text = "".join(f"{_document(i)}\n\n" for i in range(40))
            write_atomic(draft / "shards/00000.txt.zst", zstandard.ZstdCompressor().compress(text.encode()))
            return {"sentences": text.count("\n") - text.count("\n\n"), "text_bytes": len(text.encode())}

        def model(draft: Path) -> dict[str, object]:
            config = BertConfig(
                vocab_size=int(self.vocab.counts["entries"]) + 3,
                hidden_size=24,
                num_hidden_layers=1,
                num_attention_heads=2,
                intermediate_size=32,
                max_position_embeddings=LENGTH,
                next_sentence=next_sentence,
            )
            torch.manual_seed(1)
            save_model(draft / "model", config, PreTrainingModel(config).state_dict())
            return {"vocabulary": self.vocab.counts["vocabulary"]}

        self.corpus = build(folder / "corpus", Identity("corpus", 1, {}, {}), SILENT, shard)
        self.vocab = make_vocab(VocabConfig(size=200), self.corpus, folder / "vocab")
        plan = "next-sentence" if next_sentence else "doc-sentences"
        config = ExamplesConfig(passes=1, heldout=0.3, plan=plan, workers=1)
        sets = (PlanSet(length=LENGTH),)
        self.examples = make_examples(
            config, sets, ExamplesInputs(self.corpus, self.vocab), StageContext(folder / "examples")
        )
        self.train = build(folder / "train", Identity("train", 1, {}, {}), SILENT, model)

    def evaluate(self, out: Path, **settings: Any) -> Artifact:
        config = EvaluateConfig(**{"samples": 3, **settings})
        return run(config, LENGTH, Inputs(self.train, self.examples, self.vocab), StageContext(out))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("made"))


def test_unigram_baseline_is_that_of_a_plain_count() -> None:
    training, labels, size = [3, 3, 3, 5, 6, 6], [3, 5, 7, 3], 8
    counted, total = Counter(training), len(training)
    loss = -sum(math.log((counted[t] + 1) / (total + size)) for t in labels) / len(labels)
    found = baselines(token_counts(np.array(training, np.uint16), size), np.array(labels))
    assert found == {
        "unigram_loss": pytest.approx(loss, rel=1e-12),
        "most_common_token_accuracy": 0.5,
        "most_common_id": 3,
    }


def test_counting_in_pieces_is_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertwright.examples.frequencies.AT_ONCE", 7)
    tokens = rng.below(1, np.arange(100), 13).astype(np.uint16)
    assert token_counts(tokens, 13).tolist() == [tokens.tolist().count(i) for i in range(13)]


def test_bits_a_character_are_those_of_the_text_that_was_masked() -> None:
    entries = ["[PAD]", "[UNK]", "víz", "##nek", "東", "."]
    lengths = entry_lengths(entries)
    assert lengths.tolist() == [0, 0, 3, 3, 1, 1]
    labels = np.array([2, 3, 4, 5, 1])
    # Five labels of one bit each, for eight characters; what [UNK] hides is not known.
    assert bits_per_character(math.log(2), labels, lengths) == pytest.approx(5 / 8)
    assert bits_per_character(None, labels, lengths) is None
    assert bits_per_character(1.0, labels[-1:], lengths) is None
    assert bits_per_character(1.0, labels[:0], lengths) is None


def test_majority_is_that_of_either_label() -> None:
    assert majority([0, 0, 0, 1]) == majority([1, 1, 1, 0]) == 0.75


def test_scores_are_those_of_the_held_out_masks(made: Made, tmp_path: Path) -> None:
    artifact = made.evaluate(tmp_path / "evaluate")
    scores = read_json(artifact.file("scores.json"))
    assert dict(artifact.counts) == scores
    batches = list(heldout_batches(made.examples, LENGTH, LENGTH, 0.15, 1))
    labels = [int(label) for batch in batches for label in batch.labels]
    store = Store.open(made.examples, "train")
    counted = Counter(store.tokens.tolist())
    total, size = sum(counted.values()), store.vocabulary.size
    assert scores["sequences"] == len(batches) and scores["predictions"] == len(labels)
    loss = -sum(math.log((counted[t] + 1) / (total + size)) for t in labels) / len(labels)
    assert scores["unigram_loss"] == pytest.approx(loss, rel=1e-12)
    commonest = max(counted, key=lambda t: (counted[t], -t))
    assert scores["most_common_token_accuracy"] == pytest.approx(labels.count(commonest) / len(labels))
    random_pairs = sum(int(batch.sequence_labels[0]) for batch in batches) / len(batches)
    assert scores["nsp_majority"] == pytest.approx(max(random_pairs, 1 - random_pairs))
    assert scores["nsp_label_share"] == pytest.approx(random_pairs, abs=1e-4)
    assert scores["perplexity"] == pytest.approx(math.exp(scores["mlm_loss"]))
    vocabulary = made.vocab.file("vocab.txt").read_text(encoding="utf-8").splitlines()
    text = "".join(vocabulary[label].removeprefix("##") for label in labels if vocabulary[label] != "[UNK]")
    assert scores["bits_per_character"] == pytest.approx(scores["mlm_loss"] / math.log(2) * len(labels) / len(text))
    # untrained: near the uniform distribution over all rows of the embedding
    assert scores["mlm_loss"] == pytest.approx(math.log(size + 3), abs=0.3)


def test_unrelated_sentences_are_compared_pair_by_pair(made: Made, tmp_path: Path) -> None:
    scores = made.evaluate(tmp_path / "evaluate").counts
    store, tokenizer = Store.open(made.examples, "heldout", made.vocab), load_tokenizer(made.vocab)
    model = load_network(made.train.path / "model").eval()
    cls, sep, mask = (tokenizer.ids(entry) for entry in ("[CLS]", "[SEP]", "[MASK]"))
    ends, vectors = np.cumsum(store.sentences, dtype=np.int64), list[np.ndarray[Any, Any]]()
    for end, length in zip(ends, store.sentences, strict=True):
        if length >= 6:
            ids = [cls, *store.tokens[end - length : end].tolist(), sep]
            with torch.inference_mode():
                hidden = model.encoder(packed_sequences([(ids, ())], mask)).double().numpy()
            vectors.append(hidden.mean(0) / np.linalg.norm(hidden.mean(0)))
    assert 2 < len(vectors) <= 256
    cosines = [a @ b for i, a in enumerate(vectors) for b in vectors[:i]]
    assert scores["unrelated_cosine"] == pytest.approx(np.mean(cosines), abs=1e-5)
    assert mean_of_cosines(np.full((3, 4), np.nan)) is None


def test_scores_do_not_depend_on_the_batch(made: Made, tmp_path: Path) -> None:
    one, other = made.evaluate(tmp_path / "a", batch=1).counts, made.evaluate(tmp_path / "b", batch=64).counts
    assert one["mlm_loss"] == pytest.approx(other["mlm_loss"], rel=1e-6)
    assert one["mlm_accuracy"] == other["mlm_accuracy"]


def test_at_most_so_many_sequences(made: Made, tmp_path: Path) -> None:
    assert made.evaluate(tmp_path / "evaluate", max_sequences=5).counts["sequences"] == 5


def test_predictions_of_lines_and_of_held_out_sentences(made: Made, tmp_path: Path) -> None:
    lines = ("A molnár [MASK=lát] egy öreg hidat.", "Egy [MASK] malom.")
    first = read_json(made.evaluate(tmp_path / "a", cloze=lines).file("predictions.json"))
    assert first == read_json(made.evaluate(tmp_path / "b", cloze=lines).file("predictions.json"))
    assert [line["source"] for line in first] == ["cloze", "cloze", "held-out", "held-out", "held-out"]
    assert (first[0]["text"], first[0]["gold"]) == ("A molnár [MASK] egy öreg hidat.", "lát")
    assert (first[1]["text"], first[1]["gold"]) == (lines[1], None)
    heldout_text = " ".join(line.split(", ")[0] for i in range(40) for line in _document(i).splitlines())
    for line in first[2:]:
        assert line["text"].count("[MASK]") == 1
        assert line["text"].replace("[MASK]", line["gold"]).split(", ")[0] in heldout_text
    for line in first:
        chances = [entry["probability"] for entry in line["top"]]
        assert len(chances) == 5 and chances == sorted(chances, reverse=True) and 0 < sum(chances) < 1


@each_row("line", ["no mask here", "[MASK] and [MASK]"])
def test_a_line_needs_exactly_one_mask(line: str) -> None:
    with pytest.raises(RecipeError, match=re.escape(f"{line!r} contains [MASK] {line.count('[MASK]')} times")):
        EvaluateConfig(cloze=(line,))


def test_a_line_must_fit_the_model(made: Made, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=f"the model reads {LENGTH}"):
        made.evaluate(tmp_path / "evaluate", cloze=("[MASK]" + " molnár" * 60,))


def test_without_pairs_there_are_no_pair_scores(tmp_path: Path) -> None:
    scores = Made(tmp_path, next_sentence=False).evaluate(tmp_path / "evaluate").counts
    assert scores["sequences"] > 0
    assert [scores[name] for name in ("nsp_loss", "nsp_accuracy", "nsp_majority")] == [None, None, None]


def test_the_identity_is_known_from_fingerprints_alone(made: Made, tmp_path: Path) -> None:
    inputs = {name: getattr(made, name).fingerprint for name in ("train", "examples", "vocab")}
    found = identity(EvaluateConfig(samples=3, batch=5, device="cpu"), LENGTH, inputs | {"corpus": "not asked for"})
    assert found.fingerprint == made.evaluate(tmp_path / "evaluate").fingerprint
    for other in (
        identity(EvaluateConfig(samples=4), LENGTH, inputs),
        identity(EvaluateConfig(samples=3), LENGTH - 1, inputs),
        identity(EvaluateConfig(samples=3), LENGTH, inputs | {"train": "x"}),
    ):
        assert other.fingerprint != found.fingerprint


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is there")
def test_a_device_that_is_not_there_is_an_error_before_scoring(made: Made, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="torch finds no GPU"):
        made.evaluate(tmp_path / "evaluate", device="cuda")


def test_readable_text_has_no_blanks_before_commas() -> None:
    assert readable("A [MASK] , ( az öreg ) „ híd ” alatt .") == "A [MASK], (az öreg) „híd” alatt."


@each_row(("loss", "expected"), [(None, True), (7.1, True), (6.9, True), (6.75, False), (2.3, False)])
def test_a_model_is_untrained_until_it_beats_word_frequencies_clearly(loss: float | None, expected: bool) -> None:
    assert untrained(loss, 7.0) is expected
