"""Artifacts: finished or absent, skipped when done, rebuilt by name of the key, damage found before use."""

from pathlib import Path

import pytest

from bertwright.core import artifact as artifacts
from bertwright.core.artifact import Artifact, Identity, build, open_artifact
from bertwright.core.errors import ArtifactError, DataError
from bertwright.core.log import SILENT


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


def test_a_changed_key_is_named_and_the_old_folder_kept(tmp_path: Path) -> None:
    old, notes = built(tmp_path), Notes()
    build(tmp_path / "corpus", identity("blue", "s2"), notes, make)
    assert notes.lines == ["corpus: built anew, because corpus.colour: 'red' -> 'blue'; its input source changed"]
    assert (tmp_path / f"corpus.{old.fingerprint[:12]}" / "a.txt").read_text() == "hello"


def test_changing_back_takes_the_old_folder_back(tmp_path: Path) -> None:
    old = built(tmp_path)
    build(tmp_path / "corpus", identity("blue"), SILENT, make)
    back = build(tmp_path / "corpus", identity(), SILENT, never)
    assert back.fingerprint == old.fingerprint
    assert sorted(p.name for p in tmp_path.iterdir()) == ["corpus", f"corpus.{identity('blue').fingerprint[:12]}"]


def test_a_failing_stage_leaves_no_artifact_and_its_draft_goes_on(tmp_path: Path) -> None:
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
    with pytest.raises(ArtifactError, match="made by the stage 'corpus'; a 'vocab' folder is needed"):
        open_artifact(tmp_path / "corpus", "vocab")
    with pytest.raises(ArtifactError, match="is not a finished artifact"):
        open_artifact(tmp_path)
    with pytest.raises(ArtifactError, match="has no file 'c.txt'"):
        open_artifact(tmp_path / "corpus").file("c.txt")


def test_an_unwritable_place_is_a_plain_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot write .*Choose a folder you may write to"):
        build(tmp_path / "file" / "corpus", identity(), SILENT, make)
