"""Every hash below a path: what is whole is counted, and what is damaged, lost or no artifact is named."""

import shutil
from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright.cli.describe import describe
from bertwright.cli.verify import check_hashes
from bertwright.core.artifact import MANIFEST, build
from bertwright.core.config import Identity
from bertwright.core.errors import ArtifactError
from bertwright.core.files import write_json
from bertwright.core.log import SILENT


def made(folder: Path, stage: str, **files: str) -> Path:
    def write(draft: Path) -> dict[str, object]:
        for name, text in files.items():
            (draft / name).write_text(text)
        return {}

    return build(folder / stage, Identity(stage, 1, {}, {}), SILENT, write).path


def test_all_files_of_all_artifacts_are_read(tmp_path: Path) -> None:
    made(tmp_path, "corpus", a="szöveg", b="")
    made(tmp_path, "vocab", c="x")
    assert check_hashes(tmp_path)["verified_files"] == 3
    assert check_hashes(tmp_path / "vocab")["verified_files"] == 1


def test_one_bit_is_found_where_the_size_is_right(tmp_path: Path) -> None:
    folder = made(tmp_path, "corpus", a="szöveg")
    check_hashes(tmp_path)  # known to be whole, by this very process
    (folder / "a").write_bytes("szövef".encode())
    with pytest.raises(ArtifactError, match=r"corpus/a is damaged"):
        check_hashes(tmp_path)


@each_row("path", ["nothing", "file.txt", "empty"])
def test_where_nothing_was_sealed_nothing_is_verified(tmp_path: Path, path: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.txt").touch()
    with pytest.raises(ArtifactError, match="nothing to verify against"):
        check_hashes(tmp_path / path)


def test_drafts_are_not_verified(tmp_path: Path) -> None:
    made(tmp_path, "corpus", a="x")
    draft = Path(shutil.copytree(tmp_path / "corpus", tmp_path / ".vocab.0123.draft"))
    (draft / "a").write_text("torn")
    assert check_hashes(tmp_path)["verified_files"] == 1


@each_row("stage", ["corpus", "vocab", "examples", "evaluate"])
def test_a_stage_that_lost_its_manifest_is_named(tmp_path: Path, stage: str) -> None:
    made(tmp_path, "export", a="x")
    (made(tmp_path, stage, a="x") / MANIFEST).unlink()
    with pytest.raises(ArtifactError, match=f"{stage} has no {MANIFEST}.*Restore it, or move"):
        check_hashes(tmp_path)


def test_a_folder_in_the_summary_that_is_gone_is_an_error(tmp_path: Path) -> None:
    made(tmp_path, "vocab", a="x")
    write_json(tmp_path / "summary.json", {"stages": {"vocab": {}, "corpus": {}}})
    with pytest.raises(ArtifactError, match="corpus has no"):
        check_hashes(tmp_path)
    write_json(tmp_path / "summary.json", {"stages": ["corpus"]})
    with pytest.raises(ArtifactError, match=r"summary\.json is not valid: stages"):
        check_hashes(tmp_path)
    write_json(tmp_path / "summary.json", [])
    with pytest.raises(ArtifactError, match="not contain a JSON object"):
        check_hashes(tmp_path)


def test_training_that_is_under_way_or_goes_on_is_no_damage(tmp_path: Path) -> None:
    made(tmp_path, "vocab", a="x")
    (tmp_path / "train").mkdir()
    assert check_hashes(tmp_path)["verified_files"] == 1
    (tmp_path / "train" / "model").mkdir()
    with pytest.raises(ArtifactError, match="train has no"):
        check_hashes(tmp_path)
    (tmp_path / "train" / f".{MANIFEST}.before-extension").touch()
    assert check_hashes(tmp_path)["verified_files"] == 1
    (tmp_path / "train" / "checkpoints" / "step-000000005").mkdir(parents=True)
    with pytest.raises(ArtifactError, match="step-000000005 has no"):
        check_hashes(tmp_path)


def test_a_stage_that_a_link_leads_to_is_verified_too(tmp_path: Path) -> None:
    corpus = made(tmp_path / "disk", "corpus", a="x")
    made(tmp_path / "run", "vocab", b="y")
    (tmp_path / "run" / "corpus").symlink_to(corpus)
    assert check_hashes(tmp_path / "run")["verified_files"] == 2
    (corpus / "a").write_text("z")
    with pytest.raises(ArtifactError, match="a is damaged"):
        check_hashes(tmp_path / "run")


def test_files_that_no_manifest_lists_are_named(tmp_path: Path) -> None:
    made(tmp_path, "corpus", a="x")
    train = made(tmp_path, "train", b="x")
    made(train / "checkpoints", "step-000000001", c="x")
    strangers = [made(tmp_path, "export", d="x") / ".tmpA1b2C3", train / "notes.txt"]
    for path in (*strangers, train / "observers" / "events"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    assert (
        check_hashes(tmp_path).items() >= {"verified_files": 4, "unlisted_files": sorted(map(str, strangers))}.items()
    )


def test_interrupted_writes_are_listed(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text("")
    train = made(tmp_path, "train", a="x")
    for draft in (tmp_path / ".corpus.0123456789ab.draft", train / "checkpoints" / ".step-000010.draft"):
        (draft / ".parts").mkdir(parents=True)
        (draft / ".parts" / "half").write_text("half")
    (train / "checkpoints" / ".git").mkdir()
    whole = [".corpus.0123456789ab.draft (4 bytes)", "train/checkpoints/.step-000010.draft (4 bytes)"]
    for verify in (False, True):
        assert describe(tmp_path, verify)["interrupted"] == whole
        assert describe(train, verify)["interrupted"] == ["checkpoints/.step-000010.draft (4 bytes)"]
        assert "interrupted" not in describe(made(tmp_path, "evaluate", b="y"), verify)
