"""The recipe of a continued training: what follows from the text and the network, and what is refused before work."""

from __future__ import annotations

import json
import math
import random
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.reference.teachers import write_stock
from tests.rows import each_row

from bertwright import Recipe
from bertwright.check.check_recipe import check_recipe
from bertwright.cli import main
from bertwright.init.continued.network import guess_settings, read_start
from bertwright.init.continued.settings import Known, general_weight, settings_for
from bertwright.init.texts import meaning_of_lines
from bertwright.model.bert.network import BertConfig
from bertwright.model.classifier import Classifier
from bertwright.model.modern.network import ModernConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.pipeline.stage import STAGES
from bertwright.vocab.entries import SPECIALS, TextSettings
from bertwright.vocab.split import build_tokenizer

HUNGARIAN = (
    "A régi malom a folyó mellett áll, és a molnár minden reggel kinyitja a kapuját.",
    "A kovács délután lovat patkol, a halász pedig a hálóját javítja a parton.",
    "Az erdőben szarvasok és rókák élnek, télen nagy a hó a hegyek között.",
    "A gyerekek az iskolába mennek, és a tanító történeteket mesél nekik.",
)
ENGLISH = (
    "The old mill stands by the river, and every morning the miller opens its gate.",
    "In the afternoon the smith shoes a horse, while the fisher mends his net on the shore.",
    "Deer and foxes live in the forest, and in winter there is much snow between the hills.",
    "The children go to school, where the teacher tells them stories of the sea.",
)


def text(sentences: tuple[str, ...], documents: int = 60) -> str:
    """Documents of eight sentences that have the words of the given ones, in an order of their own."""
    words, draw = words_of(sentences), random.Random(7)

    def sentence() -> str:
        return " ".join(draw.choices(words, k=12)).capitalize() + "."

    return "\n\n".join("\n".join(sentence() for _ in range(8)) for _ in range(documents)) + "\n"


def words_of(*texts: tuple[str, ...]) -> list[str]:
    said = " ".join(sentence for each in texts for sentence in each)
    return sorted({word.strip(".,").lower() for word in said.split()})


def network(folder: Path, words: list[str], lower: bool = False, **changed: Any) -> Path:
    """A folder of transformers with a tiny network that knows these words, and all their letters as pieces."""
    letters = sorted({c for word in words for c in f"{word}{word.upper()}"} | set("0123456789.,"))
    entries = list(
        dict.fromkeys([*SPECIALS, *words, *map(str.capitalize, words), *letters, *(f"##{c}" for c in letters)])
    )
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
    config = BertConfig(vocab_size=len(entries), max_position_embeddings=512, **{**sizes, **changed})
    torch.manual_seed(1)
    write_stock(folder, Classifier(config) if config.labels else PreTrainingModel(config))
    build_tokenizer(entries, lower_case=lower, strip_accents=lower).save(str(folder / "tokenizer.json"))
    (folder / "vocab.txt").unlink(missing_ok=True)
    return folder


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("hu.txt").write_text(text(HUNGARIAN), encoding="utf-8")
    Path("en.txt").write_text(text(ENGLISH), encoding="utf-8")
    network(Path("model"), words_of(HUNGARIAN, ENGLISH))
    return tmp_path


def typed(*words: str) -> int:
    """The exit status of `bertwright` with these words."""
    with pytest.MonkeyPatch.context() as patched, pytest.raises(SystemExit) as ended:
        patched.setattr(sys, "argv", ["bertwright", *words])
        main()
    return int(str(ended.value.code or 0))


