"""What a published folder says of where it comes from, and what is refused in it."""

import json
from pathlib import Path
from typing import Any

import pytest

from bertwright.core.artifact import Artifact, build
from bertwright.core.config import Identity
from bertwright.core.errors import ArtifactError
from bertwright.core.files import sha256, sha256_of, write_json
from bertwright.core.log import SILENT
from bertwright.core.provenance import PROVENANCE, broken_links, read_provenance, write_provenance


def artifact(folder: Path, stage: str, **inputs: str) -> Artifact:
    return build(folder / stage, Identity(stage, 3, {}, inputs), SILENT, lambda draft: {})


@pytest.fixture
def published(tmp_path: Path) -> Path:
    corpus = artifact(tmp_path, "corpus", **{"source 1": "5" * 64})
    vocab = artifact(tmp_path, "vocab", corpus=corpus.fingerprint)
    train = artifact(tmp_path, "train", vocab=vocab.fingerprint, examples="e" * 64)
    folder = tmp_path / "hf"
    (folder / "onnx").mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "onnx/model.onnx").write_bytes(b"\0\1")
    write_provenance(folder, (corpus, vocab, train), [("huwiki", "a" * 64)])
    return folder


def test_it_says_what_was_made_from_what(published: Path) -> None:
    found = read_provenance(published)
    assert found.sources == [("huwiki", "a" * 64)] and list(found.stages) == ["corpus", "vocab", "train"]
    assert found.stages["vocab"]["inputs"] == {"corpus": found.stages["corpus"]["fingerprint"]}
    assert found.files.keys() == {"config.json", "onnx/model.onnx"} and found.verify() == 2
    assert found.own_entry() == {
        "size": (published / PROVENANCE).stat().st_size,
        "sha256": sha256(published / PROVENANCE),
    }


def test_other_content_of_the_same_size_and_missing_files_are_named(published: Path) -> None:
    (published / "onnx/model.onnx").write_bytes(b"\0\2")
    with pytest.raises(ArtifactError, match=r"onnx/model\.onnx is damaged"):
        read_provenance(published).verify()
    (published / "onnx/model.onnx").unlink()
    with pytest.raises(ArtifactError, match=r"onnx/model\.onnx is missing"):
        read_provenance(published).verify()


def test_what_git_keeps_in_a_clone_is_not_unlisted(published: Path) -> None:
    (published / ".git").mkdir()
    (published / ".git/HEAD").write_text("ref")
    (published / "extra.bin").write_bytes(b"")
    assert read_provenance(published).unlisted_files() == ["extra.bin"]


def test_a_file_of_another_form_is_refused(published: Path) -> None:
    path = published / PROVENANCE
    whole = json.loads(path.read_text())
    whole.pop("sha256")
    forms: list[Any] = [
        {**whole, "files": {"/etc/x": {"size": 1, "sha256": "0" * 64}}},
        {**whole, "stages": []},
        [],
        {},
    ]
    for values in forms:
        write_json(path, {**values, "sha256": sha256_of(values)} if isinstance(values, dict) else values)
        with pytest.raises(ArtifactError, match="provenance"):
            read_provenance(published)
    path.write_text("{")
    with pytest.raises(ArtifactError, match="provenance"):
        read_provenance(published)


def test_inputs_of_stages_are_compared_and_files_are_not() -> None:
    stages: dict[str, dict[str, Any]] = {
        "corpus": {"fingerprint": "c", "inputs": {"source 1": "s"}},
        "vocab": {"fingerprint": "v", "inputs": {"corpus": "c", "source 1": "t"}},
        "train": {"fingerprint": "t", "inputs": {"vocab": "w", "examples": "e"}},
        "evaluate": {"fingerprint": "x", "inputs": {"train": "t", "examples": "f"}},
    }
    assert list(broken_links(stages)) == [("train", "vocab"), ("evaluate", "examples")]
