"""Artifacts: finished or absent, skipped when done, rebuilt by name of the key, damage found before use."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.rows import each_row

from bertwright.core import artifact as artifacts
from bertwright.core.artifact import MANIFEST, Artifact, build, is_tensorflow_checkpoint, open_artifact, seal
from bertwright.core.config import Identity
from bertwright.core.errors import ArtifactError, DataError
from bertwright.core.files import make_folder
from bertwright.core.log import SILENT
from bertwright.core.manifest import changes
from bertwright.core.staging import drafts, open_draft


class Notes:
    """A log that remembers."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, message: str) -> None:
        self.lines.append(message)

    def progress(self, stage: str, done: float, total: float, unit: str) -> None: ...

    def record(self, row: dict[str, object]) -> None: ...


def identity(colour: str = "red", source: str = "s1") -> Identity:
    return Identity("corpus", 1, {"corpus": {"colour": colour}}, {"source": source})


def make(draft: Path) -> dict[str, int]:
    (draft / "sub").mkdir(exist_ok=True)
    (draft / "a.txt").write_text("hello")
    (draft / "sub" / "b.txt").write_text("world")
    return {"files": 2}


def never(draft: Path) -> dict[str, int]:
    raise AssertionError("must not be built again")


def built(tmp_path: Path) -> Artifact:
    return build(tmp_path / "corpus", identity(), SILENT, make)


def test_a_finished_artifact_is_opened_not_built(tmp_path: Path) -> None:
    first = built(tmp_path)
    stamps = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")}
    again = build(tmp_path / "corpus", identity(), SILENT, never)
    assert again.fingerprint == first.fingerprint and again.counts == {"files": 2}
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")} == stamps


def test_the_manifest_records_disk_usage(tmp_path: Path) -> None:
    def scratchy(draft: Path) -> dict[str, int]:
        (draft / ".parts").mkdir()
        (draft / ".parts" / "x").write_bytes(b"123")
        return make(draft)

    made = build(tmp_path / "corpus", identity(), SILENT, scratchy)
    assert made.manifest["disk"] == {"bytes": 10, "scratch_bytes": 3 + len("0.000")}
    assert not list(made.path.glob(".*"))


def test_a_changed_key_is_named_and_the_old_folder_kept(tmp_path: Path) -> None:
    old, notes = built(tmp_path), Notes()
    build(tmp_path / "corpus", identity("blue", "s2"), notes, make)
    assert notes.lines == ["corpus: built again, because corpus.colour: 'red' -> 'blue'; its input source changed"]
    assert (tmp_path / f"corpus.{old.fingerprint[:12]}" / "a.txt").read_text() == "hello"


def test_changing_back_takes_the_old_folder_back(tmp_path: Path) -> None:
    old = built(tmp_path)
    build(tmp_path / "corpus", identity("blue"), SILENT, make)
    back = build(tmp_path / "corpus", identity(), SILENT, never)
    assert back.fingerprint == old.fingerprint
    assert sorted(p.name for p in tmp_path.iterdir()) == ["corpus", f"corpus.{identity('blue').fingerprint[:12]}"]


def test_a_failed_stage_leaves_a_draft_that_is_continued(tmp_path: Path) -> None:
    def fails(draft: Path) -> dict[str, int]:
        (draft / "a.txt").write_text("half")
        raise DataError("bad input")

    with pytest.raises(DataError):
        build(tmp_path / "corpus", identity(), SILENT, fails)
    assert not (tmp_path / "corpus").exists()

    def goes_on(draft: Path) -> dict[str, int]:
        assert (draft / "a.txt").read_text() == "half"
        return make(draft)

    assert build(tmp_path / "corpus", identity(), SILENT, goes_on).file("a.txt").read_text() == "hello"


