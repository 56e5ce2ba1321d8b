"""The loss of each text before and after training, compared with transformers on sequences that are told apart by their
words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.rows import each_row

from bertwright import Recipe
from bertwright.core.artifact import Artifact, build
from bertwright.core.config import Identity
from bertwright.core.errors import DataError, RecipeError
from bertwright.core.log import SILENT, Log, Silent
from bertwright.core.stage_context import StageContext
from bertwright.corpus.config import CorpusConfig
from bertwright.corpus.heldout import text_hash
from bertwright.corpus.run import run as make_corpus
from bertwright.corpus.text import read_documents, shard_names
from bertwright.evaluate.config import EvaluateConfig, Inputs
from bertwright.evaluate.run import run
from bertwright.examples.batch import MicroBatch
from bertwright.examples.config import ExamplesConfig, PlanSet
from bertwright.examples.planned import heldout_batches
from bertwright.examples.run import run as make_examples
from bertwright.examples.run_tasks import Inputs as ExamplesInputs
from bertwright.model.bert.network import BertConfig
from bertwright.model.pretrained_config import read_pretrained
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.saved import save_model
from bertwright.page.markup import markdown
from bertwright.tasks.pretraining.table import before_and_after, table_by_text
from bertwright.vocab.config import VocabConfig
from bertwright.vocab.run import run as make_vocab

transformers = pytest.importorskip("transformers", reason="the extra 'hf' is not installed")
LENGTH = 24
WORDS = {"own": ("malom", "kovács", "halász", "erdő"), "general": ("house", "window", "garden", "winter")}
"""The texts have no word in common, so the words of a sequence tell which text it is of."""


def _text(words: tuple[str, ...], documents: int, first: int = 0) -> str:
    def document(number: int) -> str:
        return "\n".join(f"{words[(number + i) % 4]} {words[number * i % 4]} {words[i % 4]}." for i in range(1, 6))

    # Every document is another text, or it would be left out as a copy.
    return "\n\n".join(f"{document(number)}\n{words[0]} {number}." for number in range(first, first + documents)) + "\n"


class Said(Silent):
    """A log that keeps the sentences."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, message: str) -> None:
        self.lines.append(message)


class Made:
    """A corpus of two sources, and a training that started from a network which transformers saved."""

    def __init__(self, folder: Path) -> None:
        for name, words in WORDS.items():
            (folder / f"{name}.txt").write_text(_text(words, 60), encoding="utf-8")
        self.general = folder / "more.txt"
        self.general.write_text(_text(WORDS["general"], 10, first=50), encoding="utf-8")
        self.config = CorpusConfig(
            source=[{"path": f"{folder / name}.txt", "name": name} for name in WORDS],
            language="en",
            filter={"enabled": False},
            deduplicate={"near_documents": False},
            workers=1,
        )
        self.corpus = make_corpus(self.config, folder / "corpus")
        self.vocab = make_vocab(VocabConfig(size=120), self.corpus, folder / "vocab")
        config = ExamplesConfig(passes=1, heldout=0.3, plan="doc-sentences", workers=1)
        self.examples = make_examples(
            config,
            (PlanSet(length=LENGTH),),
            ExamplesInputs(self.corpus, self.vocab),
            StageContext(folder / "examples"),
        )
        self.network = BertConfig(
            vocab_size=int(self.vocab.counts["entries"]),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=48,
            max_position_embeddings=LENGTH,
            next_sentence=False,
        )
        torch.manual_seed(3)
        stock = transformers.BertConfig(
            **{key: getattr(self.network, key) for key in ("vocab_size", "hidden_size", "num_hidden_layers")},
            **{key: getattr(self.network, key) for key in ("num_attention_heads", "intermediate_size")},
            max_position_embeddings=LENGTH,
        )
        self.start, self.folder = transformers.BertForMaskedLM(stock).eval(), folder / "start"
        self.start.save_pretrained(self.folder)
        (self.folder / "tokenizer.json").write_bytes(self.vocab.file("tokenizer.json").read_bytes())

    def train(self, out: Path, **init: str) -> Artifact:
        """A trained network, whose start `init` describes beside what is true."""

        def make(draft: Path) -> dict[str, object]:
            torch.manual_seed(4)
            save_model(draft / "model", self.network, PreTrainingModel(self.network).state_dict())
            known = {"folder": str(self.folder), "fingerprint": read_pretrained(self.folder).content}
            return {"vocabulary": self.vocab.counts["vocabulary"], "init": {**known, **init}}

        return build(out, Identity("train", 1, {}, {}), SILENT, make)

    def scores(self, out: Path, log: Log = SILENT, general: Path | None = None, **init: str) -> dict[str, Any]:
        inputs = Inputs(self.train(out / "train", **init), self.examples, self.vocab)
        config = EvaluateConfig(samples=0, general=str(general) if general else ())
        texts = self.config.model_copy(update={"source": config.general}) if general else None
        made = run(config, LENGTH, inputs, StageContext(out / "evaluate", log), texts)
        return dict(json.loads(made.file("scores.json").read_text(encoding="utf-8")))

    def loss(self, text: str, batches: list[MicroBatch]) -> tuple[float, int]:
        """What transformers computes of the masked tokens of the sequences with the words of a text."""
        entries = self.vocab.file("vocab.txt").read_text(encoding="utf-8").splitlines()
        losses: list[float] = []
        for batch in batches:
            labels = np.full(len(batch.token_ids), -100)
            labels[batch.prediction_positions] = batch.labels
            for first, last in zip(batch.cu_seqlens[:-1], batch.cu_seqlens[1:], strict=True):
                whole = np.where(labels[first:last] >= 0, labels[first:last], batch.token_ids[first:last])
                said = "".join(entries[i].removeprefix("##") for i in whole)
                if any(word in said for word in WORDS[text]):
                    with torch.no_grad():
                        logits = self.start(torch.from_numpy(batch.token_ids[first:last])[None]).logits[0].double()
                    goal = torch.from_numpy(labels[first:last])
                    each = torch.nn.functional.cross_entropy(logits, goal, reduction="none")
                    losses += each[goal >= 0].tolist()
        return float(np.mean(losses)), len(losses)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("made"))


