"""Counts and settings in a manifest are checked by the types that the stage gives itself; nothing else is imported."""

import re
import sys
from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright.core.artifact import MANIFEST, Artifact, build, open_artifact
from bertwright.core.config import Identity
from bertwright.core.errors import ArtifactError
from bertwright.core.files import read_json, sha256_of, write_json
from bertwright.core.log import SILENT
from bertwright.core.shapes import counts_of, settings_of
from bertwright.pipeline.stage import STAGES


def sealed(folder: Path, stage: str, counts: dict[str, object]) -> Artifact:
    return build(folder, Identity(stage, 1, {}, {}), SILENT, lambda draft: counts)


def resealed(folder: Path, **changed: dict[str, object]) -> None:
    """The manifest with other values and a seal that fits: what an editor that knows the seal could write."""
    manifest = {**read_json(folder / MANIFEST), **changed}
    del manifest["sha256"]
    write_json(folder / MANIFEST, {**manifest, "sha256": sha256_of(manifest)})


@each_row("stage", [name for name in STAGES if name != "report"])
def test_every_stage_with_an_artifact_types_its_counts(stage: str) -> None:
    assert counts_of(stage) is not None and settings_of(stage) is not None


@each_row(
    "stage",
    [
        "checkpoint",
        "core",
        "cli",
        "",
        ".",
        "..",
        "../train",
        "vocab/../train",
        "train.engine",
        "train/engine",
        "a\0b",
        "шейпы",
    ],
)
def test_a_name_that_is_no_stage_is_not_imported(stage: str) -> None:
    before = set(sys.modules)
    assert counts_of.__wrapped__(stage) is None
    assert not {name for name in set(sys.modules) - before if name.startswith("bertwright.cli")}


@each_row(
    ("stage", "counts", "key"),
    [
        ("corpus", {"sources": [{"weight": "half"}]}, "counts.sources.0.weight"),
        ("vocab", {"entries": -1}, "entries"),
        ("examples", {"heldout": {"rows": {"16": [2**63]}}}, "heldout.rows.16.0"),
        ("train", {"sessions": [{"from_step": 0}]}, "sessions.0"),
        ("evaluate", {"mlm_loss": "low"}, "mlm_loss"),
        ("export", {"parameters": 1.5}, "parameters"),
    ],
)
def test_a_count_of_another_type_is_refused_with_its_place(
    tmp_path: Path, stage: str, counts: dict[str, object], key: str
) -> None:
    sealed(tmp_path / stage, stage, {})
    resealed(tmp_path / stage, counts=counts)
    with pytest.raises(ArtifactError, match=key.removeprefix("counts.").replace(".", r"\.")):
        open_artifact(tmp_path / stage)


@each_row(
    ("stage", "settings", "key"),
    [
        ("corpus", {"corpus": {"language": 1}}, "corpus.language"),
        ("vocab", {"vocab": []}, "vocab"),
        ("examples", {"examples": {"plan": []}}, "examples.plan"),
        ("train", {"optim": {"weight_decay": "much"}}, "optim.weight_decay"),
        ("checkpoint", {"train": {"phases": [{"length": -1}]}}, "train.phases.0.length"),
        ("evaluate", {"evaluate": {"length": None}}, "evaluate.length"),
        ("export", {"texts": None}, "texts"),
    ],
)
def test_a_setting_of_another_type_is_refused_with_its_place(
    tmp_path: Path, stage: str, settings: dict[str, object], key: str
) -> None:
    build(tmp_path / stage, Identity(stage, 1, {}, {}), SILENT, lambda draft: {})
    resealed(tmp_path / stage, config=settings)
    with pytest.raises(ArtifactError, match=f"is not valid: {re.escape(key)}: "):
        open_artifact(tmp_path / stage)


def test_counts_of_another_version_may_lack_some_and_have_more(tmp_path: Path) -> None:
    sealed(tmp_path / "vocab", "vocab", {"entries": 7, "of_a_later_version": {"any": ["thing"]}})
    assert open_artifact(tmp_path / "vocab", "vocab").counts["entries"] == 7