def drafted(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert typed("init", "--from", "model", *words, "--json") == 0
    return dict(json.loads(capsys.readouterr().out))


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    before = sorted(Path().rglob("*"))
    assert typed("init", *words, "--out", "no.toml") in (2, 3)
    assert sorted(Path().rglob("*")) == before, "nothing is written"
    return capsys.readouterr().err


@each_row(
    ("tokens", "length", "batch", "epochs", "rate", "heldout"),
    [
        # tokens, then what follows for a base network and documents of a few hundred tokens
        (20_000, 512, 2, 10, 5e-5, 0.1),
        (300_000, 512, 8, 4, 5e-5, 0.1),
        (3_000_000, 512, 8, 4, 5e-5, 0.05),
        (30_000_000, 512, 32, 3, 5e-5, 0.01),
        (300_000_000, 512, 128, 2, 1e-4, 0.005),
        (3_000_000_000, 512, 1024, 1, 5e-4, 0.005),
        (30_000_000_000, 512, 2048, 1, 5e-4, 0.005),
    ],
)
def test_settings_follow_from_the_amount_of_text(
    tokens: float, length: int, batch: int, epochs: int, rate: float, heldout: float
) -> None:
    found = settings_for(Known(tokens, 10_000, 400, 768, 512))
    assert (found.length, found.batch, found.epochs, found.rate) == (length, batch, epochs, rate)
    assert found.heldout == heldout
    assert found.updates == pytest.approx(tokens * (1 - heldout) * epochs / (batch * length), rel=0.01, abs=1)


@each_row(
    ("known", "length", "rate"),
    [
        (Known(1e7, 1000, 60, 768, 512), 128, 5e-5),
        (Known(1e7, 1000, 200, 768, 512), 256, 5e-5),
        (Known(1e7, 1000, 9000, 768, 8192), 512, 5e-5),
        (Known(1e7, 1000, 9000, 128, 64), 64, 3e-4),
        (Known(1e7, 1000, 300, 1024, 512), 512, 4e-5),
        (Known(1e7, 1000, 300, 256, 512, peak=4e-3), 512, 2e-3),
    ],
)
def test_length_and_rate_follow_from_documents_and_network(known: Known, length: int, rate: float) -> None:
    found = settings_for(known)
    assert (found.length, found.rate) == (length, rate)
    assert settings_for(Known(**{**vars(known), "ranks": 3})).batch % 3 == 0


def test_general_text_is_a_twentieth_or_all_that_there_is() -> None:
    weight, share = general_weight(19e6, 1e9)
    assert weight == pytest.approx(0.001) and share == pytest.approx(0.05)
    assert general_weight(19e6, 1e5) == (1.0, pytest.approx(1e5 / 19.1e6))
    assert math.isclose(settings_for(Known(1e7, 900, 90, 768, 512), 0.05).updates * 0.95, 7225, rel_tol=0.01)


@each_row(
    ("lines", "files", "meaning"),
    [
        (["A paragraph.", "Another.", "", "A document."], 1, "paragraphs"),
        ([f"Document {i}." for i in range(30)], 1, "articles"),
        ([f"Paragraph {i}." for i in range(30)], 2, "paragraphs"),
        (["A short file."], 1, "paragraphs"),
        (["A line that was broken by a program at seventy characters or", "so, as those of", ""] * 1, 1, "paragraphs"),
        (
            [*["A line that was broken by a program at about seventy characters in"] * 6, "the end.", ""] * 4,
            1,
            "wrapped",
        ),
    ],
)
def test_what_a_line_is(lines: list[str], files: int, meaning: str) -> None:
    assert meaning_of_lines(lines, files) == meaning


def test_a_draft_is_complete_and_checked(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = drafted(capsys, "--source", "hu.txt", "--general", "en.txt", "--out", "own.toml")
    recipe = Recipe.load("own.toml")
    assert [source.name for source in recipe.corpus.source] == ["own", "general"] if recipe.corpus else False
    assert recipe.corpus and recipe.corpus.language == "hu" and 0.01 < recipe.corpus.source[1].weight < 0.2
    assert recipe.corpus.filter.languages == ("hu", "en"), "the general text is in another language"
    assert recipe.evaluate.general[0].path == "en.txt" and recipe.train.init_from == Path("model")
    assert recipe.vocab.file == Path("model/tokenizer.json") and not recipe.vocab.lower_case
    assert recipe.examples.plan == "full-sentences" and recipe.train.phases[0].masking.unit == "words"
    assert found["settings"]["epochs"] == recipe.train.phases[0].epochs == 10
    verdicts = check_recipe(recipe, place / "run", list(STAGES))
    assert not [verdict for verdict in verdicts if verdict.level == "error"]
    assert any(verdict.about == "evaluate.general" for verdict in verdicts)
    (often,) = (verdict for verdict in verdicts if verdict.about == "train.phases" and verdict.level == "warning")
    assert "after 4 readings, repeated text is worth less each time" in often.text
    written = Path("own.toml").read_text(encoding="utf-8")
    assert "Ibrahim et al. 2024" in written and "Gururangan et al. 2020" in written and "# NOTE each text is" in written
    assert typed("plan", "own.toml") == 0 and typed("check", "own.toml") == 0


def test_without_general_text_the_risk_is_said(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = drafted(capsys, "--source", "en.txt", "--hours", "1e-5", "--machine", "4-cores")
    assert any("no general text" in warning and "--general TEXTS" in warning for warning in found["warnings"])
    values = tomllib.loads(Path("continued.toml").read_text(encoding="utf-8"))
    assert values["corpus"]["language"] == "en" and len(values["corpus"]["source"]) == 1
    assert values["train"]["phases"][0]["hours"] == 1e-5 and values["train"]["device"] == "cpu"
    assert "general" not in values["evaluate"]


def test_words_that_the_vocabulary_lacks_are_warned_of(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree("model")
    network(Path("model"), words_of(ENGLISH) + sorted(set("".join(HUNGARIAN)) - set(" .,")))
    found = drafted(capsys, "--source", "hu.txt", "--general", "en.txt")
    (warning,) = (warning for warning in found["warnings"] if "tokens per word" in warning)
    assert "(general text 1." in warning and "docs/how-to/new-vocabulary.md" in warning
    assert found["settings"]["fertility"] > 3


def test_a_modernbert_is_described_by_its_file(place: Path) -> None:
    config = ModernConfig(
        vocab_size=40, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48
    )
    shutil.rmtree("model")
    write_stock(Path("model"), PreTrainingModel(config))
    words = [*SPECIALS, *sorted(set("".join(ENGLISH)))]
    entries = list(dict.fromkeys([*words, *(f"##{c}" for c in words[5:])]))
    del entries[40:]
    build_tokenizer(entries, lower_case=False, strip_accents=False).save("model/tokenizer.json")
    start = read_start(Path("model"))
    assert start.model == {"kind": "modern", "config": "model/config.json"} and start.peak is None
    assert not start.pairs and start.optimizer == "adamw"


def test_text_settings_are_guessed_from_the_entries() -> None:
    assert guess_settings([*SPECIALS, "the", "##s"]) == TextSettings(True, True)
    assert guess_settings([*SPECIALS, "víz", "##é"]) == TextSettings(True, False)
    assert guess_settings([*SPECIALS, "The", "víz"]) == TextSettings(False, False)


@each_row(
    ("files", "words", "says"),
    [
        ({}, ["--from", "model"], "--from needs the text to learn: give --source"),
        ({}, ["--general", "hu.txt"], "give its folder as --from"),
        ({}, ["--from", "model", "--source", "hu.txt", "--quality", "best"], "leave --quality out"),
        ({}, ["--from", "model", "--source", "gone/*.txt"], "no file matches gone/*.txt"),
        ({}, ["--from", "gone", "--source", "hu.txt"], "gone is not a folder"),
        ({"x.txt": ""}, ["--from", "model", "--source", "x.txt"], "x.txt"),
        ({"x.txt": " \n\n \n"}, ["--from", "model", "--source", "x.txt"], "there is no text in it"),
        ({"x.txt": "12 34\n"}, ["--from", "model", "--source", "x.txt"], "the language of the text is not clear"),
        (
            {"x.txt": "Старый мельник каждое утро открывает ворота мельницы у реки.\n\n" * 9},
            ["--from", "model", "--source", "x.txt"],
            "of the words are unknown to the vocabulary of the network",
        ),
        ({}, ["--from", "model", "--source", "en.txt", "--language", "hu"], "is in another language"),
        ({}, ["--from", "model", "--source", "en.txt", "--hours", "soon"], "--hours soon"),
    ],
)
def test_what_cannot_be_continued_is_refused_before_work(
    files: dict[str, str],
    words: list[str],
    says: str,
    place: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, content in files.items():
        Path(name).write_text(content, encoding="utf-8")
    assert says in refused(capsys, *words)


def test_other_networks_are_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network(Path("classifier"), words_of(ENGLISH), labels=("bad", "good"), next_sentence=False)
    said = refused(capsys, "--from", "classifier", "--source", "en.txt")
    assert "classifier is a classifier, without the head that predicts masked tokens" in said
    tokenizer = json.loads(Path("model/tokenizer.json").read_text(encoding="utf-8"))
    tokenizer["model"] = {"type": "BPE", "vocab": {"a": 0}, "merges": []}
    Path("model/tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    assert "is a BPE tokenizer, but only WordPiece" in refused(capsys, "--from", "model", "--source", "en.txt")
    Path("model/config.json").write_text('{"model_type": "gpt2"}', encoding="utf-8")
    assert "'gpt2' is not a network that can be read" in refused(capsys, "--from", "model", "--source", "en.txt")


def test_an_existing_file_is_kept(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("no.toml").write_text("mine", encoding="utf-8")
    assert "already exists" in refused(capsys, "--from", "model", "--source", "en.txt")
    assert Path("no.toml").read_text(encoding="utf-8") == "mine"