def test_each_source_is_scored_before_and_after(made: Made, tmp_path: Path) -> None:
    log = Said()
    scores = made.scores(tmp_path, log)
    rows = {row["text"]: row for row in scores["by_text"]}
    assert list(rows) == ["own", "general"] and "no_before" not in scores
    batches = list(heldout_batches(made.examples, LENGTH, LENGTH, 0.15, 64))
    for text, row in rows.items():
        loss, masked = made.loss(text, batches)
        assert row["before"] == pytest.approx(loss, abs=1e-5) and row["predictions"] == masked
    # The loss of all held-out sequences is the mean of those of the sources.
    total = sum(row["loss"] * row["predictions"] for row in rows.values())
    assert total / scores["predictions"] == pytest.approx(scores["mlm_loss"], rel=1e-6)
    held = made.examples.counts["heldout"]
    assert [row["documents"] for row in rows.values()] == [source["documents"] for source in held["sources"]]
    assert sum(row["documents"] for row in rows.values()) == held["documents"] and all(
        r["documents"] for r in rows.values()
    )
    (line,) = (line for line in log.lines if "loss by text" in line)
    assert line == f"evaluate: {next(before_and_after(scores))}" and "own " in line and " -> " in line


def test_a_text_given_for_this_alone_is_scored_without_what_training_read(made: Made, tmp_path: Path) -> None:
    scores = made.scores(tmp_path, general=made.general)
    rows = {row["text"]: row for row in scores["by_text"]}
    # Ten documents in the file, each of which is in the corpus and either held out or trained on.
    trained = np.frombuffer(made.examples.file("store/train.hashes").read_bytes(), "<u8")
    assert list(rows) == ["own", "general"] and 0 < rows["general"]["documents"] < 10
    assert len(trained) + made.examples.counts["heldout"]["documents"] == 120
    alone = made.scores(tmp_path / "again")
    assert [row for row in alone["by_text"] if row["text"] == "own"] == [rows["own"]]


def test_a_general_text_that_training_read_is_refused(made: Made, tmp_path: Path) -> None:
    text = tmp_path / "seen.txt"
    held = np.frombuffer(made.examples.file("store/heldout.hashes").read_bytes(), "<u8")
    assert len(held) < 60
    every = [d for name in shard_names(made.corpus) for d in read_documents(made.corpus, name)]
    seen = [document for document in every if text_hash(document) not in held][:3]
    text.write_text("\n\n".join("\n".join(document) for document in seen) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match="has no document that training did not read, of 3 that the filter keeps"):
        made.scores(tmp_path, general=text)


@each_row(
    ("init", "says"),
    [
        ({"fingerprint": "0" * 64}, "is no longer the network that training started from"),
        ({"folder": "gone"}, "gone is not a folder"),
    ],
)
def test_without_the_network_there_is_no_loss_before(
    init: dict[str, str], says: str, made: Made, tmp_path: Path
) -> None:
    scores = made.scores(tmp_path, **init)
    assert says in scores["no_before"] and {row["before"] for row in scores["by_text"]} == {None}
    assert list(before_and_after(scores))[1] == f"no losses before training: {scores['no_before']}"
    assert says in markdown(list(table_by_text(scores))) and "own " in next(before_and_after(scores))


def test_another_vocabulary_cannot_be_compared(made: Made, tmp_path: Path) -> None:
    other = tmp_path / "other"
    made.start.save_pretrained(other)
    words = made.vocab.file("vocab.txt").read_text(encoding="utf-8").splitlines()
    (other / "vocab.txt").write_text("\n".join([*words[:-2], words[-1], words[-2]]) + "\n", encoding="utf-8")
    scores = made.scores(tmp_path, folder=str(other), fingerprint=read_pretrained(other).content)
    assert scores["no_before"] == f"{other} has another vocabulary, so its losses are of other tokens"


@each_row(
    ("keys", "says"),
    [
        ({"general": [{"path": "x", "weight": 2.0}]}, "the weight of a source has no effect here"),
        ({"general": ["x", {"name": "y"}]}, "path"),
    ],
)
def test_keys_that_mean_nothing_are_refused(keys: dict[str, Any], says: str) -> None:
    with pytest.raises(RecipeError, match=says):
        EvaluateConfig(**keys)


def test_a_general_text_needs_the_rules_of_a_corpus(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"evaluate\.general: it is read by the rules of \[corpus\]"):
        Recipe.load("demo", ["corpus=", "evaluate.general=x.txt"])
