"""What is told of the data that a recipe names: sizes, faults, and what cannot be known yet."""

import gzip
import hashlib
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from tests.rows import each_row
from tests.unit.test_classification import recipe as classifier
from tests.unit.test_classification import texts

from bertwright import Recipe, run
from bertwright.check.check_recipe import check_recipe
from bertwright.check.recipe import data
from bertwright.check.recipe.data import imported_data, sources
from bertwright.check.verdict import Verdict
from bertwright.core.addresses import redact_credentials
from bertwright.core.errors import DataError, MissingExtraError
from bertwright.corpus.config import CorpusConfig

Load = Callable[..., Recipe]
TEXT = ("A híd a folyó fölött áll. " * 40 + "\n\n").encode()


def looked_at(language: str = "hu", **keys: object) -> tuple[float | None, list[Verdict]]:
    return sources(CorpusConfig(language=language, **keys))  # type: ignore[arg-type]


def test_the_text_of_sources_is_reckoned_by_packing_and_weight(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.txt", tmp_path / "b.txt.gz"
    plain.write_bytes(TEXT)
    packed.write_bytes(gzip.compress(TEXT))
    assert looked_at(source=str(plain))[0] == len(TEXT)
    assert looked_at(source={"path": str(plain), "weight": 2.5})[0] == 2.5 * len(TEXT)
    assert looked_at(source=str(packed))[0] == 3 * packed.stat().st_size
    both, _ = looked_at(source=[str(plain), str(packed)])
    assert both == len(TEXT) + 3 * packed.stat().st_size


def test_with_a_source_that_is_not_here_the_whole_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(TEXT)
    url = "https://name:secret@host/b.txt?token=secret"
    for order in ([str(tmp_path / "a.txt"), url], [url, str(tmp_path / "a.txt")]):
        size, verdicts = looked_at(source=order, cache_dir=tmp_path)
        assert size is None
        far = next(verdict for verdict in verdicts if "another machine" in verdict.text)
        assert far.level == "ok" and redact_credentials(url) in far.text and "secret" not in far.text


def test_each_faulty_source_is_reported_with_its_number(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    (tmp_path / "paper.pdf").write_bytes(b"%PDF-1.7\n")
    size, verdicts = looked_at(source=[str(tmp_path / "empty.txt"), "sample", str(tmp_path / "paper.pdf")])
    assert size is None
    assert [(verdict.about, verdict.level) for verdict in verdicts[:3]] == [
        ("corpus.source.0", "error"),
        ("corpus.source.1", "ok"),
        ("corpus.source.2", "error"),
    ]
    assert "is empty (0 bytes)." in verdicts[0].text and verdicts[0].remedy == "Download it again."
    assert "is a PDF file" in verdicts[2].text and all(issubclass(verdicts[i].kind, DataError) for i in (0, 2))


def test_without_zstandard_other_sources_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the environment of ONNX Runtime, which only trains."""
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(TEXT))
    (tmp_path / "b.txt.zst").write_bytes(zstandard.compress(TEXT))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    _, (read, missing, *_) = looked_at(source=[str(tmp_path / "a.txt.gz"), str(tmp_path / "b.txt.zst")])
    assert (read.level, missing.level, missing.kind) == ("ok", "error", MissingExtraError)
    assert (
        missing.sentence == "the Python package zstandard is needed here, but is not installed: pip install zstandard."
    )


def test_every_language_is_checked_once() -> None:
    _, verdicts = looked_at("hu", source="sample", filter={"languages": ["hu", "uk", "qqx"]})
    told = [verdict for verdict in verdicts if "language" in verdict.about]
    assert [(verdict.level, verdict.text.split(" ")[0]) for verdict in told] == [
        ("ok", "hu"),
        ("ok", "uk"),
        ("warning", "qqx"),
    ]
    assert [verdict.about for verdict in told] == ["corpus.language", *["corpus.filter.languages"] * 2]
    assert told[2].remedy == "Correct it if it is mistyped (bertwright check --explain corpus.filter.languages)."


def test_a_program_on_the_path_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_bytes(TEXT)
    program = tmp_path / "cut"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    keys = {"source": str(tmp_path / "a.txt"), "split": {"command": ["cut", "-x"]}}
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not [verdict for verdict in looked_at(**keys)[1] if verdict.level != "ok"]
    program.chmod(0o644)
    (fault,) = [verdict for verdict in looked_at(**keys)[1] if verdict.level != "ok"]
    assert fault.about == "corpus.split.command" and fault.text == "there is no program 'cut'."


def test_a_folder_without_data_is_an_error_of_its_key(load: Load, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "README").write_text("years of work\n")
    recipe = load(f"train.phases.0.data={tmp_path / 'data'}")
    (verdict,) = imported_data(recipe)
    assert (verdict.level, verdict.about) == ("error", "train.phases.0.data")
    assert str(tmp_path / "data") in verdict.text and verdict.remedy
    assert not list(imported_data(load())), "without such data nothing is said of it"
    stages = ("corpus", "vocab")
    assert verdict not in check_recipe(recipe, tmp_path / "run", stages), "not asked for before the examples"


@each_row(
    ("name", "content", "fault"),
    [("b.txt", b"", "is empty"), ("b.pdf", b"%PDF-1.7\n", "is a PDF file")],
)
def test_a_damaged_copy_of_what_is_far_away_is_a_fault_now(
    name: str, content: bytes, fault: str, tmp_path: Path
) -> None:
    """It would be read as it lies here when the stage starts: nothing would be asked for."""
    copy = tmp_path / "https" / "host" / name
    copy.parent.mkdir(parents=True)
    copy.write_bytes(content)
    size, verdicts = looked_at(source=f"https://host/{name}", cache_dir=tmp_path)
    assert size is None and verdicts[0].level == "error" and fault in verdicts[0].text


def test_copies_of_several_formats_are_a_fault_now(tmp_path: Path) -> None:
    folder = tmp_path / "s3" / "bucket" / "texts"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_bytes(TEXT)
    (folder / "b.jsonl").write_text('{"text": "Egy."}\n')
    url = "s3://bucket/texts"
    note = tmp_path / f".{hashlib.sha256(url.encode()).hexdigest()[:16]}.files.json"
    note.write_text(json.dumps([f"{url}/a.txt", f"{url}/b.jsonl"]))
    _, verdicts = looked_at(source=url, cache_dir=tmp_path)
    assert verdicts[0].level == "error" and "several formats" in verdicts[0].text
    (folder / "b.jsonl").unlink()
    _, verdicts = looked_at(source=url, cache_dir=tmp_path)
    assert verdicts[0].level == "ok" and "another machine" in verdicts[0].text, "half a copy is fetched when it starts"


def test_examples_of_another_run_have_the_vocabulary_of_this_one(load: Load, trained: Path, tmp_path: Path) -> None:
    data, theirs = f"train.phases.0.data={trained / 'examples'}", trained / "vocab" / "vocab.txt"

    def told(out: Path, *keys: str) -> tuple[str, str]:
        verdicts = check_recipe(load(data, *keys), out, ["corpus", "vocab", "examples", "train"])
        (found,) = (verdict for verdict in verdicts if verdict.about == "train.phases.0.data")
        return found.level, found.sentence

    assert told(tmp_path / "new")[0] == "warning" and f"Set vocab.file={theirs}" in told(tmp_path / "new")[1]
    shutil.copytree(trained / "vocab", tmp_path / "begun" / "vocab")
    assert told(tmp_path / "begun") == ("ok", f"{trained / 'examples'} was made with the vocabulary of this run")
    assert told(tmp_path / "begun", "vocab.size=150")[0] == "warning", "it will be trained again"
    run(load("vocab.lower_case=true"), tmp_path / "other", ["corpus", "vocab"])
    level, sentence = told(tmp_path / "other", "vocab.lower_case=true")
    assert level == "error" and "made with another vocabulary than" in sentence and f"vocab.file={theirs}" in sentence


def test_unread_labelled_texts_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = classifier(tmp_path, 'labels = ["poor", "fine"]', texts())
    (short,) = imported_data(recipe, pending=True)
    assert short.level == "ok" and "were read" not in short.text
    monkeypatch.setattr(data, "_RECORDS", 12)
    (long,) = imported_data(recipe, pending=True)
    said = "; of train.jsonl, the first 12 of about 36 texts were read, the others when the examples are made"
    assert (long.level, long.text) == ("ok", short.text + said), "dev.jsonl has 12 texts"