def test_every_flipped_bit_is_found_before_use(tmp_path: Path) -> None:
    built(tmp_path)
    files = [p for p in (tmp_path / "corpus").rglob("*") if p.is_file()]
    assert len(files) == 3
    for path in files:
        data = path.read_bytes()
        for bit in range(0, 8 * len(data), 1 if len(data) < 10 else 7):
            flipped = bytearray(data)
            flipped[bit // 8] ^= 1 << bit % 8
            path.write_bytes(flipped)
            artifacts._verified.clear()
            with pytest.raises(ArtifactError, match="damaged|cannot read|is missing|instead of"):
                open_artifact(tmp_path / "corpus").verify()
        path.write_bytes(data)
    assert open_artifact(tmp_path / "corpus").verify() == 2


def test_missing_and_resized_files_are_named(tmp_path: Path) -> None:
    done = built(tmp_path)
    (done.path / "a.txt").write_text("hello!")
    with pytest.raises(
        ArtifactError, match=r"a\.txt has 6 bytes instead of 5\. Move .* away and run the same command again"
    ):
        open_artifact(done.path)
    (done.path / "a.txt").unlink()
    with pytest.raises(ArtifactError, match=r"a\.txt is missing"):
        open_artifact(done.path)


def test_the_wrong_stage_and_an_unfinished_folder_are_refused(tmp_path: Path) -> None:
    built(tmp_path)
    with pytest.raises(ArtifactError, match="made by the stage 'corpus', but a 'vocab' folder is needed"):
        open_artifact(tmp_path / "corpus", "vocab")
    with pytest.raises(ArtifactError, match="is not a finished artifact"):
        open_artifact(tmp_path)
    with pytest.raises(ArtifactError, match="has no file 'c.txt'"):
        open_artifact(tmp_path / "corpus").file("c.txt")


@each_row("name", ["", "model.ckpt-1", "model.ckpt-1.index", "model.ckpt-1.data-00000-of-00001"])
def test_a_tensorflow_checkpoint_is_named_as_one(name: str, tmp_path: Path) -> None:
    for file in ("model.ckpt-1.index", "model.ckpt-1.data-00000-of-00001", "vocab.txt"):
        (tmp_path / file).touch()
    with pytest.raises(ArtifactError, match=r"is a TensorFlow checkpoint, and no artifact .* starts from it"):
        open_artifact(tmp_path / name)
    assert not is_tensorflow_checkpoint(tmp_path / "vocab.txt")


def test_an_unwritable_place_is_a_plain_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot write .*Choose a folder you may write to"):
        build(tmp_path / "file" / "corpus", identity(), SILENT, make)


def test_added_and_removed_inputs_are_named(tmp_path: Path) -> None:
    old = build(tmp_path / "c", Identity("corpus", 1, {}, {"source 1": "a", "source 2": "b"}), SILENT, make)
    now = Identity("corpus", 1, {}, {"source 1": "c", "file": "d"})
    assert changes(old.manifest, now) == [
        "its input source 1 changed",
        "its input source 2 is gone",
        "its input file is new",
    ]
    notes = Notes()
    build(tmp_path / "c", Identity("corpus", 1, {}, {"source 1": "a"}), notes, make)
    assert notes.lines == ["corpus: built again, because its input source 2 is gone"]


def test_scratch_is_neither_sealed_nor_left(tmp_path: Path) -> None:
    def leaves_scratch(draft: Path) -> dict[str, int]:
        (draft / ".parts").mkdir()
        (draft / ".parts" / "0").write_text("part")
        return make(draft)

    done = build(tmp_path / "corpus", identity(), SILENT, leaves_scratch)
    assert done.names() == ["a.txt", "sub/b.txt"]
    assert sorted(p.name for p in done.path.iterdir()) == ["a.txt", "manifest.json", "sub"]


def test_scratch_left_after_publishing_is_removed_by_the_next_run(tmp_path: Path) -> None:
    done = built(tmp_path)
    (done.path / ".parts").mkdir()
    (done.path / ".seconds").write_text("0.000")  # goes last
    build(done.path, identity(), SILENT, never)
    assert not list(done.path.glob(".*"))


def test_what_somebody_hides_in_a_finished_artifact_stays(tmp_path: Path) -> None:
    done = built(tmp_path)
    (done.path / ".git").mkdir()
    (done.path / ".git" / "HEAD").write_text("ref: refs/heads/main")
    build(done.path, identity(), SILENT, never)
    assert (done.path / ".git" / "HEAD").is_file()


def test_the_time_of_interrupted_attempts_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(draft: Path) -> dict[str, int]:
        (draft / "a.txt").write_text("half")
        os.utime(draft / ".seconds", (1000, 1000))  # the attempt began here, and wrote this file 40 seconds later
        for path in (draft, draft / "a.txt"):
            os.utime(path, (1040, 1040))
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            build(tmp_path / "corpus", identity(), SILENT, killed)
    monkeypatch.setattr(artifacts, "time", SimpleNamespace(monotonic=lambda: 7.0))  # the last attempt takes no time
    assert build(tmp_path / "corpus", identity(), SILENT, make).manifest["seconds"] == 80
    assert sorted(p.name for p in tmp_path.iterdir()) == ["corpus"]


@each_row("damage", [b"{}", b"not JSON", None])
def test_the_remedy_never_moves_away_what_cannot_be_rebuilt(tmp_path: Path, damage: bytes | None) -> None:
    for folder, stage, advice in (
        (tmp_path / "train", "train", "Remove .*/train/manifest.json and run the same command again"),
        (tmp_path / "step-000000004", "checkpoint", "An older complete checkpoint is used instead"),
        (tmp_path / "vocab", "vocab", "Move .*/vocab away and run the same command again"),
    ):
        make_folder(folder)
        make(folder)
        seal(folder, Identity(stage, 1, {}, {}), {}, 0.0)
        (folder / (MANIFEST if damage else "a.txt")).write_bytes(damage or b"other")
        with pytest.raises(ArtifactError, match=rf"is damaged.*{advice}") as caught:
            open_artifact(folder).verify()
        assert stage == "vocab" or "Move" not in str(caught.value)


def test_nothing_that_a_killed_writer_left_is_published(tmp_path: Path) -> None:
    def make_after_a_kill(draft: Path) -> dict[str, int]:
        counts = make(draft)
        (draft / ".a.txt.1234abcd.tmp").write_text("half")
        (draft / "sub" / ".b.txt.1234abcd.tmp").write_text("half")
        return counts

    made = build(tmp_path / "corpus", identity(), SILENT, make_after_a_kill)
    assert sorted(made.names()) == ["a.txt", "sub/b.txt"]
    assert not list(tmp_path.rglob("*.tmp"))
    (made.path / "sub" / ".b.txt.5678abcd.tmp").write_text("left by an earlier version")
    build(tmp_path / "corpus", identity(), SILENT, never)
    assert not list(tmp_path.rglob("*.tmp"))


def test_the_draft_of_other_settings_is_logged_and_then_removed(tmp_path: Path) -> None:
    def fails(draft: Path) -> dict[str, int]:
        (draft / "a.txt").write_text("half")
        raise DataError("bad input")

    notes = Notes()
    for colour in ("red", "blue"):
        with pytest.raises(DataError):
            build(tmp_path / "corpus", identity(colour), notes, fails)
    left = f".corpus.{identity('red').fingerprint[:12]}.draft"
    assert notes.lines == [
        f"corpus: {left} is what an interrupted run with other settings made; it is removed when this one is finished"
    ]
    assert (tmp_path / left).is_dir()
    build(tmp_path / "corpus", identity("blue"), SILENT, make)
    assert [path.name for path in tmp_path.iterdir()] == ["corpus"]


def test_only_the_files_of_the_result_are_sealed(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "sub" / ".tmpA1b2C3").write_text("half a model")
    seal(tmp_path, identity(), {}, 0.0, only=("a.txt", "sub/*"))
    sealed = open_artifact(tmp_path)
    assert sealed.names() == ["a.txt", "sub/b.txt"] and sealed.unlisted_files() == ["notes.txt", "sub/.tmpA1b2C3"]


def test_drafts_of_interrupted_builds_exclude_the_own_one(tmp_path: Path) -> None:
    folder = tmp_path / "corpus[1]"
    mine, old = open_draft(folder, "a" * 64), open_draft(folder, "b" * 64)
    open_draft(tmp_path / "vocab", "a" * 64)
    (tmp_path / ".corpus[1].cccccccccccc.draft").write_text("a file")
    assert drafts(folder, "a" * 64) == [old] and drafts(folder) == [mine, old]
