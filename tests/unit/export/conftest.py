"""A small trained model with everything that the export reads: corpus, vocabulary, train and evaluate artifacts."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
import zstandard

from bertwright.core.artifact import Artifact, build
from bertwright.core.config import Identity
from bertwright.core.files import write_atomic, write_json
from bertwright.core.log import SILENT
from bertwright.model.bert.network import BertConfig
from bertwright.model.config import NetworkConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.saved import save_model
from bertwright.vocab.config import VocabConfig, WordPieceConfig
from bertwright.vocab.run import run as make_vocab

SENTENCES = (
    "Az árvíztűrő tükörfúrógép Győrben készült.",
    "A főváros Budapest, a folyó a Duna.",
    "The river flows through the old town.",
    "An old mill stands by the river.",
)


class Trained(NamedTuple):
    train: Artifact
    vocab: Artifact
    evaluate: Artifact
    corpus: Artifact


def _corpus(out: Path) -> Artifact:
    def make(draft: Path) -> dict[str, object]:
        (draft / "shards").mkdir()
        text = "\n\n".join("\n".join(SENTENCES) for _ in range(3)) + "\n\n"
        write_atomic(draft / "shards/00000.txt.zst", zstandard.ZstdCompressor().compress(text.encode()))
        size = {"kept": 3, "sentences": 12, "words": 72}
        base = "https://hu.wikipedia.org/wiki/Kezdőlap"
        sources = [{"name": "huwiki", "base": base, "licence": "CC BY-SA", **size}]
        leaks = {"tests/qa.txt": {"sentences": 9, "found": 1, "short": 4, "short_found": 2}}
        return {**size, "text_bytes": len(text.encode()), "sources": sources, "contamination": leaks}

    return build(out, Identity("corpus", 1, {"corpus": {"language": "hu"}}, {}), SILENT, make)


def _bert(vocab_size: int, next_sentence: bool) -> BertConfig:
    return BertConfig(
        vocab_size=vocab_size,
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=40,
        max_position_embeddings=64,
        initializer_range=0.3,
        next_sentence=next_sentence,
    )


def _train(out: Path, vocab: Artifact, config: NetworkConfig) -> Artifact:
    def make(draft: Path) -> dict[str, object]:
        torch.manual_seed(0)
        save_model(draft / "model", config, PreTrainingModel(config).state_dict(), vocab.file("vocab.txt").read_bytes())
        return {
            "vocabulary": vocab.counts["vocabulary"],
            "parameters": config.parameters,
            "steps": 10,
            "sequences_seen": 80,
            "tokens_seen": 4000,
            "train_seconds": 2.5,
            "ranks": 1,
            "device": "cpu",
        }

    return build(out, Identity("train", 1, {}, {"vocab": vocab.fingerprint}), SILENT, make)


def run_card(folder: Path, capsys: pytest.CaptureFixture[str], lines: int = 5) -> list[str]:
    """Run the program of the model card in this folder, which is the current one, and has at most so many `lines`; what
    it prints, in lines."""
    (program,) = re.findall(r"```python\n(.*?)\n```", (folder / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(program.splitlines()) <= lines
    capsys.readouterr()
    exec(program, {})
    return capsys.readouterr().out.splitlines()


def _evaluate(out: Path, train: Artifact) -> Artifact:
    def make(draft: Path) -> dict[str, object]:
        write_json(
            draft / "predictions.json", [{"text": "A főváros [MASK], a folyó a Duna.", "gold": "Budapest", "top": []}]
        )
        return {
            "mlm_loss": 3.2,
            "mlm_accuracy": 0.41,
            "nsp_accuracy": 0.75,
            "unigram_loss": 5.1,
            "most_common_token_accuracy": 0.06,
            "nsp_majority": 0.5,
            "nsp_label_share": 0.5,
            "untrained": False,
            "predictions": 100,
            "sequences": 10,
        }

    return build(out, Identity("evaluate", 1, {}, {"train": train.fingerprint}), SILENT, make)


@pytest.fixture
def trained(tmp_path: Path) -> Callable[..., Trained]:
    """Makes the artifacts; `extra_rows` pads the embedding beyond the vocabulary; `network` is given its rows."""

    def make(
        lower_case: bool = False,
        next_sentence: bool = True,
        extra_rows: int = 0,
        network: Callable[[int], NetworkConfig] | None = None,
    ) -> Trained:
        config = VocabConfig(size=160, trainer=WordPieceConfig(min_frequency=1), lower_case=lower_case)
        corpus = _corpus(tmp_path / "texts")
        vocab = make_vocab(config, corpus, tmp_path / "vocab")
        rows = int(vocab.counts["entries"]) + extra_rows
        train = _train(tmp_path / "train", vocab, network(rows) if network else _bert(rows, next_sentence))
        return Trained(train, vocab, _evaluate(tmp_path / "evaluate", train), corpus)

    return make
