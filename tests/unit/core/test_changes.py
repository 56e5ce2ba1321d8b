"""What is said of an artifact that an older version of the project made."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field
from tests.rows import each_row

from bertwright.core.artifact import Artifact, build, open_artifact
from bertwright.core.changes import changes, remedy_of
from bertwright.core.config import Identity, Section, by_kind
from bertwright.core.files import read_json, sha256_of, write_json
from bertwright.core.log import SILENT


class Masking(Section):
    frozen: bool = False
    rate: float = 0.15


class Phase(Section):
    length: int
    schedule: str = "linear"
    documents: tuple[float, float] = (0.0, 1.0)
    masking: Masking = Masking()


class Before(Section):
    seed: int = 42
    config: dict[str, int] = Field({"layers": 2})
    phases: tuple[Phase, ...] = (Phase(length=8),)


class NowMasking(Section):
    static: bool = False
    rate: float = 0.15


class Poly(Section):
    kind: Literal["poly"] = "poly"
    power: float = 0.5


class Linear(Section):
    kind: Literal["linear"] = "linear"


class NowPhase(Section):
    length: int
    schedule: Annotated[Poly | Linear, BeforeValidator(by_kind), Field(discriminator="kind")] = Linear()
    document_range: tuple[float, float] = (0.0, 1.0)
    masking: NowMasking = NowMasking()


class Now(Section):
    seed: int = 42
    config: str = "given"
    phases: tuple[NowPhase, ...] = (NowPhase(length=8),)
    polish: float = 0.0


def of(section: Section, version: int = 1) -> Identity:
    return Identity("corpus", version, {"train": section}, {"source": "a"})


def of_an_older_version(folder: Path, section: Section) -> Artifact:
    """An artifact as in 0.0: its manifest has no `changed`, because all of `config` was hashed."""
    made = build(folder, of(section), SILENT, lambda draft: {})
    manifest = read_json(made.path / "manifest.json")
    del manifest["sha256"], manifest["changed"]
    manifest["fingerprint"] = sha256_of([manifest[key] for key in ("stage", "version", "config", "inputs")])
    write_json(made.path / "manifest.json", {**manifest, "sha256": sha256_of(manifest)})
    return open_artifact(made.path)


POLY = NowPhase(length=8, schedule=Poly())
VERSION = "the stage's version changed: 1 -> 2"


@each_row(
    ("before", "now", "expected"),
    [
        (Before(), of(Now(), 2), [VERSION]),
        (Before(phases=(Phase(length=8, schedule="poly"),)), of(Now(phases=(POLY,)), 2), [VERSION]),
        (Before(seed=1), of(Now(), 2), [VERSION, "train.seed: 1 -> 42"]),
        (
            Before(phases=(Phase(length=8, documents=(0.0, 0.5), masking=Masking(frozen=True)),)),
            of(Now(phases=(POLY,)), 2),
            [
                VERSION,
                "train.phases.0.schedule.kind: 'linear' -> 'poly'",
                "train.phases.0.document_range.1: 0.5 -> 1.0",
                "train.phases.0.masking.static: True -> False",
            ],
        ),
        (Before(), Identity("corpus", 2, {"train": Now()}, {"source": "b"}), [VERSION, "its input source changed"]),
    ],
)  # fmt: skip
def test_only_settings_that_differ_are_named_under_their_new_names(
    before: Before, now: Identity, expected: list[str], tmp_path: Path
) -> None:
    assert changes(of_an_older_version(tmp_path / "corpus", before).manifest, now) == expected


def test_an_artifact_of_which_every_setting_was_hashed_is_made_anew(tmp_path: Path) -> None:
    made = of_an_older_version(tmp_path / "corpus", Before())
    (said,) = changes(made.manifest, of(Before()))
    assert "an older version of bertwright" in said
    again = build(made.path, of(Before()), SILENT, lambda draft: {})
    assert again.manifest["changed"] == {"train": {}} and changes(again.manifest, of(Before())) == []


def test_a_renamed_key_that_was_hashed_is_no_other_setting(tmp_path: Path) -> None:
    made = build(
        tmp_path / "corpus", of(Before(phases=(Phase(length=8, documents=(0, 0.5)),))), SILENT, lambda draft: {}
    )
    for share, expected in ((0.5, []), (0.7, ["train.phases.0.document_range.1: 0.5 -> 0.7"])):
        said = changes(made.manifest, of(Now(phases=(NowPhase(length=8, document_range=(0, share)),))))
        assert [phrase for phrase in said if "document" in phrase] == expected


def test_settings_are_to_be_restored_only_where_that_helps() -> None:
    assert remedy_of(["train.seed: 1 -> 42", "its input examples changed"]) == "Restore these settings"
    assert "continue with that version" in remedy_of([VERSION, "train.seed: 1 -> 42"])
